"""One HTML page about a run: plan and what happened, pictures, winners, trials, configurations.

All is in the page itself; it opens without a network. Needs the extra ``plot``.
"""

from __future__ import annotations

import html
import io
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from acband_configspace._version import __version__
from acband_configspace.runlog.bracket import PlayedEpoch, incumbents, played_epochs
from acband_configspace.runlog.plotting import plot_elimination, plot_incumbent, plot_schedule
from acband_configspace.runlog.run import CAUSES, Run, Trial
from acband_configspace.runlog.style import STYLE

#: More configurations than this make the page slow to open; the CSV file has them all.
MOST_CONFIGURATIONS = 500

_MEANING = {
    "won": "finished first",
    "finished": "came to its end, but not alone at the top",
    "lost": "stopped, since another one had won",
    "cutoff": "met the cutoff",
    "memory": "met the memory limit",
    "crash": "crashed",
}


@dataclass(frozen=True)
class _Record:
    """How a configuration fared."""

    number: int
    causes: Counter[str]
    cpu_time: float
    mean_cost: float | None
    n_rounds_won: int


def html_report(run: Run) -> str:
    """Return the page."""
    epochs = played_epochs(run)
    incumbent = incumbents(run)[-1][1]
    sections = [_head(run, incumbent)]
    if run.races:
        sections += [
            _section("Elimination", _picture(run, plot_elimination)),
            _section("The incumbent", _incumbent(run, incumbent)),
            _section("Its cost over time", _picture(run, plot_incumbent)),
            _section("Winners of the epochs", _winners(run, epochs)),
        ]
    sections.append(_section("Plan and what happened", _plan(run, epochs)))
    if run.races:
        sections += [
            _section("Trials and CPU time by their end", _causes(run)),
            _section("Configurations", _configurations(run, epochs)),
        ]
    sections.append(_section("Settings", _settings(run)))
    title = f"AC-Band run {run.directory.parent.name}"
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{html.escape(title)}</title><style>{STYLE}</style></head>\n"
        f"<body><main>{''.join(sections)}</main>"
        f"<footer>acband-configspace {__version__}, {time.strftime('%Y-%m-%d %H:%M')}</footer>"
        "</body></html>\n"
    )


def _head(run: Run, incumbent: int) -> str:
    if run.finished:
        state = f"Finished: {run.finished}."
    elif run.races:
        state = "Running or interrupted; this is how far it is. Start it again and it goes on."
    else:
        state = "No race is over yet."
    n_races = len(run.races)
    planned = sum(schedule.n_races for schedule in run.schedules)
    tiles = {
        "incumbent": f"#{incumbent}",
        "races": f"{n_races:,}",
        "races planned at most": f"{planned:,}",
        "trials": f"{len(run.trials):,}",
        "configurations": f"{len(run.configurations):,}",
        "elapsed": f"{run.elapsed:,.0f} s",
        "CPU time": f"{run.cpu_time:,.0f} s",
    }
    boxes = "".join(f"<div><b>{value}</b>{name}</div>" for name, value in tiles.items())
    directory = html.escape(str(run.directory))
    return (
        f"<h1>AC-Band run</h1><p class=dim>{directory}</p><p>{html.escape(state)}</p>"
        f"<div class=tiles>{boxes}</div>"
    )


def _incumbent(run: Run, incumbent: int) -> str:
    default = run.default
    # The first one may not have raced yet: groups are formed at random.
    unraced = default if run.identity.get("first") == "default" and incumbent == 0 else {}
    values = run.configurations.get(incumbent, unraced)
    rows, classes = [], []
    for name in sorted({*values, *default}):
        own, standard = values.get(name), default.get(name)
        rows.append([name, _value(standard), _value(own)])
        classes.append("changed" if name in values and own != standard else "")
    what = "the default configuration itself" if values and not any(classes) else ""
    table = _table(["hyperparameter", "default", f"incumbent #{incumbent}"], rows, classes)
    n_changed = sum(map(bool, classes))
    note = (
        what or f"configuration {incumbent}, which differs from the default in {n_changed} values"
    )
    return f"<p>The incumbent is {note}.</p>{table}"


