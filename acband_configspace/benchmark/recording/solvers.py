"""What a recorder must know of a solver, from us or from a Python file of the user's."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

import numpy as np
from ConfigSpace import ConfigurationSpace

from acband_configspace.benchmark.recording.sat import CLASP, MINISAT
from acband_configspace.core.ends import End
from acband_configspace.running.race import RacerReport
from acband_configspace.running.targets import PythonTarget, Target

Values = Mapping[str, Any]
#: What a Python file must define: see ``examples/highs_auctions.py``.
NEEDED = ("make_space", "solve", "version", "instances_to_record")


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


@dataclass(frozen=True)
class PythonFile:
    """The function ``solve(config, instance, seed)`` of a file, by the CPU time of its process.

    The file's ``make_space()`` returns the space, ``instances_to_record(count, seed)`` what
    ``solve`` is told, and ``version()`` which version of the solver is installed.
    """

    path: Path

    @property
    def name(self) -> str:
        """The file's name without its ending."""
        return self.path.stem

    @cached_property
    def _module(self) -> ModuleType:
        if not self.path.is_file():
            raise FileNotFoundError(f"there is no Python file {self.path}")
        sys.path.insert(0, str(self.path.parent.resolve()))  # where racers look for it, too
        module = importlib.import_module(self.name)
        if missing := [name for name in NEEDED if not hasattr(module, name)]:
            raise ValueError(f"{self.path} must define {', '.join(NEEDED)} but lacks {missing[0]}")
        return module

    def version(self) -> str:
        """Return what the file says."""
        return str(self._module.version())

    def space(self) -> ConfigurationSpace:
        """Return the file's space."""
        space: ConfigurationSpace = self._module.make_space()
        return space

    def instances(self, count: int, seed: int, folder: Path) -> Sequence[tuple[str, str]]:
        """Return the file's instances: what they are called is what the function is told."""
        return [(name, name) for name in self._module.instances_to_record(count, seed)]

    def target(self) -> Target:
        """Return the function."""
        return PythonTarget(self._module.solve)

    def seconds(self, report: RacerReport, cutoff: float) -> float:
        """Return the CPU time of the process."""
        if report.status in (End.CUTOFF, End.MEMORY):
            return float("inf")
        if report.status is not End.FINISHED:
            raise RuntimeError(f"{self.path} failed: {report.error}")
        return report.cpu_time if report.cpu_time < cutoff else float("inf")


def drawn_values(space: ConfigurationSpace, count: int, seed: int) -> list[Values]:
    """Return the values of ``count`` configurations: the default, then uniformly drawn ones."""
    space.seed(seed)
    drawn = space.sample_configuration(max(2, count))[: count - 1]
    rows = (space.get_default_configuration(), *drawn)
    return [{name: _plain(value) for name, value in row.items()} for row in rows]


def _plain(value: Any) -> Any:
    """Return a value that JSON knows, with four digits: what is recorded is what was run."""
    value = value.item() if isinstance(value, np.generic) else value
    return float(f"{value:.4g}") if isinstance(value, float) else value


def get_solver(name: str) -> Solver:
    """Return the solver of that name, or the one that a Python file describes."""
    if name.endswith(".py"):
        return PythonFile(Path(name))
    for known in (MINISAT, CLASP):
        if name == known.name:
            return known
    raise ValueError(f"target must be 'minisat', 'clasp' or a Python file but got {name!r}")
