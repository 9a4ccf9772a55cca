"""What results of earlier runs are worth: who of them should race again. Numbers only."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np

from acband_configspace.core.instances import InstanceKey


def best_known(costs: Mapping[int, Mapping[Any, float]], most: int) -> list[int]:
    """Return the best configurations, at most so many, the best first.

    A cost is set beside the mean cost of all who met that instance with that seed; where nobody
    else did, of all who met the instance, or else of all costs. What is known from few instances is
    trusted less. Who has failed comes last.

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
    known: dict[Hashable, list[float]] = {}
    met_by: dict[Hashable, set[int]] = {}
    for number, own in costs.items():
        for instance, cost in own.items():
            for place in _places(instance) if math.isfinite(cost) else ():
                known.setdefault(place, []).append(cost)
                met_by.setdefault(place, set()).add(number)
    means = {place: float(np.mean(known[place])) for place, met in met_by.items() if len(met) > 1}

    def usual(instance: Any) -> float:
        return next((means[place] for place in _places(instance) if place in means), 0.0)

    above = {
        number: [cost - usual(instance) for instance, cost in own.items()]
        for number, own in costs.items()
    }
    finite = [value for values in above.values() for value in values if math.isfinite(value)]
    spread = float(np.std(finite)) if finite else 0.0

    def score(number: int) -> float:
        values = above[number]
        return sum(values) / len(values) + spread / math.sqrt(len(values)) if values else math.inf

    return sorted(costs, key=score)[:most]


def _places(instance: Any) -> tuple[Hashable, ...]:
    """Return where a cost may be compared, the nearest first: here, with any seed, anywhere."""
    named = (("name", instance.instance),) if isinstance(instance, InstanceKey) else ()
    return ("key", instance), *named, ("all",)
