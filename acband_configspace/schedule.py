"""The paper's formulas as one frozen value, printable before anything runs.

This module knows numbers only: no configurations, no instances, no randomness. "Algorithm" and
"line" refer to the paper's pseudocode (Brandt et al., AC-Band, AAAI 2023), "the authors' code"
to its published experiments.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from acband_configspace.checks import probability, real_number, whole_number

#: With ``alpha=None``, :meth:`Schedule.for_trials` draws as many configurations as leave every
#: group at least this many races. Say the better of two configurations wins three races of four:
#: it then leads after 5 races with a probability of 0.90, after 3 only with 0.84, and going on to
#: 9 races for 0.95 would cost nearly half of the configurations.
SENSIBLE_RACES = 5


@dataclass(frozen=True)
class Round:
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
class Epoch:
    """One call of CSE; its winner enters the next epoch."""

    index: int
    """The epoch's number e, from 1."""
    n_configs: int
    """Configurations in the epoch (n_e): the winner so far and the new ones."""
    budget: int
    """Races the epoch may use (⌊B / c_e⌋)."""
    rounds: tuple[Round, ...]

    @property
    def n_races(self) -> int:
        """Races of the epoch: never more than its budget."""
        return sum(round_.n_races for round_ in self.rounds)

    @property
    def n_trials(self) -> int:
        """Racers started in the epoch."""
        return sum(round_.n_trials for round_ in self.rounds)


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
class Schedule:
    """What AC-Band will do with a budget: its epochs, their rounds, and how many races each gets.

    Make one with :meth:`plan` (a budget in races), or :meth:`for_trials` (in single runs).

    >>> schedule = Schedule.plan(20118, k=2, alpha=0.05, delta=0.05)
    >>> schedule.n_configs
    60
    >>> [epoch.n_configs for epoch in schedule.epochs]
    [31, 16, 9, 5, 3, 2]

    The schedule is the most that is spent: stopping rules may end a group before its races are
    used up.
    """

    budget: int
    """B, in races: each race puts up to k configurations on one instance."""
    k: int
    """How many configurations race at once."""
    alpha: float
    """α: the share of all configurations that one is content to find one of."""
    delta: float
    """δ: the probability of drawing none of them."""
    n_candidates: int
    """N: how many configurations the guarantee asks for."""
    n0: int
    """n_0, from which the sizes of the epochs follow."""
    supply: Supply
    """What there was to plan with."""
    epochs: tuple[Epoch, ...]

    @classmethod
    def plan(
        cls,
        budget: int,
        *,
        k: int = 2,
        alpha: float = 0.05,
        delta: float = 0.05,
        n_candidates: int | None = None,
        n0: int | None = None,
        supply: Supply = UNLIMITED,
    ) -> Schedule:
        """Plan for ``budget`` races.

        Parameters
        ----------
        budget : int
            B, the number of races; at least :meth:`minimum_budget`.
        k : int
            How many configurations race at once.
        alpha, delta : float
            With probability 1 - δ one of the best share α of all configurations is drawn.
        n_candidates : int | None
            How many configurations to draw (N) instead of what α and δ ask for.
        n0 : int | None
            n_0, in (N, 2N]; N + 1 by default. A larger one means fewer epochs.
        supply : Supply
            What there is: a finite space with fewer configurations than N is used up.
        """
        budget = whole_number("budget", budget, at_least=1)
        frame = _Frame.checked(k, alpha, delta, n_candidates, n0, supply)
        if budget < (least := frame.minimum_budget()):
            raise ValueError(
                f"budget must be at least {least} races for {frame.n_candidates} configurations "
                f"and k={frame.k} but got {budget}"
            )
        return frame.with_budget(budget)

    @classmethod
    def for_trials(
        cls,
        n_trials: int,
        *,
        k: int = 2,
        alpha: float | None = None,
        delta: float = 0.05,
        n_candidates: int | None = None,
        n0: int | None = None,
        supply: Supply = UNLIMITED,
    ) -> Schedule:
        """Plan the largest budget that starts no more than ``n_trials`` racers.

        With ``alpha=None`` (and no ``n_candidates``) α is as small as ``n_trials`` allows, that
        is, as many configurations are drawn as leave each group :data:`SENSIBLE_RACES` races.
        """
        n_trials = whole_number("n_trials", n_trials, at_least=2)
        if alpha is not None or n_candidates is not None:
            given = 0.05 if alpha is None else alpha
            frame = _Frame.checked(k, given, delta, n_candidates, n0, supply)
            return frame.for_trials(n_trials)
        if n0 is not None:
            raise ValueError(f"n0 needs alpha or n_candidates to be given too but got n0={n0!r}")

        sensible = min(SENSIBLE_RACES, supply.n_instances or SENSIBLE_RACES)

        def fits(n: int) -> bool:
            frame = _Frame.checked(k, 0.05, delta, n, None, supply)
            schedule = frame.with_budget(frame.largest_budget(n_trials))
            rounds = [round_ for epoch in schedule.epochs for round_ in epoch.rounds]
            return schedule.n_trials <= n_trials and all(
                round_.races_per_group >= sensible for round_ in rounds
            )

        most = n_trials if supply.n_available is None else min(n_trials, supply.n_available)
        best = _last_true(fits, 1, max(1, most))
        # With too few trials even for two configurations, these two still race on what there is.
        frame = _Frame.checked(k, 0.05, delta, best, None, supply)
        return frame.for_trials(n_trials)

    @staticmethod
    def minimum_budget(
        *,
        k: int = 2,
        alpha: float = 0.05,
        delta: float = 0.05,
        n_candidates: int | None = None,
        n0: int | None = None,
        supply: Supply = UNLIMITED,
    ) -> int:
        """Return the least budget that gives every group of every round at least one race."""
        return _Frame.checked(k, alpha, delta, n_candidates, n0, supply).minimum_budget()

    @property
    def n_configs(self) -> int:
        """New configurations drawn over all epochs; θ_0 and others that are given come on top."""
        if not self.epochs:
            return 0
        return sum(epoch.n_configs - 1 for epoch in self.epochs) - (self.supply.n_given - 1)

    @property
    def n_races(self) -> int:
        """Races, hence fresh instances, at most: rounding down leaves it below the budget."""
        return sum(epoch.n_races for epoch in self.epochs)

    @property
    def n_trials(self) -> int:
        """Racers started at most."""
        racers = sum(epoch.n_trials for epoch in self.epochs)
        if self.supply.results_kept and self.supply.n_instances is not None:
            n_configs = self.n_configs + self.supply.n_given
            return min(racers, n_configs * self.supply.n_instances)
        return racers

    def __str__(self) -> str:
        return _as_table(self)


