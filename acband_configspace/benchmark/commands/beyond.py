"""Measure what goes beyond the paper: early stopping, the playoff, one epoch, the default search.

Prints, for each table, k and α, the gap to the best configuration (mean and 90 % quantile) and
the CPU time of each variant, beside those of the paper's rule; then the default search with the
CPU time that the paper's preset takes, and shares of it. Tables are made up unless recorded ones
are given; with few instances, budgets of 1, 3 and 10 times their number are measured.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import functools
import itertools
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from acband_configspace.benchmark.simulation import simulate, simulate_run
from acband_configspace.benchmark.tables import RuntimeTable
from acband_configspace.benchmark.tables.sources import HELP, open_table
from acband_configspace.core.checks import whole_number
from acband_configspace.core.schedule import Schedule

#: What is measured beside the paper's rule, with the same k and α.
VARIANTS: Mapping[str, Mapping[str, Any]] = {
    "paper": {},
    "lossless": {"early_stopping": 0.0},
    "level 0.01": {"early_stopping": 0.01},
    "level 0.1": {"early_stopping": 0.1},
    "level 0.1, playoff 400": {"early_stopping": 0.1, "playoff": 400},
    "level 0.1, one epoch": {"early_stopping": 0.1, "n_epochs": 1},
}
#: The default search is measured with these shares of the CPU time of the paper's preset.
SHARES = (0.1, 0.25, 0.5, 1.0)
#: Tables with fewer instances are measured at several budgets.
MANY_INSTANCES = 5000
MADE_UP: Mapping[str, str] = {
    "log-normal 948 × 20118": "synthetic:948x20118:seed=1",
    "narrow 1000 × 20000": "synthetic:1000x20000:spread=0.3:seed=2",
    "families 1000 × 20000": "families:1000x20000:seed=3",
    "hard families 1000 × 20000": "families:1000x20000:seed=4",
    "few instances 301 × 331": "families:301x331:seed=5",
}


@dataclass(frozen=True)
class Job:
    """One setting on one table, for some seeds."""

    table: str
    settings: Mapping[str, Any]
    seeds: range


@dataclass(frozen=True)
class Measured:
    """The gaps and CPU times of one job, a value per seed."""

    gaps: npt.NDArray[np.float64]
    cpu_times: npt.NDArray[np.float64]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument("--seeds", type=int, default=30, help="runs per setting")
    parser.add_argument(
        "--k", type=int, nargs="+", default=[2, 4, 8], help="racers in a race (default: 2 4 8)"
    )
    parser.add_argument(
        "--alpha", type=float, nargs="+", default=[0.05, 0.01],
        help="shares of the best configurations (default: 0.05 0.01)",
    )  # fmt: skip
    parser.add_argument(
        "--table", action="append", default=[],
        help=f"{HELP}; may be given several times, and replaces the made-up ones",
    )  # fmt: skip
    parser.add_argument(
        "--processes", type=int, default=os.cpu_count() or 1,
        help="how many processes to use; by default one for each core",
    )  # fmt: skip


def run(arguments: argparse.Namespace) -> int:
    """Print the comparisons."""
    seeds = range(whole_number("seeds", arguments.seeds, at_least=1))
    with concurrent.futures.ProcessPoolExecutor(arguments.processes) as pool:
        for name in arguments.table or MADE_UP:
            table = _table(name)
            print(f"\n{name}: {table.n_configs} configurations, {table.n_instances} instances")
            many = table.n_instances >= MANY_INSTANCES
            for times in (1,) if many else (1, 3, 10):
                if not many:
                    print(f"\n  budget of {times} × the instances")
                for alpha, k in itertools.product(arguments.alpha, arguments.k):
                    jobs = []
                    for variant in VARIANTS.values():
                        paper = _paper(table, times, k, alpha, variant.get("n_epochs"))
                        jobs.append(Job(name, {**variant, **paper}, seeds))
                    _print_results(f"α = {alpha}, k = {k}", VARIANTS, pool.map(measure, jobs))
                _print_default(pool, name, _paper(table, times, 2, 0.05), seeds)
    return 0


def _print_default(
    pool: concurrent.futures.Executor, name: str, settings: Mapping[str, Any], seeds: range
) -> None:
    paper = measure(Job(name, settings, seeds))
    if isinstance(paper, str):
        return
    limits = [{"cpu_limit": share * float(paper.cpu_times.mean())} for share in SHARES]
    results = pool.map(measure, [Job(name, limit, seeds) for limit in limits])
    names = ["paper", *(f"default, {share:.0%} of its CPU" for share in SHARES)]
    _print_results("the default search", names, [paper, *results])


def _paper(
    table: RuntimeTable, times: int, k: int, alpha: float, n_epochs: int | None = None
) -> dict[str, Any]:
    """Return the paper's settings: α, or if a small table has no room for it, N.

    That is as many configurations as all epochs can draw.
    """
    settings = {"budget": times * table.n_instances, "reuse": times > 1, "k": k}
    for n in range(table.n_configs - 1, 0, -1):
        largest = Schedule.plan(10**9, n_candidates=n, n_epochs=n_epochs)
        if largest.n_configs < table.n_configs:
            break
    wanted = Schedule.plan(10**9, alpha=alpha, n_epochs=n_epochs)
    room = wanted.n_candidates <= n
    return {**settings, **({"alpha": alpha} if room else {"n_candidates": n})}


def _print_results(title: str, names: Iterable[str], results: Iterable[Measured | str]) -> None:
    print(f"\n  {title:24}  gap: mean   (±)     90 %   × paper      CPU s   × paper")
    base: Measured | None = None
    for name, result in zip(names, results, strict=True):
        if isinstance(result, str):
            print(f"  {name:24}  {result}")
            continue
        base = result if base is None else base
        gap, cpu = result.gaps.mean(), result.cpu_times.mean()
        error = result.gaps.std() / np.sqrt(len(result.gaps))
        relative = gap / base.gaps.mean() if base.gaps.mean() > 0 else np.nan
        print(
            f"  {name:24}  {gap:9.3f}  {error:6.3f}  {np.quantile(result.gaps, 0.9):7.3f}  "
            f"{relative:8.2f}  {cpu:9.4g}  {cpu / base.cpu_times.mean():8.2f}"
        )


@functools.lru_cache(maxsize=1)
def _table(name: str) -> RuntimeTable:
    return open_table(MADE_UP.get(name, name))


def measure(job: Job) -> Measured | str:
    """Run a job; a setting that the table has no room for is answered with the reason."""
    table = _table(job.table)
    try:
        play: Callable[..., Any] = simulate_run if "cpu_limit" in job.settings else simulate
        results = [play(table, **job.settings, seed=seed) for seed in job.seeds]
    except ValueError as reason:
        return str(reason)
    return Measured(
        np.array([table.gap_to_best(result.incumbent) for result in results]),
        np.array([result.cpu_time for result in results]),
    )
