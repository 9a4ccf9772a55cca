"""MiniSat, as Debian packages it: its options as a space, and generated formulas."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ConfigSpace import Categorical, ConfigurationSpace, Float, Integer

from acband_configspace.benchmark.recording.cnf import formula
from acband_configspace.benchmark.recording.solvers import Configuration
from acband_configspace.core.ends import End
from acband_configspace.running.race import RacerReport
from acband_configspace.running.targets import CommandTarget, Target

_ANSWER = re.compile(r"^(UN)?SATISFIABLE", re.MULTILINE)


def minisat_space(seed: int = 0) -> ConfigurationSpace:
    """Return MiniSat's options as a configuration space; the defaults are MiniSat's own."""
    switch = ["off", "on"]
    space = ConfigurationSpace(seed=seed)
    space.add(
        Float("var-decay", (0.5, 0.999), default=0.95),
        Float("cla-decay", (0.9, 0.9999), default=0.999),
        Float("rnd-freq", (0.0, 0.3), default=0.0),
        Float("rinc", (1.1, 8.0), default=2.0, log=True),
        Integer("rfirst", (5, 2000), default=100, log=True),
        Float("gc-frac", (0.05, 0.8), default=0.2),
        Integer("ccmin-mode", (0, 2), default=2),
        Integer("phase-saving", (0, 2), default=2),
        Categorical("luby", switch, default="on"),
        Categorical("rnd-init", switch, default="off"),
        Categorical("elim", switch, default="on"),
        Categorical("asymm", switch, default="off"),
        Categorical("rcheck", switch, default="off"),
        Integer("grow", (0, 40), default=0),
        Integer("cl-lim", (5, 100), default=20, log=True),
        Integer("sub-lim", (10, 5000), default=1000, log=True),
        Float("simp-gc-frac", (0.05, 0.9), default=0.5),
    )
    return space


def minisat_arguments(
    configuration: Mapping[str, Any],
    instance: str | None = None,
    seed: int | None = None,
    cutoff: float | None = None,
) -> list[str]:
    """Return the command line for a configuration: ``-name=value``, ``-name`` or ``-no-name``."""
    arguments = []
    for name, value in configuration.items():
        if value in ("on", "off"):
            arguments.append(f"-{name}" if value == "on" else f"-no-{name}")
        else:
            arguments.append(f"-{name}={value}")
    if seed is not None:
        arguments.append(f"-rnd-seed={seed + 1}")  # it must be positive
    return arguments if instance is None else [*arguments, instance]


class MiniSat:
    """MiniSat on formulas of eight families, measured by the CPU time of its process.

    MiniSat's own clock counts user time only, and reads 0 in about 2 % of runs of a few
    milliseconds, where the kernel has booked all of it as system time.
    """

    name = "minisat"

    def version(self) -> str:
        """Return Debian's version of the package, or where the program is not from there, "?"."""
        if shutil.which("minisat") is None:
            raise FileNotFoundError("minisat is not installed: apt install minisat")
        asked = subprocess.run(
            ["dpkg-query", "--showformat=${Version}", "--show", "minisat"],
            capture_output=True,
            text=True,
            check=False,
        )
        return asked.stdout.strip() or "?"

    def configurations(self, count: int, seed: int) -> Sequence[Configuration]:
        """Return the default and configurations drawn uniformly from the space."""
        space = minisat_space(seed)
        drawn = space.sample_configuration(max(2, count))[: count - 1]
        return [_rounded(space.get_default_configuration()), *map(_rounded, drawn)]

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
        return CommandTarget("minisat", to_arguments=minisat_arguments)

    def seconds(self, report: RacerReport, cutoff: float) -> float:
        """Return the CPU time. The exit code says SAT or UNSAT, so it is no failure."""
        if report.status in (End.CUTOFF, End.MEMORY):
            return float("inf")
        if _ANSWER.search(report.output) is None:
            raise RuntimeError(f"minisat gave no answer: {report.error}\n{report.output}")
        return report.cpu_time if report.cpu_time < cutoff else float("inf")


def _rounded(configuration: Mapping[str, Any]) -> Configuration:
    """Keep four digits: what is recorded is exactly what was run."""
    return {
        name: float(f"{value:.4g}") if isinstance(value, float) else value
        for name, value in configuration.items()
    }
