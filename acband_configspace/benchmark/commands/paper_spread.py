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

    ``run`` runs jobs on a table; it is told what to call them.
    """
    width = 8 * len(alphas)
    lines = [
        "CPU time that AC-Band k=2 saves",
        "spread" + "".join(f"{name:>{width + 2}}" for name in RIVALS),
        "    α " + "".join("  " + "".join(f"{a:8g}" for a in alphas) for _ in RIVALS),
    ]
    for spread in spreads:
        table = synthetic_table(*shape, spread=spread)
        jobs = main_grid(table, ("acband", *RIVALS), alphas, delta, [2], [4], seeds)
        cells = summarise(run(table, jobs, f"spread {spread:g}"))
        figures = ("  " + "".join(f"{_saved(cells, r, a):8.1%}" for a in alphas) for r in RIVALS)
        lines.append(f"{spread:6g}" + "".join(figures))
    return "\n".join(lines)


def _saved(cells: Sequence[Cell], rival: str, alpha: float) -> float:
    def cpu_time(family: str) -> float:
        [cell] = [c for c in cells if c.family == family and c.alpha in (alpha, None)]
        return cell.metrics["cpu_time"].mean

    return 1.0 - cpu_time("acband") / cpu_time(rival)
