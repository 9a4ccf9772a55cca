"""Which format a space's file is in, and its reader and writer."""

from __future__ import annotations

import json
from pathlib import Path

from ConfigSpace import ConfigurationSpace

from acband_configspace.cli.errors import InputError, Place
from acband_configspace.cli.files import meaningful_lines, read_text
from acband_configspace.cli.spaces.irace import looks_like_irace, read_irace, write_irace
from acband_configspace.cli.spaces.parameters import Written
from acband_configspace.cli.spaces.pcs import is_new_pcs, read_pcs, write_pcs

#: The formats by the names that ``acband convert --to`` takes.
FORMATS = ("pcs", "pcs-new", "irace", "json", "yaml")

_ENDINGS = {
    ".json": "json",
    ".yaml": "yaml",
    ".yml": "yaml",
    ".pcs": "pcs",
    ".pcs_new": "pcs-new",
    ".pcsnew": "pcs-new",
    ".irace": "irace",
}


def format_by_name(path: Path) -> str | None:
    """Return the format that a file's name stands for, None if it could be any."""
    if path.name.lower().endswith(("new.pcs", "pcs.new")):
        return "pcs-new"
    return _ENDINGS.get(path.suffix.lower())


def read_space(path: Path, *, format_name: str | None = None) -> ConfigurationSpace:
    """Return the space of a file in any of the formats, told apart by name and content."""
    text = read_text(path)
    format_name = format_name or format_of(path, text)
    if format_name in ("json", "yaml"):
        return _native(path, format_name)
    if format_name != "irace":
        return read_pcs(text, path)
    beside = forbidden_beside(path)
    forbidden = list(meaningful_lines(read_text(beside), beside)) if beside.exists() else []
    return read_irace(text, path, forbidden=forbidden)


def format_of(path: Path, text: str) -> str:
    """Return the format of a file."""
    named = format_by_name(path)
    if named in ("json", "yaml", "irace"):
        return named
    if looks_like_irace(text):
        return "irace"
    if text.lstrip().startswith("{") and '"hyperparameters"' in text:
        return "json"
    return "pcs-new" if is_new_pcs(text) else "pcs"


def forbidden_beside(path: Path) -> Path:
    """Return where ``convert`` puts what is forbidden: irace's older versions want it apart."""
    return path.with_name(f"{path.stem}.forbidden.txt")


def write_space(space: ConfigurationSpace, path: Path, *, format_name: str) -> Written:
    """Return a space as the text of a file; an error names what the format cannot express."""
    try:
        if format_name == "irace":
            return write_irace(space)
        if format_name in ("pcs", "pcs-new"):
            return write_pcs(space, new=format_name == "pcs-new")
    except ValueError as error:
        raise InputError(Place.of(path), str(error)) from None
    text = json.dumps(space.to_serialized_dict(), indent=2, default=_plain) + "\n"
    if format_name == "json":
        return Written(text)
    import yaml

    return Written(yaml.safe_dump(json.loads(text), sort_keys=False))


def _plain(value: object) -> object:
    """Return numpy's numbers as Python's."""
    item = getattr(value, "item", None)
    return item() if callable(item) else str(value)


def _native(path: Path, format_name: str) -> ConfigurationSpace:
    reader = ConfigurationSpace.from_json if format_name == "json" else ConfigurationSpace.from_yaml
    try:
        return reader(path)
    except Exception as error:  # ConfigSpace, json and yaml have errors of many kinds
        line = getattr(error, "lineno", None)
        mark = getattr(error, "problem_mark", None)
        line = mark.line + 1 if mark is not None else line
        reason = f"{type(error).__name__}: {error}".replace("\n", " ")
        raise InputError(
            Place.of(path, line), f"is not a ConfigSpace in {format_name}: {reason}"
        ) from None
