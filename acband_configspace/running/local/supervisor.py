"""The supervisor's process: loads the target once, keeps the queue of races, and decides them.

It is a fresh interpreter, so the user's script is not run again and no thread of the user's
process is forked. Decisions are taken here, not in the user's process, which may be busy with
something else when a racer finishes.
"""

from __future__ import annotations

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
from collections.abc import Hashable
from dataclasses import replace

from acband_configspace.core.ends import End
from acband_configspace.running.local import process_tree
from acband_configspace.running.local.messages import (
    CancelRace,
    Channel,
    Finished,
    Loaded,
    LowerLimit,
    RunRacer,
    Setup,
    StartRace,
    StopRacer,
    channel_pair,
)
from acband_configspace.running.local.racer import LoadedTarget
from acband_configspace.running.local.watcher import Watcher
from acband_configspace.running.race import RaceReport, RacerReport, TrackLimits

#: Seconds between two looks whether a watcher is suspended; one that is at two of them is killed.
LOOK_INTERVAL = 5.0
#: A racer that has lost so many watchers is not started again.
MOST_LOST_WATCHERS = 3
#: Seconds that orphans may take to be gone before they are left alone.
ORPHAN_PATIENCE = 1.0


class _RaceInProgress:
    """A race that is queued or running: what to do, and what came of it so far."""

    def __init__(self, message: StartRace) -> None:
        self.message = message
        self.best = math.inf
        """The least time of a finisher so far, as measured: the limit of all others."""
        self.reports: list[RacerReport | None] = [
            None if limit > 0 else RacerReport(End.LOST, started=time.time())
            for limit in message.limits
        ]
        self.waiting = deque(index for index, report in enumerate(self.reports) if report is None)
        self.is_cancelled = False
        self.lost_watchers = [0] * len(self.reports)

    def limit(self, index: int, slack: float) -> float:
        own = self.message.limits[index] + slack
        return min(own, self.best) if self.message.stop_losers else own

    def outcome(self, limits: TrackLimits) -> RaceReport | None:
        """Return who has won and what came of all, if all have ended."""
        reports = [report for report in self.reports if report is not None]
        if len(reports) < len(self.reports):
            return None
        finished = [i for i, report in enumerate(reports) if report.status is End.FINISHED]
        winner = min(finished, key=lambda i: limits.counted_time(reports[i]), default=None)
        best = math.inf
        if self.message.stop_losers and winner is not None:
            first = min(limits.measured_time(reports[i]) for i in finished)
            best = limits.counted_time(reports[winner])
            reports = [_beside(reports[winner], first, report, limits) for report in reports]
        reports = [
            _given_up(report, min(best, own_limit), limits)
            for report, own_limit in zip(reports, self.message.limits, strict=True)
        ]
        return RaceReport(self.message.key, tuple(reports), winner)


def _beside(
    winner: RacerReport, first: float, racer: RacerReport, limits: TrackLimits
) -> RacerReport:
    """Return what came of a racer of a race whose losers are stopped as soon as one has finished.

    With too few free slots some ended before the winner started. Had all run together they would
    have lost, so they have: slots must not change the outcome.
    """
    best = limits.counted_time(winner)
    if racer.status is End.FINISHED:
        has_lost = limits.counted_time(racer) > best
    else:
        has_lost = limits.measured_time(racer) > first
    if not has_lost:
        return racer
    own_time = None
    if racer.own_time is not None or winner.own_time is not None:
        # Who was stopped takes longer than the winner says it took, whatever a crash says: that is
        # all that is known.
        own_time = max(racer.own_time or 0.0, best)
    return replace(racer, status=End.LOST, own_time=own_time)


def _given_up(racer: RacerReport, bound: float, limits: TrackLimits) -> RacerReport:
    """Return what came of a racer; one that was given up takes longer than it was allowed.

    By the CPU clock one that slept has used next to nothing, which tells nothing of the rest.
    """
    if racer.status is End.LOST and limits.counted_time(racer) < bound < math.inf:
        return replace(racer, own_time=bound)
    return racer


