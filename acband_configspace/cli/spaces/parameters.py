"""A parameter as all formats know it, and what their writers hand back."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np
from ConfigSpace.hyperparameters import (
    CategoricalHyperparameter,
    Constant,
    Hyperparameter,
    IntegerHyperparameter,
    NumericalHyperparameter,
    OrdinalHyperparameter,
    UniformFloatHyperparameter,
    UniformIntegerHyperparameter,
)

from acband_configspace.cli.errors import COMMAND_LINE, Place

AnyHyperparameter = Hyperparameter[Any, Any]
Kind = Literal["categorical", "ordinal", "integer", "real"]
KINDS: tuple[Kind, ...] = get_args(Kind)

#: Under this name a hyperparameter's ``meta`` keeps how irace passes it.
SWITCH = "switch"


@dataclass(frozen=True)
class Parameter:
    """One parameter.

    ``values`` are a categorical's or ordinal's; a number has ``bounds`` instead. ``default`` is
    None where the format has no defaults.
    """

    name: str
    kind: Kind
    values: tuple[Any, ...] = ()
    bounds: tuple[float, float] = (0.0, 1.0)
    default: Any = None
    log: bool = False
    switch: str | None = None
    """What irace writes before the value."""
    place: Place = field(default=COMMAND_LINE, compare=False, repr=False)
    """Where it is described."""

    @property
    def is_number(self) -> bool:
        """Whether it has bounds instead of values."""
        return self.kind in ("integer", "real")

    def to_hyperparameter(self) -> AnyHyperparameter:
        """Return it as ConfigSpace has it.

        Raises
        ------
        ValueError
            If the values, bounds and default do not go together; the message says how.
        """
        _must(bool(self.name), "a parameter must have a name")
        meta: dict[Hashable, Any] | None = None if self.switch is None else {SWITCH: self.switch}
        if self.is_number:
            self._check_bounds()
            return self._number(meta)
        self._check_values()
        default = self.values[0] if self.default is None else self.default
        if self.kind == "ordinal":
            return OrdinalHyperparameter(self.name, self.values, default_value=default, meta=meta)
        return CategoricalHyperparameter(self.name, self.values, default_value=default, meta=meta)

    def _number(self, meta: dict[Hashable, Any] | None) -> AnyHyperparameter:
        lower, upper = self.bounds
        cast = int if self.kind == "integer" else float
        if lower == upper:
            return Constant(self.name, cast(lower), meta=meta)
        make = (
            UniformIntegerHyperparameter if self.kind == "integer" else UniformFloatHyperparameter
        )
        return make(
            self.name,
            lower=cast(lower),
            upper=cast(upper),
            default_value=None if self.default is None else cast(self.default),
            log=self.log,
            meta=meta,
        )

    def _check_values(self) -> None:
        name, values, default = self.name, self.values, self.default
        _must(bool(values), f"{name} must have at least one value")
        for value, times in Counter(values).items():
            _must(times == 1, f"{name} lists the value {value!r} twice")
        listed = f"one of {', '.join(map(str, values))}"
        known = default is None or default in values
        _must(known, f"the default of {name} must be {listed} but is {default}")

    def _check_bounds(self) -> None:
        (lower, upper), default, integer = self.bounds, self.default, self.kind == "integer"
        bounds, given = f"the bounds of {self.name} must be", f"but are {lower:g} and {upper:g}"
        _must(math.isfinite(lower) and math.isfinite(upper), f"{bounds} finite")
        _must(lower <= upper, f"{bounds} in order {given}")
        whole = not integer or all(float(bound).is_integer() for bound in self.bounds)
        _must(whole, f"{bounds} whole numbers {given}")
        positive = not self.log or lower > 0
        _must(positive, f"{bounds} positive on a log scale but start at {lower:g}")
        if default is not None:
            what, given = f"the default of {self.name} must", f"but is {default:g}"
            _must(lower <= default <= upper, f"{what} lie in [{lower:g}, {upper:g}] {given}")
            _must(not integer or float(default).is_integer(), f"{what} be a whole number {given}")


def _must(holds: bool, message: str) -> None:
    if not holds:
        raise ValueError(message)


def parameter_of(hyperparameter: AnyHyperparameter) -> Parameter:
    """Return what the text formats can say about one of ConfigSpace's hyperparameters.

    A normal or beta distribution becomes its range, weights are left out: see :func:`lost`.
    """
    name = hyperparameter.name
    common: dict[str, Any] = {
        "default": hyperparameter.default_value,
        "switch": (hyperparameter.meta or {}).get(SWITCH),
    }
    match hyperparameter:
        case CategoricalHyperparameter():
            return Parameter(name, "categorical", tuple(hyperparameter.choices), **common)
        case OrdinalHyperparameter():
            return Parameter(name, "ordinal", tuple(hyperparameter.sequence), **common)
        case Constant():
            return Parameter(name, "categorical", (hyperparameter.value,), **common)
        case NumericalHyperparameter():
            kind: Kind = "integer" if isinstance(hyperparameter, IntegerHyperparameter) else "real"
            common["log"] = bool(getattr(hyperparameter, "log", False))
            bounds = (hyperparameter.lower, hyperparameter.upper)
            return Parameter(name, kind, bounds=bounds, **common)
    raise ValueError(f"{name} is a {type(hyperparameter).__name__}, which no file format has")


def lost(hyperparameter: AnyHyperparameter) -> str | None:
    """Return what the text formats cannot say of a hyperparameter, if anything."""
    if getattr(hyperparameter, "weights", None) is not None:
        return f"{hyperparameter.name}: the weights of its values"
    uniform = (UniformFloatHyperparameter, UniformIntegerHyperparameter)
    if isinstance(hyperparameter, NumericalHyperparameter) and not isinstance(
        hyperparameter, uniform
    ):
        kind = type(hyperparameter).__name__.replace("Hyperparameter", "")
        return f"{hyperparameter.name}: its distribution ({kind})"
    return None


def as_number(value: Any) -> float:
    """Return a value or its text as a number, NaN if it is none."""
    try:
        return float(value)
    except (TypeError, ValueError):
        return math.nan


def number_text(value: float, *, integer: bool = False) -> str:
    """Return a number in the shortest form that is read back as the same one."""
    if integer or (float(value).is_integer() and abs(value) < 1e15):
        return str(int(value))
    return repr(float(value))


def value_text(value: object) -> str:
    """Return a value as files and command lines have it."""
    value = value.item() if isinstance(value, np.generic) else value
    return number_text(value) if isinstance(value, float) else str(value)


@dataclass(frozen=True)
class Written:
    """A space as the text of a file."""

    text: str
    notes: tuple[str, ...] = ()
    """What the format does not keep of the space, for people to read."""
    forbidden: str = ""
    """What irace has in a file of its own: the combinations that are forbidden."""


def refuse(problems: Sequence[str], format_name: str) -> None:
    """Raise an error that lists what a format cannot express, if there is anything."""
    if problems:
        listing = "".join(f"\n  {problem}" for problem in problems)
        raise ValueError(f"cannot be written as {format_name}:{listing}")
