"""Which format a space is in, a file's or the table of a ``scenario.toml``, and its reader."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ConfigSpace import ConfigurationSpace

from acband_configspace.cli.errors import InputError, Place, located, suggestion
from acband_configspace.cli.files import Line, read_text
from acband_configspace.cli.spaces.building import Draft
from acband_configspace.cli.spaces.irace import (
    looks_like_irace,
    parameters_of,
    read_irace,
    write_irace,
)
from acband_configspace.cli.spaces.parameters import Kind, Parameter, Written
from acband_configspace.cli.spaces.parser import parse_r
from acband_configspace.cli.spaces.pcs import is_new_pcs, names_in_pcs, read_pcs, write_pcs

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

#: What may be said of a parameter in a ``scenario.toml``.
_KEYS = ("values", "range", "default", "log", "ordered", "when")


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
    return read_irace(text, path, forbidden=forbidden_beside(path))


def names_in_file(path: Path) -> tuple[str, ...]:
    """Return the names of a file's parameters in its order, none of ConfigSpace's own formats."""
    text = read_text(path)
    format_name = format_of(path, text)
    if format_name in ("json", "yaml"):
        return ()
    if format_name != "irace":
        return names_in_pcs(text, path)
    return tuple(parameter.name for parameter in parameters_of(text, path))


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
    with located(Place(path), ValueError):
        if format_name == "irace":
            return write_irace(space)
        if format_name in ("pcs", "pcs-new"):
            return write_pcs(space, new=format_name == "pcs-new")
    text = json.dumps(space.to_serialized_dict(), indent=2, default=_as_json) + "\n"
    if format_name == "json":
        return Written(text)
    import yaml

    return Written(yaml.safe_dump(json.loads(text), sort_keys=False))


def _as_json(value: object) -> object:
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
            Place(path, line), f"is not a ConfigSpace in {format_name}: {reason}"
        ) from None


def read_inline(table: Mapping[str, tuple[Any, Place]]) -> ConfigurationSpace:
    """Return the space of a table: ``name = { range = [1, 10], default = 5, when = 'a == "x"' }``.

    A range of whole numbers is an integer's. ``forbidden`` is a list of conditions that no
    configuration may fulfil. Conditions are written as irace has them.
    """
    draft = Draft()
    for name, (value, place) in table.items():
        if name == "forbidden" and isinstance(value, list):
            draft.forbidden += [Line(str(text), place) for text in value]
            continue
        if not isinstance(value, dict):
            raise InputError(
                place,
                f'{name} must be something like {{ range = [1, 10] }} or {{ values = ["a", "b"] }}',
            )
        draft.add(_parameter(name, value, place))
        if "when" in value:
            draft.conditions.append((name, Line(str(value["when"]), place)))
    if not draft.parameters:
        raise InputError(next(iter(table.values()))[1], "[space] describes no parameter")
    return draft.build("[space]", lambda text: parse_r(text, draft.parameters))


def _parameter(name: str, value: Mapping[str, Any], place: Place) -> Parameter:
    for key in value:
        if key not in _KEYS:
            raise InputError(place, f"{name}: unknown key {key!r}{suggestion(key, _KEYS)}")
    if ("values" in value) is ("range" in value):
        raise InputError(place, f"{name} must have either values or a range")
    for key, other in (("log", "values"), ("ordered", "range")):
        if key in value and other in value:
            raise InputError(place, f"{name}: {key} must not be given beside {other}")
        if not isinstance(value.get(key, False), bool):
            raise InputError(place, f"{name}: {key} must be true or false but got {value[key]!r}")
    return (_choice if "values" in value else _number)(name, value, place)


def _choice(name: str, value: Mapping[str, Any], place: Place) -> Parameter:
    values = value["values"]
    if not isinstance(values, list):
        raise InputError(place, f"{name}: values must be a list but got {values!r}")
    kind: Kind = "ordinal" if value.get("ordered") else "categorical"
    chosen = tuple(_as_text(v) for v in values)
    return Parameter(name, kind, chosen, default=_as_text(value.get("default")), place=place)


def _number(name: str, value: Mapping[str, Any], place: Place) -> Parameter:
    bounds, default = value["range"], value.get("default")
    if not isinstance(bounds, list) or len(bounds) != 2 or not all(map(_is_number, bounds)):
        raise InputError(place, f"{name}: range must be two numbers but got {bounds!r}")
    if default is not None and not _is_number(default):
        raise InputError(place, f"{name}: default must be a number but got {default!r}")
    integer = all(isinstance(bound, int) for bound in bounds)
    return Parameter(
        name,
        "integer" if integer else "real",
        bounds=(bounds[0], bounds[1]),
        default=default,
        log=value.get("log", False),
        place=place,
    )


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _as_text(value: Any) -> Any:
    """Return a truth value as its text: to Python, True is the number 1."""
    return str(value).lower() if isinstance(value, bool) else value
