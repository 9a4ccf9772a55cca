"""What runs on a worker of a Dask cluster: a supervisor for as many racers as it has threads.

It is a worker plugin, so the scheduler sends it, and with it the target, once to each worker that
there is and to each that joins later, and closes it with the worker. Tasks run in threads of the
worker; one more thread talks to the supervisor for all of them.
"""

from __future__ import annotations

import asyncio
import contextlib
import pickle
import selectors
import signal
import socket
import threading
import time
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from typing import Any

from distributed import Status, Worker, WorkerPlugin, get_worker

from acband_configspace.core.ends import End
from acband_configspace.running.local.messages import (
    CancelRace,
    StartRace,
    TrackSettings,
)
from acband_configspace.running.local.track import SupervisorDiedError, SupervisorProcess
from acband_configspace.running.race import RaceReport, RacerReport

#: What a worker that is closed leaves behind; Dask's own workers mostly do, too.
CLOSING_NOTE = {"action": "closing-worker"}
CLOSING = (Status.closing, Status.closed)
#: What is said of a racer that died of the signal by which batch systems end a job.
TERMINATED = "was killed by SIGTERM"
#: Seconds beyond the grace that a worker waits for its racers to be gone.
CLOSING_SECONDS = 2.5
#: Seconds without a race after which the supervisor, and with it the loaded target, is given up.
#: Whoever wanted the races may be gone without a word.
IDLE_SECONDS = 60.0
#: Seconds that may lie between the signals that end a worker and its supervisor.
SIGNALS_APART = 1.0


class RacesClosedError(RuntimeError):
    """The race was not run to its end, because the worker or the run was closed."""


class NotSetUpError(RacesClosedError):
    """The worker does not know the run: the scheduler has not told it, or was started anew."""


class SupervisorThread:
    """Lets several threads share a supervisor: one thread of its own talks to it.

    It is opened for the first race, and again if it was lost or given up.
    """

    def __init__(self, open_supervisor: Callable[[], SupervisorProcess]) -> None:
        self._open_supervisor = open_supervisor
        self._supervisor: SupervisorProcess | None = None
        self._answers: dict[Hashable, Future[RaceReport]] = {}
        self._cancelled_ahead: set[Hashable] = set()
        self._orders: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._closed = False
        self._wakeup, self._wakeup_sender = socket.socketpair()
        for end in (self._wakeup, self._wakeup_sender):
            end.setblocking(False)
        self._thread = threading.Thread(target=self._serve, name="races", daemon=True)
        self._thread.start()

    def run(self, race: StartRace) -> RaceReport:
        """Run a race and wait for its end.

        Raises
        ------
        RacesClosedError
            If this is closed before the race is over.
        TargetLoadError, SupervisorDiedError
            As the race track does.
        """
        answer: Future[RaceReport] = Future()
        self._order(lambda: self._start(race, answer))
        return answer.result()

    def cancel(self, key: Hashable) -> None:
        """Stop a race, or keep it from starting if it comes later."""
        self._order(lambda: self._cancel(key))

    def close(self, timeout: float) -> None:
        """Stop all races and wait until their racers are gone, at most so many seconds."""
        self._order(self._end)
        self._thread.join(timeout)

    def _order(self, order: Callable[[], None]) -> None:
        """Have something done in the thread of its own."""
        self._orders.put(order)
        with contextlib.suppress(OSError):  # told already, or closed
            self._wakeup_sender.send(b"!")
        if self._closed:  # the thread may not have seen this order any more
            self._obey()

    # --- in the thread of its own; once it is closed, orders are refused in any thread ---------

    def _serve(self) -> None:
        try:
            while not self._closed:
                self._await_event()
                self._obey()
                self._try(self._answer)
        finally:
            self._closed = True
            self._give_up_supervisor()
            self._fail_all(RacesClosedError("the worker was closed, or the run"))
            self._obey()
            self._wakeup.close()
            self._wakeup_sender.close()

    def _obey(self) -> None:
        with contextlib.suppress(Empty):
            while True:
                self._try(self._orders.get_nowait())

    def _try(self, step: Callable[[], None]) -> None:
        """Do something; if the supervisor is lost over it, who raced there must know."""
        try:
            step()
        except Exception as error:
            self._give_up_supervisor()
            self._fail_all(error)

    def _await_event(self) -> None:
        idle = self._supervisor is not None and not self._answers
        with selectors.DefaultSelector() as selector:
            selector.register(self._wakeup, selectors.EVENT_READ)
            if self._supervisor is not None:
                selector.register(self._supervisor, selectors.EVENT_READ)
            happened = selector.select(IDLE_SECONDS if idle else None)
        with contextlib.suppress(BlockingIOError):
            self._wakeup.recv(4096)
        # Without a race the supervisor has nothing to say but that it is gone.
        if idle and (not happened or any(key.fileobj is self._supervisor for key, _ in happened)):
            self._give_up_supervisor()

    def _end(self) -> None:
        self._closed = True

    def _cancel(self, key: Hashable) -> None:
        if self._closed:
            return
        if key in self._answers and self._supervisor is not None:
            self._supervisor.send(CancelRace(key))
        else:
            self._cancelled_ahead.add(key)

    def _start(self, race: StartRace, answer: Future[RaceReport]) -> None:
        if self._closed:
            answer.set_exception(RacesClosedError("no more races are run here"))
            return
        if race.key in self._cancelled_ahead:
            self._cancelled_ahead.remove(race.key)
            racer = RacerReport(End.CANCELLED, started=time.time())
            answer.set_result(RaceReport(race.key, (racer,) * len(race.jobs), winner=None))
            return
        self._answers[race.key] = answer
        if self._supervisor is None:
            self._supervisor = self._open_supervisor()
        self._supervisor.send(race)

    def _answer(self) -> None:
        if self._supervisor is not None and self._answers:
            for done in self._supervisor.receive(0):
                self._answers.pop(done.key).set_result(done)

    def _give_up_supervisor(self) -> None:
        if self._supervisor is not None:
            self._supervisor.close()
            self._supervisor = None

    def _fail_all(self, error: Exception) -> None:
        while self._answers:
            self._answers.popitem()[1].set_exception(error)


