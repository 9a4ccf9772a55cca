"""Conditions and forbidden combinations as values: writing them, and ConfigSpace's few forms."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from acband_configspace.cli.spaces.parameters import Parameter, as_number

#: What turns a comparison around when its two sides change places.
MIRRORED = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "==": "==", "!=": "!="}
#: What holds exactly when the comparison does not.
NEGATED = {"<": ">=", ">": "<=", "<=": ">", ">=": "<", "==": "!=", "!=": "=="}
#: What ConfigSpace lacks, or has for parameters that are not active as well: either of two.
EITHER = {"!=": ("<", ">"), "<=": ("<", "=="), ">=": (">", "==")}
#: The comparisons that need an order.
ORDERINGS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


@dataclass(frozen=True)
class Comparison:
    """A parameter beside one value, or with "in" beside several."""

    name: str
    operator: str
    """One of ``== != < <= > >= in``."""
    values: tuple[Any, ...]
    as_number: bool = False
    """Whether R is told to take the parameter for a number, with ``as.numeric``, say."""


@dataclass(frozen=True)
class Relation:
    """Two parameters beside each other."""

    left: str
    operator: str
    right: str


@dataclass(frozen=True)
class And:
    """All parts hold."""

    parts: tuple[Expression, ...]


@dataclass(frozen=True)
class Or:
    """At least one part holds."""

    parts: tuple[Expression, ...]


@dataclass(frozen=True)
class Not:
    """The part does not hold."""

    part: Expression


Expression = Comparison | Relation | And | Or | Not | bool


class ExpressionError(ValueError):
    """An expression cannot be read, or cannot be expressed; the caller adds the place."""


def joined(kind: type[And] | type[Or], parts: list[Expression]) -> Expression:
    """Return the conjunction or disjunction of the parts in its simplest form."""
    absorbing = kind is Or
    kept: dict[Expression, None] = {}  # a set that keeps the order
    for part in parts:
        if part is absorbing:
            return absorbing
        if isinstance(part, bool):
            continue
        inner = part.parts if isinstance(part, kind) else (part,)
        kept.update(dict.fromkeys(inner))
    if not kept:
        return not absorbing
    return next(iter(kept)) if len(kept) == 1 else kind(tuple(kept))


def names_in(expression: Expression) -> Iterator[str]:
    """Yield the parameters an expression speaks of."""
    match expression:
        case Comparison(name):
            yield name
        case Relation(left, _, right):
            yield from (left, right)
        case And(parts) | Or(parts):
            for part in parts:
                yield from names_in(part)
        case Not(part):
            yield from names_in(part)


@dataclass(frozen=True)
class Syntax:
    """How a format writes expressions."""

    conjunction: str
    disjunction: str
    name: Callable[[str], str]
    value: Callable[[str, Any], str]
    """From a parameter's name and a value to its text."""
    membership: str
    """A template with ``{name}`` and ``{values}``."""

    def write(self, expression: Expression, *, nested: bool = False) -> str:
        """Return an expression's text, in parentheses where it is part of another one."""
        match expression:
            case Comparison(name, "in", values):
                texts = ", ".join(self.value(name, value) for value in values)
                return self.membership.format(name=self.name(name), values=texts)
            case Comparison(name, operator, values):
                return f"{self.name(name)} {operator} {self.value(name, values[0])}"
            case Relation(left, operator, right):
                return f"{self.name(left)} {operator} {self.name(right)}"
            case And(parts) | Or(parts):
                word = self.conjunction if isinstance(expression, And) else self.disjunction
                text = f" {word} ".join(self.write(part, nested=True) for part in parts)
                return f"({text})" if nested else text
        raise ExpressionError(f"cannot write {expression!r}")


