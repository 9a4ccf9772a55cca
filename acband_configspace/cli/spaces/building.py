"""From parameters and expressions to a ConfigSpace and back; errors name the line at fault."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from graphlib import CycleError, TopologicalSorter
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

from acband_configspace.cli.errors import InputError, Place
from acband_configspace.cli.spaces.expressions import (
    And,
    Comparison,
    Expression,
    ExpressionError,
    Or,
    Relation,
    Simplifier,
    joined,
    names_in,
)
from acband_configspace.cli.spaces.parameters import AnyHyperparameter, Parameter

#: How many random configurations are tried to find one that is not forbidden.
TRIES = 2_000


@dataclass(frozen=True)
class Placed:
    """A condition on ``child``, or a forbidden combination, and its place."""

    expression: Expression
    place: Place
    child: str | None = None


def placed(parse: Callable[[], Expression], place: Place, child: str | None = None) -> Placed:
    """Return an expression with its place, which an error about it names."""
    try:
        return Placed(parse(), place, child)
    except ExpressionError as error:
        raise InputError(place, str(error)) from None


Parameters = dict[str, tuple[Parameter, Place]]
"""By their names, with their places."""


def add_parameter(parameters: Parameters, parameter: Parameter, place: Place) -> None:
    """Add a parameter, which must be described once."""
    if parameter.name in parameters:
        before = parameters[parameter.name][1].line
        raise InputError(place, f"{parameter.name} is described in line {before} already")
    parameters[parameter.name] = parameter, place


def build_space(
    parameters: Parameters,
    conditions: Sequence[Placed] = (),
    forbidden: Sequence[Placed] = (),
    *,
    name: str | None = None,
    free_defaults: bool = False,
    as_in_r: bool = False,
) -> ConfigurationSpace:
    """Return the space, all added at once: ConfigSpace rebuilds its tables with each addition.

    Parameters
    ----------
    free_defaults : bool
        The format has no defaults, so that others are chosen if the middle of everything is
        forbidden.
    as_in_r : bool
        Conditions mean what they mean in R: see :class:`.Simplifier`.
    """
    known = {name: parameter for name, (parameter, _) in parameters.items()}
    hyperparameters = {
        name: _with_place(parameter, place) for name, (parameter, place) in parameters.items()
    }
    active: dict[str, Expression] = {}
    for one in conditions:
        assert one.child is not None
        active[one.child] = joined(And, [active.get(one.child, True), one.expression])
    simple = Simplifier(known, active, as_in_r=as_in_r)
    added_conditions = _conditions(conditions, hyperparameters, simple)
    clauses = [
        (clause, one.place)
        for one in forbidden
        for clause in _clauses(one, hyperparameters, simple)
    ]
    _refuse_cycle(conditions)
    space = ConfigurationSpace(name=name)
    space.add(*hyperparameters.values(), *added_conditions)
    if not clauses:
        return space
    default = dict(space.get_default_configuration())
    where = next((place for clause, place in clauses if clause.is_forbidden_value(default)), None)
    if where is not None:
        chosen = _allowed_values(space, [c for c, _ in clauses]) if free_defaults else None
        if chosen is None:
            which = "nearly all configurations" if free_defaults else "the default configuration"
            raise InputError(where, f"this forbids {which}")
        retold = {
            n: (replace(p, default=chosen.get(n, p.default)), place)
            for n, (p, place) in parameters.items()
        }
        return build_space(retold, conditions, forbidden, name=name, as_in_r=as_in_r)
    space.add(*(clause for clause, _ in clauses))
    return space


def _refuse_cycle(conditions: Sequence[Placed]) -> None:
    parents: dict[str, set[str]] = {}
    for one in conditions:
        parents.setdefault(str(one.child), set()).update(names_in(one.expression))
    try:
        TopologicalSorter(parents).prepare()
    except CycleError as error:
        cycle = error.args[1]
        place = next(one.place for one in conditions if one.child in cycle)
        shown = " → ".join(cycle)
        raise InputError(place, f"the conditions form a cycle: {shown}") from None


def _with_place(parameter: Parameter, place: Place) -> AnyHyperparameter:
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
    conditions: Iterable[Placed],
    hyperparameters: Mapping[str, AnyHyperparameter],
    simple: Simplifier,
) -> list[Any]:
    by_child: dict[str, list[Expression]] = {}
    for one in conditions:
        assert one.child is not None
        try:
            expression = simple.simplified(one.expression)
            if expression is False:
                expression = simple.never(next(names_in(one.expression)))
        except ExpressionError as error:
            raise InputError(one.place, str(error)) from None
        by_child.setdefault(one.child, []).append(expression)
    added = []
    for child, expressions in by_child.items():
        whole = joined(And, expressions)  # several lines about one child must all hold
        if whole is not True:
            added.append(_built(whole, hyperparameters, _CONDITIONS, _made(hyperparameters[child])))
    return added


def _clauses(one: Placed, known: Mapping[str, AnyHyperparameter], simple: Simplifier) -> list[Any]:
    try:
        expression = simple.simplified(one.expression, relations=True)
        if expression is True:
            raise ExpressionError("this forbids every configuration")
    except ExpressionError as error:
        raise InputError(one.place, str(error)) from None
    if expression is False:
        return []
    parts = expression.parts if isinstance(expression, Or) else (expression,)
    return [_built(part, known, _CLAUSES, lambda kind, *given: kind(*given)) for part in parts]


def _made(child: AnyHyperparameter) -> Callable[..., Any]:
    return lambda kind, *given: kind(child, *given)


def _built(
    expression: Expression,
    known: Mapping[str, AnyHyperparameter],
    kinds: Mapping[str, Any],
    make: Callable[..., Any],
) -> Any:
    """Return an expression in ConfigSpace's own classes."""
    match expression:
        case And(parts) | Or(parts):
            built = [_built(part, known, kinds, make) for part in parts]
            return kinds["and" if isinstance(expression, And) else "or"](*built)
        case Comparison(name, "in", values) if len(values) > 1:
            return make(kinds["in"], known[name], list(values))
        case Comparison(name, operator, (value,)):
            return make(kinds["==" if operator == "in" else operator], known[name], value)
        case Relation(left, operator, right):
            return kinds[f"two {operator}"](known[left], known[right])
    raise AssertionError(f"{expression!r} is not simple")


