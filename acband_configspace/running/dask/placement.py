"""Which workers a cluster has, what each is doing, and who gets the next race. No I/O here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

#: Seconds that a worker which could not run a race gets no other: it may lack processes or
#: descriptors for a moment. Twice as many each time that it fails again.
EXCLUSION_SECONDS = 60.0


@dataclass(frozen=True)
class Exclusion:
    """Why a worker gets no races, and until when by the caller's clock."""

    why: str
    until: float


@dataclass
class WorkerLoad:
    """A worker and the races that were sent to it."""

    address: str
    threads: int
    """How many racers it runs at once."""
    usable: bool = True
    """Whether it takes new races: not if it is paused, retiring, or has failed to run one."""
    exclusion: Exclusion | None = None
    """If it has failed to run one: why, and until when that counts."""
    failures: int = 0
    """How often it was excluded since it has last run a race."""
    races: dict[int, int] = field(default_factory=dict)
    """By number, the races that were sent to it and are not over: how many racers each has."""
    reserved_for: int | None = None
    """The race that is to run here alone, to see whether it is the one that kills workers."""

    @property
    def free(self) -> int:
        """How many threads no unfinished race has a racer for; negative if racers must wait."""
        return self.threads - sum(self.races.values())


class Placement:
    """Decides which worker of a cluster gets a race, which usually has so many racers."""

    def __init__(self, racers: int) -> None:
        self._racers = racers
        self._workers: dict[str, WorkerLoad] = {}

    @property
    def slots(self) -> int:
        """How many racers the usable workers run at once."""
        return sum(worker.threads for worker in self._usable())

    @property
    def has_trusted(self) -> bool:
        """Whether a usable worker has not failed since it has last run a race."""
        return any(not worker.failures for worker in self._usable())

    @property
    def unfit(self) -> dict[str, str]:
        """Why workers get no races at present, by their addresses."""
        return {
            worker.address: worker.exclusion.why
            for worker in self._workers.values()
            if worker.exclusion is not None
        }

    def update(
        self, threads: Mapping[str, int], running: Mapping[str, int], *, now: float
    ) -> list[WorkerLoad]:
        """Take note of who is there, and who of them takes tasks; return those that are lost."""
        lost = [self._workers.pop(name) for name in list(self._workers) if name not in threads]
        for address, count in threads.items():
            worker = self._workers.setdefault(address, WorkerLoad(address, count))
            if worker.exclusion is not None and now >= worker.exclusion.until:
                worker.exclusion = None
            worker.usable = address in running and worker.exclusion is None
        return lost

    def exclude(self, address: str, why: str, *, now: float) -> float:
        """Send no races to a worker that could not run one; return for how many seconds.

        What else it had at the time fails for the same reason, and does not count again.
        """
        worker = self._workers.get(address)
        if worker is None:  # it is gone
            return 0.0
        if worker.exclusion is None:
            seconds = EXCLUSION_SECONDS * 2.0**worker.failures
            worker.exclusion = Exclusion(why, until=now + seconds)
            worker.failures += 1
            worker.usable = False
        return worker.exclusion.until - now

    def trust(self, address: str) -> None:
        """Take note that a worker has run a race."""
        if address in self._workers:
            self._workers[address].failures = 0

    def forgive(self) -> None:
        """Give all workers another chance, from the next update on."""
        for worker in self._workers.values():
            worker.exclusion, worker.failures = None, 0

    def choose(self, n_racers: int, *, look_ahead: bool) -> WorkerLoad | None:
        """Return the worker for a race of so many racers, None if none has room.

        Where none has a thread for each of them, the race begins on the threads that are free at
        the emptiest one. With ``look_ahead``, another race of the usual size may wait at a full
        one.
        """
        most_waiting = self._racers if look_ahead else 0
        able = [w for w in self._usable() if w.reserved_for is None and w.free > -most_waiting]
        fitting = [worker for worker in able if worker.free >= min(n_racers, worker.threads)]
        if not fitting:
            return max(able, key=lambda worker: worker.free, default=None)
        # A single racer goes where there is no room for a whole race anyway.
        return min(fitting, key=lambda w: (self._races_displaced(w, n_racers), -w.free))

    def _races_displaced(self, worker: WorkerLoad, n_racers: int) -> int:
        """Return how many races of the usual size no longer fit once the racers are there."""
        return worker.free // self._racers - (worker.free - n_racers) // self._racers

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
            worker.races.pop(race, None)
            if worker.reserved_for == race:
                worker.reserved_for = None

    def _usable(self) -> list[WorkerLoad]:
        return [worker for worker in self._workers.values() if worker.usable]
