"""Turns results into the paper's tables, a CSV file, the Pareto front and the paper's figure."""

from __future__ import annotations

import csv
import dataclasses
import io
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from acband_configspace.benchmark.commands.paper_grid import Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes

METRICS = ("cpu_time", "gap", "subset_gap", "r_delta", "cpu_time_with_repeats")
_COLOURS = {
    "acband": "tab:blue",
    "hyperband": "tab:orange",
    "icar": "tab:green",
    "car": "tab:brown",
    "car++": "tab:red",
}
_UNITS = (("thousand days", 86_400_000.0), ("days", 86_400.0), ("hours", 3600.0), ("s", 1.0))


@dataclass(frozen=True)
class Statistics:
    """A metric over seeds."""

    mean: float
    deviation: float
    """σ, of the sample."""
    error: float
    """The standard error of the mean."""


@dataclass(frozen=True)
class Cell:
    """A method for one α: its metrics over the seeds."""

    method: str
    family: str
    alpha: float | None
    metrics: dict[str, Statistics]


def summarise(rows: Iterable[Row]) -> list[Cell]:
    """Return a cell for each method and α, in the order in which they first come."""
    groups: dict[tuple[str, float | None], list[Row]] = {}
    for row in rows:
        groups.setdefault((row.method, row.alpha), []).append(row)
    cells = []
    for (method, alpha), group in groups.items():
        metrics = {name: _statistics([getattr(row, name) for row in group]) for name in METRICS}
        cells.append(Cell(method, group[0].family, alpha, metrics))
    return cells


def _statistics(values: Sequence[float]) -> Statistics:
    deviation = float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
    return Statistics(float(np.mean(values)), deviation, deviation / float(np.sqrt(len(values))))


def by_alpha(cells: Sequence[Cell]) -> dict[float | None, list[Cell]]:
    """Return the cells of each α, and with them those for any; if there is no α, these for None."""
    fixed = [cell for cell in cells if cell.alpha is None]
    alphas = sorted({cell.alpha for cell in cells if cell.alpha is not None}, reverse=True)
    own = {alpha: [cell for cell in cells if cell.alpha == alpha] for alpha in alphas}
    return {alpha: some + fixed for alpha, some in own.items()} or {None: fixed}


def pareto_front(cells: Sequence[Cell]) -> list[Cell]:
    """Return the cells that no other beats in both CPU time and gap, cheapest first."""
    front: list[Cell] = []
    ordered = sorted(cells, key=lambda c: (c.metrics["cpu_time"].mean, c.metrics["gap"].mean))
    for cell in ordered:
        if not front or cell.metrics["gap"].mean < front[-1].metrics["gap"].mean:
            front.append(cell)
    return front


def time_unit(cells: Sequence[Cell]) -> tuple[str, float]:
    """Return the largest unit in which the typical CPU time is at least one."""
    typical = float(np.median([cell.metrics["cpu_time"].mean for cell in cells]))
    return next((unit for unit in _UNITS if typical >= unit[1]), _UNITS[-1])


def as_table(cells: Sequence[Cell]) -> str:
    """Return the paper's layout: for each metric and each α the mean µ and the deviation σ.

    Methods that do not depend on α come below, with one µ and σ a metric. Where a method has asked
    for more runs than the table has instances, a last column says what it would have paid if
    instances that come again were paid again.
    """
    columns = _columns(cells)
    alphas = sorted({c.alpha for c in cells if c.alpha is not None}, reverse=True)
    named = {(cell.method, cell.alpha): cell for cell in cells}
    of_alpha: dict[float | None, str] = {alpha: f"α = {alpha:g}" for alpha in alphas}
    blocks = []
    for heads in (of_alpha, {None: "any α"}):
        methods = dict.fromkeys(cell.method for cell in cells if cell.alpha in heads)
        if methods:
            rows = {name: [named.get((name, alpha)) for alpha in heads] for name in methods}
            blocks.append(_block(columns, [*heads.values()], rows))
    return "\n\n".join(blocks)


@dataclass(frozen=True)
class _Column:
    metric: str
    title: str
    scale: float
    digits: int


def _columns(cells: Sequence[Cell]) -> list[_Column]:
    unit, seconds = time_unit(cells)
    columns = [
        _Column(
            "cpu_time", f"CPU time ({unit})", seconds, _time_digits(cells, "cpu_time", seconds)
        ),
        _Column("gap", "Gap to best", 1.0, 2),
        _Column("subset_gap", "Gap to subset-best", 1.0, 2),
        _Column("r_delta", "R^δ (s)", 1.0, _digits(cells)),
    ]
    repeats = "cpu_time_with_repeats"
    if any(c.metrics[repeats].mean > 1.001 * c.metrics["cpu_time"].mean for c in cells):
        digits = _time_digits(cells, repeats, seconds)
        columns.append(_Column(repeats, f"… repeats paid ({unit})", seconds, digits))
    return columns


