"""The methods by their names on the command line: a new one is its module, and a line here.

``METHODS`` are those of the paper's experiments; ``ANYTIME_METHODS`` search a table until a limit
of CPU time or of trials; ``SPACE_METHODS`` search a space, on the surrogate of a recorded table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any

from acband_configspace.benchmark.methods.acband import ACBand, ACBandOnSpace, AnytimeACBand
from acband_configspace.benchmark.methods.gga import GGA
from acband_configspace.benchmark.methods.halving import (
    AnytimeHalving,
    AnytimeHyperband,
    Hyperband,
    SuccessiveHalving,
)
from acband_configspace.benchmark.methods.irace import Irace
from acband_configspace.benchmark.methods.method import AnytimeMethod, Method
from acband_configspace.benchmark.methods.paramils import ParamILS
from acband_configspace.benchmark.methods.random_racing import RandomRacing, UniformRacing
from acband_configspace.benchmark.methods.roar import Roar
from acband_configspace.benchmark.methods.smac import Smac
from acband_configspace.benchmark.methods.space import OnSample, SpaceMethod


@dataclass(frozen=True)
class Setting:
    """What a row of the paper's tables is for."""

    alpha: float
    delta: float
    ks: Sequence[int]
    etas: Sequence[int]
    times: int = 1
    """AC-Band's budget in multiples of the table's instances."""


Build = Callable[[Setting], Sequence[Method]]


def _for_alpha(module: str, name: str, **options: Any) -> Build:
    def build(setting: Setting) -> Sequence[Method]:
        # Only now: numba takes a second to import.
        home = import_module(f"acband_configspace.benchmark.methods.{module}")
        return [getattr(home, name)(alpha=setting.alpha, **options)]

    return build


def _caps(name: str, **options: Any) -> Build:
    # AC-Band's δ, the probability to fail, is ζ in that line of work.
    return lambda s: _for_alpha("capsandruns", name, zeta=s.delta, **options)(s)


def _for_each_k(make: Callable[..., Method]) -> Build:
    return lambda s: [make(k=k, alpha=s.alpha, delta=s.delta, times=s.times) for k in s.ks]


def _for_each_eta(make: Callable[..., Method]) -> Build:
    return lambda s: [make(eta=eta, alpha=s.alpha, delta=s.delta) for eta in s.etas]


METHODS: Mapping[str, Build] = {
    "acband": _for_each_k(ACBand),
    "one-epoch": _for_each_k(partial(ACBand, n_epochs=1)),
    "hyperband": lambda s: [Hyperband(eta=eta, times=s.times) for eta in s.etas],
    "sh": _for_each_eta(SuccessiveHalving),
    "sh-equal": _for_each_eta(partial(SuccessiveHalving, equal_rounds=True)),
    "car": _caps("CapsAndRuns"),
    "car++": _caps("CapsAndRuns", improved=True),
    "icar": _caps("ImpatientCapsAndRuns"),
    "icar-guess": _caps("ImpatientCapsAndRuns", guess_first=True),
    "lab": _for_alpha("leapsandbounds", "LeapsAndBounds"),
    "sp": _for_alpha("procrastination", "StructuredProcrastination"),
    "spc": _for_alpha("procrastination", "ProcrastinationWithConfidence"),
    "racing": _for_each_k(UniformRacing),
}

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

SPACE_METHODS: Mapping[str, SpaceMethod] = {
    "acband": ACBandOnSpace(),
    "learned": ACBandOnSpace("learned"),
    "roar-capped": OnSample(Roar(capped=True)),
    "hyperband": OnSample(AnytimeHyperband()),
    "smac-ac": Smac("ac"),
    "smac-ac-capped": Smac("ac", capped=True),
    "smac-hb": Smac("hyperband"),
    "irace": Irace(),
    "paramils": ParamILS(),
    "gga": GGA(),
}


def build(name: str, setting: Setting) -> Sequence[Method]:
    """Return the variants of a method of the paper's experiments."""
    if name not in METHODS:
        raise ValueError(f"methods must be some of {', '.join(METHODS)} but got {name!r}")
    return METHODS[name](setting)
