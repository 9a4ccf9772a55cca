"""The values a race is asked for with and answered by; nothing here runs anything."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from acband_configspace.core.ends import End

Clock = Literal["wall", "cpu"]


@dataclass(frozen=True)
class RaceSpec:
    """A race to run: some configurations on one instance with one seed."""

    key: Hashable
    """Returned in the report as it is; must differ from the keys of all unfinished races."""
    configurations: tuple[Mapping[str, Any], ...]
    instance: str | None = None
    seed: int | None = None
    stop_losers: bool = True
    """If false, every racer runs to its own end or the cutoff, as validation needs it."""

    def __post_init__(self) -> None:
        if not self.configurations:
            raise ValueError("configurations must name at least one racer but got none")


@dataclass(frozen=True)
class ScriptReport:
    """What a script printed about itself, as in ``cost=0.5; status=SUCCESS``."""

    status: str | None = None
    cost: float | tuple[float, ...] | None = None
    runtime: float | None = None
    cpu_time: float | None = None
    additional_info: str | None = None


@dataclass(frozen=True)
class RacerReport:
    """What became of one racer."""

    status: End
    started: float
    """When it started, in seconds since 1970."""
    time: float = 0.0
    """Elapsed seconds from its start to its end; 0 if it never started."""
    cpu_time: float = 0.0
    """CPU seconds of its whole process tree, processes that were killed included."""
    error: str | None = None
    """What went wrong, in words, with the traceback or the end of its error output."""
    returned: Any = None
    """What a Python function returned; its repr if that cannot be pickled."""
    reported: ScriptReport | None = None
    """What a script printed about itself, if it did."""
    output: str = ""
    """The end of its standard output."""
    command: tuple[str, ...] | None = None
    """The argument list of a script or binary."""


@dataclass(frozen=True)
class RaceReport:
    """What became of one race."""

    key: Hashable
    racers: tuple[RacerReport, ...]
    """One report for each configuration, in the order of the specification."""
    winner: int | None
    """The index of the finisher with the least time, if anyone finished."""
