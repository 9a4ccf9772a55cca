"""One HTML page about a run: how much better than the default it is, and how it got there.

Everything is in the page itself, charts too; it needs no network and runs no scripts.
"""

from __future__ import annotations

import functools
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import jinja2
from markupsafe import Markup

from acband_configspace._version import __version__
from acband_configspace.core.ends import End
from acband_configspace.core.passes import SchedulePlan
from acband_configspace.runlog.charts import (
    KINDS,
    BarChart,
    CostChart,
    DotChart,
    cost_chart,
    elimination_chart,
    races_chart,
    shown_epochs,
)
from acband_configspace.runlog.estimates import Lead
from acband_configspace.runlog.played import PlayedEpoch, PlayedRound
from acband_configspace.runlog.replay import FATES, Run, Trial
from acband_configspace.runlog.verdict import VERDICT, Verdict
from acband_configspace.runlog.words import counted, number, seconds

#: More configurations than this make the page slow to open; the CSV file has them all.
MOST_CONFIGURATIONS = 500
#: Of more incumbents, passes or rounds than this the last ones are listed.
MOST_ROWS = 300
#: Of more plans than this the last one is named.
MOST_PLANS = 8

_MEANING = {
    "won": "finished first",
    End.FINISHED.value: "came to its end, but did not win",
    End.LOST.value: "stopped because another had won, or because it was too slow",
    End.CUTOFF.value: "reached the cutoff",
    End.MEMORY.value: "reached the memory limit",
    End.CRASHED.value: "crashed",
    End.CANCELLED.value: "the whole race was stopped",
}


#: Columns of texts, and of such as may need several lines. All others are of numbers.
TEXTS = ("", "end", "hyperparameter", "part", "setting")
LONG_TEXTS = ("differs from the default in", "meaning", "value", "values")


@dataclass(frozen=True)
class Table:
    """A table; rows may be marked."""

    columns: Sequence[str]
    rows: Sequence[Sequence[object]]
    marked: frozenset[int] = frozenset()

    @property
    def classes(self) -> list[str]:
        """The class of each column in the page's style."""
        by_title = {**dict.fromkeys(TEXTS, ""), **dict.fromkeys(LONG_TEXTS, "long")}
        return [by_title.get(title, "n") for title in self.columns]


@dataclass(frozen=True)
class Section:
    """A part of the page: a title, and optionally a sentence, a chart and a table."""

    title: str
    text: str = ""
    chart: CostChart | DotChart | BarChart | None = None
    legend: Sequence[tuple[str, str]] = ()
    """Kinds of marks (classes of the page's style) and what they mean."""
    table: Table | None = None
    errors: Sequence[str] = ()
    """Those that were most frequent."""
    folded: bool = False
    """Whether the table is shown on demand."""

    @property
    def chart_kind(self) -> str:
        """By which the page chooses how to draw it."""
        return type(self.chart).__name__


def html_report(run: Run | str | Path | object) -> str:
    """Return the page about a run, finished or not.

    Parameters
    ----------
    run : Run | str | Path | facade
        The run, its directory, or its facade.
    """
    run = Run.of(run)
    note = run.recorded.note(VERDICT)
    tested = None if note is None else Verdict.of_note(note.values)
    page = _environment().get_template("report.html").render(
        title=f"AC-Band run {run.directory.parent.name}",
        directory=run.directory,
        state=_state(run),
        verdict=run.verdict,
        tested=tested,
        figures=None if tested is None else Table(tested.columns, tested.rows),
        tiles=_tiles(run),
        sections=[*_sections(run)],
        footer=f"acband-configspace {__version__}, {time.strftime('%Y-%m-%d %H:%M')}",
    )  # fmt: skip
    return page.encode("utf-8", "backslashreplace").decode()  # names of files may be no UTF-8


@functools.cache
def _environment() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.PackageLoader("acband_configspace.runlog"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )


def _state(run: Run) -> str:
    if run.finished:
        return f"Finished: {run.finished}."
    if run.races:
        return "Running or interrupted: this is how far it has come. Start it again to continue."
    return "No race is over yet."


