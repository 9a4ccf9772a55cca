"""Lets several threads share a race track: one thread of its own drives it.

For a worker of a cluster, which runs each task in a thread. Knows nothing of the cluster.
"""

from __future__ import annotations

import contextlib
import selectors
import socket
import threading
import time
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from queue import Empty, SimpleQueue

from acband_configspace.core.ends import End
from acband_configspace.running.local.messages import Job
from acband_configspace.running.local.track import RaceTrack
from acband_configspace.running.race import RaceReport, RacerReport

#: Seconds without a race after which the track, and with it the loaded target, is given up.
#: Whoever wanted the races may be gone without a word.
IDLE_SECONDS = 60.0


class DriverClosedError(RuntimeError):
    """The race was not run to its end, because the worker or the run was closed."""


@dataclass(frozen=True)
class RaceOrder:
    """A race on its way to a worker."""

    key: str
    jobs: tuple[Job, ...]
    stop_losers: bool


@dataclass(frozen=True)
class _Start:
    order: RaceOrder
    answer: Future[RaceReport]


@dataclass(frozen=True)
class _Cancel:
    key: str


@dataclass(frozen=True)
class _Close:
    pass


class TrackDriver:
    """Runs races on a track that is opened for the first of them.

    Args:
        open_track: Returns the track to use; called again if the track was lost or given up.
    """

    def __init__(self, open_track: Callable[[], RaceTrack]) -> None:
        self._open_track = open_track
        self._track: RaceTrack | None = None
        self._answers: dict[str, Future[RaceReport]] = {}
        self._cancelled_ahead: set[str] = set()
        self._commands: SimpleQueue[_Start | _Cancel | _Close] = SimpleQueue()
        self._closed = False
        self._bell, self._bell_rope = socket.socketpair()
        for end in (self._bell, self._bell_rope):
            end.setblocking(False)
        self._thread = threading.Thread(target=self._drive, name="race-track", daemon=True)
        self._thread.start()

    def run(self, order: RaceOrder) -> RaceReport:
        """Run a race and wait for its report, in which returned values are still pickled.

        Raises:
            DriverClosedError: if the driver is closed before the race is over.
            TargetLoadError, SupervisorDiedError: as the race track does.
        """
        answer: Future[RaceReport] = Future()
        self._tell(_Start(order, answer))
        return answer.result()

    def cancel(self, key: str) -> None:
        """Stop a race, or keep it from starting if it comes later."""
        self._tell(_Cancel(key))

    def close(self, timeout: float) -> None:
        """Stop all races and wait until their racers are gone, at most so many seconds."""
        self._tell(_Close())
        self._thread.join(timeout)

    def _tell(self, command: _Start | _Cancel | _Close) -> None:
        self._commands.put(command)
        with contextlib.suppress(OSError):  # rung already, or closed
            self._bell_rope.send(b"!")
        if self._closed:  # the thread may not have seen this command any more
            self._refuse_waiting()

    def _next_command(self) -> _Start | _Cancel | _Close | None:
        # Not ``empty`` and then ``get``: another thread may refuse what is waiting meanwhile.
        try:
            return self._commands.get_nowait()
        except Empty:
            return None

    # --- in the driver's thread --------------------------------------------------------------

    def _drive(self) -> None:
        try:
            while not self._closed:
                self._await_event()
                try:
                    self._obey()
                    self._answer()
                except Exception as error:  # the track is lost: whoever raced on it must know
                    self._give_up_track()
                    self._fail_all(error)
        finally:
            self._closed = True
            self._give_up_track()
            self._fail_all(DriverClosedError("the worker was closed, or the run"))
            self._refuse_waiting()
            self._bell.close()
            self._bell_rope.close()

    def _await_event(self) -> None:
        idle = self._track is not None and not self._answers
        with selectors.DefaultSelector() as selector:
            selector.register(self._bell, selectors.EVENT_READ)
            if self._track is not None:
                selector.register(self._track, selectors.EVENT_READ)
            happened = selector.select(IDLE_SECONDS if idle else None)
        with contextlib.suppress(BlockingIOError):
            self._bell.recv(4096)
        # Without a race the track has nothing to say but that its supervisor is gone.
        if idle and (not happened or any(key.fileobj is self._track for key, _ in happened)):
            self._give_up_track()

    def _obey(self) -> None:
        while (command := self._next_command()) is not None:
            if isinstance(command, _Start):
                self._start(command.order, command.answer)
            elif isinstance(command, _Cancel):
                if command.key in self._answers and self._track is not None:
                    self._track.cancel(command.key)
                else:
                    self._cancelled_ahead.add(command.key)
            else:
                self._closed = True
                return

    def _start(self, order: RaceOrder, answer: Future[RaceReport]) -> None:
        if order.key in self._cancelled_ahead:
            self._cancelled_ahead.remove(order.key)
            answer.set_result(unstarted(order.key, order.jobs, End.CANCELLED))
            return
        self._answers[order.key] = answer
        if self._track is None:
            self._track = self._open_track()
        self._track.start_jobs(order.key, order.jobs, stop_losers=order.stop_losers)

    def _answer(self) -> None:
        if self._track is not None:
            for report in self._track.receive(0):
                self._answers.pop(str(report.key)).set_result(report)

    def _give_up_track(self) -> None:
        if self._track is not None:
            self._track.close()
            self._track = None

    def _fail_all(self, error: Exception) -> None:
        while self._answers:
            self._answers.popitem()[1].set_exception(error)

    def _refuse_waiting(self) -> None:
        while (command := self._next_command()) is not None:
            if isinstance(command, _Start):
                command.answer.set_exception(DriverClosedError("the driver is closed"))


def unstarted(
    key: Hashable, jobs: Sequence[Job], status: End, error: str | None = None
) -> RaceReport:
    """Return a report of a race that none of the racers took part in."""
    racer = RacerReport(status, started=time.time(), error=error)
    return RaceReport(key, (racer,) * len(jobs), winner=None)