class _WatcherHandle:
    """A watcher as the supervisor sees it, with the racer it runs."""

    def __init__(self, pid: int, channel: Channel) -> None:
        self.pid = pid
        self.channel = channel
        self.race: _RaceInProgress | None = None
        self.index = 0
        self.was_stopped = False
        """Whether it was suspended when last looked at."""


class Supervisor:
    """Runs the races of one race track."""

    def __init__(self, channel: Channel, setup: Setup, target: LoadedTarget) -> None:
        self._channel = channel
        self._slots = setup.slots
        self._limits = setup.settings.limits
        self._target = target
        self._queue: deque[_RaceInProgress] = deque()
        self._watchers: list[_WatcherHandle] = []
        self._last_look = time.monotonic()
        self._user_is_gone = False
        self._overhead = math.inf
        """The least time seen around a target that tells its own time: a wrapper's start, say."""
        self._may_tell_time = target.read_result is not None
        """Whether a target that has told no time of its own yet may still do so."""
        self._selector = selectors.DefaultSelector()
        self._selector.register(channel, selectors.EVENT_READ)
        self._user_process = _watch_process(setup.user_process)
        if self._user_process is not None:
            self._selector.register(self._user_process, selectors.EVENT_READ)
        process_tree.adopt_orphans()
        self._guard = process_tree.start_guard()
        #: Processes that loading the target has started, and the guard, not to be stopped before
        #: the end; later also those that cannot be killed.
        self._spared = set(process_tree.children(os.getpid()))
        for _ in range(self._slots):
            self._add_watcher()

    def serve(self) -> None:
        """Run races until the user's process closes the channel or ends."""
        while not self._user_is_gone:
            is_busy = any(watcher.race is not None for watcher in self._watchers)
            for key, _ in self._selector.select(LOOK_INTERVAL if is_busy else None):
                if isinstance(key.data, _WatcherHandle):
                    self._receive_from_watcher(key.data)
                elif key.fileobj is self._channel:
                    self._receive_from_user()
                else:
                    self._user_is_gone = True
            self._kill_stopped_watchers()
            self._start_racers()
            self._await_user(writable=self._channel.has_unsent)
        self.close()

    def _await_user(self, *, writable: bool) -> None:
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if writable else 0)
        if self._selector.get_key(self._channel).events != events:
            self._selector.modify(self._channel, events)

    def _receive_from_user(self) -> None:
        self._channel.flush()
        try:
            for message in self._channel.receive():
                if isinstance(message, StartRace):
                    race = _RaceInProgress(message)
                    if race.waiting:
                        self._queue.append(race)
                    self._report_if_done(race)
                elif isinstance(message, CancelRace):
                    self._cancel(message.key)
        except EOFError:
            self._user_is_gone = True

    def _receive_from_watcher(self, watcher: _WatcherHandle) -> None:
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
                race, watcher.race = watcher.race, None
                self._take_report(race, watcher.index, message)

    def _start_racers(self) -> None:
        """Start what fits, in the order of the queue.

        A race begins with any free slot: whenever its racers start, its outcome is the same, and
        it is over no later than if all had waited for the last slot.
        """
        while self._queue:
            race = self._queue[0]
            free = [watcher for watcher in self._watchers if watcher.race is None]
            if not free:
                return
            is_known = math.isfinite(self._overhead)
            room = 2 * self._overhead if is_known else 0.0
            # A limit is on the time that a target tells: nobody knows yet what is around that.
            slack = math.inf if self._may_tell_time and not is_known else room
            for watcher in free[: len(race.waiting)]:
                watcher.race = race
                watcher.index = race.waiting.popleft()
                job = race.message.jobs[watcher.index]
                watcher.channel.send(RunRacer(job, race.limit(watcher.index, slack), room))
            if not race.waiting:
                self._queue.popleft()

    def _note_finish(self, race: _RaceInProgress, finish_time: float) -> None:
        """Limit every other racer of the race to the best time so far.

        Those that started with it are stopped at once, and so are those that started before it.
        """
        if race.best <= finish_time:
            return
        race.best = finish_time
        if race.message.stop_losers:
            for watcher in self._watchers:
                if watcher.race is race:
                    watcher.channel.send(LowerLimit(finish_time))

    def _take_report(self, race: _RaceInProgress, index: int, report: RacerReport) -> None:
        race.reports[index] = report
        if report.status is End.FINISHED:
            self._note_finish(race, self._limits.measured_time(report))
            if report.own_time is not None:
                overhead = self._limits.measured_time(report) - report.own_time
                self._overhead = max(0.0, min(self._overhead, overhead))
            else:  # what is read is an answer or a cost, not a time
                self._may_tell_time = False
        self._report_if_done(race)

    def _report_if_done(self, race: _RaceInProgress) -> None:
        outcome = race.outcome(self._limits)
        if outcome is not None:
            self._channel.post(outcome)

    def _cancel(self, key: Hashable) -> None:
        for watcher in self._watchers:
            if watcher.race is not None and watcher.race.message.key == key:
                watcher.race.is_cancelled = True
                watcher.channel.send(StopRacer())
        for race in [race for race in self._queue if race.message.key == key]:
            self._queue.remove(race)
            for index in race.waiting:
                race.reports[index] = RacerReport(End.CANCELLED, started=time.time())
            self._report_if_done(race)

    def _add_watcher(self) -> None:
        """Fork a watcher. It inherits the loaded target, and closes all that is not its own."""
        ours, theirs = channel_pair()
        pid = process_tree.patiently(os.fork)
        if pid == 0:
            try:
                os.setpgid(0, 0)  # whoever kills our group leaves somebody to stop the racers
                for watcher in self._watchers:
                    watcher.channel.close()
                self._selector.close()
                self._channel.close()
                ours.close()
                if self._user_process is not None:
                    os.close(self._user_process)
                if self._guard is not None and self._guard.stdin is not None:
                    self._guard.stdin.close()
                process_tree.rename("acband-watcher")
                # It ends with the supervisor, and after its racer.
                signal.signal(signal.SIGTERM, signal.SIG_IGN)
                Watcher(theirs, self._target, self._limits).serve()
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(0)
        theirs.close()
        watcher = _WatcherHandle(pid, ours)
        self._watchers.append(watcher)
        self._selector.register(ours, selectors.EVENT_READ, watcher)

    def _kill_stopped_watchers(self) -> None:
        """Kill the watchers that someone has suspended: nobody else watches over their racers."""
        if time.monotonic() - self._last_look < LOOK_INTERVAL:
            return
        self._last_look = time.monotonic()
        for watcher in self._watchers:
            is_stopped = watcher.race is not None and process_tree.is_stopped(watcher.pid)
            if is_stopped and watcher.was_stopped:
                os.kill(watcher.pid, signal.SIGKILL)
            watcher.was_stopped = is_stopped

    def _replace(self, watcher: _WatcherHandle) -> None:
        """Clean up after a watcher that has ended, and put another in its place."""
        self._selector.unregister(watcher.channel)
        watcher.channel.close()
        self._watchers.remove(watcher)
        os.waitpid(watcher.pid, 0)
        self._kill_orphans()
        self._add_watcher()
        if watcher.race is not None:
            self._run_again(watcher.race, watcher.index)

    def _run_again(self, race: _RaceInProgress, index: int) -> None:
        """Run a racer again that has lost its watcher, which says nothing about the racer.

        Unless it happens again and again: then it may be the racer that kills its watchers.
        """
        race.lost_watchers[index] += 1
        if race.is_cancelled:
            self._take_report(race, index, RacerReport(End.CANCELLED, started=time.time()))
        elif race.lost_watchers[index] >= MOST_LOST_WATCHERS:
            error = (
                "the racer was given up: the process that watched over it was killed "
                f"{MOST_LOST_WATCHERS} times"
            )
            report = RacerReport(End.CRASHED, started=time.time(), error=error)
            self._take_report(race, index, report)
        else:
            # It may have been the one that had finished first, with its report still to come.
            finished = (r for r in race.reports if r is not None and r.status is End.FINISHED)
            race.best = min(map(self._limits.measured_time, finished), default=math.inf)
            race.waiting.appendleft(index)
            if race not in self._queue:
                self._queue.appendleft(race)

    def _kill_orphans(self) -> None:
        """Kill what a watcher has left, all of which is ours by adoption."""
        spared = {watcher.pid for watcher in self._watchers} | self._spared
        deadline = time.monotonic() + ORPHAN_PATIENCE
        while orphans := [pid for pid in process_tree.children(os.getpid()) if pid not in spared]:
            if time.monotonic() > deadline:
                self._spared.update(orphans)
                return
            for orphan in orphans:
                process_tree.send_signal(
                    [orphan, *process_tree.descendants(orphan)], signal.SIGKILL
                )
            for orphan in orphans:
                _await_child(orphan, process_tree.KILL_INTERVAL)

    def close(self) -> None:
        """Have the watchers stop their racers and end, then end what is left."""
        for watcher in self._watchers:
            watcher.channel.close()
        deadline = time.monotonic() + self._limits.grace + process_tree.KILL_PATIENCE
        for watcher in self._watchers:
            if not _await_child(watcher.pid, deadline - time.monotonic()):
                os.kill(watcher.pid, signal.SIGKILL)
                os.waitpid(watcher.pid, 0)
        self._watchers.clear()
        self._spared.clear()
        self._kill_orphans()


