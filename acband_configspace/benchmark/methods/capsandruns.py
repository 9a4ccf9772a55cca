"""CapsAndRuns (Weisz et al., 2019), CAR++ with tighter constants, and the impatient ICAR (2020)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from acband_configspace.benchmark.methods import caps_kernel as kernel
from acband_configspace.benchmark.methods.account import (
    Account,
    Runtimes,
    drawn_pool,
    new_account,
    result_from,
)
from acband_configspace.benchmark.methods.method import MethodResult, check_probabilities
from acband_configspace.benchmark.simulation import Numbers
from acband_configspace.benchmark.tables import RuntimeTable

#: δ of CapsAndRuns, the share of instances that may be capped, in the experiments of Weisz et al.
#: (2020) and Brandt et al. (2023). Not AC-Band's δ: that is ζ here.
CAPPED_SHARE = 0.1
#: ε of the same experiments.
EPSILON = 0.05
#: Their code continues a run for 10 s at a time where the timeout is 900 s.
WORK_STEPS_PER_CUTOFF = 90
#: ICAR splits ζ over the events that may go wrong: 6 in CapsAndRuns and the precheck's 3, among
#: others. Dividing by 12 gives the pools of 134, 351 and 724 configurations that the paper prints.
#: Their code counts one event more where the best are guessed first.
EVENTS = 12
#: ε and δ with which the best are guessed, in their code: "up to a constant".
GUESS_EPSILON, GUESS_CAPPED_SHARE = 1.0, 0.75


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
        check_probabilities(self, "alpha", "zeta", "capped_share", "epsilon")

    @property
    def name(self) -> str:
        """As the paper's tables call it."""
        return "CAR++" if self.improved else "CAR"

    def pool_size(self) -> int:
        """Return n: one of the best share α is among them with probability 1 - ζ/7."""
        return math.ceil(math.log(self.zeta / 7) / math.log1p(-self.alpha))

    def run(self, table: RuntimeTable, seed: int) -> MethodResult:
        """Simulate all threads of the race."""
        rows, runtimes = drawn_pool(table, seed, self.pool_size())
        n = len(rows)
        rules = caps_rules(
            table.cutoff, n, self.zeta / 7, self.capped_share, self.epsilon, self.improved
        )
        race = kernel.new_race(runtimes, rules.n_measured, new_account(runtimes))
        alone = kernel.run_threads(race, rules, np.arange(n), False)
        return result_of(rows, race, alone)


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


