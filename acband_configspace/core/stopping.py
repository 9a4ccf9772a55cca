"""When a group is decided: after all its races, or as soon as that is known to be enough.

``early_stopping`` is one of

``None``
    The paper: a group has all its b races.
``0.0``
    Lossless: a group ends once no outcome of its remaining races could change who survives.
``level > 0``
    Anytime-valid: a group also ends once a test at that level tells its survivors from the rest.

The test. Let racers i and j have won a and b races. While they are equally likely to win, the
Beta(½, ½) mixture of likelihood ratios

    M_ij = 2^(a+b) Γ(a+½) Γ(b+½) / (π (a+b)!)

is a nonnegative martingale in the races (races that neither wins leave it as it is) that starts
at 1: an e-process. A group of n with f survivors is decided once M ≥ c for the weakest
would-be survivor and the strongest to be dropped, where

    c = n (n-1) / (2 f (n-f) level).

M grows with a and falls with b while a ≥ b, so M ≥ c then holds for all f (n-f) pairs of a
survivor and a dropped racer, and the mean of M over all n(n-1)/2 pairs is at least 1/level. Under
equal strength that mean is a martingale too, and by Ville's inequality the chance that it *ever*
gets there is at most ``level``. The pair may be chosen by the data, and the bar is lower than
that of a level divided by the pairs: for n = 2 it is 1/level, for 8 racers of which 4 survive
1.75/level, not 28/level.

If strengths differ, the chance that the test ever drops a racer that is likeliest to win is at
most (n-1) / (f (2c-1)), which is about level · (n-f)/n: 2M - 1 is no more than the part of
the mixture above ½, an e-process for "i wins no more often than j", and at least f of the best
racer's n-1 rivals need to have it at 2c - 1.
"""

from __future__ import annotations

import functools
import math

import numpy as np
import numpy.typing as npt

from acband_configspace.core.checks import probability, real_number
from acband_configspace.core.rounds import RoundPlan
from acband_configspace.core.schedule import Schedule
from acband_configspace.core.statistics import Flags, Statistic, Wins

Counts = npt.NDArray[np.integer]


def checked_early_stopping(early_stopping: float | None, statistic: Statistic) -> float | None:
    """Return what applies to the statistic: only counted wins can be judged before the end."""
    if early_stopping is None:
        return None
    level = real_number("early_stopping", early_stopping)
    if not 0.0 <= level < 1.0:
        raise ValueError(f"early_stopping must be None or lie in [0, 1) but got {early_stopping!r}")
    if type(statistic) is Wins:  # a subclass may score as it likes
        return level
    if level > 0.0:
        raise ValueError(
            f"early_stopping must be None or 0 with the statistic {statistic!r} but got "
            f"{early_stopping!r}: the test counts wins"
        )
    return None


def level_for_run(overall: float, schedule: Schedule) -> float:
    """Return the level per group that amounts to ``overall`` in the whole run.

    A configuration races in at most one group of each round, whoever its opponents are. So by
    the union bound the test drops the best one that was drawn, where all races would have kept
    it, with a probability of at most ``overall``: that much is added to the paper's δ. It holds
    for the rounds of this schedule; further passes, and epochs that saved trials buy, come on top.
    """
    n_rounds = sum(len(epoch.rounds) for epoch in schedule.epochs)
    return probability("overall", overall) / max(1, n_rounds)


def decided(wins: Counts, n_raced: Counts | int, plan: RoundPlan, early_stopping: float) -> Flags:
    """Return whether groups are decided that have won so much, (…, racers), in so many races.

    Survivors are the ``plan.survivors`` with the most wins, ties in the group's order.
    """
    size = plan.group_size
    # One whole number ranks wins and, within equal wins, the earlier racer: no two are the same.
    ranks = np.sort(wins * size - np.arange(size), axis=-1)
    last_in, first_out = ranks[..., size - plan.survivors], ranks[..., size - plan.survivors - 1]
    # At worst the first of the dropped wins all that is left, and the last survivor nothing.
    result: Flags = last_in - first_out > (plan.races_per_group - n_raced) * size
    if early_stopping > 0.0:
        needed = _wins_needed(_bar(plan, early_stopping), plan.races_per_group)
        result = result | (-(-last_in // size) >= needed[-(-first_out // size)])
    return result


def _bar(plan: RoundPlan, level: float) -> float:
    """Return c, which M must reach."""
    n, f = plan.group_size, plan.survivors
    return n * (n - 1) / (2 * f * (n - f) * level)


@functools.lru_cache(maxsize=1024)
def _wins_needed(bar: float, n_races: int) -> Counts:
    """Return for b = 0 … n_races the least a with M(a, b) ≥ bar, or n_races + 1 if there is none.

    Whole numbers from one table: both drivers take the same decisions to the last bit.
    """
    steps = np.arange(1, 2 * n_races + 2)
    log_gamma = np.concatenate([[0.0], np.cumsum(np.log(steps - 0.5))])  # Γ(x+½) / Γ(½)
    log_factorial = np.concatenate([[0.0], np.cumsum(np.log(steps))])
    fewer = np.arange(n_races + 1)
    low, high = fewer.copy(), np.full(n_races + 1, n_races + 1)
    while (low < high).any():  # bisection for all b at once: M grows with a from b on
        middle = (low + high) // 2
        total = middle + fewer
        log_m = total * math.log(2.0) + log_gamma[middle] + log_gamma[fewer] - log_factorial[total]
        reached = log_m >= math.log(bar)
        low, high = (
            np.where(reached | (low >= high), low, middle + 1),
            np.where(reached, middle, high),
        )
    low.setflags(write=False)
    return low
