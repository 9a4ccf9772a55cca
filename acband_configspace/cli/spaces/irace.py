"""irace's ``parameters.txt``, read and written."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ConfigSpace import ConfigurationSpace

from acband_configspace.cli.errors import InputError, Place, suggestion
from acband_configspace.cli.files import Line, meaningful_lines, read_text, split_values
from acband_configspace.cli.spaces.building import Draft, conditions_of, forbidden_of
from acband_configspace.cli.spaces.expressions import (
    ORDERINGS,
    And,
    Comparison,
    Expression,
    Or,
    Relation,
    Simplifier,
    Syntax,
    joined,
)
from acband_configspace.cli.spaces.parameters import (
    KINDS,
    Kind,
    Parameter,
    Written,
    as_number,
    lost,
    number_text,
    parameter_of,
    refuse,
    value_text,
)
from acband_configspace.cli.spaces.parser import parse_r

_PARAMETER = re.compile(
    r"""^(?P<name>"[^"]+"|`[^`]+`|[\w.]+)\s+
    (?:"(?P<double>[^"]*)"|'(?P<single>[^']*)')\s*
    (?P<type>[A-Za-z]+(?:\s*,\s*\w+)?)\s*
    \((?P<domain>(?:"[^"]*"|[^"()]|\([^()]*\))*)\)\s*
    (?:\|\s*(?P<condition>.*))?$""",
    re.VERBOSE,
)
_KINDS: dict[str, Kind] = {kind[0]: kind for kind in KINDS}
_SECTIONS = ("forbidden", "global")
#: irace's own, for the digits after the point of real parameters.
DIGITS = 4
#: With so many, irace takes any bounds.
MOST_DIGITS = 15


def looks_like_irace(text: str) -> bool:
    """Return whether the first line that says something describes a parameter as irace does."""
    first = next(meaningful_lines(text, ""), None)
    return first is not None and _PARAMETER.match(first.text) is not None


def read_irace(
    text: str,
    source: Path | str,
    *,
    defaults: Mapping[str, Any] | None = None,
    forbidden: Path | None = None,
) -> ConfigurationSpace:
    """Return the space of a ``parameters.txt``.

    irace has no defaults: ``defaults``, the first of the given configurations, say, are taken for
    them. ``forbidden`` is a file, if it is there, beside what is in ``[forbidden]``. How
    parameters are passed (irace's switches) is kept in their ``meta``.
    """
    draft = Draft()
    if forbidden is not None and forbidden.exists():
        draft.forbidden += meaningful_lines(read_text(forbidden), forbidden)
    for section, line in _sections(text, source):
        if section == "forbidden":
            draft.forbidden.append(line)
        elif section == "global":
            _check_global(line)
        else:
            parameter, condition = _parameter(line, defaults or {})
            draft.add(parameter)
            if condition is not None:
                draft.conditions.append((parameter.name, Line(condition, line.place)))
    return draft.build(
        source,
        lambda expression: parse_r(expression, draft.parameters),
        free_defaults=True,
        as_in_r=True,
    )


def digits_of(text: str, source: Path | str) -> int | None:
    """Return what ``[global] digits`` says, if it says anything."""
    found = (line for section, line in _sections(text, source) if section == "global")
    return next(map(_check_global, found), None)


def parameters_of(text: str, source: Path | str) -> list[Parameter]:
    """Return the parameters in the order of the file, in which irace passes them."""
    return [_parameter(line, {})[0] for section, line in _sections(text, source) if not section]


def _sections(text: str, source: Path | str) -> Iterator[tuple[str, Line]]:
    """Yield each line with the name of its section, which is empty for parameters."""
    section = ""
    for line in meaningful_lines(text, source):
        if heading := re.match(r"^\[\s*(\w+)\s*\]$", line.text):
            section = heading[1].lower()
            if section not in _SECTIONS:
                hint = suggestion(section, _SECTIONS)
                raise InputError(line.place, f"unknown section [{heading[1]}]{hint}")
        else:
            yield section, line


def _check_global(line: Line) -> int:
    match = re.match(r"^digits\s*(?:=|<-)\s*(\d+)$", line.text)
    if match is None:
        raise InputError(line.place, f"[global] knows only 'digits = NUMBER' but got {line.text!r}")
    return int(match[1])


def _parameter(line: Line, defaults: Mapping[str, Any]) -> tuple[Parameter, str | None]:
    match = _PARAMETER.match(line.text)
    if match is None:
        raise InputError(
            line.place,
            f'cannot be read: {line.text!r}; a parameter is described as \'name "--switch " '
            "i (1, 10) | condition', with the type c, o, i or r",
        )
    name = match["name"].strip('"`')
    switch = match["double"] if match["double"] is not None else match["single"]
    letter, _, transformation = match["type"].partition(",")
    if letter.strip() not in _KINDS:
        raise InputError(
            line.place, f"the type of {name} must be c, o, i or r but is {letter.strip()!r}"
        )
    kind = _KINDS[letter.strip()]
    transformation = transformation.strip()
    if transformation not in ("", "log") or (transformation and kind in ("categorical", "ordinal")):
        raise InputError(line.place, f"{name}: the type {match['type']!r} is not known")
    values, default = split_values(match["domain"]), defaults.get(name)
    if kind in ("categorical", "ordinal"):
        default = None if default is None else str(default)
        parameter = Parameter(
            name, kind, tuple(values), default=default, switch=switch, place=line.place
        )
    else:
        if default is not None and math.isnan(as_number(default)):
            raise InputError(line.place, f"the default of {name} is not a number: {default!r}")
        parameter = Parameter(
            name,
            kind,
            bounds=_bounds(name, values, line.place),
            default=None if default is None else as_number(default),
            log=transformation == "log",
            switch=switch,
            place=line.place,
        )
    return parameter, match["condition"]


def _bounds(name: str, texts: Sequence[str], place: Place) -> tuple[float, float]:
    if len(texts) != 2:
        raise InputError(place, f"{name} must have two bounds but has {len(texts)}")
    try:
        return float(texts[0]), float(texts[1])
    except ValueError:
        raise InputError(
            place,
            f"the bounds of {name} must be two numbers but are {' and '.join(texts)}: bounds that "
            "depend on other parameters are not supported, since ConfigSpace has none",
        ) from None


def write_irace(space: ConfigurationSpace) -> Written:
    """Return a space as irace's ``parameters.txt``; a second file has what is forbidden.

    irace's names are letters, digits, points and underscores: others are changed, which the notes
    tell, and the switch still has the name as it was. Defaults are not kept.
    """
    parameters = {hp.name: parameter_of(hp) for hp in space.values()}
    names = _r_names(parameters)
    notes = [f"{text} is not kept" for hp in space.values() if (text := lost(hp))]
    notes += [f"{old!r} is called {new!r} in the file" for old, new in names.items() if old != new]
    notes.append("irace has no defaults: give them in its configurations file")
    problems = [text for p in parameters.values() for text in _unwritable(p)]
    digits = max((digits_needed(p) for p in parameters.values()), default=0)
    if digits > DIGITS:
        notes.append(f"some bounds need 'digits = {digits}' in irace's scenario")
    syntax = Syntax(
        conjunction="&",
        disjunction="|",
        name=names.__getitem__,
        value=lambda name, value: _r_value(parameters[name], value),
        membership="{name} %in% c({values})",
    )
    by_child = {c: _without_order(e, parameters, problems) for c, e in conditions_of(space)}
    forbidden = [_without_order(e, parameters, problems) for e in forbidden_of(space)]
    problems += [f"{c}: no values fulfil its condition" for c, e in by_child.items() if e is False]
    refuse(problems, "irace's parameters")
    conditions = {child: syntax.write(expression) for child, expression in by_child.items()}
    lines = [
        _line(names[name], parameter, conditions.get(name))
        for name, parameter in parameters.items()
    ]
    clauses = [syntax.write(expression) for expression in forbidden if expression is not False]
    return Written("\n".join(lines) + "\n", tuple(notes), "\n".join([*clauses, ""]))


def _without_order(
    expression: Expression, parameters: Mapping[str, Parameter], problems: list[str]
) -> Expression:
    """Return the same, but where ordinals are compared, the values for which that holds.

    ConfigSpace compares them by their positions, R by the alphabet.
    """
    match expression:
        case And(parts) | Or(parts):
            retold = [_without_order(part, parameters, problems) for part in parts]
            return joined(type(expression), retold)
        case Comparison(name, sign) if sign in ORDERINGS and parameters[name].kind == "ordinal":
            return Simplifier(parameters, {}, as_in_r=False).simplified(expression)
        case Relation(left, sign, right) if sign in ORDERINGS:
            if not (parameters[left].is_number and parameters[right].is_number):
                problems.append(f"{left} {sign} {right}: R compares text by the alphabet")
    return expression


def _r_names(parameters: Mapping[str, Parameter]) -> dict[str, str]:
    names: dict[str, str] = {}
    taken = {*_R_WORDS, *_R_VALUES}
    for name in parameters:
        plain = re.sub(r"[^A-Za-z0-9_.]", ".", name)
        if not re.match(r"^(?:[A-Za-z]|\.(?!\d))", plain):
            plain = f"p.{plain}"
        candidate, number = plain, 2
        while candidate in taken:
            candidate, number = f"{plain}.{number}", number + 1
        taken.add(candidate)
        names[name] = candidate
    return names


#: Words that mean something else in R.
_R_WORDS = ("if", "else", "repeat", "while", "function", "for", "next", "break", "in", "c")
_R_VALUES = ("TRUE", "FALSE", "NULL", "Inf", "NaN", "NA", "T", "F")


def _unwritable(parameter: Parameter) -> list[str]:
    texts = [*map(value_text, parameter.values), _switch(parameter)]
    return [
        f"{parameter.name}: {text!r} contains a quote, '#', '|' or a line end"
        for text in texts
        if re.search(r'["#|\n\r\\]', text)
    ]


def digits_needed(parameter: Parameter) -> int:
    """Return to how many digits a parameter can be rounded without moving its bounds."""
    if parameter.kind != "real":
        return 0
    for digits in range(MOST_DIGITS):
        if all(round(bound, digits) == bound for bound in parameter.bounds):
            return digits
    return MOST_DIGITS


def _line(name: str, parameter: Parameter, condition: str | None) -> str:
    letter = f"{parameter.kind[0]},log" if parameter.log else parameter.kind[0]
    values = parameter.bounds if parameter.is_number else parameter.values
    domain = ", ".join(_r_value(parameter, value) for value in values)
    tail = "" if condition is None else f" | {condition}"
    return f'{name} "{_switch(parameter)}" {letter} ({domain}){tail}'


def _switch(parameter: Parameter) -> str:
    return f"--{parameter.name}=" if parameter.switch is None else parameter.switch


def _r_value(parameter: Parameter, value: Any) -> str:
    if parameter.is_number:
        return number_text(value, integer=parameter.kind == "integer")
    return f'"{value_text(value)}"'
