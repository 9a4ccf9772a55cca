"""Draws what methods have found over CPU time or trials (needs the extra ``plot``)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from acband_configspace.benchmark.methods.registry import ANYTIME_METHODS

if TYPE_CHECKING:
    from acband_configspace.benchmark.commands.anytime import Mode

_COLOURS = {
    "default": "tab:blue",
    "paper": "tab:cyan",
    "roar": "tab:red",
    "roar-capped": "tab:orange",
    "sh": "tab:green",
    "hyperband": "tab:olive",
    "random-racing": "tab:gray",
}


def draw(
    panels: Mapping[Mode, Mapping[str, npt.NDArray[np.float64]]], path: str | os.PathLike[str]
) -> None:
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
