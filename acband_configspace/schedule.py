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

from acband_configspace.checks import probability, whole_number
from acband_configspace.rounds import Round as Round
from acband_configspace.rounds import cse_rounds as cse_rounds
from acband_configspace.rounds import playoff_rounds, playoff_trials
from acband_configspace.rounds import share_kept as share_kept
from acband_configspace.rounds import survivors as survivors

#: With ``alpha=None``, :meth:`Schedule.for_trials` draws as many configurations as leave every
#: group at least this many races. Say the better of two configurations wins three races of four:
#: it then leads after 5 races with a probability of 0.90, after 3 only with 0.84, and going on to
#: 9 races for 0.95 would cost nearly half of the configurations.
SENSIBLE_RACES = 5

#: At most this share of the budget is set aside for a playoff.
PLAYOFF_SHARE = Fraction(1, 4)

#: A playoff on fewer instances does not take place: the mean of a few heavy-tailed costs knows
#: less than the races that the last winner has won.
LEAST_PLAYOFF = 10


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
    epochs: tuple[Epoch, ...]
    playoff: int = 0
    """On how many instances, at most, the epoch winners meet in the end."""
    set_aside: int = 0
    """How many races of the budget are kept from the epochs for the playoff.

    If none are, the playoff lives on what early stopping saved.
    """
    n_available: int | None = None
    """How many configurations there are besides θ_0, None for any number."""
    n_instances: int | None = None
    """How many instances there are to be used again and again, None if every race has its own."""

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
        n_available: int | None = None,
        n_instances: int | None = None,
        playoff: int = 0,
        set_aside: bool = True,
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
        n_available : int | None
            How many configurations a finite space has besides θ_0; all are used if fewer than N.
        n_instances : int | None
            How many instances there are if they are to be used again: no group gets more races.
        playoff : int
            On how many instances, at most, the epoch winners meet in the end.
        set_aside : bool
            Whether the playoff's races are taken out of the budget beforehand; at most
            :data:`PLAYOFF_SHARE` of it. Otherwise it gets what early stopping saved.
        """
        budget = whole_number("budget", budget, at_least=1)
        frame = _Frame.checked(
            k, alpha, delta, n_candidates, n0, n_available, n_instances, playoff, set_aside
        )
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
        n_available: int | None = None,
        n_instances: int | None = None,
        playoff: int = 0,
        set_aside: bool = True,
    ) -> Schedule:
        """Plan the largest budget that starts no more than ``n_trials`` racers.

        With ``alpha=None`` (and no ``n_candidates``) α is as small as ``n_trials`` allows, that
        is, as many configurations are drawn as leave each group :data:`SENSIBLE_RACES` races.
        """
        n_trials = whole_number("n_trials", n_trials, at_least=2)

        def frame_for(alpha: float, n_candidates: int | None) -> _Frame:
            return _Frame.checked(
                k, alpha, delta, n_candidates, n0, n_available, n_instances, playoff, set_aside
            )

        if alpha is not None or n_candidates is not None:
            given = 0.05 if alpha is None else alpha
            frame = frame_for(given, n_candidates)
            least = frame.with_budget(frame.minimum_budget()).n_trials
            if n_trials < least:
                raise ValueError(
                    f"n_trials must be at least {least} for {frame.n_candidates} configurations "
                    f"and k={frame.k} but got {n_trials}"
                )
            return frame.with_budget(frame.largest_budget(n_trials))
        if n0 is not None:
            raise ValueError(f"n0 needs alpha or n_candidates to be given too but got n0={n0!r}")

        def try_candidates(n: int) -> Schedule | None:
            frame = frame_for(0.05, n)
            schedule = frame.with_budget(frame.largest_budget(n_trials))
            rounds = [round_ for epoch in schedule.epochs for round_ in epoch.rounds]
            enough = all(round_.races_per_group >= SENSIBLE_RACES for round_ in rounds)
            return schedule if enough else None

        most = n_trials if n_available is None else min(n_trials, max(n_available, 1))
        best = _last_true(lambda n: try_candidates(n) is not None, 1, most)
        # With too few trials even for two configurations, these two still race on what there is.
        frame = frame_for(0.05, best)
        return frame.with_budget(frame.largest_budget(n_trials))

    @staticmethod
    def minimum_budget(
        *,
        k: int = 2,
        alpha: float = 0.05,
        delta: float = 0.05,
        n_candidates: int | None = None,
        n0: int | None = None,
        n_available: int | None = None,
    ) -> int:
        """Return the least budget that gives every group of every round at least one race."""
        return _Frame.checked(k, alpha, delta, n_candidates, n0, n_available).minimum_budget()

    @property
    def n_configs(self) -> int:
        """New configurations drawn over all epochs; θ_0 comes on top."""
        return sum(epoch.n_configs - 1 for epoch in self.epochs)

    @property
    def n_races(self) -> int:
        """Races, hence fresh instances, at most: rounding down leaves it below the budget."""
        return sum(epoch.n_races for epoch in self.epochs) + self.set_aside

    @property
    def n_trials(self) -> int:
        """Racers started at most."""
        in_playoff = playoff_trials(len(self.epochs) + 1, self.set_aside)
        return sum(epoch.n_trials for epoch in self.epochs) + in_playoff

    def playoff_length(self, n_contestants: int, n_races: int, n_trials: int) -> int:
        """Return on how many instances contestants can meet with so many races and runs left."""
        most = min(self.playoff, n_races)
        if self.n_instances is not None:
            most = min(most, self.n_instances)
        length = _last_true(lambda n: playoff_trials(n_contestants, n) <= n_trials, 0, most)
        return length if n_contestants > 1 and length >= LEAST_PLAYOFF else 0

    def further_epoch(
        self, index: int, *, n_drawn: int, n_races: int, n_trials: int
    ) -> Epoch | None:
        """Plan one more epoch from what is left, as many races a configuration as planned so far.

        None if that leaves no new configuration, or not :data:`SENSIBLE_RACES` for every group.
        """
        budget = min(n_races, n_trials // self.k)
        n_new = self.n_configs * budget // self.budget
        if self.n_available is not None:
            n_new = min(n_new, self.n_available - n_drawn)
        if n_new < 1:
            return None
        share = _share_kept_in(index, self.k)
        rounds = cse_rounds(
            n_new + 1, k=self.k, budget=budget, share=share, n_instances=self.n_instances
        )
        if min(round_.races_per_group for round_ in rounds) < SENSIBLE_RACES:
            return None
        return Epoch(index, n_new + 1, budget, rounds)

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
    frame = _Frame.checked(k, alpha, delta, n_candidates, n0)
    configurations = frame.n0 + (2 ** (frame.n_epochs + 1) if crude else 0)
    return configurations / frame.k * math.fsum(frame.weights())


@dataclass(frozen=True)
class _Frame:
    """A schedule before its budget is known."""

    k: int
    alpha: float
    delta: float
    n_candidates: int
    n0: int
    n_available: int | None
    n_instances: int | None
    playoff: int
    set_aside: bool

    @classmethod
    def checked(
        cls,
        k: int,
        alpha: float,
        delta: float,
        n_candidates: int | None,
        n0: int | None,
        n_available: int | None = None,
        n_instances: int | None = None,
        playoff: int = 0,
        set_aside: bool = True,
    ) -> _Frame:
        playoff = whole_number("playoff", playoff, at_least=0)
        if n_instances is not None:
            n_instances = whole_number("n_instances", n_instances, at_least=1)
        k = whole_number("k", k, at_least=2)
        alpha, delta = probability("alpha", alpha), probability("delta", delta)
        if n_candidates is None:
            wanted = max(1, math.ceil(math.log(delta) / math.log1p(-alpha)))  # N_{α,δ}
        else:
            wanted = whole_number("n_candidates", n_candidates, at_least=1)
        n = wanted
        if n_available is not None:
            n_available = whole_number("n_available", n_available, at_least=0)
            n = max(1, min(wanted, n_available))
        if n_candidates is not None or n < wanted:
            alpha = -math.expm1(math.log(delta) / n)  # the α for which N_{α,δ} = n
        if n0 is None or n < wanted:
            n0 = n + 1
        elif not n < whole_number("n0", n0, at_least=1) <= 2 * n:
            raise ValueError(f"n0 must lie in (N, 2N] = ({n}, {2 * n}] but got {n0}")
        return cls(k, alpha, delta, n, n0, n_available, n_instances, playoff, set_aside)

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
        """Return n_e = ⌈n_0 / 2^e⌉ + 1 (line 3), cut to what a finite space has left."""
        left = self.n_available
        sizes = []
        for e in range(1, self.n_epochs + 1):
            new = -(-self.n0 // 2**e)
            if left is not None:
                new = min(new, left)
                left -= new
            if new:
                sizes.append(new + 1)
        return sizes

    def with_budget(self, budget: int) -> Schedule:
        sizes = self.sizes()
        weights = self.weights()[: len(sizes)]
        total = math.fsum(weights)
        set_aside = min(self.playoff, math.floor(budget * PLAYOFF_SHARE)) if self.set_aside else 0
        if self.n_instances is not None:
            set_aside = min(set_aside, self.n_instances)
        epochs = []
        for e, (size, weight) in enumerate(zip(sizes, weights, strict=True), start=1):
            # Line 5 draws B / c_e instances; rounded down, as in the authors' code.
            epoch_budget = math.floor((budget - set_aside) * (weight / total))
            share = _share_kept_in(e, self.k)
            rounds = cse_rounds(
                size, k=self.k, budget=epoch_budget, share=share, n_instances=self.n_instances
            )
            epochs.append(Epoch(e, size, epoch_budget, rounds))
        return Schedule(
            budget=budget,
            k=self.k,
            alpha=self.alpha,
            delta=self.delta,
            n_candidates=self.n_candidates,
            n0=self.n0,
            epochs=tuple(epochs),
            playoff=self.playoff,
            set_aside=set_aside,
            n_available=self.n_available,
            n_instances=self.n_instances,
        )

    def minimum_budget(self) -> int:
        def suffices(budget: int) -> bool:
            epochs = self.with_budget(budget).epochs
            return all(round_.races_per_group for epoch in epochs for round_ in epoch.rounds)

        return _first_true(suffices, 1)

    def largest_budget(self, n_trials: int) -> int:
        if not self.sizes():  # nothing but θ_0: any budget does
            return max(1, n_trials // self.k)

        def too_large(budget: int) -> bool:
            # With few instances to go round, groups cannot grow for ever: more is then no use.
            no_use = self.n_instances is not None and budget > n_trials
            return no_use or self.with_budget(budget).n_trials > n_trials

        return max(1, _first_true(too_large, 1) - 1)


def _share_kept_in(epoch: int, k: int) -> Fraction:
    """Return what ρ_e = log2((e + k - 1) / e) of line 3 keeps, without rounding."""
    return Fraction(epoch, epoch + k - 1)


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
    if schedule.playoff:
        lines.append(_playoff_line(schedule))
    return "\n".join(lines)


def _playoff_line(schedule: Schedule) -> str:
    if not schedule.set_aside:
        return f"playoff on up to {schedule.playoff:,} instances, as far as races were saved"
    n_contestants = len(schedule.epochs) + 1
    steps = playoff_rounds(n_contestants, schedule.set_aside)
    halves = ", ".join(f"{step.group_size} on {step.races_per_group:,}" for step in steps)
    trials = playoff_trials(n_contestants, schedule.set_aside)
    return f"playoff of up to {n_contestants} on instances set aside: {halves} = {trials:,} trials"
