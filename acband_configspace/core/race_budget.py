"""The instances and racers that the schedule plans, and those that are left over.

Instances are numbers. Those a group did not need go to a reserve that only what follows the
schedule draws on: a group that is decided early never shifts what later groups see.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from acband_configspace.core.schedule import Schedule

Instances = npt.NDArray[np.int64]


class RaceBudget:
    """Hands out the instances of one run and takes back those that were not needed.

    Without a schedule (CSE by itself) it never ends. Where there are ``n_instances`` to be used
    again, numbers stay unique and stand, modulo ``n_instances``, for instances: never one twice
    within a group.
    """

    def __init__(self, schedule: Schedule | None = None, *, first_instance: int = 0) -> None:
        self._n_instances = schedule.supply.n_instances if schedule else None
        self._next = first_instance
        self._returned: list[int] = []
        self._drawing = False
        self._races_left = schedule.n_races if schedule else 0
        self._racers_left = schedule.n_racers if schedule else 0
        self._times_used = np.zeros(self._n_instances or 0, dtype=np.int64)

    @property
    def racers_left(self) -> int:
        """Racers that the schedule planned and nobody needed so far, whether run or known."""
        return self._racers_left

    @property
    def races_left(self) -> int:
        """Races that the schedule planned and nobody needed so far."""
        return self._races_left

    def open(self) -> None:
        """Draw on the reserve from now on: the schedule's epochs are over."""
        self._drawing = True
        n_set_aside = self._races_left - len(self._returned)
        self._returned.extend(range(self._next, self._next + n_set_aside))

    def take(self, n_groups: int, races_per_group: int, *, n_racers: int) -> Instances:
        """Return instances to race on, a row per group, for that many racers in all."""
        n_races = n_groups * races_per_group
        self._races_left -= n_races
        self._racers_left -= n_racers
        if self._drawing and self._n_instances is not None:
            return np.array([self._least_used(races_per_group) for _ in range(n_groups)])
        if self._drawing:
            numbers = np.array(self._returned[:n_races], dtype=np.int64)
            del self._returned[:n_races]
        else:
            numbers = np.arange(self._next, self._next + n_races, dtype=np.int64)
            self._next += n_races
            self._count(numbers, 1)
        return numbers.reshape(n_groups, races_per_group)

    def give_back(self, instances: Instances, n_raced: Instances, group_size: int) -> None:
        """Take back, row by row, the instances after the first ``n_raced``."""
        unused = instances[np.arange(instances.shape[1]) >= n_raced[:, None]]
        self._races_left += len(unused)
        self._racers_left += len(unused) * group_size
        self._returned.extend(unused.tolist())
        self._count(unused, -1)

    def _least_used(self, n: int) -> Instances:
        assert self._n_instances is not None
        instances = np.argsort(self._times_used, kind="stable")[:n]
        first_free = -(-self._next // self._n_instances) * self._n_instances
        self._next = first_free + self._n_instances
        numbers: Instances = first_free + instances
        self._count(numbers, 1)
        return numbers

    def _count(self, numbers: Instances, times: int) -> None:
        if self._n_instances is not None:
            np.add.at(self._times_used, numbers % self._n_instances, times)
