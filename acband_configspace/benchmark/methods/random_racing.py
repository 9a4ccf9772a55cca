"""Controls for AC-Band's eliminations: races of random groups, wins decide, nobody is dropped."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from acband_configspace.benchmark.methods.method import (
    AnytimeMethod,
    MethodResult,
    Spending,
    candidates,
    check_probabilities,
)
from acband_configspace.benchmark.simulation import Numbers, SimulatedRun, drawn_order
from acband_configspace.benchmark.tables import RuntimeTable
from acband_configspace.core.checks import whole_number
from acband_configspace.core.statistics import wins

#: With fewer, wins would be a matter of luck even among k configurations.
FEWEST_RACES = 5


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
        check_probabilities(self, "alpha", "delta")

    @property
    def name(self) -> str:
        """With its k."""
        return f"racing k={self.k}"

    def run(self, table: RuntimeTable, seed: int) -> MethodResult:
        """Run a race on each instance of the table, or several."""
        rows, columns = drawn_order(table, seed)
        columns = np.tile(columns, self.times)
        n = min(candidates(self.alpha, self.delta) + 1, table.n_configs)
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


@dataclass(frozen=True)
class RandomRacing(AnytimeMethod):
    """Races within a limit, of which every configuration has the same number.

    Passes of k, 2k, 4k, … configurations, the champion and new ones, follow one another. In a pass
    of g groups each has g races, though at least :data:`FEWEST_RACES`; the groups are drawn anew
    each time, and race on an instance each. Who wins most is the champion. A race on run times ends
    with its winner; it costs k times what that took.
    """

    k: int = 4

    def __post_init__(self) -> None:
        whole_number("k", self.k, at_least=2)

    @property
    def name(self) -> str:
        """With its k."""
        return f"random racing k={self.k}"

    def _search(self, table: RuntimeTable, spending: Spending, seed: int) -> SimulatedRun:
        """Run passes that double."""
        rows, columns = drawn_order(table, seed)
        rng = np.random.default_rng([seed, 5])
        champion, n_drawn, n_raced, n_groups = int(rows[0]), 1, 0, 1
        has_raced = np.zeros(table.n_configs, dtype=bool)
        while not spending.is_over:
            pool = np.concatenate([[champion], rows[n_drawn : n_drawn + n_groups * self.k - 1]])
            if len(pool) < self.k:
                break
            n_drawn += len(pool) - 1
            n_won = np.zeros(len(pool))
            for _ in range(max(FEWEST_RACES, n_groups)):
                groups = _groups(len(pool), self.k, rng)
                places = np.arange(n_raced, n_raced + len(groups)) % len(columns)
                won = _race(table, pool[groups], columns[places], spending)
                np.add.at(n_won, groups[: len(won)], won)
                has_raced[pool[groups[: len(won)]]] = True
                n_raced += len(won)
            champion = int(pool[n_won.argmax()])
            spending.lead(champion)
            n_groups *= 2
        return spending.result(int(has_raced.sum()), champion)


def _groups(n: int, k: int, rng: np.random.Generator) -> Numbers:
    """Return a random partition into groups of k; those left over sit this one out."""
    return rng.permutation(n)[: n // k * k].reshape(n // k, k)


def _race(
    table: RuntimeTable, groups: Numbers, columns: Numbers, spending: Spending
) -> npt.NDArray[np.bool_]:
    """Run a race for each group, a row of rows of the table; return who won those that ended."""
    times = spending.times(groups, columns[:, None])
    unsolved = times >= table.cutoff
    costs = times
    if spending.most_trials is None:  # the first to finish stops the others
        costs = np.repeat(times.min(axis=1, keepdims=True), times.shape[1], axis=1)
    n_done = spending.pay(costs.ravel()) // times.shape[1]
    won: npt.NDArray[np.bool_] = wins(times[:n_done, None, :], unsolved[:n_done, None, :])[:, 0, :]
    return won
