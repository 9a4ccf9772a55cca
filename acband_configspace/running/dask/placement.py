"""Which workers a cluster has, what each is doing, and who gets the next race. No I/O here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


def races_at_once(threads: int, racers: int) -> int:
    """Return how many races a worker may run at once, one thread for each racer."""
    return max(1, threads // racers)


def slots_of(threads: int, racers: int) -> int:
    """Return how many racers a worker may run at once.

    A worker with fewer threads than a race has racers runs it on what it has.
    """
    return races_at_once(threads, racers) * min(threads, racers)


@dataclass
class WorkerLoad:
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


class Placement:
    """Decides which worker of a cluster gets a race, which usually has so many racers."""

    def __init__(self, racers: int) -> None:
        self._racers = racers
        self._workers: dict[str, WorkerLoad] = {}
        self.unfit: dict[str, str] = {}
        """Why workers get no more races, by their addresses."""

    @property
    def capacity(self) -> int:
        """How many races the usable workers run at once."""
        return sum(worker.capacity for worker in self._usable())

    @property
    def slots(self) -> int:
        """How many racers the usable workers run at once."""
        return sum(slots_of(worker.threads, self._racers) for worker in self._usable())

    def update(self, threads: Mapping[str, int], running: Mapping[str, int]) -> list[WorkerLoad]:
        """Take note of who is there, and who of them takes tasks; return those that are lost."""
        lost = [self._workers.pop(name) for name in list(self._workers) if name not in threads]
        self.unfit = {name: why for name, why in self.unfit.items() if name in threads}
        for address, count in threads.items():
            if address not in self._workers:
                capacity = races_at_once(count, self._racers)
                self._workers[address] = WorkerLoad(address, count, capacity)
            fit = address in running and address not in self.unfit
            self._workers[address].usable = fit
        return lost

    def exclude(self, address: str, why: str) -> None:
        """Send no more races to a worker, because it cannot run them."""
        self.unfit[address] = why
        if address in self._workers:
            self._workers[address].usable = False

    def forgive(self) -> None:
        """Give all workers another chance."""
        self.unfit.clear()

    def choose(self, *, look_ahead: int) -> WorkerLoad | None:
        """Return the worker with most room; a full one may have so many more races wait there."""
        having_room = [
            worker
            for worker in self._usable()
            if worker.reserved_for is None and len(worker.races) < worker.capacity + look_ahead
        ]
        return max(having_room, key=lambda w: w.capacity - len(w.races), default=None)

    def reserve(self, race: int) -> WorkerLoad | None:
        """Return a worker for a race that is to run alone, once there is an idle one.

        Until then the least busy worker gets no other races.
        """
        free = [w for w in self._usable() if w.reserved_for in (None, race)]
        chosen = min(free, key=lambda w: (w.reserved_for != race, len(w.races)), default=None)
        if chosen is None:
            return None
        chosen.reserved_for = race
        return chosen if not chosen.races else None

    def release(self, race: int) -> None:
        """Note that a race is over, or back in the queue."""
        for worker in self._workers.values():
            worker.races.discard(race)
            if worker.reserved_for == race:
                worker.reserved_for = None

    def _usable(self) -> list[WorkerLoad]:
        return [worker for worker in self._workers.values() if worker.usable]
