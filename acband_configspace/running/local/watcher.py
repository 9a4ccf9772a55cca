"""The watcher's process: runs one racer at a time and answers for its whole process tree.

A watcher adopts every orphan below it, so whatever a racer starts, in whatever process group or
session, stays below its watcher until it is reaped. It sleeps until something happens: a child
ends, output or a message arrives, or a limit may have been reached.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import socket
import time

from acband_configspace.core.ends import End
from acband_configspace.running.local import process_tree
from acband_configspace.running.local.channel import Channel
from acband_configspace.running.local.messages import (
    Finished,
    LowerLimit,
    RunRacer,
    StopRacer,
)
from acband_configspace.running.local.racer import LoadedTarget
from acband_configspace.running.local.racer_run import RacerRun
from acband_configspace.running.race import RacerReport, TrackLimits

#: Seconds that a racer's process group has to end before anything outside it is searched for.
TERM_HEAD_START = 0.002


class Watcher:
    """Runs the racers its supervisor asks for, one after the other."""

    def __init__(self, channel: Channel, target: LoadedTarget, limits: TrackLimits) -> None:
        self._channel = channel
        self._target = target
        self._limits = limits
        self._is_done = False
        """Whether the supervisor is gone, or something is left here that cannot be killed."""
        process_tree.adopt_orphans()
        self._wakeup, self._wakeup_sender = socket.socketpair()
        for end in (self._wakeup, self._wakeup_sender):
            end.setblocking(False)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        signal.set_wakeup_fd(self._wakeup_sender.fileno(), warn_on_full_buffer=False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._channel, selectors.EVENT_READ)
        self._selector.register(self._wakeup, selectors.EVENT_READ)
        self._child_selector = selectors.PollSelector()
        self._child_selector.register(self._wakeup, selectors.EVENT_READ)

    def serve(self) -> None:
        """Run racers until the supervisor closes the channel or ends."""
        while not self._is_done:
            self._selector.select()
            self._clear_wakeup()
            messages = self._messages()
            for position, message in enumerate(messages):
                if isinstance(message, RunRacer):  # others before it came too late for the last
                    self._channel.send(self._run(message, orders=messages[position + 1 :]))
                    break

    def _run(self, order: RunRacer, *, orders: list[object]) -> RacerReport:
        """See one racer through, until nothing of it is alive; ``orders`` came with the first."""
        try:
            run = RacerRun(order, self._limits, self._target, private=self._private())
        except OSError as error:  # no more processes, or descriptors
            why = f"the racer could not be started: {error}"
            return RacerReport(End.CRASHED, started=time.time(), error=why)
        self._obey(run, orders)
        for pipe in run.streams.open_pipes:
            self._selector.register(pipe, selectors.EVENT_READ)
        while not run.is_over:
            self._await_event(run)
        report = run.report()
        if report.status is End.FINISHED and self._limits.clock == "wall":
            # The losers are stopped now; this racer's own leftovers may take the grace.
            self._channel.send(Finished(report.time))
        left = self._stop_tree(run)
        for pipe in list(run.streams.open_pipes):
            self._close_pipe(run, pipe)
        if left:
            self._is_done = True  # the next racer must not be taken for this one
        return run.final(report, left=left)

    def _await_event(self, run: RacerRun) -> None:
        """Wait until something happens and take note of it.

        An end is noted before any limit is looked at: who has finished has not lost.
        """
        ready = self._selector.select(run.patience())
        self._clear_wakeup()
        self._reap(run)
        for key, _ in ready:
            if key.fd in run.streams.open_pipes and run.streams.read(key.fd) == 0:
                self._close_pipe(run, key.fd)
        self._obey(run, self._messages())
        if self._is_done:
            run.stopped = End.CANCELLED
        if not run.is_over:
            run.stopped = run.broken_limit()

    def _obey(self, run: RacerRun, orders: list[object]) -> None:
        for order in orders:
            if isinstance(order, LowerLimit):
                run.lower_limit(order.limit)
            elif isinstance(order, StopRacer):
                run.stopped = End.CANCELLED

    def _stop_tree(self, run: RacerRun) -> list[int]:
        """TERM, a short grace, KILL, reap, until nothing is left below this process.

        Returns what does not go away: who may do what we may not cannot be killed.
        """
        patience_ends = time.monotonic() + self._limits.grace
        deadline = patience_ends + process_tree.KILL_PATIENCE
        # Where orphans are not adopted they are lost from sight, so look before there are any.
        known = [] if process_tree.ADOPTS_ORPHANS else process_tree.descendants(os.getpid())
        self._terminate_tree(run)
        while not self._await_end_of_all(run, until=patience_ends):
            everything = process_tree.descendants(os.getpid())
            if time.monotonic() > deadline:
                return everything
            process_tree.send_signal(everything, signal.SIGKILL)
            patience_ends = time.monotonic() + process_tree.KILL_INTERVAL
        if not process_tree.ADOPTS_ORPHANS:
            process_tree.signal_group(run.racer.pid, signal.SIGKILL)
            process_tree.send_signal(known, signal.SIGKILL)
        return []

    def _terminate_tree(self, run: RacerRun) -> None:
        """Send SIGTERM to every process once.

        First to the racer's process group: that is one call, mostly reaches all of them, and
        spares the search for the others, which takes longer than ending.
        """
        told_group = None
        if run.exit_status is None:
            told_group = run.racer.pid
            process_tree.signal_group(told_group, signal.SIGTERM)
            self._await_end_of_all(run, until=time.monotonic() + TERM_HEAD_START)
        if self._reap(run):
            left = process_tree.descendants(os.getpid())
            others = [pid for pid in left if process_tree.group_of(pid) != told_group]
            process_tree.send_signal(others, signal.SIGTERM)

    def _reap(self, run: RacerRun) -> bool:
        """Collect what has ended below this process; return whether anything is left."""
        ended, any_left = process_tree.reap()
        run.note_reaped(ended)
        return any_left

    def _await_end_of_all(self, run: RacerRun, *, until: float) -> bool:
        """Wait until nothing is left below this process; return false if it takes too long."""
        while self._reap(run):
            patience = until - time.monotonic()
            if patience <= 0:
                return False
            self._child_selector.select(patience)
            self._clear_wakeup()
        return True

    def _messages(self) -> list[object]:
        try:
            return self._channel.receive()
        except EOFError:
            self._is_done = True
            return []

    def _clear_wakeup(self) -> None:
        with contextlib.suppress(BlockingIOError):
            self._wakeup.recv(4096)

    def _close_pipe(self, run: RacerRun, pipe: int) -> None:
        self._selector.unregister(pipe)
        run.close_pipe(pipe)

    def _private(self) -> list[int]:
        """Descriptors a racer must not inherit: they would keep the channel open after our end."""
        own = [end.fileno() for end in (self._channel, self._wakeup, self._wakeup_sender)]
        if hasattr(self._selector, "fileno"):  # all but the last resort, select(), have one
            own.append(self._selector.fileno())
        return own
