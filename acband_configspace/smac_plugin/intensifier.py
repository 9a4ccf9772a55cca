"""AC-Band as a SMAC intensifier: what SMAC asks of one, on top of the course of the run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal

from ConfigSpace import Configuration
from smac.callback.callback import Callback
from smac.intensifier.abstract_intensifier import AbstractIntensifier
from smac.runhistory.dataclasses import InstanceSeedKey, TrialInfo, TrialValue
from smac.runhistory.runhistory import RunHistory
from smac.scenario import Scenario

from acband_configspace.core.instances import InstanceKey
from acband_configspace.core.race import Race
from acband_configspace.core.schedule import Schedule
from acband_configspace.core.statistics import Statistic, get_statistic
from acband_configspace.core.stopping import checked_early_stopping
from acband_configspace.smac_plugin.configurations import Configurations
from acband_configspace.smac_plugin.course import Course, History, Rules
from acband_configspace.smac_plugin.identity import describe
from acband_configspace.smac_plugin.passes import PassPlan, PassPlanner, Position
from acband_configspace.smac_plugin.trials import RaceRecord, refuse_unsupported, validation_keys
from acband_configspace.smac_plugin.waiting import RaceCallback

RaceListener = Callable[[str, Race, InstanceKey, Sequence[TrialValue]], None]


class ACBandIntensifier(AbstractIntensifier):
    """AC-Band (Brandt et al., AAAI 2023) as an intensifier for SMAC 2.

    It races k configurations on an instance, again and again on fresh instances, keeps the best
    of each group, and so on until one is left; epoch by epoch new random configurations challenge
    the winner. No surrogate model is used.

    Parameters
    ----------
    scenario : Scenario
        ``n_trials`` is the budget. With ``walltime_limit`` or ``cputime_limit`` the run is made
        in passes of doubling budget, each starting from the last winner, up to the limit.
    k : int
        How many configurations race on an instance.
    alpha, delta : float
        With probability 1 - δ one of the best share α of all configurations is drawn. With
        ``alpha=None`` it is as small as ``n_trials`` allows.
    n_candidates : int | None
        How many configurations to draw, instead of what α and δ ask for.
    n_epochs : int | None
        At most so many epochs; fewer mean more races for each. The paper's number by default.
    budget : int | None
        The number of races, instead of the most that fit into ``n_trials``.
    statistic : str | Statistic
        What ranks a group: "wins" (the paper's), "mean", "quantile", or an object of one's own.
    early_stopping : float | None
        When a group is decided. 0: once its remaining races cannot change who survives, which
        saves trials and changes nothing else. A level above 0: also once a test at that level
        tells its survivors from the rest. None: after all its races, as in the paper.
    playoff : int
        On how many fresh instances, at most, the winners of the epochs and θ_0 meet in the end,
        judged by their mean cost; at most a quarter of the budget is set aside for it, and with a
        budget too small for 25 it does not take place. 0, the paper: the last epoch's winner it is.
    spend : "nothing" | "configurations"
        What becomes of trials that early stopping saved: they remain, or buy further epochs. With
        several workers fewer are saved, so the last of these epochs may then find no room.
    first : "default" | "random"
        θ_0: the space's default configuration, or a random one as in the paper.
    seed : int | None
        The scenario's by default.

    Limits: one objective, no ``min_budget``/``max_budget``, no adaptive capping.
    """

    def __init__(
        self,
        scenario: Scenario,
        *,
        k: int = 2,
        alpha: float | None = None,
        delta: float = 0.05,
        n_candidates: int | None = None,
        n_epochs: int | None = None,
        budget: int | None = None,
        statistic: str | Statistic = "wins",
        early_stopping: float | None = 0.0,
        playoff: int = 100,
        spend: Literal["nothing", "configurations"] = "nothing",
        first: Literal["default", "random"] = "default",
        seed: int | None = None,
    ) -> None:
        refuse_unsupported(scenario)
        if first not in ("default", "random"):
            raise ValueError(f"first must be 'default' or 'random' but got {first!r}")
        self._first = first
        self._statistic = get_statistic(statistic)
        self._early_stopping = checked_early_stopping(early_stopping, self._statistic)
        self._spend = spend
        self.racing = False
        """Whether the runner stops losers, so that their results cannot be used again."""
        self._planner = PassPlanner(
            scenario,
            k=k,
            alpha=alpha,
            delta=delta,
            n_candidates=n_candidates,
            n_epochs=n_epochs,
            budget=budget,
            playoff=playoff,
        )
        self.additional_configs: Sequence[Configuration] | None = None
        """What races from the start besides θ_0; None: what a user added to the initial design."""
        self.race_listener: RaceListener | None = None
        """Called with each race that is over, before anything is decided on it."""
        self.plan_listener: Callable[[PassPlan], None] | None = None
        """Called with the plan of each pass before it starts."""
        super().__init__(scenario=scenario, seed=seed)

    def reset(self) -> None:
        """Forget everything that happened."""
        super().reset()
        self._course: Course | None = None
        self._begun_with: RunHistory | None = None
        self._history = History()
        self._n_incumbents = 0

    # --- what SMAC wants to know -------------------------------------------------------------

    @property
    def meta(self) -> dict[str, Any]:  # noqa: D102
        return {
            **super().meta,
            **self._planner.meta,
            "statistic": _name_of(self._statistic),
            "early_stopping": self._early_stopping,
            "spend": self._spend,
            "first": self._first,
            "racing": self.racing,
        }

    @property
    def uses_seeds(self) -> bool:  # noqa: D102
        return True

    @property
    def uses_budgets(self) -> bool:  # noqa: D102
        return False

    @property
    def uses_instances(self) -> bool:  # noqa: D102
        return self._scenario.instances is not None

    @property
    def uses_cutoffs(self) -> bool:  # noqa: D102
        return False

    def get_callback(self) -> Callback:
        """Return what makes SMAC wait for outcomes, and brings them here."""
        return RaceCallback(self)

    def get_instance_seed_keys_of_interest(
        self, *, validate: bool = False, seed: int | None = None
    ) -> list[InstanceSeedKey]:
        """Return what to validate on: all instances, or fresh seeds where there are none."""
        return validation_keys(self._scenario, self._scenario.instances, seed)

    def update_incumbents(self, config: Configuration) -> None:
        """Do nothing: the incumbent is the winner of an epoch, not the lowest mean cost.

        SMAC would compare mean costs over the instances that two configurations share, but groups
        race on instances of their own.
        """

    def get_state(self) -> dict[str, Any]:  # noqa: D102
        course, ids = self._running, self.runhistory.config_ids
        return {
            "n_races": course.n_races,
            "plans": [str(plan.schedule).splitlines() for plan in course.plans],
            "epoch_winners": [
                [ids[course.configurations[number]] for number in winners]
                for winners in course.epoch_winners
            ],
            "finished": course.finished,
        }

    def __iter__(self) -> Iterator[TrialInfo]:
        """Yield the trials of races that may run now; ends when it has to wait, or is finished.

        The callback sees to it that SMAC asks only when there is something to be had.
        """
        while self.fill():
            yield self._running.pop_trial()

    # --- the run -----------------------------------------------------------------------------

    @property
    def schedule(self) -> Schedule:
        """The plan of the current pass; there is one before anything runs."""
        return self._running.plans[-1].schedule

    @property
    def configurations(self) -> Configurations:
        """The configurations by their numbers."""
        return self._running.configurations

    @property
    def finished(self) -> str | None:
        """Why there is nothing left to race, None while there is."""
        return None if self._course is None else self._course.finished

    @property
    def n_races(self) -> int:
        """Races that are over."""
        return 0 if self._course is None else self._course.n_races

    @property
    def epoch_winners(self) -> list[tuple[int, ...]]:
        """The numbers of the configurations that won the epochs so far, pass by pass."""
        return self._running.epoch_winners

    @property
    def plans(self) -> list[PassPlan]:
        """The plans of all passes so far."""
        return self._running.plans

    @property
    def position(self) -> Position:
        """Where the run is."""
        return self._running.position

    def replay(self, plans: Sequence[PassPlan], races: Sequence[RaceRecord]) -> None:
        """Be ready to continue a recorded run: ``fill`` will take its races as they are."""
        self._history = History(plans, races)
        self._course = None

    def fill(self) -> bool:
        """Open the next race unless trials are waiting to be handed out; say whether any are."""
        return self._running.fill()

    def hand_out_again(self) -> None:
        """Queue the trials that were handed out and whose results will not come any more."""
        self._running.hand_out_again()

    def pop_needless(self) -> list[str]:
        """Return the races that are running but whose groups have been decided without them."""
        return self._running.pop_needless()

    def record(self, info: TrialInfo, value: TrialValue) -> None:
        """Take in the result of a trial; the last one of a race completes it."""
        number = self.configurations.number_of(info.config)
        if number is None or info.seed is None:
            return  # told without being asked: SMAC keeps it, AC-Band has no use for it
        key = InstanceKey(info.instance, info.seed)
        self._running.record(number, key, value, race=info.additional_info.get("race"))

    # --- what the course of the run tells ----------------------------------------------------

    def planned(self, plan: PassPlan) -> None:
        """Pass on the plan of a pass before it starts."""
        if self.plan_listener is not None:
            self.plan_listener(plan)

    def raced(self, name: str, race: Race, key: InstanceKey, values: Sequence[TrialValue]) -> None:
        """Pass on a race that is over, before anything is decided on it."""
        if self.race_listener is not None:
            self.race_listener(name, race, key, values)

    def judged(self, record: RaceRecord | None) -> None:
        """Make the leader the incumbent: since when, a race of an earlier process knows."""
        number = self._running.leader
        if number is None:
            return
        config = self.configurations[number]
        if self._incumbents and self._incumbents[0] is config:
            return
        self._n_incumbents += 1
        if self._n_incumbents > len(self._trajectory):
            self._update_trajectory([config])
            if record is not None:
                item = self._trajectory[-1]
                item.walltime, item.trial = record.walltime, record.n_trials
        else:  # SMAC loaded the trajectory of an earlier process, which is gone through again
            self._incumbents = [config]

    # --- the beginning -----------------------------------------------------------------------

    @property
    def _running(self) -> Course:
        # A schedule that was looked at before there was a facade knew neither what the user adds
        # nor what a run history holds.
        if self._course is None or self._begun_with is not self._runhistory:
            self._begun_with = self._runhistory
            self._course = self._begin()
        return self._course

    def _begin(self) -> Course:
        return Course(
            self._scenario,
            self._planner,
            Rules(
                statistic=self._statistic,
                early_stopping=self._early_stopping,
                spend=self._spend,
                racing=self.racing,
                seed=self._seed,
            ),
            Configurations(self._scenario.configspace, self._given(), seed=self._seed),
            observer=self,
            runhistory=self._runhistory,
            history=self._history,
        )

    def _given(self) -> list[Configuration]:
        """Return θ_0 and what the user adds: SMAC's initial design without what it sampled."""
        given = []
        if self._first == "default":
            given.append(self._scenario.configspace.get_default_configuration())
            given[0].origin = "Initial Design: Default"
        if self.additional_configs is not None:
            return [*given, *self.additional_configs]
        if self._config_selector is None:
            return given
        # Designs name themselves in the origin of what they sample, "Initial Design: Sobol";
        # a user's own configuration has another one, or "Initial design" if it had none.
        design = self._config_selector._initial_design_configs
        return [*given, *(c for c in design if not str(c.origin).startswith("Initial Design:"))]


def _name_of(statistic: Statistic) -> str:
    text = repr(statistic)
    # A user's own object may print with its address, which is another in the next process.
    return describe(statistic) if " at 0x" in text else text
