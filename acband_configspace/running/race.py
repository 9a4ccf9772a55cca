"""What a race is and what came of it: values only, nothing here runs anything."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from acband_configspace.core.checks import real_number
from acband_configspace.core.ends import End

Clock = Literal["wall", "cpu"]


@dataclass(frozen=True)
class RaceSpec:
    """A race to run: some configurations on one instance with one seed.

    Raises
    ------
    ValueError
        If there is no configuration, or ``limits`` does not fit the configurations.
    """

    key: Hashable
    """Returned in the report as it is; must differ from the keys of all unfinished races."""
    configurations: tuple[Mapping[str, Any], ...]
    instance: str | None = None
    seed: int | None = None
    stop_losers: bool = True
    """If false, every racer runs to its own end or its limit, as validation needs it."""
    limits: tuple[float | None, ...] | None = None
    """For each racer the seconds after which it is stopped and has lost; None for no such limit.

    By the clock of the track. A limit that is not below the cutoff changes nothing; with one of 0
    or less the racer is not even started.
    """

    def __post_init__(self) -> None:
        if not self.configurations:
            raise ValueError("configurations must name at least one racer but got none")
        if self.limits is None:
            return
        if len(self.limits) != len(self.configurations):
            raise ValueError(
                f"limits must have one entry for each of the {len(self.configurations)} "
                f"configurations but got {len(self.limits)}"
            )
        for limit in self.limits:
            if limit is not None and math.isnan(real_number("limits", limit)):
                raise ValueError(f"limits must be numbers of seconds but got {limit}")


@dataclass(frozen=True)
class TrackLimits:
    """What every racer of a race track is held to.

    Raises
    ------
    TypeError, ValueError
        If a value is not of its kind, or out of range.
    """

    cutoff: float | None = None
    memory_limit_mb: float | None = None
    clock: Clock = "wall"
    grace: float = 0.05

    def __post_init__(self) -> None:
        if self.cutoff is not None and not 0 < real_number("cutoff", self.cutoff) < math.inf:
            raise ValueError(f"cutoff must be a positive number of seconds but got {self.cutoff}")
        memory = self.memory_limit_mb
        if memory is not None and not 0 < real_number("memory_limit_mb", memory) < math.inf:
            raise ValueError(f"memory_limit_mb must be positive but got {memory}")
        if self.clock not in ("wall", "cpu"):
            raise ValueError(f"clock must be 'wall' or 'cpu' but got {self.clock!r}")
        if not 0 <= real_number("grace", self.grace) < math.inf:
            raise ValueError(
                f"grace must be a number of seconds, not negative, but got {self.grace}"
            )

    def measured_time(self, report: RacerReport) -> float:
        """Return the time by our clock, which limits are about."""
        return report.time if self.clock == "wall" else report.cpu_time

    def counted_time(self, report: RacerReport) -> float:
        """Return the time that decides the race: the target's own, if it told one."""
        return self.measured_time(report) if report.own_time is None else report.own_time


@dataclass(frozen=True)
class ScriptReport:
    """What a command printed about itself, as in ``cost=0.5; status=SUCCESS``."""

    status: str | None = None
    """SUCCESS, CRASHED, TIMEOUT or MEMORYOUT; None if it did not say, which counts as SUCCESS."""
    cost: float | tuple[float, ...] | None = None
    runtime: float | None = None
    """Seconds; what ``read_result`` says here counts in place of the time that we measure."""
    cpu_time: float | None = None
    additional_info: str | None = None


@dataclass(frozen=True)
class RacerReport:
    """What came of one racer."""

    status: End
    started: float
    """When it started, in seconds since 1970; a time stamp that decides nothing."""
    time: float = 0.0
    """Elapsed seconds from its start to its end; 0 if it never started."""
    cpu_time: float = 0.0
    """CPU seconds of its whole process tree, processes that were killed included."""
    error: str | None = None
    """What went wrong, in words, with the traceback or the end of its error output."""
    own_time: float | None = None
    """Seconds that count in place of those measured: what ``read_result`` says it took, or what a
    racer that was stopped must have exceeded."""
    returned: Any = None
    """What a Python function returned; its repr if it is large or cannot be pickled."""
    reported: ScriptReport | None = None
    """What a command printed about itself, if it did."""
    output: str = ""
    """The end of its standard output."""
    command: tuple[str, ...] | None = None
    """The argument list of a command."""


@dataclass(frozen=True)
class RaceReport:
    """What came of one race."""

    key: Hashable
    racers: tuple[RacerReport, ...]
    """One report for each configuration, in the order of the specification."""
    winner: int | None
    """The index of the finisher with the least time, if anyone finished."""
