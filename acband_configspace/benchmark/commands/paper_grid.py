"""The paper's experiments: which methods run, on which seeds, in parallel, and what they give."""

from __future__ import annotations

import concurrent.futures
import multiprocessing
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from acband_configspace.benchmark.methods.acband import ACBand
from acband_configspace.benchmark.methods.halving import Hyperband
from acband_configspace.benchmark.methods.method import Method, MethodResult
from acband_configspace.benchmark.methods.registry import METHODS, Setting, build
from acband_configspace.benchmark.tables import RuntimeTable
from acband_configspace.core.schedule import Schedule

J = TypeVar("J")
R = TypeVar("R")
#: η with which Hyperband draws the 618 configurations of the second appendix experiment.
TABLE_4_ETA = 8


@dataclass(frozen=True)
class Job:
    """One method in one setting with one seed."""

    method: Method
    alpha: float | None
    """None if the method does not depend on it."""
    seed: int
    family: str
    """The name by which the method was asked for."""
    lowered: bool = False
    """Whether AC-Band gets fewer configurations than were asked for: the table has no more."""


@dataclass(frozen=True)
class Row:
    """What one run gave, in the paper's metrics."""

    method: str
    family: str
    alpha: float | None
    seed: int
    cpu_time: float
    cpu_time_with_repeats: float
    """If an instance that comes again were paid again."""
    wall_time: float
    gap: float
    """Percent gap to best, as a fraction: 0.1 is 10 % (the paper's tables print fractions too)."""
    subset_gap: float
    r_delta: float
    n_configs: int
    n_instances: int
    computing: float
    """CPU seconds that the simulation took."""


def main_grid(
    table: RuntimeTable,
    families: Sequence[str],
    alphas: Sequence[float],
    delta: float,
    ks: Sequence[int],
    etas: Sequence[int],
    seeds: range,
    times: int = 1,
) -> list[Job]:
    """Return the jobs of Tables 1 and 2 of the paper (and of its figures)."""
    jobs = []
    for family in families:
        uses_alpha = METHODS[family].uses_alpha if family in METHODS else True
        for alpha in alphas if uses_alpha else alphas[:1]:
            for method in build(family, Setting(alpha, delta, ks, etas, times)):
                key = alpha if uses_alpha else None
                jobs += _jobs(table, method, key, seeds, family)
    return jobs


def car_grid(
    table: RuntimeTable,
    alphas: Sequence[float],
    delta: float,
    ks: Sequence[int],
    seeds: range,
    times: int = 1,
) -> list[Job]:
    """Return the jobs of Table 3: AC-Band with as many configurations (N) as CAR++ draws."""
    # Only now: numba takes a second to import, and other commands do without.
    from acband_configspace.benchmark.methods.capsandruns import CapsAndRuns

    jobs = main_grid(table, ("icar", "car++", "car"), alphas, delta, ks, (), seeds)
    for alpha in alphas:
        n = CapsAndRuns(alpha=alpha, zeta=delta).pool_size()
        for k in ks:
            method = ACBand(k=k, alpha=alpha, delta=delta, n_candidates=n, times=times)
            jobs += _jobs(table, method, alpha, seeds, "acband")
    return jobs


def hyperband_grid(
    table: RuntimeTable, etas: Sequence[int], ks: Sequence[int], seeds: range, times: int = 1
) -> list[Job]:
    """Return the jobs of Table 4: AC-Band with the configurations of Hyperband (η = 8)."""
    jobs = [
        Job(Hyperband(eta, times=times), None, seed, "hyperband") for eta in etas for seed in seeds
    ]
    n = sum(Hyperband(TABLE_4_ETA).brackets(table.n_configs))
    for k in ks:
        jobs += _jobs(table, ACBand(k=k, n_candidates=n, times=times), None, seeds, "acband")
    return jobs


def _jobs(
    table: RuntimeTable, method: Method, alpha: float | None, seeds: range, family: str
) -> list[Job]:
    fitted = fit_to(table, method)
    return [Job(fitted, alpha, seed, family, fitted is not method) for seed in seeds]


def fit_to(table: RuntimeTable, method: Method) -> Method:
    """Lower AC-Band's N where its epochs would draw or race more than the table has.

    The other methods see to it themselves.
    """
    if not isinstance(method, ACBand):
        return method

    def fits(n: int | None) -> bool:
        options: dict[str, Any] = {
            "k": method.k,
            "alpha": method.alpha,
            "delta": method.delta,
            "n_candidates": n,
            "n_epochs": method.n_epochs,
        }
        enough = Schedule.minimum_budget(**options) <= method.times * table.n_instances
        return enough and Schedule.plan(10**9, **options).n_configs < table.n_configs

    if fits(method.n_candidates):
        return method
    low, high = 1, table.n_configs
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    return replace(method, n_candidates=low)


def run_jobs(
    table: RuntimeTable, jobs: Sequence[Job], *, workers: int = 1
) -> Iterator[tuple[int, Row]]:
    """Run the jobs; yield the number of each with its result, as they finish."""
    for number, (result, computing) in on_table(table, _run, jobs, workers=workers):
        yield number, _row(table, jobs[number], result, computing)


def on_table(
    table: RuntimeTable,
    function: Callable[[RuntimeTable, J], R],
    jobs: Sequence[J],
    *,
    workers: int,
) -> Iterator[tuple[int, R]]:
    """Call a function for each job; yield the number of each with its result, as they finish.

    The results do not depend on the number of workers. These share one copy of the table, mapped
    from a file.
    """
    if workers <= 1:
        yield from ((number, function(table, job)) for number, job in enumerate(jobs))
        return
    context = multiprocessing.get_context("spawn")  # the process may have threads: never fork it
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "runtimes.npy"
        np.save(path, np.asarray(table.runtimes))
        known = {field.name: getattr(table, field.name) for field in fields(table)}
        del known["runtimes"]
        with concurrent.futures.ProcessPoolExecutor(workers, context, _open, (path, known)) as pool:
            futures = {pool.submit(_call, function, job): i for i, job in enumerate(jobs)}
            for future in concurrent.futures.as_completed(futures):
                yield futures[future], future.result()


_shared: list[RuntimeTable] = []


def _open(path: Path, known: dict[str, Any]) -> None:
    """Map the table into a worker's memory."""
    _shared[:] = [RuntimeTable(np.load(path, mmap_mode="r"), **known)]


def _call(function: Callable[[RuntimeTable, J], R], job: J) -> R:
    return function(_shared[0], job)


def _run(table: RuntimeTable, job: Job) -> tuple[MethodResult, float]:
    start = time.process_time()
    result = job.method.run(table, job.seed)
    return result, time.process_time() - start


def _row(table: RuntimeTable, job: Job, result: MethodResult, computing: float) -> Row:
    return Row(
        method=job.method.name,
        family=job.family,
        alpha=job.alpha,
        seed=job.seed,
        cpu_time=result.cpu_time,
        cpu_time_with_repeats=(
            result.cpu_time
            if result.cpu_time_with_repeats is None
            else result.cpu_time_with_repeats
        ),
        wall_time=result.wall_time,
        gap=table.gap_to_best(result.incumbent),
        subset_gap=table.gap_to_subset_best(result.incumbent, result.configurations),
        r_delta=table.capped_mean_runtime(result.incumbent),
        n_configs=result.n_configs,
        n_instances=result.n_instances,
        computing=computing,
    )
