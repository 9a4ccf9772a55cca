"""Who SMAC's incumbent is: who leads in the engine, or the lowest cost before a race is judged."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from ConfigSpace import Configuration
from smac.intensifier.abstract_intensifier import AbstractIntensifier
from smac.runhistory.dataclasses import TrajectoryItem, TrialValue
from smac.scenario import Scenario

from acband_configspace.core.ends import End
from acband_configspace.core.settings import Settings
from acband_configspace.smac_plugin.trial_values import cost_of, end_of


class LeaderIntensifier(AbstractIntensifier):
    """An intensifier whose incumbent is who leads, and whose trajectory is who led from when.

    Whoever knows the engine calls :meth:`follow` when another leads there, and :meth:`show` with
    every result.
    """

    def __init__(self, scenario: Scenario, settings: Settings, *, seed: int | None) -> None:
        self.settings = settings
        """Every option that decides how the search goes."""
        super().__init__(scenario=scenario, seed=seed)

    def reset(self) -> None:
        """Forget everything that happened."""
        super().reset()
        self._leaders: list[int] = []
        self._lowest: float = math.inf
        self._shown_at = (0, 0.0)

    @property
    @abstractmethod
    def n_finished(self) -> int:
        """How many trials have finished."""

    @abstractmethod
    def _costs_now(self, leaders: Sequence[int]) -> Sequence[float]:
        """Return what leaders cost by all that is known now; nothing before the run begins."""

    @property
    def trajectory(self) -> list[TrajectoryItem]:
        """Who led from when, and at what cost, estimated by all that is known now.

        The last item is the incumbent, also if its race is not judged yet.
        """
        costs = self._costs_now(self._leaders)
        for item, cost in zip(self._trajectory, costs, strict=False):
            item.costs = [cost]
        return [*self._trajectory, *self._shown_last()]

    @property
    def incumbents_changed(self) -> int:
        """How often the incumbent has changed."""
        return self._incumbents_changed + len(self._shown_last())

    def _shown_last(self) -> list[TrajectoryItem]:
        """Return the incumbent if its race is not judged yet: another may lead once it is."""
        if not self._incumbents:
            return []
        (config,) = self._incumbents
        id_ = self.runhistory.config_ids.get(config)
        last = self._trajectory[-1:]
        if id_ is None or [item.config_ids for item in last] == [[id_]]:
            return []
        n_trials, walltime = self._shown_at
        return [
            TrajectoryItem(
                config_ids=[id_],
                costs=[self._mean_cost(config)],
                trial=max([n_trials, *(item.trial for item in last)]),
                walltime=max([walltime, *(item.walltime for item in last)]),
            )
        ]

    def save(self, filename: str | Path) -> None:  # noqa: D102
        _ = self.trajectory  # whose costs are estimated when it is looked at
        super().save(filename)

    def update_incumbents(self, config: Configuration) -> None:
        """Do nothing: the engine says who leads.

        SMAC would compare mean costs over the instances that two configurations share, whatever
        they are, and drops the incumbent for a challenger with one lucky run.
        """

    def follow(self, number: int, leader: Configuration, n_trials: int, walltime: float) -> None:
        """Make a new leader the incumbent, as of that moment."""
        self._leaders.append(number)
        if not (self._lowest_leads and self._cost_of_incumbent < self._mean_cost(leader)):
            self._incumbents = [leader]
        if len(self._leaders) <= len(self._trajectory):  # SMAC has it from an earlier process
            return
        self._incumbents_changed += 1
        self._trajectory.append(
            TrajectoryItem(
                config_ids=[self.runhistory.get_config_id(leader)],
                costs=[math.nan],  # see trajectory
                trial=n_trials,
                walltime=walltime,
            )
        )

    def show(self, config: Configuration, value: TrialValue) -> None:
        """Make a configuration the incumbent before its race is judged, if that is due.

        Until a race is judged it is the one with the lowest cost; where one cost says all, later
        on as well. In the paper's schedule, later on, it is one whose cost makes SMAC end the run
        in the middle of a race.
        """
        if end_of(value) is not End.FINISHED:
            return
        cost = cost_of(value)
        if not self._leaders:
            is_due = cost < self._lowest
        elif self._lowest_leads:
            is_due = cost < self._cost_of_incumbent
        else:
            is_due = self._one_cost and cost < self._threshold <= self._cost_of_incumbent
        if is_due:
            self._lowest = cost
            self._incumbents = [config]
            self._shown_at = (self.n_finished, self.used_walltime)

    @property
    def _lowest_leads(self) -> bool:
        """Whether the lowest cost leads at once."""
        return self._one_cost and bool(self.settings.memory)

    @property
    def _one_cost(self) -> bool:
        """Whether one cost says all of a configuration."""
        return self._scenario.deterministic and len(self._scenario.instances or [None]) == 1

    @property
    def _threshold(self) -> float:
        return float(np.ravel(self._scenario.termination_cost_threshold)[0])

    @property
    def _cost_of_incumbent(self) -> float:
        return min(map(self._mean_cost, self._incumbents), default=math.inf)

    def _mean_cost(self, config: Configuration) -> float:
        return float(np.max(self.runhistory.average_cost(config)))
