"""The supervisor's process: loads the target once, keeps the queue of races, and decides them.

It is a fresh interpreter, so the user's script is not run again and no thread of the user's
process is forked. Decisions are taken here, not in the user's process, which may be busy with
something else when a racer finishes.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import math
import os
import pickle
import selectors
import signal
import socket
import sys
import time
import traceback
from collections import deque
from dataclasses import replace

from acband_configspace.core.ends import End
from acband_configspace.running.local import process_tree
from acband_configspace.running.local.channel import Channel, channel_pair
from acband_configspace.running.local.messages import (
    CancelRace,
    Finished,
    LowerLimit,
    RaceDone,
    Ready,
    RunRacer,
    Setup,
    SetupFailed,
    StartRace,
    StopRacer,
)
from acband_configspace.running.local.racer import LoadedTarget
from acband_configspace.running.local.watcher import Watcher
from acband_configspace.running.race import RacerReport

#: Seconds to wait for a process to become available for a watcher.
FORK_PATIENCE = 10.0


class _Race:
    """A race that is queued or running."""

    def __init__(self, order: StartRace) -> None:
        self.number = order.number
        self.stop_losers = order.stop_losers
        self.best: float | None = None
        """The least time of a finisher so far: the limit of all others."""
        self.waiting = deque(enumerate(order.jobs))
        self.reports: list[RacerReport | None] = [None] * len(order.jobs)

    @property
    def has_begun(self) -> bool:
        return len(self.waiting) < len(self.reports)


class _WatcherHandle:
    """A watcher as the supervisor sees it, with the racer it runs."""

    def __init__(self, pid: int, channel: Channel) -> None:
        self.pid = pid
        self.channel = channel
        self.race: _Race | None = None
        self.index = 0


class Supervisor:
    """Runs the races of one race track."""

    def __init__(self, channel: Channel, setup: Setup, target: LoadedTarget) -> None:
        self._channel = channel
        self._setup = setup
        self._target = target
        self._queue: deque[_Race] = deque()
        self._watchers: list[_WatcherHandle] = []
        self._user_is_gone = False
        self._selector = selectors.DefaultSelector()
        self._selector.register(channel, selectors.EVENT_READ)
        self._user_process = _watch_process(setup.user_process)
        if self._user_process is not None:
            self._selector.register(self._user_process, selectors.EVENT_READ)
        process_tree.adopt_orphans()
        #: Processes that loading the target has started: not ours to stop before the end.
        self._of_the_target = process_tree.children(os.getpid())
        for _ in range(setup.slots):
            self._add_watcher()

    def serve(self) -> None:
        """Run races until the user's process closes the channel or ends."""
        while not self._user_is_gone:
            for key, _ in self._selector.select():
                if isinstance(key.data, _WatcherHandle):
                    self._hear_watcher(key.data)
                elif key.fileobj is self._channel:
                    self._hear_user()
                else:
                    self._user_is_gone = True
            self._start_racers()
            self._await_user(writable=self._channel.has_unsent)
        self.close()

    def _await_user(self, *, writable: bool) -> None:
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if writable else 0)
        if self._selector.get_key(self._channel).events != events:
            self._selector.modify(self._channel, events)

    def _hear_user(self) -> None:
        self._channel.flush()
        try:
            for message in self._channel.receive():
                if isinstance(message, StartRace):
                    self._queue.append(_Race(message))
                elif isinstance(message, CancelRace):
                    self._cancel(message.number)
        except EOFError:
            self._user_is_gone = True

    def _hear_watcher(self, watcher: _WatcherHandle) -> None:
        try:
            messages = watcher.channel.receive()
        except EOFError:
            self._replace(watcher)
            return
        for message in messages:
            assert watcher.race is not None, "only a watcher with a racer has something to say"
            if isinstance(message, Finished):
                self._note_finish(watcher.race, message.time)
            else:
                self._take_report(watcher, message)

    def _start_racers(self) -> None:
        """Start what fits, in the order of the queue.

        A race begins when all its racers can start together, or all slots are free. Of a race
        larger than that, the rest follow as slots become free.
        """
        while self._queue:
            race = self._queue[0]
            free = [watcher for watcher in self._watchers if watcher.race is None]
            needed = 1 if race.has_begun else min(len(race.waiting), self._setup.slots)
            if len(free) < needed:
                return
            for watcher in free[: len(race.waiting)]:
                watcher.race = race
                watcher.index, job = race.waiting.popleft()
                watcher.channel.send(RunRacer(job, race.best if race.stop_losers else None))
            if not race.waiting:
                self._queue.popleft()

    def _note_finish(self, race: _Race, finish_time: float) -> None:
        """Limit every other racer of the race to the best time so far.

        As all started together, or as if they had, this stops them at once.
        """
        if race.best is not None and race.best <= finish_time:
            return
        race.best = finish_time
        if race.stop_losers:
            for watcher in self._watchers:
                if watcher.race is race:
                    watcher.channel.send(LowerLimit(finish_time))

    def _take_report(self, watcher: _WatcherHandle, report: RacerReport) -> None:
        race, watcher.race = watcher.race, None
        assert race is not None
        race.reports[watcher.index] = report
        if report.status is End.FINISHED:
            self._note_finish(race, self._setup.limits.counted_time(report))
        self._report_if_done(race)

    def _report_if_done(self, race: _Race) -> None:
        reports = tuple(report for report in race.reports if report is not None)
        if len(reports) < len(race.reports):
            return
        times = [self._setup.limits.counted_time(report) for report in reports]
        finishers = [
            (times[index], index)
            for index, report in enumerate(reports)
            if report.status is End.FINISHED
        ]
        best, winner = min(finishers, default=(math.inf, None))
        if race.stop_losers:
            # With fewer slots than racers some ended before the winner started. Had all run
            # together they would have lost, so they have: slots must not change the outcome.
            reports = tuple(
                replace(report, status=End.LOST) if time_taken > best else report
                for report, time_taken in zip(reports, times, strict=True)
            )
        self._channel.post(RaceDone(race.number, reports, winner))

    def _cancel(self, number: int) -> None:
        for watcher in self._watchers:
            if watcher.race is not None and watcher.race.number == number:
                watcher.channel.send(StopRacer())
        for race in [race for race in self._queue if race.number == number]:
            self._queue.remove(race)
            for index, _ in race.waiting:
                race.reports[index] = RacerReport(End.CANCELLED, started=time.time())
            self._report_if_done(race)

    def _add_watcher(self) -> None:
        """Fork a watcher. It inherits the loaded target, and closes all that is not its own."""
        ours, theirs = channel_pair()
        pid = _fork()
        if pid == 0:
            try:
                for watcher in self._watchers:
                    watcher.channel.close()
                self._selector.close()
                self._channel.close()
                ours.close()
                if self._user_process is not None:
                    os.close(self._user_process)
                # It ends with the supervisor, and after its racer.
                signal.signal(signal.SIGTERM, signal.SIG_IGN)
                Watcher(theirs, self._target, self._setup.limits).serve()
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(0)
        theirs.close()
        watcher = _WatcherHandle(pid, ours)
        self._watchers.append(watcher)
        self._selector.register(ours, selectors.EVENT_READ, watcher)

    def _replace(self, watcher: _WatcherHandle) -> None:
        """Clean up after a watcher that was killed, and put another in its place."""
        self._selector.unregister(watcher.channel)
        watcher.channel.close()
        self._watchers.remove(watcher)
        os.waitpid(watcher.pid, 0)
        self._kill_orphans()
        if watcher.race is not None:
            error = "the process that watched over this racer was killed, and so was the racer"
            self._take_report(watcher, RacerReport(End.CRASHED, started=time.time(), error=error))
        self._add_watcher()

    def _kill_orphans(self) -> None:
        """Kill what a watcher that was killed has left, all of which is ours by adoption."""
        spared = {watcher.pid for watcher in self._watchers}.union(self._of_the_target)
        while orphans := [pid for pid in process_tree.children(os.getpid()) if pid not in spared]:
            for orphan in orphans:
                process_tree.send_signal(
                    [orphan, *process_tree.descendants(orphan)], signal.SIGKILL
                )
            for orphan in orphans:
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(orphan, 0)

    def close(self) -> None:
        """Have the watchers stop their racers and end, then end what is left."""
        for watcher in self._watchers:
            watcher.channel.close()
        for watcher in self._watchers:
            os.waitpid(watcher.pid, 0)
        self._watchers.clear()
        self._of_the_target.clear()
        self._kill_orphans()


