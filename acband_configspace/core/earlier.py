"""What results of earlier runs are worth: who of them should race again. Numbers only."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from acband_configspace.core.instances import InstanceKey

#: How often costs are divided up between configurations and instances.
SWEEPS = 20


def best_known(costs: Mapping[int, Mapping[Any, float]], most: int) -> list[int]:
    """Return the best configurations, at most so many, the best first.

    A cost is set beside what is usual on that instance with that seed; where nobody else met it, on
    the instance with any seed, or else anywhere. What is known from few instances is trusted less.
    Who has failed comes last.

    Parameters
    ----------
    costs : mapping
        The known costs of each configuration, by instance.
    most : int
        How many to return.

    Examples
    --------
    >>> best_known({1: {"a": 3.0, "b": 9.0}, 2: {"a": 2.0, "b": 8.0}, 3: {"b": 8.4}}, most=2)
    [2, 3]
    >>> best_known({1: {"a": 3.0}, 2: {"b": 1.0}}, most=1)
    [2]
    """
    met_by: dict[Hashable, set[int]] = {}
    for number, own in costs.items():
        for instance, cost in own.items():
            for place in _places(instance) if math.isfinite(cost) else ():
                met_by.setdefault(place, set()).add(number)
    shared = {place for place, met in met_by.items() if len(met) > 1}
    at = {
        number: [
            (next((place for place in _places(instance) if place in shared), None), cost)
            for instance, cost in own.items()
        ]
        for number, own in costs.items()
    }
    usual = _usual(at)
    above = {number: [cost - usual[place] for place, cost in own] for number, own in at.items()}
    finite = [value for values in above.values() for value in values if math.isfinite(value)]
    spread = float(np.std(finite)) if finite else 0.0

    def score(number: int) -> float:
        values = above[number]
        return sum(values) / len(values) + spread / math.sqrt(len(values)) if values else math.inf

    return sorted(costs, key=score)[:most]


def _usual(at: Mapping[int, Sequence[tuple[Hashable, float]]]) -> dict[Hashable, float]:
    """Return what it costs at each place whoever is neither good nor bad.

    Some places were met by the best alone. So what is known of who met it is taken out, again and
    again: cost = configuration + place + noise. What few costs say of a configuration counts less.
    """
    usual: dict[Hashable, float] = {place: 0.0 for own in at.values() for place, _ in own}
    worth = dict.fromkeys(at, 0.0)
    for _ in range(SWEEPS):
        found: dict[Hashable, list[float]] = {}
        for number, own in at.items():
            for place, cost in own:
                if math.isfinite(cost):
                    found.setdefault(place, []).append(cost - worth[number])
        usual.update({place: float(np.mean(c)) for place, c in found.items() if place is not None})
        for number, own in at.items():
            above = [cost - usual[place] for place, cost in own if math.isfinite(cost)]
            worth[number] = math.fsum(above) / (len(above) + 1)
    return usual


def _places(instance: Any) -> tuple[Hashable, ...]:
    """Return where a cost may be compared, the nearest first: here, with any seed, anywhere."""
    named = (("name", instance.instance),) if isinstance(instance, InstanceKey) else ()
    return ("key", instance), *named, ("all",)
