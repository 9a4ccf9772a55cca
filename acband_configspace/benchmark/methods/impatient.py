"""ImpatientCapsAndRuns (Weisz et al., 2020): CAR++ that discards most configurations early."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from acband_configspace.benchmark.methods import caps_kernel as kernel
from acband_configspace.benchmark.methods.account import Account, Runtimes, new_account
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
#: Their code counts one event more where the best are guessed first.
EVENTS = 12
#: ε and δ with which the best are guessed, in their code: "up to a constant".
GUESS_EPSILON, GUESS_CAPPED_SHARE = 1.0, 0.75


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
        if not probability("alpha", self.alpha) < 0.5:
            raise ValueError(f"alpha must be below 0.5 but got {self.alpha!r}")
        probability("zeta", self.zeta)
        probability("capped_share", self.capped_share)
        probability("epsilon", self.epsilon)

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
        """b': on so many instances the precheck measures a cap, and on as many a mean."""
        return math.ceil(32.1 * math.log(2 * len(self.batch_ends()) / self._failure))

    def run(self, table: RuntimeTable, seed: int) -> MethodResult:
        """Simulate the batches, the prechecks and the final race."""
        rows, columns = drawn_order(table, seed)
        n = enough_rows(table, self.pool_size())
        runtimes = gathered(table, rows[:n], columns)
        rules = caps_rules(table.cutoff, n, self._failure, self.capped_share, self.epsilon, True)
        account = new_account(runtimes, n_resumed=max(rules.n_measured, 2 * self._n_checked))
        guessed = self._guess(table.cutoff, runtimes, account) if self.guess_first else ()
        race = kernel.new_race(runtimes, rules.n_measured, account)
        alone = self._play(race, rules, guessed)
        return result_of(rows[:n], race, alone)

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
        """Return those that pass the precheck; the owner of the bound T always does."""
        log_term = math.log(3 * len(self.batch_ends()) / self._failure)
        passed = [
            i == race.shared[kernel.BOUND_OWNER]
            or kernel.precheck(race, rules, i, self._n_checked, log_term)
            for i in members
        ]
        kept: Numbers = members[np.array(passed, dtype=bool)]
        return kept
