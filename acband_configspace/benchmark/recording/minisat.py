"""MiniSat's options as a space."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ConfigSpace import Categorical, ConfigurationSpace, Float, Integer

from acband_configspace.benchmark.recording.sat import SatSolver


def minisat_space() -> ConfigurationSpace:
    """Return MiniSat's options as a configuration space; the defaults are MiniSat's own."""
    switch = ["off", "on"]
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


MINISAT = SatSolver("minisat", minisat_space, minisat_arguments)
