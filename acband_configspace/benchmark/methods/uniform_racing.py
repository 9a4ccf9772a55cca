"""Uniform random racing: AC-Band's races without its eliminations."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from acband_configspace.benchmark.methods.method import (
    MethodResult,
    candidates,
    drawn_order,
    enough_rows,
)
from acband_configspace.benchmark.tables import RuntimeTable
from acband_configspace.core.checks import probability, whole_number
from acband_configspace.core.statistics import wins


@dataclass(frozen=True)
class UniformRacing:
    """Every race has k configurations drawn at random; the largest share of wins is returned.

    As many configurations (N and θ_0) and as many races as AC-Band has, paid for in the same way,
    but without its eliminations and its epochs: here every race of a configuration counts.
    """

    k: int = 2
    alpha: float = 0.05
    delta: float = 0.05
    times: int = 1

    def __post_init__(self) -> None:
        whole_number("k", self.k, at_least=2)
        whole_number("times", self.times, at_least=1)
        probability("alpha", self.alpha)
        probability("delta", self.delta)

    @property
    def name(self) -> str:
        """With its k."""
        return f"racing k={self.k}"

    def run(self, table: RuntimeTable, seed: int) -> MethodResult:
        """Run a race on each instance of the table, or several."""
        rows, columns = drawn_order(table, seed)
        columns = np.tile(columns, self.times)
        n = enough_rows(table, candidates(self.alpha, self.delta) + 1)
        k = min(self.k, n)
        draws = np.random.default_rng([seed, 3]).random((len(columns), n))
        racers = np.argpartition(draws, k - 1, axis=1)[:, :k]
        times = table.runtimes[rows[racers], columns[:, None]]
        unsolved = times >= table.cutoff
        times = np.minimum(times, table.cutoff)
        won = wins(times[:, None, :], unsolved[:, None, :])[:, 0, :]
        n_raced = np.bincount(racers.ravel(), minlength=n)
        n_won = np.bincount(racers.ravel(), weights=won.ravel(), minlength=n)
        shares = n_won / np.maximum(n_raced, 1)
        wall_time = float(times.min(axis=1).sum(dtype=float))
        return MethodResult(
            incumbent=int(rows[shares.argmax()]),
            cpu_time=k * wall_time,
            wall_time=wall_time,
            n_configs=n - 1,
            n_instances=table.n_instances,
            configurations=tuple(rows[:n].tolist()),
        )
