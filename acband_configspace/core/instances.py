"""Which instance a race is on: what the instance numbers of the core stand for.

Nobody else decides it. A deterministic target has a finite pool of instances (without any, a
single one); numbers beyond it stand for those instances again. With a target that takes seeds,
pairs of an instance and a seed never run out: all instances with one seed, then with the next.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

#: Seeds handed to targets lie below this, as SMAC's do.
SEED_LIMIT = 2**31
#: An odd step runs through all seeds before one comes again.
_SEED_STEP = 0x9E3779B1


class InstanceKey(NamedTuple):
    """What a target is run on."""

    instance: str | None
    seed: int


class Instances:
    """Turns instance numbers into instances and seeds, in an order that is random but repeatable.

    >>> pool = Instances(["a", "b", "c"], deterministic=True, seed=0)
    >>> pool.n_distinct, pool[1] == pool[4]
    (3, True)

    Those on which results are ``known`` come first:

    >>> Instances(["a", "b"], deterministic=False, seed=0, known=[InstanceKey("b", 7)])[0]
    InstanceKey(instance='b', seed=7)
    """

    def __init__(
        self,
        names: Sequence[str] | None,
        *,
        deterministic: bool,
        seed: int,
        known: Iterable[InstanceKey] = (),
    ) -> None:
        if names is not None and not names:
            raise ValueError("instances must not be empty but got an empty list")
        if names is not None and len(set(names)) != len(names):
            twice = sorted(name for name, times in Counter(names).items() if times > 1)
            raise ValueError(f"instances must be distinct but got {twice} more than once")
        self._names: list[str | None] = [None] if names is None else list(names)
        self._deterministic = deterministic
        self._seed = seed
        self._first_seed = int(np.random.default_rng([seed, 0]).integers(SEED_LIMIT))
        self._orders: dict[int, npt.NDArray[np.int64]] = {}
        if deterministic:  # seeds do not matter
            known = (InstanceKey(key.instance, self._first_seed) for key in known)
        self._known = dict.fromkeys(known)
        self._listed: list[InstanceKey] = []
        self._n_drawn = 0

    @property
    def n_names(self) -> int:
        """How many instances there are, whatever the seed; 1 if there are none."""
        return len(self._names)

    @property
    def n_distinct(self) -> int | None:
        """How many different ones there are, None if they never run out."""
        return self.n_names if self._deterministic else None

    def __getitem__(self, number: int) -> InstanceKey:
        if not self._known:
            return self._drawn(number)
        if self._deterministic:
            number %= self.n_names
        if not self._listed:
            self._listed = list(self._known)
        while len(self._listed) <= number:
            key = self._drawn(self._n_drawn)
            self._n_drawn += 1
            if key not in self._known:
                self._listed.append(key)
        return self._listed[number]

    def _drawn(self, number: int) -> InstanceKey:
        cycle, position = divmod(number, self.n_names)
        if self._deterministic:
            cycle = 0
        name = self._names[self._order(cycle)[position]]
        return InstanceKey(name, (self._first_seed + cycle * _SEED_STEP) % SEED_LIMIT)

    def _order(self, cycle: int) -> npt.NDArray[np.int64]:
        if cycle not in self._orders:
            rng = np.random.default_rng([self._seed, 1, cycle])
            self._orders[cycle] = rng.permutation(self.n_names)
        return self._orders[cycle]
