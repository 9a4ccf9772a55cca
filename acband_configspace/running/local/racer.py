"""The racer's own process, from its fork to the command or the function it runs."""

from __future__ import annotations

import contextlib
import errno
import itertools
import math
import os
import pickle
import shutil
import signal
import sys
import time
import traceback
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from io import BytesIO
from typing import Any, NoReturn

from acband_configspace.core.ends import End
from acband_configspace.running.local.messages import (
    ENDED,
    CallEnd,
    CallJob,
    CommandJob,
    Job,
    PickledValue,
    StartFailed,
    description,
)
from acband_configspace.running.local.process_tree import die_with_parent, rename
from acband_configspace.running.race import ScriptReport

#: Bytes of the token that a racer's result begins with.
TOKEN_SIZE = 16


@dataclass(frozen=True)
class LoadedTarget:
    """What watchers and racers inherit from the supervisor instead of importing it each."""

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
    """What its result begins with: anything else was written by something else."""


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
            for descriptor in (*private, *(reading_end for reading_end, _ in pipes)):
                os.close(descriptor)
            _leave_watcher(watcher, output=output, errors=errors)
            _perform(job, target, result, token)
        finally:
            os._exit(70)  # EX_SOFTWARE; never reached unless the lines above fail
    for _, writing_end in pipes:
        os.close(writing_end)
    output, errors, result = (reading_end for reading_end, _ in pipes)
    return RacerProcess(pid, output=output, errors=errors, result=result, token=token)


def _leave_watcher(watcher: int, *, output: int, errors: int) -> None:
    os.setsid()
    die_with_parent(watcher)  # which has one thread: the kernel means the thread that forked
    rename(os.path.basename(sys.executable))
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGCHLD, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for source, destination in ((nothing, 0), (output, 1), (errors, 2)):
        os.dup2(source, destination)
        os.close(source)


def _perform(job: Job, target: LoadedTarget, result: int, token: bytes) -> NoReturn:
    racer = os.getpid()
    message: CallEnd | StartFailed
    ended, returned = time.monotonic(), None
    if isinstance(job, CallJob):
        message, returned = _call(job, target)
        ended = message.ended
    elif isinstance(job, CommandJob):
        message = StartFailed(_execute(job))
    else:
        message = StartFailed(job.error)
    if os.getpid() == racer:  # else a process the function forked has returned from it as well
        with os.fdopen(result, "wb") as pipe:
            # The moment first: what was returned may be large, which is not the racer's time.
            pipe.write(token + ENDED.pack(ended))
            pipe.flush()
            if isinstance(message, CallEnd):
                message = replace(message, returned=PickledValue.of(returned))
            pickle.dump(message, pipe)
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
        reason = "it may not be executed (try chmod +x)"
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


def _call(job: CallJob, target: LoadedTarget) -> tuple[CallEnd, object]:
    """Call the function and say how it went, and what it returned."""
    assert target.function is not None, "calls are only sent for targets with a function"
    returned: object = None
    error: str | None = None
    status = End.FINISHED
    if "numpy.random" in sys.modules:
        # As Python's own generator does: else all racers, forked from one process, draw the same.
        # By what is called, so that a trial that is run again draws what it drew.
        sys.modules["numpy.random"].seed(zlib.crc32(job.arguments))
    try:
        positional, named = _SharedUnpickler(job.arguments, target.shared).load()
        returned = target.function(*positional, **named)
    except SystemExit as leaving:
        if leaving.code not in (None, 0):
            status, error = (
                End.CRASHED,
                f"the function called sys.exit({description(leaving.code)})",
            )
    except MemoryError:
        status, error = End.MEMORY, traceback.format_exc()
    except BaseException:
        status, error = End.CRASHED, traceback.format_exc()
    ended = time.monotonic()
    if isinstance(returned, float) and not math.isfinite(returned):
        status, error = End.CRASHED, f"the function returned {float(returned)}, which is not finite"
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):  # it may have closed it
            stream.flush()
    return CallEnd(ended, status, error), returned
