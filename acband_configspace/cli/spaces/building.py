"""From parameters and expressions to a ConfigSpace, with errors that name the user's line."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from ConfigSpace import ConfigurationSpace
from ConfigSpace.conditions import (
    AndConjunction,
    EqualsCondition,
    GreaterThanCondition,
    InCondition,
    LessThanCondition,
    NotEqualsCondition,
    OrConjunction,
)
from ConfigSpace.exceptions import ForbiddenValueError
from ConfigSpace.forbidden import (
    ForbiddenAndConjunction,
    ForbiddenEqualsClause,
    ForbiddenEqualsRelation,
    ForbiddenGreaterThanClause,
    ForbiddenGreaterThanRelation,
    ForbiddenInClause,
    ForbiddenLessThanClause,
    ForbiddenLessThanRelation,
    ForbiddenOrConjunction,
)
from ConfigSpace.hyperparameters import Hyperparameter

from acband_configspace.cli.errors import InputError, Place
from acband_configspace.cli.spaces.expressions import (
    NEGATED,
    And,
    Comparison,
    Expression,
    ExpressionError,
    Not,
    Or,
    Relation,
    joined,
    names_in,
)
from acband_configspace.cli.spaces.parameters import Parameter

#: How many random configurations are tried to find one that is not forbidden.
TRIES = 10_000


@dataclass(frozen=True)
class Placed:
    """A condition on ``child``, or a forbidden combination, and where it stands."""

    expression: Expression
    place: Place
    child: str | None = None


def build_space(
    parameters: Mapping[str, tuple[Parameter, Place]],
    conditions: Sequence[Placed] = (),
    forbidden: Sequence[Placed] = (),
    *,
    name: str | None = None,
    free_defaults: bool = False,
    lenient: bool = False,
) -> ConfigurationSpace:
    """Return the space, all added at once: ConfigSpace rebuilds its tables with each addition.

    Parameters
    ----------
    free_defaults : bool
        The format has no defaults, so that others are chosen if the middle of everything is
        forbidden.
    lenient : bool
        Values in a comparison that the parameter does not have are ignored, as R does.
    """
    known = {name: parameter for name, (parameter, _) in parameters.items()}
    hyperparameters = {
        name: _with_place(parameter, place) for name, (parameter, place) in parameters.items()
    }
    simple = _Simplifier(known, lenient=lenient)
    added_conditions = _conditions(conditions, hyperparameters, simple)
    clauses = []
    for placed in forbidden:
        for clause in _clauses(placed, hyperparameters, simple):
            clauses.append((clause, placed.place))
    space = ConfigurationSpace(name=name)
    try:
        space.add(*hyperparameters.values(), *added_conditions)
    except Exception as error:  # a cycle of conditions, say: ConfigSpace has no common base
        place = conditions[0].place if conditions else next(iter(parameters.values()))[1]
        raise InputError(
            replace(place, line=None), f"the space is not consistent: {error}"
        ) from None
    if not clauses:
        return space
    try:
        space.add(*(clause for clause, _ in clauses))
    except ForbiddenValueError:
        if free_defaults:
            chosen = _allowed_values(space, [clause for clause, _ in clauses])
            if chosen is not None:
                retold = {
                    n: (replace(p, default=chosen.get(n, p.default)), place)
                    for n, (p, place) in parameters.items()
                }
                return build_space(retold, conditions, forbidden, name=name, lenient=lenient)
        default = dict(space.get_default_configuration())
        place = next(p for c, p in clauses if c.is_forbidden_value(default))
        raise InputError(place, "this forbids the default configuration") from None
    return space


def _with_place(parameter: Parameter, place: Place) -> Hyperparameter:
    try:
        return parameter.to_hyperparameter()
    except (ValueError, TypeError, OverflowError) as error:
        raise InputError(place, str(error)) from None


def _allowed_values(space: ConfigurationSpace, clauses: list[Any]) -> dict[str, Any] | None:
    for seed in range(10):
        space.seed(seed)
        for configuration in space.sample_configuration(TRIES // 10):
            values = dict(configuration)
            if not any(clause.is_forbidden_value(values) for clause in clauses):
                return {n: v.item() if isinstance(v, np.generic) else v for n, v in values.items()}
    return None


def _conditions(
    conditions: Iterable[Placed], hyperparameters: Mapping[str, Hyperparameter], simple: _Simplifier
) -> list[Any]:
    by_child: dict[str, list[Expression]] = {}
    for placed in conditions:
        assert placed.child is not None
        try:
            expression = simple.simplified(placed.expression)
            if expression is False:
                expression = simple.never(next(names_in(placed.expression)))
        except ExpressionError as error:
            raise InputError(placed.place, str(error)) from None
        by_child.setdefault(placed.child, []).append(expression)
    added = []
    for child, expressions in by_child.items():
        whole = joined(And, expressions)  # several lines about one child must all hold
        if whole is not True:
            added.append(_condition(whole, hyperparameters[child], hyperparameters))
    return added


def _condition(
    expression: Expression, child: Hyperparameter, known: Mapping[str, Hyperparameter]
) -> Any:
    match expression:
        case And(parts):
            return AndConjunction(*(_condition(part, child, known) for part in parts))
        case Or(parts):
            return OrConjunction(*(_condition(part, child, known) for part in parts))
        case Comparison(name, "in", values):
            if len(values) == 1:
                return EqualsCondition(child, known[name], values[0])
            return InCondition(child, known[name], list(values))
        case Comparison(name, operator, (value,)):
            kind = {
                "==": EqualsCondition,
                "!=": NotEqualsCondition,
                "<": LessThanCondition,
                ">": GreaterThanCondition,
            }[operator]
            return kind(child, known[name], value)
    raise AssertionError(f"{expression!r} is not simple")


def _clauses(placed: Placed, known: Mapping[str, Hyperparameter], simple: _Simplifier) -> list[Any]:
    try:
        expression = simple.simplified(placed.expression, relations=True)
        if expression is True:
            raise ExpressionError("this forbids every configuration")
    except ExpressionError as error:
        raise InputError(placed.place, str(error)) from None
    if expression is False:
        return []
    parts = expression.parts if isinstance(expression, Or) else (expression,)
    return [_clause(part, known) for part in parts]


def _clause(expression: Expression, known: Mapping[str, Hyperparameter]) -> Any:
    # ConfigSpace's "or equal" clauses hold for parameters that are not active; these do not.
    match expression:
        case And(parts):
            return ForbiddenAndConjunction(*(_clause(part, known) for part in parts))
        case Or(parts):
            return ForbiddenOrConjunction(*(_clause(part, known) for part in parts))
        case Comparison(name, "in", values):
            if len(values) == 1:
                return ForbiddenEqualsClause(known[name], values[0])
            return ForbiddenInClause(known[name], list(values))
        case Comparison(name, "!=", (value,)):
            parameter = known[name]
            sides = [
                kind(parameter, value)
                for kind, edge in (
                    (ForbiddenLessThanClause, parameter.lower),  # type: ignore[attr-defined]
                    (ForbiddenGreaterThanClause, parameter.upper),  # type: ignore[attr-defined]
                )
                if value != edge
            ]
            return sides[0] if len(sides) == 1 else ForbiddenOrConjunction(*sides)
        case Comparison(name, operator, (value,)):
            kind = {
                "==": ForbiddenEqualsClause,
                "<": ForbiddenLessThanClause,
                ">": ForbiddenGreaterThanClause,
            }[operator]
            return kind(known[name], value)
        case Relation(left, operator, right):
            relation = {
                "==": ForbiddenEqualsRelation,
                "<": ForbiddenLessThanRelation,
                ">": ForbiddenGreaterThanRelation,
            }[operator]
            return relation(known[left], known[right])
    raise AssertionError(f"{expression!r} is not simple")


class _Simplifier:
    """Reduces expressions to what ConfigSpace has, with values of the parameters' own types.

    No negations are left, comparisons that cannot hold become false, and all comparisons of finite
    parameters become "in". One that always holds stays: it says that the parameter is active.
    """

    def __init__(self, parameters: Mapping[str, Parameter], *, lenient: bool) -> None:
        self._parameters = parameters
        self._lenient = lenient

    def simplified(
        self, expression: Expression, *, negate: bool = False, relations: bool = False
    ) -> Expression:
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
                    kind,
                    [self.simplified(p, negate=negate, relations=relations) for p in parts],
                )
            case Relation():
                return self._relation(expression, negate, relations)
            case Comparison(name):
                parameter = self._parameters[name]
                if parameter.kind in ("integer", "real"):
                    return self._numeric(expression, parameter, negate)
                return self._finite(expression, parameter, negate)
        raise AssertionError(f"{expression!r} is no expression")

    def _relation(self, relation: Relation, negate: bool, relations: bool) -> Expression:
        left, right = relation.left, relation.right
        if not relations:
            raise ExpressionError(
                f"a condition cannot compare two parameters ({left} {relation.operator} {right}): "
                "ConfigSpace has no such condition"
            )
        for name in (left, right):
            if self._parameters[name].kind not in ("integer", "real"):
                raise ExpressionError(f"{left} {relation.operator} {right}: {name} is not a number")
        operator = NEGATED[relation.operator] if negate else relation.operator
        if operator == "!=":
            return Or((Relation(left, "<", right), Relation(left, ">", right)))
        if operator in ("<=", ">="):
            return Or((Relation(left, operator[0], right), Relation(left, "==", right)))
        return Relation(left, operator, right)

    def _finite(self, comparison: Comparison, parameter: Parameter, negate: bool) -> Expression:
        holds = self._holding(comparison, parameter)
        chosen = tuple(v for v in parameter.values if (v in holds) is not negate)
        return Comparison(parameter.name, "in", chosen) if chosen else False

    def never(self, name: str) -> Expression:
        """Return what no configuration fulfils: an active parameter with two values at once."""
        parameter = self._parameters[name]
        if parameter.kind in ("integer", "real"):
            ends = [_comparison(parameter, "==", bound) for bound in parameter.bounds]
        else:
            ends = [
                Comparison(name, "in", (v,)) for v in (parameter.values[0], parameter.values[-1])
            ]
        if ends[0] == ends[1]:
            return replace(ends[0], operator="!=")
        return And(tuple(ends))

    def _holding(self, comparison: Comparison, parameter: Parameter) -> set[Any]:
        """Return the values of a finite parameter for which the comparison holds."""
        if comparison.operator in ("in", "==", "!="):
            matched = {self._match(parameter, text) for text in comparison.values}
            matched.discard(None)
            if comparison.operator == "!=":
                return set(parameter.values) - matched
            return matched
        (text,) = comparison.values
        order: list[Any] = list(parameter.values)
        limit: float | None = None
        if parameter.kind == "ordinal":
            ranks: list[float] = [float(rank) for rank in range(len(order))]
            found = _find(parameter, text)
            limit = None if found is None else float(order.index(found))
        if limit is None:  # by their numbers, if they are numbers
            try:
                ranks, limit = [float(value) for value in order], float(text)
            except (TypeError, ValueError):
                raise ExpressionError(
                    f"{parameter.name} {comparison.operator} {text}: the values of "
                    f"{parameter.name} have no order"
                ) from None
        return {
            v
            for v, rank in zip(order, ranks, strict=True)
            if _OPERATIONS[comparison.operator](rank, limit)
        }

    def _match(self, parameter: Parameter, text: Any) -> Any:
        found = _find(parameter, text)
        if found is None and not self._lenient:
            listed = ", ".join(map(str, parameter.values[:20]))
            raise ExpressionError(f"{text!r} is no value of {parameter.name}, which has {listed}")
        return found

    def _numeric(self, comparison: Comparison, parameter: Parameter, negate: bool) -> Expression:
        numbers = [self._number(parameter, value) for value in comparison.values]
        if comparison.operator == "in":
            operator, kind = ("!=", And) if negate else ("==", Or)
            return joined(kind, [_bounded(parameter, operator, number) for number in numbers])
        operator = NEGATED[comparison.operator] if negate else comparison.operator
        return _bounded(parameter, operator, numbers[0])

    def _number(self, parameter: Parameter, value: Any) -> float:
        try:
            number = float(value)
        except (TypeError, ValueError):
            number = math.nan
        if math.isnan(number):
            raise ExpressionError(f"{parameter.name} is a number, which {value!r} is not")
        return number


_OPERATIONS = {
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


def _find(parameter: Parameter, text: Any) -> Any:
    """Return the value that a text means: the same text, or the same number."""
    for value in parameter.values:
        if value == text or str(value) == str(text):
            return value
    try:
        number = float(text)
    except (TypeError, ValueError):
        return None
    for value in parameter.values:
        try:
            if float(value) == number:
                return value
        except (TypeError, ValueError):
            continue
    return None


def _bounded(parameter: Parameter, operator: str, number: float) -> Expression:
    """Return a comparison of a number within its bounds, or what it always is."""
    lower, upper = parameter.bounds
    integer = parameter.kind == "integer"
    if operator in ("==", "!="):
        legal = lower <= number <= upper and (not integer or number.is_integer())
        if not legal:
            return operator == "!=" and _active(parameter)
        return _comparison(parameter, operator, number)
    if operator in ("<=", ">="):
        if integer:
            operator, number = _strict(operator, number)
        else:
            return joined(
                Or, [_bounded(parameter, operator[0], number), _bounded(parameter, "==", number)]
            )
    if operator == "<":
        number = float(math.ceil(number)) if integer and math.isfinite(number) else number
        inside, always = lower < number <= upper, number > upper
    else:
        number = float(math.floor(number)) if integer and math.isfinite(number) else number
        inside, always = lower <= number < upper, number < lower
    if inside:
        return _comparison(parameter, operator, number)
    return always and _active(parameter)


def _active(parameter: Parameter) -> Expression:
    """Return what holds for all values of a number, if it is active."""
    upper = parameter.bounds[1]
    if parameter.bounds[0] == upper:
        return _comparison(parameter, "==", upper)
    return Or((_comparison(parameter, "<", upper), _comparison(parameter, "==", upper)))


def _strict(operator: str, number: float) -> tuple[str, float]:
    if not math.isfinite(number):
        return operator[0], number
    return ("<", math.floor(number) + 1.0) if operator == "<=" else (">", math.ceil(number) - 1.0)


def _comparison(parameter: Parameter, operator: str, number: float) -> Comparison:
    value = int(number) if parameter.kind == "integer" else number
    return Comparison(parameter.name, operator, (value,))
