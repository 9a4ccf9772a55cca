"""From parameters and expressions to a ConfigSpace and back; errors name the line at fault."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any

import ConfigSpace
import numpy as np
from ConfigSpace import ConfigurationSpace

from acband_configspace.cli.errors import InputError, Place, located, suggestion
from acband_configspace.cli.files import Line
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
    child: str = ""


@dataclass
class Draft:
    """A space while its file is being read: expressions are texts until all names are known."""

    parameters: dict[str, Parameter] = field(default_factory=dict)
    conditions: list[tuple[str, Line]] = field(default_factory=list)
    """Each with its child."""
    forbidden: list[Line] = field(default_factory=list)

    def add(self, parameter: Parameter) -> None:
        """Add a parameter, which must be described once."""
        name, before = parameter.name, self.parameters.get(parameter.name)
        if before is not None:
            line = before.place.line
            raise InputError(parameter.place, f"{name} is already described in line {line}")
        self.parameters[name] = parameter

    def build(
        self,
        source: Path | str,
        parse: Callable[[str], Expression],
        *,
        free_defaults: bool = False,
        as_in_r: bool = False,
    ) -> ConfigurationSpace:
        """Return the space: ``parse`` reads the expressions, the rest is :func:`build_space`'s."""
        if not self.parameters:
            raise InputError(Place(source), "describes no parameter")
        for child, line in self.conditions:
            if child not in self.parameters:
                hint = suggestion(child, self.parameters)
                raise InputError(line.place, f"{child!r} is not a parameter of this file{hint}")

        def read(line: Line, child: str = "") -> Placed:
            with located(line.place, ExpressionError):
                return Placed(parse(line.text), line.place, child)

        return build_space(
            self.parameters,
            [read(line, child) for child, line in self.conditions],
            [read(line) for line in self.forbidden],
            free_defaults=free_defaults,
            as_in_r=as_in_r,
        )