def _tiles(run: Run) -> list[tuple[str, str]]:
    return [
        (run.label(run.incumbent), "incumbent"),
        (f"{len(run.races):,}", "races"),
        (f"{len(run.trials):,}", "trials"),
        (f"{len(run.configurations):,}", "configurations"),
        (seconds(run.elapsed), "elapsed"),
        (seconds(run.cpu_time), "CPU time"),
    ]


def _sections(run: Run) -> Iterable[Section]:
    if run.epochs:
        yield _cost(run)
        yield _incumbent(run)
        yield _leads(run)
        yield _elimination(run)
        yield _epochs(run)
        yield _rounds(run)
    if run.races:
        yield _ends(run)
        yield _configurations(run)
    yield _settings(run)


# --- the incumbent ----------------------------------------------------------------------------


def _cost(run: Run) -> Section:
    return Section(
        "The incumbent's cost over time",
        "Estimated from all that is known today, on the instances that each incumbent and the "
        "present one have met. These are training instances: on others the gain may be smaller.",
        chart=cost_chart(run),
        legend=[
            ("line", "the best incumbent so far"),
            ("band", "± 2 standard errors"),
            ("default-line", "the default"),
        ],
    )


def _incumbent(run: Run) -> Section:
    incumbent = run.incumbent
    values = {} if incumbent is None else run.values(incumbent)
    default = run.default
    names = sorted({*values, *default})
    changed = [i for i, name in enumerate(names) if values.get(name) != default.get(name)]
    if incumbent is None:
        text = "Nobody has finished a race yet."
    elif not changed:
        text = "The incumbent is the default configuration itself."
    else:
        text = (
            f"The incumbent is configuration {run.label(incumbent)}, which differs from the "
            f"default in {counted(len(changed), 'value')}."
        )
    columns = ["hyperparameter", "default", f"incumbent {run.label(incumbent)}"]
    rows = [[name, _value(default.get(name)), _value(values.get(name))] for name in names]
    marked = frozenset(changed) if values else frozenset()
    return Section("The incumbent", text, table=Table(columns, rows, marked))


def _leads(run: Run) -> Section:
    columns = [
        "configuration", "led from", "trials", "estimated mean", "± 2 errors", "by instances",
        "differs from the default in",
    ]  # fmt: skip
    rows = [_lead_row(run, lead) for lead in run.leads[-MOST_ROWS:]]
    return Section("Who has led", _left_out(len(run.leads)), table=Table(columns, rows))


def _left_out(n_rows: int) -> str:
    return f"The first {n_rows - MOST_ROWS:,} are not listed." if n_rows > MOST_ROWS else ""


def _lead_row(run: Run, lead: Lead) -> list[object]:
    estimate = lead.estimate
    costs = ["–", "–", "–"]
    if estimate is not None:
        bound = "≥ " if estimate.at_least else ""
        error = "–" if estimate.error is None else number(2 * estimate.error)
        costs = [f"{bound}{number(estimate.mean)}", error, f"{estimate.n_common:,}"]
    return [
        run.label(lead.configuration),
        seconds(lead.since),
        f"{lead.n_trials:,}",
        *costs,
        _difference(run, lead.configuration),
    ]


def _difference(run: Run, configuration: int | None) -> str:
    if configuration is None:
        return ""
    values, default = run.values(configuration), run.default
    changed = [f"{n}={_value(v)}" for n, v in sorted(values.items()) if v != default.get(n)]
    return ", ".join(changed) if changed else "nothing: it is the default"


# --- rounds -----------------------------------------------------------------------------------


