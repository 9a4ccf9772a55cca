"""The watcher's process: runs one racer at a time and answers for its whole process tree.

A watcher adopts every orphan below it, so whatever a racer starts, in whatever process group or
session, stays below its watcher until it is reaped. It sleeps until something happens: a child
ends, output or a message arrives, or a limit may have been reached.
"""

from __future__ import annotations

import contextlib
import math
import os
import pickle
import selectors
import signal
import socket
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from acband_configspace.core.ends import End
from acband_configspace.running.local import process_tree
from acband_configspace.running.local.messages import (
    ENDED,
    CallJob,
    Channel,
    CommandJob,
    Finished,
    LowerLimit,
    RacerEnd,
    RunRacer,
    StopRacer,
)
from acband_configspace.running.local.racer import (
    KEPT_BYTES,
    TOKEN_SIZE,
    LoadedTarget,
    RacerStreams,
    describe_exit,
    judge_report,
    launch,
    read_by,
)
from acband_configspace.running.race import RacerReport, TrackLimits

#: Seconds that a racer's process group has to end before anything outside it is searched for.
TERM_HEAD_START = 0.002
#: Seconds between two looks whether a racer that was forked just now has its process group.
GROUP_INTERVAL = 0.0002
#: With clock="cpu", the most seconds between two looks at the CPU time of a racer's tree.
CPU_INTERVAL = 0.05
#: ... the least (a look takes 0.2 ms or so; in some places CPU time moves in larger steps) ...
LEAST_CPU_INTERVAL = 0.001 if process_tree.HAS_CPU_CLOCKS else 0.01
#: ... and the least on account of threads that it has not started yet.
THREADS_INTERVAL = 0.01
#: Seconds between two looks at the memory of a racer's tree, of which each takes 0.4 ms or so...
MEMORY_INTERVAL = 0.05
#: ... and more if the limit is too far away to be reached sooner at this many megabytes a second.
MEMORY_GROWTH = 4000.0
#: Seconds that what a function returned may take to arrive: it is not part of its time.
RETURN_PATIENCE = 60.0
#: Seconds: epoll refuses more than 24 days. Whoever waits looks again anyway.
LONGEST_WAIT = 86_400.0
#: With clock="cpu", a racer that sleeps instead of computing is stopped after this many elapsed
#: seconds for each CPU second it is allowed, and one more for slow starts.
WALL_PER_CPU_SECOND = 10.0


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
        """See one racer through until nothing of it is alive; ``orders`` came after its own."""
        try:
            # Each try starts the clock anew: the wait is not the racer's time.
            run = process_tree.patiently(
                lambda: RacerRun(order, self._limits, self._target, private=self._private())
            )
        except OSError as error:  # no more processes, or descriptors, for a long time
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

        Returns what is left: a process with more rights than ours cannot be killed.
        """
        patience_ends = time.monotonic() + self._limits.grace
        deadline = patience_ends + process_tree.KILL_PATIENCE
        # Where orphans are not adopted they are lost from sight, so look before there are any.
        known = [] if process_tree.ADOPTS_ORPHANS else process_tree.descendants(os.getpid())
        self._terminate_tree(run, until=patience_ends)
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

    def _terminate_tree(self, run: RacerRun, *, until: float) -> None:
        """Send SIGTERM to every process once: some take a second one for an order to hurry.

        First to the racer's process group: that is one call, mostly reaches all of them, and
        spares the search for the others, which takes longer than ending.
        """
        told_group = None
        if run.exit_status is None:
            told_group = run.racer.pid
            # One that was forked just now is still in our group, and ignores SIGTERM as we do.
            while process_tree.group_of(told_group) == os.getpgrp() and time.monotonic() < until:
                time.sleep(GROUP_INTERVAL)
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


class RacerRun:
    """A racer that is started with the run and judged at its end."""

    def __init__(
        self, order: RunRacer, limits: TrackLimits, target: LoadedTarget, *, private: Iterable[int]
    ) -> None:
        self._limits = limits
        self._target = target
        self._losing_time = order.limit
        self._cutoff = math.inf if limits.cutoff is None else limits.cutoff + order.room
        self._job = order.job
        self._cpu_clock = process_tree.TreeClock()
        self._cpu_used = 0.0
        self._started_at = time.time()
        self._started = time.monotonic()
        self._cpu_look = self._started + self._cpu_interval()
        """When the tree's CPU time is looked at next, whatever happens until then."""
        self._memory_look = self._started + MEMORY_INTERVAL
        self.racer = launch(order.job, target, private=private)
        self.streams = RacerStreams(
            output=self.racer.output,
            errors=self.racer.errors,
            result=self.racer.result,
            keeps_more=target.read_result is not None,
        )
        self.exit_status: int | None = None
        """Its wait status, once it has ended by itself."""
        self.stopped: End | None = None
        """Why it must be stopped, if it must."""
        self.ended = self._started
        """When it was last seen to run, or seen to have ended."""
        self._result: RacerEnd | None = None

    @property
    def is_over(self) -> bool:
        """Whether it has ended, or must."""
        return self.exit_status is not None or self._result is not None or self.stopped is not None

    def close_pipe(self, pipe: int) -> None:
        """Close a pipe that is at its end.

        At the end of the result a function has returned. The losers need not wait until its
        process is gone as well: a large one takes milliseconds for that.
        """
        self.streams.close(pipe)
        if pipe == self.racer.result:
            self._result = self._read_result()

    def lower_limit(self, limit: float) -> None:
        """Another racer has finished in this time."""
        self._losing_time = min(self._losing_time, limit)
        self._cpu_look = -math.inf  # it may be beyond that already

    def note_reaped(self, ended: Mapping[int, int]) -> None:
        """Take note of the wait statuses of processes below the watcher that have ended."""
        if not self.is_over:
            self.ended = time.monotonic()
            self.exit_status = ended.get(self.racer.pid)
        self._cpu_clock.note_reaped(ended)

    @property
    def _limit(self) -> float:
        return min(self._losing_time, self._cutoff)

    def patience(self) -> float | None:
        """Return for how many seconds no limit should be broken; None means for ever."""
        now = time.monotonic()
        waits = []
        if self._limits.memory_limit_mb is not None:
            waits.append(self._memory_look - now)
        if self._limits.clock == "wall":
            returned = self._returned
            limit = self._limit if returned is None else returned - self._started + RETURN_PATIENCE
            waits.append(self._started + limit - now)
        else:
            waits.append(self._cpu_look - now)
            waits.append(self._wall_deadline() - now)
        wait = min(waits, default=math.inf)
        return min(max(wait, 0.0), LONGEST_WAIT) if wait < math.inf else None

    def _cpu_interval(self) -> float:
        """Return for how many seconds the tree cannot use up its CPU time.

        With the threads that it has, it cannot use it faster than on as many cores. It may start
        more of them, so not for much longer than if it used all cores.
        """
        n_cores = os.cpu_count() or 1
        n_busy = max(1, min(self._cpu_clock.n_threads or n_cores, n_cores))
        left = self._limit - self._cpu_used
        return min(
            max(left / n_busy, LEAST_CPU_INTERVAL),
            max(left / n_cores, THREADS_INTERVAL),
            CPU_INTERVAL,
        )

    def broken_limit(self) -> End | None:
        """Return why the racer must be stopped now, if it must.

        Called whenever anything happens, at each line that a racer prints, say: a look at the
        whole tree takes too long for that.
        """
        now = time.monotonic()
        if self._limits.clock == "wall":
            moment = self._returned or now
            too_long = moment - self._started >= self._limit or now - moment >= RETURN_PATIENCE
        else:
            if now >= self._cpu_look:
                self._cpu_used = self._cpu_clock.look()
                self._cpu_look = time.monotonic() + self._cpu_interval()
            too_long = self._cpu_used > self._limit or now >= self._wall_deadline()
        if too_long:
            return End.LOST if self._losing_time <= self._cutoff else End.CUTOFF
        return self._broken_memory_limit(now)

    @property
    def _returned(self) -> float | None:
        """When the function returned, known before all of what it returned has arrived."""
        result = self._genuine_result
        return float(ENDED.unpack_from(result)[0]) if len(result) >= ENDED.size else None

    @property
    def _genuine_result(self) -> bytes:
        """What the racer itself has sent after its token so far."""
        if not self.streams.result.startswith(self.racer.token):
            return b""
        return bytes(self.streams.result[TOKEN_SIZE:])

    def _broken_memory_limit(self, now: float) -> End | None:
        limit_mb = self._limits.memory_limit_mb
        if limit_mb is None or now < self._memory_look:
            return None
        tree = process_tree.descendants(os.getpid())
        inherited = isinstance(self._job, CallJob)  # a command shares nothing with us
        left_mb = limit_mb - process_tree.used_memory_mb(
            tree, limit_mb=limit_mb, without=os.getpid() if inherited else None
        )
        self._memory_look = now + max(MEMORY_INTERVAL, left_mb / MEMORY_GROWTH)
        return End.MEMORY if left_mb < 0 else None

    def _wall_deadline(self) -> float:
        return self._started + 1.0 + WALL_PER_CPU_SECOND * self._limit

    def report(self) -> RacerReport:
        """Judge the racer, when it has ended or must be stopped; its CPU time is not yet known."""
        self.streams.read_rest()
        result = self._result or self._read_result()
        ended = self.ended if result is None else result.ended
        report = RacerReport(
            status=self.stopped or End.CRASHED,
            started=self._started_at,
            time=ended - self._started,
            output=self.streams.output.text[-KEPT_BYTES:],
            command=self._job.arguments if isinstance(self._job, CommandJob) else None,
        )
        if self.stopped is not None:
            return replace(report, error=self._why_stopped(self.stopped))
        if result is None:
            report = self._judge_exit(report)
        else:
            report = replace(
                report, status=result.status, error=result.error, returned=result.returned
            )
        return self._within_limits(report) if self._limits.clock == "wall" else report

    def _read_result(self) -> RacerEnd | None:
        """Return what the racer has sent in the end, if that is complete."""
        try:
            result: RacerEnd = pickle.loads(self._genuine_result[ENDED.size :])
        except Exception:  # killed while it wrote
            return None
        return result

    def final(self, report: RacerReport, *, left: Sequence[int]) -> RacerReport:
        """Complete the report, when nothing of the racer is alive but what cannot be killed."""
        if self._limits.clock == "cpu":
            self._cpu_clock.look()  # for those that nobody has reaped
        report = replace(report, cpu_time=self._cpu_clock.total())
        if self.stopped is not None:
            report = replace(report, time=time.monotonic() - self._started)
        else:
            report = self._within_limits(report)
        if left:
            pids = ", ".join(map(str, left))
            error = f"processes of this racer could not be killed and are left running: {pids}"
            report = replace(report, error="\n".join(filter(None, (report.error, error))))
        return report

    def _within_limits(self, report: RacerReport) -> RacerReport:
        """Correct the status of a racer that finished late, but before it could be stopped."""
        seconds = self._limits.measured_time(report)
        cutoff = self._limits.cutoff
        if report.status is not End.FINISHED:
            return report
        if cutoff is not None and report.own_time is not None and report.own_time > cutoff:
            return replace(report, status=End.CUTOFF, error=self._why_stopped(End.CUTOFF))
        if seconds <= self._limit:
            return report
        status = End.LOST if self._losing_time <= self._cutoff else End.CUTOFF
        return replace(report, status=status, error=self._why_stopped(status))

    def _why_stopped(self, status: End) -> str | None:
        if status is End.CUTOFF:
            return f"reached the cutoff of {self._limits.cutoff:g} s ({self._limits.clock} clock)"
        if status is End.MEMORY:
            return f"used more than the memory limit of {self._limits.memory_limit_mb} MB"
        return None

    def _judge_exit(self, report: RacerReport) -> RacerReport:
        """Judge a process by its exit code and by what it printed about itself."""
        assert self.exit_status is not None
        code = os.waitstatus_to_exitcode(self.exit_status)
        reported, own_time = self.streams.reports.report(), None
        status, error = End.CRASHED, None
        if not isinstance(self._job, CommandJob):
            error = f"the function {describe_exit(code)} instead of returning"
            if not self.racer.token.startswith(self.streams.result[:TOKEN_SIZE]):
                error = "something other than the racer wrote into the pipe for its result"
        elif code not in self._job.success_codes:
            error = describe_exit(code)
        else:
            if self._target.read_result is not None:
                reported, error = read_by(self._target.read_result, self.streams.output.text, code)
                own_time = None if reported is None else reported.runtime
            if error is None:
                status, error = judge_report(reported)
        if error is not None:
            error = "\n".join(filter(None, (error, self.streams.errors.text.strip())))
        return replace(report, status=status, error=error, reported=reported, own_time=own_time)
