"""The passes of the paper's schedule: one for all trials, or ever longer ones up to a time limit.

Numbers only. The default search plans its own passes: see ``search``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from acband_configspace.core.checks import whole_number
from acband_configspace.core.schedule import SENSIBLE_RACES, Schedule, Supply
from acband_configspace.core.settings import Settings

#: Trials of the first pass under a time limit, for each of the k racers: enough for a handful of
#: configurations, so that there is an answer soon.
FIRST_PASS_TRIALS = 50

#: A further pass on fewer trials than this would let a newcomer dethrone the winner by luck.
LEAST_FURTHER_TRIALS = 2 * SENSIBLE_RACES

#: With saved trials spent on further epochs, at most so many times the planned configurations are
#: drawn: for more, early stopping would have to save ten trials of eleven.
FURTHER_CONFIGURATIONS = 10


@dataclass(frozen=True)
class SchedulePlan:
    """The schedule of a pass, and the limit it was made for: raising it later adds a pass."""

    schedule: Schedule
    n_trials: int

    def __str__(self) -> str:
        return str(self.schedule)


@dataclass(frozen=True)
class SchedulePlanner:
    """Plans pass after pass.

    Parameters
    ----------
    settings : Settings
        Those of the paper's schedule.
    n_trials : int
        How many trials there are.
    timed : bool
        Whether a time limit ends the run: passes then double.
    draw : callable
        Asked for n configurations, returns how many of them there are.
    n_in_space : int | None
        How many configurations the space has at most, None if it is not finite. In a finite space
        all are counted before further epochs ask for them.
    """

    settings: Settings
    n_trials: int
    timed: bool
    draw: Callable[[int], int]
    n_in_space: int | None = None

    def __post_init__(self) -> None:
        whole_number("n_trials", self.n_trials, at_least=2)

    def plan(
        self, before: Sequence[SchedulePlan], *, supply: Supply, n_known: int
    ) -> SchedulePlan | str:
        """Plan the pass after those before, or say why there is none."""
        limit = self.n_trials
        # Without what early stopping saved: how much that is depends on the number of workers,
        # and on interruptions.
        left = limit - sum(plan.schedule.n_trials for plan in before)
        if before:
            if not self.timed and limit <= before[-1].n_trials:
                return "all planned races are judged"
            if left < LEAST_FURTHER_TRIALS:
                return (
                    f"n_trials={limit} leaves {max(0, left)} trials that no pass was planned for, "
                    "too few for another pass"
                )
        if self.n_in_space is not None:
            n_left = max(0, self.n_in_space - n_known)
            supply = dataclasses.replace(supply, n_available=n_left)
        try:
            schedule = self._fit(left, supply, number=len(before))
        except ValueError:
            if self.n_in_space is None:
                raise
            # Conditions and forbidden clauses may leave fewer: count those that could race.
            n_left = self.draw(n_known + left) - n_known
            supply = dataclasses.replace(supply, n_available=n_left)
            schedule = self._fit(left, supply, number=len(before))
        n_wanted = n_known + schedule.n_configs
        n_at_most = self._n_at_most(n_wanted)
        n_there = self.draw(n_at_most)
        if n_there < n_at_most or n_at_most > n_wanted:  # further epochs have what is there
            fewer = dataclasses.replace(supply, n_available=n_there - n_known)
            schedule = self._fit(left, fewer, number=len(before))
        if not schedule.n_races:
            if not before:
                raise ValueError(
                    "the space must have at least two configurations to choose from but has one"
                )
            return "all configurations of the space have been raced"
        return SchedulePlan(schedule, limit)

    def _n_at_most(self, n_wanted: int) -> int:
        """Return how many configurations may be asked for, further epochs included."""
        if self.settings.spend == "nothing" or self.n_in_space is None:
            return n_wanted
        return max(n_wanted, min(FURTHER_CONFIGURATIONS * n_wanted, self.n_in_space + 1))

    def _fit(self, left: int, supply: Supply, *, number: int) -> Schedule:
        """Return the largest schedule for this pass that fits into the trials left."""
        settings = self.settings
        if settings.budget is not None:
            budget = settings.budget * 2**number if self.timed else settings.budget
            schedule = Schedule.plan(budget, **self._arguments(supply, fixed=True))
            if schedule.n_trials <= left:
                return schedule
            if number == 0:
                raise ValueError(
                    f"budget must fit into n_trials={left} but {settings.budget} races are up to "
                    f"{schedule.n_trials} trials"
                )
        first = FIRST_PASS_TRIALS * settings.racers(racing=True)
        fixed = settings.alpha is not None or settings.n_candidates is not None
        if fixed:
            # α may ask for more than a short pass has; after the first, it must not end the run.
            least = Schedule.least_trials(**self._arguments(supply, fixed=True))
            first, fixed = max(first, least), number == 0 or least <= left
        n_trials = min(left, first * 2**number) if self.timed else left
        return Schedule.for_trials(n_trials, **self._arguments(supply, fixed=fixed))

    def _arguments(self, supply: Supply, *, fixed: bool) -> dict[str, Any]:
        settings = self.settings
        return {
            "k": settings.racers(racing=True),
            "delta": settings.delta,
            "n_epochs": settings.n_epochs,
            "playoff": settings.playoff,
            # Not from what early stopping saves: with several workers some of it is spent.
            "set_aside": True,
            "alpha": settings.alpha if fixed else None,
            "n_candidates": settings.n_candidates if fixed else None,
            "supply": supply,
        }