def _elimination(run: Run) -> Section:
    chart = elimination_chart(run)
    n_left_out = len(run.epochs) - len(shown_epochs(run))
    left_out = f" The first {n_left_out:,} passes are not shown." if n_left_out else ""
    if isinstance(chart, DotChart):
        legend = [(kind, KINDS[kind]) for kind in chart.kinds]
        text = f"A column for each round; dots that touch are a group.{left_out}"
    else:
        legend = [("outer", "in the round"), ("inner", "of these, went on")]
        legend += [("open-bar", "undecided")] if any(bar.is_open for bar in chart.bars) else []
        legend += [("incumbent", "today's incumbent was among them")]
        text = f"A bar for each round.{left_out}"
    return Section("Elimination", text, chart=chart, legend=legend)


def _epochs(run: Run) -> Section:
    memory = run.header.settings.memory
    title = "Champions of the passes" if memory else "Winners of the epochs"
    columns = [
        "pass", "part", "configurations", "champion" if memory else "winner",
        "wins in its last round", "at", "differs from the default in",
    ]  # fmt: skip
    rows: list[list[object]] = []
    before: int | None = None
    for epoch in run.epochs:
        same = epoch.winner is not None and epoch.winner == before
        rows.append(
            [
                epoch.pass_number,
                epoch.name,
                f"{len({n for round_ in epoch.rounds for n in round_.in_play}):,}",
                "open" if epoch.winner is None else run.label(epoch.winner),
                _last_score(epoch),
                seconds(epoch.ended),
                "as before" if same else _difference(run, epoch.winner),
            ]
        )
        before = epoch.winner
    return Section(title, _left_out(len(rows)), table=Table(columns, rows[-MOST_ROWS:]))


def _last_score(epoch: PlayedEpoch) -> str:
    for round_ in reversed(epoch.rounds):
        for group in round_.groups:
            if epoch.winner in group.members and len(group.members) > 1:
                won = group.wins[group.members.index(epoch.winner)]
                return f"{won:,} of {group.n_races:,}"
    return "–"


def _rounds(run: Run) -> Section:
    columns = [
        "pass", "part", "round", "configurations", "groups", "went on", "races at most",
        "races run", "trials at most", "trials run", "CPU time",
    ]  # fmt: skip
    spent: dict[tuple[int, ...], float] = {}
    for trial in run.trials:
        place = trial.race.id[:3]
        spent[place] = spent.get(place, 0.0) + trial.cpu_time
    rows = [_round_row(epoch, round_, spent) for epoch in run.epochs for round_ in epoch.rounds]
    return Section(
        "Plan and what happened",
        " ".join(filter(None, (_planned(run), _left_out(len(rows))))),
        chart=races_chart(run),
        legend=[("outer", "races at most"), ("inner", "races run")],
        table=Table(columns, rows[-MOST_ROWS:]),
    )


def _planned(run: Run) -> str:
    """Return what the last pass may use, or all of them if they are few."""
    texts = [
        f"pass {i}: {counted(plan.schedule.n_races, 'race')}, "
        f"{counted(plan.schedule.n_trials, 'trial')}"
        if isinstance(plan, SchedulePlan)
        else f"pass {i}: {counted(plan.n_trials, 'trial')}"
        for i, plan in enumerate(run.plans, start=1)
    ]
    shown = texts if len(texts) <= MOST_PLANS else texts[-1:]
    return f"Planned, at most: {'; '.join(shown)}." if shown else ""


def _round_row(
    epoch: PlayedEpoch, round_: PlayedRound, spent: Mapping[tuple[int, ...], float]
) -> list[object]:
    sizes = {len(group.members) for group in round_.groups}
    size = f"{min(sizes)}" if len(sizes) == 1 else f"{min(sizes)}–{max(sizes)}"
    return [
        round_.pass_number,
        epoch.name,
        round_.number,
        f"{len(round_.in_play):,}",
        f"{len(round_.groups):,} of {size}",
        "open" if round_.is_open else f"{len(round_.remaining):,}",
        f"{round_.n_planned_races:,}",
        f"{len(round_.races):,}",
        f"{round_.n_planned_trials:,}",
        f"{sum(len(race.trials) for race in round_.races):,}",
        seconds(spent[round_.pass_number, round_.epoch, round_.number]),
    ]


# --- trials and configurations ----------------------------------------------------------------


