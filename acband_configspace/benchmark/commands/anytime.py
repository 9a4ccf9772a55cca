"""Compare what the methods have found after so much CPU time, or so many trials.

Racing: the gap to the best configuration of a table of run times, over CPU time in multiples of the
median configuration's mean run; no bookkeeping is charged. Trials: the rank of what was found on a
table of costs, in percent from the top, over the number of trials. Every figure is that of a run
with that limit, so a method may plan for it. Means over seeds; over tables the geometric mean, and
its ratio to that of ROAR, with capping for run times.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import functools
import multiprocessing
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.progress import Progress

from acband_configspace.benchmark.methods.registry import ANYTIME_METHODS
from acband_configspace.benchmark.tables import RuntimeTable, open_table
from acband_configspace.benchmark.tables.loaders import SHIPPED
from acband_configspace.benchmark.tables.sources import HELP
from acband_configspace.core.checks import whole_number

#: Where a method is at zero on a table, it counts as this in a geometric mean.
FLOOR = 0.001
#: A name on the command line that begins so is a table of costs, not of run times.
COSTS = "noisy:"


@dataclass(frozen=True)
class Mode:
    """One of the two comparisons."""

    title: str
    unit: str
    limits: tuple[int, ...]
    """Where it is measured: CPU time in median runs, or trials."""
    reference: str
    """The rival to beat."""
    without: tuple[str, ...]
    """Methods that make no sense here."""
    tables: tuple[str, ...]
    """What it is measured on if no table is given; the seed comes behind."""


MODES: Mapping[str, Mode] = {
    "racing": Mode(
        "gap to the best configuration",
        "CPU time, × the median configuration's mean run",
        (100, 200, 400, 800, 1600),
        "roar-capped",
        (),
        (
            "synthetic:8000x400",
            "synthetic:8000x400:spread=1.5",
            "synthetic:8000x400:spread=0.3:noise=0.5",
            "synthetic:8000x400:noise=2:tails=3",
            "families:8000x400",
        ),
    ),
    "trials": Mode(
        "rank, % from the top",
        "trials",
        (50, 100, 200, 500, 1000, 2000, 5000),
        "roar",
        ("roar-capped", "roar-capped-one-order"),  # costs that are no run times cannot be capped
        (
            "noisy:10000x10:noise=0.3",
            "noisy:10000x100:noise=0.3",
            "noisy:10000x100:noise=1",
            "noisy:10000x100:noise=4",
        ),
    ),
}


@dataclass(frozen=True)
class Job:
    """One method on one table with one limit, for all seeds."""

    mode: str
    table: str
    method: str
    limit: int
    seeds: range


Curves = Mapping[str, npt.NDArray[np.float64]]
"""For each method a row per table and a column per limit; NaN where a method cannot run."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument("--mode", choices=[*MODES, "both"], default="both")
    parser.add_argument(
        "--table", action="append", default=[],
        help=f"{HELP}; may be given several times, and replaces the built-in ones; with '--mode "
        "both' noisy ones are for trials, all others for racing",
    )  # fmt: skip
    parser.add_argument(
        "--table-seed", type=int, default=1, help="of the built-in tables that are made up"
    )
    parser.add_argument(
        "--methods", nargs="+", choices=ANYTIME_METHODS, default=list(ANYTIME_METHODS),
        metavar="METHOD", help=f"some of {', '.join(ANYTIME_METHODS)}; by default all",
    )  # fmt: skip
    parser.add_argument("--seeds", type=int, default=20, help="runs of each method")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--plot", type=Path, help="draw the curves into this file (.png, .pdf, …)")


def run(arguments: argparse.Namespace) -> int:
    """Measure, print, and draw."""
    seeds = range(whole_number("seeds", arguments.seeds, at_least=1))
    whole_number("jobs", arguments.jobs, at_least=1)
    drawn: dict[str, Curves] = {}
    for name in MODES if arguments.mode == "both" else [arguments.mode]:
        mode = MODES[name]
        tables = _tables(arguments, name)
        methods = [method for method in arguments.methods if method not in mode.without]
        if not tables or not methods:
            continue
        curves = measure(name, tables, methods, seeds, processes=arguments.jobs)
        print(f"\n{mode.title}, over {mode.unit}; {len(seeds)} seeds")
        print(as_text(mode, tables, curves))
        drawn[name] = curves
    if arguments.plot is not None and drawn:
        from acband_configspace.benchmark.commands.anytime_figure import draw

        draw({MODES[name]: average(curves) for name, curves in drawn.items()}, arguments.plot)
        print(f"\nwrote {arguments.plot}")
    return 0


