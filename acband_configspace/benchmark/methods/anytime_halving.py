"""Successive Halving and Hyperband over instances, within a limit of CPU time or of trials."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from acband_configspace.benchmark.methods.anytime import AnytimeResult, Spending
from acband_configspace.benchmark.methods.halving import Rung, hyperband_sizes, rungs
from acband_configspace.benchmark.methods.method import drawn_order
from acband_configspace.benchmark.tables import RuntimeTable
from acband_configspace.core.checks import whole_number


@dataclass(frozen=True)
class AnytimeHalving:
    """Successive Halving that begins with one instance and keeps results from rung to rung.

    Rung i has ⌊n η^-i⌋ configurations on η^i instances in all, the same for all brackets. Where
    trials are limited, n is the largest for which one bracket stays within them; where CPU time is,
    of which no one knows how far it will go, brackets of η, η², η³, … new configurations follow one
    another.
    """

    eta: int = 3

    def __post_init__(self) -> None:
        whole_number("eta", self.eta, at_least=2)

    @property
    def name(self) -> str:
        """With its η."""
        return f"SH η={self.eta}"

    def run(
        self,
        table: RuntimeTable,
        *,
        cpu_limit: float | None = None,
        n_trials: int | None = None,
        seed: int = 0,
    ) -> AnytimeResult:
        """Run one bracket that fits, or brackets that grow."""
        spending = Spending(table, cpu_limit=cpu_limit, n_trials=n_trials)
        brackets = _Brackets(table, spending, seed)
        if n_trials is not None:
            brackets.play(self.bracket(self.largest(table, n_trials), table.n_instances))
        size = self.eta
        while n_trials is None and brackets.go_on():
            brackets.play(self.bracket(min(size, brackets.n_left), table.n_instances))
            size *= self.eta
        return brackets.result()

    def bracket(self, n_configs: int, n_instances: int) -> list[Rung]:
        """Return the rungs of a bracket of so many configurations; the last one leaves a winner."""
        steps = [Rung(n_configs, 1)]
        while (size := steps[-1].n_configs // self.eta) >= 2:
            steps.append(Rung(size, min(steps[-1].n_instances * self.eta, n_instances)))
        return steps

    def largest(self, table: RuntimeTable, n_trials: int) -> int:
        """Return how many configurations a bracket of at most so many trials can have."""

        def trials(n_configs: int) -> int:
            steps = self.bracket(n_configs, table.n_instances)
            before = [0, *(step.n_instances for step in steps)]
            return sum(
                step.n_configs * (step.n_instances - seen)
                for step, seen in zip(steps, before, strict=False)
            )

        low, high = 1, min(n_trials, table.n_configs)
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if trials(middle) <= n_trials else (low, middle - 1)
        return low


@dataclass(frozen=True)
class AnytimeHyperband:
    """Hyperband (Li et al., 2018) with the instance as the unit of its resource.

    R is the number of instances, s_max = ⌊log_η R⌋; the brackets s_max, …, 0 follow one another,
    again and again, with new configurations. η is 3 as in SMAC's facade.
    """

    eta: int = 3

    def __post_init__(self) -> None:
        whole_number("eta", self.eta, at_least=2)

    @property
    def name(self) -> str:
        """With its η."""
        return f"Hyperband η={self.eta}"

    def run(
        self,
        table: RuntimeTable,
        *,
        cpu_limit: float | None = None,
        n_trials: int | None = None,
        seed: int = 0,
    ) -> AnytimeResult:
        """Run one bracket after the other."""
        spending = Spending(table, cpu_limit=cpu_limit, n_trials=n_trials)
        brackets = _Brackets(table, spending, seed)
        for halvings, size in self._sizes(table.n_instances):
            if not brackets.go_on():
                break
            n_configs = min(size, brackets.n_left)
            brackets.play(rungs(n_configs, table.n_instances, self.eta, halvings))
        return brackets.result()

    def _sizes(self, n_instances: int) -> Iterator[tuple[int, int]]:
        s_max = 0
        while self.eta ** (s_max + 1) <= n_instances:
            s_max += 1
        while True:
            yield from zip(range(s_max, -1, -1), hyperband_sizes(s_max, self.eta), strict=True)


class _Brackets:
    """Plays brackets, each on new configurations, and keeps the best of all of them."""

    def __init__(self, table: RuntimeTable, spending: Spending, seed: int) -> None:
        self._rows, self._columns = drawn_order(table, seed)
        self._spending = spending
        self._n_drawn = 0
        self._leader: int | None = None
        self._n_seen = np.zeros(table.n_configs, dtype=np.int64)

    @property
    def n_left(self) -> int:
        """Configurations that no bracket has had."""
        return len(self._rows) - self._n_drawn

    def go_on(self) -> bool:
        """Return whether there is something left to spend, and to spend it on."""
        return not self._spending.is_over and self.n_left > 0

    def play(self, steps: list[Rung]) -> None:
        """Play one bracket, until its winner is found or the limit is reached."""
        alive = self._rows[self._n_drawn : self._n_drawn + steps[0].n_configs]
        sums, seen = np.zeros(len(alive)), 0
        self._n_drawn += len(alive)
        for step in steps:
            kept = np.argsort(sums, kind="stable")[: step.n_configs]
            alive, sums = alive[kept], sums[kept]
            block = self._columns[seen : step.n_instances]
            times = self._spending.times(alive[:, None], block[None, :])
            n_done = self._spending.pay(times.ravel()) // max(1, len(block))
            sums = sums + times.sum(axis=1)
            self._n_seen[alive[:n_done]] = seen = max(seen, step.n_instances)
            if n_done:
                self._challenge(int(alive[sums[:n_done].argmin()]))
            if self._spending.is_over:
                return

    def _challenge(self, row: int) -> None:
        """Let the best of a rung lead if it is better on as many instances as the leader has."""
        if self._leader is not None:
            n_shared = self._n_seen[self._leader]
            shared = self._columns[:n_shared]
            own, best = (self._spending.times(r, shared).sum() for r in (row, self._leader))
            if self._n_seen[row] < n_shared or own >= best:
                return
        self._leader = row
        self._spending.lead(row)

    def result(self) -> AnytimeResult:
        """Close the books."""
        return self._spending.result(int((self._n_seen > 0).sum()), int(self._rows[0]))