_CONDITIONS: dict[str, Any] = {
    "and": AndConjunction,
    "or": OrConjunction,
    "in": InCondition,
    "==": EqualsCondition,
    "!=": NotEqualsCondition,
    "<": LessThanCondition,
    ">": GreaterThanCondition,
}
#: ConfigSpace's "or equal" clauses hold for parameters that are not active; these do not.
_CLAUSES: dict[str, Any] = {
    "and": ForbiddenAndConjunction,
    "or": ForbiddenOrConjunction,
    "in": ForbiddenInClause,
    "==": ForbiddenEqualsClause,
    "<": ForbiddenLessThanClause,
    ">": ForbiddenGreaterThanClause,
    "two ==": ForbiddenEqualsRelation,
    "two <": ForbiddenLessThanRelation,
    "two >": ForbiddenGreaterThanRelation,
}

# --- back to expressions ----------------------------------------------------------------------

#: By the ends of the classes' names: ConfigSpace has no common way to say what they compare.
_OPERATORS = {
    "NotEquals": "!=",
    "LessThanEquals": "<=",
    "GreaterThanEquals": ">=",
    "LessThan": "<",
    "GreaterThan": ">",
    "Equals": "==",
    "In": "in",
}


def conditions_of(space: ConfigurationSpace) -> list[tuple[str, Expression]]:
    """Return each child with its condition, in the order of the parameters."""
    by_child: dict[str, list[Expression]] = {}
    for condition in space.conditions:
        by_child.setdefault(condition.child.name, []).append(_told(condition))
    order = {name: index for index, name in enumerate(space)}
    return sorted(
        ((child, joined(And, parts)) for child, parts in by_child.items()),
        key=lambda pair: order[pair[0]],
    )


def forbidden_of(space: ConfigurationSpace) -> list[Expression]:
    """Return the forbidden combinations."""
    return [_told(clause) for clause in space.forbidden_clauses]


def _told(item: Any) -> Expression:
    """Return what a condition or a forbidden clause says."""
    kind = type(item).__name__.removeprefix("Forbidden")
    if kind in ("AndConjunction", "OrConjunction"):
        parts = [_told(part) for part in item.components]
        return joined(And if kind.startswith("And") else Or, parts)
    name = kind.removesuffix("Condition").removesuffix("Clause").removesuffix("Relation")
    if name not in _OPERATORS:
        raise ValueError(f"unknown kind of condition or forbidden clause: {item!r}")
    operator = _OPERATORS[name]
    if kind.endswith("Relation"):
        return Relation(item.left.name, operator, item.right.name)
    parameter = item.parent if kind.endswith("Condition") else item.hyperparameter
    values = tuple(item.values) if operator == "in" else (item.value,)
    return Comparison(parameter.name, operator, values)
