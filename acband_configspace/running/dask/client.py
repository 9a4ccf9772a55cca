"""The connection to a Dask cluster: what is sent there, what comes back, and what that means.

Everything that has to be known about Dask on our side of the connection is known here.
"""

from __future__ import annotations

import asyncio
import enum
import logging
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Any

from distributed import Client, KilledWorker

from acband_configspace.running.dask.worker import (
    CLOSING_NOTE,
    NotSetUpError,
    RacePlugin,
    RacesClosedError,
    cancel_races,
    make_task,
)
from acband_configspace.running.local.messages import StartRace
from acband_configspace.running.local.track import SupervisorDiedError, TargetLoadError
from acband_configspace.running.race import RaceReport

logger = logging.getLogger(__name__)

#: The action that the scheduler notes when a worker joins.
JOINED = "add-worker"
#: Seconds the scheduler may take to answer.
ANSWER_SECONDS = 10.0
#: Seconds between two tries to set up the workers.
SETUP_INTERVAL = 0.5


class Failure(enum.Enum):
    """Why there is no report of a task."""

    WORKER_DIED = "worker died"
    """While it ran, and maybe because it did."""
    TASK_LOST = "task lost"
    """The cluster has forgotten it, or the run: the scheduler was restarted, or the client was."""
    WAIT_ENDED = "wait ended"
    """Somebody else who uses the client has stopped fetching results, and with them this one."""
    WORKER_UNFIT = "worker unfit"
    """This worker cannot run races: it is closing, or has other packages than we have."""
    TARGET_UNFIT = "target unfit"
    """The target cannot be loaded."""


@dataclass(frozen=True)
class Arrival:
    """What became of a task."""

    key: str
    done: RaceReport | None = None
    failure: Failure | None = None
    error: BaseException | None = None
    set_up: int = 0
    """How often the workers had been set up when it was sent."""