def sufficient_budget(
    k: int,
    alpha: float,
    delta: float,
    *,
    n_candidates: int | None = None,
    n0: int | None = None,
    crude: bool = False,
) -> float:
    """Return the budget that Theorem 1 calls sufficient, divided by the problem's own γ̄⁻¹.

    γ̄⁻¹ says how many races tell configurations apart: one plus the races after which the
    statistic is within half a suboptimality gap of its limit. Multiply by what you believe of it.

    With ``crude=True`` the appendix' cruder bound, (n_0 + 2^(E+1)) in place of n_0. The theorem as
    printed drops the term (2E(C_2 + C_3) - C_1 E(E + 1)) / k that its proof arrives at; the crude
    bound covers it.
    """
    frame = _Frame.checked(k, alpha, delta, n_candidates, n0, UNLIMITED)
    configurations = frame.n0 + (2 ** (frame.n_epochs + 1) if crude else 0)
    return configurations / frame.k * math.fsum(frame.weights())


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
) -> tuple[Round, ...]:
    """Return the rounds of CSE (Algorithm 1) for n configurations: their sizes are known before.

    The paper divides the budget by R = min_x{g^x(n) ≤ k} + min_x{f^x(k) ≤ 1} rounds and
    P_r = ⌊n/k (f(k)/k)^(r-1)⌋ groups. R counts rounds too many where fewer than k are left after
    the first loop, and P_r misses the groups that carried configurations fill up, so that more
    races than B could be run. As in the authors' code, the rounds and groups that really take
    place are counted. ``n_instances`` caps the races of a group.
    """
    most_races = budget if n_instances is None else n_instances
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
        Round(
            n_groups=n_groups,
            group_size=size,
            races_per_group=min(budget // (n_groups * len(shapes)), most_races),  # line 2
            survivors=kept,
            carried=carried,
        )
        for n_groups, size, kept, carried in shapes
    )


