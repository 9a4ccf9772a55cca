"""SMAC's own facades for configuration, driven through a table."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from ConfigSpace import Configuration, ConfigurationSpace, Integer

from acband_configspace.benchmark.methods.method import MethodResult, drawn_order
from acband_configspace.benchmark.tables import RuntimeTable
from acband_configspace.core.checks import whole_number


@dataclass(frozen=True)
class SmacOnTable:
    """SMAC 2's AlgorithmConfigurationFacade or HyperbandFacade; its settings are SMAC's defaults.

    A table has no more than the number of a configuration to offer, so SMAC's model has nothing
    to learn from: this compares the ways of spending runs, not the models. The cost of a trial is
    the runtime, runs are not capped (SMAC 2 has no capping), and each is paid for once.
    """

    facade: Literal["ac", "hyperband"] = "ac"
    n_trials: int = 300

    def __post_init__(self) -> None:
        whole_number("n_trials", self.n_trials, at_least=1)
        if self.facade not in ("ac", "hyperband"):
            raise ValueError(f"facade must be 'ac' or 'hyperband' but got {self.facade!r}")

    @property
    def name(self) -> str:
        """With the facade."""
        return "SMAC AC" if self.facade == "ac" else "SMAC Hyperband"

    def run(self, table: RuntimeTable, seed: int) -> MethodResult:
        """Optimise with SMAC, in a folder that is removed afterwards."""
        runs = _Runs(table, seed)
        with tempfile.TemporaryDirectory() as folder:
            incumbent = self._optimise(runs, table, seed, folder)
        return MethodResult(
            incumbent=runs.row(incumbent),
            cpu_time=runs.cpu_time,
            wall_time=runs.cpu_time,
            n_configs=len(runs.seen),
            n_instances=runs.n_instances,
            configurations=tuple(sorted(runs.seen)),
        )

    def _optimise(self, runs: _Runs, table: RuntimeTable, seed: int, folder: str) -> Configuration:
        from smac import AlgorithmConfigurationFacade, HyperbandFacade, Scenario

        space = ConfigurationSpace(seed=seed)
        space.add(Integer("row", (0, table.n_configs - 1)))
        common: dict[str, Any] = {
            "output_directory": folder, "seed": seed, "n_trials": self.n_trials,
            "deterministic": True,
        }  # fmt: skip
        made: Any
        if self.facade == "ac":
            names = [str(i) for i in range(table.n_instances)]
            # No features: a table knows none, and marginalising over them takes SMAC minutes.
            scenario = Scenario(space, instances=names, **common)
            made = AlgorithmConfigurationFacade(
                scenario, runs.on_instance, overwrite=True, logging_level=False
            )
        else:
            scenario = Scenario(space, min_budget=1, max_budget=table.n_instances, **common)
            made = HyperbandFacade(scenario, runs.on_budget, overwrite=True, logging_level=False)
        incumbent = made.optimize()
        if isinstance(incumbent, list):
            incumbent = incumbent[0]
        assert isinstance(incumbent, Configuration)
        return incumbent


class _Runs:
    """Looks runs up, and pays for each pair of a configuration and an instance once."""

    def __init__(self, table: RuntimeTable, seed: int) -> None:
        self._table = table
        self._rows, self._columns = drawn_order(table, seed)
        self._paid: set[tuple[int, int]] = set()
        self.cpu_time = 0.0
        self.seen: set[int] = set()

    @property
    def n_instances(self) -> int:
        return len({column for _, column in self._paid})

    def row(self, configuration: Configuration) -> int:
        return int(self._rows[int(configuration["row"])])

    def on_instance(self, config: Configuration, instance: str, seed: int = 0) -> float:
        return self._run(self.row(config), int(self._columns[int(instance)]))

    def on_budget(self, config: Configuration, seed: int = 0, budget: float = 1.0) -> float:
        columns = self._columns[: max(1, int(budget))]
        return float(np.mean([self._run(self.row(config), int(column)) for column in columns]))

    def _run(self, row: int, column: int) -> float:
        seconds = min(float(self._table.runtimes[row, column]), self._table.cutoff)
        self.seen.add(row)
        if (row, column) not in self._paid:
            self._paid.add((row, column))
            self.cpu_time += seconds
        return seconds
