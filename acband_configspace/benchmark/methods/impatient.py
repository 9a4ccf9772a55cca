"""ImpatientCapsAndRuns (Weisz et al., 2020): CAR++ that discards most configurations early."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from acband_configspace.benchmark.methods import caps_kernel as kernel
from acband_configspace.benchmark.methods.capsandruns import (
    CAPPED_SHARE,
    EPSILON,
    caps_rules,
    result_of,
)
from acband_configspace.benchmark.methods.compiled import gathered
from acband_configspace.benchmark.methods.method import (
    MethodResult,
    Numbers,
    drawn_order,
    enough_rows,
)
from acband_configspace.benchmark.tables import RuntimeTable
from acband_configspace.core.checks import probability

#: ζ is split over the events that may go wrong: 6 in CapsAndRuns and the precheck's 3, among
#: others. Dividing by 12 gives the pools of 134, 351 and 724 configurations that the paper prints.
EVENTS = 12


@dataclass(frozen=True)
class ImpatientCapsAndRuns:
    """ICAR on a pool that is examined in K batches, each larger and picked less carefully.

    The first, small batch goes through CAR++ as far as to bound the least mean runtime T. The
    configurations of every further batch must pass a precheck on a few instances, that they may
    be better than T; so must all again in the end, before the race is finished among them.
    K = ⌈log2(0.5 / α)⌉. Runs that the precheck has begun are resumed, not paid again.
    """

    alpha: float = 0.05
    zeta: float = 0.05
    capped_share: float = CAPPED_SHARE
    epsilon: float = EPSILON

    def __post_init__(self) -> None:
        if not probability("alpha", self.alpha) < 0.5:
            raise ValueError(f"alpha must be below 0.5 but got {self.alpha!r}")
        probability("zeta", self.zeta)
        probability("capped_share", self.capped_share)
        probability("epsilon", self.epsilon)

    @property
    def name(self) -> str:
        """As the paper's tables call it."""
        return "ICAR"

    def batch_ends(self) -> list[int]:
        """Return how many configurations have been drawn after each batch.

        Batch k has the first ⌈ln(ζ/(12 K)) / ln(1 - 2^k α)⌉, for k = K - 1, …, 0.
        """
        n_batches = max(1, math.ceil(math.log2(0.5 / self.alpha)))
        failure = math.log(self.zeta / EVENTS / n_batches)
        shares = [min(self.alpha * 2**k, 0.999) for k in range(n_batches - 1, -1, -1)]
        return [math.ceil(failure / math.log1p(-share)) for share in shares]

    def pool_size(self) -> int:
        """Return how many configurations are examined in all."""
        return self.batch_ends()[-1]

    def run(self, table: RuntimeTable, seed: int) -> MethodResult:
        """Simulate the batches, the prechecks and the final race."""
        rows, columns = drawn_order(table, seed)
        n = enough_rows(table, self.pool_size())
        zeta = self.zeta / EVENTS
        n_batches = len(self.batch_ends())
        n_checked = math.ceil(32.1 * math.log(2 * n_batches / zeta))  # b' of the precheck
        rules = caps_rules(table.cutoff, n, zeta, self.capped_share, self.epsilon, True)
        race = kernel.new_race(gathered(table, rows[:n], columns), rules.n_measured, 2 * n_checked)
        log_term = math.log(3 * n_batches / zeta)

        def passing(members: Numbers) -> Numbers:
            passed = [
                i == race.shared[kernel.BOUND_OWNER]
                or kernel.precheck(race, rules, i, n_checked, log_term)
                for i in members
            ]
            kept: Numbers = members[np.array(passed, dtype=bool)]
            return kept

        begun: list[int] = []
        for start, end in zip([0, *self.batch_ends()], self.batch_ends(), strict=False):
            members = np.arange(min(start, n), min(end, n))
            if start > 0:
                members = passing(members)
            if len(members):
                kernel.run_threads(race, rules, members, True)
            begun += members.tolist()
        finalists = np.intersect1d(passing(np.arange(n)), np.array(begun))
        state = race.threads["state"]
        paused = finalists[state[finalists] == kernel.PAUSED]
        state[paused] = kernel.RACING
        alone = kernel.run_threads(race, rules, finalists, False)
        state[np.setdiff1d(np.arange(n), finalists)] = kernel.REJECTED
        return result_of(rows[:n], race, alone)
