"""All trials of a run as one table."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

from acband_configspace.core.ends import End
from acband_configspace.runlog.replay import AnyRun, Run, Trial

_COLUMNS = [
    "race", "pass", "epoch", "round", "group", "index", "instance", "seed", "configuration",
    "default", "end", "cost", "censored", "time", "cpu_time", "started", "reused", "walltime",
    "error",
]  # fmt: skip


def write_trials(run: AnyRun, path: str | Path) -> None:
    """Write a line per trial: its place in the run, its end, and its configuration's values.

    Parameters
    ----------
    run : Run | str | Path | facade
        The run, its directory, or its facade.
    path : str | Path
        The file to write.
    """
    run = Run.of(run)
    names = sorted({name for values in run.configurations.values() for name in values})
    # A hyperparameter may be called "seed", or "cost"; an instance's name may be no UTF-8.
    headings = [f"config.{name}" if name in _COLUMNS else name for name in names]
    with Path(path).open("w", newline="", encoding="utf-8", errors="backslashreplace") as file:
        writer = csv.writer(file)
        writer.writerow([*_COLUMNS, *headings])
        writer.writerows(_row(run, trial, names) for trial in run.trials)


def _row(run: Run, trial: Trial, names: Sequence[str]) -> list[object]:
    race, record = trial.race, trial.record
    values = run.values(trial.configuration)
    return [
        race.id,
        *race.id,
        *race.key,
        trial.configuration,
        trial.configuration == run.header.default,
        trial.fate,
        record.cost,
        record.end is End.LOST,
        record.time,
        record.cpu_time,
        record.started,
        trial.reused,
        race.walltime,
        record.info.get("error"),
        *(values.get(name) for name in names),
    ]
