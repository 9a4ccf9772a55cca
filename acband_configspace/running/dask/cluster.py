"""Runs races on the workers of a Dask cluster, with the interface of a race track.

A race is the unit that travels: its racers run on one worker, so they are timed and stopped there.
Which worker gets which race is decided here and not by Dask, which knows nothing of racers.
"""

from __future__ import annotations

import logging
import math
import time
import uuid
from collections import deque
from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from typing import Any

from acband_configspace.core.checks import real_number, whole_number
from acband_configspace.core.ends import End
from acband_configspace.errors import NoWorkersError, SchedulerLostError
from acband_configspace.running.dask.client import Arrival, ClusterClient, Failure
from acband_configspace.running.dask.placement import Placement, WorkerLoad
from acband_configspace.running.dask.worker import CLOSING_SECONDS, RacePlugin
from acband_configspace.running.local.messages import StartRace
from acband_configspace.running.local.track import opened
from acband_configspace.running.race import (
    Clock,
    RaceReport,
    RacerReport,
    RaceSpec,
    TrackLimits,
)
from acband_configspace.running.targets import Target, settings_for, start_message

logger = logging.getLogger(__name__)

#: Seconds between two looks at which workers there are.
LOOK_INTERVAL = 0.5
#: A race that has lost so many workers is not tried on another.
MOST_LOSSES = 3
#: While races take fewer seconds than this on average, each worker has more waiting, up to a race
#: of the usual size, so that it need not wait for us. Longer ones are better kept for whoever is
#: free first.
LOOK_AHEAD_BELOW = 1.0


@dataclass
class _RaceInProgress:
    """A race that is not over: in the queue, or on a worker."""

    number: int
    key: Hashable
    message: StartRace
    tries: int = 0
    worker: str | None = None
    """Where it is, if it is not in the queue."""
    losses: list[str] = field(default_factory=list)
    """Workers that died while this race was there."""
    is_cancelled: bool = False

    @property
    def task(self) -> str:
        """The name it is sent by, a new one for each try: a late answer must not count."""
        return str(self.message.key)