class Simplifier:
    """Reduces expressions to what ConfigSpace has, with values of the parameters' own types.

    No negations are left, comparisons that cannot hold become false, and all comparisons of finite
    parameters become "in". One that always holds stays: it says that the parameter is active.

    Parameters
    ----------
    parameters : Mapping[str, Parameter]
        All there are.
    conditions : Mapping[str, Expression]
        When parameters are active, for those that are not always; they form no cycle.
    as_in_r : bool
        Read expressions as R does. A value that a parameter does not have is unlike all others. A
        comparison with an inactive parameter, NA in R, is NA, and so is its negation: neither
        holds. But ``%in%`` is then false, and its negation holds. The values of ordinals are text,
        the order of which is that of the alphabet: only as numbers can they be compared. Elsewhere
        the order is that of their positions.
    """

    def __init__(
        self,
        parameters: Mapping[str, Parameter],
        conditions: Mapping[str, Expression],
        *,
        as_in_r: bool,
    ) -> None:
        self._parameters = parameters
        self._conditions = conditions
        self._as_in_r = as_in_r

    def simplified(
        self, expression: Expression, *, negate: bool = False, relations: bool = False
    ) -> Expression:
        """Return the same in the forms of this class; ``relations`` are for clauses only."""
        match expression:
            case bool():
                return expression is not negate
            case Not(part):
                return self.simplified(part, negate=not negate, relations=relations)
            case And(parts) | Or(parts):
                kind = type(expression)
                if negate:
                    kind = Or if kind is And else And
                return joined(
                    kind, [self.simplified(p, negate=negate, relations=relations) for p in parts]
                )
            case Relation():
                return self._relation(expression, negate, relations)
            case Comparison(name, operator):
                if negate and operator == "in" and self._as_in_r:
                    return joined(Or, [self._inactive(name), self._compared(expression, True)])
                return self._compared(expression, negate)
        raise AssertionError(f"{expression!r} is not an expression")

    def _inactive(self, name: str) -> Expression:
        """Return when a parameter is not active."""
        if name not in self._conditions:
            return False
        return self._opposite(self.simplified(self._conditions[name]))

    def _opposite(self, simple: Expression) -> Expression:
        """Return what holds whenever a simplified expression does not, also of what is inactive."""
        match simple:
            case And(parts):
                return joined(Or, [self._opposite(part) for part in parts])
            case Or(parts):
                return joined(And, [self._opposite(part) for part in parts])
            case Comparison(name):
                return joined(Or, [self._inactive(name), self._compared(simple, True)])
        return not simple

    def _compared(self, comparison: Comparison, negate: bool) -> Expression:
        """Return a comparison or its opposite, both for active parameters only."""
        parameter = self._parameters[comparison.name]
        if parameter.is_number:
            return self._numeric(comparison, parameter, negate)
        holds = self._holding(comparison, parameter)
        chosen = tuple(v for v in parameter.values if (v in holds) is not negate)
        return Comparison(parameter.name, "in", chosen) if chosen else False

    def _relation(self, relation: Relation, negate: bool, relations: bool) -> Expression:
        left, right = relation.left, relation.right
        if not relations:
            raise ExpressionError(
                f"a condition cannot compare two parameters ({left} {relation.operator} {right}): "
                "ConfigSpace has no such condition"
            )
        for name in (left, right):
            if not self._parameters[name].is_number:
                raise ExpressionError(f"{left} {relation.operator} {right}: {name} is not a number")
        operator = NEGATED[relation.operator] if negate else relation.operator
        return joined(Or, [Relation(left, o, right) for o in EITHER.get(operator, (operator,))])

    def never(self, name: str) -> Expression:
        """Return what no configuration fulfils: an active parameter with two values at once."""
        parameter = self._parameters[name]
        if parameter.is_number:
            ends = [_comparison(parameter, "==", bound) for bound in parameter.bounds]
        else:
            ends = [Comparison(name, "in", (parameter.values[i],)) for i in (0, -1)]
        if ends[0] == ends[1]:
            ends[1] = replace(ends[1], operator="!=")
        return And(tuple(ends))

    def _holding(self, comparison: Comparison, parameter: Parameter) -> set[Any]:
        """Return the values of a finite parameter for which the comparison holds."""
        if comparison.operator in ("in", "==", "!="):
            matched = {self._match(parameter, text) for text in comparison.values} - {None}
            return set(parameter.values) - matched if comparison.operator == "!=" else matched
        values, (text,) = parameter.values, comparison.values
        by_position = parameter.kind == "ordinal" and not self._as_in_r
        found = _find(parameter, text) if by_position else None
        if found is not None:
            ranks, limit = [float(rank) for rank in range(len(values))], float(values.index(found))
        else:  # by their numbers, if they are numbers
            try:
                ranks, limit = [float(value) for value in values], float(text)
            except (TypeError, ValueError):
                raise ExpressionError(
                    f"{parameter.name} {comparison.operator} {text}: the values of "
                    f"{parameter.name} have no order"
                ) from None
            if self._as_in_r and not comparison.as_number:
                raise ExpressionError(
                    f"{parameter.name} {comparison.operator} {text}: the values of "
                    f"{parameter.name} are text, which R compares by the alphabet; write "
                    f"as.numeric({parameter.name})"
                )
        holds = ORDERINGS[comparison.operator]
        return {v for v, rank in zip(values, ranks, strict=True) if holds(rank, limit)}

    def _match(self, parameter: Parameter, text: Any) -> Any:
        found = _find(parameter, text)
        if found is None and not self._as_in_r:
            listed = ", ".join(map(str, parameter.values[:20]))
            raise ExpressionError(
                f"{text!r} is not a value of {parameter.name}, which has {listed}"
            )
        return found

    def _numeric(self, comparison: Comparison, parameter: Parameter, negate: bool) -> Expression:
        numbers = [as_number(value) for value in comparison.values]
        for value, number in zip(comparison.values, numbers, strict=True):
            if math.isnan(number):
                raise ExpressionError(f"{parameter.name} is a number, which {value!r} is not")
        if comparison.operator == "in":
            operator, kind = ("!=", And) if negate else ("==", Or)
            return joined(kind, [_bounded(parameter, operator, number) for number in numbers])
        operator = NEGATED[comparison.operator] if negate else comparison.operator
        return _bounded(parameter, operator, numbers[0])


