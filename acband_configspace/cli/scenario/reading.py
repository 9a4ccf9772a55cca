"""Which kind of scenario a file is, and its reader."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from acband_configspace.cli.errors import InputError, Place
from acband_configspace.cli.files import meaningful_lines, read_text
from acband_configspace.cli.scenario import aclib, irace
from acband_configspace.cli.scenario.aclib import read_aclib
from acband_configspace.cli.scenario.assignments import plain_key
from acband_configspace.cli.scenario.description import ScenarioFile
from acband_configspace.cli.scenario.irace import read_irace_scenario
from acband_configspace.cli.scenario.toml import read_toml

#: What is looked for in a folder, in this order.
NAMES = ("scenario.toml", "scenario.txt")


def read_scenario(path: Path, overrides: Mapping[str, str] | None = None) -> ScenarioFile:
    """Read a scenario, or a folder's; its kind shows in its ending and its keys."""
    overrides = overrides or {}
    path = _file(path)
    readers = {"toml": read_toml, "irace": read_irace_scenario, "aclib": read_aclib}
    return readers[kind_of(path)](path, overrides)


def _file(path: Path) -> Path:
    if not path.is_dir():
        return path
    found = next((path / name for name in NAMES if (path / name).is_file()), None)
    if found is None:
        raise InputError(Place(path), f"has neither {' nor '.join(NAMES)}; name the file")
    return found


def kind_of(path: Path) -> str:
    """Return "toml", "irace" or "aclib", of a scenario or a folder's."""
    path = _file(path)
    if path.suffix.lower() == ".toml":
        return "toml"
    keys = [
        plain_key(match[1])
        for line in meaningful_lines(read_text(path), path)
        if (match := re.match(r"^([\w.-]+)\s*(?:=|<-)", line.text))
    ]
    # They share "deterministic" and "seed": what only one of them knows decides.
    of_irace = sum(key in irace.KEYS - aclib.KEYS for key in keys)
    of_aclib = sum(key in aclib.KEYS - irace.KEYS for key in keys)
    return "irace" if of_irace > of_aclib else "aclib"