class RaceCluster:
    """Runs races like a :class:`RaceTrack`, each on a worker of a Dask cluster.

    Each worker runs as many racers at once as it has threads; a race begins on any that are free.
    Workers that join are used, and those that leave are not missed: their races are run
    again elsewhere. A race that was there when three workers died is reported as crashed; after
    the first time it runs alone on a worker, so that it takes no other race with it.

    Workers that cannot run races, such as those without this package, are named in a warning and
    tried again after a minute, then after two, and so on.

    Parameters
    ----------
    client : Client
        A connected client, which stays open. Not an asynchronous one.
    target : Target
        What races; sent to each worker once.
    racers : int
        How many racers a race usually has.
    cutoff, memory_limit_mb, clock, grace, shared
        As for a race track.
    worker_timeout : float
        Seconds to wait for workers when there are none.

    Raises
    ------
    TypeError, ValueError
        If an option is not of its kind, or out of range.
    """

    def __init__(
        self,
        client: Any,
        target: Target,
        *,
        racers: int,
        cutoff: float | None = None,
        memory_limit_mb: float | None = None,
        clock: Clock = "wall",
        grace: float = 0.05,
        shared: object = None,
        worker_timeout: float = 300.0,
    ) -> None:
        racers = whole_number("racers", racers, at_least=1)
        if not real_number("worker_timeout", worker_timeout) >= 0:
            raise ValueError(f"worker_timeout must not be negative but got {worker_timeout!r}")
        self._limits = TrackLimits(cutoff, memory_limit_mb, clock, grace)
        self._target = target
        self._shared = shared
        self._worker_timeout = worker_timeout
        self._run = f"acband-{uuid.uuid4().hex[:12]}"
        settings = settings_for(target, shared, self._limits)
        self._client = ClusterClient(client, RacePlugin(self._run, settings))
        self._placement = Placement(racers)
        self._last_look = -math.inf
        self._unused_since: float | None = None
        self._unfinished: dict[Hashable, _RaceInProgress] = {}
        self._waiting: deque[_RaceInProgress] = deque()
        self._sent: dict[str, _RaceInProgress] = {}
        self._to_cancel: list[_RaceInProgress] = []
        self._reports: list[RaceReport] = []
        self._races_started = 0
        self._mean_seconds: float | None = None
        self._look_for_workers()

    @property
    def slots(self) -> int:
        """How many racers the cluster can run at once, at the last look."""
        return self._placement.slots

    @property
    def unfinished(self) -> int:
        """How many races were started here and not yet reported."""
        return len(self._unfinished)

    def start(self, spec: RaceSpec) -> None:
        """Queue a race; it is sent when a worker has room for it."""
        if spec.key in self._unfinished:
            raise ValueError(f"key must differ from all unfinished races but got {spec.key!r}")
        self._races_started += 1
        number, cutoff = self._races_started, self._limits.cutoff
        message = start_message(number, spec, self._target, cutoff=cutoff, shared=self._shared)
        race = _RaceInProgress(number, spec.key, message)
        self._unfinished[spec.key] = race
        self._waiting.append(race)
        self._send_races()

    def wait(self, timeout: float | None = None) -> list[RaceReport]:
        """Wait until at least one race is over, and return the reports of all that are.

        Returns an empty list if that takes longer than ``timeout`` seconds, if no race is
        unfinished, or if workers have joined that could be given more races.

        Raises
        ------
        NoWorkersError
            If there was no worker for too long.
        SchedulerLostError
            If the connection to the scheduler is lost for good.
        TargetLoadError
            If a worker cannot load the target, and none has run a race before.
        """
        deadline = math.inf if timeout is None else time.monotonic() + timeout
        slots = self._placement.slots
        while self._unfinished and not self._reports and self._placement.slots <= slots:
            if time.monotonic() - self._last_look >= LOOK_INTERVAL:
                self._look_for_workers()
            self._send_cancellations()
            self._send_races()
            remaining = max(0.0, deadline - time.monotonic())
            patience = 0.0 if self._reports else min(remaining, LOOK_INTERVAL)
            for arrival in self._client.wait(patience):
                self._take_in(arrival)
            if remaining == 0.0:
                break
        self._send_races()  # the workers need not wait until the reports are read
        reports, self._reports = self._reports, []
        for report in reports:
            del self._unfinished[report.key]
        return reports

    def cancel(self, key: Hashable) -> None:
        """Stop a race. It is reported like any other, its racers as cancelled."""
        race = self._unfinished.get(key)
        if race is None:
            raise KeyError(f"key must be that of an unfinished race but got {key!r}")
        race.is_cancelled = True
        if race in self._waiting:
            self._waiting.remove(race)
            self._placement.release(race.number)  # a worker may be kept free for it
            self._end(race, End.CANCELLED)
        if race.task in self._sent:
            self._to_cancel.append(race)

    def close(self) -> None:
        """Stop all races and close the supervisors on the workers. Races are not reported."""
        self._unfinished.clear()
        self._waiting.clear()
        self._sent.clear()
        self._to_cancel.clear()
        self._reports.clear()
        self._client.close(self._limits.grace + 2 * CLOSING_SECONDS)

    # --- workers -----------------------------------------------------------------------------

    def _look_for_workers(self) -> None:
        """See who is there; races of workers that are gone go back to the queue."""
        self._last_look = time.monotonic()
        if self._client.is_lost:
            raise SchedulerLostError(
                "the connection to the Dask scheduler is lost. Everything so far is saved: start "
                "the script again, with a running scheduler, and it continues"
            )
        known = self._client.threads()
        if known is not None:
            for arrival in self._client.wait(0.0):  # what a worker reported before it died counts
                self._take_in(arrival)
            for worker in self._placement.update(*known, now=self._last_look):
                self._lose_worker(worker)
            self._check_unused()

    def _check_unused(self) -> None:
        """Wait for workers, but not for ever, if no race is running and none can be sent."""
        can_run = bool(self._sent or self._placement.slots)
        is_retry = self._unused_since is not None and not self._placement.has_trusted
        if can_run and is_retry and self._waiting:
            return  # some that have failed are tried again: the clock goes on
        if can_run or not self._waiting:
            if self._unused_since is not None:
                logger.info("The Dask cluster has workers again.")
            self._unused_since = None
            return
        now = time.monotonic()
        if self._unused_since is None:
            self._unused_since = now
            logger.warning(
                "The Dask cluster has no worker that can run a race. Waiting up to %s seconds "
                "for one.%s",
                self._worker_timeout,
                self._unfit_workers(),
            )
        if now - self._unused_since >= self._worker_timeout:
            raise NoWorkersError(
                f"the Dask cluster has had no worker for {self._worker_timeout} seconds "
                "(worker_timeout). Everything so far is saved: start the script again when there "
                f"are workers, and it continues.{self._unfit_workers()}"
            )

    def _unfit_workers(self) -> str:
        return "".join(
            f" Worker {address} cannot run races: {why}."
            for address, why in self._placement.unfit.items()
        )

    def _lose_worker(self, worker: WorkerLoad) -> None:
        lost = [race for race in self._sent.values() if race.worker == worker.address]
        if not lost:
            return
        in_order = self._client.has_left_in_order(worker.address)
        how = "has left" if in_order else "is lost"
        logger.warning("Worker %s %s; races run again: %s.", worker.address, how, len(lost))
        for race in reversed(lost):  # each goes to the head of the queue
            self._take_back(race, counts=not in_order)

    # --- races -------------------------------------------------------------------------------

    def _send_races(self) -> None:
        """Send as many races as the workers have room for, in order."""
        if not self._waiting or not self._client.is_up:
            return
        if self._client.set_up():
            self._placement.forgive()
        is_quick = self._mean_seconds is not None and self._mean_seconds < LOOK_AHEAD_BELOW
        held_back: list[_RaceInProgress] = []
        while self._waiting:
            race = self._waiting.popleft()
            if race.losses:
                worker = self._placement.reserve(race.number)
            else:
                worker = self._placement.choose(len(race.message.jobs), look_ahead=is_quick)
            if worker is not None:
                self._send(race, worker)
                continue
            held_back.append(race)
            if not race.losses:
                break
        self._waiting.extendleft(reversed(held_back))

    def _send(self, race: _RaceInProgress, worker: WorkerLoad) -> None:
        race.tries += 1
        race.worker = worker.address
        race.message = replace(race.message, key=f"{self._run}-{race.number}-{race.tries}")
        self._client.send(race.message, worker.address)
        worker.races[race.number] = len(race.message.jobs)
        self._sent[race.task] = race

    def _take_in(self, arrival: Arrival) -> None:
        race = self._sent.get(arrival.key)
        if race is None:  # it was given up before
            return
        assert race.worker is not None, "what was sent is on a worker"
        if arrival.done is not None:
            self._forget(race)
            self._note_time(arrival.done)
            self._placement.trust(race.worker)
            self._unused_since = None
            self._reports.append(opened(arrival.done, race.key))
            return
        if arrival.failure is Failure.TARGET_UNFIT and self._mean_seconds is None:
            assert arrival.error is not None
            raise arrival.error
        # Once there has been a report the target can be loaded: elsewhere, if not there.
        if arrival.failure in (Failure.WORKER_UNFIT, Failure.TARGET_UNFIT):
            self._exclude(race.worker, str(arrival.error))
        self._take_back(race, counts=arrival.failure is Failure.WORKER_DIED)

    def _exclude(self, worker: str, why: str) -> None:
        seconds = self._placement.exclude(worker, why, now=time.monotonic())
        logger.warning("Worker %s gets no more races for %.0f seconds: %s", worker, seconds, why)

    def _take_back(self, race: _RaceInProgress, *, counts: bool) -> None:
        """Put a race back to the head of the queue, unless there is no point in trying again."""
        self._forget(race)
        if counts and race.worker is not None:
            race.losses.append(race.worker)
        if race.is_cancelled:
            self._end(race, End.CANCELLED)
        elif len(race.losses) >= MOST_LOSSES:
            workers = ", ".join(race.losses)
            error = f"the race was given up: its worker died each time: {workers}"
            logger.warning("Race %s: %s", race.key, error)
            self._end(race, End.CRASHED, error)
        else:
            self._waiting.appendleft(race)

    def _forget(self, race: _RaceInProgress) -> None:
        del self._sent[race.task]
        self._placement.release(race.number)
        self._client.drop([race.task])

    def _end(self, race: _RaceInProgress, status: End, error: str | None = None) -> None:
        """Report a race that none of the racers took part in."""
        racer = RacerReport(status, started=time.time(), error=error)
        self._reports.append(RaceReport(race.key, (racer,) * len(race.message.jobs), None))

    def _note_time(self, done: RaceReport) -> None:
        seconds = max(racer.time for racer in done.racers)
        mean = seconds if self._mean_seconds is None else self._mean_seconds
        self._mean_seconds = 0.8 * mean + 0.2 * seconds

    def _send_cancellations(self) -> None:
        doomed = [race for race in self._to_cancel if race.task in self._sent]
        self._to_cancel.clear()
        if doomed:
            workers = sorted({race.worker for race in doomed if race.worker is not None})
            self._client.cancel([race.task for race in doomed], workers)