def _tables(arguments: argparse.Namespace, mode: str) -> list[str]:
    if not arguments.table:
        made_up = [f"{name}:seed={arguments.table_seed}" for name in MODES[mode].tables]
        return [*SHIPPED, *made_up] if mode == "racing" else made_up
    if arguments.mode != "both":
        return list(arguments.table)
    return [name for name in arguments.table if name.startswith(COSTS) == (mode == "trials")]


def measure(
    mode: str, tables: Sequence[str], methods: Sequence[str], seeds: range, *, processes: int = 1
) -> Curves:
    """Run every method on every table with every limit; the processes do not change the result."""
    limits = MODES[mode].limits
    jobs = [
        Job(mode, table, method, limit, seeds)
        for table in tables
        for method in methods
        for limit in limits
    ]
    with Progress(transient=True, console=Console(stderr=True)) as progress:
        task = progress.add_task(mode, total=len(jobs))
        scores = []
        for score in _scores(jobs, processes):
            scores.append(score)
            progress.advance(task)
    cube = np.array(scores).reshape(len(tables), len(methods), len(limits))
    return {method: cube[:, i, :] for i, method in enumerate(methods)}


def _scores(jobs: Sequence[Job], processes: int) -> Iterator[float]:
    if processes == 1:
        yield from map(score, jobs)
        return
    context = multiprocessing.get_context("spawn")  # rich has threads: never fork it
    with concurrent.futures.ProcessPoolExecutor(processes, context) as pool:
        yield from pool.map(score, jobs)


@functools.lru_cache(maxsize=2)
def _open(name: str) -> RuntimeTable:
    return open_table(name)


def score(job: Job) -> float:
    """Return the mean gap or rank over the seeds; NaN if the method cannot do with the limit."""
    table, method = _open(job.table), ANYTIME_METHODS[job.method]
    means = table.mean_runtimes()
    found = []
    for seed in job.seeds:
        try:
            if job.mode == "racing":
                limit = job.limit * float(np.median(means))
                incumbent = method.run(table, cpu_limit=limit, seed=seed).incumbent
            else:
                incumbent = method.run(table, n_trials=job.limit, seed=seed).incumbent
        except ValueError:  # the paper's schedule needs so many races at least
            return float("nan")
        found.append(
            table.gap_to_best(incumbent)
            if job.mode == "racing"
            else 100 * float((means < means[incumbent]).mean())
        )
    return float(np.mean(found))


def average(curves: Curves) -> Mapping[str, npt.NDArray[np.float64]]:
    """Return each method's geometric mean over the tables, for each limit."""
    return {
        method: np.exp(np.log(np.maximum(values, FLOOR)).mean(axis=0))
        for method, values in curves.items()
    }


def as_text(mode: Mode, tables: Sequence[str], curves: Curves) -> str:
    """Return the tables of figures: for each table, over all of them, and beside the reference."""
    blocks = [
        _block(name, mode, {method: values[i] for method, values in curves.items()})
        for i, name in enumerate(tables)
    ]
    over_all = average(curves)
    if len(tables) > 1:
        blocks.append(_block(f"geometric mean over {len(tables)} tables", mode, over_all))
    if mode.reference in over_all:
        ratios = {method: values / over_all[mode.reference] for method, values in over_all.items()}
        title = f"… relative to {ANYTIME_METHODS[mode.reference].name}"
        blocks.append(_block(title, mode, ratios))
    return "\n\n".join(blocks)


def _block(title: str, mode: Mode, values: Mapping[str, npt.NDArray[np.float64]]) -> str:
    lines = [f"{title:48}" + "".join(f"{limit:9}" for limit in mode.limits)]
    for method, row in values.items():
        figures = "".join("        –" if np.isnan(value) else f"{value:9.3f}" for value in row)
        lines.append(f"    {ANYTIME_METHODS[method].name:44}{figures}")
    return "\n".join(lines)
