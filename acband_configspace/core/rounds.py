"""Rounds: how many groups race, on how many instances each, and how many survive.

This module knows numbers only. "Algorithm" and "line" refer to the paper's pseudocode.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from fractions import Fraction

from acband_configspace.core.checks import real_number, whole_number


@dataclass(frozen=True)
class RoundPlan:
    """One round of CSE: all groups race, each on instances of its own, and keep their best."""

    n_groups: int
    """How many groups race (P_r in the paper)."""
    group_size: int
    """How many configurations are in each group: k, or fewer once fewer are left."""
    races_per_group: int
    """How many races, each on a fresh instance, decide a group (b_r)."""
    survivors: int
    """How many configurations each group keeps (f_ρ)."""
    carried: int
    """How many configurations found no full group and go to the next round without racing (ℛ)."""

    @property
    def n_configs(self) -> int:
        """Configurations in the running when the round starts."""
        return self.n_groups * self.group_size + self.carried

    @property
    def n_races(self) -> int:
        """Races of the round, each on one instance."""
        return self.n_groups * self.races_per_group

    @property
    def n_trials(self) -> int:
        """Racers started in the round."""
        return self.n_races * self.group_size


@dataclass(frozen=True)
class EpochPlan:
    """One call of CSE; its winner enters the next epoch."""

    index: int
    """The epoch's number e, from 1."""
    n_configs: int
    """Configurations in the epoch (n_e): the winner so far and the new ones."""
    budget: int
    """Races the epoch may use (⌊B / c_e⌋)."""
    rounds: tuple[RoundPlan, ...]

    @property
    def n_races(self) -> int:
        """Races of the epoch: never more than its budget."""
        return sum(round_.n_races for round_ in self.rounds)

    @property
    def n_trials(self) -> int:
        """Racers started in the epoch."""
        return sum(round_.n_trials for round_ in self.rounds)


def share_kept(rho: float, *, k: int) -> Fraction:
    """Return 2^-ρ, the share of a group that survives, as the fraction it stands for.

    ρ = 1 halves (CSH), ρ = log2 k keeps the winner alone (CSWS), and ρ → 0, for which 0 may be
    given, drops the worst alone (CSR). A float cannot hold 1/3 = 2^-log2(3), and rounding down
    would lose a survivor by it, so the nearest small fraction is taken.
    """
    k = whole_number("k", k, at_least=2)
    number = real_number("rho", rho)
    if not 0.0 <= number <= math.log2(k) + 1e-9:
        raise ValueError(f"rho must lie in [0, log2(k)] = [0, {math.log2(k):.4g}] but got {rho!r}")
    return Fraction(2.0**-number).limit_denominator(1_000_000)


def survivors(group_size: int, share: Fraction) -> int:
    """Return f_ρ(x) = ⌊x / 2^ρ⌋, but at least one survives, and at least one of two is dropped."""
    return max(1, min(math.floor(group_size * share), group_size - 1))


def cse_rounds(
    n: int, *, k: int, budget: int, share: Fraction, n_instances: int | None = None
) -> tuple[RoundPlan, ...]:
    """Return the rounds of CSE (Algorithm 1) for n configurations: their sizes are known before.

    The paper divides the budget by R = min_x{g^x(n) ≤ k} + min_x{f^x(k) ≤ 1} rounds and
    P_r = ⌊n/k (f(k)/k)^(r-1)⌋ groups. R counts rounds too many where fewer than k are left after
    the first loop, and P_r misses the groups that carried configurations fill up, so that more
    races than B could be run. As in the authors' code, the rounds and groups that really take
    place are counted. With ``n_instances`` no group races on more, since none comes twice.
    """
    most = budget if n_instances is None else n_instances
    shapes = []
    while n >= k:  # lines 1 to 16
        n_groups, carried = divmod(n, k)
        kept = survivors(k, share)
        shapes.append((n_groups, k, kept, carried))
        n = n_groups * kept + carried
    while n > 1:  # lines 18 to 21; the whole set is one group, as it is when n < k to begin with
        kept = survivors(n, share)
        shapes.append((1, n, kept, 0))
        n = kept
    return tuple(
        RoundPlan(
            n_groups=n_groups,
            group_size=size,
            races_per_group=min(budget // (n_groups * len(shapes)), most),  # line 2
            survivors=kept,
            carried=carried,
        )
        for n_groups, size, kept, carried in shapes
    )


def playoff_rounds(n_contestants: int, n_instances: int) -> tuple[RoundPlan, ...]:
    """Return the steps of a playoff: all contestants meet, then the better half of them, and so on.

    As in successive halving every step costs about the same number of runs: fewer contestants
    meet on more instances. The instances of all steps add up to ``n_instances``; if there is not
    one for every step, there is no playoff.
    """
    sizes = []
    while n_contestants > 1:
        sizes.append(n_contestants)
        n_contestants = -(-n_contestants // 2)
    if n_instances < len(sizes):
        return ()
    multiple = math.lcm(*sizes)
    shares = list(itertools.accumulate(multiple // size for size in sizes))
    steps = []
    n_before = 0
    for number, (size, share) in enumerate(zip(sizes, shares, strict=True), start=1):
        n_until = max(number, -(-n_instances * share // shares[-1]))
        steps.append(RoundPlan(1, size, n_until - n_before, -(-size // 2), 0))
        n_before = n_until
    return tuple(steps)


def playoff_trials(n_contestants: int, n_instances: int) -> int:
    """Return the most runs that a playoff of up to that many contestants takes."""
    if n_instances == 0:
        return 0
    return max(
        (
            sum(step.n_trials for step in playoff_rounds(n, n_instances))
            for n in range(2, n_contestants + 1)
        ),
        default=0,
    )