def _ends(run: Run) -> Section:
    counts: Counter[str] = Counter()
    times = dict.fromkeys(FATES, 0.0)
    errors: Counter[str] = Counter()
    for trial in run.trials:
        counts[trial.fate] += 1
        times[trial.fate] += trial.cpu_time
        if trial.record.end is End.CRASHED and (error := trial.record.info.get("error")):
            errors[(str(error).splitlines() or [""])[0]] += 1
    total = max(sum(times.values()), 1e-12)
    rows = [
        [fate, _MEANING[fate], f"{counts[fate]:,}", seconds(time), f"{time / total:.0%}",
         _bar(fate, time / total)]
        for fate, time in times.items()
        if counts[fate] or fate in ("won", "finished")
    ]  # fmt: skip
    return Section(
        "Trials and CPU time by their end",
        table=Table(["end", "meaning", "trials", "CPU time", "share", ""], rows),
        errors=[f"{error} ({n:,} ×)" for error, n in errors.most_common(5)],
    )


def _bar(fate: str, share: float) -> Markup:
    return Markup('<span class="bar {}" style="width:{:.1f}%"></span>').format(fate, 100 * share)


def _configurations(run: Run) -> Section:
    survived = Counter(
        n for round_ in run.rounds for group in round_.groups for n in group.survivors or ()
    )
    trials: dict[int, list[Trial]] = {}
    for trial in run.trials:
        trials.setdefault(trial.configuration, []).append(trial)
    fates = {n: Counter(trial.fate for trial in own) for n, own in trials.items()}
    order = sorted(trials, key=lambda n: (-survived[n], -fates[n]["won"], n))
    columns = [
        "configuration", "rounds survived", "races", "won", "share", "cutoffs", "failures",
        "CPU time", "mean cost when finished", "values",
    ]  # fmt: skip
    shown = order[:MOST_CONFIGURATIONS]
    rows = [_configuration(run, n, trials[n], fates[n], survived[n]) for n in shown]
    leader = frozenset(i for i, n in enumerate(shown) if n == run.incumbent)
    rest = len(order) - len(shown)
    text = f"{rest:,} more are in the CSV file (--csv)." if rest else ""
    return Section("Configurations", text, table=Table(columns, rows, leader))


def _configuration(
    run: Run, n: int, trials: Sequence[Trial], fates: Counter[str], n_rounds: int
) -> list[object]:
    listing = ", ".join(f"{name}={_value(v)}" for name, v in sorted(run.values(n).items()))
    costs = [trial.record.cost for trial in trials if trial.record.end is End.FINISHED]
    cpu_time = sum(trial.cpu_time for trial in trials)
    return [
        run.label(n), f"{n_rounds:,}", f"{len(trials):,}", f"{fates['won']:,}",
        f"{fates['won'] / len(trials):.0%}", f"{fates['cutoff']:,}",
        f"{fates['crashed'] + fates['memory']:,}", seconds(cpu_time),
        number(sum(costs) / len(costs)) if costs else "–",
        Markup("<details><summary>show</summary>{}</details>").format(listing),
    ]  # fmt: skip


def _settings(run: Run) -> Section:
    skipped = ("configspace", "instances", "given")
    settings = run.header.settings
    values = {
        **{name: value for name, value in run.identity.items() if name not in skipped},
        **settings.settings(),
        "k": settings.racers(racing=run.racing),
        "memory": settings.memory,
        "racing": run.racing,
        "seed": run.header.seed,
    }
    if run.header.own_statistic is not None:
        values["statistic"] = run.header.own_statistic
    names = run.header.instances
    values["instances"] = "none: seeds instead" if names is None else len(names)
    if run.recorded.n_trials is not None:
        values["n_trials"] = run.recorded.n_trials
    rows = [[name, _value(value)] for name, value in sorted(values.items())]
    return Section("Settings", table=Table(["setting", "value"], rows), folded=True)


def _value(value: object) -> str:
    if value is None:
        return "–"
    return f"{value:.6g}" if isinstance(value, float) else str(value)
