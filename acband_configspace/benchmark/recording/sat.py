"""MiniSat and clasp, as Debian packages them, on formulas of eight families."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ConfigSpace import Categorical, ConfigurationSpace, EqualsCondition, Float, Integer

from acband_configspace.benchmark.recording.cnf import formula
from acband_configspace.core.ends import End
from acband_configspace.running.race import RacerReport
from acband_configspace.running.targets import CommandTarget, Target

_ANSWER = re.compile(r"^(s )?(UN)?SATISFIABLE", re.MULTILINE)
_SWITCH = ["off", "on"]


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
        """Return the CPU time. The exit code says SAT or UNSAT: it is not a failure."""
        if report.status in (End.CUTOFF, End.MEMORY):
            return float("inf")
        if _ANSWER.search(report.output) is None:
            raise RuntimeError(f"{self.name} gave no answer: {report.error}\n{report.output}")
        return report.cpu_time if report.cpu_time < cutoff else float("inf")


def minisat_space() -> ConfigurationSpace:
    """Return MiniSat's options as a configuration space; the defaults are MiniSat's own."""
    space = ConfigurationSpace(name="MiniSat")
    space.add(
        Float("var-decay", (0.5, 0.999), default=0.95),
        Float("cla-decay", (0.9, 0.9999), default=0.999),
        Float("rnd-freq", (0.0, 0.3), default=0.0),
        Float("rinc", (1.1, 8.0), default=2.0, log=True),
        Integer("rfirst", (5, 2000), default=100, log=True),
        Float("gc-frac", (0.05, 0.8), default=0.2),
        Integer("ccmin-mode", (0, 2), default=2),
        Integer("phase-saving", (0, 2), default=2),
        Categorical("luby", _SWITCH, default="on"),
        Categorical("rnd-init", _SWITCH, default="off"),
        Categorical("elim", _SWITCH, default="on"),
        Categorical("asymm", _SWITCH, default="off"),
        Categorical("rcheck", _SWITCH, default="off"),
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


MINISAT = SatSolver("minisat", minisat_space, minisat_arguments)


def clasp_space() -> ConfigurationSpace:
    """Return clasp's options for formulas; the defaults are those of its preset "trendy"."""
    heuristic = Categorical("heuristic", ["Vsids", "Berkmin", "Vmtf"], default="Vsids")
    decay = Integer("vsids-decay", (70, 99), default=95)
    acids = Categorical("vsids-acids", _SWITCH, default="off")
    huang = Categorical("berk-huang", _SWITCH, default="off")
    front = Integer("vmtf-front", (2, 64), default=8, log=True)
    restarts = Categorical("restarts", ["D", "L", "x", "+"], default="D")
    limit = Float("restart-limit", (0.5, 0.95), default=0.7)
    growth = Float("restart-growth", (1.05, 2.5), default=1.5)
    step = Integer("restart-step", (10, 1000), default=100, log=True)
    deletion = Categorical("deletion", ["basic", "sort", "ipSort", "ipHeap"], default="basic")
    space = ConfigurationSpace(name="clasp")
    space.add(
        heuristic, decay, acids, huang, front, restarts, limit, growth, step, deletion,
        Integer("restart-length", (10, 1000), default=100, log=True),
        Integer("deletion-share", (20, 100), default=50),
        Categorical("deletion-score", ["activity", "lbd", "mixed"], default="activity"),
        Float("del-init", (1.0, 30.0), default=3.0, log=True),
        Integer("del-glue", (0, 8), default=2),
        Categorical("strengthen", ["no", "local", "recursive"], default="recursive"),
        Integer("otfs", (0, 2), default=2),
        Integer("reverse-arcs", (0, 3), default=2),
        Categorical("update-lbd", ["no", "less", "glucose", "pseudo"], default="less"),
        Integer("save-progress", (0, 200), default=75),
        Categorical("sign-def", ["asp", "pos", "neg", "rnd"], default="asp"),
        Categorical("init-watches", ["rnd", "first", "least"], default="rnd"),
        Float("rand-freq", (0.0, 0.1), default=0.0),
        Categorical("sat-prepro", ["no", "1", "2", "3"], default="2"),
        Integer("contraction", (0, 600), default=250),
        Categorical("local-restarts", _SWITCH, default="off"),
    )  # fmt: skip
    space.add(
        EqualsCondition(decay, heuristic, "Vsids"),
        EqualsCondition(acids, heuristic, "Vsids"),
        EqualsCondition(huang, heuristic, "Berkmin"),
        EqualsCondition(front, heuristic, "Vmtf"),
        EqualsCondition(limit, restarts, "D"),
        EqualsCondition(growth, restarts, "x"),
        EqualsCondition(step, restarts, "+"),
    )
    return space


def clasp_arguments(
    configuration: Mapping[str, Any],
    instance: str | None = None,
    seed: int | None = None,
    cutoff: float | None = None,
) -> list[str]:
    """Return the command line: some of clasp's options hold several of ours, in its order."""
    values = dict(configuration)

    def joined(*names: str) -> str:
        return ",".join(str(values.pop(name)) for name in names if name in values)

    options = {
        "heuristic": joined("heuristic", "vsids-decay", "vmtf-front"),
        "restarts": joined(
            "restarts", "restart-length", "restart-limit", "restart-growth", "restart-step"
        ),
        "deletion": joined("deletion", "deletion-share", "deletion-score"),
    }
    flags = {"on": "--{}", "off": "--no-{}"}
    arguments = [
        flags.get(value, "--{}={}").format(name, value)
        for name, value in {**options, **values}.items()
    ]
    if seed is not None:
        arguments.append(f"--seed={seed}")
    fixed = ["--quiet=2", "--configuration=trendy"]
    return [*fixed, *arguments, *([] if instance is None else [instance])]


CLASP = SatSolver("clasp", clasp_space, clasp_arguments)