def _winners(run: Run, epochs: Sequence[PlayedEpoch]) -> str:
    rows = []
    before: int | None = None
    for epoch in epochs:
        last = epoch.rounds[-1].groups[0]
        if epoch.winner is None:
            name, score = "open", ""
        else:
            name = f"#{epoch.winner}"
            won = dict(zip(last.members, last.wins, strict=True)).get(epoch.winner, 0)
            score = f"{won} of {last.n_races}"
        newcomers = len({n for round_ in epoch.rounds for n in round_.in_play})
        rows.append(
            [
                epoch.pass_number,
                epoch.name,
                newcomers,
                name,
                score,
                f"{epoch.ended:.1f} s",
                _difference(run, epoch.winner)
                if before != epoch.winner or before is None
                else "as before",
            ]
        )
        before = epoch.winner
    head = ["pass", "epoch", "configurations", "winner", "wins in its last round", "at", "changes"]
    return _table(head, rows)


def _difference(run: Run, number: int | None) -> str:
    if number is None:
        return ""
    values, default = run.configurations[number], run.default
    changed = [f"{n}={_value(v)}" for n, v in sorted(values.items()) if v != default.get(n)]
    return ", ".join(changed) if changed else "the default"


def _plan(run: Run, epochs: Sequence[PlayedEpoch]) -> str:
    played = {
        (epoch.pass_number, epoch.index, round_.number): round_
        for epoch in epochs
        for round_ in epoch.rounds
    }
    head = [
        "pass", "epoch", "round", "configurations", "groups", "races planned", "races run",
        "trials planned", "trials run", "CPU time",
    ]  # fmt: skip
    rows = []
    for number, schedule in enumerate(run.schedules, start=1):
        for epoch in schedule.epochs:
            for index, plan in enumerate(epoch.rounds, start=1):
                done = played.pop((number, epoch.index, index), None)
                counts = _spent(done.races if done else ())
                groups = f"{plan.n_groups} of {plan.group_size}"
                rows.append(
                    [number, epoch.index, index, plan.n_configs, groups, plan.n_races, counts[0],
                     plan.n_trials, counts[1], f"{counts[2]:.1f} s"]
                )  # fmt: skip
    for (number, epoch_index, index), done in played.items():
        counts = _spent(done.races)
        groups = f"{len(done.groups)} of {len(done.groups[0].members)}"
        rows.append(
            [number, epoch_index, index, len(done.in_play), groups, "as saved", counts[0], "",
             counts[1], f"{counts[2]:.1f} s"]
        )  # fmt: skip
    pictures = "".join(
        _picture(schedule, plot_schedule) for schedule in run.schedules[-1:] if schedule.epochs
    )
    return _table(head, rows) + "<h3>The plan of the last pass</h3>" + pictures


def _spent(races: Sequence[Any]) -> tuple[int, int, float]:
    trials = [trial for race in races for trial in race.trials if not trial.reused]
    return len(races), len(trials), sum(trial.cpu_time for trial in trials)


def _causes(run: Run) -> str:
    counts: Counter[str] = Counter()
    seconds: Counter[str] = Counter()
    for _, trial in run.trials:
        counts[trial.cause] += 1
        if not trial.reused:
            seconds[trial.cause] += trial.cpu_time  # type: ignore[assignment]  # Counters add floats
    total = max(sum(seconds.values()), 1e-12)
    rows = []
    for cause in [*CAUSES, *sorted(set(counts) - set(CAUSES))]:
        share = seconds[cause] / total
        bar = f'<span class="bar {html.escape(cause)}" style="width:{100 * share:.1f}%"></span>'
        rows.append(
            [cause, _MEANING.get(cause, ""), f"{counts[cause]:,}", f"{seconds[cause]:,.1f} s",
             f"{share:.0%}", _Raw(bar)]
        )  # fmt: skip
    errors = Counter(
        t.error.splitlines()[0] for _, t in run.trials if t.cause == "crash" and t.error
    )
    listing = "".join(
        f"<li>{html.escape(error)} ({n} ×)</li>" for error, n in errors.most_common(5)
    )
    crashes = f"<h3>Most frequent errors</h3><ul>{listing}</ul>" if errors else ""
    return _table(["end", "meaning", "trials", "CPU time", "share", ""], rows) + crashes