def _block(
    columns: Sequence[_Column],
    heads: Sequence[str],
    methods: Mapping[str, Sequence[Cell | None]],
) -> str:
    lines = [
        ["", *(column.title for column in columns)],
        ["", *["".join(f"{head:^16}" for head in heads)] * len(columns)],
        ["Method", *["      µ       σ " * len(heads)] * len(columns)],
    ]
    for name, cells in methods.items():
        numbers = ("".join(_number(cell, column) for cell in cells) for column in columns)
        lines.append([name, *numbers])
    widths = [max(map(len, texts)) for texts in zip(*lines, strict=True)]
    lines.insert(3, ["-" * width for width in widths])
    return "\n".join(
        " | ".join(f"{text:{width}}" for text, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def _number(cell: Cell | None, column: _Column) -> str:
    if cell is None:
        return f"{'-':>16}"
    statistics = cell.metrics[column.metric]
    mean, deviation = statistics.mean / column.scale, statistics.deviation / column.scale
    return f"{mean:8.{column.digits}f}{deviation:8.{column.digits}f}"


def _time_digits(cells: Sequence[Cell], metric: str, seconds: float) -> int:
    """Return how many digits of the CPU times there is room for."""
    longest = max(cell.metrics[metric].mean for cell in cells) / seconds
    return 2 if longest < 1000 else 1 if longest < 10_000 else 0


def _digits(cells: Sequence[Cell]) -> int:
    """Return how many digits show two figures of the typical R^δ."""
    typical = float(np.median([cell.metrics["r_delta"].mean for cell in cells]))
    return 1 if typical >= 1 else 4


def as_csv(rows: Sequence[Any]) -> str:
    """Return rows, all of one dataclass, as comma-separated values."""
    text = io.StringIO()
    names = [field.name for field in dataclasses.fields(rows[0])]
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(dataclasses.asdict(row) for row in rows)
    return text.getvalue()


def claims(cells: Sequence[Cell]) -> str:
    """Say for each α which methods form the Pareto front, and what AC-Band saves and loses."""
    lines = []
    for alpha, here in by_alpha(cells).items():
        if alpha is None:
            continue
        front = ", ".join(cell.method for cell in pareto_front(here))
        lines.append(f"α = {alpha:g}: Pareto front (cheapest first): {front}")
        ours = next((cell for cell in here if cell.method == "AC-Band k=2"), None)
        for other in here:
            if ours and other.family in ("icar", "car", "car++", "hyperband"):
                saved = 1 - ours.metrics["cpu_time"].mean / other.metrics["cpu_time"].mean
                worse = ours.metrics["gap"].mean - other.metrics["gap"].mean
                lines.append(
                    f"    AC-Band k=2 takes {saved:6.1%} less CPU time than {other.method:13} "
                    f"and its gap is {100 * worse:+5.1f} points"
                )
    return "\n".join(lines)


def computing_times(rows: Iterable[Row]) -> str:
    """Return how long the simulation of each method took."""
    total: dict[str, list[float]] = {}
    for row in rows:
        total.setdefault(row.family, []).append(row.computing)
    return "\n".join(
        f"    {family:10} {len(seconds):4} runs, {np.mean(seconds):8.3f} s a run, "
        f"{np.sum(seconds):8.1f} s in all"
        for family, seconds in total.items()
    )


def draw(cells: Sequence[Cell], path: str | os.PathLike[str], title: str) -> None:
    """Draw CPU time against the gap to the best, as the paper does (needs the extra ``plot``).

    A panel for each α, circles for the variants of AC-Band. The boxes are the standard
    errors of the means; the line and the black rims mark the Pareto front.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    shown = by_alpha(cells)
    figure = Figure(figsize=(4.8 * len(shown) + 1.6, 4.4), layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(1, len(shown), squeeze=False, sharex=True, sharey=True)[0]
    unit, seconds = time_unit(cells)
    for axes, (alpha, here) in zip(panels, shown.items(), strict=True):
        _draw_panel(axes, here, seconds)
        axes.set_title("" if alpha is None else f"α = {alpha:g}")
        axes.set_xlabel(f"CPU time ({unit})")
    handles, labels = panels[-1].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right center", fontsize=9)
    panels[0].set_ylabel("gap to best (%)")
    figure.suptitle(title)
    figure.savefig(path, dpi=150)


def _draw_panel(axes: Axes, cells: Sequence[Cell], seconds: float) -> None:
    from matplotlib.patches import Rectangle

    front = pareto_front(cells)
    points = [_point(cell, seconds) for cell in front]
    axes.plot(
        *zip(*points, strict=True),
        drawstyle="steps-post",
        color="0.6",
        linestyle="--",
        zorder=1,
        label="Pareto front",
    )
    axes.set_xscale("log")
    markers = _markers(cells)
    for cell in cells:
        colour: Any = _COLOURS.get(cell.family, "tab:gray")
        x, y = _point(cell, seconds)
        dx, dy = cell.metrics["cpu_time"].error / seconds, 100 * cell.metrics["gap"].error
        axes.add_patch(Rectangle((x - dx, y - dy), 2 * dx, 2 * dy, color=colour, alpha=0.2, lw=0))
        axes.plot(
            x,
            y,
            marker=markers[cell.method],
            markersize=8,
            color=colour,
            markeredgecolor="black" if cell in front else colour,
            markeredgewidth=1.6,
            linestyle="",
            zorder=3,
            label=cell.method,
        )
        if cell.family == "acband":
            text = cell.method.replace("AC-Band ", "")
            axes.annotate(text, (x, y), xytext=(6, 4), textcoords="offset points", fontsize=8)
    axes.grid(alpha=0.3, which="both", linewidth=0.5)


def _point(cell: Cell, seconds: float) -> tuple[float, float]:
    return cell.metrics["cpu_time"].mean / seconds, 100 * cell.metrics["gap"].mean


def _markers(cells: Sequence[Cell]) -> dict[str, str]:
    """Return circles for AC-Band, and another shape for each variant of another method."""
    markers: dict[str, str] = {}
    counts: dict[str, int] = {}
    for cell in cells:
        number = counts.get(cell.family, 0)
        counts[cell.family] = number + 1
        markers[cell.method] = "o" if cell.family == "acband" else "sD^v<>p*"[number % 8]
    return markers
