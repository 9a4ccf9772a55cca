"""The paper's formulas as one frozen value, printable before anything runs.

This module knows numbers only: no configurations, no instances, no randomness. "Algorithm" and
"line" refer to the paper's pseudocode (Brandt et al., AC-Band, AAAI 2023), "the authors' code"
to its published experiments.
"""

from __future__ import annotations

import html
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from acband_configspace.core.checks import whole_number
from acband_configspace.core.epochs import (
    MOST_CANDIDATES,
    EpochOutline,
    first_true,
    last_true,
    least_playoff,
    share_kept_in,
)
from acband_configspace.core.epochs import UNLIMITED as UNLIMITED
from acband_configspace.core.epochs import Supply as Supply
from acband_configspace.core.rounds import EpochPlan as EpochPlan
from acband_configspace.core.rounds import RoundPlan as RoundPlan
from acband_configspace.core.rounds import cse_rounds as cse_rounds
from acband_configspace.core.rounds import playoff_rounds, playoff_trials
from acband_configspace.core.rounds import share_kept as share_kept
from acband_configspace.core.rounds import survivors as survivors

#: With ``alpha=None``, :meth:`Schedule.for_trials` draws as many configurations as leave every
#: group at least this many races. Say the better of two configurations wins three races of four:
#: it then leads after 5 races with a probability of 0.90, after 3 only with 0.84, and going on to
#: 9 races for 0.95 would cost nearly half of the configurations.
SENSIBLE_RACES = 5


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
    epochs: tuple[EpochPlan, ...]
    playoff: int = 0
    """On how many instances, at most, the epoch winners meet in the end."""
    set_aside: int = 0
    """How many races of the budget are kept from the epochs for the playoff.

    If none are, the playoff uses what early stopping saved.
    """

    @classmethod
    def plan(
        cls,
        budget: int,
        *,
        k: int = 2,
        alpha: float | None = 0.05,
        delta: float = 0.05,
        n_candidates: int | None = None,
        n0: int | None = None,
        n_epochs: int | None = None,
        supply: Supply = UNLIMITED,
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
            With probability 1 - δ one of the best share α of all configurations is drawn. With
            ``alpha=None`` α is as small as the budget allows, that is, as many are drawn as
            leave each group :data:`SENSIBLE_RACES` races.
        n_candidates : int | None
            How many configurations to draw (N) instead of what α and δ ask for.
        n0 : int | None
            n_0, in (N, 2N]; N + 1 by default. A larger one means fewer epochs.
        n_epochs : int | None
            At most so many epochs, by the least n_0 that does it: one epoch is n_0 = 2N.
        supply : Supply
            What there is: a finite space with fewer configurations than N is used up.
        playoff : int
            On how many instances, at most, the epoch winners meet in the end.
        set_aside : bool
            Whether the playoff's races are taken out of the budget beforehand, up to a quarter
            of it. Otherwise it gets what early stopping saved.
        """
        budget = whole_number("budget", budget, at_least=1)
        outline_for = partial(
            EpochOutline.checked, k, alpha, delta, n0=n0, n_epochs=n_epochs,
            supply=supply, playoff=playoff, set_aside=set_aside,
        )  # fmt: skip
        if alpha is None and n_candidates is None:
            _refuse_n0(n0)
            n_candidates = _most_candidates(
                lambda n: _schedule(outline_for(n), budget), supply, at_most=budget * k
            )
        outline = outline_for(n_candidates)
        if budget < (least := outline.minimum_budget):
            raise ValueError(
                f"budget must be at least {least} races for {outline.n_candidates} configurations "
                f"and k={outline.k} but got {budget}"
            )
        return _schedule(outline, budget)

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
        n_epochs: int | None = None,
        supply: Supply = UNLIMITED,
        playoff: int = 0,
        set_aside: bool = True,
    ) -> Schedule:
        """Plan the largest budget that starts no more than ``n_trials`` racers.

        With ``alpha=None`` (and no ``n_candidates``) α is as small as ``n_trials`` allows, that
        is, as many configurations are drawn as leave each group :data:`SENSIBLE_RACES` races.
        """
        n_trials = whole_number("n_trials", n_trials, at_least=2)
        outline_for = partial(
            EpochOutline.checked, k, alpha, delta, n0=n0, n_epochs=n_epochs,
            supply=supply, playoff=playoff, set_aside=set_aside,
        )  # fmt: skip

        def schedule_for(n_candidates: int | None) -> Schedule:
            outline = outline_for(n_candidates)
            return _schedule(outline, _largest_budget(outline, n_trials))

        if alpha is None and n_candidates is None:
            _refuse_n0(n0)

            def schedule_within(n: int) -> Schedule | None:
                schedule = schedule_for(n)
                return schedule if schedule.n_trials <= n_trials else None

            # With too few trials even for two configurations, these two race on what there is.
            n_candidates = _most_candidates(schedule_within, supply, at_most=n_trials)
        outline = outline_for(n_candidates)
        least = _schedule(outline, outline.minimum_budget).n_trials
        if n_trials < least:
            n_configs = outline.n_candidates + supply.n_given - 1
            raise ValueError(
                f"n_trials must be at least {least} for {n_configs} configurations "
                f"and k={outline.k} but got {n_trials}"
            )
        return schedule_for(n_candidates)

    @classmethod
    def least_trials(cls, *, k: int, alpha: float | None, delta: float, **options: Any) -> int:
        """Return the least number of trials for which every group of a plan has a race."""
        outline = EpochOutline.checked(k, alpha, delta, **options)
        return _schedule(outline, outline.minimum_budget).n_trials

    @staticmethod
    def minimum_budget(
        *,
        k: int = 2,
        alpha: float = 0.05,
        delta: float = 0.05,
        n_candidates: int | None = None,
        n0: int | None = None,
        n_epochs: int | None = None,
        supply: Supply = UNLIMITED,
    ) -> int:
        """Return the least budget that gives every group of every round at least one race."""
        outline = EpochOutline.checked(
            k, alpha, delta, n_candidates, n0, n_epochs=n_epochs, supply=supply
        )
        return outline.minimum_budget

    @property
    def n_configs(self) -> int:
        """New configurations drawn over all epochs; θ_0 and others that are given come on top."""
        if not self.epochs:
            return 0
        return sum(epoch.n_configs - 1 for epoch in self.epochs) - (self.supply.n_given - 1)

    @property
    def n_races(self) -> int:
        """Races, hence fresh instances, at most: rounding down leaves it below the budget."""
        return sum(epoch.n_races for epoch in self.epochs) + self.set_aside

    @property
    def n_racers(self) -> int:
        """Racers of all races."""
        return self._n_racers_of_epochs + self._n_racers_of_playoff

    @property
    def n_trials(self) -> int:
        """Racers started at most; where results are kept, none is run again."""
        racers = self._n_racers_of_epochs
        if self.supply.results_kept and self.supply.n_instances is not None:
            n_configs = self.n_configs + self.supply.n_given
            racers = min(racers, n_configs * self.supply.n_instances)
        return racers + self._n_racers_of_playoff

    @property
    def _n_racers_of_epochs(self) -> int:
        return sum(epoch.n_trials for epoch in self.epochs)

    @property
    def _n_racers_of_playoff(self) -> int:
        return playoff_trials(len(self.epochs) + 1, self.set_aside)

    def playoff_length(self, n_contestants: int, n_races: int, n_trials: int) -> int:
        """Return on how many instances contestants can meet with so many races and runs left."""
        # What is set aside, and no more: a run with several workers has started some of the races
        # that early stopping saves, and n_trials must hold for it too.
        most = min(self.set_aside or self.playoff, n_races)
        if self.supply.n_instances is not None:
            most = min(most, self.supply.n_instances)
        length = last_true(lambda n: playoff_trials(n_contestants, n) <= n_trials, 0, most)
        return length if n_contestants > 1 and length >= least_playoff(self.playoff) else 0

    def further_epoch(
        self, index: int, *, n_drawn: int, n_races: int, n_trials: int
    ) -> EpochPlan | None:
        """Plan one more epoch from what is left, as many races a configuration as planned so far.

        None if that leaves no new configuration, or too few races for a group.
        """
        budget = min(n_races, n_trials // self.k)
        n_new = self.n_configs * budget // self.budget
        if self.supply.n_available is not None:
            n_new = min(n_new, self.supply.n_available - n_drawn)
        if n_new < 1:
            return None
        rounds = cse_rounds(
            n_new + 1,
            k=self.k,
            budget=budget,
            share=share_kept_in(index, self.k),
            n_instances=self.supply.n_instances,
        )
        if min(round_.races_per_group for round_ in rounds) < _sensible_races(self.supply):
            return None
        return EpochPlan(index, n_new + 1, budget, rounds)

    def __str__(self) -> str:
        return _as_table(self)

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"  # how a notebook shows it


def sufficient_budget(
    k: int,
    alpha: float,
    delta: float,
    *,
    n_candidates: int | None = None,
    n0: int | None = None,
    n_epochs: int | None = None,
    crude: bool = False,
) -> float:
    """Return the budget that Theorem 1 calls sufficient, divided by the problem's own γ̄⁻¹.

    γ̄⁻¹ says how many races tell configurations apart: one plus the races after which the
    statistic is within half a suboptimality gap of its limit. Multiply by your guess of it.

    With ``crude=True`` the appendix' cruder bound, (n_0 + 2^(E+1)) in place of n_0. The theorem as
    printed drops the term (2E(C_2 + C_3) - C_1 E(E + 1)) / k that its proof arrives at; the crude
    bound covers it.
    """
    outline = EpochOutline.checked(k, alpha, delta, n_candidates, n0, n_epochs=n_epochs)
    configurations = outline.n0 + (2 ** (outline.n_epochs + 1) if crude else 0)
    return configurations / outline.k * math.fsum(outline.weights())


def _schedule(outline: EpochOutline, budget: int) -> Schedule:
    n_set_aside = outline.n_set_aside(budget)
    takes_place = n_set_aside > 0 or not outline.set_aside
    return Schedule(
        budget=budget,
        k=outline.k,
        alpha=outline.alpha,
        delta=outline.delta,
        n_candidates=outline.n_candidates,
        n0=outline.n0,
        supply=outline.supply,
        epochs=outline.epochs(budget),
        playoff=outline.playoff if takes_place else 0,
        set_aside=n_set_aside,
    )


def _refuse_n0(n0: int | None) -> None:
    if n0 is not None:
        raise ValueError(f"n0 needs alpha or n_candidates to be given too but got n0={n0!r}")


def _most_candidates(
    schedule_for: Callable[[int], Schedule | None], supply: Supply, *, at_most: int
) -> int:
    """Return for how many configurations every group still gets a sensible number of races."""
    sensible = _sensible_races(supply)

    def fits(n: int) -> bool:
        schedule = schedule_for(n)
        return schedule is not None and all(
            round_.races_per_group >= sensible
            for epoch in schedule.epochs
            for round_ in epoch.rounds
        )

    most = min(at_most, MOST_CANDIDATES)
    if supply.n_available is not None:
        most = min(most, supply.n_available)
    return last_true(fits, 1, max(1, most))


def _sensible_races(supply: Supply) -> int:
    """Return how many races a group should have: no more than there are instances."""
    return min(SENSIBLE_RACES, supply.n_instances or SENSIBLE_RACES)


def _largest_budget(outline: EpochOutline, n_trials: int) -> int:
    """Return the largest budget for ``n_trials`` that is of use."""
    if not outline.sizes():  # θ_0 is all there is, and no budget is of any use
        return 1
    n_instances = outline.supply.n_instances

    def of_no_use(budget: int) -> bool:
        if n_instances is not None:
            rounds = [r for epoch in outline.epochs(budget - 1) for r in epoch.rounds]
            if all(r.races_per_group == n_instances for r in rounds):
                return True
        return _schedule(outline, budget).n_trials > n_trials

    # Where races are set aside for the first time, trials become fewer: a playoff takes less.
    start = outline.first_with_playoff
    if start is not None and not of_no_use(start):
        return first_true(of_no_use, start) - 1
    return max(1, first_true(of_no_use, 1) - 1)


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
