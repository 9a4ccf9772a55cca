"""Pictures of a run, its plan and the guarantee; needs the extra ``plot`` (matplotlib).

Every function draws on the axes given, or on new ones, and returns them. A run is given as its
directory, as a :class:`~acband_configspace.runlog.replay.Run`, or as its facade.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from acband_configspace.core.schedule import Schedule, sufficient_budget
from acband_configspace.core.search_plan import SearchSchedule
from acband_configspace.runlog.charts import KINDS, DotChart, dot_chart
from acband_configspace.runlog.replay import AnyRun, Run

#: Colours that those who cannot tell red from green can tell apart, on screen and in print.
WINNER, SURVIVOR, DROPPED, OPEN = "#d55e00", "#0072b2", "#9fa8b2", "#e69f00"
TEST = "#009e73"
#: The colour and the marker of each kind of dot.
MARKERS = {
    "incumbent": (WINNER, "o"),
    "on": (SURVIVOR, "o"),
    "out": (DROPPED, "X"),
    "waits": (SURVIVOR, "o"),
    "open": (OPEN, "o"),
}
EPOCHS = ("#0072b2", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f7f7f")


def plot_elimination(run: AnyRun, ax: Axes | None = None) -> Axes:
    """Draw who met whom and who went on: a column per round, the incumbent's path marked.

    Dots that touch are a group; a ring has found no group and goes on without racing. Columns get
    narrower with every round, and wider again as an epoch or a pass brings new challengers.
    """
    run = _played(run)
    chart = dot_chart(run)
    ax = _axes(ax, width=max(6.0, 0.42 * len(chart.columns) + 2.0), height=4.2)
    for path in chart.paths:
        (x, y), (next_x, next_y) = path.start, path.end
        colour, width = (WINNER, 2.4) if path.is_incumbent else (DROPPED, 0.9)
        ax.plot([x, next_x], [y, next_y], color=colour, linewidth=width, solid_capstyle="round")
    for x, top, bottom in chart.groups:
        ax.plot([x, x], [top, bottom], color="0.88", linewidth=7, zorder=1.5)
    for dot in chart.dots:
        ax.add_line(_marker(dot.kind, [dot.x], [dot.y]))
    _label_columns(ax, chart)
    handles = [_marker(kind, label=KINDS[kind]) for kind in chart.kinds]
    if run.incumbent is not None:
        name = f"the incumbent, {run.label(run.incumbent)}"
        handles = [h for h in handles if h.get_label() != KINDS["incumbent"]]
        handles.insert(0, Line2D([], [], color=WINNER, linewidth=2.4, marker="o", label=name))
    # Below, where no path is.
    ax.legend(
        handles=handles, loc="upper center", bbox_to_anchor=(0.5, -0.13), ncols=3, frameon=False,
        fontsize=8,
    )  # fmt: skip
    return ax


def _marker(
    kind: str, x: Sequence[float] = (), y: Sequence[float] = (), label: str | None = None
) -> Line2D:
    colour, shape = MARKERS[kind]
    waits = kind == "waits"
    return Line2D(
        x,
        y,
        marker=shape,
        linestyle="",
        label=label,
        markersize=5.5 if kind == "incumbent" else 4.5,
        markerfacecolor="white" if waits else colour,
        markeredgecolor=colour if waits else "white",
        markeredgewidth=1.0 if waits else 0.4,
        zorder=3,
    )


def _label_columns(ax: Axes, chart: DotChart) -> None:
    """Say below how many races a round took, and above whose epoch or pass it is."""
    ax.set_xlim(0, 100)
    ax.set_ylim(100, 0)
    ax.set_yticks([])
    ax.spines["left"].set_visible(False)
    ax.set_xticks(
        [x for x, _ in chart.columns], [str(len(round_.races)) for _, round_ in chart.columns]
    )
    ax.tick_params(axis="x", length=0, labelsize=7, rotation=90 if len(chart.columns) > 30 else 0)
    ax.set_xlabel(f"{chart.x_label}; below each: its races")
    above = ax.get_xaxis_transform()  # names are at the same height in every picture
    for number, span in enumerate(chart.spans):
        if number % 2 == 0:
            ax.axvspan(span.left, span.left + span.width, color="0.96", zorder=0, linewidth=0)
        middle = span.left + span.width / 2
        ax.text(middle, 1.01, span.label, ha="center", fontsize=7, color="0.3", transform=above)


def plot_incumbent(
    run: AnyRun, ax: Axes | None = None, *, test_costs: Mapping[int, float] | None = None
) -> Axes:
    """Draw the incumbent's estimated mean cost over the time of the run, and the default's.

    Parameters
    ----------
    run : Run | str | Path | facade
        The run, its directory, or its facade.
    ax : Axes | None
        Where to draw.
    test_costs : Mapping[int, float] | None
        What the configurations cost on test instances, by their numbers; drawn beside it.
    """
    run = _played(run)
    ax = _axes(ax, width=6.4, height=3.4)
    _draw_training(ax, run)
    if test_costs:
        known = [
            (lead.since, test_costs[lead.configuration])
            for lead in run.leads
            if np.isfinite(test_costs.get(lead.configuration, np.inf))
        ] or [(0.0, np.nan)]
        times, costs = zip(*known, (run.elapsed, known[-1][1]), strict=True)
        ax.step(times, costs, where="post", color=TEST, label="test")
    for lead in run.leads[1:]:
        ax.axvline(lead.since, color="0.85", linewidth=0.8, zorder=0)
        ax.text(
            lead.since, 0.99, f"#{lead.configuration}", transform=ax.get_xaxis_transform(),
            fontsize=7, color="0.35", va="top",
        )  # fmt: skip
    ax.margins(y=0.14)
    if min((lead.best for lead in run.leads if lead.best is not None), default=0.0) >= 0:
        ax.set_ylim(bottom=0)
    ax.set_xlim(0, max(run.elapsed, 1e-9))
    ax.set_xlabel("seconds since the start")
    ax.set_ylabel("mean run time (s)" if run.racing else f"mean {run.header.objective}")
    # Below, where no number of an incumbent is.
    ax.legend(frameon=False, fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=3)
    return ax


def _draw_training(ax: Axes, run: Run) -> None:
    steps = [
        (lead.since, lead.best, lead.estimate.error or 0.0)
        for lead in run.leads
        if lead.estimate is not None and lead.best is not None
    ]
    steps += [(run.elapsed, best, error) for _, best, error in steps[-1:]]
    times, costs, errors = np.array(steps, dtype=float).reshape(-1, 3).T
    ax.step(times, costs, where="post", color=WINNER, label="the best incumbent, in training")
    low, high = costs - 2 * errors, costs + 2 * errors
    ax.fill_between(times, low, high, step="post", color=WINNER, alpha=0.15, linewidth=0)
    default = None if run.comparison is None else run.comparison.default_estimate
    if default is not None:
        label = "the default, at least" if default.at_least else "the default"
        ax.axhline(default.mean, color=SURVIVOR, linestyle="--", linewidth=1.2, label=label)


def plot_schedule(schedule: Schedule | SearchSchedule, ax: Axes | None = None) -> Axes:
    """Draw how many races every round may use, and how many configurations it starts with.

    Of the search with memory: how many trials every pass may use.
    """
    if isinstance(schedule, SearchSchedule):
        what, x_label = "trials", "pass (above the bars: configurations that enter it)"
        bars = [(f"{p.number}", p.n_trials, p.n_entrants, SURVIVOR) for p in schedule.passes]
    else:
        what, x_label = "races", "epoch.round (above the bars: configurations at its start)"
        bars = [
            (f"{e.index}.{n}", r.n_races, r.n_configs, EPOCHS[(e.index - 1) % len(EPOCHS)])
            for e in schedule.epochs
            for n, r in enumerate(e.rounds, start=1)
        ]
    ax = _axes(ax, width=max(5.0, 0.5 * len(bars) + 1.5), height=3.4)
    for position, (_, height, above, colour) in enumerate(bars):
        ax.bar(position, height, color=colour, width=0.8)
        ax.annotate(
            f"{above:,}", (position, height), xytext=(0, 2), textcoords="offset points",
            ha="center", fontsize=8,
        )  # fmt: skip
    ax.set_xticks(range(len(bars)), [name for name, *_ in bars])
    ax.tick_params(axis="x", labelsize=8, rotation=90 if len(bars) > 18 else 0)
    ax.set_xlabel(x_label)
    ax.set_ylabel(f"{what} at most")
    ax.yaxis.set_major_locator(MaxNLocator(integer=True))
    return ax


def plot_sufficient_budget(
    ax: Axes | None = None,
    *,
    ks: Sequence[int] = (2, 4, 8, 16, 32),
    alphas: Sequence[float] = (0.01, 0.02, 0.05),
    deltas: Sequence[float] = (0.01, 0.05, 0.1),
) -> Axes:
    """Draw Theorem 1's sufficient budget over k for several α and δ, as the paper's appendix does.

    In units of the problem's own γ̄⁻¹, which says how many races tell configurations apart.
    """
    ax = _axes(ax, width=6.4, height=3.8)
    styles: tuple[Literal["-", "--", ":", "-."], ...] = ("-", "--", ":", "-.")
    for i, alpha in enumerate(alphas):
        for j, delta in enumerate(deltas):
            budgets = [sufficient_budget(k, alpha, delta) for k in ks]
            colour, style = EPOCHS[i % len(EPOCHS)], styles[j % len(styles)]
            ax.plot(ks, budgets, color=colour, linestyle=style, marker=".", markersize=4)
    ax.set_xscale("log", base=2)
    ax.set_yscale("log")
    ax.set_xticks(ks, [str(k) for k in ks])
    ax.set_xlabel("k, configurations that race at once")
    ax.set_ylabel("sufficient budget / γ̄⁻¹ (races)")
    handles = [
        Line2D([], [], color=EPOCHS[i % len(EPOCHS)], label=f"α = {alpha:g}")
        for i, alpha in enumerate(alphas)
    ] + [
        Line2D([], [], color="0.3", linestyle=styles[j % len(styles)], label=f"δ = {delta:g}")
        for j, delta in enumerate(deltas)
    ]
    ax.legend(handles=handles, frameon=False, fontsize=8, ncols=2)
    return ax


def _played(run: AnyRun) -> Run:
    run = Run.of(run)
    if run.problem is not None:
        raise ValueError(f"the run in {run.directory} cannot be drawn: {run.problem}")
    return run


def _axes(ax: Axes | None, *, width: float, height: float) -> Axes:
    if ax is None:
        _, ax = plt.subplots(figsize=(min(width, 16.0), height), layout="constrained")
    ax.spines[["top", "right"]].set_visible(False)
    return ax
