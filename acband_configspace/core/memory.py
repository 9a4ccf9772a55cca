"""What is known of configurations on instances. Numbers only."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from acband_configspace.core.statistics import Floats


class Total(NamedTuple):
    """What a configuration's runs came to in sum: the fewer failures, then the less cost."""

    n_failed: float
    """Runs whose cost is infinite; infinity if a run is not known."""
    cost: float
    """Of the other runs."""


#: Worse than all that is known.
UNKNOWN = Total(math.inf, math.inf)


class Memory:
    """The costs that runs came to: a configuration, an instance, a cost.

    Of a run that was stopped no cost is known, only that it exceeds a bound. A run that failed
    has a cost, but has not finished.
    """

    def __init__(self) -> None:
        self._costs: dict[int, dict[int, float]] = {}
        self._failed: set[tuple[int, int]] = set()
        self._bounds: dict[int, dict[int, float]] = {}

    def add(self, configuration: int, instance: int, cost: float, *, finished: bool = True) -> None:
        """Take note of a cost."""
        self._costs.setdefault(configuration, {})[instance] = cost
        if not finished:
            self._failed.add((configuration, instance))

    def add_bound(self, configuration: int, instance: int, bound: float) -> None:
        """Take note of a cost that is exceeded."""
        known = self._bounds.setdefault(configuration, {})
        known[instance] = max(bound, known.get(instance, -math.inf))

    def bound(self, configuration: int, instance: int) -> float:
        """Return what a run's cost is known to exceed."""
        return self._bounds.get(configuration, {}).get(instance, -math.inf)

    def bounds(self, configuration: int) -> dict[int, float]:
        """Return what a configuration's costs are known to exceed, by instance."""
        return dict(self._bounds.get(configuration, {}))

    def cost(self, configuration: int, instance: int) -> float | None:
        """Return what a run came to, None if that is not known."""
        return self._costs.get(configuration, {}).get(instance)

    def costs(self, configuration: int) -> dict[int, float]:
        """Return the known costs of a configuration by instance."""
        return dict(self._costs.get(configuration, {}))

    def finishing_cost(self, configuration: int, instance: int) -> float:
        """Return what a run came to that finished; infinity if it did not, or is not known."""
        cost = self.cost(configuration, instance)
        return math.inf if cost is None or (configuration, instance) in self._failed else cost

    def met(self, configuration: int) -> list[int]:
        """Return the instances whose costs are known, in the order in which they became so."""
        return list(self._costs.get(configuration, {}))

    def n_met(self, configuration: int) -> int:
        """Return on how many instances the cost is known."""
        return len(self._costs.get(configuration, {}))

    def knows_all(self, configuration: int, instances: Iterable[int]) -> bool:
        """Return whether a configuration has met all these instances."""
        met = self._costs.get(configuration, {})
        return all(map(met.__contains__, instances))

    def n_unknown(self, configurations: Iterable[int], instances: Sequence[int]) -> int:
        """Return how many runs it takes for all of them to have met all these instances."""
        return sum(
            sum(instance not in met for instance in instances)
            for met in (self._costs.get(number, {}) for number in configurations)
        )

    def has_finished(self, configuration: int, instances: Iterable[int]) -> bool:
        """Return whether a configuration has finished on any of these instances."""
        return any(math.isfinite(self.finishing_cost(configuration, i)) for i in instances)

    def total(self, configuration: int, instances: Sequence[int]) -> Total:
        """Return the sum of costs over instances; UNKNOWN if one of them is."""
        known = self.total_so_far(configuration, instances)
        return known if self.knows_all(configuration, instances) else UNKNOWN

    def total_so_far(self, configuration: int, instances: Iterable[int]) -> Total:
        """Return the sum of costs over those of the instances that are known."""
        met = self._costs.get(configuration, {})
        return _sum([met[instance] for instance in instances if instance in met])

    def is_better(self, one: int, other: int) -> bool:
        """Return whether one is better than the other on what is known of both.

        Where the other was stopped, its cost is taken to be what it exceeds.
        """
        least = {**self._bounds.get(other, {}), **self._costs.get(other, {})}
        common = [i for i in self.met(one) if i in least]
        return self.total(one, common) < _sum([least[i] for i in common])

    def behind(
        self, champion: int, scale: Callable[[float], float], stopped: float
    ) -> dict[int, dict[int, float]]:
        """Return by how much each exceeds a champion, on each instance that both have met.

        Costs are compared on a scale. A run that was stopped is taken to cost so much more than
        what it is known to exceed.
        """
        pace = {i: scale(c) for i, c in self._costs.get(champion, {}).items() if math.isfinite(c)}
        found: dict[int, dict[int, float]] = {}
        for configuration, costs in self._costs.items():
            found[configuration] = {i: scale(c) - pace[i] for i, c in costs.items() if i in pace}
        for configuration, bounds in self._bounds.items():
            exceeds = found.setdefault(configuration, {})
            for i, bound in bounds.items():
                if i in pace and i not in exceeds:
                    exceeds[i] = stopped + scale(bound) - pace[i]
        return {number: some for number, some in found.items() if some}

    def block(self, configurations: Sequence[int], instances: Sequence[int]) -> Floats:
        """Return known costs as an array, configurations × instances."""
        rows = [self._costs[configuration] for configuration in configurations]
        return np.array([[row[instance] for instance in instances] for row in rows], dtype=float)


def _sum(costs: Sequence[float]) -> Total:
    total = sum(costs)
    if math.isfinite(total):
        return Total(0, total)
    finite = [cost for cost in costs if math.isfinite(cost)]
    return Total(len(costs) - len(finite), sum(finite))
