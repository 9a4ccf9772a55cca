"""Runs races on this machine, for a caller in one process."""

from __future__ import annotations

import contextlib
import json
import math
import os
import selectors
import subprocess
import sys
import time
import warnings
import weakref
from collections.abc import Hashable
from dataclasses import replace
from types import TracebackType

import cloudpickle

from acband_configspace.running.local.channel import Channel, channel_pair
from acband_configspace.running.local.messages import (
    CancelRace,
    Job,
    Limits,
    PickledShared,
    PickledValue,
    RaceDone,
    Ready,
    Setup,
    SetupFailed,
    StartRace,
)
from acband_configspace.running.local.process_tree import ADOPTS_ORPHANS
from acband_configspace.running.race import Clock, RaceReport, RacerReport, RaceSpec
from acband_configspace.running.targets import Target

#: Not ``-m``: only with our own search path is the package sure to be found.
_SUPERVISOR_CODE = (
    "import json, sys; descriptor = int(sys.argv[1]); sys.path[:] = json.loads(sys.argv[2]); "
    "from acband_configspace.running.local.supervisor import main; main(descriptor)"
)
#: Seconds beyond the grace that closing waits for the racers to be gone.
_CLOSING_TIME = 2.0


class TargetLoadError(RuntimeError):
    """The target could not be loaded in the process that starts the racers."""


class SupervisorDiedError(RuntimeError):
    """The process that starts the racers was killed."""


class RaceTrack:
    """Runs races: starts the racers, limits them, stops the losers, accounts for all.

    Races start in the order given. All racers of a race start together; if there are fewer slots
    than racers, the rest start as slots become free. Every racer is limited to the cutoff, and
    from the moment another racer has finished to that racer's time. So the winner and the limit
    are the same however many slots there are. Losers are stopped with their whole process trees.

    With ``clock="cpu"`` the CPU time of the racer's process tree takes the place of the elapsed
    time: in the cutoff, in the limit, and in the choice of the winner. A racer that uses none is
    stopped after ten elapsed seconds for each CPU second it is allowed, plus one.

    The memory limit holds for the sum over the tree. It is looked at up to twenty times a
    second, and counts memory in use, not address space: many programs reserve far more of that
    than they use.

    Racers run in the working directory and with the environment of the moment the track is
    constructed. Not for several threads at a time. Close it, or use it in a ``with`` statement;
    racers also end when the process ends or is killed.

    Args:
        target: What races.
        slots: How many racers may run at a time.
        cutoff: Seconds each racer may take.
        memory_limit_mb: Megabytes each racer's process tree may use.
        clock: Which time decides: ``"wall"`` or ``"cpu"``.
        grace: Seconds between SIGTERM and SIGKILL. The default lets a program remove its
            temporary files, and is short beside the runs that are worth racing.
        shared: An object that the configurations refer to, such as their ConfigurationSpace. It
            is sent once, and imported once, instead of with every racer.

    Raises:
        TargetLoadError: if the target's module cannot be imported in a fresh interpreter.

    Example:
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
        memory_limit_mb: int | None = None,
        clock: Clock = "wall",
        grace: float = 0.05,
        shared: object = None,
    ) -> None:
        if slots < 1:
            raise ValueError(f"slots must be at least 1 but got {slots}")
        self._limits = _checked_limits(cutoff, memory_limit_mb, clock, grace)
        if not ADOPTS_ORPHANS:
            warnings.warn(
                f"on {sys.platform} a process that outlives the one that started it (a daemon) "
                "cannot always be found and stopped with its racer; on Linux it can",
                stacklevel=2,
            )
        self.slots = slots
        self._target = target
        self._shared = shared
        self._unfinished: dict[int, Hashable] = {}
        self._races_started = 0
        self._channel, self._supervisor = _start_supervisor()
        self._end = weakref.finalize(
            self,
            _end_supervisor,
            self._channel,
            self._supervisor,
            grace + _CLOSING_TIME,
            os.getpid(),
        )
        try:
            self._load()
        except BaseException:
            self._supervisor.kill()  # it may be busy importing, and has no racers yet
            self.close()
            raise

    def _load(self) -> None:
        self._channel.send(
            Setup(
                # Not on the command line: that may be too long, and ``pkill -f`` would find the
                # supervisor by the name of the user's script, and kill it before its racers.
                arguments=sys.argv,
                function=self._target.pickled_function,
                shared=_pickled(self._shared),
                slots=self.slots,
                limits=self._limits,
                user_process=os.getpid(),
            )
        )
        while not (messages := self._receive(None)):
            pass
        if isinstance(messages[0], SetupFailed):
            raise TargetLoadError(
                "the target could not be loaded in a fresh Python process; the modules it uses "
                f"must be importable there:\n{messages[0].traceback}"
            )

    @property
    def unfinished(self) -> int:
        """How many races were started here and not yet reported."""
        return len(self._unfinished)

    def fileno(self) -> int:
        """Return a file descriptor that is readable when there may be reports to receive."""
        return self._channel.fileno()

    def start(self, spec: RaceSpec) -> None:
        """Queue a race; it begins when the races before it leave enough slots."""
        jobs = jobs_of(spec, self._target, cutoff=self._limits.cutoff, shared=self._shared)
        self.start_jobs(spec.key, jobs, stop_losers=spec.stop_losers)

    def start_jobs(self, key: Hashable, jobs: tuple[Job, ...], *, stop_losers: bool) -> None:
        """Queue a race whose racers' jobs were put together elsewhere."""
        self._check_open()
        if key in self._unfinished.values():
            raise ValueError(f"key must differ from all unfinished races but got {key!r}")
        self._races_started += 1
        self._unfinished[self._races_started] = key
        self._channel.send(StartRace(self._races_started, jobs, stop_losers))

    def wait(self, timeout: float | None = None) -> list[RaceReport]:
        """Wait until at least one race is over, and return the reports of all that are.

        Returns an empty list if that takes longer than ``timeout`` seconds, or if no race is
        unfinished.

        Raises:
            SupervisorDiedError: if someone killed the process that starts the racers.
        """
        return [with_values(report) for report in self.receive(timeout)]

    def receive(self, timeout: float | None = None) -> list[RaceReport]:
        """Do as ``wait``, but leave what functions returned pickled: for another process."""
        self._check_open()
        deadline = math.inf if timeout is None else time.monotonic() + timeout
        reports: list[RaceReport] = []
        while self._unfinished and not reports:
            patience = max(deadline - time.monotonic(), 0.0)
            messages = self._receive(None if patience == math.inf else patience)
            if patience == 0 and not messages:
                break
            for message in messages:
                if isinstance(message, RaceDone):
                    key = self._unfinished.pop(message.number)
                    reports.append(RaceReport(key, message.racers, message.winner))
        return reports

    def cancel(self, key: Hashable) -> None:
        """Stop a race. It is reported like any other, its racers as cancelled."""
        self._check_open()
        numbers = [number for number, known in self._unfinished.items() if known == key]
        if not numbers:
            raise KeyError(f"key must be that of an unfinished race but got {key!r}")
        self._channel.send(CancelRace(numbers[0]))

    def close(self) -> None:
        """Kill all racers and wait until they are gone. Unfinished races are not reported."""
        self._unfinished.clear()
        self._end()

    def __enter__(self) -> RaceTrack:
        return self

    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        exception_traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _check_open(self) -> None:
        if not self._end.alive:
            raise RuntimeError("the race track is closed")

    def _receive(self, timeout: float | None) -> list[Ready | SetupFailed | RaceDone]:
        with selectors.DefaultSelector() as selector:
            selector.register(self._channel, selectors.EVENT_READ)
            # epoll refuses more than 24 days.
            selector.select(timeout if timeout is None else min(timeout, 86_400.0))
        try:
            return self._channel.receive()
        except EOFError:
            self.close()
            raise SupervisorDiedError(
                "the process that starts the racers has died "
                f"(exit code {self._supervisor.returncode}); all racers were stopped"
            ) from None


