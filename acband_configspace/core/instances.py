"""The stream of fresh instances: what the instance numbers of the core stand for.

Pure: names and seeds, no files. A problem with instances and a deterministic target has a finite
pool of them; with a target that takes seeds, (instance, seed) pairs or seeds alone never run out;
a deterministic target without instances has a single one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from acband_configspace.core.elimination import Contest

#: Seeds handed to targets lie below this, as SMAC's do.
SEED_LIMIT = 2**31


class InstanceKey(NamedTuple):
    """What a target is run on."""

    instance: str | None
    seed: int


class Instances:
    """Turns the instance numbers of a contest into instances and seeds, random but repeatable."""

    def __init__(self, names: Sequence[str] | None, *, deterministic: bool, seed: int) -> None:
        if names is not None and not names:
            raise ValueError("instances must not be empty but got an empty list")
        if names is not None and len(set(names)) != len(names):
            twice = sorted({name for name in names if list(names).count(name) > 1})
            raise ValueError(f"instances must be distinct but got {twice} more than once")
        self._names = list(names) if names is not None else [None]
        self._deterministic = deterministic
        self._seed = seed
        # An odd factor runs through all seeds before one comes again.
        self._first_seed = int(np.random.default_rng([seed, 0]).integers(SEED_LIMIT))
        self._orders: dict[int, npt.NDArray[np.int64]] = {}
        self._met: dict[int, npt.NDArray[np.bool_]] = {}

    @property
    def n_distinct(self) -> int | None:
        """How many different ones there are, None if they never run out."""
        return len(self._names) if self._deterministic else None

    def of_contest(self, contest: Contest) -> list[list[InstanceKey]]:
        """Return what each group races on, a list per group.

        Call it once per contest, in their order. Numbers beyond a finite pool stand for instances
        used before: within a group none comes twice, and a configuration meets one again only
        when none is left that is new to its whole group.
        """
        numbers = contest.instances()
        if not self._deterministic:
            return [[self._pair(number) for number in row] for row in numbers.tolist()]
        return [
            [InstanceKey(self._names[i], self._first_seed) for i in self._from_pool(members, row)]
            for members, row in zip(contest.groups.tolist(), numbers, strict=True)
        ]

    def _pair(self, number: int) -> InstanceKey:
        """Return a pair of its own for each number: all instances with one seed, then the next."""
        cycle, position = divmod(number, len(self._names))
        name = self._names[self._order(cycle)[position]]
        return InstanceKey(name, (self._first_seed + cycle * 0x9E3779B1) % SEED_LIMIT)

    def _from_pool(self, members: list[int], numbers: npt.NDArray[np.int64]) -> list[int]:
        """Choose for one group, and note that its members have met what is chosen."""
        size = len(self._names)
        order = self._order(0)
        chosen: list[int] = order[numbers[numbers < size]].tolist()
        met = [self._met.setdefault(member, np.zeros(size, dtype=bool)) for member in members]
        if (n_missing := len(numbers) - len(chosen)) > 0:
            acquainted = np.sum(met, axis=0)
            acquainted[chosen] = len(members) + 1  # never twice within a group
            # Sorting the random order, not the pool's, leaves ties to chance.
            shift = int(numbers[-1]) % size
            candidates = np.roll(order, -shift)
            ranking = np.argsort(acquainted[candidates], kind="stable")
            chosen += candidates[ranking[:n_missing]].tolist()
        for meetings in met:
            meetings[chosen] = True
        return chosen

    def _order(self, cycle: int) -> npt.NDArray[np.int64]:
        if cycle not in self._orders:
            rng = np.random.default_rng([self._seed, 1, cycle])
            self._orders[cycle] = rng.permutation(len(self._names))
        return self._orders[cycle]