def _configurations(run: Run, epochs: Sequence[PlayedEpoch]) -> str:
    records = sorted(_records(run, epochs), key=lambda r: (-r.n_rounds_won, -r.causes["won"]))
    rows = []
    for record in records[:MOST_CONFIGURATIONS]:
        values = run.configurations[record.number]
        listing = ", ".join(f"{name}={_value(value)}" for name, value in sorted(values.items()))
        details = f"<details><summary>show</summary>{html.escape(listing)}</details>"
        n_races = record.causes.total()
        rows.append(
            [f"#{record.number}", record.n_rounds_won, n_races, record.causes["won"],
             f"{record.causes['won'] / n_races:.0%}", record.causes["cutoff"],
             record.causes["crash"] + record.causes["memory"], f"{record.cpu_time:.2f} s",
             "" if record.mean_cost is None else f"{record.mean_cost:.4g}", _Raw(details)]
        )  # fmt: skip
    head = [
        "number", "rounds survived", "races", "won", "share", "cutoffs", "failures", "CPU time",
        "mean cost when finished", "values",
    ]  # fmt: skip
    rest = len(records) - MOST_CONFIGURATIONS
    note = f"<p>{rest:,} more are in the CSV file (--csv).</p>" if rest > 0 else ""
    return _table(head, rows) + note


def _records(run: Run, epochs: Sequence[PlayedEpoch]) -> Iterable[_Record]:
    survived = Counter(
        number
        for epoch in epochs
        for round_ in epoch.rounds
        for group in round_.groups
        for number in group.survivors or ()
    )
    trials: dict[int, list[Trial]] = {}
    for _, trial in run.trials:
        trials.setdefault(trial.configuration, []).append(trial)
    for number, own in trials.items():
        costs = [trial.cost for trial in own if trial.cause in ("won", "finished")]
        yield _Record(
            number=number,
            causes=Counter(trial.cause for trial in own),
            cpu_time=sum(trial.cpu_time for trial in own if not trial.reused),
            mean_cost=sum(costs) / len(costs) if costs else None,
            n_rounds_won=survived[number],
        )


def _settings(run: Run) -> str:
    skipped = ("configspace", "instances", "given")
    rows = [[name, _value(v)] for name, v in sorted(run.identity.items()) if name not in skipped]
    instances = run.identity.get("instances")
    rows.append(["instances", "none: seeds instead" if instances is None else str(len(instances))])
    return f"<details><summary>show</summary>{_table(['setting', 'value'], rows)}</details>"


class _Raw(str):
    """HTML that is not to be escaped."""


def _value(value: object) -> str:
    if value is None:
        return "–"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _table(
    head: Sequence[str], rows: Iterable[Sequence[object]], classes: Sequence[str] | None = None
) -> str:
    def cell(value: object) -> str:
        text = value if isinstance(value, _Raw) else html.escape(str(value))
        short = not isinstance(value, _Raw) and len(text) < 16
        return f"<td class=n>{text}</td>" if short else f"<td>{text}</td>"

    body = "".join(
        f'<tr class="{classes[i] if classes else ""}">{"".join(map(cell, row))}</tr>'
        for i, row in enumerate(rows)
    )
    titles = "".join(f"<th>{html.escape(title)}</th>" for title in head)
    table = f"<table><thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table>"
    return f"<div class=wide>{table}</div>"


def _section(title: str, content: str) -> str:
    return f"<section><h2>{html.escape(title)}</h2>{content}</section>"


def _picture(subject: Any, draw: Callable[[Any], Axes]) -> str:
    """Return the picture as SVG within the page."""
    with rc_context({"svg.fonttype": "none", "font.family": "sans-serif", "svg.hashsalt": "1"}):
        figure = draw(subject).figure
        assert isinstance(figure, Figure)
        text = io.StringIO()
        figure.savefig(text, format="svg")
        _close(figure)
    svg = text.getvalue()
    return f"<figure>{svg[svg.index('<svg') :]}</figure>"


def _close(figure: Figure) -> None:
    from matplotlib import pyplot as plt

    plt.close(figure)