def _find(parameter: Parameter, text: Any) -> Any:
    """Return the value that a text means: the same text, or the same number."""
    for value in parameter.values:
        if value == text or str(value) == str(text):
            return value
    number = as_number(text)
    return next((value for value in parameter.values if as_number(value) == number), None)


def _bounded(parameter: Parameter, operator: str, number: float) -> Expression:
    """Return a comparison of a number within its bounds, or what it always is."""
    lower, upper = parameter.bounds
    # Out of bounds, how far does not matter, and what is finite can be rounded.
    number = max(math.nextafter(lower, -math.inf), min(math.nextafter(upper, math.inf), number))
    if parameter.kind == "integer" and operator in _NEXT:
        operator, number = operator[0], _NEXT[operator](number)
    if operator in EITHER:
        return joined(Or, [_bounded(parameter, sign, number) for sign in EITHER[operator]])
    if operator == "==":
        possible = parameter.kind == "real" or number.is_integer()
        inside, always = possible and lower <= number <= upper, False
    elif operator == "<":
        inside, always = lower < number <= upper, number > upper
    else:
        inside, always = lower <= number < upper, number < lower
    return _comparison(parameter, operator, number) if inside else always and _active(parameter)


#: The whole number that whole numbers are less or more than.
_NEXT: dict[str, Callable[[float], float]] = {
    "<": lambda number: float(math.ceil(number)),
    "<=": lambda number: math.floor(number) + 1.0,
    ">": lambda number: float(math.floor(number)),
    ">=": lambda number: math.ceil(number) - 1.0,
}


def _active(parameter: Parameter) -> Expression:
    """Return what holds for all values of a number, if it is active."""
    upper = parameter.bounds[1]
    if parameter.bounds[0] == upper:
        return _comparison(parameter, "==", upper)
    return Or((_comparison(parameter, "<", upper), _comparison(parameter, "==", upper)))


def _comparison(parameter: Parameter, operator: str, number: float) -> Comparison:
    value = int(number) if parameter.kind == "integer" else number
    return Comparison(parameter.name, operator, (value,))
