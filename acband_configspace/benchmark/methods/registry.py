"""The methods by name: those of the paper's experiments, and those that can be stopped any time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from acband_configspace.benchmark.methods.acband import ACBand, AnytimeACBand
from acband_configspace.benchmark.methods.anytime import AnytimeMethod
from acband_configspace.benchmark.methods.halving import (
    AnytimeHalving,
    AnytimeHyperband,
    Hyperband,
    SuccessiveHalving,
)
from acband_configspace.benchmark.methods.method import Method
from acband_configspace.benchmark.methods.random_racing import RandomRacing, UniformRacing
from acband_configspace.benchmark.methods.roar import Roar
from acband_configspace.benchmark.methods.space import SpaceMethod


@dataclass(frozen=True)
class Setting:
    """What a row of the paper's tables is for."""

    alpha: float
    delta: float
    ks: Sequence[int]
    etas: Sequence[int]
    times: int = 1
    """AC-Band's budget in multiples of the table's instances."""


@dataclass(frozen=True)
class Entry:
    """How to make the variants of a method."""

    build: Callable[[Setting], Sequence[Method]]
    uses_alpha: bool = True
    """Whether the number of configurations follows from α; otherwise it runs once for all α."""


def _load(module: str, name: str) -> Any:
    # Imported when asked for: some need packages that are extras.
    return getattr(import_module(f"acband_configspace.benchmark.methods.{module}"), name)


def _pool(module: str, name: str, **fixed: Any) -> Callable[[Setting], Sequence[Method]]:
    return lambda setting: [_load(module, name)(alpha=setting.alpha, **fixed)]


def _caps(name: str, **fixed: Any) -> Callable[[Setting], Sequence[Method]]:
    # AC-Band's δ, the probability to fail, is ζ in that line of work.
    return lambda s: [_load("capsandruns", name)(alpha=s.alpha, zeta=s.delta, **fixed)]


def _for_each_k(make: Callable[..., Method], **fixed: Any) -> Callable[[Setting], Sequence[Method]]:
    return lambda s: [make(k=k, alpha=s.alpha, delta=s.delta, times=s.times, **fixed) for k in s.ks]


def _halving(**fixed: Any) -> Callable[[Setting], Sequence[Method]]:
    return lambda s: [
        SuccessiveHalving(eta=eta, alpha=s.alpha, delta=s.delta, **fixed) for eta in s.etas
    ]


METHODS: Mapping[str, Entry] = {
    "acband": Entry(_for_each_k(ACBand)),
    "one-epoch": Entry(_for_each_k(ACBand, n_epochs=1)),
    "hyperband": Entry(
        lambda s: [Hyperband(eta=eta, times=s.times) for eta in s.etas], uses_alpha=False
    ),
    "sh": Entry(_halving()),
    "sh-equal": Entry(_halving(equal_rounds=True)),
    "car": Entry(_caps("CapsAndRuns")),
    "car++": Entry(_caps("CapsAndRuns", improved=True)),
    "icar": Entry(_caps("ImpatientCapsAndRuns")),
    "icar-guess": Entry(_caps("ImpatientCapsAndRuns", guess_first=True)),
    "lab": Entry(_pool("leapsandbounds", "LeapsAndBounds")),
    "sp": Entry(_pool("procrastination", "StructuredProcrastination")),
    "spc": Entry(_pool("procrastination", "ProcrastinationWithConfidence")),
    "racing": Entry(_for_each_k(UniformRacing)),
}


def build(name: str, setting: Setting) -> Sequence[Method]:
    """Return the variants of a method."""
    if name not in METHODS:
        raise ValueError(f"methods must be some of {', '.join(METHODS)} but got {name!r}")
    return METHODS[name].build(setting)


#: Methods that search until a limit of CPU time or of trials, by their names on the command line.
ANYTIME_METHODS: Mapping[str, AnytimeMethod] = {
    "default": AnytimeACBand(),
    "paper": AnytimeACBand(preset="paper"),
    "roar": Roar(),
    "roar-capped": Roar(capped=True),
    "roar-one-order": Roar(one_order=True),
    "roar-capped-one-order": Roar(capped=True, one_order=True),
    "sh": AnytimeHalving(),
    "hyperband": AnytimeHyperband(),
    "random-racing": RandomRacing(),
}

#: Methods that search a space, on the surrogate of a recorded table, by their names.
SPACE_METHODS: Mapping[str, Callable[[], SpaceMethod]] = {
    "acband": lambda: _load("space_search", "ACBandOnSpace")(),
    "learned": lambda: _load("space_search", "ACBandOnSpace")("learned"),
    "roar-capped": lambda: _load("space_search", "OnSample")(Roar(capped=True)),
    "hyperband": lambda: _load("space_search", "OnSample")(AnytimeHyperband()),
    "smac-ac": lambda: _load("smac", "Smac")("ac"),
    "smac-ac-capped": lambda: _load("smac", "Smac")("ac", capped=True),
    "smac-hb": lambda: _load("smac", "Smac")("hyperband"),
    "irace": lambda: _load("irace", "Irace")(),
    "paramils": lambda: _load("paramils", "ParamILS")(),
    "gga": lambda: _load("gga", "GGA")(),
}