class ClusterClient:
    """Sends races to the workers of a cluster and fetches their reports as they come.

    The plugin is what each worker needs to run races. The client is never closed here.
    """

    def __init__(self, client: Any, plugin: RacePlugin) -> None:
        if not isinstance(client, Client):
            raise TypeError(f"client must be a dask.distributed.Client but got {client!r}")
        if client.asynchronous:
            raise ValueError("client must not be asynchronous, but this one is")
        self._client: Any = client  # it is only typed in part
        self._plugin = plugin
        self._is_set_up = False
        self._is_registered = False
        """Whether the scheduler may have the plugin, also if some workers could not be set up."""
        self._n_set_ups = 0
        self._is_proven = False
        """Whether a race was reported since the workers were set up, so that this has worked."""
        self._tasks: dict[str, Any] = {}
        """The future of each task that was sent and not dropped."""
        self._arrived: SimpleQueue[Arrival] = SimpleQueue()

    @property
    def is_up(self) -> bool:
        """Whether the scheduler can be spoken to."""
        return bool(self._client.status == "running")

    @property
    def is_lost(self) -> bool:
        """Whether the client has given up on the scheduler."""
        return self._client.status in ("closing", "closed")

    def threads(self) -> tuple[Mapping[str, int], Mapping[str, int]] | None:
        """Return the threads of all workers, and of those that take tasks; None if unknown."""
        if not self.is_up:
            return None
        try:
            known: tuple[Mapping[str, int], Mapping[str, int]] = self._client.sync(
                self._fetch_threads, callback_timeout=ANSWER_SECONDS
            )
        except (OSError, asyncio.TimeoutError) as error:  # the client connects again, or closes
            logger.debug("The scheduler does not answer: %s", error)
            return None
        return known

    async def _fetch_threads(self) -> tuple[Mapping[str, int], Mapping[str, int]]:
        scheduler = self._client.scheduler
        return await scheduler.ncores(), await scheduler.ncores_running()

    def has_left_in_order(self, worker: str) -> bool:
        """Return whether a worker that is gone was closed, rather than killed by what it ran."""
        try:
            events = self._client.get_events(worker)
        except Exception:  # no answer, no excuse
            return False
        in_order = False
        for _, message in events:
            if not isinstance(message, dict):
                continue
            if message.get("action") == JOINED:
                in_order = False  # what came before is about another worker at this address
            elif message.get("action") == CLOSING_NOTE["action"] or message.get("expected"):
                in_order = True
        return in_order

    def set_up(self) -> bool:
        """Have the plugin sent to all workers, now and later; return whether that was necessary."""
        if self._is_set_up:
            return False
        self._n_set_ups += 1  # first: what setting up closes was sent before
        self._is_proven = False
        self._is_registered = True
        for chances in (2, 1, 0):
            try:
                self._client.register_plugin(self._plugin, name=self._plugin.name)
                break
            except OSError:  # a worker was lost just now
                if not chances:
                    raise
                time.sleep(SETUP_INTERVAL)
        self._is_set_up = True
        return True

    def send(self, race: StartRace, worker: str) -> None:
        """Have a worker run a race."""
        future = self._client.submit(
            *make_task(self._plugin.name, race),
            key=race.key,
            pure=False,
            retries=0,
            workers=[worker],
            allow_other_workers=False,
        )
        key = str(race.key)
        self._tasks[key] = future
        asyncio.run_coroutine_threadsafe(
            self._follow(key, future, self._n_set_ups), self._client.loop.asyncio_loop
        )

    async def _follow(self, key: str, future: Any, set_up: int) -> None:
        """Fetch the result of a task as soon as it is there, unless it is dropped before.

        If the worker dies before it is fetched, Dask waits for it to come back. We do not: whoever
        looks after the workers drops the task, and Dask ends the wait for what is released. To
        cancel the wait would be wrong: Dask fetches several results at once, and would give up all.
        """
        try:
            done = await future
        except asyncio.CancelledError as cancelled:
            self._note(Arrival(key, failure=Failure.WAIT_ENDED, error=cancelled, set_up=set_up))
            raise
        except Exception as error:  # the task's, or Dask's, which has many
            failure = self._meaning_of(error, set_up)
            self._note(Arrival(key, failure=failure, error=error, set_up=set_up))
        else:
            self._is_proven |= set_up == self._n_set_ups
            self._note(Arrival(key, done=done, set_up=set_up))

    def _note(self, arrival: Arrival) -> None:
        if arrival.key in self._tasks:  # what was dropped ends with an error of no meaning
            self._arrived.put(arrival)

    def wait(self, patience: float) -> list[Arrival]:
        """Return what has become of tasks; wait for one of them to end if none has."""
        arrivals: list[Arrival] = []
        try:
            if patience > 0:
                arrivals.append(self._arrived.get(timeout=patience))
            while True:
                arrivals.append(self._arrived.get_nowait())
        except Empty:
            pass
        lost = [arrival.set_up for arrival in arrivals if arrival.failure is Failure.TASK_LOST]
        if self._n_set_ups in lost:  # what was sent before we last set up says nothing about that
            self._is_set_up = False  # what we set up may be lost as well
        return arrivals

    def drop(self, keys: Iterable[str]) -> None:
        """Let go of tasks, over or not: Dask forgets them, and workers stop their races."""
        futures = [self._tasks.pop(key) for key in keys]
        if self.is_up:  # else Dask has let go of them itself
            for future in futures:
                future.release()

    def cancel(self, keys: Sequence[str], workers: Sequence[str]) -> None:
        """Tell workers to stop races and report them, without waiting for those that are gone."""
        threading.Thread(target=self._tell_to_cancel, args=(keys, workers), daemon=True).start()

    def _tell_to_cancel(self, keys: Sequence[str], workers: Sequence[str]) -> None:
        run = self._plugin.name
        try:
            self._client.run(cancel_races, run, keys, workers=workers, on_error="ignore")
        except Exception as error:  # a worker is lost, then, and with it its racers
            logger.debug("Some workers could not be told to stop races: %s", error)

    def close(self, seconds: float) -> None:
        """Drop all tasks and have the workers close the run; take at most so long."""
        self.drop(list(self._tasks))
        if not self.is_up or not self._is_registered:
            return  # without a scheduler the workers end, and with them the racers
        self._is_set_up = self._is_registered = False
        try:
            self._client.sync(
                self._client.scheduler.unregister_worker_plugin,
                name=self._plugin.name,
                callback_timeout=seconds,
            )
        except ValueError as error:  # a scheduler that was started anew does not know it
            logger.debug("There was nothing to tell the workers: %s", error)
        except Exception as error:  # a worker is dying: its racers die with it
            logger.warning("Some workers could not be told that the run is over: %s", error)

    def _meaning_of(self, error: Exception, set_up: int) -> Failure:
        if isinstance(error, (KilledWorker, SupervisorDiedError)):
            return Failure.WORKER_DIED
        if isinstance(error, CancelledError):
            return Failure.TASK_LOST
        if isinstance(error, RacesClosedError) and set_up < self._n_set_ups:
            return Failure.TASK_LOST  # setting up the workers again has closed it
        if isinstance(error, NotSetUpError) and self._is_proven:
            # A scheduler that was restarted while no task was out shows in no other way. If there
            # was no report since we last set up the workers, doing so again would not help.
            return Failure.TASK_LOST
        if isinstance(error, TargetLoadError):
            return Failure.TARGET_UNFIT
        return Failure.WORKER_UNFIT
