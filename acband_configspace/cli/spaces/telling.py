"""From ConfigSpace's conditions and clauses back to expressions."""

from __future__ import annotations

from typing import Any

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
    ForbiddenClause,
    ForbiddenEqualsClause,
    ForbiddenInClause,
    ForbiddenOrConjunction,
    ForbiddenRelation,
)

from acband_configspace.cli.spaces.expressions import (
    And,
    Comparison,
    Expression,
    Or,
    Relation,
    joined,
)

_CONDITIONS = {
    EqualsCondition: "==",
    NotEqualsCondition: "!=",
    LessThanCondition: "<",
    GreaterThanCondition: ">",
}
#: By the classes' names: ConfigSpace gives the clauses no common way to say what they compare.
_CLAUSES = {
    "LessThanEquals": "<=",
    "GreaterThanEquals": ">=",
    "LessThan": "<",
    "GreaterThan": ">",
    "Equals": "==",
}


def conditions_of(space: ConfigurationSpace) -> list[tuple[str, Expression]]:
    """Return each child with its condition, in the order of the parameters."""
    by_child: dict[str, list[Expression]] = {}
    for condition in space.conditions:
        by_child.setdefault(condition.child.name, []).append(_condition(condition))
    order = {name: index for index, name in enumerate(space)}
    return sorted(
        ((child, joined(And, parts)) for child, parts in by_child.items()),
        key=lambda pair: order[pair[0]],
    )


def _condition(condition: Any) -> Expression:
    match condition:
        case AndConjunction():
            return joined(And, [_condition(part) for part in condition.components])
        case OrConjunction():
            return joined(Or, [_condition(part) for part in condition.components])
        case InCondition():
            return Comparison(condition.parent.name, "in", tuple(condition.values))
    for kind, operator in _CONDITIONS.items():
        if isinstance(condition, kind):
            return Comparison(condition.parent.name, operator, (condition.value,))
    raise ValueError(f"unknown kind of condition: {condition!r}")


def forbidden_of(space: ConfigurationSpace) -> list[Expression]:
    """Return the forbidden combinations."""
    return [_clause(clause) for clause in space.forbidden_clauses]


def _clause(clause: Any) -> Expression:
    match clause:
        case ForbiddenAndConjunction():
            return joined(And, [_clause(part) for part in clause.components])
        case ForbiddenOrConjunction():
            return joined(Or, [_clause(part) for part in clause.components])
        case ForbiddenInClause():
            return Comparison(clause.hyperparameter.name, "in", tuple(clause.values))
        case ForbiddenEqualsClause():
            return Comparison(clause.hyperparameter.name, "==", (clause.value,))
        case ForbiddenRelation():
            return Relation(clause.left.name, _operator(clause), clause.right.name)
        case ForbiddenClause():
            name, value = clause.hyperparameter.name, getattr(clause, "value", None)
            return Comparison(name, _operator(clause), (value,))
    raise ValueError(f"unknown kind of forbidden clause: {clause!r}")


def _operator(clause: Any) -> str:
    kind = type(clause).__name__
    for name, operator in _CLAUSES.items():
        if kind.startswith(f"Forbidden{name}"):
            return operator
    raise ValueError(f"unknown kind of forbidden clause: {clause!r}")
