"""PCS, the parameter files of ParamILS, SMAC and AClib, old and new, read and written.

ConfigSpace has readers of its own, deprecated and without future support. They skip lines that
they do not know, ignore what follows what they do know, take numbers in conditions and forbidden
clauses of the old format for texts, know neither parentheses nor forbidden expressions, and name no
lines; so they are not used here.
"""

from __future__ import annotations

import itertools
import math
import re
from pathlib import Path

from ConfigSpace import ConfigurationSpace

from acband_configspace.cli.errors import InputError, Place, suggestion
from acband_configspace.cli.files import Line, meaningful_lines, split_values, unquoted
from acband_configspace.cli.spaces.building import Draft, conditions_of, forbidden_of
from acband_configspace.cli.spaces.expressions import And, Comparison, Expression, Or, Syntax
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
from acband_configspace.cli.spaces.parser import odd_names_of, parse_pcs

_PARAMETER = re.compile(
    r"""^(?P<name>"[^"]*"|[^\s{\[|"]+)
    (?:\s+(?P<type>[A-Za-z]+))?\s*
    (?P<domain>\{.*\}|\[[^\]]*\])\s*
    \[(?P<default>[^\]]*)\]\s*(?P<flags>\w*)$""",
    re.VERBOSE,
)
#: "real", or "r".
_TYPES: dict[str, Kind] = {name: kind for kind in KINDS for name in (kind, kind[0])}
_HEADING = re.compile(
    r"^(conditionals?|conditions?|forbiddens?|parameters?)( clauses?)?\s*:?$", re.I
)


def is_new_pcs(text: str) -> bool:
    """Return whether a PCS file's parameters say their types, as in the new format."""
    for line in meaningful_lines(text, ""):
        if match := _PARAMETER.match(line.text):
            return match["type"] is not None
    return False


def read_pcs(text: str, source: Path | str) -> ConfigurationSpace:
    """Return the space of a PCS file, old or new, even if it mixes them."""
    draft = Draft()
    for line in meaningful_lines(text, source):
        if match := _PARAMETER.match(line.text):
            draft.add(_parameter(match, line.place))
        elif line.text.startswith("{") and line.text.endswith("}"):
            draft.forbidden.append(Line(line.text[1:-1], line.place))
        elif match := re.match(r'^("[^"]*"|[^\s|"]+)\s*\|(.*)', line.text):
            draft.conditions.append((unquoted(match[1]), Line(match[2], line.place)))
        elif not _HEADING.match(line.text):
            raise InputError(
                line.place,
                f"cannot be read: {line.text!r} is neither a parameter, such as "
                "'name {a, b} [a]' or 'name real [0, 1] [0.5]', nor a condition, "
                "'name | other in {a}', nor a forbidden clause, '{name=a, other=b}'",
            )
    known = draft.parameters
    odd_names = odd_names_of(known)

    def is_value(name: str, word: str) -> bool:
        values = known[name].values
        return word in values if values else not math.isnan(as_number(word))

    return draft.build(
        source, lambda text: parse_pcs(text, known, odd_names=odd_names, is_value=is_value)
    )


def names_in_pcs(text: str, source: Path | str) -> tuple[str, ...]:
    """Return the names of the parameters in the order of the file."""
    found = (_PARAMETER.match(line.text) for line in meaningful_lines(text, source))
    return tuple(unquoted(match["name"]) for match in found if match)


def _parameter(match: re.Match[str], place: Place) -> Parameter:
    name, type_ = unquoted(match["name"]), match["type"]
    in_braces = match["domain"].startswith("{")
    flags = match["flags"].lower()
    if type_ is not None and type_.lower() not in _TYPES:
        raise InputError(place, f"unknown type {type_!r}{suggestion(type_, _TYPES)}")
    if type_ is None:
        kind: Kind = "categorical" if in_braces else "integer" if "i" in flags else "real"
        if set(flags) - (set() if in_braces else {"i", "l"}):
            raise InputError(place, f"unknown flags {flags!r}; known are i (integer) and l (log)")
        log = "l" in flags
    else:
        kind, log = _TYPES[type_.lower()], flags == "log"
        if flags not in ("", "log"):
            raise InputError(place, f"unknown word {flags!r} at the end; only 'log' may be there")
    if in_braces is not (kind in ("categorical", "ordinal")):
        brackets = "[lower, upper]" if in_braces else "{value, value, …}"
        raise InputError(place, f"the domain of a parameter of type {kind} must be {brackets}")
    if in_braces:
        values = tuple(split_values(match["domain"][1:-1]))
        return Parameter(name, kind, values, default=unquoted(match["default"]), place=place)
    bounds = [_number(name, part, place) for part in match["domain"][1:-1].split(",")]
    if len(bounds) != 2:
        raise InputError(place, f"{name} must have two bounds but has {len(bounds)}")
    default = _number(name, match["default"], place)
    lower, upper = bounds
    return Parameter(name, kind, bounds=(lower, upper), default=default, log=log, place=place)


def _number(name: str, text: str, place: Place) -> float:
    try:
        return float(text)
    except ValueError:
        raise InputError(place, f"{name}: {text.strip()!r} is not a number") from None