def _checked_limits(
    cutoff: float | None, memory_limit_mb: int | None, clock: Clock, grace: float
) -> Limits:
    if cutoff is not None and not 0 < cutoff < math.inf:
        raise ValueError(f"cutoff must be a positive number of seconds but got {cutoff}")
    if memory_limit_mb is not None and memory_limit_mb <= 0:
        raise ValueError(f"memory_limit_mb must be positive but got {memory_limit_mb}")
    if clock not in ("wall", "cpu"):
        raise ValueError(f"clock must be 'wall' or 'cpu' but got {clock!r}")
    if not 0 <= grace < math.inf:
        raise ValueError(f"grace must be a number of seconds, not negative, but got {grace}")
    return Limits(cutoff, memory_limit_mb, clock, grace)


def jobs_of(
    spec: RaceSpec, target: Target, *, cutoff: float | None, shared: object
) -> tuple[Job, ...]:
    """Return what the racers of a race have to do."""
    return tuple(
        target.job(
            configuration, instance=spec.instance, seed=spec.seed, cutoff=cutoff, shared=shared
        )
        for configuration in spec.configurations
    )


def _pickled(shared: object) -> bytes:
    return shared.data if isinstance(shared, PickledShared) else bytes(cloudpickle.dumps(shared))


def with_values(report: RaceReport) -> RaceReport:
    """Return a received report with the values that functions returned."""
    return replace(report, racers=tuple(_with_value(racer) for racer in report.racers))


def _with_value(racer: RacerReport) -> RacerReport:
    if isinstance(racer.returned, PickledValue):
        return replace(racer, returned=racer.returned.load())
    return racer


def _start_supervisor() -> tuple[Channel, subprocess.Popen[bytes]]:
    """Start a fresh interpreter; it imports this package and waits for its setup."""
    ours, theirs = channel_pair()
    search_path = json.dumps([entry for entry in sys.path if isinstance(entry, str)])
    try:
        supervisor = subprocess.Popen(
            [sys.executable, "-c", _SUPERVISOR_CODE, str(theirs.fileno()), search_path],
            stdin=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
            start_new_session=True,  # out of reach of the terminal's Ctrl-C
        )
    except BaseException:
        ours.close()
        raise
    finally:
        theirs.close()
    return ours, supervisor


def _end_supervisor(
    channel: Channel, supervisor: subprocess.Popen[bytes], patience: float, owner: int
) -> None:
    """Have the supervisor stop everything and end; kill it if it does not."""
    if os.getpid() != owner:  # a fork of the user's process ends: not its race track
        return
    channel.end_sending()
    deadline = time.monotonic() + patience
    with selectors.DefaultSelector() as selector, contextlib.suppress(EOFError):
        selector.register(channel, selectors.EVENT_READ)
        while (remaining := deadline - time.monotonic()) > 0:
            selector.select(remaining)
            channel.receive()
    channel.close()
    supervisor.kill()
    supervisor.wait()
