"""One run of a racer as its watcher sees it: its clock, its limits, and the verdict at its end."""

from __future__ import annotations

import math
import os
import pickle
import signal
import time
from collections.abc import Iterable
from dataclasses import replace

from acband_configspace.core.ends import End
from acband_configspace.running.local import process_tree
from acband_configspace.running.local.messages import (
    ENDED,
    CallEnd,
    CallJob,
    CommandJob,
    Limits,
    RunRacer,
    StartFailed,
)
from acband_configspace.running.local.output import RacerStreams
from acband_configspace.running.local.racer import LoadedTarget, launch
from acband_configspace.running.race import RacerReport, ScriptReport

#: Seconds between two looks at the memory of a racer's tree, of which each takes 0.4 ms or so...
MEMORY_INTERVAL = 0.05
#: ... and more if the limit is too far away to be reached sooner at this many megabytes a second.
MEMORY_GROWTH = 4000.0
#: Seconds that what a function returned may take to arrive: it is not part of its time.
RETURN_PATIENCE = 60.0
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
        self, order: RunRacer, limits: Limits, target: LoadedTarget, *, private: Iterable[int]
    ) -> None:
        self._limits = limits
        self._best = math.inf if order.best is None else order.best
        self._cutoff = math.inf if limits.cutoff is None else limits.cutoff
        self._job = order.job
        self._reaped_before = process_tree.reaped_cpu_time()
        self._started_at = time.time()
        self._started = time.monotonic()
        self._memory_look = self._started + MEMORY_INTERVAL
        self.racer = launch(order.job, target, private=private)
        self.streams = RacerStreams(
            output=self.racer.output, errors=self.racer.errors, result=self.racer.result
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

    def lower_limit(self, best: float) -> None:
        """Another racer has finished in this time."""
        self._best = min(self._best, best)

    @property
    def _limit(self) -> float:
        return min(self._best, self._cutoff)

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
        elif self._limit < math.inf:
            # The tree cannot use CPU time faster than on all cores at once.
            soonest = (self._limit - self._cpu_so_far()) / (os.cpu_count() or 1)
            waits.append(max(soonest, CPU_CLOCK_STEP))
            waits.append(self._wall_deadline() - now)
        wait = min(waits, default=math.inf)
        return min(max(wait, 0.0), LONGEST_WAIT) if wait < math.inf else None

    def broken_limit(self) -> End | None:
        """Return why the racer must be stopped now, if it must."""
        now = time.monotonic()
        if self._limits.clock == "wall":
            moment = self._returned or now
            too_long = moment - self._started >= self._limit or now - moment >= RETURN_PATIENCE
        elif self._limit < math.inf:
            too_long = self._cpu_so_far() > self._limit or now >= self._wall_deadline()
        else:
            too_long = False
        if too_long:
            return End.LOST if self._best <= self._cutoff else End.CUTOFF
        return self._broken_memory_limit(now)

    @property
    def _returned(self) -> float | None:
        """When the function returned, known before all of what it returned has arrived."""
        if len(self.streams.result) < ENDED.size:
            return None
        (moment,) = ENDED.unpack_from(self.streams.result)
        # Something else may have written into the pipe.
        return float(moment) if self._started <= moment <= time.monotonic() else None

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

    def _cpu_so_far(self) -> float:
        living = process_tree.living_cpu_time(process_tree.descendants(os.getpid()))
        return living + process_tree.reaped_cpu_time() - self._reaped_before

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
            output=self.streams.output.text,
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
        return self._within_cutoff(report) if self._limits.clock == "wall" else report

    def _read_result(self) -> CallEnd | StartFailed | None:
        """Return what the racer has sent in the end, if that is complete."""
        try:
            result: CallEnd | StartFailed = pickle.loads(self.streams.result[ENDED.size :])
        except Exception:  # killed while it wrote, or something else wrote into the pipe
            return None
        return result

    def final(self, report: RacerReport) -> RacerReport:
        """Complete the report, when nothing of the racer is alive."""
        report = replace(report, cpu_time=process_tree.reaped_cpu_time() - self._reaped_before)
        if self.stopped is not None:
            return replace(report, time=time.monotonic() - self._started)
        return self._within_cutoff(report)

    def _within_cutoff(self, report: RacerReport) -> RacerReport:
        """Correct the status of a racer that finished late, but before it could be stopped."""
        late = self._limits.counted_time(report) > self._cutoff
        if report.status is End.FINISHED and late:
            why = self._why_stopped(End.CUTOFF)
            return replace(report, status=End.CUTOFF, error=why)
        return report

    def _why_stopped(self, status: End) -> str | None:
        if status is End.CUTOFF:
            return f"reached the cutoff of {self._cutoff:g} s ({self._limits.clock} clock)"
        if status is End.MEMORY:
            return f"used more than the memory limit of {self._limits.memory_limit_mb} MB"
        return None

    def _judge_exit(self, report: RacerReport) -> RacerReport:
        """Judge a process by its exit code and by what it printed about itself."""
        assert self.exit_status is not None
        error = None
        code = os.waitstatus_to_exitcode(self.exit_status)
        reported = self.streams.reports.report()
        if not isinstance(self._job, CommandJob):
            status = End.CRASHED
            error = f"the function {_describe_exit(code)} instead of returning"
        elif code not in self._job.success_codes:
            status, error = End.CRASHED, _describe_exit(code)
        else:
            status, error = _judge_report(reported)
        if error is not None:
            error = "\n".join(filter(None, (error, self.streams.errors.text.strip())))
        return replace(report, status=status, error=error, reported=reported)


def _judge_report(reported: ScriptReport | None) -> tuple[End, str | None]:
    if reported is None or reported.status is None:
        return End.FINISHED, None
    status = _REPORTED_STATUSES.get(reported.status.upper())
    if status is None:
        known = ", ".join(_REPORTED_STATUSES)
        return (
            End.CRASHED,
            f"reported status={reported.status}, which is none of {known}",
        )
    return status, None if status is End.FINISHED else f"reported status={reported.status}"


def _describe_exit(code: int) -> str:
    if code >= 0:
        return f"exited with code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:  # a real-time signal has a number only
        name = f"signal {-code}"
    hint = " (perhaps by the kernel, for lack of memory)" if name == "SIGKILL" else ""
    return f"was killed by {name}{hint}"
