"""One HTML page about a run: how much better than the default it is, and how it got there.

Everything is in the page itself, charts too; it needs no network and runs no scripts. What it
says stands in ``templates/report.html``; here are the rows of its tables.
"""

from __future__ import annotations

import functools
import time
from collections import Counter
from collections.abc import Mapping, Sequence

import jinja2
from markupsafe import Markup

from acband_configspace._version import __version__
from acband_configspace.core.ends import End
from acband_configspace.core.passes import SchedulePlan
from acband_configspace.runlog.charts import (
    cost_chart,
    elimination_chart,
    races_chart,
    shown_epochs,
)
from acband_configspace.runlog.estimates import Lead
from acband_configspace.runlog.played import PlayedEpoch, PlayedRound
from acband_configspace.runlog.replay import FATES, AnyRun, Run, Trial
from acband_configspace.runlog.verdict import VERDICT, Verdict
from acband_configspace.runlog.words import counted, number, seconds

#: More configurations than this make the page slow to open; the CSV file has them all.
MOST_CONFIGURATIONS = 500
#: Of more incumbents, passes or rounds than this the last ones are listed.
MOST_ROWS = 300
#: Of more plans than this the last one is named.
MOST_PLANS = 8
#: Columns of texts, and of such as may need several lines. All others are of numbers.
TEXTS = ("", "end", "hyperparameter", "part", "setting")
LONG_TEXTS = ("differs from the default in", "meaning", "value", "values")

_MEANING = {
    "won": "finished first",
    End.FINISHED.value: "came to its end, but did not win, or raced alone",
    End.LOST.value: "stopped because another had won, or because it was too slow",
    End.CUTOFF.value: "reached the cutoff",
    End.MEMORY.value: "reached the memory limit",
    End.CRASHED.value: "crashed",
    End.CANCELLED.value: "the whole race was stopped",
}

Row = list[object]


def html_report(run: AnyRun) -> str:
    """Return the page about a run, finished or not.

    Parameters
    ----------
    run : Run | str | Path | facade
        The run, its directory, or its facade.
    """
    run = Run.of(run)
    note = run.recorded.closing_note(VERDICT)  # after further races another one may lead
    page = _environment().get_template("report.html").render(
        run=run,
        tested=None if note is None else Verdict.of_note(note.values),
        footer=f"acband-configspace {__version__}, {time.strftime('%Y-%m-%d %H:%M')}",
    )  # fmt: skip
    return page.encode("utf-8", "backslashreplace").decode()  # names of files may be no UTF-8


