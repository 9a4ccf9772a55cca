"""What the paper's parameters amount to before a budget is given: Algorithm 3's first lines.

This module knows numbers only.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from acband_configspace.core.checks import probability, whole_number
from acband_configspace.core.rounds import EpochPlan, cse_rounds

#: At most this share of the budget is set aside for a playoff.
PLAYOFF_SHARE = Fraction(1, 4)

#: A playoff on fewer instances does not take place, unless the user asked for as few: the mean of
#: a few heavy-tailed costs knows less than the races that the last winner has won. On made-up and
#: real tables 12 instances (50 races in all) made the gap 1.1 times as large, 62 (250 races) 0.8.
LEAST_PLAYOFF = 25

#: Nobody can race more configurations, and the time to plan for them grows with their number.
MOST_CANDIDATES = 10**7


@dataclass(frozen=True)
class Supply:
    """What there is to race with; by default as much as one could ask for."""

    n_given: int = 1
    """Configurations that take part from the start besides the new ones: θ_0, and the user's."""
    n_available: int | None = None
    """New configurations that exist (a finite space), None for no limit."""
    n_instances: int | None = None
    """Distinct instances, None for no limit. Within a group none is used twice, so a group gets
    at most this many races; groups share instances once there are fewer than races."""
    results_kept: bool = False
    """Whether a configuration's result on an instance, once known, is never run for again. It is
    so if all racers run to their end, and instances are few: then n_trials is smaller."""

    def __post_init__(self) -> None:
        whole_number("n_given", self.n_given, at_least=1)
        if self.n_available is not None:
            whole_number("n_available", self.n_available, at_least=0)
        if self.n_instances is not None:
            whole_number("n_instances", self.n_instances, at_least=1)


UNLIMITED = Supply()


