"""How much of a scenario's limits a pass of AC-Band may use."""

from __future__ import annotations

import dataclasses
import logging
import math
from dataclasses import dataclass
from typing import Any

from smac.scenario import Scenario

from acband_configspace.core.checks import probability, whole_number
from acband_configspace.core.schedule import SENSIBLE_RACES, Schedule, Supply
from acband_configspace.smac_plugin.configurations import Configurations

logger = logging.getLogger(__name__)

#: Trials of the first pass under a time limit, for each of the k racers: enough for a handful of
#: configurations, so that there is an answer soon.
FIRST_PASS_TRIALS = 50

#: A further pass on fewer trials than this would let a newcomer dethrone the winner by luck.
LEAST_FURTHER_TRIALS = 2 * SENSIBLE_RACES

#: With saved trials spent on further epochs, at most so many times the planned configurations are
#: drawn: for more, early stopping would have to save ten trials of eleven.
FURTHER_CONFIGURATIONS = 10


@dataclass(frozen=True)
class PassPlan:
    """The schedule of a pass, and the limit it was made for: raising it later adds a pass."""

    schedule: Schedule
    n_trials: int


@dataclass(frozen=True)
class Position:
    """Where a run is."""

    number: int
    """The pass, from 1."""
    schedule: Schedule
    """The plan of the pass."""
    epoch: int
    round: int
    n_races: int
    """Races of the pass that are over."""
    is_playoff: bool = False

    @property
    def n_epochs(self) -> int | None:
        """Epochs planned, None in one that was not: saved races bought it."""
        n_epochs = len(self.schedule.epochs)
        return n_epochs if self.epoch <= n_epochs else None

    @property
    def n_rounds(self) -> int | None:
        """Rounds planned of this epoch."""
        return None if self.n_epochs is None else len(self.schedule.epochs[self.epoch - 1].rounds)

    @property
    def share(self) -> float:
        """What share of the pass is over: rounds that ended early count in full."""
        sizes = [
            (epoch.index, number, round_.n_races)
            for epoch in self.schedule.epochs
            for number, round_ in enumerate(epoch.rounds, start=1)
        ]
        before = sum(size for epoch, r, size in sizes if (epoch, r) < (self.epoch, self.round))
        n_races = max(1, self.schedule.n_races)
        return min(1.0, max(before, self.n_races) / n_races)


class PassPlanner:
    """Plans pass after pass: one for all trials, or ever longer ones up to a time limit."""

    def __init__(
        self,
        scenario: Scenario,
        *,
        k: int,
        alpha: float | None,
        delta: float,
        n_candidates: int | None,
        n_epochs: int | None,
        budget: int | None,
        playoff: int,
    ) -> None:
        self._scenario = scenario
        self._timed = math.isfinite(min(scenario.walltime_limit, scenario.cputime_limit))
        self._k = whole_number("k", k, at_least=2)
        self._alpha = None if alpha is None else probability("alpha", alpha)
        self._delta = probability("delta", delta)
        self._n_candidates = (
            None if n_candidates is None else whole_number("n_candidates", n_candidates, at_least=1)
        )
        self._budget = None if budget is None else whole_number("budget", budget, at_least=1)
        self._fixed: dict[str, Any] = {
            "k": self._k,
            "delta": self._delta,
            "n_epochs": n_epochs,
            "playoff": whole_number("playoff", playoff, at_least=0),
            # Not from what early stopping saves: with several workers some of it is spent.
            "set_aside": True,
        }
        whole_number("n_trials", scenario.n_trials, at_least=2)

    @property
    def meta(self) -> dict[str, Any]:
        """The arguments, as SMAC's meta data has them."""
        return {
            **self._fixed,
            "alpha": self._alpha,
            "n_candidates": self._n_candidates,
            "budget": self._budget,
        }

    def plan(
        self,
        before: list[PassPlan],
        configurations: Configurations,
        *,
        supply: Supply,
        n_known: int,
        spend: str = "nothing",
    ) -> PassPlan | str:
        """Plan the pass after those before, or say why there is none."""
        limit = self._scenario.n_trials
        # Without what early stopping saved: how much that is depends on the number of workers,
        # and on interruptions.
        left = limit - sum(plan.schedule.n_trials for plan in before)
        if before:
            if not self._timed and limit <= before[-1].n_trials:
                return "all planned races are judged"
            if left < LEAST_FURTHER_TRIALS:
                return (
                    f"n_trials={limit} leaves {max(0, left)} trials that no pass was planned for, "
                    "too few for another pass"
                )
        schedule = self._fit(left, supply, number=len(before))
        n_wanted = n_known + schedule.n_configs
        n_at_most = n_wanted
        sizes = [parameter.size for parameter in self._scenario.configspace.values()]
        if spend != "nothing" and all(map(math.isfinite, sizes)):
            # How many there are must be known before further epochs ask for them.
            all_and_one = math.prod(map(int, sizes)) + 1
            n_at_most = max(n_wanted, min(FURTHER_CONFIGURATIONS * n_wanted, all_and_one))
        n_there = configurations.draw(n_at_most)
        if n_there < n_at_most:
            if n_there < n_wanted:
                logger.info(
                    "The space has %s configurations, fewer than planned: all are used.", n_there
                )
            fewer = dataclasses.replace(supply, n_available=n_there - n_known)
            schedule = self._fit(left, fewer, number=len(before))
        if not schedule.n_races:
            if not before:
                raise ValueError(
                    "configspace must have at least two configurations to choose from but has "
                    f"only {dict(configurations[0])}"
                )
            return "all configurations of the space have been raced"
        return PassPlan(schedule, limit)

    def _fit(self, left: int, supply: Supply, *, number: int) -> Schedule:
        """Return the largest schedule for this pass that fits into the trials left."""
        if self._budget is not None:
            schedule = Schedule.plan(
                self._budget * 2**number if self._timed else self._budget,
                alpha=self._alpha,
                n_candidates=self._n_candidates,
                supply=supply,
                **self._fixed,
            )
            if schedule.n_trials <= left:
                return schedule
            if number == 0:
                raise ValueError(
                    f"budget must fit into n_trials={left} but {self._budget} races are up to "
                    f"{schedule.n_trials} trials"
                )
        wanted = FIRST_PASS_TRIALS * self._k * 2**number if self._timed else left
        if self._alpha is None and self._n_candidates is None:
            return self._for_trials(min(left, wanted), supply, fixed=False)
        try:
            return self._for_trials(min(left, wanted), supply, fixed=True)
        except ValueError:
            if left > wanted:  # α asks for more than the first short pass has
                return self._for_trials(left, supply, fixed=True)
            if number == 0:
                raise
        return self._for_trials(left, supply, fixed=False)

    def _for_trials(self, n_trials: int, supply: Supply, *, fixed: bool) -> Schedule:
        return Schedule.for_trials(
            n_trials,
            alpha=self._alpha if fixed else None,
            n_candidates=self._n_candidates if fixed else None,
            supply=supply,
            **self._fixed,
        )
