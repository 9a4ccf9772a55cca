"""Repeat the paper's experiments on a runtime table, beside its competitors.

Prints the paper's tables (µ and σ over seeds, for each α), writes all runs to a CSV file and draws
CPU time against the gap to the best configuration, the Pareto front marked. The same seeds give
the same numbers, with any number of workers.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from acband_configspace.benchmark.commands.paper_grid import Grid, Job, Row, run_jobs
from acband_configspace.benchmark.commands.paper_space import LIMITS, as_text, run_searches
from acband_configspace.benchmark.commands.paper_summary import (
    Cell,
    as_csv,
    as_table,
    claims,
    computing_times,
    draw,
    summarise,
)
from acband_configspace.benchmark.methods.acband import ACBand
from acband_configspace.benchmark.methods.registry import METHODS, SPACE_METHODS
from acband_configspace.benchmark.tables import RuntimeTable, synthetic_table
from acband_configspace.benchmark.tables.sources import HELP, PAPER_SHAPES, open_table
from acband_configspace.core.checks import whole_number

EXPERIMENTS = {
    "main": "Tables 1 and 2 and the figures: all methods for each α",
    "car": "Table 3: AC-Band with as many configurations (N) as CAR++",
    "hyperband": "Table 4: AC-Band with as many configurations (N) as Hyperband",
    "space": "methods that search the space of a recorded table, on its surrogate, all with the "
    "same CPU time",
    "spread": "what AC-Band saves on made-up tables in the shape of the paper's SAT data, as their "
    "configurations differ more and more (the table is not used)",
}
#: Tables with fewer instances get a budget of three times their number: enough for AC-Band to draw
#: hundreds of configurations, and not more than the four or five brackets of Hyperband can use.
FEW_INSTANCES = 1000
#: How much configurations differ in the experiment spread, and whom AC-Band is compared with.
SPREADS = (0.3, 0.6, 1.0, 1.5, 2.0, 3.0)
RIVALS = ("icar", "car++", "hyperband")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument("--table", default="minisat", help=HELP)
    parser.add_argument("--cutoff", type=float, help="seconds, if the file does not say")
    parser.add_argument(
        "--experiment",
        nargs="+",
        choices=EXPERIMENTS,
        help="; ".join(f"{name}: {what}" for name, what in EXPERIMENTS.items())
        + "; by default main, and space if the table knows its space",
    )
    parser.add_argument(
        "--methods", nargs="+", choices=METHODS, default=list(METHODS), metavar="METHOD",
        help=f"some of {', '.join(METHODS)}; by default all of them",
    )  # fmt: skip
    parser.add_argument(
        "--searches", nargs="+", choices=SPACE_METHODS, default=list(SPACE_METHODS),
        metavar="METHOD",
        help=f"of the experiment space: some of {', '.join(SPACE_METHODS)}; by default all of them",
    )  # fmt: skip
    parser.add_argument(
        "--limits",
        type=float,
        nargs="+",
        default=LIMITS,
        help="of the experiment space: CPU times, in runs of the median configuration",
    )
    parser.add_argument(
        "--alpha", type=float, nargs="+", default=[0.05, 0.02, 0.01],
        help="shares of the best configurations (default: 0.05 0.02 0.01)",
    )  # fmt: skip
    parser.add_argument(
        "--delta", type=float, default=0.05, help="probability of failure (default: 0.05)"
    )
    parser.add_argument(
        "--k", type=int, nargs="+", default=[2, 4, 8, 16],
        help="of AC-Band: racers in a race (default: 2 4 8 16)",
    )  # fmt: skip
    parser.add_argument(
        "--eta", type=int, nargs="+", default=[4, 5, 6, 8],
        help="of Hyperband and successive halving: keep one in this many (default: 4 5 6 8)",
    )  # fmt: skip
    parser.add_argument(
        "--times",
        type=int,
        help="budget in multiples of the table's instances, which are then used again; by default "
        f"1 as in the paper, but 3 if there are fewer than {FEW_INSTANCES}",
    )
    parser.add_argument("--seeds", type=int, default=5, help="runs of each setting")
    parser.add_argument(
        "--processes", type=int, default=os.cpu_count() or 1,
        help="how many processes to use; by default one for each core",
    )  # fmt: skip
    parser.add_argument("--output", type=Path, default=Path("acband_paper"), help="a folder")


def run(arguments: argparse.Namespace) -> int:
    """Run the experiments and report them."""
    whole_number("seeds", arguments.seeds, at_least=1)
    table = open_table(arguments.table, cutoff=arguments.cutoff)
    print(
        f"{arguments.table}: {table.n_configs} configurations × {table.n_instances} instances, "
        f"cutoff {table.cutoff:g} s, δ = {arguments.delta:g}, {arguments.seeds} seeds, budget of "
        f"{_times(table, arguments.times)} × the instances"
    )
    if find_spec("numba") is None:
        print("numba is not installed: the CapsAndRuns family is slow (pip install numba)")
    arguments.output.mkdir(parents=True, exist_ok=True)
    default = ["main"] if table.space is None else ["main", "space"]
    for experiment in arguments.experiment or default:
        if experiment == "space":
            _run_searches(table, arguments)
        elif experiment == "spread":
            seeds, workers = range(arguments.seeds), arguments.processes
            print(f"\n{savings_by_spread(arguments.alpha, arguments.delta, seeds, workers)}")
        else:
            _run_experiment(table, experiment, arguments)
    return 0


def _run_searches(table: RuntimeTable, arguments: argparse.Namespace) -> None:
    start, seeds = time.perf_counter(), range(arguments.seeds)
    rows = run_searches(
        table, arguments.searches, arguments.limits, seeds, workers=arguments.processes
    )
    print(f"\n{EXPERIMENTS['space']}\n\n{as_text(table, rows)}")
    _conclude("space", rows, start, arguments)


def _run_experiment(table: RuntimeTable, experiment: str, arguments: argparse.Namespace) -> None:
    grid = Grid(
        table,
        arguments.alpha,
        arguments.delta,
        arguments.k,
        arguments.eta,
        range(arguments.seeds),
        _times(table, arguments.times),
    )
    if experiment == "main":
        jobs = grid.main(arguments.methods)
    else:
        jobs = grid.car() if experiment == "car" else grid.hyperband()
    if note := _lowered(jobs):
        print(f"\n{note}")
    start = time.perf_counter()
    rows = run_jobs(table, jobs, workers=arguments.processes, title=experiment)
    cells = summarise(rows)
    print(f"\n{EXPERIMENTS[experiment]}\n\n{as_table(cells)}\n\n{_counts(rows)}")
    print(f"\n{claims(cells)}" if experiment == "main" else "")
    print(f"\nCPU time of the simulations:\n{computing_times(rows)}")
    _conclude(experiment, rows, start, arguments)
    if find_spec("matplotlib") is None:
        print("no figure: matplotlib is not installed (the extra 'plot')")
        return
    figure = arguments.output / f"{experiment}.png"
    draw(cells, figure, f"{arguments.table} (δ = {arguments.delta:g})")
    print(f"wrote {figure}")


def _conclude(
    experiment: str, rows: Sequence[Any], start: float, arguments: argparse.Namespace
) -> None:
    print(f"    {time.perf_counter() - start:.1f} s elapsed with {arguments.processes} processes")
    path = arguments.output / f"{experiment}.csv"
    path.write_text(as_csv(rows))
    print(f"wrote {path}")


def _times(table: RuntimeTable, times: int | None) -> int:
    if times is not None:
        return times
    return 3 if table.n_instances < FEW_INSTANCES else 1


def _lowered(jobs: Sequence[Job]) -> str:
    """Say where the table has too few configurations, or races, for AC-Band's N."""
    lowered = {
        (job.method.name, job.alpha): job.method.n_candidates
        for job in jobs
        if isinstance(job.method, ACBand) and job.lowered
    }
    if not lowered:
        return ""
    settings = ", ".join(
        f"N = {n} for {name}" + (f" with α = {alpha:g}" if alpha else "")
        for (name, alpha), n in lowered.items()
    )
    return f"the table has too few configurations or races for N, which is lowered: {settings}"


