"""What runs on a worker of a Dask cluster: a race track for as many races as its threads allow.

The site is a worker plugin, so the scheduler sends it, and with it the target, once to each worker
that there is and to each that joins later, and closes it with the worker.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from distributed import Status, Worker, WorkerPlugin, get_worker

from acband_configspace.running.dask.track_thread import DriverClosedError, RaceOrder, TrackDriver
from acband_configspace.running.local.messages import Job, PickledShared
from acband_configspace.running.local.track import RaceTrack
from acband_configspace.running.race import Clock, RaceReport

#: What a worker that is closed leaves behind; Dask's own workers mostly do, too.
CLOSING_NOTE = {"action": "closing-worker"}
#: Seconds beyond the grace that a worker waits for its racers to be gone.
CLOSING_SECONDS = 2.5


@dataclass(frozen=True)
class TrackSettings:
    """What a race track is opened with on every worker."""

    pickled_function: bytes | None
    shared: PickledShared
    racers: int
    """How many racers a race usually has: the paper's k, or 1 if each trial runs for itself."""
    cutoff: float | None
    memory_limit_mb: int | None
    clock: Clock
    grace: float


def races_at_once(threads: int, racers: int) -> int:
    """Return how many races a worker may run at once, one thread for each racer."""
    return max(1, threads // racers)


def slots_of(threads: int, racers: int) -> int:
    """Return how many racers a worker may run at once.

    A worker with fewer threads than a race has racers runs it on what it has.
    """
    return races_at_once(threads, racers) * min(threads, racers)


@dataclass(frozen=True)
class _SentTarget:
    """The part of a target that racers need; jobs are put together where the races come from."""

    pickled_function: bytes | None

    def job(self, configuration: object, **details: object) -> Job:
        raise NotImplementedError("jobs come ready to a worker")


class RaceSite(WorkerPlugin):
    """The races of one run on one worker.

    Args:
        name: Tells the runs apart that a cluster serves.
        settings: What the race track is opened with when the first race comes.
    """

    def __init__(self, name: str, settings: TrackSettings) -> None:
        self.name = name
        self._settings = settings

    def setup(self, worker: Worker) -> None:
        """Be ready; nothing is loaded yet, so that a mistake in the target shows in a race."""
        self._slots = slots_of(worker.state.nthreads, self._settings.racers)
        self._driver = TrackDriver(self._open_track)

    async def teardown(self, worker: Worker) -> None:
        """Stop the racers; the worker goes on meanwhile."""
        await _say_goodbye(worker)
        await asyncio.to_thread(self._driver.close, self._settings.grace + CLOSING_SECONDS)

    def transition(self, key: Any, start: str, finish: str, **details: Any) -> None:
        """Stop a race that nobody waits for any more.

        Dask never interrupts a running task. So if the process that wanted it is gone, or the
        scheduler gives the task up, this is the only word of it that reaches the worker.
        """
        if start in ("executing", "long-running") and finish == "released":
            self._driver.cancel(str(key))

    def run(self, order: RaceOrder) -> RaceReport:
        """Run a race; to be called in a thread that may wait."""
        return self._driver.run(order)

    def cancel(self, keys: Sequence[str]) -> None:
        """Stop races; their tasks report them as cancelled."""
        for key in keys:
            self._driver.cancel(key)

    def _open_track(self) -> RaceTrack:
        settings = self._settings
        return RaceTrack(
            _SentTarget(settings.pickled_function),
            slots=self._slots,
            cutoff=settings.cutoff,
            memory_limit_mb=settings.memory_limit_mb,
            clock=settings.clock,
            grace=settings.grace,
            shared=settings.shared,
        )


async def _say_goodbye(worker: Worker) -> None:
    """Leave word that the worker is closed and not killed, so that no race is suspected of it.

    A worker that gets SIGTERM, as from a batch system, leaves its scheduler without a word.
    """
    if worker.status in (Status.closing, Status.closed):
        with contextlib.suppress(Exception):  # the scheduler may be gone as well
            note = worker.scheduler.log_event(topic=worker.address, msg=CLOSING_NOTE)
            await asyncio.wait_for(note, timeout=1)


def run_race(site: str, order: RaceOrder) -> RaceReport:
    """Run a race on the worker that this task is on."""
    plugin = get_worker().plugins.get(site)
    if not isinstance(plugin, RaceSite):
        raise DriverClosedError(f"{site} is not, or no more, set up on this worker")
    return plugin.run(order)


def cancel_races(site: str, keys: Sequence[str], dask_worker: Worker) -> None:
    """Stop races on a worker: for ``Client.run``, which does not wait for a free thread."""
    plugin = dask_worker.plugins.get(site)
    if isinstance(plugin, RaceSite):
        plugin.cancel(keys)
