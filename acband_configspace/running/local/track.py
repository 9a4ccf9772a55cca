"""Runs races on this machine, for a caller in one process."""

from __future__ import annotations

import contextlib
import math
import os
import subprocess
import sys
import time
import uuid
import warnings
import weakref
from collections.abc import Hashable
from dataclasses import replace
from typing import Any

from acband_configspace.core.checks import whole_number
from acband_configspace.running.local import process_tree
from acband_configspace.running.local.messages import (
    CancelRace,
    Channel,
    PickledValue,
    Setup,
    StartRace,
    TrackSettings,
    channel_pair,
)
from acband_configspace.running.race import Clock, RaceReport, RacerReport, RaceSpec, TrackLimits
from acband_configspace.running.targets import Target, settings_for, start_message

#: Not ``-m``: only with our own search path is the package sure to be found. Before that is set
#: nothing may be imported that a file in the working directory could pose as. Where that directory
#: is itself on the path (as "", at a prompt), it comes last until all that is ours is imported.
_SUPERVISOR_CODE = (
    "import sys; descriptor = int(sys.argv[1]); path = sys.argv[2:]; "
    "sys.path[:] = sorted(path, key=lambda entry: entry == ''); "
    "from acband_configspace.running.local.supervisor import main; "
    "sys.path[:] = path; main(descriptor)"
)
#: Seconds beyond the grace that closing waits for the racers to be gone.
_CLOSING_TIME = 2.0


class TargetLoadError(RuntimeError):
    """The target could not be loaded in the process that supervises the races."""


class SupervisorDiedError(RuntimeError):
    """The process that supervises the races was killed."""


class SupervisorProcess:
    """A supervisor below this process, and the connection to it; closed when it is collected.

    Raises
    ------
    TargetLoadError
        If the target's module cannot be imported in a fresh interpreter.
    """

    def __init__(self, settings: TrackSettings, *, slots: int) -> None:
        self._mark = uuid.uuid4().hex
        self._channel, self._process = _start_process(self._mark)
        patience = settings.limits.grace + _CLOSING_TIME
        self._end = weakref.finalize(
            self, _end_process, self._channel, self._process, self._mark, patience, os.getpid()
        )
        # Not on the command line: that may be too long, and ``pkill -f`` would find the
        # supervisor by the name of the user's script, and kill it before its racers.
        setup = Setup(sys.argv, settings, slots, user_process=os.getpid())
        try:
            self._channel.send(setup)
            while not (messages := self.receive(None)):
                pass
            if messages[0].traceback is not None:
                raise TargetLoadError(
                    "the target could not be loaded in a fresh Python process; the modules it "
                    f"uses must be importable there:\n{messages[0].traceback}"
                )
        except BaseException:
            self._process.kill()  # it may be busy importing, and has no racers yet
            self.close()
            raise

    def fileno(self) -> int:
        """Return a file descriptor that is readable when there may be something to receive."""
        return self._channel.fileno()

    @property
    def is_closed(self) -> bool:
        """Whether nothing can be sent any more."""
        return not self._end.alive

    def send(self, message: StartRace | CancelRace) -> None:
        """Tell the supervisor to start or to stop a race."""
        self._channel.send(message)

    def receive(self, timeout: float | None) -> list[Any]:
        """Return the reports of races that are over; wait for one at most so many seconds.

        Raises
        ------
        SupervisorDiedError
            If someone killed the supervisor.
        """
        self._channel.wait(timeout)
        try:
            return self._channel.receive()
        except EOFError:
            left = self._end() or ()
            fate = (
                f"some processes below it cannot be killed: {', '.join(map(str, left))}"
                if left
                else "what was found of its racers was killed"
            )
            raise SupervisorDiedError(
                "the process that supervises the races has died "
                f"(exit code {self._process.returncode}); {fate}"
            ) from None

    def close(self) -> None:
        """Kill all racers and wait until they are gone, within a time limit."""
        self._end()