def build_space(
    parameters: Mapping[str, Parameter],
    conditions: Sequence[Placed] = (),
    forbidden: Sequence[Placed] = (),
    *,
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
    hyperparameters: dict[str, AnyHyperparameter] = {}
    for name, parameter in parameters.items():
        with located(parameter.place, ValueError, TypeError, OverflowError):
            hyperparameters[name] = parameter.to_hyperparameter()
    _refuse_cycle(conditions)  # neither ConfigSpace nor the simplifier takes one
    active: dict[str, Expression] = {}
    for one in conditions:
        active[one.child] = joined(And, [active.get(one.child, True), one.expression])
    simple = Simplifier(parameters, active, as_in_r=as_in_r)
    added_conditions = list(_conditions(conditions, hyperparameters, simple))
    clauses = [
        (clause, one.place)
        for one in forbidden
        for clause in _clauses(one, hyperparameters, simple)
    ]
    space = ConfigurationSpace()
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
        retold = {n: replace(p, default=chosen.get(n, p.default)) for n, p in parameters.items()}
        return build_space(retold, conditions, forbidden, as_in_r=as_in_r)
    space.add(*(clause for clause, _ in clauses))
    return space


def _refuse_cycle(conditions: Sequence[Placed]) -> None:
    parents: dict[str, set[str]] = {}
    for one in conditions:
        parents.setdefault(one.child, set()).update(names_in(one.expression))
    try:
        TopologicalSorter(parents).prepare()
    except CycleError as error:
        cycle = error.args[1]
        place = next(one.place for one in conditions if one.child in cycle)
        shown = " → ".join(cycle)
        raise InputError(place, f"the conditions form a cycle: {shown}") from None


def _allowed_values(space: ConfigurationSpace, clauses: list[Any]) -> dict[str, Any] | None:
    for seed in range(10):
        space.seed(seed)
        for configuration in space.sample_configuration(TRIES // 10):
            values = dict(configuration)
            if not any(clause.is_forbidden_value(values) for clause in clauses):
                return {n: v.item() if isinstance(v, np.generic) else v for n, v in values.items()}
    return None


def _conditions(
    conditions: Sequence[Placed], known: Mapping[str, AnyHyperparameter], simple: Simplifier
) -> Iterator[Any]:
    by_child: dict[str, list[Expression]] = {}
    for one in conditions:
        with located(one.place, ExpressionError):
            expression = simple.simplified(one.expression)
            if expression is False:
                expression = _never(one, simple)
        by_child.setdefault(one.child, []).append(expression)
    for child, expressions in by_child.items():
        whole = joined(And, expressions)  # several lines about one child must all hold
        if whole is not True:
            yield _built(whole, known, _CONDITIONS, known[child])


def _never(one: Placed, simple: Simplifier) -> Expression:
    """Return a condition that never holds: it needs a parameter that it speaks of."""
    name = next(names_in(one.expression), None)
    if name is None:
        raise ExpressionError(f"{one.child} is never active: leave it out")
    return simple.never(name)


def _clauses(
    one: Placed, known: Mapping[str, AnyHyperparameter], simple: Simplifier
) -> Iterator[Any]:
    with located(one.place, ExpressionError):
        expression = simple.simplified(one.expression, relations=True)
    if expression is True:
        raise InputError(one.place, "this forbids every configuration")
    if expression is not False:
        for part in expression.parts if isinstance(expression, Or) else (expression,):
            yield _built(part, known, _CLAUSES)


def _built(
    expression: Expression,
    known: Mapping[str, AnyHyperparameter],
    kinds: Mapping[str, Any],
    *child: AnyHyperparameter,
) -> Any:
    """Return an expression in ConfigSpace's own classes: of a condition, with its child."""
    match expression:
        case And(parts) | Or(parts):
            built = [_built(part, known, kinds, *child) for part in parts]
            return kinds["and" if isinstance(expression, And) else "or"](*built)
        case Comparison(name, "in", values) if len(values) > 1:
            return kinds["in"](*child, known[name], list(values))
        case Comparison(name, operator, (value,)):
            return kinds["==" if operator == "in" else operator](*child, known[name], value)
        case Relation(left, operator, right):
            return kinds[f"two {operator}"](known[left], known[right])
    raise AssertionError(f"{expression!r} is not simple")


_CONDITIONS: dict[str, Any] = {
    "and": ConfigSpace.AndConjunction,
    "or": ConfigSpace.OrConjunction,
    "in": ConfigSpace.InCondition,
    "==": ConfigSpace.EqualsCondition,
    "!=": ConfigSpace.NotEqualsCondition,
    "<": ConfigSpace.LessThanCondition,
    ">": ConfigSpace.GreaterThanCondition,
}
#: ConfigSpace's "or equal" clauses hold for parameters that are not active; these do not.
_CLAUSES: dict[str, Any] = {
    "and": ConfigSpace.ForbiddenAndConjunction,
    "or": ConfigSpace.ForbiddenOrConjunction,
    "in": ConfigSpace.ForbiddenInClause,
    "==": ConfigSpace.ForbiddenEqualsClause,
    "<": ConfigSpace.ForbiddenLessThanClause,
    ">": ConfigSpace.ForbiddenGreaterThanClause,
    "two ==": ConfigSpace.ForbiddenEqualsRelation,
    "two <": ConfigSpace.ForbiddenLessThanRelation,
    "two >": ConfigSpace.ForbiddenGreaterThanRelation,
}

# --- back to expressions ----------------------------------------------------------------------

#: All that a space may have.
_OPERATORS: dict[type[Any], str] = {
    **{kind: operator for kinds in (_CONDITIONS, _CLAUSES) for operator, kind in kinds.items()},
    ConfigSpace.ForbiddenLessThanEqualsClause: "<=",
    ConfigSpace.ForbiddenGreaterThanEqualsClause: ">=",
    ConfigSpace.ForbiddenLessThanEqualsRelation: "two <=",
    ConfigSpace.ForbiddenGreaterThanEqualsRelation: "two >=",
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
    match _OPERATORS.get(type(item), "").split():
        case [("and" | "or") as word]:
            parts = [_told(part) for part in item.components]
            return joined(And if word == "and" else Or, parts)
        case ["two", operator]:
            return Relation(item.left.name, operator, item.right.name)
        case [operator]:
            parameter = item.parent if hasattr(item, "parent") else item.hyperparameter
            values = tuple(item.values) if operator == "in" else (item.value,)
            return Comparison(parameter.name, operator, values)
    raise ValueError(f"unknown kind of condition or forbidden clause: {item!r}")