class RacePlugin(WorkerPlugin):
    """The races of one run on one worker.

    The name tells the runs apart that a cluster serves.
    """

    def __init__(self, name: str, settings: TrackSettings) -> None:
        self.name = name
        self._settings = settings

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """Let a worker without this package load it as a plugin that does nothing.

        Otherwise one such worker would keep Dask from sending it to any other.
        """

        def load(arguments: bytes) -> WorkerPlugin:
            import pickle

            import distributed

            try:
                from acband_configspace.running.dask.worker import RacePlugin
            except ImportError:
                return distributed.WorkerPlugin()
            return RacePlugin(*pickle.loads(arguments))

        return load, (pickle.dumps((self.name, self._settings)),)

    def setup(self, worker: Worker) -> None:
        """Be ready; nothing is loaded yet, so that a mistake in the target shows in a race."""
        slots, settings = worker.state.nthreads, self._settings
        self._races = SupervisorThread(lambda: SupervisorProcess(settings, slots=slots))
        _close_on_sigterm(worker)

    async def teardown(self, worker: Worker) -> None:
        """Stop the racers; the worker keeps serving meanwhile."""
        await _say_goodbye(worker)
        patience = self._settings.limits.grace + CLOSING_SECONDS
        await asyncio.to_thread(self._races.close, patience)

    def transition(self, key: Any, start: str, finish: str, **details: Any) -> None:
        """Stop a race that nobody is waiting for.

        Dask never interrupts a running task. So if the process that wanted it is gone, or the
        scheduler gives the task up, this is the only word of it that reaches the worker.
        """
        if start in ("executing", "long-running") and finish == "released":
            self._races.cancel(str(key))

    def run(self, race: StartRace) -> RaceReport:
        """Run a race; to be called in a thread that may wait."""
        try:
            report = self._races.run(race)
        except SupervisorDiedError:
            _raise_if_closed()
            raise
        if any(TERMINATED in (racer.error or "") for racer in report.racers):
            _raise_if_closed()
        return report

    def cancel(self, keys: Sequence[str]) -> None:
        """Stop races; their tasks report them as cancelled."""
        for key in keys:
            self._races.cancel(key)


def _raise_if_closed() -> None:
    """Blame no race for what the end of this worker did to it.

    A batch system signals all processes of a job, and supervisor or racers may be quicker.
    """
    deadline = time.monotonic() + SIGNALS_APART
    while time.monotonic() < deadline:
        if get_worker().status in CLOSING:
            raise RacesClosedError("the worker was closed")
        time.sleep(0.02)


def _close_on_sigterm(worker: Worker) -> None:
    """Have SIGTERM, as from a batch system, close a worker that would just die of it.

    That is any worker below a nanny. Its races are run again elsewhere in either case, but one
    that dies without a word is suspected to have died of its race.
    """
    in_main_thread = threading.current_thread() is threading.main_thread()
    if in_main_thread and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        loop = asyncio.get_running_loop()
        closing: list[asyncio.Task[Any]] = []  # the loop itself would forget them

        def close() -> None:
            closing.append(loop.create_task(worker.close(nanny=False, reason="SIGTERM")))

        loop.add_signal_handler(signal.SIGTERM, close)


async def _say_goodbye(worker: Worker) -> None:
    """Leave word that the worker is closed and not killed, so that no race is suspected of it.

    A worker that gets SIGTERM, as from a batch system, leaves its scheduler without a word.
    """
    if worker.status in CLOSING:
        with contextlib.suppress(Exception):  # the scheduler may be gone as well
            note = worker.scheduler.log_event(topic=worker.address, msg=CLOSING_NOTE)
            await asyncio.wait_for(note, timeout=1)


def make_task(run: str, race: StartRace) -> tuple[Callable[..., RaceReport], str, bytes]:
    """Return a function and its arguments that run a race on the worker that they are sent to.

    A function within a function is pickled by value, and the race comes as bytes: a worker without
    this package that had to import it to read a message would end, with all that it runs.
    """

    def run_race(run: str, race: bytes) -> RaceReport:
        import pickle

        from acband_configspace.running.dask.worker import plugin_of_this_worker

        return plugin_of_this_worker(run).run(pickle.loads(race))

    return run_race, run, pickle.dumps(race)


def plugin_of_this_worker(run: str) -> RacePlugin:
    """Return the plugin of a run on the worker that this task is on."""
    plugin = get_worker().plugins.get(run)
    if not isinstance(plugin, RacePlugin):
        raise NotSetUpError(f"{run} is not set up on this worker, or no longer")
    return plugin


def cancel_races(run: str, keys: Sequence[str], dask_worker: Worker) -> None:
    """Stop races on a worker: for ``Client.run``, which does not wait for a free thread."""
    plugin = dask_worker.plugins.get(run)
    if isinstance(plugin, RacePlugin):
        plugin.cancel(keys)
