"""A racer: its process, from the fork to what it runs; its output, and what its end means."""

from __future__ import annotations

import contextlib
import errno
import itertools
import math
import os
import pickle
import re
import shutil
import signal
import sys
import time
import traceback
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from io import BytesIO
from typing import Any, NoReturn

from acband_configspace.core.ends import End
from acband_configspace.running.local.messages import (
    ENDED,
    CallJob,
    CommandJob,
    Job,
    PickledValue,
    RacerEnd,
    both_ends,
    description,
)
from acband_configspace.running.local.process_tree import die_with_parent, rename
from acband_configspace.running.race import ScriptReport

#: Bytes of the token that a racer's result begins with.
TOKEN_SIZE = 16
#: How much of a racer's output is kept. Enough for a long traceback, too little to fill memory.
KEPT_BYTES = 8192
#: How much of the standard output is kept for a function that reads it.
KEPT_FOR_READER = 65536
#: A longer line cannot be a report; it is not kept while its end is awaited.
LONGEST_LINE = 65536
#: The most a pipe can hold unless an administrator allows more.
LARGEST_PIPE = 1 << 20

_KEYS = ("status", "cost", "runtime", "cpu_time", "additional_info")
_FIRST_KEY = re.compile(rf"\s*({'|'.join(_KEYS)})\s*=")
#: Seconds that the user's function may take to read the output of a command.
READ_PATIENCE = 10.0
_REPORTED_STATUSES = {
    "SUCCESS": End.FINISHED,
    "CRASHED": End.CRASHED,
    "TIMEOUT": End.CUTOFF,
    "MEMORYOUT": End.MEMORY,
}


@dataclass(frozen=True)
class LoadedTarget:
    """What watchers and racers inherit from the supervisor instead of each importing it."""

    function: Callable[..., object] | None
    read_result: Callable[[str, int], ScriptReport | None] | None
    shared: object


@dataclass(frozen=True)
class RacerProcess:
    """A racer that was started, with the reading ends of its pipes."""

    pid: int
    output: int
    errors: int
    result: int
    token: bytes
    """What its result begins with: anything else was not written by the racer."""


def launch(job: Job, target: LoadedTarget, *, private: Iterable[int]) -> RacerProcess:
    """Start a racer in a session of its own; it must not see the ``private`` descriptors.

    By hand instead of with ``subprocess`` and ``multiprocessing``: neither can share its children
    with a watcher that reaps whatever ends below it.

    Raises
    ------
    OSError
        If there are no more descriptors, or processes.
    """
    token = os.urandom(TOKEN_SIZE)
    watcher = os.getpid()
    pipes: list[tuple[int, int]] = []
    try:
        pipes.extend(os.pipe() for _ in ("output", "errors", "result"))
        pid = os.fork()
    except OSError:
        for end in itertools.chain.from_iterable(pipes):
            os.close(end)
        raise
    if pid == 0:
        try:
            output, errors, result = (writing_end for _, writing_end in pipes)
            for descriptor in private:
                with contextlib.suppress(OSError):  # a kqueue is not there after a fork
                    os.close(descriptor)
            for reading_end, _ in pipes:
                os.close(reading_end)
            _leave_watcher(watcher, output=output, errors=errors)
            _perform(job, target, result, token)
        finally:
            os._exit(70)  # EX_SOFTWARE; never reached unless the lines above fail
    for _, writing_end in pipes:
        os.close(writing_end)
    output, errors, result = (reading_end for reading_end, _ in pipes)
    return RacerProcess(pid, output=output, errors=errors, result=result, token=token)


def _leave_watcher(watcher: int, *, output: int, errors: int) -> None:
    # The watcher ignores it. Before there is a group, by which the watcher would signal us.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    os.setsid()
    die_with_parent(watcher)  # which has one thread: the kernel means the thread that forked
    rename(os.path.basename(sys.executable))
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for source, destination in ((nothing, 0), (output, 1), (errors, 2)):
        os.dup2(source, destination)
        os.close(source)


def _perform(job: Job, target: LoadedTarget, result: int, token: bytes) -> NoReturn:
    racer, returned = os.getpid(), None
    if isinstance(job, CallJob):
        end, returned = _call(job, target)
    else:
        error = _execute(job) if isinstance(job, CommandJob) else job.error
        end = RacerEnd(time.monotonic(), End.CRASHED, error)
    if os.getpid() == racer:  # else a process the function forked has returned from it as well
        with os.fdopen(result, "wb") as pipe:
            # The moment first: what was returned may be large, which is not the racer's time.
            pipe.write(token + ENDED.pack(end.ended))
            pipe.flush()
            pickle.dump(replace(end, returned=PickledValue.of(returned)), pipe)
    os._exit(0)


