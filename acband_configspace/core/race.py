"""The values that pass between the core and whoever runs the races. Frozen, stdlib only."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Race:
    """One race: up to k configurations on one instance (more in a playoff).

    Configurations and instances are numbers here: 0 is θ_0, then the new configurations in the
    order they are drawn; instances count the fresh ones in the order they are taken.
    """

    epoch: int
    """The epoch's number, from 1."""
    round: int
    """The round within the epoch, from 1."""
    group: int
    """The group within the round, from 0."""
    index: int
    """The race within the group, from 0; outcomes are judged in this order."""
    instance: int
    """The instance it is run on: no two races share one."""
    racers: tuple[int, ...]
    """The configurations that race, in the group's (random) order."""
    to_the_end: bool = False
    """Whether losers go on to their end, or the cutoff, since every cost counts.

    Always so in a playoff, where more than k may race: they need not all run at the same time.
    """


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a race brought: a cost per racer, in the race's order.

    A cost may be censored: the racer was stopped, and all that is known is that its cost would
    have exceeded the value given. A racer that failed has cost infinity. A racer that reached the
    cutoff is censored there. Neither ever wins.
    """

    costs: tuple[float, ...]
    censored: tuple[bool, ...]

    def __init__(self, costs: Sequence[float], censored: Sequence[bool] | None = None) -> None:
        costs = tuple(float(cost) for cost in costs)
        flags = (False,) * len(costs) if censored is None else tuple(bool(c) for c in censored)
        if len(flags) != len(costs):
            raise ValueError(
                f"censored must have as many entries as costs, {len(costs)}, but got {len(flags)}"
            )
        if any(math.isnan(cost) for cost in costs):
            raise ValueError(f"costs must be numbers (inf for a failure) but got {costs}")
        object.__setattr__(self, "costs", costs)
        object.__setattr__(self, "censored", flags)
