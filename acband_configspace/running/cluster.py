"""Runs races on the workers of a Dask cluster, with the face of a race track.

A race is the unit that travels: its racers run on one worker, so they are timed and stopped there.
Which worker gets which race is decided here and not by Dask, which knows nothing of racers.
"""

from __future__ import annotations

import asyncio
import logging
import math
import threading
import time
import uuid
from collections import deque
from collections.abc import Hashable, Mapping
from concurrent.futures import CancelledError
from concurrent.futures import Future as ThreadFuture
from dataclasses import dataclass, field, replace
from queue import Empty, SimpleQueue
from typing import Any

from distributed import Client, Future, KilledWorker

from acband_configspace.errors import NoWorkersError, SchedulerLostError
from acband_configspace.running.driver import RaceOrder, unstarted
from acband_configspace.running.messages import Job
from acband_configspace.running.race import Clock, RacerStatus, RaceReport, RaceSpec
from acband_configspace.running.racetrack import (
    StarterDiedError,
    TargetLoadError,
    jobs_of,
    with_values,
)
from acband_configspace.running.remote import (
    CLOSING_SECONDS,
    RaceSite,
    TrackSettings,
    cancel_races,
    run_race,
)
from acband_configspace.running.roster import Member, Roster
from acband_configspace.running.targets import Target

logger = logging.getLogger(__name__)

#: Seconds between two looks at which workers there are.
LOOK_INTERVAL = 0.5
#: Seconds the scheduler may take to answer.
ANSWER_SECONDS = 10.0
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
    order: RaceOrder
    worker: str
    future: Future
    follower: ThreadFuture[None]


