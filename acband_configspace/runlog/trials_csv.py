"""All trials of a run as one table."""

from __future__ import annotations

import csv
from pathlib import Path

from acband_configspace.runlog.run import Run

_COLUMNS = [
    "race",
    "pass",
    "epoch",
    "round",
    "group",
    "index",
    "instance",
    "seed",
    "configuration",
    "cause",
    "cost",
    "censored",
    "time",
    "cpu_time",
    "started",
    "reused",
    "walltime",
    "error",
]


def write_trials(run: Run, path: Path) -> None:
    """Write a line per trial: its place in the run, its end, and its configuration's values."""
    names = sorted({name for values in run.configurations.values() for name in values})
    # A hyperparameter may be called "seed", or "cost"; an instance's name may be no UTF-8.
    headings = [f"config.{name}" if name in _COLUMNS else name for name in names]
    with path.open("w", newline="", encoding="utf-8", errors="backslashreplace") as file:
        writer = csv.writer(file)
        writer.writerow([*_COLUMNS, *headings])
        for race, trial in run.trials:
            values = run.configurations[trial.configuration]
            writer.writerow(
                [
                    race.name,
                    race.pass_number,
                    race.epoch,
                    race.round,
                    race.group,
                    race.index,
                    race.instance,
                    race.seed,
                    trial.configuration,
                    trial.cause,
                    trial.cost,
                    trial.is_censored,
                    trial.time,
                    trial.cpu_time,
                    trial.started,
                    trial.reused,
                    race.walltime,
                    trial.error,
                    *(values.get(name) for name in names),
                ]
            )