def write_pcs(space: ConfigurationSpace, *, new: bool) -> Written:
    """Return a space as a PCS file, in the new format or in the old one.

    The old format has no ordinals, which become categoricals, and of conditions and forbidden
    clauses only "in" and "=", joined by "and".

    Raises
    ------
    ValueError
        With a list of what the format cannot express.
    """
    problems: list[str] = []
    notes = [f"{text} is not kept" for hp in space.values() if (text := lost(hp))]
    parameters = {hp.name: parameter_of(hp) for hp in space.values()}
    for parameter in parameters.values():
        problems += _unwritable(parameter)
        if parameter.kind == "ordinal" and not new:
            notes.append(f"{parameter.name}: the order of its values is not kept")
    if any(parameter.switch is not None for parameter in parameters.values()):
        notes.append("how irace passes the parameters, their switches, is not kept")
    lines = [_line(parameter, new=new) for parameter in parameters.values()]
    writer = _Writer(parameters, new=new, problems=problems)
    conditions = [line for child, e in conditions_of(space) for line in writer.condition(child, e)]
    clauses = [line for e in forbidden_of(space) for line in writer.forbidden(e)]
    refuse(problems, "new PCS" if new else "old PCS")
    for heading, part in (("# Conditions", conditions), ("# Forbidden", clauses)):
        if part:
            lines += ["", heading, *part]
    return Written("\n".join(lines) + "\n", tuple(notes))


def _unwritable(parameter: Parameter) -> list[str]:
    texts = [parameter.name, *map(value_text, parameter.values)]
    return [
        f"{parameter.name}: {text!r} contains a quote, a brace or a line end"
        for text in texts
        if re.search(r'["{}\[\]\n\r]', text)
    ]


def _quoted(text: str) -> str:
    plain = text and not re.search(r"[\s(){}|,=<>!&#']", text)
    return text if plain else f'"{text}"'


def _line(parameter: Parameter, *, new: bool) -> str:
    name, integer = _quoted(parameter.name), parameter.kind == "integer"
    type_ = f" {parameter.kind}" if new else ""
    if not parameter.is_number:
        values = ", ".join(_quoted(value_text(value)) for value in parameter.values)
        return f"{name}{type_} {{{values}}} [{_quoted(value_text(parameter.default))}]"
    lower, upper = (number_text(bound, integer=integer) for bound in parameter.bounds)
    default = number_text(parameter.default, integer=integer)
    if new:
        flags = " log" if parameter.log else ""
    else:
        flags = f"{'i' if integer else ''}{'l' if parameter.log else ''}"
    return f"{name}{type_} [{lower}, {upper}] [{default}]{flags}"


#: How many whole numbers may be listed where the old format has no "<".
LONGEST_LIST = 1000


class _Writer:
    def __init__(self, parameters: dict[str, Parameter], *, new: bool, problems: list[str]) -> None:
        self._parameters = parameters
        self._new = new
        self._problems = problems
        self._syntax = Syntax(
            conjunction="&&",
            disjunction="||",
            name=_quoted,
            value=lambda name, value: _quoted(value_text(value)),
            membership="{name} in {{{values}}}",
        )

    def condition(self, child: str, expression: Expression) -> list[str]:
        name = _quoted(child)
        if self._new:
            return [f"{name} | {self._syntax.write(expression)}"]
        lines = []
        for part in expression.parts if isinstance(expression, And) else (expression,):
            values = self._listed(part)
            if values is None:
                self._problems.append(f"the condition of {child}: {self._syntax.write(part)}")
            else:
                lines.append(f"{name} | {self._syntax.write(values)}")
        return lines

    def forbidden(self, expression: Expression) -> list[str]:
        clauses = self._as_equalities(expression)
        if clauses is not None:
            return clauses
        if self._new:
            return [f"{{{self._syntax.write(expression)}}}"]
        self._problems.append(f"the forbidden combination {self._syntax.write(expression)}")
        return []

    def _as_equalities(self, expression: Expression) -> list[str] | None:
        """Return clauses of "=" that say the same, a product over the values, if that is short."""
        choices: list[list[str]] = []
        for part in expression.parts if isinstance(expression, And) else (expression,):
            if self._new and isinstance(part, Comparison) and part.operator not in ("in", "=="):
                return None
            listed = self._listed(part)
            if listed is None:
                return None
            name = _quoted(listed.name)
            choices.append([f"{name}={_quoted(value_text(value))}" for value in listed.values])
        if math.prod(map(len, choices)) > LONGEST_LIST:
            return None
        return [f"{{{', '.join(clause)}}}" for clause in itertools.product(*choices)]

    def _listed(self, expression: Expression) -> Comparison | None:
        """Return the same as an "in", if the values can be listed."""
        if isinstance(expression, Or):
            parts = [self._listed(part) for part in expression.parts]
            if any(part is None for part in parts) or len({p.name for p in parts if p}) != 1:
                return None
            values = dict.fromkeys(value for part in parts if part for value in part.values)
            return Comparison(parts[0].name, "in", tuple(values)) if parts[0] else None
        if not isinstance(expression, Comparison):
            return None
        if expression.operator in ("in", "=="):
            return Comparison(expression.name, "in", expression.values)
        parameter = self._parameters[expression.name]
        if parameter.kind != "integer":
            return None
        lower, upper = (int(bound) for bound in parameter.bounds)
        (value,) = expression.values
        ends = {
            "<": (lower, value),
            "<=": (lower, value + 1),
            ">": (value + 1, upper + 1),
            ">=": (value, upper + 1),
            "!=": (lower, upper + 1),
        }
        span = range(*ends[expression.operator])
        if len(span) > LONGEST_LIST:
            return None
        kept = (v for v in span if v != value or expression.operator != "!=")
        return Comparison(expression.name, "in", tuple(kept))
