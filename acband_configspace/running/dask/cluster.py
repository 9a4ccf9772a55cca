"""Runs races on the workers of a Dask cluster, with the face of a race track.

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

import cloudpickle

from acband_configspace.core.ends import End
from acband_configspace.errors import NoWorkersError, SchedulerLostError
from acband_configspace.running.dask.client import Arrival, DaskLink, Failure
from acband_configspace.running.dask.placement import Member, Roster
from acband_configspace.running.dask.track_thread import RaceOrder, unstarted
from acband_configspace.running.dask.worker import CLOSING_SECONDS, RaceSite, TrackSettings
from acband_configspace.running.local.messages import Job, PickledShared
from acband_configspace.running.local.track import jobs_of, with_values
from acband_configspace.running.race import Clock, RaceReport, RaceSpec
from acband_configspace.running.targets import Target

logger = logging.getLogger(__name__)

#: Seconds between two looks at which workers there are.
LOOK_INTERVAL = 0.5
#: A race that has lost so many workers is not tried on another.
MOST_LOSSES = 3
#: While races take fewer seconds than this on average, each worker has one more waiting, so that
#: it need not wait for us. Longer ones are better kept for whoever is free first.
LOOK_AHEAD_BELOW = 1.0


@dataclass
class _Race:
    """A race that is not over."""

    number: int
    key: Hashable
    jobs: tuple[Job, ...]
    stop_losers: bool
    tries: int = 0
    losses: list[str] = field(default_factory=list)
    """Workers that died while this race was there."""
    is_cancelled: bool = False


@dataclass(frozen=True)
class _Sent:
    """A race on a worker."""

    race: _Race
    task: str
    worker: str


class RaceCluster:
    """Runs races like a :class:`RaceTrack`, each on a worker of a Dask cluster.

    Each worker runs as many races at once as its threads allow for ``racers`` racers each, at
    least one. Workers that join are used, and those that leave are not missed: their races are run
    again elsewhere. A race that was there when three workers died is reported as crashed; after
    the first time it runs alone on a worker, so that it takes no other race with it.

    Args:
        client: A connected client, which stays open. Not an asynchronous one.
        target: What races; sent to each worker once.
        racers: How many racers a race usually has.
        cutoff, memory_limit_mb, clock, grace, shared: As for a race track.
        worker_timeout: Seconds to wait for workers when there are none.
    """

    def __init__(
        self,
        client: Any,
        target: Target,
        *,
        racers: int,
        cutoff: float | None = None,
        memory_limit_mb: int | None = None,
        clock: Clock = "wall",
        grace: float = 0.05,
        shared: object = None,
        worker_timeout: float = 300.0,
    ) -> None:
        self._target = target
        self._shared = shared
        self._settings = TrackSettings(
            pickled_function=target.pickled_function,
            shared=PickledShared(cloudpickle.dumps(shared)),
            racers=racers,
            cutoff=cutoff,
            memory_limit_mb=memory_limit_mb,
            clock=clock,
            grace=grace,
        )
        self._worker_timeout = worker_timeout
        self._site = f"acband-{uuid.uuid4().hex[:12]}"
        self._link = DaskLink(client, RaceSite(self._site, self._settings))
        self._roster = Roster(racers)
        self._last_look = -math.inf
        self._unused_since: float | None = None
        self._unfinished: dict[Hashable, _Race] = {}
        self._waiting: deque[_Race] = deque()
        self._sent: dict[str, _Sent] = {}
        self._to_cancel: list[_Sent] = []
        self._reports: list[RaceReport] = []
        self._races_started = 0
        self._mean_seconds: float | None = None
        self._look_for_workers()

    @property
    def slots(self) -> int:
        """How many racers the cluster can run at once, at the last look."""
        return self._roster.slots

    @property
    def unfinished(self) -> int:
        """How many races were started here and not yet reported."""
        return len(self._unfinished)

    def start(self, spec: RaceSpec) -> None:
        """Queue a race; it is sent when a worker has room for it."""
        if spec.key in self._unfinished:
            raise ValueError(f"key must differ from all unfinished races but got {spec.key!r}")
        cutoff = self._settings.cutoff
        jobs = jobs_of(spec, self._target, cutoff=cutoff, shared=self._shared)
        self._races_started += 1
        race = _Race(self._races_started, spec.key, jobs, spec.stop_losers)
        self._unfinished[spec.key] = race
        self._waiting.append(race)
        self._send_races()

    def wait(self, timeout: float | None = None) -> list[RaceReport]:
        """Wait until at least one race is over, and return the reports of all that are.

        Returns an empty list if that takes longer than ``timeout`` seconds, if no race is
        unfinished, or if workers have joined that could be given more races.

        Raises:
            NoWorkersError: if there was no worker for too long.
            SchedulerLostError: if the connection to the scheduler is lost for good.
            TargetLoadError: if a worker cannot load the target.
        """
        deadline = math.inf if timeout is None else time.monotonic() + timeout
        capacity = self._roster.capacity
        while self._unfinished and not self._reports and self._roster.capacity <= capacity:
            if time.monotonic() - self._last_look >= LOOK_INTERVAL:
                self._look_for_workers()
            self._send_cancellations()
            self._send_races()
            remaining = max(0.0, deadline - time.monotonic())
            patience = 0.0 if self._reports else min(remaining, LOOK_INTERVAL)
            for arrival in self._link.hear(patience):
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
            self._roster.release(race.number)  # a worker may be kept free for it
            self._end(race, End.CANCELLED)
        self._to_cancel += [sent for sent in self._sent.values() if sent.race is race]

    def close(self) -> None:
        """Stop all races and close the race tracks on the workers. Races are not reported."""
        self._unfinished.clear()
        self._waiting.clear()
        self._sent.clear()
        self._to_cancel.clear()
        self._reports.clear()
        self._link.close(self._settings.grace + 2 * CLOSING_SECONDS)

    # --- workers -----------------------------------------------------------------------------

    def _look_for_workers(self) -> None:
        """See who is there; races of workers that are gone go back to the queue."""
        self._last_look = time.monotonic()
        if self._link.is_lost:
            raise SchedulerLostError(
                "the connection to the Dask scheduler is lost. Everything so far is saved: start "
                "the script again, with a scheduler that runs, and it goes on"
            )
        known = self._link.threads()
        if known is not None:
            for member in self._roster.update(*known):
                self._lose_worker(member)
            self._check_unused()

    def _check_unused(self) -> None:
        """Wait for workers, but not for ever, if no race is running and none can be sent."""
        if self._sent or not self._waiting or self._roster.capacity:
            if self._unused_since is not None:
                logger.info("The Dask cluster has workers again.")
            self._unused_since = None
            return
        now = time.monotonic()
        if self._unused_since is None:
            self._unused_since = now
            logger.warning(
                "The Dask cluster has no worker that can run a race. Waiting up to %s seconds "
                "for one.",
                self._worker_timeout,
            )
        if now - self._unused_since >= self._worker_timeout:
            raise NoWorkersError(
                f"the Dask cluster has had no worker for {self._worker_timeout} seconds "
                "(worker_timeout). Everything so far is saved: start the script again when there "
                "are workers, and it goes on"
            )

    def _lose_worker(self, member: Member) -> None:
        lost = [sent for sent in self._sent.values() if sent.worker == member.address]
        if not lost:
            return
        in_order = self._link.has_left_in_order(member.address)
        how = "has left" if in_order else "is lost"
        logger.warning("Worker %s %s; races run again: %s.", member.address, how, len(lost))
        for sent in reversed(lost):  # each goes to the head of the queue
            self._take_back(sent, counts=not in_order)

    # --- races -------------------------------------------------------------------------------

    def _send_races(self) -> None:
        """Send as many races as the workers have room for, in order."""
        if not self._waiting or not self._link.is_up:
            return
        if self._link.set_up():
            self._roster.forgive()
        is_quick = self._mean_seconds is not None and self._mean_seconds < LOOK_AHEAD_BELOW
        held_back: list[_Race] = []
        while self._waiting:
            race = self._waiting.popleft()
            if race.losses:
                member = self._roster.reserve(race.number)
            else:
                member = self._roster.choose(look_ahead=int(is_quick))
            if member is not None:
                self._send(race, member)
                continue
            held_back.append(race)
            if not race.losses:
                break
        self._waiting.extendleft(reversed(held_back))

    def _send(self, race: _Race, member: Member) -> None:
        race.tries += 1
        # A name of its own for each try: a late answer to an earlier one must not count.
        task = f"{self._site}-{race.number}-{race.tries}"
        self._link.send(RaceOrder(task, race.jobs, race.stop_losers), member.address)
        member.races.add(race.number)
        self._sent[task] = _Sent(race, task, member.address)

    def _take_in(self, arrival: Arrival) -> None:
        sent = self._sent.get(arrival.key)
        if sent is None:  # it was given up before
            return
        if arrival.report is not None:
            self._forget(sent)
            self._note_time(arrival.report)
            self._reports.append(replace(with_values(arrival.report), key=sent.race.key))
        elif arrival.failure is Failure.TARGET_UNFIT:
            assert arrival.error is not None
            raise arrival.error
        else:
            if arrival.failure is Failure.WORKER_UNFIT:
                logger.warning("Worker %s gets no more races: %s", sent.worker, arrival.error)
                self._roster.exclude(sent.worker)
            self._take_back(sent, counts=arrival.failure is Failure.WORKER_DIED)

    def _take_back(self, sent: _Sent, *, counts: bool) -> None:
        """Put a race back to the head of the queue, unless there is no point in trying again."""
        self._forget(sent)
        race = sent.race
        if counts:
            race.losses.append(sent.worker)
        if race.is_cancelled:
            self._end(race, End.CANCELLED)
        elif len(race.losses) >= MOST_LOSSES:
            workers = ", ".join(race.losses)
            error = f"the race is not tried again, because its worker died each time: {workers}"
            logger.warning("Race %s is given up: %s", race.key, error)
            self._end(race, End.CRASHED, error)
        else:
            self._waiting.appendleft(race)

    def _forget(self, sent: _Sent) -> None:
        del self._sent[sent.task]
        self._roster.release(sent.race.number)
        self._link.drop([sent.task])

    def _end(self, race: _Race, status: End, error: str | None = None) -> None:
        self._reports.append(unstarted(race.key, race.jobs, status, error))

    def _note_time(self, report: RaceReport) -> None:
        seconds = max(racer.time for racer in report.racers)
        mean = seconds if self._mean_seconds is None else self._mean_seconds
        self._mean_seconds = 0.8 * mean + 0.2 * seconds

    def _send_cancellations(self) -> None:
        doomed = [sent for sent in self._to_cancel if sent.task in self._sent]
        self._to_cancel.clear()
        if doomed:
            workers = sorted({sent.worker for sent in doomed})
            self._link.cancel([sent.task for sent in doomed], workers)