class RaceTrack:
    """Runs races: starts the racers, limits them, stops the losers, accounts for all.

    Races start in the order given, each with as many racers as slots are free; the others start as
    slots become free. Every racer is limited to the cutoff and to the limit that the race sets for
    it; where losers are stopped, also, once another racer has finished, to that racer's time. So
    the winner and the limit are the same however many slots there are. Losers are stopped with
    their whole process trees.

    With ``clock="cpu"`` the CPU time of the racer's process tree takes the place of the elapsed
    time: in the cutoff, in the limits, and in the choice of the winner. A racer that uses none is
    stopped after ten elapsed seconds for each CPU second it is allowed, plus one. The children of
    a process that ignores SIGCHLD leave no trace of their CPU time, so they are looked at twenty
    times a second, and what they use after the last look is not counted.

    The memory limit holds for the sum over the tree. It is looked at up to twenty times a
    second, and counts memory in use, not address space: many programs reserve far more of that
    than they use.

    Racers run in the working directory and with the environment of the moment the track is
    constructed, and find the variable ``ACBAND_TRACK`` in it, by which they are found if their
    supervisor is killed. Not for several threads at a time. Close it, or use it in a ``with``
    statement; racers also end when the process ends or is killed. On Linux, with all that they have
    started, even if this process, the supervisor and the watchers are killed at the same moment:
    a guard, a shell that waits for just that, finds them by that variable. Only what has another
    environment may live on then, or everything if somebody kills the guard as well. After a
    ``kill -9`` of the supervisor racers may be killed without SIGTERM and its grace.

    A racer whose watcher is killed, or suspended for some seconds, is run again, up to three
    times. One that cannot be killed is left running after five seconds, and its report says so.

    Parameters
    ----------
    target : Target
        What races.
    slots : int
        How many racers may run at a time.
    cutoff : float, optional
        Seconds each racer may take.
    memory_limit_mb : float, optional
        Megabytes each racer's process tree may use.
    clock : {"wall", "cpu"}
        Which time decides.
    grace : float
        Seconds between SIGTERM and SIGKILL. The default lets a program remove its temporary
        files, and is short beside the runs that are worth racing.
    shared : object, optional
        An object that the configurations refer to, such as their ConfigurationSpace. It is sent
        once, and imported once, instead of with every racer.

    Raises
    ------
    TargetLoadError
        If the target's module cannot be imported in a fresh interpreter.
    TypeError, ValueError
        If an option is not of its kind, or out of range.

    Examples
    --------
    >>> from acband_configspace.running import PythonTarget, RaceSpec, RaceTrack
    >>> import time
    >>> sleep = PythonTarget(lambda configuration: time.sleep(configuration["seconds"]))
    >>> with RaceTrack(sleep, slots=2) as track:
    ...     track.start(RaceSpec("first", ({"seconds": 9}, {"seconds": 0.1})))
    ...     [report] = track.wait()
    >>> report.winner, [racer.status.value for racer in report.racers]
    (1, ['lost', 'finished'])
    """

    def __init__(
        self,
        target: Target,
        *,
        slots: int,
        cutoff: float | None = None,
        memory_limit_mb: float | None = None,
        clock: Clock = "wall",
        grace: float = 0.05,
        shared: object = None,
    ) -> None:
        self.slots = whole_number("slots", slots, at_least=1)
        limits = TrackLimits(cutoff, memory_limit_mb, clock, grace)
        if not process_tree.ADOPTS_ORPHANS:
            warnings.warn(
                f"on {sys.platform} a process that outlives the one that started it (a daemon) "
                "cannot always be found and stopped with its racer; on Linux it can",
                stacklevel=2,
            )
        self._target = target
        self._cutoff = cutoff
        self._shared = shared
        self._unfinished: dict[Hashable, Hashable] = {}
        self._races_started = 0
        settings = settings_for(target, shared, limits)
        self._supervisor = SupervisorProcess(settings, slots=self.slots)

    @property
    def unfinished(self) -> int:
        """How many races were started here and not yet reported."""
        return len(self._unfinished)

    def start(self, spec: RaceSpec) -> None:
        """Queue a race; it begins when the races before it leave a slot."""
        self._check_open()
        if spec.key in self._unfinished.values():
            raise ValueError(f"key must differ from all unfinished races but got {spec.key!r}")
        self._races_started += 1
        message = start_message(
            self._races_started, spec, self._target, cutoff=self._cutoff, shared=self._shared
        )
        self._unfinished[message.key] = spec.key
        self._supervisor.send(message)

    def wait(self, timeout: float | None = None) -> list[RaceReport]:
        """Wait until at least one race is over, and return the reports of all that are.

        Returns an empty list if that takes longer than ``timeout`` seconds, or if no race is
        unfinished.

        Raises
        ------
        SupervisorDiedError
            If someone killed the process that supervises the races.
        """
        self._check_open()
        deadline = math.inf if timeout is None else time.monotonic() + timeout
        reports: list[RaceReport] = []
        while self._unfinished and not reports:
            patience = max(deadline - time.monotonic(), 0.0)
            done = self._supervisor.receive(None if patience == math.inf else patience)
            reports = [opened(race, self._unfinished.pop(race.key)) for race in done]
            if patience == 0:
                break
        return reports

    def cancel(self, key: Hashable) -> None:
        """Stop a race. It is reported like any other, its racers as cancelled."""
        self._check_open()
        numbers = [number for number, known in self._unfinished.items() if known == key]
        if not numbers:
            raise KeyError(f"key must be that of an unfinished race but got {key!r}")
        self._supervisor.send(CancelRace(numbers[0]))

    def close(self) -> None:
        """Kill all racers and wait until they are gone. Unfinished races are not reported."""
        self._unfinished.clear()
        self._supervisor.close()

    def __enter__(self) -> RaceTrack:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _check_open(self) -> None:
        if self._supervisor.is_closed:
            raise RuntimeError("the race track is closed")


