"""Methods that search a space, on the surrogate of a recorded table, all with the same CPU time."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from acband_configspace.benchmark.commands.parallel import on_table
from acband_configspace.benchmark.methods.registry import SPACE_METHODS
from acband_configspace.benchmark.methods.space import CannotRunError
from acband_configspace.benchmark.tables import RuntimeTable
from acband_configspace.benchmark.tables.surrogate import Surrogate, rank_correlations

#: CPU times, in multiples of what a run of the median configuration takes on average. SMAC's model
#: takes up to half a second a configuration, so that twice the time would take half an hour.
LIMITS = (100.0, 200.0)
#: How many random configurations there are, to the best of which the gap is.
N_REFERENCE = 1000


@dataclass(frozen=True)
class Search:
    """One method with one limit and one seed."""

    method: str
    limit: float
    seed: int


@dataclass(frozen=True)
class SearchRow:
    """What a search gave."""

    method: str
    limit: float
    seed: int
    gap: float
    """To the best of :data:`N_REFERENCE` random configurations: negative if it is better."""
    cpu_time: float
    n_configs: int
    n_runs: int
    problem: str = ""
    """Why it could not be run."""


def run_searches(
    table: RuntimeTable,
    methods: Sequence[str],
    limits: Sequence[float],
    seeds: range,
    *,
    workers: int,
) -> list[SearchRow]:
    """Search with each method, limit and seed; return the rows in that order."""
    wanted = [
        Search(method, limit, seed)
        for method in sorted(methods, key=lambda name: not name.startswith("smac"))  # slow first
        for limit in sorted(limits, reverse=True)
        for seed in seeds
    ]
    rows = on_table(table, _row, wanted, workers=workers, title="space")
    names = [SPACE_METHODS[name].name for name in methods]
    return sorted(rows, key=lambda row: (names.index(row.method), row.limit, row.seed))


@functools.lru_cache(maxsize=1)
def _surrogate(table: RuntimeTable) -> tuple[Surrogate, float, float]:
    """Return the surrogate, the best mean of random configurations, and the median one."""
    surrogate = Surrogate(table)
    means = surrogate.sampled(N_REFERENCE, seed=0).mean_runtimes()
    return surrogate, float(means.min()), float(np.median(means))


def _row(table: RuntimeTable, search: Search) -> SearchRow:
    surrogate, best, median = _surrogate(table)
    method = SPACE_METHODS[search.method]
    place = (method.name, search.limit, search.seed)
    try:
        found = method.run(surrogate, cpu_limit=search.limit * median, seed=search.seed)
    except CannotRunError as problem:
        return SearchRow(*place, float("nan"), 0.0, 0, 0, " ".join(str(problem).split()))
    gap = surrogate.mean_runtime(found.incumbent) / best - 1.0
    return SearchRow(*place, gap, found.cpu_time, found.n_configs, found.n_runs)


def as_text(table: RuntimeTable, rows: Sequence[SearchRow]) -> str:
    """Return the gaps as a table, a row for each method, and how good the surrogate is."""
    limits = sorted({row.limit for row in rows})
    forest, nearest = rank_correlations(table)
    surrogate, best, _ = _surrogate(table)
    default = surrogate.mean_runtime(surrogate.space.get_default_configuration()) / best - 1.0
    lines = [
        f"the surrogate ranks held-out configurations with a rank correlation of {forest:.2f} "
        f"(the nearest recorded row: {nearest:.2f})",
        f"gap to the best of {N_REFERENCE} random configurations after so many median runs of CPU "
        f"time, ± standard error; the default configuration's: {default:.3f}\n",
        f"{'':24}" + "".join(f"{limit:>18g} ×" for limit in limits) + "   configurations   runs",
    ]
    problems: list[str] = []
    for method in dict.fromkeys(row.method for row in rows):
        own = [row for row in rows if row.method == method]
        cells = "".join(_cell([row for row in own if row.limit == limit]) for limit in limits)
        last = [row for row in own if row.limit == limits[-1] and not row.problem]
        counts = f"{'–':>17}{'–':>7}"
        if last:
            n_configs, n_runs = np.mean([(row.n_configs, row.n_runs) for row in last], axis=0)
            counts = f"{n_configs:17.0f}{n_runs:7.0f}"
        lines.append(f"{method:24}{cells}{counts}")
        problems += [
            f"{method}, {row.limit:g} ×, seed {row.seed}: {row.problem}"
            for row in own
            if row.problem
        ]
    return "\n".join([*lines, *problems])


def _cell(rows: Sequence[SearchRow]) -> str:
    gaps = [row.gap for row in rows if not row.problem]
    if not gaps:
        return f"{'–':>20}"
    error = np.std(gaps, ddof=1) / np.sqrt(len(gaps)) if len(gaps) > 1 else 0.0
    return f"{np.mean(gaps):12.3f} ± {error:.3f}"