@dataclass(frozen=True)
class _Frame:
    """A schedule before its budget is known."""

    k: int
    alpha: float
    delta: float
    n_candidates: int
    n0: int
    supply: Supply

    @classmethod
    def checked(
        cls,
        k: int,
        alpha: float,
        delta: float,
        n_candidates: int | None,
        n0: int | None,
        supply: Supply,
    ) -> _Frame:
        k = whole_number("k", k, at_least=2)
        alpha, delta = probability("alpha", alpha), probability("delta", delta)
        if n_candidates is None:
            wanted = max(1, math.ceil(math.log(delta) / math.log1p(-alpha)))  # N_{α,δ}
        else:
            wanted = whole_number("n_candidates", n_candidates, at_least=1)
        n = wanted
        if supply.n_available is not None:
            n = max(1, min(wanted, supply.n_available))
        if n_candidates is not None or n < wanted:
            alpha = -math.expm1(math.log(delta) / n)  # the α for which N_{α,δ} = n
        if n0 is None or n < wanted:
            n0 = n + 1
        elif not n < whole_number("n0", n0, at_least=1) <= 2 * n:
            raise ValueError(f"n0 must lie in (N, 2N] = ({n}, {2 * n}] but got {n0}")
        return cls(k, alpha, delta, n, n0, supply)

    @property
    def n_epochs(self) -> int:
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

    def with_budget(self, budget: int) -> Schedule:
        sizes = self.sizes()
        weights = self.weights()[: len(sizes)]
        total = math.fsum(weights)
        epochs = []
        for e, (size, weight) in enumerate(zip(sizes, weights, strict=True), start=1):
            # Line 5 draws B / c_e instances; rounded down, as in the authors' code.
            epoch_budget = math.floor(budget * (weight / total))
            # ρ_e = log2((e + k - 1) / e) of line 3 keeps this share, here without rounding.
            share = Fraction(e, e + self.k - 1)
            rounds = cse_rounds(
                size,
                k=self.k,
                budget=epoch_budget,
                share=share,
                n_instances=self.supply.n_instances,
            )
            epochs.append(Epoch(e, size, epoch_budget, rounds))
        return Schedule(budget=budget, epochs=tuple(epochs), **vars(self))

    def for_trials(self, n_trials: int) -> Schedule:
        least = self.with_budget(self.minimum_budget()).n_trials
        if n_trials < least:
            n_configs = self.n_candidates + self.supply.n_given - 1
            raise ValueError(
                f"n_trials must be at least {least} for {n_configs} configurations "
                f"and k={self.k} but got {n_trials}"
            )
        return self.with_budget(self.largest_budget(n_trials))

    def minimum_budget(self) -> int:
        def suffices(budget: int) -> bool:
            epochs = self.with_budget(budget).epochs
            return all(round_.races_per_group for epoch in epochs for round_ in epoch.rounds)

        return _first_true(suffices, 1)

    def largest_budget(self, n_trials: int) -> int:
        """Return the largest budget for ``n_trials`` that is of use."""
        if not self.sizes():  # θ_0 is all there is, and no budget is of any use
            return 1

        def of_no_use(budget: int) -> bool:
            if self.supply.n_instances is not None:
                rounds = [r for epoch in self.with_budget(budget - 1).epochs for r in epoch.rounds]
                if all(r.races_per_group == self.supply.n_instances for r in rounds):
                    return True
            return self.with_budget(budget).n_trials > n_trials

        return max(1, _first_true(of_no_use, 1) - 1)


def _first_true(test: Callable[[int], bool], start: int) -> int:
    """Return the least integer from ``start`` for which a monotone test holds."""
    step = 1
    while not test(start + step - 1):
        step *= 2
    return _last_true(lambda x: not test(x), start - 1, start + step - 1) + 1


def _last_true(test: Callable[[int], bool], low: int, high: int) -> int:
    """Return the last x in [low, high] with ``test(x)``, which is taken to hold at ``low``."""
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if test(middle) else (low, middle - 1)
    return low


def _as_table(schedule: Schedule) -> str:
    lines = [
        f"AC-Band with k = {schedule.k}: {schedule.n_configs} new configurations in "
        f"{len(schedule.epochs)} epochs (α = {schedule.alpha:.3g}, δ = {schedule.delta:.3g}), "
        f"at most {schedule.n_races:,} races = {schedule.n_trials:,} trials",
        "",
        "epoch  configurations  round   groups  carried  races each  survivors    races   trials",
    ]
    for epoch in schedule.epochs:
        for number, round_ in enumerate(epoch.rounds, start=1):
            head = f"{epoch.index:5}  {epoch.n_configs:14}" if number == 1 else " " * 21
            groups = f"{round_.n_groups} of {round_.group_size}"
            lines.append(
                f"{head}  {number:5}  {groups:>7}  {round_.carried:7}  "
                f"{round_.races_per_group:10,}  {round_.survivors:9}  "
                f"{round_.n_races:7,}  {round_.n_trials:7,}"
            )
    return "\n".join(lines)
