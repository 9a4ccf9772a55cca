"""One run of a racer as its watcher sees it: its clock, its limits, and the verdict at its end."""

from __future__ import annotations

import contextlib
import math
import os
import pickle
import signal
import time
import traceback
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from acband_configspace.core.ends import End
from acband_configspace.running.local import process_tree
from acband_configspace.running.local.messages import (
    ENDED,
    CallEnd,
    CallJob,
    CommandJob,
    RunRacer,
    StartFailed,
)
from acband_configspace.running.local.output import KEPT_BYTES, RacerStreams
from acband_configspace.running.local.racer import TOKEN_SIZE, LoadedTarget, launch
from acband_configspace.running.race import RacerReport, ScriptReport, TrackLimits

#: With clock="cpu", the most seconds between two looks at the CPU time of a racer's tree.
CPU_INTERVAL = 0.05
#: Seconds between two looks at the memory of a racer's tree, of which each takes 0.4 ms or so...
MEMORY_INTERVAL = 0.05
#: ... and more if the limit is too far away to be reached sooner at this many megabytes a second.
MEMORY_GROWTH = 4000.0
#: Seconds that what a function returned may take to arrive: it is not part of its time.
RETURN_PATIENCE = 60.0
#: Seconds that the user's function may take to read the output of a command.
READ_PATIENCE = 10.0
#: Seconds: epoll refuses more than 24 days. Whoever waits looks again anyway.
LONGEST_WAIT = 86_400.0
#: The kernel counts other processes' CPU time in steps of this many seconds.
CPU_CLOCK_STEP = 0.01
#: With clock="cpu", a racer that sleeps instead of computing is stopped after this many elapsed
#: seconds for each CPU second it is allowed, and one more for slow starts.
WALL_PER_CPU_SECOND = 10.0

_REPORTED_STATUSES = {
    "SUCCESS": End.FINISHED,
    "CRASHED": End.CRASHED,
    "TIMEOUT": End.CUTOFF,
    "MEMORYOUT": End.MEMORY,
}


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
        self._result: CallEnd | StartFailed | None = None

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
        """Return for how many seconds no limit can be broken; None means for ever."""
        now = time.monotonic()
        waits = []
        if self._limits.memory_limit_mb is not None:
            waits.append(self._memory_look - now)
        if self._limits.clock == "wall":
            returned = self._returned
            limit = self._limit if returned is None else returned - self._started + RETURN_PATIENCE
            waits.append(self._started + limit - now)
        else:
            # The tree cannot use CPU time faster than on all cores at once.
            soonest = (self._limit - self._cpu_used) / (os.cpu_count() or 1)
            waits.append(min(max(soonest, CPU_CLOCK_STEP), CPU_INTERVAL))
            waits.append(self._wall_deadline() - now)
        wait = min(waits, default=math.inf)
        return min(max(wait, 0.0), LONGEST_WAIT) if wait < math.inf else None

    def broken_limit(self) -> End | None:
        """Return why the racer must be stopped now, if it must."""
        now = time.monotonic()
        if self._limits.clock == "wall":
            moment = self._returned or now
            too_long = moment - self._started >= self._limit or now - moment >= RETURN_PATIENCE
        else:
            self._cpu_used = self._cpu_clock.look()
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
        ended = result.ended if isinstance(result, CallEnd) else self.ended
        report = RacerReport(
            status=self.stopped or End.CRASHED,
            started=self._started_at,
            time=ended - self._started,
            output=self.streams.output.text[-KEPT_BYTES:],
            command=self._job.arguments if isinstance(self._job, CommandJob) else None,
        )
        if self.stopped is not None:
            return replace(report, error=self._why_stopped(self.stopped))
        if isinstance(result, CallEnd):
            report = replace(
                report, status=result.status, error=result.error, returned=result.returned
            )
        elif isinstance(result, StartFailed):
            report = replace(report, error=result.error)
        else:
            report = self._judge_exit(report)
        return self._within_limits(report) if self._limits.clock == "wall" else report

    def _read_result(self) -> CallEnd | StartFailed | None:
        """Return what the racer has sent in the end, if that is complete."""
        try:
            result: CallEnd | StartFailed = pickle.loads(self._genuine_result[ENDED.size :])
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
            error = f"the function {_describe_exit(code)} instead of returning"
            if not self.racer.token.startswith(self.streams.result[:TOKEN_SIZE]):
                error = "something other than the racer wrote into the pipe for its result"
        elif code not in self._job.success_codes:
            error = _describe_exit(code)
        else:
            if self._target.read_result is not None:
                reported, error = self._read_output(code)
                own_time = None if reported is None else reported.runtime
            if error is None:
                status, error = _judge_report(reported)
        if error is not None:
            error = "\n".join(filter(None, (error, self.streams.errors.text.strip())))
        return replace(report, status=status, error=error, reported=reported, own_time=own_time)

    def _read_output(self, code: int) -> tuple[ScriptReport | None, str | None]:
        """Have the user's function read the output; return what it says, or what went wrong."""
        assert self._target.read_result is not None
        try:
            with _at_most(READ_PATIENCE):
                reported = self._target.read_result(self.streams.output.text, code)
            if reported is not None and not isinstance(reported, ScriptReport):
                raise TypeError(f"read_result must return a ScriptReport or None: {reported!r}")
            own_time = None if reported is None else reported.runtime
            if own_time is not None and not 0 <= own_time < math.inf:
                raise ValueError(f"runtime must be a number of seconds but got {own_time!r}")
        except Exception:  # a mistake in the user's function must not end the watcher
            return None, f"read_result failed:\n{traceback.format_exc()}"
        return reported, None


@contextlib.contextmanager
def _at_most(seconds: float) -> Iterator[None]:
    """Interrupt what takes longer: while the user's code runs here, nobody watches the racer."""

    def interrupt(number: int, frame: object) -> None:
        raise TimeoutError(f"not done after {seconds:g} s")

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _judge_report(reported: ScriptReport | None) -> tuple[End, str | None]:
    if reported is None:
        return End.FINISHED, None
    said = "SUCCESS" if reported.status is None else reported.status
    status = _REPORTED_STATUSES.get(said.upper())
    if status is None:
        known = ", ".join(_REPORTED_STATUSES)
        return End.CRASHED, f"reported status={said}, which is none of {known}"
    if status is not End.FINISHED:
        why = reported.additional_info
        return status, f"reported status={said}" if why is None else f"{why} (status {said})"
    costs = reported.cost if isinstance(reported.cost, tuple) else (reported.cost,)
    if not all(cost is None or math.isfinite(cost) for cost in costs):
        return End.CRASHED, f"reported cost={reported.cost}, which is not finite"
    return End.FINISHED, None


def _describe_exit(code: int) -> str:
    if code >= 0:
        return f"exited with code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:  # a real-time signal has a number only
        name = f"signal {-code}"
    hint = " (perhaps by the kernel, for lack of memory)" if name == "SIGKILL" else ""
    return f"was killed by {name}{hint}"
