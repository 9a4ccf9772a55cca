"""Draws CPU time against the gap to the best configuration (needs the extra ``plot``)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from acband_configspace.benchmark.commands.paper_summary import Cell, pareto_front, time_unit

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLOURS = {
    "acband": "tab:blue",
    "hyperband": "tab:orange",
    "icar": "tab:green",
    "car": "tab:brown",
    "car++": "tab:red",
}


def draw(cells: Sequence[Cell], path: str | os.PathLike[str], title: str) -> None:
    """Write the figure of the paper: a panel for each α, circles for the variants of AC-Band.

    The boxes are the standard errors of the means. The line and the black rims mark the
    Pareto front.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    known = sorted({c.alpha for c in cells if c.alpha is not None}, reverse=True)
    alphas: list[float | None] = [*known] or [None]
    fixed = [cell for cell in cells if cell.alpha is None]
    figure = Figure(figsize=(4.8 * len(alphas) + 1.6, 4.4), layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(1, len(alphas), squeeze=False, sharex=True, sharey=True)[0]
    unit, seconds = time_unit(cells)
    for axes, alpha in zip(panels, alphas, strict=True):
        own = [c for c in cells if c.alpha == alpha and alpha is not None]
        _draw_panel(axes, own + fixed, seconds)
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