def _execute(job: CommandJob) -> str:
    """Become the command, or return why that is impossible."""
    for number in (signal.SIGINT, signal.SIGPIPE, signal.SIGXFSZ):  # what Python has changed
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    program = job.arguments[0]
    if job.directory is not None:
        try:
            os.chdir(job.directory)
        except OSError as error:
            return f"could not start {program!r} in {job.directory}: {error.strerror}"
    try:
        os.execvp(program, job.arguments)
    except (OSError, ValueError) as error:  # a ValueError is a null byte in an argument
        return explain_start_failure(program, error)


def explain_start_failure(program: str, error: OSError | ValueError) -> str:
    """Say in plain words why a program could not be started."""
    if isinstance(error, ValueError):
        return f"could not start {program!r}: {error}"
    is_path = os.sep in program
    if error.errno == errno.ENOENT:
        if is_path and os.path.exists(program):
            reason = "the interpreter named in its first line (#!...) does not exist"
        elif not is_path and os.path.exists(program):
            reason = f"it is not on the PATH; if you mean the file here, write ./{program}"
        else:
            reason = "there is no such file" if is_path else "it is not on the PATH"
    elif error.errno == errno.ENOEXEC:
        empty = os.path.getsize(shutil.which(program) or program) == 0
        reason = (
            "the file is empty"
            if empty
            else "it is neither a binary for this machine nor a script whose first line names its "
            "interpreter (such as #!/bin/sh)"
        )
    elif error.errno == errno.EACCES and os.path.isdir(program):
        reason = "it is a directory"
    elif error.errno == errno.EACCES:
        reason = "it is not executable (try chmod +x)"
    else:
        reason = os.strerror(error.errno or 0)
    return f"could not start {program!r}: {reason}"


class _SharedUnpickler(pickle.Unpickler):
    """Puts the shared object where the pickle refers to it."""

    def __init__(self, data: bytes, shared: object) -> None:
        super().__init__(BytesIO(data))
        self._shared = shared

    def persistent_load(self, pid: Any) -> object:
        return self._shared


def _call(job: CallJob, target: LoadedTarget) -> tuple[RacerEnd, object]:
    """Call the function and say how it went, and what it returned."""
    assert target.function is not None, "calls are only sent for targets with a function"
    returned: object = None
    error: str | None = None
    status = End.FINISHED
    try:
        positional, named = _SharedUnpickler(job.arguments, target.shared).load()
        _seed_numpy(positional, named)
        returned = target.function(*positional, **named)
    except SystemExit as leaving:
        if leaving.code not in (None, 0):
            status = End.CRASHED
            error = f"the function called sys.exit({description(leaving.code)})"
    except MemoryError:
        status, error = End.MEMORY, _traceback()
    except BaseException:
        status, error = End.CRASHED, _traceback()
    ended = time.monotonic()
    if isinstance(returned, float) and not math.isfinite(returned):
        status, error = End.CRASHED, f"the function returned {float(returned)}, which is not finite"
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):  # it may have closed it
            stream.flush()
    return RacerEnd(ended, status, error), returned


def _seed_numpy(positional: Sequence[Mapping[str, Any]], named: Mapping[str, Any]) -> None:
    """Seed NumPy's generator: else all racers, forked from one process, draw the same.

    By what is called, so that a trial that is run again draws what it drew. By values, since the
    same configuration is another pickle once somebody has looked at it; without the addresses of
    those that show them, since they are others the next time.
    """
    if "numpy.random" not in sys.modules:
        return
    (configuration,) = positional
    called = [sorted((n, str(v)) for n, v in one.items()) for one in (configuration, named)]
    told = re.sub(" at 0x[0-9a-fA-F]+", "", repr(called))
    sys.modules["numpy.random"].seed(zlib.crc32(told.encode()))


def _traceback() -> str:
    """Return the traceback of the exception that is being handled; of a long one, both ends.

    Its message may be all that a solver has printed; the beginning says where it was raised.
    """
    return both_ends(traceback.format_exc(), KEPT_BYTES)


# --- what it prints, and what that means ----------------------------------------------------


class OutputTail:
    """The last bytes of a stream."""

    def __init__(self, most: int = KEPT_BYTES) -> None:
        self._most = most
        self._kept = b""

    def feed(self, data: bytes) -> None:
        """Take in what was read."""
        self._kept = (self._kept + data)[-self._most :]

    @property
    def text(self) -> str:
        """The end of the stream as text, with replacement characters for what is not text."""
        return self._kept.decode(errors="replace")