@dataclass(frozen=True)
class ImpatientCapsAndRuns:
    """ICAR on a pool that is examined in K batches, each larger and picked less carefully.

    The first, small batch goes through CAR++ as far as to bound the least mean runtime T. The
    configurations of every further batch must pass a precheck on a few instances, that they may
    be better than T; so must all again in the end, before the race is finished among them.
    K = ⌈log2(0.5 / α)⌉. Runs that the precheck has begun are resumed, not paid again.

    ``guess_first`` is an option of the code published with it: the caps of the whole pool are
    measured coarsely and side by side, and those that have theirs first join the first batch, so
    that T is low from the start. What it saves depends on how much configurations differ: on
    made-up tables it takes 1.02 to 0.45 of the CPU time without. The experiments of both papers
    do without.
    """

    alpha: float = 0.05
    zeta: float = 0.05
    guess_first: bool = False
    capped_share: float = CAPPED_SHARE
    epsilon: float = EPSILON

    def __post_init__(self) -> None:
        check_probabilities(self, "alpha", "zeta", "capped_share", "epsilon")
        if self.alpha >= 0.5:
            raise ValueError(f"alpha must be below 0.5 but got {self.alpha!r}")

    @property
    def name(self) -> str:
        """As the paper's tables call it."""
        return "ICAR, guess first" if self.guess_first else "ICAR"

    def batch_ends(self) -> list[int]:
        """Return how many configurations have been drawn after each batch.

        Batch k has the first ⌈ln(ζ/(12 K)) / ln(1 - 2^k α)⌉, for k = K - 1, …, 0.
        """
        n_batches = max(1, math.ceil(math.log2(0.5 / self.alpha)))
        failure = math.log(self._failure / n_batches)
        shares = [min(self.alpha * 2**k, 0.999) for k in range(n_batches - 1, -1, -1)]
        return [math.ceil(failure / math.log1p(-share)) for share in shares]

    def pool_size(self) -> int:
        """Return how many configurations are examined in all."""
        return self.batch_ends()[-1]

    @property
    def _failure(self) -> float:
        return self.zeta / (EVENTS + self.guess_first)

    @property
    def _n_checked(self) -> int:
        """b': on how many instances the precheck measures a cap, and on how many more a mean."""
        return math.ceil(32.1 * math.log(2 * len(self.batch_ends()) / self._failure))

    def run(self, table: RuntimeTable, seed: int) -> MethodResult:
        """Simulate the batches, the prechecks and the final race."""
        rows, runtimes = drawn_pool(table, seed, self.pool_size())
        rules = caps_rules(
            table.cutoff, len(rows), self._failure, self.capped_share, self.epsilon, True
        )
        account = new_account(runtimes, n_resumed=max(rules.n_measured, 2 * self._n_checked))
        guessed = self._guess(table.cutoff, runtimes, account) if self.guess_first else ()
        race = kernel.new_race(runtimes, rules.n_measured, account)
        alone = self._play(race, rules, guessed)
        return result_of(rows, race, alone)

    def _guess(self, cutoff: float, runtimes: Runtimes, account: Account) -> Sequence[int]:
        """Return as many configurations as the first batch has: those that have a cap first."""
        zeta = self._failure / 6
        rules = caps_rules(cutoff, len(runtimes), zeta, GUESS_CAPPED_SHARE, GUESS_EPSILON, True)
        race = kernel.new_race(runtimes, rules.n_measured, account)
        return [int(i) for i in kernel.first_with_a_cap(race, rules, self.batch_ends()[0])]

    def _play(self, race: kernel.Race, rules: kernel.Rules, guessed: Sequence[int]) -> int:
        """Run all batches and the final race; return the thread left alone, or -1."""
        n, begun = len(race.runtimes), set[int]()
        seen: set[int] = set()
        for start, end in zip([0, *self.batch_ends()], self.batch_ends(), strict=False):
            drawn = {*range(min(start, n), min(end, n)), *(guessed if start == 0 else ())} - seen
            seen |= drawn
            members = np.array(sorted(drawn), dtype=np.int64)
            if start > 0:
                members = self._passing(race, rules, members)
            if len(members):
                kernel.run_threads(race, rules, members, True)
            begun.update(members.tolist())
        passing = self._passing(race, rules, np.arange(n))
        finalists = np.intersect1d(passing, np.array(sorted(begun)))
        state = race.threads["state"]
        state[finalists[state[finalists] == kernel.PAUSED]] = kernel.RACING
        alone = kernel.run_threads(race, rules, finalists, False)
        state[np.setdiff1d(np.arange(n), finalists)] = kernel.REJECTED
        return alone

    def _passing(self, race: kernel.Race, rules: kernel.Rules, members: Numbers) -> Numbers:
        """Return those that pass the precheck; the owner of the bound T always does.

        It has a cap of its own, that of 80 % of b' runs, and gives up at 1.9 b' T.
        """
        n = self._n_checked
        rules = rules._replace(n_measured=n, n_to_complete=math.ceil(0.8 * n), reject_factor=1.9)
        check = kernel.new_race(race.runtimes, n, race.account)._replace(shared=race.shared)
        log_term = math.log(3 * len(self.batch_ends()) / self._failure)
        passed = [
            i == race.shared[kernel.BOUND_OWNER] or kernel.precheck(check, rules, i, log_term)
            for i in members
        ]
        kept: Numbers = members[np.array(passed, dtype=bool)]
        return kept
