"""Conditions and forbidden combinations as values, whatever syntax they were written in."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

#: What turns a comparison around when its two sides change places.
MIRRORED = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "==": "==", "!=": "!="}
#: What holds exactly when the comparison does not.
NEGATED = {"<": ">=", ">": "<=", "<=": ">", ">=": "<", "==": "!=", "!=": "=="}


@dataclass(frozen=True)
class Comparison:
    """A parameter beside one value, or with "in" beside several."""

    name: str
    operator: str
    """One of ``== != < <= > >= in``."""
    values: tuple[Any, ...]


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
