"""A Python function as a solver, with its space and instances, from a file of the user's."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import ModuleType

from ConfigSpace import ConfigurationSpace

from acband_configspace.core.ends import End
from acband_configspace.running.race import RacerReport
from acband_configspace.running.targets import PythonTarget, Target

#: What the file must define: see ``examples/highs_auctions.py``.
NEEDED = ("make_space", "solve", "version", "instances_to_record")


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
