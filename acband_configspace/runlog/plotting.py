"""Pictures of a run, its plan and the guarantee; needs the extra ``plot`` (matplotlib).

Every function draws on the axes given, or on new ones, and returns them.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from acband_configspace.core.schedule import Schedule, sufficient_budget
from acband_configspace.runlog.bracket import PlayedEpoch, PlayedRound, incumbents, played_epochs
from acband_configspace.runlog.run import Run

#: Colours that those who cannot tell red from green can tell apart, on screen and in print.
WINNER, SURVIVOR, DROPPED, OPEN = "#d55e00", "#0072b2", "#9fa8b2", "#8aa3b8"
EPOCHS = ("#0072b2", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f7f7f")


@dataclass(frozen=True)
class _Column:
    """A round in the picture: how high up each configuration stands."""

    epoch: PlayedEpoch
    round: PlayedRound
    heights: Mapping[int, float]


def plot_elimination(run: Run, ax: Axes | None = None) -> Axes:
    """Draw who met whom and who went on: a column per round, the winner's path marked.

    Dots that touch are a group; a ring has found no group and goes on without racing. Columns get
    narrower with every round, and wider again as an epoch brings new challengers.
    """
    epochs = played_epochs(run)
    columns = _columns(epochs)
    ax = _axes(ax, width=max(6.0, 0.42 * len(columns) + 2.0), height=4.2)
    winner = next((e.winner for e in reversed(epochs) if e.winner is not None), None)
    for left, (before, column) in enumerate(itertools.pairwise(columns)):
        _connect(ax, left, before, column, winner)
    for position, column in enumerate(columns):
        _draw_column(ax, position, column, winner)
    _label_columns(ax, columns)
    _legend(ax, run, winner)
    return ax


def plot_incumbent(
    run: Run, ax: Axes | None = None, *, test_costs: Mapping[int, float] | None = None
) -> Axes:
    """Draw the incumbent's mean cost over the time of the run.

    Its training cost is the mean over its races up to then, in which a race it lost counts with
    what it had cost until it was stopped: too little, so the line is a lower bound.

    Parameters
    ----------
    run : Run
    ax : Axes | None
    test_costs : Mapping[int, float] | None
        What the configurations cost on test instances, by their numbers; drawn beside it.
    """
    ax = _axes(ax, width=6.4, height=3.4)
    changes = incumbents(run)
    times, costs = _training_costs(run, changes)
    ax.step(times, costs, where="post", color=SURVIVOR, label="training, in its races so far")
    if test_costs:
        known = [(t, test_costs[number]) for t, number in changes if number in test_costs]
        known = [(t, cost) for t, cost in known if np.isfinite(cost)] or [(0.0, np.nan)]
        test_times = [*(time for time, _ in known), run.elapsed]
        test = [cost for _, cost in known]
        ax.step(test_times, [*test, *test[-1:]], where="post", color=WINNER, label="test")
    for time, number in changes[1:]:
        ax.axvline(time, color="0.85", linewidth=0.8, zorder=0)
        at_the_top = ax.get_xaxis_transform()
        ax.text(time, 0.99, f"#{number}", transform=at_the_top, fontsize=7, color="0.35", va="top")
    ax.margins(y=0.14)
    if min(costs, default=0.0) >= 0:
        ax.set_ylim(bottom=0)
    ax.set_xlim(0, max(run.elapsed, 1e-9))
    ax.set_xlabel("seconds since the start")
    ax.set_ylabel("mean run time (s)" if run.racing else "mean cost")
    ax.legend(frameon=False, fontsize=8, loc="lower left")
    return ax


def plot_schedule(schedule: Schedule, ax: Axes | None = None) -> Axes:
    """Draw how many races every round may use, and how many configurations it starts with."""
    rounds = [
        (epoch.index, number, round_)
        for epoch in schedule.epochs
        for number, round_ in enumerate(epoch.rounds, start=1)
    ]
    ax = _axes(ax, width=max(5.0, 0.5 * len(rounds) + 1.5), height=3.4)
    for position, (epoch, _, round_) in enumerate(rounds):
        colour = EPOCHS[(epoch - 1) % len(EPOCHS)]
        ax.bar(position, round_.n_races, color=colour, width=0.8)
        ax.annotate(
            f"{round_.n_configs}",
            (position, round_.n_races),
            xytext=(0, 2),
            textcoords="offset points",
            ha="center",
            fontsize=8,
        )
    ax.set_xticks(range(len(rounds)), [f"{epoch}.{number}" for epoch, number, _ in rounds])
    ax.tick_params(axis="x", labelsize=8, rotation=90 if len(rounds) > 18 else 0)
    ax.set_xlabel("epoch.round (above the bars: configurations at its start)")
    ax.set_ylabel("races at most")
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
        *(
            Line2D([], [], color=EPOCHS[i % len(EPOCHS)], label=f"α = {alpha:g}")
            for i, alpha in enumerate(alphas)
        ),
        *(
            Line2D([], [], color="0.3", linestyle=styles[j % len(styles)], label=f"δ = {delta:g}")
            for j, delta in enumerate(deltas)
        ),
    ]
    ax.legend(handles=handles, frameon=False, fontsize=8, ncols=2)
    return ax


def _axes(ax: Axes | None, *, width: float, height: float) -> Axes:
    if ax is None:
        _, ax = plt.subplots(figsize=(min(width, 16.0), height), layout="constrained")
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def _columns(epochs: Sequence[PlayedEpoch]) -> list[_Column]:
    columns: list[_Column] = []
    for epoch in epochs:
        for round_ in epoch.rounds:
            before = columns[-1].heights if columns else {}
            columns.append(_Column(epoch, round_, dict(_heights(round_, before))))
    return columns


def _heights(round_: PlayedRound, before: Mapping[int, float]) -> Iterator[tuple[int, float]]:
    """Stack the groups around zero, each near where its members come from."""
    blocks = [list(group.members) for group in round_.groups]
    blocks += [[number] for number in round_.carried]
    for block in blocks:
        block.sort(key=lambda number: before.get(number, 0.0))
    blocks.sort(key=lambda block: float(np.mean([before.get(n, 0.0) for n in block])))
    gap = 0.7
    total = sum(map(len, blocks)) + gap * (len(blocks) - 1)
    height = -(total - 1) / 2
    for block in blocks:
        for number in block:
            yield number, height
            height += 1
        height += gap


def _connect(ax: Axes, left: int, before: _Column, after: _Column, winner: int | None) -> None:
    for number in before.heights.keys() & after.heights.keys():
        is_winner = number == winner
        ax.plot(
            [left, left + 1],
            [before.heights[number], after.heights[number]],
            color=WINNER if is_winner else DROPPED,
            linewidth=2.4 if is_winner else 0.9,
            zorder=2 if is_winner else 1,
            solid_capstyle="round",
        )


def _draw_column(ax: Axes, position: int, column: _Column, winner: int | None) -> None:
    for group in column.round.groups:
        heights = sorted(column.heights[number] for number in group.members)
        ax.plot([position] * 2, [heights[0], heights[-1]], color="0.88", linewidth=7, zorder=1.5)
        for number in group.members:
            survives = None if group.survivors is None else number in group.survivors
            colour = OPEN if survives is None else SURVIVOR if survives else DROPPED
            ax.plot(
                position,
                column.heights[number],
                "o" if survives is not False else "X",
                color=WINNER if number == winner else colour,
                markersize=5.5 if number == winner else 4.5,
                markeredgecolor="white",
                markeredgewidth=0.4,
                zorder=3,
            )
    for number in column.round.carried:
        colour = WINNER if number == winner else SURVIVOR
        ax.plot(
            position,
            column.heights[number],
            "o",
            markerfacecolor="white",
            markeredgecolor=colour,
            markersize=4.5,
            zorder=3,
        )


def _label_columns(ax: Axes, columns: Sequence[_Column]) -> None:
    """Say below how many races a round took, and above whose epoch it is."""
    top = max((max(column.heights.values()) for column in columns), default=0.0) + 1.2
    ax.set_ylim(-top, top)
    above = ax.get_xaxis_transform()  # names stand at the same height in every picture
    ax.set_xlim(-0.7, len(columns) - 0.3)
    ax.set_yticks([])
    ax.spines["left"].set_visible(False)
    n_races = [sum(group.n_races for group in column.round.groups) for column in columns]
    ax.set_xticks(range(len(columns)), [str(n) for n in n_races])
    ax.tick_params(axis="x", length=0, labelsize=7, rotation=90 if len(columns) > 30 else 0)
    ax.set_xlabel("rounds, from left to right; below each: races that decided it")
    n_passes = max((column.epoch.pass_number for column in columns), default=1)
    start = 0
    for position, column in enumerate(columns):
        last = position + 1 == len(columns) or columns[position + 1].epoch is not column.epoch
        if not last:
            continue
        if column.epoch.index % 2:
            ax.axvspan(start - 0.5, position + 0.5, color="0.96", zorder=0, linewidth=0)
        wide = position - start > 0
        name = column.epoch.name if wide or column.epoch.is_playoff else f"{column.epoch.index}"
        ax.text(
            (start + position) / 2, 1.01, name, ha="center", fontsize=7, color="0.3",
            transform=above,
        )  # fmt: skip
        if column.epoch.index == 1 and n_passes > 1:
            ax.axvline(start - 0.5, color="0.6", linewidth=0.8, linestyle=":", zorder=0)
            text = f"pass {column.epoch.pass_number}"
            ax.text(start - 0.5, 1.06, text, fontsize=8, weight="bold", transform=above)
        start = position + 1


def _legend(ax: Axes, run: Run, winner: int | None) -> None:
    def dot(marker: str, colour: str, label: str, face: str | None = None) -> Line2D:
        return Line2D(
            [], [], marker=marker, linestyle="", color=colour, label=label, markersize=5,
            markerfacecolor=face or colour,
        )  # fmt: skip

    handles = [
        dot("o", SURVIVOR, "goes on"),
        dot("X", DROPPED, "is out"),
        dot("o", SURVIVOR, "found no group", "white"),
    ]
    if run.races and any(
        g.survivors is None for e in played_epochs(run) for r in e.rounds for g in r.groups
    ):
        handles.append(dot("o", OPEN, "undecided"))
    if winner is not None:
        name = f"the winner, configuration {winner}"
        handles.insert(0, Line2D([], [], color=WINNER, linewidth=2.4, marker="o", label=name))
    ax.legend(
        handles=handles, loc="upper center", bbox_to_anchor=(0.5, -0.13), ncols=5, frameon=False,
        fontsize=8,
    )  # fmt: skip


def _training_costs(
    run: Run, changes: Sequence[tuple[float, int]]
) -> tuple[list[float], list[float]]:
    """Return the incumbent's mean cost so far at every race that changed it, or who it is."""
    sums: dict[int, tuple[float, int]] = {}
    pending = list(changes)
    incumbent = pending.pop(0)[1]
    times, costs = [], []
    for race in run.races:
        for trial in race.trials:
            if np.isfinite(trial.cost):
                total, n = sums.get(trial.configuration, (0.0, 0))
                sums[trial.configuration] = total + trial.cost, n + 1
        while pending and pending[0][0] <= race.walltime:
            incumbent = pending.pop(0)[1]
        if incumbent in sums:
            times.append(race.walltime)
            total, n = sums[incumbent]
            costs.append(total / n)
    return times, costs
