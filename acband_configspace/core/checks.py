"""Checks at the door: each raises an error that names the argument, its bound and what it got."""

from __future__ import annotations

import operator
from typing import SupportsIndex


def whole_number(name: str, value: SupportsIndex, *, at_least: int) -> int:
    """Return ``value`` as an int, refusing fractions, booleans and what is below ``at_least``."""
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be a whole number but got {value!r}") from None
    if isinstance(value, bool):
        raise TypeError(f"{name} must be a whole number but got {value!r}")
    if number < at_least:
        raise ValueError(f"{name} must be at least {at_least} but got {number}")
    return number


def probability(name: str, value: float) -> float:
    """Return ``value`` as a float strictly between 0 and 1."""
    number = real_number(name, value)
    if not 0.0 < number < 1.0:
        raise ValueError(f"{name} must lie strictly between 0 and 1 but got {value!r}")
    return number


def real_number(name: str, value: float) -> float:
    """Return ``value`` as a float, refusing what is not a number."""
    if isinstance(value, (bool, str)):
        raise TypeError(f"{name} must be a number but got {value!r}")
    try:
        return float(value)
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be a number but got {value!r}") from None