@dataclass(frozen=True)
class _Arrival:
    """What became of a task: a report, or an error."""

    key: str
    report: RaceReport | None
    error: BaseException | None


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
        client: Client,
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
        if client.asynchronous:
            raise ValueError("client must not be asynchronous but got one that is")
        self._client = client
        self._target = target
        self._settings = TrackSettings(
            pickled_function=target.pickled_function,
            shared=shared,
            racers=racers,
            cutoff=cutoff,
            memory_limit_mb=memory_limit_mb,
            clock=clock,
            grace=grace,
        )
        self._worker_timeout = worker_timeout
        self._site = f"acband-{uuid.uuid4().hex[:12]}"
        self._is_set_up = False
        self._roster = Roster(racers)
        self._last_look = -math.inf
        self._unused_since: float | None = None
        self._unfinished: dict[Hashable, _Race] = {}
        self._waiting: deque[_Race] = deque()
        self._sent: dict[str, _Sent] = {}
        self._arrived: SimpleQueue[_Arrival] = SimpleQueue()
        self._reports: list[RaceReport] = []
        self._to_cancel: dict[str, list[str]] = {}
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
        settings = self._settings
        jobs = jobs_of(spec, self._target, cutoff=settings.cutoff, shared=settings.shared)
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
            self._hear(min(remaining, LOOK_INTERVAL) if not self._reports else 0.0)
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
            self._end(race, RacerStatus.CANCELLED)
        for sent in self._sent.values():
            if sent.race is race:
                self._to_cancel.setdefault(sent.worker, []).append(sent.order.key)

    def close(self) -> None:
        """Stop all races and close the race tracks on the workers. Races are not reported."""
        futures = [sent.future for sent in self._sent.values()]
        for sent in self._sent.values():
            sent.follower.cancel()
        for pending in (self._unfinished, self._waiting, self._sent, self._to_cancel):
            pending.clear()
        self._reports.clear()
        if self._client.status != "running":
            return  # without a scheduler the workers end, and with them the racers
        try:
            self._client.cancel(futures)
            if self._is_set_up:
                self._is_set_up = False
                self._ask_scheduler(
                    self._client.scheduler.unregister_worker_plugin,
                    name=self._site,
                    seconds=self._settings.grace + 2 * CLOSING_SECONDS,
                )
        except Exception as error:  # some worker is dying: its racers die with it
            logger.warning("Some workers could not be told that the run is over: %s", error)

    # --- workers -----------------------------------------------------------------------------

    def _look_for_workers(self) -> None:
        """See who is there; races of workers that are gone go back to the queue."""
        self._last_look = time.monotonic()
        if self._client.status in ("closing", "closed"):
            raise SchedulerLostError(
                "the connection to the Dask scheduler is lost. Everything so far is saved: start "
                "the script again, with a scheduler that runs, and it goes on"
            )
        try:
            threads, running = self._ask_scheduler(self._worker_threads)
        except (OSError, asyncio.TimeoutError) as error:  # the client connects again, or closes
            logger.debug("The scheduler does not answer: %s", error)
            return
        for member in self._roster.update(threads, running):
            self._lose_worker(member)
        self._check_unused()

    async def _worker_threads(self) -> tuple[Mapping[str, int], Mapping[str, int]]:
        scheduler = self._client.scheduler
        return await scheduler.ncores(), await scheduler.ncores_running()

    def _check_unused(self) -> None:
        """Wait for workers, but not for ever, if no race is running and none can be sent."""
        if self._sent or not self._waiting or self._roster.capacity:
            if self._unused_since is not None:
                logger.info("There are workers again.")
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
        elif now - self._unused_since > self._worker_timeout:
            raise NoWorkersError(
                f"the Dask cluster has had no worker for {self._worker_timeout} seconds "
                "(worker_timeout). Everything so far is saved: start the script again when there "
                "are workers, and it goes on"
            )

    def _lose_worker(self, member: Member) -> None:
        lost = [sent for sent in self._sent.values() if sent.worker == member.address]
        if not lost:
            return
        in_order = self._has_left_in_order(member.address)
        how = "has left" if in_order else "is lost"
        logger.warning("Worker %s %s; %s races are run again.", member.address, how, len(lost))
        for sent in reversed(lost):  # each goes to the head of the queue
            self._take_back(sent, counts=not in_order)

    def _has_left_in_order(self, address: str) -> bool:
        """Return whether a worker was closed, rather than killed by what it ran."""
        try:
            events = self._client.get_events(address)
        except Exception:  # no answer, no excuse
            return False
        messages = [message for _, message in events if isinstance(message, dict)]
        return any(
            message.get("action") == "closing-worker" or message.get("expected")
            for message in messages
        )

    def _set_up(self) -> None:
        """Have the scheduler send the target to all workers, now and later."""
        for chances in (2, 1, 0):
            try:
                self._client.register_plugin(
                    RaceSite(self._site, self._settings), name=self._site
                )
                break
            except OSError:  # a worker was lost just now
                if not chances:
                    raise
                time.sleep(LOOK_INTERVAL)
        self._is_set_up = True
        self._roster.forgive()

    # --- races -------------------------------------------------------------------------------

    def _send_races(self) -> None:
        """Send as many races as the workers have room for, in order."""
        if not self._waiting or self._client.status != "running":
            return
        if not self._is_set_up:
            self._set_up()
        is_quick = self._mean_seconds is not None and self._mean_seconds < LOOK_AHEAD_BELOW
        left: deque[_Race] = deque()
        while self._waiting:
            race = self._waiting.popleft()
            if race.losses:
                member = self._roster.reserve(race.number)
            else:
                member = self._roster.choose(look_ahead=int(is_quick))
            if member is not None:
                self._send(race, member)
            else:
                left.append(race)
                if not race.losses:
                    break
        self._waiting.extendleft(reversed(left))

    def _send(self, race: _Race, member: Member) -> None:
        race.tries += 1
        # A name of its own for each try: a late answer to an earlier one must not count.
        order = RaceOrder(f"{self._site}-{race.number}-{race.tries}", race.jobs, race.stop_losers)
        future = self._client.submit(
            run_race,
            self._site,
            order,
            key=order.key,
            pure=False,
            retries=0,
            workers=[member.address],
            allow_other_workers=False,
        )
        loop = self._client.loop.asyncio_loop
        follower = asyncio.run_coroutine_threadsafe(self._follow(order.key, future), loop)
        member.races.add(race.number)
        self._sent[order.key] = _Sent(race, order, member.address, future, follower)

    async def _follow(self, key: str, future: Future) -> None:
        """Fetch the result of a task as soon as it is there.

        If the worker dies before it is fetched, Dask waits for it to come back. We do not: the
        look for workers gives the race to another one and calls this off.
        """
        try:
            report = await future
        except asyncio.CancelledError:
            raise
        except BaseException as error:
            self._arrived.put(_Arrival(key, None, error))
        else:
            self._arrived.put(_Arrival(key, report, None))

    def _hear(self, patience: float) -> None:
        """Wait for a task to end, and take in what has become of all that have."""
        try:
            arrival = self._arrived.get(timeout=patience) if patience else self._arrived.get(False)
            while True:
                sent = self._sent.get(arrival.key)
                if sent is not None:  # else it was given up
                    self._take_in(sent, arrival)
                arrival = self._arrived.get(False)
        except Empty:
            pass

    def _take_in(self, sent: _Sent, arrival: _Arrival) -> None:
        error = arrival.error
        if arrival.report is not None:
            self._forget(sent)
            self._note_time(arrival.report)
            report = with_values(arrival.report)
            self._reports.append(replace(report, key=sent.race.key))
        elif isinstance(error, TargetLoadError):
            raise error
        elif isinstance(error, (KilledWorker, StarterDiedError)):
            self._take_back(sent, counts=True)
        elif isinstance(error, CancelledError):
            # The client has lost the scheduler, or was restarted: what we set up may be gone.
            self._is_set_up = False
            self._take_back(sent, counts=False)
        else:
            logger.warning("Worker %s gets no more races: %s", sent.worker, error)
            self._roster.exclude(sent.worker)
            self._take_back(sent, counts=False)

    def _take_back(self, sent: _Sent, *, counts: bool) -> None:
        """Put a race back to the head of the queue, unless it is known to be of no use."""
        self._forget(sent)
        race = sent.race
        if counts:
            race.losses.append(sent.worker)
        if race.is_cancelled:
            self._end(race, RacerStatus.CANCELLED)
        elif len(race.losses) >= MOST_LOSSES:
            workers = ", ".join(race.losses)
            error = f"the race was not tried again after its worker died each time: {workers}"
            logger.warning("Race %s is given up: %s", race.key, error)
            self._end(race, RacerStatus.CRASHED, error)
        else:
            self._waiting.appendleft(race)

    def _forget(self, sent: _Sent) -> None:
        """Let go of a task, so that Dask does too."""
        del self._sent[sent.order.key]
        self._roster.release(sent.race.number)
        sent.follower.cancel()
        if self._client.status == "running":
            sent.future.release()

    def _end(self, race: _Race, status: RacerStatus, error: str | None = None) -> None:
        order = RaceOrder("", race.jobs, race.stop_losers)
        self._reports.append(replace(unstarted(order, status, error), key=race.key))

    def _note_time(self, report: RaceReport) -> None:
        seconds = max(racer.time for racer in report.racers)
        mean = seconds if self._mean_seconds is None else self._mean_seconds
        self._mean_seconds = 0.8 * mean + 0.2 * seconds

    def _send_cancellations(self) -> None:
        """Tell workers which races to stop, without waiting for those that do not answer."""
        if self._to_cancel:
            told, self._to_cancel = self._to_cancel, {}
            threading.Thread(target=self._tell_to_cancel, args=(told,), daemon=True).start()

    def _tell_to_cancel(self, told: Mapping[str, list[str]]) -> None:
        keys = [key for some in told.values() for key in some]
        try:
            self._client.run(
                cancel_races, self._site, keys, workers=list(told), on_error="ignore"
            )
        except Exception as error:  # lost workers, then: their races are reported as cancelled
            logger.debug("Workers could not be told to stop races: %s", error)

    def _ask_scheduler(
        self, question: Any, *, seconds: float = ANSWER_SECONDS, **arguments: Any
    ) -> Any:
        return self._client.sync(question, callback_timeout=seconds, **arguments)