@dataclass(frozen=True)
class EpochOutline:
    """A schedule before its budget is known: N, n_0, and the sizes and weights of the epochs."""

    k: int
    alpha: float
    delta: float
    n_candidates: int
    n0: int
    supply: Supply
    playoff: int
    set_aside: bool

    @classmethod
    def checked(
        cls,
        k: int,
        alpha: float | None,
        delta: float,
        n_candidates: int | None = None,
        n0: int | None = None,
        *,
        n_epochs: int | None = None,
        supply: Supply = UNLIMITED,
        playoff: int = 0,
        set_aside: bool = True,
    ) -> EpochOutline:
        """Return the outline, or say which argument is wrong; without α it is the paper's 0.05."""
        playoff = whole_number("playoff", playoff, at_least=0)
        k = whole_number("k", k, at_least=2)
        alpha = probability("alpha", 0.05 if alpha is None else alpha)
        delta = probability("delta", delta)
        if n_candidates is None:
            wanted = max(1, math.ceil(math.log(delta) / math.log1p(-alpha)))  # N_{α,δ}
        else:
            wanted = whole_number("n_candidates", n_candidates, at_least=1)
        n = wanted
        if supply.n_available is not None:
            n = max(1, min(wanted, supply.n_available))
        if n > MOST_CANDIDATES:
            raise ValueError(
                f"alpha={alpha:g} and delta={delta:g} must not ask for more than "
                f"{MOST_CANDIDATES:,} configurations but ask for {n:.2g}"
                if n_candidates is None
                else f"n_candidates must be at most {MOST_CANDIDATES:,} but got {n_candidates}"
            )
        if n_candidates is not None or n < wanted:
            alpha = -math.expm1(math.log(delta) / n)  # the α for which N_{α,δ} = n
        if n_epochs is not None:
            if n0 is not None:
                raise ValueError(f"n0 must be None with n_epochs={n_epochs} but got {n0!r}")
            parts = 2 ** whole_number("n_epochs", n_epochs, at_least=1)
            n0 = max(n + 1, -(-n * parts // (parts - 1)))  # the least n_0 with so few epochs
        elif n0 is None or n < wanted:
            n0 = n + 1
        elif not n < whole_number("n0", n0, at_least=1) <= 2 * n:
            raise ValueError(f"n0 must lie in (N, 2N] = ({n}, {2 * n}] but got {n0}")
        return cls(k, alpha, delta, n, n0, supply, playoff, set_aside)

    @property
    def n_epochs(self) -> int:
        """E, the number of epochs."""
        # E = ⌈log2(n_0 / (n_0 - N))⌉: the least E with 2^E ≥ n_0 / (n_0 - N), in integers.
        return (-(-self.n0 // (self.n0 - self.n_candidates)) - 1).bit_length()

    def weights(self) -> list[float]:
        """Return w_e = (C_2 + C_3 - e C_1) / 2^e; 1/c_e is w_e divided by the sum of them all.

        The sum is the paper's (C_1 E - (2^E - 1)(2 C_1 - C_2 - C_3)) / 2^E. C_3 is rounded up as
        in Algorithm 3; the authors' code does not round it.
        """
        log_q = math.log1p((self.k - 1) / self.n_epochs)
        c1 = math.log(2) / log_q
        c2 = 1 + math.log(self.n0 + 4 * self.n0 / (self.n0 - self.n_candidates)) / log_q
        c3 = math.ceil(math.log(self.k) / log_q - 1e-12)
        return [(c2 + c3 - e * c1) / 2**e for e in range(1, self.n_epochs + 1)]

    def sizes(self) -> list[int]:
        """Return n_e = ⌈n_0 / 2^e⌉ + 1 (line 3), cut to what a finite space has left.

        The first epoch takes in all that is given, where the paper has θ_0 alone.
        """
        left = self.supply.n_available
        sizes = []
        entering = self.supply.n_given
        for e in range(1, self.n_epochs + 1):
            new = -(-self.n0 // 2**e)
            if left is not None:
                new = min(new, left)
                left -= new
            if new + entering > 1:
                sizes.append(new + entering)
            entering = 1
        return sizes

    def n_set_aside(self, budget: int) -> int:
        """Return how many races of a budget the playoff keeps from the epochs."""
        if not self.set_aside or not self.playoff or not self.sizes():
            return 0
        most = budget if self.supply.n_instances is None else self.supply.n_instances
        spare = budget - self.minimum_budget  # every group has its race before there is a playoff
        aside = min(self.playoff, math.floor(budget * PLAYOFF_SHARE), most, spare)
        return aside if aside >= least_playoff(self.playoff) else 0

    @property
    def first_with_playoff(self) -> int | None:
        """The least budget of which races are set aside for the playoff; None if of none are."""
        n_instances = self.supply.n_instances
        there_is_none = not (self.set_aside and self.playoff and self.sizes())
        if there_is_none or (n_instances or math.inf) < least_playoff(self.playoff):
            return None
        return first_true(lambda budget: self.n_set_aside(budget) > 0, 1)

    @cached_property
    def minimum_budget(self) -> int:
        """The least budget that gives every group of every round at least one race."""

        def suffices(budget: int) -> bool:
            epochs = self._epochs(budget)
            return all(round_.races_per_group for epoch in epochs for round_ in epoch.rounds)

        return first_true(suffices, 1)

    def epochs(self, budget: int) -> tuple[EpochPlan, ...]:
        """Return the epochs for a budget, less what is set aside."""
        return self._epochs(budget - self.n_set_aside(budget))

    def _epochs(self, budget: int) -> tuple[EpochPlan, ...]:
        sizes = self.sizes()
        weights = self.weights()[: len(sizes)]
        total = math.fsum(weights)
        epochs = []
        for e, (size, weight) in enumerate(zip(sizes, weights, strict=True), start=1):
            # Line 5 draws B / c_e instances; rounded down, as in the authors' code.
            epoch_budget = math.floor(budget * (weight / total))
            rounds = cse_rounds(
                size,
                k=self.k,
                budget=epoch_budget,
                share=share_kept_in(e, self.k),
                n_instances=self.supply.n_instances,
            )
            epochs.append(EpochPlan(e, size, epoch_budget, rounds))
        return tuple(epochs)


def share_kept_in(epoch: int, k: int) -> Fraction:
    """Return what ρ_e = log2((e + k - 1) / e) of line 3 keeps, without rounding."""
    return Fraction(epoch, epoch + k - 1)


def least_playoff(playoff: int) -> int:
    """Return on how many instances a playoff of that length takes place at all."""
    return max(1, min(playoff, LEAST_PLAYOFF))


def first_true(test: Callable[[int], bool], start: int) -> int:
    """Return the least integer from ``start`` for which a monotone test holds."""
    step = 1
    while not test(start + step - 1):
        step *= 2
    return last_true(lambda x: not test(x), start - 1, start + step - 1) + 1


def last_true(test: Callable[[int], bool], low: int, high: int) -> int:
    """Return the last x in [low, high] with ``test(x)``, which is taken to hold at ``low``."""
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if test(middle) else (low, middle - 1)
    return low
