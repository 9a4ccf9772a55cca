"""How much CPU time AC-Band saves, as configurations differ more and more from each other."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from acband_configspace.benchmark.commands.paper_grid import Job, Row, main_grid
from acband_configspace.benchmark.commands.paper_summary import Cell, summarise
from acband_configspace.benchmark.tables import RuntimeTable, synthetic_table
from acband_configspace.benchmark.tables.sources import PAPER_SHAPES

SPREADS = (0.3, 0.6, 1.0, 1.5, 2.0, 3.0)
RIVALS = ("icar", "car++", "hyperband")


def savings_by_spread(
    alphas: Sequence[float],
    delta: float,
    seeds: range,
    run: Callable[[RuntimeTable, Sequence[Job], str], Sequence[Row]],
    *,
    shape: tuple[int, int] = PAPER_SHAPES["cnfuzzdd"],
    spreads: Sequence[float] = SPREADS,
) -> str:
    """Return, for made-up tables of each spread, what AC-Band (k = 2) saves against each rival.

    And what ICAR saves if it guesses the best configurations first. ``run`` runs jobs on a table;
    it is told what to call them.
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
        methods = ("acband", "icar-guess", *RIVALS)
        jobs = main_grid(table, methods, alphas, delta, [2], [4], seeds)
        cells = summarise(run(table, jobs, f"spread {spread:g}"))
        figures = ("".join(f"{_saved(cells, *pair, a):8.1%}" for a in alphas) for pair in pairs)
        lines.append(f"{spread:6g}" + "".join(f"{figure:>{width}}" for figure in figures))
    return "\n".join(lines)


def _saved(cells: Sequence[Cell], family: str, rival: str, alpha: float) -> float:
    def cpu_time(name: str) -> float:
        [cell] = [c for c in cells if c.family == name and c.alpha in (alpha, None)]
        return cell.metrics["cpu_time"].mean

    return 1.0 - cpu_time(family) / cpu_time(rival)
