"""CapsAndRuns (Weisz et al., 2019) and CAR++, the same with tighter constants."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from acband_configspace.benchmark.methods import caps_kernel as kernel
from acband_configspace.benchmark.methods.account import new_account, result_from
from acband_configspace.benchmark.methods.compiled import gathered
from acband_configspace.benchmark.methods.method import (
    MethodResult,
    Numbers,
    drawn_order,
    enough_rows,
)
from acband_configspace.benchmark.tables import RuntimeTable
from acband_configspace.core.checks import probability

#: δ of CapsAndRuns, the share of instances that may be capped, in the experiments of Weisz et al.
#: (2020) and Brandt et al. (2023). Not AC-Band's δ: that is ζ here.
CAPPED_SHARE = 0.1
#: ε of the same experiments.
EPSILON = 0.05
#: Their code continues a run for 10 s at a time where the timeout is 900 s.
WORK_STEPS_PER_CUTOFF = 90


@dataclass(frozen=True)
class CapsAndRuns:
    """CapsAndRuns on a pool of ⌈ln(ζ/7) / ln(1 - α)⌉ configurations.

    First each configuration's cap is estimated, which all but a share δ of the instances stay
    below; then a Bernstein race on capped runtimes finds one whose mean is within a factor 1 + ε
    of the best. With α = .05, .02, .01 and ζ = .05 the pool has 97, 245, 492 configurations, as
    the paper prints. If the table has fewer, all of them; if it has fewer instances than are
    asked for, they come again, and are paid for once (see :mod:`.account` for the other way).

    ``improved`` makes it CAR++ (Weisz et al., 2020): b = ⌈26 ln(2n/ζ)/δ⌉ instead of
    ⌈48 ln(3n/ζ)/δ⌉ instances to measure a cap, which is given up at 1.5 b T instead of 2 b T.
    """

    alpha: float = 0.05
    zeta: float = 0.05
    improved: bool = False
    capped_share: float = CAPPED_SHARE
    epsilon: float = EPSILON

    def __post_init__(self) -> None:
        probability("alpha", self.alpha)
        probability("zeta", self.zeta)
        probability("capped_share", self.capped_share)
        probability("epsilon", self.epsilon)

    @property
    def name(self) -> str:
        """As the paper's tables call it."""
        return "CAR++" if self.improved else "CAR"

    def pool_size(self) -> int:
        """Return n: one of the best share α is among them with probability 1 - ζ/7."""
        return math.ceil(math.log(self.zeta / 7) / math.log1p(-self.alpha))

    def run(self, table: RuntimeTable, seed: int) -> MethodResult:
        """Simulate all threads of the race."""
        rows, columns = drawn_order(table, seed)
        n = enough_rows(table, self.pool_size())
        rules = caps_rules(
            table.cutoff, n, self.zeta / 7, self.capped_share, self.epsilon, self.improved
        )
        runtimes = gathered(table, rows[:n], columns)
        race = kernel.new_race(runtimes, rules.n_measured, new_account(runtimes))
        alone = kernel.run_threads(race, rules, np.arange(n), False)
        return result_of(rows[:n], race, alone)


def caps_rules(
    cutoff: float, n: int, zeta: float, capped_share: float, epsilon: float, improved: bool
) -> kernel.Rules:
    """Return the constants for n configurations."""
    factor, events = (26, 2) if improved else (48, 3)
    n_measured = math.ceil(factor * math.log(events * n / zeta) / capped_share)
    return kernel.Rules(
        cutoff=cutoff,
        n_measured=n_measured,
        n_to_complete=math.ceil(n_measured * (1 - 0.75 * capped_share)),
        work_step=cutoff / WORK_STEPS_PER_CUTOFF,
        reject_factor=1.5 if improved else 2.0,
        epsilon=epsilon,
        zeta=zeta,
        n_configs=n,
    )


def result_of(rows: Numbers, race: kernel.Race, alone: int) -> MethodResult:
    """Return the thread that was left alone, else the least mean, else the least upper bound."""
    if alone < 0:
        accepted = race.threads["state"] == kernel.ACCEPTED
        means = np.where(accepted, race.threads["mean"], np.inf)
        alone = int(means.argmin()) if accepted.any() else int(race.shared[kernel.BOUND_OWNER])
    return result_from(race.account, rows, alone, n_measured=race.pending.shape[1])