@functools.cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("acband_configspace.runlog"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters.update(
        class_of=_class_of, counted=counted, seconds=seconds, thousands="{:,}".format
    )
    environment.globals.update(
        MOST_ROWS=MOST_ROWS,
        MOST_CONFIGURATIONS=MOST_CONFIGURATIONS,
        cost_chart=cost_chart,
        elimination_chart=elimination_chart,
        races_chart=races_chart,
        shown_epochs=shown_epochs,
        changed=_changed,
        planned=_planned,
        frequent_errors=_frequent_errors,
        value_rows=_value_rows,
        lead_rows=_lead_rows,
        epoch_rows=_epoch_rows,
        round_rows=_round_rows,
        end_rows=_end_rows,
        configuration_rows=_configuration_rows,
        setting_rows=_setting_rows,
    )
    return environment


def _class_of(title: str) -> str:
    """Return the class of a column in the page's style."""
    return "" if title in TEXTS else "long" if title in LONG_TEXTS else "n"


# --- the incumbent ----------------------------------------------------------------------------


def _changed(run: Run) -> list[str]:
    """Return the hyperparameters in which the incumbent differs from the default."""
    return [name for name, own, default in _values(run) if own != default]


def _value_rows(run: Run) -> list[Row]:
    return [[name, _value(default), _value(own)] for name, own, default in _values(run)]


def _values(run: Run) -> list[tuple[str, object, object]]:
    """Return each hyperparameter with the incumbent's value and the default's."""
    own = {} if run.incumbent is None else run.values(run.incumbent)
    return [(n, own.get(n), run.default.get(n)) for n in sorted({*own, *run.default})]


def _lead_rows(run: Run) -> list[Row]:
    return [
        [
            run.label(lead.configuration),
            seconds(lead.since),
            f"{lead.n_trials:,}",
            *_estimate(lead),
            _difference(run, lead.configuration),
        ]
        for lead in run.leads
    ]


def _estimate(lead: Lead) -> tuple[str, str, str]:
    estimate = lead.estimate
    if estimate is None:
        return "–", "–", "–"
    bound = "≥ " if estimate.at_least else ""
    error = "–" if estimate.error is None else number(2 * estimate.error)
    return f"{bound}{number(estimate.mean)}", error, f"{estimate.n_common:,}"


def _difference(run: Run, configuration: int | None) -> str:
    if configuration is None:
        return ""
    values, default = run.values(configuration), run.default
    changed = [f"{n}={_value(v)}" for n, v in sorted(values.items()) if v != default.get(n)]
    return ", ".join(changed) if changed else "nothing: it is the default"


# --- rounds -----------------------------------------------------------------------------------


def _epoch_rows(run: Run) -> list[Row]:
    rows: list[Row] = []
    before: int | None = None
    ended = 0.0
    for epoch in run.epochs:
        ended = max(ended, epoch.ended)  # passes overlap, and are decided one after the other
        same = epoch.winner is not None and epoch.winner == before
        rows.append(
            [
                epoch.pass_number,
                epoch.name,
                f"{len({n for round_ in epoch.rounds for n in round_.in_play}):,}",
                "open" if epoch.winner is None else run.label(epoch.winner),
                _last_score(epoch),
                seconds(ended),
                "as before" if same else _difference(run, epoch.winner),
            ]
        )
        before = epoch.winner
    return rows


def _last_score(epoch: PlayedEpoch) -> str:
    for round_ in reversed(epoch.rounds):
        for group in round_.groups:
            if epoch.winner in group.members and group.n_races:
                won = group.wins[group.members.index(epoch.winner)]
                return f"{won:,} of {group.n_races:,}"
    return "–"


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


def _round_rows(run: Run) -> list[Row]:
    spent: dict[tuple[int, ...], float] = {}
    for trial in run.trials:
        place = trial.race.id[:3]
        spent[place] = spent.get(place, 0.0) + trial.cpu_time
    return [_round_row(epoch, round_, spent) for epoch in run.epochs for round_ in epoch.rounds]


def _round_row(
    epoch: PlayedEpoch, round_: PlayedRound, spent: Mapping[tuple[int, ...], float]
) -> Row:
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


def _end_rows(run: Run) -> list[Row]:
    counts = Counter(trial.fate for trial in run.trials)
    spent = dict.fromkeys(FATES, 0.0)
    for trial in run.trials:
        spent[trial.fate] += trial.cpu_time
    total = max(sum(spent.values()), 1e-12)
    bar = Markup('<span class="bar {}" style="width:{:.1f}%"></span>')
    return [
        [fate, _MEANING[fate], f"{counts[fate]:,}", seconds(used), f"{used / total:.0%}",
         bar.format(fate, 100 * used / total)]
        for fate, used in spent.items()
        if counts[fate] or fate in ("won", "finished")
    ]  # fmt: skip


def _frequent_errors(run: Run) -> list[str]:
    crashed = (trial.record for trial in run.trials if trial.record.end is End.CRASHED)
    texts = (str(record.info["error"]) for record in crashed if record.info.get("error"))
    errors = Counter((text.splitlines() or [""])[0] for text in texts)
    return [f"{error} ({n:,} ×)" for error, n in errors.most_common(5)]


def _configuration_rows(run: Run) -> list[Row]:
    survived = Counter(
        n for round_ in run.rounds for group in round_.groups for n in group.survivors or ()
    )
    trials: dict[int, list[Trial]] = {}
    for trial in run.trials:
        trials.setdefault(trial.configuration, []).append(trial)
    fates = {n: Counter(trial.fate for trial in own) for n, own in trials.items()}
    order = sorted(trials, key=lambda n: (-survived[n], -fates[n]["won"], n))
    shown = order[:MOST_CONFIGURATIONS]
    return [_configuration_row(run, n, trials[n], fates[n], survived[n]) for n in shown]


def _configuration_row(
    run: Run, n: int, trials: Sequence[Trial], fates: Counter[str], n_rounds: int
) -> Row:
    listing = ", ".join(f"{name}={_value(v)}" for name, v in sorted(run.values(n).items()))
    costs = [trial.record.cost for trial in trials if trial.record.end is End.FINISHED]
    cpu_time = sum(trial.cpu_time for trial in trials)
    n_with_others = sum(len(trial.race.racers) > 1 for trial in trials)
    return [
        run.label(n), f"{n_rounds:,}", f"{len(trials):,}", f"{fates['won']:,}",
        f"{fates['won'] / n_with_others:.0%}" if n_with_others else "–", f"{fates['cutoff']:,}",
        f"{fates['crashed'] + fates['memory']:,}", seconds(cpu_time),
        number(sum(costs) / len(costs)) if costs else "–",
        Markup("<details><summary>show</summary>{}</details>").format(listing),
    ]  # fmt: skip


def _setting_rows(run: Run) -> list[Row]:
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
    return [[name, _value(value)] for name, value in sorted(values.items())]


def _value(value: object) -> str:
    if value is None:
        return "–"
    return f"{value:.6g}" if isinstance(value, float) else str(value)
