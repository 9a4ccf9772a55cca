"""Solvers of formulas, as Debian packages them, on formulas of eight families."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ConfigSpace import ConfigurationSpace

from acband_configspace.benchmark.recording.cnf import formula
from acband_configspace.core.ends import End
from acband_configspace.running.race import RacerReport
from acband_configspace.running.targets import CommandTarget, Target

_ANSWER = re.compile(r"^(s )?(UN)?SATISFIABLE", re.MULTILINE)


@dataclass(frozen=True)
class SatSolver:
    """A solver on generated formulas, measured by the CPU time of its process.

    Solvers' own clocks may count user time only: MiniSat's reads 0 in about 2 % of runs of a few
    milliseconds, where the kernel has booked all of it as system time.
    """

    name: str
    """Of the program, and of Debian's package."""
    make_space: Callable[[], ConfigurationSpace]
    to_arguments: Callable[..., list[str]]
    """As :class:`~acband_configspace.running.targets.CommandTarget` takes it."""

    def version(self) -> str:
        """Return Debian's version of the package, or where the program is not from there, "?"."""
        if shutil.which(self.name) is None:
            raise FileNotFoundError(f"{self.name} is not installed: apt install {self.name}")
        asked = subprocess.run(
            ["dpkg-query", "--showformat=${Version}", "--show", self.name],
            capture_output=True,
            text=True,
            check=False,
        )
        return asked.stdout.strip() or "?"

    def space(self) -> ConfigurationSpace:
        """Return the options."""
        return self.make_space()

    def instances(self, count: int, seed: int, folder: Path) -> Sequence[tuple[str, str]]:
        """Write the formulas into the folder."""
        folder.mkdir(parents=True, exist_ok=True)
        named = []
        for index in range(count):
            path = folder / f"{index}.cnf"
            drawn = formula(seed, index)
            path.write_text(drawn.as_dimacs())
            named.append((f"{index} {drawn.family}", str(path)))
        return named

    def target(self) -> Target:
        """Return the command."""
        return CommandTarget(self.name, to_arguments=self.to_arguments)

    def seconds(self, report: RacerReport, cutoff: float) -> float:
        """Return the CPU time. The exit code says SAT or UNSAT, so it is no failure."""
        if report.status in (End.CUTOFF, End.MEMORY):
            return float("inf")
        if _ANSWER.search(report.output) is None:
            raise RuntimeError(f"{self.name} gave no answer: {report.error}\n{report.output}")
        return report.cpu_time if report.cpu_time < cutoff else float("inf")
