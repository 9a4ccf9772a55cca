"""HiGHS, through its Python package: its options as a space, generated integer programs."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from ConfigSpace import Categorical, ConfigurationSpace, Float, Integer

from acband_configspace.benchmark.recording.solvers import Configuration
from acband_configspace.core.ends import End
from acband_configspace.running.race import RacerReport
from acband_configspace.running.targets import PythonTarget, Target


def highs_space(seed: int = 0) -> ConfigurationSpace:
    """Return some options of HiGHS' branch-and-cut as a space; the defaults are its own."""
    space = ConfigurationSpace(seed=seed)
    space.add(
        Categorical("presolve", ["choose", "off"], default="choose"),
        Integer("simplex_strategy", (1, 4), default=1),
        Integer("simplex_scale_strategy", (0, 4), default=1),
        Float("mip_heuristic_effort", (0.0, 0.5), default=0.05),
        Categorical("mip_detect_symmetry", [True, False], default=True),
        Integer("mip_lp_age_limit", (1, 100), default=10, log=True),
        Integer("mip_pool_age_limit", (1, 300), default=30, log=True),
        Integer("mip_pscost_minreliable", (0, 32), default=8),
        Integer("mip_min_cliquetable_entries_for_parallelism", (1000, 200000), default=100000),
    )
    return space


def solve(configuration: Mapping[str, Any], instance: str, cutoff: float) -> float | None:
    """Solve an instance; return the CPU seconds, or None if the time was up before."""
    import highspy

    model: Any = highspy.Highs()
    model.setOptionValue("output_flag", False)
    model.setOptionValue("threads", 1)
    # By the clock on the wall; the race track counts CPU time, and stops it at the cutoff.
    model.setOptionValue("time_limit", 100 * cutoff)
    for name, value in configuration.items():
        model.setOptionValue(name, value)
    _build(model, instance, highspy.HighsVarType.kInteger)
    start = time.process_time()
    model.run()
    seconds = time.process_time() - start
    solved = model.getModelStatus() == highspy.HighsModelStatus.kOptimal
    return seconds if solved else None


def _build(model: Any, instance: str, integer: Any) -> None:
    """Add a random covering or packing problem, by its recipe ``family-number-seed``."""
    family, number, seed = instance.split("-")
    rng = np.random.default_rng([int(seed), int(number)])
    n_columns, n_rows = int(rng.integers(15, 41)), int(rng.integers(5, 16))
    shape = (n_rows, n_columns)
    matrix = np.where(rng.random(shape) < 0.3, rng.integers(1, 30, shape), 0)
    weights = rng.integers(5, 40, n_columns)
    sign = 1.0 if family == "cover" else -1.0
    for weight in weights:
        model.addVar(0.0, 1.0)
        model.changeColCost(model.getNumCol() - 1, sign * float(weight))
        model.changeColIntegrality(model.getNumCol() - 1, integer)
    for row in matrix:
        used = np.flatnonzero(row)
        side = float(np.floor(row.sum() * 0.4))
        low, high = (side, np.inf) if family == "cover" else (-np.inf, side)
        model.addRow(low, high, len(used), used.astype(np.int32), row[used].astype(float))


class Highs:
    """HiGHS on small covering and packing problems; the CPU time of its run is measured.

    HiGHS itself reports elapsed time only, so the process' CPU clock is read around its run.
    """

    name = "highs"

    def version(self) -> str:
        """Return the version of the package highspy."""
        try:
            import highspy
        except ImportError:
            raise FileNotFoundError("highspy is not installed: pip install highspy") from None
        return str(highspy.Highs().version())

    def configurations(self, count: int, seed: int) -> Sequence[Configuration]:
        """Return the default and configurations drawn uniformly from the space."""
        space = highs_space(seed)
        drawn = space.sample_configuration(max(2, count))[: count - 1]
        return [_plain(space.get_default_configuration()), *map(_plain, drawn)]

    def instances(self, count: int, seed: int, folder: Path) -> Sequence[tuple[str, str]]:
        """Return recipes: the instances are made in the run, and need no files."""
        recipes = [f"{('cover', 'pack')[i % 2]}-{i}-{seed}" for i in range(count)]
        return [(recipe, recipe) for recipe in recipes]

    def target(self) -> Target:
        """Return the function."""
        return PythonTarget(solve)

    def seconds(self, report: RacerReport, cutoff: float) -> float:
        """Return what the function measured."""
        if report.status in (End.CUTOFF, End.MEMORY):
            return float("inf")
        if report.status is not End.FINISHED:
            raise RuntimeError(f"HiGHS failed: {report.error}")
        measured = report.returned
        return float("inf") if measured is None or measured >= cutoff else float(measured)


def _plain(configuration: Mapping[str, Any]) -> Configuration:
    """Return values that HiGHS and JSON know: no numpy numbers."""
    return {
        name: value.item() if isinstance(value, np.generic) else value
        for name, value in configuration.items()
    }
