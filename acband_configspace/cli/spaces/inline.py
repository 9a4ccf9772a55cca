"""The parameters of a ``scenario.toml``, written there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ConfigSpace import ConfigurationSpace

from acband_configspace.cli.errors import InputError, Place, suggestion
from acband_configspace.cli.spaces.building import Placed, build_space, placed
from acband_configspace.cli.spaces.parameters import Kind, Parameter
from acband_configspace.cli.spaces.parser import parse_r

_KEYS = ("values", "range", "default", "log", "ordered", "when")


def read_inline(table: Mapping[str, tuple[Any, Place]]) -> ConfigurationSpace:
    """Return the space of a table: ``name = { range = [1, 10], default = 5, when = 'a == "x"' }``.

    A range of whole numbers is an integer's. ``forbidden`` is a list of conditions that no
    configuration may fulfil. Conditions are written as irace has them.
    """
    parameters: dict[str, tuple[Parameter, Place]] = {}
    conditions: list[tuple[str, str, Place]] = []
    clauses: list[tuple[str, Place]] = []
    for name, (value, place) in table.items():
        if name == "forbidden" and isinstance(value, list):
            clauses += [(str(text), place) for text in value]
            continue
        if not isinstance(value, dict):
            raise InputError(
                place, f'{name} must be {{ range = [1, 10] }} or {{ values = ["a", "b"] }}, say'
            )
        parameters[name] = _parameter(name, value, place), place
        if "when" in value:
            conditions.append((name, str(value["when"]), place))
    if not parameters:
        raise InputError(next(iter(table.values()))[1], "[space] describes no parameter")

    def read(text: str, place: Place, child: str | None = None) -> Placed:
        return placed(lambda: parse_r(text, parameters), place, child)

    return build_space(
        parameters,
        [read(text, place, child) for child, text, place in conditions],
        [read(text, place) for text, place in clauses],
    )


def _parameter(name: str, value: Mapping[str, Any], place: Place) -> Parameter:
    for key in value:
        if key not in _KEYS:
            raise InputError(place, f"{name}: unknown key {key!r}{suggestion(key, _KEYS)}")
    if ("values" in value) is ("range" in value):
        raise InputError(place, f"{name} must have either values or a range")
    default = value.get("default")
    if "values" in value:
        values = value["values"]
        if not isinstance(values, list):
            raise InputError(place, f"{name}: values must be a list but got {values!r}")
        kind: Kind = "ordinal" if value.get("ordered") else "categorical"
        chosen = tuple(_plain(v) for v in values)
        return Parameter(name, kind, values=chosen, default=_plain(default))
    bounds = value["range"]
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
        log=bool(value.get("log", False)),
    )


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _plain(value: Any) -> Any:
    """Return a truth value as its text: to Python, True is the number 1."""
    return str(value).lower() if isinstance(value, bool) else value
