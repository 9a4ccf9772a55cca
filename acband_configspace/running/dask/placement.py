"""Which workers a cluster has, what each is doing, and who gets the next race. No I/O here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from acband_configspace.running.dask.worker import races_at_once, slots_of


@dataclass
class Member:
    """A worker and the races that were sent to it."""

    address: str
    threads: int
    capacity: int
    """How many races it runs at once."""
    usable: bool = True
    """Whether it takes new races: not if it is paused, retiring, or has failed to run one."""
    races: set[int] = field(default_factory=set)
    """Numbers of the races that were sent to it and are not over."""
    reserved_for: int | None = None
    """The race that is to run here alone, to see whether it is the one that kills workers."""


class Roster:
    """The workers of a cluster.

    Args:
        racers: How many racers a race usually has.
    """

    def __init__(self, racers: int) -> None:
        self._racers = racers
        self._members: dict[str, Member] = {}
        self._unfit: set[str] = set()

    @property
    def capacity(self) -> int:
        """How many races the usable workers run at once."""
        return sum(member.capacity for member in self._usable())

    @property
    def slots(self) -> int:
        """How many racers the usable workers run at once."""
        return sum(slots_of(member.threads, self._racers) for member in self._usable())

    def update(self, threads: Mapping[str, int], running: Mapping[str, int]) -> list[Member]:
        """Take note of who is there, and who of them takes tasks; return those that are lost."""
        lost = [self._members.pop(name) for name in list(self._members) if name not in threads]
        self._unfit.intersection_update(threads)
        for address, count in threads.items():
            if address not in self._members:
                capacity = races_at_once(count, self._racers)
                self._members[address] = Member(address, count, capacity)
            fit = address in running and address not in self._unfit
            self._members[address].usable = fit
        return lost

    def exclude(self, address: str) -> None:
        """Send no more races to a worker, because it cannot run them."""
        self._unfit.add(address)
        if address in self._members:
            self._members[address].usable = False

    def forgive(self) -> None:
        """Give all workers another chance."""
        self._unfit.clear()

    def choose(self, *, look_ahead: int) -> Member | None:
        """Return the worker with most room; a full one may have so many more races wait there."""
        having_room = [
            member
            for member in self._usable()
            if member.reserved_for is None and len(member.races) < member.capacity + look_ahead
        ]
        return max(having_room, key=lambda m: m.capacity - len(m.races), default=None)

    def reserve(self, race: int) -> Member | None:
        """Return a worker for a race that is to run alone, once there is an idle one.

        Until then the least busy worker gets no other races.
        """
        free = [m for m in self._usable() if m.reserved_for in (None, race)]
        chosen = min(free, key=lambda m: (m.reserved_for != race, len(m.races)), default=None)
        if chosen is None:
            return None
        chosen.reserved_for = race
        return chosen if not chosen.races else None

    def release(self, race: int) -> None:
        """Note that a race is over, or back in the queue."""
        for member in self._members.values():
            member.races.discard(race)
            if member.reserved_for == race:
                member.reserved_for = None

    def _usable(self) -> list[Member]:
        return [member for member in self._members.values() if member.usable]
