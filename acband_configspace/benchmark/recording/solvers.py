"""What a recorder must know of a solver: MiniSat, clasp, or a Python file of the user's."""

from __future__ import annotations

import importlib
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from ConfigSpace import Categorical, ConfigurationSpace, EqualsCondition, Float, Integer

from acband_configspace.benchmark.recording.cnf import formula
from acband_configspace.core.ends import End
from acband_configspace.running.race import RacerReport
from acband_configspace.running.targets import CommandTarget, PythonTarget, Target

Values = Mapping[str, Any]
#: What a Python file must define: see ``examples/highs_auctions.py``.
NEEDED = ("make_space", "solve", "version", "instances_to_record")
_ANSWER = re.compile(r"^(s )?(UN)?SATISFIABLE", re.MULTILINE)
_SWITCH = ["off", "on"]


@dataclass(frozen=True)
class Solver:
    """A real target whose runtimes can be recorded."""

    name: str
    """How provenance calls it."""
    version: Callable[[], str]
    """Says which version runs here; raises FileNotFoundError if there is none."""
    space: Callable[[], ConfigurationSpace]
    """Returns its options; the defaults are its own."""
    instances: Callable[[int, int, Path], Sequence[tuple[str, str]]]
    """Given a number, a seed and a folder, returns the name of each instance and what the target is
    told of it: a file, or a recipe."""
    target: Callable[[], Target]
    """Returns what a race track runs."""
    seconds: Callable[[RacerReport, float], float]
    """Given a report and the cutoff, returns the CPU time of a run, infinite if it did not solve
    the instance in time; raises RuntimeError if it failed for another reason than time or memory.
    """


def get_solver(name: str) -> Solver:
    """Return the solver of that name, or the one that a Python file describes."""
    if name.endswith(".py"):
        return python_file(Path(name))
    for known in (MINISAT, CLASP):
        if name == known.name:
            return known
    raise ValueError(f"target must be 'minisat', 'clasp' or a Python file but got {name!r}")


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


def _cpu_seconds(
    check: Callable[[RacerReport], str | None], report: RacerReport, cutoff: float
) -> float:
    """Return the CPU time of the process, unless a check of it says why it has failed.

    Solvers' own clocks may count user time only: MiniSat's reads 0 in about 2 % of runs of a few
    milliseconds, where the kernel has booked all of it as system time.
    """
    if report.status in (End.CUTOFF, End.MEMORY):
        return float("inf")
    if failure := check(report):
        raise RuntimeError(failure)
    return report.cpu_time if report.cpu_time < cutoff else float("inf")


# --- a Python file ----------------------------------------------------------------------------


def python_file(path: Path) -> Solver:
    """Return what a file describes: its ``solve(config, instance, seed)`` is the target.

    The file's ``make_space()`` returns the space, ``instances_to_record(count, seed)`` what
    ``solve`` is told, and ``version()`` which version of the solver is installed.
    """
    if not path.is_file():
        raise FileNotFoundError(f"there is no Python file {path}")
    sys.path.insert(0, str(path.parent.resolve()))  # where racers look for it, too
    module = importlib.import_module(path.stem)
    if missing := [name for name in NEEDED if not hasattr(module, name)]:
        raise ValueError(f"{path} must define {', '.join(NEEDED)} but lacks {missing[0]}")

    def failure(report: RacerReport) -> str | None:
        return None if report.status is End.FINISHED else f"{path} failed: {report.error}"

    return Solver(
        path.stem,
        lambda: str(module.version()),
        module.make_space,
        lambda count, seed, folder: [(n, n) for n in module.instances_to_record(count, seed)],
        lambda: PythonTarget(module.solve),
        partial(_cpu_seconds, failure),
    )


# --- MiniSat and clasp, as Debian packages them, on formulas of eight families ----------------


def sat_solver(
    name: str, space: Callable[[], ConfigurationSpace], to_arguments: Callable[..., list[str]]
) -> Solver:
    """Return a solver by the name of its program and of its package, on generated formulas.

    ``to_arguments`` is that of :class:`~acband_configspace.running.targets.CommandTarget`.
    """

    def failure(report: RacerReport) -> str | None:  # the exit code says SAT or UNSAT
        answered = _ANSWER.search(report.output) is not None
        return None if answered else f"{name} gave no answer: {report.error}\n{report.output}"

    return Solver(
        name,
        partial(_debian_version, name),
        space,
        _write_formulas,
        lambda: CommandTarget(name, to_arguments=to_arguments),
        partial(_cpu_seconds, failure),
    )


def _debian_version(package: str) -> str:
    """Return Debian's version of the package, or where the program is not from there, "?"."""
    if shutil.which(package) is None:
        raise FileNotFoundError(f"{package} is not installed: apt install {package}")
    asked = subprocess.run(
        ["dpkg-query", "--showformat=${Version}", "--show", package],
        capture_output=True,
        text=True,
        check=False,
    )
    return asked.stdout.strip() or "?"


def _write_formulas(count: int, seed: int, folder: Path) -> Sequence[tuple[str, str]]:
    folder.mkdir(parents=True, exist_ok=True)
    named = []
    for index in range(count):
        path = folder / f"{index}.cnf"
        drawn = formula(seed, index)
        path.write_text(drawn.as_dimacs())
        named.append((f"{index} {drawn.family}", str(path)))
    return named


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


def minisat_arguments(configuration: Values, instance: str, seed: int, cutoff: float) -> list[str]:
    """Return the command line for a configuration: ``-name=value``, ``-name`` or ``-no-name``."""
    arguments = []
    for name, value in configuration.items():
        if value in ("on", "off"):
            arguments.append(f"-{name}" if value == "on" else f"-no-{name}")
        else:
            arguments.append(f"-{name}={value}")
    return [*arguments, f"-rnd-seed={seed + 1}", instance]  # the seed must be positive


MINISAT = sat_solver("minisat", minisat_space, minisat_arguments)


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


def clasp_arguments(configuration: Values, instance: str, seed: int, cutoff: float) -> list[str]:
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
    return ["--quiet=2", "--configuration=trendy", *arguments, f"--seed={seed}", instance]


CLASP = sat_solver("clasp", clasp_space, clasp_arguments)