def _fork() -> int:
    """Fork, with some patience if there are too many processes at the moment."""
    deadline = time.monotonic() + FORK_PATIENCE
    while time.monotonic() < deadline:
        with contextlib.suppress(BlockingIOError):
            return os.fork()
        time.sleep(0.05)
    return os.fork()


class _ToldToEnd(BaseException):
    """Somebody has sent SIGTERM: a batch system, or ``pkill``."""


def _on_sigterm(number: int, frame: object) -> None:
    # Racers that got the signal too must not count as crashed, and none may be left alone.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise _ToldToEnd


def _watch_process(pid: int) -> int | None:
    """Return a descriptor that becomes readable when a process ends, where there is such a thing.

    The end of the channel says the same, unless the user's process has forked: its children hold
    the channel too, and may outlive it.
    """
    if not hasattr(os, "pidfd_open"):
        return None
    try:
        return os.pidfd_open(pid)
    except OSError:  # gone already, or an old kernel: the channel will tell
        return None


def _load_target(setup: Setup) -> LoadedTarget:
    sys.argv[:] = setup.arguments
    function = None if setup.function is None else pickle.loads(setup.function)
    _restore_script(function)
    target = LoadedTarget(function, shared=pickle.loads(setup.shared))
    for stream in (sys.stdout, sys.stderr):
        stream.flush()  # or every racer would print again what importing has printed
    # The collector would touch, and thereby copy, the memory the racers share with us.
    gc.collect()
    gc.freeze()
    return target


