"""The values that pass between the core and whoever runs the races. Frozen, stdlib only."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from acband_configspace.core.ends import End


class RaceId(NamedTuple):
    """A race's place in the run: neither who runs it nor when it ends has a part in it.

    >>> str(RaceId(1, 1, 2, 0, 3))
    '1.1.2.0.3'
    >>> RaceId.parse("1.1.2.0.3").round
    2
    """

    pass_number: int
    """The pass, from 1."""
    epoch: int
    """The epoch within the pass, from 1."""
    round: int
    """The round within the epoch, from 1."""
    group: int
    """The group within the round, from 0."""
    index_in_group: int
    """The race within the group, from 0."""

    def __str__(self) -> str:
        return ".".join(map(str, self))

    @classmethod
    def parse(cls, text: str) -> RaceId:
        """Read what ``str`` wrote."""
        parts = text.split(".")
        if len(parts) != 5 or not all(part.isdigit() for part in parts):
            raise ValueError(
                f"a race must be named by five numbers, as 1.1.2.0.3, but got {text!r}"
            )
        return cls(*map(int, parts))


@dataclass(frozen=True, slots=True)
class Race:
    """One race: up to k configurations on one instance (more in a playoff).

    Configurations and instances are numbers here: 0 is θ_0, then the others in the order in which
    they are given or drawn; instances count in the order in which they are taken.
    """

    id: RaceId
    instance: int
    """The instance it is run on."""
    racers: tuple[int, ...]
    """The configurations to run, in the group's (random) order."""
    to_the_end: bool = False
    """Whether losers go on to their end, their limit or the cutoff, since every cost counts.

    They then need not all run at the same time, and in a playoff there may be more than k.
    """
    limits: tuple[float, ...] | None = None
    """The cost at which each racer is stopped and has lost; infinity for none."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a race brought: a cost per racer, in the race's order, and how each run ended.

    A racer that lost was stopped: all that is known is that its cost exceeds the value given.
    Only a racer that finished with a finite cost can win.
    """

    costs: tuple[float, ...]
    ends: tuple[End, ...]
    n_known: int
    """How many of them were known before the run: they took no trial."""

    def __init__(
        self, costs: Sequence[float], ends: Sequence[End] | None = None, *, n_known: int = 0
    ) -> None:
        costs = tuple(map(float, costs))
        ends = (End.FINISHED,) * len(costs) if ends is None else tuple(map(End, ends))
        if len(ends) != len(costs):
            raise ValueError(f"ends must have {len(costs)} entries, as costs, but got {len(ends)}")
        if any(map(math.isnan, costs)):
            raise ValueError(f"costs must be numbers (inf for a failure) but got {costs}")
        object.__setattr__(self, "costs", costs)
        object.__setattr__(self, "ends", ends)
        object.__setattr__(self, "n_known", n_known)

    @property
    def censored(self) -> tuple[bool, ...]:
        """Which costs are lower bounds only: those of racers that lost."""
        return tuple(end is End.LOST for end in self.ends)

    @property
    def finishing_costs(self) -> tuple[float, ...]:
        """The costs as a race sees them: what is neither finished nor lost never wins."""
        counts = (End.FINISHED, End.LOST)
        return tuple(
            cost if end in counts else math.inf
            for cost, end in zip(self.costs, self.ends, strict=True)
        )
