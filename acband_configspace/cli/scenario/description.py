"""A scenario as every format's reader hands it over: one frozen value."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ConfigSpace import ConfigurationSpace

from acband_configspace.cli.command_lines import CommandLine
from acband_configspace.cli.errors import InputError, Place
from acband_configspace.cli.results import ResultReader
from acband_configspace.running.race import Clock

#: The keys of what must be given, by the format.
_CUTOFF = {"toml": "[target] cutoff", "aclib": "cutoff_time", "irace": "boundMax"}
_BUDGET = {
    "toml": "[budget] trials, wall_time or cpu_time",
    "aclib": "runcount_limit, wallclock_limit or tunerTimeout",
    "irace": "maxExperiments or maxTime",
}


@dataclass(frozen=True, kw_only=True)
class ScenarioFile:
    """What a user wants tuned: the target, its space, the instances and the budget."""

    path: Path
    format: str
    """How it was written: "toml", "aclib" or "irace"."""
    line: CommandLine
    """Makes the command line of a run."""
    space: ConfigurationSpace
    reader: ResultReader | None = None
    """Reads what a run prints; None if its exit code says all there is to say."""
    success_codes: tuple[int, ...] = (0,)
    directory: Path = field(default_factory=Path.cwd)
    """Where the target runs."""
    instances: tuple[str, ...] | None = None
    test_instances: tuple[str, ...] | None = None
    racing: bool = True
    """Whether the run time is what is minimised."""
    clock: Clock = "wall"
    """By which the cutoff is measured, and the run time where that is minimised."""
    par: float = 10.0
    cutoff: float | None = None
    memory_limit: int | None = None
    crash_cost: float = math.inf
    deterministic: bool = False
    n_trials: int | None = None
    walltime_limit: float | None = None
    cputime_limit: float | None = None
    given: tuple[Mapping[str, Any], ...] = ()
    """Configurations that race from the start, beside the default."""
    seed: int = 0
    workers: int = 1
    output: Path | None = None
    """The folder of the runs, if the scenario names one."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Further options of the facade: k, alpha and so on."""
    option_places: Mapping[str, Place] = field(default_factory=dict)
    """Where each was given."""
    keys: tuple[str, ...] = ()
    """The keys of the format, for suggestions."""
    notes: tuple[str, ...] = ()
    """What was read but is not used, for people to read."""

    def __post_init__(self) -> None:
        place = Place(self.path)
        if self.racing and self.cutoff is None:
            raise InputError(
                place,
                f"{_CUTOFF[self.format]} must be given to minimise the run time: otherwise bad "
                "runs would never end",
            )
        if self.n_trials is None and self.walltime_limit is None and self.cputime_limit is None:
            raise InputError(place, f"{_BUDGET[self.format]} must be given")

    @property
    def limit(self) -> float | None:
        """Seconds after which a run is stopped.

        A target that is told its cutoff, and minimises a cost until then, gets some more to say
        what it found.
        """
        if self.cutoff is None or self.racing or not self.line.tells_cutoff:
            return self.cutoff
        return 1.1 * self.cutoff + 5.0

    def command(self, values: Mapping[str, Any], instance: str = "INSTANCE") -> list[str]:
        """Return the command line of a configuration on an instance, if there are instances."""
        named = None if self.instances is None else instance
        return self.line.words(values, named, self.seed, self.cutoff)

    @property
    def name(self) -> str:
        """What the run is called: the file's name, or its folder's where that says nothing."""
        stem = self.path.stem
        folder = self.path.resolve().parent.name
        return folder if stem.lower() in ("scenario", "scenarios") and folder else stem

    @property
    def default_output(self) -> Path:
        """Where the run is kept unless the user says otherwise."""
        return (self.output or Path("acband_output")) / f"{self.name}-{self.seed}"