def _restore_script(function: object) -> None:
    """Put what the target uses of the user's script where pickle looks for it.

    A pool of processes that the target starts gets its functions by name, from ``__main__``.
    """
    while isinstance(function, functools.partial):
        function = function.func
    function = getattr(function, "__func__", function)
    if getattr(function, "__module__", None) == "__main__":
        names = getattr(function, "__globals__", {})
        script = vars(sys.modules["__main__"])
        script.update({n: value for n, value in names.items() if not n.startswith("__")})


def _receive_setup(channel: Channel) -> Setup | None:
    """Wait for the setup; None if the user's process has ended meanwhile."""
    messages: list[Setup] = []
    with selectors.DefaultSelector() as selector:
        selector.register(channel, selectors.EVENT_READ)
        while not messages:
            selector.select()
            try:
                messages = channel.receive()
            except EOFError:
                return None
    return messages[0]


def main(descriptor: int) -> None:
    """Serve the race track at the other end of an inherited socket."""
    # Ctrl-C is for the user's process; it decides what becomes of the races.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.set_inheritable(descriptor, False)
    channel = Channel(socket.socket(fileno=descriptor))
    setup = _receive_setup(channel)
    if setup is None:
        return
    try:
        target = _load_target(setup)
    except BaseException:
        channel.send(SetupFailed(traceback.format_exc()))
        return
    for number, handler in (  # loading may have changed them
        (signal.SIGINT, signal.SIG_IGN),
        (signal.SIGTERM, _on_sigterm),
        (signal.SIGCHLD, signal.SIG_DFL),
    ):
        signal.signal(number, handler)
    supervisor = Supervisor(channel, setup, target)
    channel.send(Ready())
    try:
        supervisor.serve()
    except _ToldToEnd:
        supervisor.close()
        os._exit(128 + signal.SIGTERM)
    os._exit(0)  # what the target has registered to run at exit is not ours to wait for