def _await_child(pid: int, seconds: float) -> bool:
    """Wait until a child has ended, and reap it; return false if it takes too long."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            if os.waitpid(pid, os.WNOHANG)[0]:
                return True
        except ChildProcessError:
            return True
        if time.monotonic() >= deadline:
            return False
        time.sleep(0.001)


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
    settings = setup.settings
    function, read_result = (
        None if pickled is None else pickle.loads(pickled)
        for pickled in (settings.function, settings.read_result)
    )
    _restore_script(function)
    target = LoadedTarget(function, read_result, shared=pickle.loads(settings.shared))
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


def _open_streams() -> None:
    """Open the standard streams that are closed, so that nothing else gets their numbers."""
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass  # each time the lowest number that is free
    os.close(number)
    sys.stdout = sys.stdout or os.fdopen(1, "w", closefd=False)
    sys.stderr = sys.stderr or os.fdopen(2, "w", closefd=False)


def _receive_setup(channel: Channel) -> Setup | None:
    """Wait for the setup; None if the user's process has ended meanwhile."""
    messages: list[Setup] = []
    while not messages:
        channel.wait(None)
        try:
            messages = channel.receive()
        except EOFError:
            return None
    return messages[0]


def main(descriptor: int) -> None:
    """Serve the race track at the other end of an inherited socket."""
    # Ctrl-C is for the user's process; it decides what becomes of the races.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    process_tree.rename("acband-superv.")  # killall -9 python leaves us to clean up
    _open_streams()
    os.set_inheritable(descriptor, False)
    channel = Channel(socket.socket(fileno=descriptor))
    setup = _receive_setup(channel)
    if setup is None:
        return
    try:
        target = _load_target(setup)
    except BaseException:
        channel.send(Loaded(traceback.format_exc()))
        return
    for number, handler in (  # loading may have changed them
        (signal.SIGINT, signal.SIG_IGN),
        (signal.SIGTERM, _on_sigterm),
        (signal.SIGCHLD, signal.SIG_DFL),
    ):
        signal.signal(number, handler)
    supervisor = Supervisor(channel, setup, target)
    channel.send(Loaded(None))
    try:
        supervisor.serve()
    except _ToldToEnd:
        supervisor.close()
        os._exit(128 + signal.SIGTERM)
    os._exit(0)  # what the target has registered to run at exit is not ours to wait for
