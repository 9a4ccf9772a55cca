"""LeapsAndBounds (Weisz et al., 2018): tests all configurations for longer and longer time."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from acband_configspace.benchmark.methods.account import (
    Account,
    Runtimes,
    compiled,
    drawn_pool,
    new_account,
    pay,
    result_from,
    runtime_of,
)
from acband_configspace.benchmark.methods.caps_kernel import GROWTH, SUM_OF_STAGES, bernstein
from acband_configspace.benchmark.methods.method import (
    MethodResult,
    candidates,
    check_probabilities,
)
from acband_configspace.benchmark.tables import RuntimeTable

#: ε, δ (the share of instances that may be capped) and ζ (the probability to fail) of the
#: experiments of Weisz et al. (2018).
EPSILON, CAPPED_SHARE, ZETA = 0.2, 0.2, 0.1
#: The factor by which the guess θ grows from phase to phase, there too.
GUESS_GROWTH = 1.25
#: Phases until θ has grown by a factor of 10^10: there is room to resume the runs of as many.
MANY_PHASES = 100


@dataclass(frozen=True)
class LeapsAndBounds:
    """LeapsAndBounds on as many configurations as AC-Band's N for α and ζ.

    Parameters as in its experiments; a first guess θ of κ_0 = 1 s of 900 for the best mean. In
    every phase it asks for its runs anew, but resumes them, as its authors report too. Constants,
    among them 44 in b, and the rule to accept a mean are those of the code published with it.
    (Kleinberg et al., 2019, ran it with a stricter rule, for about 1.4 times the CPU time.)
    """

    name: ClassVar[str] = "LeapsAndBounds"
    alpha: float = 0.05

    def __post_init__(self) -> None:
        check_probabilities(self, "alpha")

    def run(self, table: RuntimeTable, seed: int) -> MethodResult:
        """Raise θ until a configuration's mean is known to be below it."""
        rows, runtimes = drawn_pool(table, seed, candidates(self.alpha, ZETA))
        n = len(rows)
        account = new_account(runtimes, n_resumed=_n_runs(n, MANY_PHASES))
        guess, phase = table.cutoff / 900.0 * 16 / 7, 0
        while True:
            phase += 1
            n_runs = _n_runs(n, phase)
            means = np.array(
                [
                    estimate(runtimes, i, table.cutoff, n_runs, guess, phase, account)
                    for i in range(n)
                ]
            )
            if means.min() < guess:
                break
            guess *= GUESS_GROWTH
        return result_from(account, rows, int(means.argmin()), phases=phase)


def _n_runs(n: int, phase: int) -> int:
    """Return b: how many runs bound the mean of each of n configurations in a phase."""
    failure = 120 * n * phase * (phase + 1) / ZETA
    return math.ceil(44 * math.log(failure) / (CAPPED_SHARE * EPSILON**2))


@compiled
def estimate(
    runtimes: Runtimes,
    i: int,
    cutoff: float,
    n_runs: int,
    guess: float,
    phase: int,
    account: Account,
) -> float:
    """Return the capped mean of a configuration, or θ if it is not below (Appendix D there)."""
    n_configs = runtimes.shape[0]
    left = n_runs * guess
    cap = 4.0 * guess / (3.0 * CAPPED_SHARE)
    total, squares, stage, stage_end, log_term = 0.0, 0.0, 0, 1.0, 0.0
    for j in range(n_runs):
        elapsed = min(runtime_of(runtimes, i, j, cutoff), left, cap)
        pay(account, i, j, 0.0, elapsed)
        left -= elapsed
        if left <= 0.0:
            return guess
        total += elapsed
        squares += elapsed * elapsed
        n = j + 1
        if n > stage_end:
            stage += 1
            share = np.floor(GROWTH**stage) / stage_end
            stage_end = np.floor(GROWTH**stage)
            # 2.61238 = Σ k^-1.5: the phases' failure probabilities add up to one.
            events = 2.1 * phase**1.5 * 2.61238 * stage**1.1 * SUM_OF_STAGES * n_configs / ZETA
            log_term = share * np.log(3.0 * events)
        if n > 1 and log_term > 0.0:
            mean, confidence = bernstein(total, squares, n, cap, log_term)
            lower = mean - confidence
            if (1.0 + 3.0 * EPSILON / 7.0) * lower > guess and mean > guess:
                return guess
            failure = 120.0 * n_configs * phase * (phase + 1) * j * (j + 1) / ZETA
            enough = np.ceil(32.0 * np.log(failure) / CAPPED_SHARE)
            if n >= enough and confidence <= EPSILON / 3.0 * (mean + lower):
                return mean
    return total / n_runs
