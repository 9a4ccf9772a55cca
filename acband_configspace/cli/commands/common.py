"""Arguments that several commands take, and what they have in common."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from acband_configspace.cli.errors import COMMAND_LINE, InputError
from acband_configspace.cli.scenario.description import ScenarioFile
from acband_configspace.cli.scenario.reading import read_scenario


def add_scenario(parser: argparse.ArgumentParser) -> None:
    """Let a command take a scenario and, for each of its keys, ``--key value``."""
    parser.add_argument(
        "scenario",
        metavar="SCENARIO",
        type=Path,
        help="scenario.toml, a scenario of AClib, SMAC, ParamILS or irace, or its folder",
    )
    parser.set_defaults(takes_keys=True)


def add_workers(parser: argparse.ArgumentParser) -> None:
    """Let a command take the number of runs at a time."""
    parser.add_argument("--workers", type=int, metavar="N", help="runs at a time (1)")


def add_seed(parser: argparse.ArgumentParser) -> None:
    """Let a command take a seed."""
    parser.add_argument("--seed", metavar="N", help="the seed of the run (0)")


def overrides_of(words: Sequence[str]) -> dict[str, str]:
    """Return ``--key value`` and ``--key=value`` pairs of the command line."""
    overrides: dict[str, str] = {}
    pending = list(words)
    while pending:
        word = pending.pop(0)
        if not word.startswith("--") or word == "--":
            raise InputError(COMMAND_LINE, f"unexpected {word!r}; keys are written --key value")
        key, equals, value = word[2:].partition("=")
        if not equals:
            if not pending:
                raise InputError(COMMAND_LINE, f"--{key} must have a value")
            value = pending.pop(0)
        overrides[key] = value
    return overrides


def scenario_from(arguments: argparse.Namespace) -> tuple[ScenarioFile, Mapping[str, str]]:
    """Return the scenario of the command line, and what overrides its file."""
    overrides = dict(arguments.keys)
    if getattr(arguments, "seed", None) is not None:
        overrides["seed"] = arguments.seed
    if (workers := getattr(arguments, "workers", None)) is not None and workers < 1:
        raise InputError(COMMAND_LINE, f"--workers must be at least 1 but got {workers}")
    return read_scenario(arguments.scenario, overrides), overrides


def print_notes(scenario_file: ScenarioFile) -> None:
    """Say what was read and is not used."""
    for note in scenario_file.notes:
        print(f"note: {note}")


def shown_values(values: Mapping[str, Any]) -> str:
    """Return a configuration for a person to read."""
    width = max(map(len, values), default=0)
    return "\n".join(f"  {name:{width}}  {values[name]}" for name in sorted(values))
