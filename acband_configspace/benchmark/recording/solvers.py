"""What a recorder must know of a solver: its configurations, its instances, its clock."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from acband_configspace.running.race import RacerReport
from acband_configspace.running.targets import Target

Configuration = Mapping[str, Any]


class Solver(Protocol):
    """A real target whose runtimes can be recorded."""

    name: str

    def version(self) -> str:
        """Return which version runs here.

        Raises
        ------
        FileNotFoundError
            If the solver is not installed.
        """

    def configurations(self, count: int, seed: int) -> Sequence[Configuration]:
        """Return that many configurations: the default, then randomly drawn ones."""

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


def get_solver(name: str) -> Solver:
    """Return the solver of that name."""
    if name == "minisat":
        from acband_configspace.benchmark.recording.minisat import MiniSat

        return MiniSat()
    if name == "highs":
        from acband_configspace.benchmark.recording.highs import Highs

        return Highs()
    raise ValueError(f"target must be 'minisat' or 'highs' but got {name!r}")