def _counts(rows: Sequence[Row]) -> str:
    counts: dict[str, list[int]] = {}
    for row in rows:
        name = row.method if row.family == "hyperband" else row.family
        known = counts.setdefault(name, [])
        if row.n_configs not in known:
            known.append(row.n_configs)
    said = (f"{name} {', '.join(map(str, numbers))}" for name, numbers in counts.items())
    return "configurations tried: " + "; ".join(said)


def savings_by_spread(
    alphas: Sequence[float],
    delta: float,
    seeds: range,
    workers: int,
    *,
    shape: tuple[int, int] = PAPER_SHAPES["cnfuzzdd"],
    spreads: Sequence[float] = SPREADS,
) -> str:
    """Return, for made-up tables of each spread, what AC-Band (k = 2) saves against each rival.

    And what ICAR saves if it guesses the best configurations first.
    """
    pairs = [*(("acband", rival) for rival in RIVALS), ("icar-guess", "icar")]
    names = [*RIVALS, "guessing"]
    width = max(8 * len(alphas), len(max(names, key=len))) + 2
    lines = [
        "CPU time that AC-Band k=2 saves, and ICAR by guessing the best configurations first",
        "spread" + "".join(f"{name:>{width}}" for name in names),
        "    α " + "".join(f"{''.join(f'{a:8g}' for a in alphas):>{width}}" for _ in names),
    ]
    for spread in spreads:
        table = synthetic_table(*shape, spread=spread)
        jobs = Grid(table, alphas, delta, [2], [4], seeds).main(("acband", "icar-guess", *RIVALS))
        cells = summarise(run_jobs(table, jobs, workers=workers, title=f"spread {spread:g}"))
        figures = ("".join(f"{_saved(cells, *pair, a):8.1%}" for a in alphas) for pair in pairs)
        lines.append(f"{spread:6g}" + "".join(f"{figure:>{width}}" for figure in figures))
    return "\n".join(lines)


def _saved(cells: Sequence[Cell], family: str, rival: str, alpha: float) -> float:
    def cpu_time(name: str) -> float:
        [cell] = [c for c in cells if c.family == name and c.alpha in (alpha, None)]
        return cell.metrics["cpu_time"].mean

    return 1.0 - cpu_time(family) / cpu_time(rival)
