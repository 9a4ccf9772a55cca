"""What the processes of a race track tell each other.

::

    RaceTrack (the user's process)  --Setup, StartRace, CancelRace-->  supervisor
                                    <--Ready, SetupFailed, RaceDone--
    supervisor  --RunRacer, LowerLimit, StopRacer-->  watcher
             <--Finished, RacerReport--
    racer    --the moment, then CallEnd or StartFailed-->  watcher
"""

from __future__ import annotations

import pickle
import struct
from dataclasses import dataclass
from typing import Any

from acband_configspace.core.ends import End
from acband_configspace.running.race import Clock, RacerReport

#: What a racer sends first: when its function returned, by the system-wide monotonic clock.
ENDED = struct.Struct("d")


@dataclass(frozen=True)
class Limits:
    """What every racer of a race track is held to."""

    cutoff: float | None
    memory_limit_mb: int | None
    clock: Clock
    grace: float

    def counted_time(self, report: RacerReport) -> float:
        """Return the time that decides the race."""
        return report.time if self.clock == "wall" else report.cpu_time


@dataclass(frozen=True)
class CommandJob:
    """Replace the racer's process by this command."""

    arguments: tuple[str, ...]
    success_codes: frozenset[int] = frozenset({0})
    """The exit codes of a run that came to its end."""


@dataclass(frozen=True)
class CallJob:
    """Call the target function with these pickled arguments."""

    arguments: bytes


@dataclass(frozen=True)
class BrokenJob:
    """A racer whose command could not even be put together."""

    error: str


Job = CommandJob | CallJob | BrokenJob


@dataclass(frozen=True)
class Setup:
    """The first message: everything the supervisor must know before it can start racers."""

    arguments: list[str]
    """The user's ``sys.argv``, which a target may look at."""
    function: bytes | None
    shared: bytes
    slots: int
    limits: Limits
    user_process: int


@dataclass(frozen=True)
class PickledShared:
    """A shared object on its way through a process that has no use for it but to pass it on."""

    data: bytes


@dataclass(frozen=True)
class Ready:
    """The target is loaded; racers can start."""


@dataclass(frozen=True)
class SetupFailed:
    """The target could not be loaded."""

    traceback: str


@dataclass(frozen=True)
class StartRace:
    """Queue a race."""

    number: int
    jobs: tuple[Job, ...]
    stop_losers: bool


@dataclass(frozen=True)
class CancelRace:
    """Stop a race, or forget it if it has not begun."""

    number: int


@dataclass(frozen=True)
class RaceDone:
    """A race is over and nothing of it is alive."""

    number: int
    racers: tuple[RacerReport, ...]
    winner: int | None


@dataclass(frozen=True)
class RunRacer:
    """Start a racer; ``best`` is the time to beat, if there is one already."""

    job: Job
    best: float | None


@dataclass(frozen=True)
class LowerLimit:
    """Another racer of the race has finished in this time."""

    best: float


@dataclass(frozen=True)
class StopRacer:
    """The race is called off."""


@dataclass(frozen=True)
class Finished:
    """The racer has finished in this time; its report follows once its tree is gone."""

    time: float


@dataclass(frozen=True)
class PickledValue:
    """A returned value, on its way to the user's process through processes that need not know it.

    The values of a function's module may not be importable, or may not be picklable at all.
    """

    pickled: bytes | None
    text: str

    @classmethod
    def of(cls, value: object) -> PickledValue:
        """Pickle a value, or describe it if that is impossible."""
        try:
            return cls(pickle.dumps(value), f"a {type(value).__name__} that cannot be loaded here")
        except Exception:  # __reduce__ and friends may raise anything
            return cls(None, _description(value))

    def load(self) -> Any:
        """Return the value, or its description."""
        if self.pickled is None:
            return self.text
        try:
            return pickle.loads(self.pickled)
        except Exception:  # likewise __setstate__
            return self.text


def _description(value: object) -> str:
    try:
        return repr(value)[:1000]
    except Exception:
        return object.__repr__(value)


@dataclass(frozen=True)
class CallEnd:
    """A Python function has returned or raised."""

    ended: float
    """By the system-wide monotonic clock: no time between the processes is lost."""
    status: End
    error: str | None = None
    returned: PickledValue | None = None


@dataclass(frozen=True)
class StartFailed:
    """A command could not be started."""

    error: str
