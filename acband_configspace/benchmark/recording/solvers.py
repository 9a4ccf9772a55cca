"""What a recorder must know of a solver: its space, its instances, its clock."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from ConfigSpace import ConfigurationSpace

from acband_configspace.running.race import RacerReport
from acband_configspace.running.targets import Target

Values = Mapping[str, Any]


class Solver(Protocol):
    """A real target whose runtimes can be recorded."""

    @property
    def name(self) -> str:
        """How provenance calls it."""

    def version(self) -> str:
        """Return which version runs here.

        Raises
        ------
        FileNotFoundError
            If the solver is not installed.
        """

    def space(self) -> ConfigurationSpace:
        """Return its options; the defaults are its own."""

    def instances(self, count: int, seed: int, folder: Path) -> Sequence[tuple[str, str]]:
        """Return the name of each instance and what the target is told: a file, or a recipe."""

    def target(self) -> Target:
        """Return what a race track runs."""

    def seconds(self, report: RacerReport, cutoff: float) -> float:
        """Return the CPU time of a run, infinite if it did not solve the instance in time.

        Raises
        ------
        RuntimeError
            If the run failed for another reason than time or memory.
        """


def drawn_values(space: ConfigurationSpace, count: int, seed: int) -> list[Values]:
    """Return the values of so many configurations: the default, then uniformly drawn ones."""
    space.seed(seed)
    drawn = space.sample_configuration(max(2, count))[: count - 1]
    return [_plain(one) for one in (space.get_default_configuration(), *drawn)]


def _plain(configuration: Values) -> Values:
    """Return values that JSON knows, with four digits: what is recorded is exactly what was run."""
    plain = {
        name: value.item() if isinstance(value, np.generic) else value
        for name, value in configuration.items()
    }
    return {
        name: float(f"{value:.4g}") if isinstance(value, float) else value
        for name, value in plain.items()
    }


def get_solver(name: str) -> Solver:
    """Return the solver of that name, or the one that a Python file describes."""
    from acband_configspace.benchmark.recording.clasp import CLASP
    from acband_configspace.benchmark.recording.minisat import MINISAT
    from acband_configspace.benchmark.recording.python_file import PythonFile

    if name.endswith(".py"):
        return PythonFile(Path(name))
    for known in (MINISAT, CLASP):
        if name == known.name:
            return known
    raise ValueError(f"target must be 'minisat', 'clasp' or a Python file but got {name!r}")