class ReportFinder:
    """Finds the last report among the lines of a stream of any length."""

    def __init__(self) -> None:
        self._unfinished_line = b""
        self._report: ScriptReport | None = None

    def feed(self, data: bytes) -> None:
        """Take in what was read."""
        *lines, rest = (self._unfinished_line + data).split(b"\n")
        self._unfinished_line = rest[: LONGEST_LINE + 1]
        for line in lines:
            self._look_at(line)

    def report(self) -> ScriptReport | None:
        """Return the last report; call it at the end of the stream."""
        self._look_at(self._unfinished_line)
        self._unfinished_line = b""
        return self._report

    def _look_at(self, line: bytes) -> None:
        if b"=" in line and len(line) <= LONGEST_LINE:
            self._report = parse_report(line.decode(errors="replace")) or self._report


class RacerStreams:
    """The pipes from a racer, read as fast as it writes so that it never waits for a reader."""

    def __init__(self, *, output: int, errors: int, result: int, keeps_more: bool) -> None:
        self.output = OutputTail(KEPT_FOR_READER if keeps_more else KEPT_BYTES)
        self.errors = OutputTail()
        self.reports = ReportFinder()
        self.result = bytearray()
        self.open_pipes: dict[int, tuple[Callable[[bytes], None], ...]] = {
            output: (self.output.feed, self.reports.feed),
            errors: (self.errors.feed,),
            result: (self.result.extend,),
        }
        for pipe in self.open_pipes:
            os.set_blocking(pipe, False)

    def read(self, pipe: int) -> int:
        """Take in what has arrived; return how many bytes, 0 at the end of the stream.

        Returns -1 if nothing has arrived yet.
        """
        try:
            data = os.read(pipe, 1 << 16)
        except BlockingIOError:
            return -1
        for take in self.open_pipes[pipe]:
            take(data)
        return len(data)

    def read_rest(self) -> None:
        """Take in what a racer that has ended left in its pipes.

        Not to the end of the stream: a process it left behind may hold the pipe, even write on.
        """
        for pipe in self.open_pipes:
            total = 0
            while total < LARGEST_PIPE and (count := self.read(pipe)) > 0:
                total += count

    def close(self, pipe: int) -> None:
        """Close a pipe."""
        del self.open_pipes[pipe]
        os.close(pipe)


def parse_report(line: str) -> ScriptReport | None:
    """Read a line such as ``status=SUCCESS; cost=0.5; runtime=1.2; additional_info=a=b``.

    Returns None for any other line: a report starts with one of the known names and says at least
    the status or a cost that is a number (``status=CRASHED; cost=None`` is still a report).
    """
    if not _FIRST_KEY.match(line):
        return None
    values: dict[str, str] = {}
    for part in line.split(";"):
        key, equals, value = part.partition("=")
        if equals and key.strip() in _KEYS:
            values[key.strip()] = value.strip()
    report = ScriptReport(
        status=values.get("status"),
        cost=_costs(values.get("cost")),
        runtime=_number(values.get("runtime")),
        cpu_time=_number(values.get("cpu_time")),
        additional_info=values.get("additional_info"),
    )
    return None if report.status is None and report.cost is None else report


def _number(text: str | None) -> float | None:
    try:
        return None if text is None else float(text)
    except ValueError:
        return None


def _costs(text: str | None) -> float | tuple[float, ...] | None:
    costs = [_number(part) for part in (text or "").split(",")]
    numbers = tuple(cost for cost in costs if cost is not None)
    if len(numbers) < len(costs):
        return None
    return numbers[0] if len(numbers) == 1 else numbers


def read_by(
    function: Callable[[str, int], ScriptReport | None], output: str, code: int
) -> tuple[ScriptReport | None, str | None]:
    """Have the user's function read the output; return what it says, or what went wrong."""
    try:
        with _at_most(READ_PATIENCE):
            reported = function(output, code)
        if reported is not None and not isinstance(reported, ScriptReport):
            raise TypeError(f"read_result must return a ScriptReport or None but got {reported!r}")
        own_time = None if reported is None else reported.runtime
        if own_time is not None and not 0 <= own_time < math.inf:
            raise ValueError(f"runtime must be a number of seconds but got {own_time!r}")
    except (Exception, SystemExit):  # what the user's function does must not end the watcher
        return None, f"read_result failed:\n{_traceback()}"
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


def judge_report(reported: ScriptReport | None) -> tuple[End, str | None]:
    """Return how a command that exited in order says it ended, and what went wrong."""
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


def describe_exit(code: int) -> str:
    """Say in words how a process ended."""
    if code >= 0:
        return f"exited with code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:  # a real-time signal has a number only
        name = f"signal {-code}"
    hint = " (perhaps by the kernel, for lack of memory)" if name == "SIGKILL" else ""
    return f"was killed by {name}{hint}"
