"""Compare what the methods have found after so much CPU time, or so many trials.

Racing: the gap to the best configuration of a table of run times, over CPU time in multiples of the
median configuration's mean run; no bookkeeping is charged. Trials: the rank of what was found on a
table of costs, in percent from the top, over the number of trials. Every figure is that of a run
with that limit, so a method may plan for it. Means over seeds; over tables the geometric mean, and
its ratio to that of ROAR, with capping for run times.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from acband_configspace.benchmark.commands.parallel import in_parallel
from acband_configspace.benchmark.methods.registry import ANYTIME_METHODS
from acband_configspace.benchmark.tables import open_table
from acband_configspace.benchmark.tables.loaders import SHIPPED
from acband_configspace.benchmark.tables.sources import HELP
from acband_configspace.core.checks import whole_number

#: A gap of one per cent, or one of the best in ten thousand, is as good as none: who is closer
#: counts as this in a geometric mean, which else is decided by how close the closest ones are.
FLOOR = 0.01
#: A name on the command line that begins so is a table of costs, not of run times.
COSTS = "noisy:"
_COLOURS = {
    "default": "tab:blue",
    "paper": "tab:cyan",
    "roar": "tab:red",
    "roar-capped": "tab:orange",
    "sh": "tab:green",
    "hyperband": "tab:olive",
    "random-racing": "tab:gray",
}


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
"""For each method a row per table (or their mean), a column per limit; NaN where it cannot run."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument(
        "--mode", choices=[*MODES, "both"], default="both", help="with costs, with races, or both"
    )
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
    parser.add_argument(
        "--processes", type=int, default=os.cpu_count() or 1,
        help="how many processes to use; by default one for each core",
    )  # fmt: skip
    parser.add_argument("--plot", type=Path, help="draw the curves into this file (.png, .pdf, …)")


def run(arguments: argparse.Namespace) -> int:
    """Measure, print, and draw."""
    seeds = range(whole_number("seeds", arguments.seeds, at_least=1))
    whole_number("processes", arguments.processes, at_least=1)
    drawn: dict[str, Curves] = {}
    for name in MODES if arguments.mode == "both" else [arguments.mode]:
        mode = MODES[name]
        tables = _tables(arguments, name)
        methods = [method for method in arguments.methods if method not in mode.without]
        if not tables or not methods:
            continue
        curves = measure(name, tables, methods, seeds, processes=arguments.processes)
        print(f"\n{mode.title}, over {mode.unit}; {len(seeds)} seeds")
        print(as_text(mode, tables, curves))
        drawn[name] = curves
    if arguments.plot is not None and drawn:
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
    jobs = [Job(mode, *job, seeds) for job in itertools.product(tables, methods, limits)]
    scores = in_parallel(score, jobs, workers=processes, title=mode)
    cube = np.array(scores).reshape(len(tables), len(methods), len(limits))
    return {method: cube[:, i, :] for i, method in enumerate(methods)}


_open = functools.lru_cache(maxsize=2)(open_table)


def score(job: Job) -> float:
    """Return the mean gap or rank over the seeds; NaN if the method cannot do with the limit."""
    table, method = _open(job.table), ANYTIME_METHODS[job.method]
    means, racing = table.mean_runtimes(), job.mode == "racing"
    limit: dict[str, Any] = {"n_trials": job.limit}
    if racing:
        limit = {"cpu_limit": job.limit * float(np.median(means))}
    try:
        found = [method.run(table, **limit, seed=seed).incumbent for seed in job.seeds]
    except ValueError:  # the paper's schedule needs so many races at least
        return float("nan")
    if racing:
        return float(np.mean([table.gap_to_best(row) for row in found]))
    return float(np.mean([100 * float((means < means[row]).mean()) for row in found]))


def average(curves: Curves) -> Curves:
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


def _block(title: str, mode: Mode, values: Curves) -> str:
    lines = [f"{title:48}" + "".join(f"{limit:9}" for limit in mode.limits)]
    for method, row in values.items():
        figures = "".join("        –" if np.isnan(value) else f"{value:9.3f}" for value in row)
        lines.append(f"    {ANYTIME_METHODS[method].name:44}{figures}")
    return "\n".join(lines)


def draw(panels: Mapping[Mode, Curves], path: Path) -> None:
    """Write a panel for each mode: the geometric mean over its tables, on logarithmic axes."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.0 * len(panels), 4.4), layout="constrained")
    FigureCanvasAgg(figure)
    row: Any = figure.subplots(1, len(panels), squeeze=False)[0]
    for axes, (mode, curves) in zip(row, panels.items(), strict=True):
        for method, values in curves.items():
            axes.plot(
                mode.limits,
                values,
                marker="o",
                markersize=4,
                linewidth=2.4 if method == "default" else 1.4,
                color=_COLOURS.get(method),
                label=ANYTIME_METHODS[method].name,
            )
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xticks(mode.limits, [f"{limit:,}" for limit in mode.limits])
        axes.minorticks_off()
        axes.set_xlabel(mode.unit)
        axes.set_ylabel(mode.title)
        axes.grid(alpha=0.3, which="both", linewidth=0.5)
        axes.legend(fontsize=8)
    figure.savefig(path, dpi=150)