def opened(report: RaceReport, key: Hashable) -> RaceReport:
    """Return a report with the key of the caller, and the values that functions returned."""
    return replace(report, key=key, racers=tuple(map(_with_value, report.racers)))


def _with_value(racer: RacerReport) -> RacerReport:
    if isinstance(racer.returned, PickledValue):
        return replace(racer, returned=racer.returned.load())
    return racer


def _start_process(mark: str) -> tuple[Channel, subprocess.Popen[bytes]]:
    """Start a fresh interpreter; it imports this package and waits for its setup."""
    ours, theirs = channel_pair()
    search_path = [entry for entry in sys.path if isinstance(entry, str)]
    try:
        process = subprocess.Popen(
            [sys.executable, "-c", _SUPERVISOR_CODE, str(theirs.fileno()), *search_path],
            stdin=subprocess.DEVNULL,
            env={**os.environ, process_tree.MARK: mark},
            pass_fds=[theirs.fileno()],
            start_new_session=True,  # out of reach of the terminal's Ctrl-C
        )
    except BaseException:
        ours.close()
        raise
    finally:
        theirs.close()
    return ours, process


def _end_process(
    channel: Channel, process: subprocess.Popen[bytes], mark: str, patience: float, owner: int
) -> list[int]:
    """Have the supervisor stop everything and end; return what cannot be killed.

    If it does not end in order, killing it and all that carries its mark is up to us.
    """
    if os.getpid() != owner:  # a fork of the user's process ends: not its race track
        return []
    channel.end_sending()
    deadline = time.monotonic() + patience
    with contextlib.suppress(EOFError):
        while (remaining := deadline - time.monotonic()) > 0:
            channel.wait(remaining)
            channel.receive()
    channel.close()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(max(deadline - time.monotonic(), 0.1))
    process.kill()
    return [] if process.wait() == 0 else process_tree.kill_marked(mark)
