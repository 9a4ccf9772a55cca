"""What results of earlier runs are worth: who of them should race again. Numbers only."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np


def best_known(costs: Mapping[int, Mapping[Any, float]], most: int) -> list[int]:
    """Return the best configurations, at most so many, the best first.

    A cost is set beside the mean cost of all who met that instance; what is known from few
    instances is trusted less. Who has failed comes last.

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
    """
    by_instance: dict[Hashable, list[float]] = {}
    for own in costs.values():
        for instance, cost in own.items():
            if math.isfinite(cost):
                by_instance.setdefault(instance, []).append(cost)
    means = {instance: float(np.mean(known)) for instance, known in by_instance.items()}
    above = {
        number: [cost - means.get(instance, 0.0) for instance, cost in own.items()]
        for number, own in costs.items()
    }
    finite = [value for values in above.values() for value in values if math.isfinite(value)]
    spread = float(np.std(finite)) if finite else 0.0

    def score(number: int) -> float:
        values = above[number]
        return sum(values) / len(values) + spread / math.sqrt(len(values)) if values else math.inf

    return sorted(costs, key=score)[:most]
