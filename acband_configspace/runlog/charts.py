"""The geometry of the report's charts: where things are, in per cent of the drawing area.

Texts are placed by the page, in its own size, and lines keep their width: so a picture is as wide
as the page and can be read on a telephone.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from acband_configspace.runlog.estimates import Estimate
from acband_configspace.runlog.played import PlayedEpoch, PlayedGroup, PlayedRound
from acband_configspace.runlog.replay import Run
from acband_configspace.runlog.words import bounded, counted, number, seconds

#: More dots than this in a column cannot be told apart: then there are bars.
MOST_DOTS = 64
#: Of a run with more rounds than this the last ones are shown: columns would be too narrow.
MOST_COLUMNS = 120
#: About how many names there may be below the columns.
MOST_NAMES = 12
#: From this ratio of the largest value to the smallest on, an axis is logarithmic.
LOG_RATIO = 12.0


@dataclass(frozen=True, slots=True)
class Tick:
    """A mark on an axis."""

    at: float
    """Its place, in per cent of the axis."""
    label: str


@dataclass(frozen=True, slots=True)
class Scale:
    """Turns values into places."""

    low: float
    high: float
    log: bool = False

    def __call__(self, value: float) -> float:
        """Return the place of a value, in per cent from the low end."""
        low, high = self.low, self.high
        if self.log:
            low, high, value = map(math.log, (low, high, max(value, low)))
        share = (value - low) / (high - low) if high > low else 0.5
        return round(100 * min(1.0, max(0.0, share)), 3)

    def ticks(self, *, most: int = 6, whole: bool = False) -> list[float]:
        """Return round values to mark, about ``most`` of them at most."""
        low, high, span = self.low, self.high, self.high - self.low
        if self.log:
            exponents = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
            sets = ((1, 2, 5), (1, 3), (1,))
            return self.few_of([[f * 10.0**e for e in exponents for f in fs] for fs in sets], most)
        if span <= 0:
            return [low]
        step = 10.0 ** math.floor(math.log10(span / most))
        step *= next(factor for factor in (1, 2, 5, 10, 20) if span / (step * factor) <= most)
        step = max(1.0, step) if whole else step
        first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
        return [n * step for n in range(first, last + 1)]

    def few_of(self, sets: Iterable[Sequence[float]], most: int) -> list[float]:
        """Return what lies on the axis of the first set with at most ``most`` of it."""
        for values in sets:
            ticks = [value for value in values if self.low <= value <= self.high]
            if len(ticks) <= most:
                return ticks
        return ticks[:: math.ceil(len(ticks) / most)]


# --- the incumbent's cost over time -----------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Point:
    """Somebody who took the lead."""

    x: float
    y: float
    tooltip: str


Legend = Sequence[tuple[str, str]]
"""Kinds of marks (classes of the page's style) and what they mean."""


@dataclass(frozen=True, slots=True)
class CostChart:
    """What the incumbent is estimated to cost, over the time of the run."""

    kind: ClassVar[str] = "costs"
    legend: ClassVar[Legend] = (
        ("line", "the best incumbent so far"),
        ("band", "± 2 standard errors"),
        ("default-line", "the default"),
    )
    x_label: str
    y_label: str
    x_ticks: Sequence[Tick]
    y_ticks: Sequence[Tick]
    line: str
    """An SVG path; its y counts from the top."""
    band: str
    """An SVG path around it: two standard errors."""
    points: Sequence[Point]
    default_at: float | None
    """Where the default's line is, in per cent from the bottom."""
    default_label: str


def cost_chart(run: Run) -> CostChart | None:
    """Return the chart; None if nobody leads yet."""
    steps = [
        (lead, lead.estimate, lead.best)
        for lead in run.leads
        if lead.estimate is not None and lead.best is not None
    ]
    if not steps:
        return None
    default = None if run.comparison is None else run.comparison.default_estimate
    bests = [best for _, _, best in steps]
    lows = [best - 2 * (e.error or 0.0) for _, e, best in steps]
    highs = [best + 2 * (e.error or 0.0) for _, e, best in steps]
    values = bests if default is None else [*bests, default.mean]
    y = _cost_scale(values, lows, highs)
    x = _time_scale([lead.since for lead, _, _ in steps], run.elapsed)
    ends = [*(lead.since for lead, _, _ in steps[1:]), run.elapsed]
    spans = [(x(lead.since), x(end)) for (lead, _, _), end in zip(steps, ends, strict=True)]

    def corners(costs: Sequence[float]) -> list[str]:
        pairs = zip(spans, map(y, costs), strict=True)
        return [f"{at} {100 - height:.3f}" for span, height in pairs for at in span]

    points = [
        Point(
            x(lead.since),
            y(best),
            f"{run.label(lead.configuration)} has led since {seconds(lead.since)}, "
            f"{counted(lead.n_trials, 'trial')}: {_estimated(e)}, "
            f"by {counted(e.n_common, 'common instance')}",
        )
        for lead, e, best in steps
    ]
    objective = "run time (s)" if run.racing else run.header.objective
    return CostChart(
        x_label=f"time since the start{' (log scale)' if x.log else ''}",
        y_label=f"estimated mean {objective}{' (log scale)' if y.log else ''}",
        x_ticks=[Tick(x(value), seconds(value)) for value in _time_ticks(x)],
        y_ticks=[Tick(y(value), number(value)) for value in y.ticks(most=5)],
        line=f"M{'L'.join(corners(bests))}",
        band=f"M{'L'.join([*corners(highs), *reversed(corners(lows))])}Z",
        points=points,
        default_at=None if default is None else y(default.mean),
        default_label="" if default is None else f"default: {_estimated(default)}",
    )


def _estimated(estimate: Estimate) -> str:
    mean, error = bounded(estimate.mean, at_least=estimate.at_least), estimate.error
    return mean if error is None else f"{mean} ± {number(2 * error)}"


def _cost_scale(values: Sequence[float], lows: Sequence[float], highs: Sequence[float]) -> Scale:
    smallest = min(values)
    low, high = min(*values, *lows), max(*values, *highs)
    if smallest > 0:  # a wide band must not squeeze the line
        low, high = max(low, 0.0), min(high, 1.6 * max(values))
    if smallest > 0 and max(values) / smallest > LOG_RATIO:
        return Scale(max(min(lows), smallest / 3) / 1.15, high * 1.15, log=True)
    margin = 0.08 * (high - low) or abs(high) * 0.1 or 1.0
    if smallest >= 0 and low < 0.5 * high:  # close enough to zero to show it
        return Scale(0.0, high + margin)
    return Scale(low - margin, high + margin)


def _time_scale(starts: Sequence[float], elapsed: float) -> Scale:
    first = min(starts)
    if first > 0 and elapsed / first > LOG_RATIO:
        return Scale(first / 1.1, elapsed, log=True)
    return Scale(0.0, max(elapsed, 1e-9))


def _time_ticks(scale: Scale, most: int = 6) -> list[float]:
    """Return durations that are round in the units people use."""
    if not scale.log:
        unit = next(u for u in (86400, 3600, 60, 1) if u == 1 or scale.high >= 2 * u)
        in_units = Scale(scale.low / unit, scale.high / unit)
        return [unit * value for value in in_units.ticks(most=most)]
    return scale.few_of((_ROUND_DURATIONS[::step] for step in (1, 2, 3)), most)


#: From a thousandth of a second to a hundred days.
_ROUND_DURATIONS = (
    *(factor * 10.0**e for e in range(-3, 1) for factor in (1, 2, 5)),
    10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 18000, 36000, 86400, 172800,
    *(86400 * factor for factor in (5, 10, 20, 50, 100)),
)  # fmt: skip


# --- rounds -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Bar:
    """A round: how many were in it, and how many of them went on."""

    left: float
    width: float
    outer: float
    """The height of the whole, in per cent."""
    inner: float
    tooltip: str
    is_open: bool
    has_incumbent: bool = False


@dataclass(frozen=True, slots=True)
class Span:
    """Neighbouring columns with a name: an epoch or a pass."""

    left: float
    width: float
    label: str


@dataclass(frozen=True, slots=True)
class BarChart:
    """A bar for each round, with a part of it."""

    kind: ClassVar[str] = "bars"
    says: ClassVar[str] = "A bar for each round."
    y_label: str
    x_label: str
    y_ticks: Sequence[Tick]
    bars: Sequence[Bar]
    spans: Sequence[Span]
    legend: Legend


#: What dots stand for.
KINDS = {
    "incumbent": "today's incumbent",
    "on": "goes on",
    "out": "is out",
    "waits": "found no group, goes on",
    "open": "undecided",
}


@dataclass(frozen=True, slots=True)
class Dot:
    """A configuration in a round."""

    x: float
    y: float
    kind: str
    """One of :data:`KINDS`."""
    tooltip: str


@dataclass(frozen=True, slots=True)
class Path:
    """The way of a configuration from one round to the next."""

    start: tuple[float, float]
    end: tuple[float, float]
    is_incumbent: bool


@dataclass(frozen=True, slots=True)
class DotChart:
    """Who met whom and who went on: a column for each round."""

    kind: ClassVar[str] = "dots"
    says: ClassVar[str] = "A column for each round; dots that touch are a group."
    x_label: str
    columns: Sequence[tuple[float, PlayedRound]]
    """The place of each round."""
    dots: Sequence[Dot]
    groups: Sequence[tuple[float, float, float]]
    """The place of each group: its column, its top and its bottom."""
    paths: Sequence[Path]
    """The incumbent's last, so that it is on top."""
    spans: Sequence[Span]

    @property
    def kinds(self) -> list[str]:
        """The kinds of dots that occur."""
        found = {dot.kind for dot in self.dots}
        return [kind for kind in KINDS if kind in found]

    @property
    def legend(self) -> Legend:
        """What they mean."""
        return [(kind, KINDS[kind]) for kind in self.kinds]


def elimination_chart(run: Run) -> DotChart | BarChart:
    """Return who went on: dots for a small run, bars for a large one."""
    columns = _columns(run)
    sizes = [len(round_.in_play) for *_, round_ in columns]
    if max(sizes) <= MOST_DOTS:
        return dot_chart(run)
    y = _count_scale(sizes)
    bars = []
    for left, width, round_ in columns:
        n_in, n_on = len(round_.in_play), len(round_.remaining)
        went = "open who goes on" if round_.is_open else f"{n_on:,} went on"
        text = f"{_round_name(run, round_)}: {counted(n_in, 'configuration')}, {went}"
        leads = run.incumbent in round_.in_play
        text += f", among them {run.label(run.incumbent)}" if leads else ""
        inner = 0.0 if round_.is_open or not n_on else y(n_on)
        bars.append(Bar(left, width, y(n_in), inner, text, round_.is_open, leads))
    undecided = [("open-bar", "undecided")] if any(bar.is_open for bar in bars) else []
    legend = [
        ("outer", "in the round"),
        ("inner", "of these, went on"),
        *undecided,
        ("incumbent", "today's incumbent was among them"),
    ]
    return _bar_chart(run, "configurations", y, bars, legend)


def races_chart(run: Run) -> BarChart:
    """Return how many races each round may have taken and how many it took."""
    columns = _columns(run)
    y = _count_scale([round_.n_planned_races for *_, round_ in columns])
    bars = [
        Bar(
            left,
            width,
            y(round_.n_planned_races),
            y(len(round_.races)),
            f"{_round_name(run, round_)}: {len(round_.races):,} of up to "
            f"{counted(round_.n_planned_races, 'race')}",
            is_open=False,
        )
        for left, width, round_ in columns
    ]
    return _bar_chart(run, "races", y, bars, [("outer", "races at most"), ("inner", "races run")])


def _bar_chart(run: Run, what: str, y: Scale, bars: Sequence[Bar], legend: Legend) -> BarChart:
    ticks = [value for value in y.ticks(most=5, whole=True) if value == round(value)]
    return BarChart(
        y_label=f"{what}{' (log scale)' if y.log else ''}",
        x_label=_x_label(run),
        y_ticks=[Tick(y(value), f"{value:,.0f}") for value in ticks],
        bars=bars,
        spans=_spans(run),
        legend=legend,
    )


def _count_scale(values: Sequence[int]) -> Scale:
    largest = max(values)
    if largest > MOST_DOTS and largest / min(values) > LOG_RATIO:
        return Scale(0.5, largest * 1.2, log=True)  # one is above the ground
    return Scale(0.0, largest * 1.05)


def shown_epochs(run: Run) -> list[PlayedEpoch]:
    """Return the last epochs, as many as there is room for."""
    epochs: list[PlayedEpoch] = []
    n_rounds = 0
    for epoch in reversed(run.epochs):
        n_rounds += len(epoch.rounds)
        if epochs and n_rounds > MOST_COLUMNS:
            break
        epochs.append(epoch)
    return epochs[::-1]


def _columns(run: Run) -> list[tuple[float, float, PlayedRound]]:
    """Return the place of each round; there is a gap after each epoch."""
    epochs = shown_epochs(run)
    total = sum(len(epoch.rounds) for epoch in epochs) + 0.5 * (len(epochs) - 1)
    columns, left = [], 0.0
    for epoch in epochs:
        for round_ in epoch.rounds:
            columns.append((round(100 * left / total, 3), round(100 / total, 3), round_))
            left += 1
        left += 0.5
    return columns


def _spans(run: Run) -> list[Span]:
    columns = iter(_columns(run))
    epochs = shown_epochs(run)
    step = math.ceil(len(epochs) / MOST_NAMES)
    spans = []
    for number_, epoch in enumerate(epochs):
        own = list(itertools.islice(columns, len(epoch.rounds)))
        left, right = own[0][0], own[-1][0] + own[-1][1]
        label = "" if number_ % step else _short_name(run, epoch)
        spans.append(Span(left, round(right - left, 3), label))
    return spans


def _short_name(run: Run, epoch: PlayedEpoch) -> str:
    if epoch.is_playoff:
        return "playoff"
    if run.header.settings.memory:
        return f"{epoch.pass_number}"
    return f"{epoch.index}" if len(run.plans) == 1 else f"{epoch.pass_number}.{epoch.index}"


def _x_label(run: Run) -> str:
    parts = "passes" if run.header.settings.memory else "epochs"
    return f"{parts}, and within each its rounds"


def _round_name(run: Run, round_: PlayedRound) -> str:
    parts = [f"pass {round_.pass_number}"] if len(run.plans) > 1 else []
    if not run.header.settings.memory:
        parts.append("playoff" if round_.is_playoff else f"epoch {round_.epoch}")
    return ", ".join([*parts, f"round {round_.number}"])


# --- dots -------------------------------------------------------------------------------------


def dot_chart(run: Run) -> DotChart:
    """Return who met whom and who went on, however many they are."""
    columns = [(left + width / 2, round_) for left, width, round_ in _columns(run)]
    heights: list[dict[int, float]] = []
    for _, round_ in columns:
        heights.append(dict(_heights(round_, heights[-1] if heights else {})))
    top = max((max(column.values()) for column in heights), default=0.0) + 0.7
    places = [
        {n: (x, round(50 - 50 * height / top, 3)) for n, height in column.items()}
        for (x, _), column in zip(columns, heights, strict=True)
    ]
    dots: list[Dot] = []
    groups: list[tuple[float, float, float]] = []
    for place, (x, round_) in zip(places, columns, strict=True):
        name = _round_name(run, round_)
        for group in round_.groups:
            ys = [place[n][1] for n in group.members]
            groups.append((x, min(ys), max(ys)))
            dots += [_dot(run, name, group, n, *place[n]) for n in group.members]
        dots += [
            Dot(*place[n], "waits", f"{name}: {run.label(n)} found no group and goes on")
            for n in round_.carried
        ]
    paths = [
        Path(before[n], after[n], n == run.incumbent)
        for before, after in itertools.pairwise(places)
        for n in before
        if n in after
    ]
    paths.sort(key=lambda path: path.is_incumbent)
    return DotChart(_x_label(run), columns, dots, groups, paths, _spans(run))


def _dot(run: Run, name: str, group: PlayedGroup, n: int, x: float, y: float) -> Dot:
    won = group.wins[group.members.index(n)]
    if group.survivors is None:
        kind, what = "open", "not decided yet"
    elif n in group.survivors:
        kind, what = "on", "goes on"
    else:
        kind, what = "out", "is out"
    kind = "incumbent" if n == run.incumbent and kind != "out" else kind
    if group.n_races:
        record = f"won {won} of {counted(group.n_races, 'race')}"
    else:
        record = "ran alone" if group.has_raced else "has not raced yet"
    return Dot(x, y, kind, f"{name}: {run.label(n)} {record}, {what}")


def _heights(round_: PlayedRound, before: Mapping[int, float]) -> Iterator[tuple[int, float]]:
    """Stack the groups of a round around zero, each near where its members come from."""
    blocks = [list(group.members) for group in round_.groups]
    blocks += [[number] for number in round_.carried]
    for block in blocks:
        block.sort(key=lambda number: before.get(number, 0.0))
    blocks.sort(key=lambda block: sum(before.get(n, 0.0) for n in block) / len(block))
    gap = 0.7
    total = sum(map(len, blocks)) + gap * (len(blocks) - 1)
    height = -(total - 1) / 2
    for block in blocks:
        for member in block:
            yield member, height
            height += 1
        height += gap
