"""From ConfigSpace's conditions and clauses back to expressions."""

from __future__ import annotations

from typing import Any

from ConfigSpace import ConfigurationSpace

from acband_configspace.cli.spaces.expressions import (
    And,
    Comparison,
    Expression,
    Or,
    Relation,
    joined,
)

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
