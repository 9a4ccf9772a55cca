"""AC-Band as a SMAC intensifier: it turns races into trials, and trials into outcomes."""

from __future__ import annotations

import logging
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from ConfigSpace import Configuration
from smac.callback.callback import Callback
from smac.intensifier.abstract_intensifier import AbstractIntensifier
from smac.runhistory.dataclasses import InstanceSeedKey, TrialInfo, TrialValue
from smac.runhistory.enumerations import StatusType
from smac.scenario import Scenario

from acband_configspace.acband import acband
from acband_configspace.elimination import Contest
from acband_configspace.errors import RunDiffersError
from acband_configspace.instances import InstanceKey, Instances
from acband_configspace.race import Race
from acband_configspace.schedule import Schedule, Supply
from acband_configspace.smac_plugin.configurations import Configurations
from acband_configspace.smac_plugin.passes import PassPlan, PassPlanner, Position
from acband_configspace.smac_plugin.trials import (
    RaceRecord,
    is_cancelled,
    is_censored,
    outcome_of,
    refuse_crashed,
    refuse_unsupported,
    succeeded,
    validation_keys,
)
from acband_configspace.smac_plugin.waiting import RaceCallback
from acband_configspace.statistics import Statistic, get_statistic
from acband_configspace.stopping import checked_early_stopping
from acband_configspace.streaming import RaceStream

logger = logging.getLogger(__name__)


RaceListener = Callable[[str, Race, InstanceKey, Sequence[TrialValue]], None]


@dataclass
class _OpenRace:
    """A race that was handed out; a value is None until it is known."""

    name: str
    race: Race
    key: InstanceKey
    stream: RaceStream
    values: list[TrialValue | None]


@dataclass
class _Pass:
    """One run through a schedule."""

    number: int
    plan: PassPlan
    stream: RaceStream
    n_known: int
    """Configurations that have raced by the end of this round: the next pass counts on here."""
    next_instance: int
    """The first instance that no round so far was given."""
    n_races_before: int
    """Races that were over when it started."""
    contest: Contest | None = None
    keys: list[list[InstanceKey]] = field(default_factory=list)
    """What the groups of the contest race on."""


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
        What becomes of trials that early stopping saved: they remain, or buy further epochs.
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
        self._instances = Instances(
            self._scenario.instances,
            deterministic=self._scenario.deterministic,
            seed=self._seed,
        )
        self._configurations: Configurations | None = None
        self._in_facade = False
        self._passes: list[_Pass] = []
        self._queue: deque[TrialInfo] = deque()
        self._awaited: dict[tuple[int, InstanceKey], list[tuple[_OpenRace, int]]] = {}
        self._results: dict[tuple[int, InstanceKey], TrialValue] = {}
        self._inherited: set[tuple[int, InstanceKey]] = set()
        self._recorded_races: dict[str, RaceRecord] = {}
        self._recorded_plans: list[PassPlan] = []
        self._n_started = 0
        self._n_races = 0
        self._n_incumbents = 0
        self._n_successes: Counter[int] = Counter()
        self._finished: str | None = None

    # --- what SMAC wants to know -------------------------------------------------------------

    @property
    def meta(self) -> dict[str, Any]:  # noqa: D102
        return {
            **super().meta,
            **self._planner.meta,
            "statistic": repr(self._statistic),
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
        ids = self.runhistory.config_ids
        return {
            "n_races": self._n_races,
            "plans": [str(done.plan.schedule).splitlines() for done in self._passes],
            "epoch_winners": [
                [ids[self.configurations[number]] for number in done.stream.epoch_winners]
                for done in self._passes
            ],
            "finished": self._finished,
        }

    # --- the run -----------------------------------------------------------------------------

    @property
    def schedule(self) -> Schedule:
        """The plan of the current pass; there is one before anything runs."""
        self._begin()
        return self._passes[-1].plan.schedule

    @property
    def configurations(self) -> Configurations:
        """The configurations by their numbers."""
        self._begin()
        assert self._configurations is not None
        return self._configurations

    @property
    def finished(self) -> str | None:
        """Why there is nothing left to race, None while there is."""
        return self._finished

    @property
    def n_races(self) -> int:
        """Races that are over."""
        return self._n_races

    @property
    def plans(self) -> list[PassPlan]:
        """The plans of all passes so far."""
        self._begin()
        return [done.plan for done in self._passes]

    @property
    def position(self) -> Position:
        """Where the run is."""
        self._begin()
        current = self._passes[-1]
        # A pass that is over has no contest any more; its last one tells where it ended.
        contest = current.stream.contest or current.contest
        return Position(
            number=current.number,
            schedule=current.plan.schedule,
            epoch=contest.epoch if contest else 1,
            round=contest.round if contest else 1,
            n_races=self._n_races - current.n_races_before,
            is_playoff=contest is not None and contest.is_playoff,
        )

    def replay(
        self, plans: Sequence[PassPlan], races: Sequence[RaceRecord], *, n_started: int
    ) -> None:
        """Be ready to continue a recorded run: ``fill`` will take its races as they are."""
        self._recorded_plans = list(plans)
        self._recorded_races = {race.name: race for race in races}
        self._n_started = n_started

    def __iter__(self) -> Iterator[TrialInfo]:
        """Yield the trials of races that may run now; ends when it has to wait, or is finished.

        The callback sees to it that SMAC asks only when there is something to be had.
        """
        while self.fill():
            yield self._queue.popleft()

    def fill(self) -> bool:
        """Open the next race unless trials are waiting to be handed out; say whether any are."""
        self._begin()
        while not self._queue and self._finished is None:
            current = self._passes[-1]
            race = current.stream.ask()
            if not isinstance(race, Race):
                break
            self._open(race, current)
        return bool(self._queue)

    def hand_out_again(self) -> None:
        """Queue the trials that were handed out and whose results will not come any more."""
        waiting = {id(race): race for entries in self._awaited.values() for race, _ in entries}
        self._awaited.clear()
        for open_race in waiting.values():
            self._queue_trials(open_race)

    def _begin(self) -> None:
        # A schedule that was looked at before there was a facade knew neither what the user adds
        # nor what a run history holds.
        in_facade = self._runhistory is not None
        if self._configurations is not None and self._in_facade == in_facade:
            return
        self._in_facade = in_facade
        self._passes.clear()
        space = self._scenario.configspace
        self._configurations = Configurations(space, self._given(), seed=self._seed)
        self._start_pass()
        if in_facade:
            self._load_results()

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

    def _load_results(self) -> None:
        """Take over what a stock facade's run history has from before an interruption."""
        for key, value in self.runhistory.items():
            number = self.configurations.number_of(self.runhistory.get_config(key.config_id))
            if number is not None and key.seed is not None:
                trial = (number, InstanceKey(key.instance, key.seed))
                self._keep(*trial, value)
                self._inherited.add(trial)

    def _start_pass(self) -> None:
        """Start the first pass, or the one after the last; without any, the run is finished."""
        number = len(self._passes)
        if not self._passes:
            given: tuple[int, ...] = tuple(range(max(1, len(self.configurations))))
            n_known, next_instance = len(given), 0
        else:
            last = self._passes[-1]
            assert last.stream.winner is not None
            given = (last.stream.winner,)
            n_known, next_instance = last.n_known, last.next_instance
        plan = self._plan(len(given), n_known)
        if isinstance(plan, str):
            self._finish(plan)
            return
        contests = acband(
            plan.schedule,
            np.random.default_rng([self._seed, 2, number] if number else [self._seed, 2]),
            given=given,
            first_new=n_known,
            first_instance=next_instance,
            spend=self._spend,
        )
        stream = RaceStream(
            contests, statistic=self._statistic, early_stopping=self._early_stopping
        )
        self._passes.append(_Pass(number + 1, plan, stream, n_known, next_instance, self._n_races))

    def _plan(self, n_given: int, n_known: int) -> PassPlan | str:
        number = len(self._passes)
        if number < len(self._recorded_plans):
            return self._recorded_plans[number]
        n_instances = self._instances.n_distinct
        plan = self._planner.plan(
            [done.plan for done in self._passes],
            self.configurations,
            supply=Supply(n_given=n_given, n_instances=n_instances, results_kept=not self.racing),
            n_known=n_known,
            n_started=self._n_started,
        )
        if isinstance(plan, PassPlan):
            logger.info("Pass %s: %s", number + 1, plan.schedule)
            if n_instances is not None and plan.schedule.n_races > n_instances and number == 0:
                logger.warning(
                    "There are %s instances for up to %s races, so they are used again: the "
                    "races are not independent any more, as the guarantee assumes.",
                    n_instances,
                    plan.schedule.n_races,
                )
            if self.plan_listener is not None:
                self.plan_listener(plan)
        return plan

    def _finish(self, reason: str) -> None:
        self._finished = reason
        logger.info("AC-Band is finished: %s.", reason)

    # --- races -------------------------------------------------------------------------------

    def _open(self, race: Race, current: _Pass) -> None:
        """Queue the trials of a race, but for those whose results are known."""
        if current.contest is not current.stream.contest:
            self._enter_round(current)
        key = current.keys[race.group][race.index]
        name = f"{current.number}.{race.epoch}.{race.round}.{race.group}.{race.index}"
        if (record := self._recorded_races.pop(name, None)) is not None:
            self._repeat(race, record, current.stream)
            return
        trials = [(number, key) for number in race.racers]
        values = [self._results.get(trial) for trial in trials]
        open_race = _OpenRace(name, race, key, current.stream, values)
        inherited = self._inherited.intersection(trials)
        missing = {t for t, value in zip(trials, values, strict=True) if value is None}
        # What was inherited counts when it is first used: so the count is the one it was before
        # the interruption, and further passes are planned alike. SMAC counts also what it was
        # told without having asked, and not again what it had asked for before.
        n_started = self._n_started + len(missing | inherited)
        n_submitted = self.runhistory.submitted + len(missing - inherited)
        if max(n_started, n_submitted) > self._scenario.n_trials:
            self._finish(f"n_trials={self._scenario.n_trials} leaves no room for another race")
            return
        self._n_started = n_started
        self._inherited -= inherited
        self._queue_trials(open_race)
        if None not in open_race.values:
            self._complete(open_race)

    def _queue_trials(self, open_race: _OpenRace) -> None:
        """Queue those trials of a race whose results are not known."""
        race, key = open_race.race, open_race.key
        missing = [i for i, value in enumerate(open_race.values) if value is None]
        for position in missing:
            number = race.racers[position]
            self._awaited.setdefault((number, key), []).append((open_race, position))
            self._queue.append(
                TrialInfo(
                    config=self.configurations[number],
                    instance=key.instance,
                    seed=key.seed,
                    additional_info={
                        "race": open_race.name,
                        "n_racers": len(missing),
                        "to_the_end": race.to_the_end,
                    },
                )
            )

    def _enter_round(self, current: _Pass) -> None:
        contest = current.contest = current.stream.contest
        assert contest is not None
        current.keys = self._instances.of_contest(contest)
        current.n_known = max(current.n_known, int(contest.groups.max()) + 1)
        current.next_instance = max(current.next_instance, int(contest.instances().max()) + 1)

    def _repeat(self, race: Race, record: RaceRecord, stream: RaceStream) -> None:
        """Take in a race of an earlier process."""
        if race.racers != record.racers:
            raise RunDiffersError(
                str(self._scenario.output_directory),
                [f"racers of race {record.name}: {record.racers} before, {race.racers} now"],
            )
        for number, value in zip(race.racers, record.values, strict=True):
            self._keep(number, record.key, value)
        n_incumbents = len(self._trajectory)
        self._close(race, record.values, stream)
        for item in self._trajectory[n_incumbents:]:
            item.walltime, item.trial = record.walltime, record.n_trials

    def record(self, info: TrialInfo, value: TrialValue) -> None:
        """Take in the result of a trial; the last one of a race completes it."""
        number = self.configurations.number_of(info.config)
        if number is None or info.seed is None:
            return  # told without being asked: SMAC keeps it, AC-Band has no use for it
        key = InstanceKey(info.instance, info.seed)
        if is_cancelled(value):  # nothing is known of it, and nobody needs to know
            return
        if self._instances.n_distinct is not None:
            self._keep(number, key, value)
        for open_race, position in self._awaited.pop((number, key), ()):
            open_race.values[position] = value
            if None not in open_race.values:
                self._complete(open_race)

    def pop_needless(self) -> list[str]:
        """Return the races that are running but whose groups have been decided without them."""
        running = {r.name: r for entries in self._awaited.values() for r, _ in entries}
        needless = [n for n, r in running.items() if not r.stream.is_open(r.race)]
        for key, entries in list(self._awaited.items()):
            kept = [(race, position) for race, position in entries if race.name not in needless]
            if kept:
                self._awaited[key] = kept
            else:
                del self._awaited[key]
        return needless

    def _keep(self, number: int, key: InstanceKey, value: TrialValue) -> None:
        """Remember a result, in case the configuration meets the instance again."""
        if value.status != StatusType.RUNNING and not is_censored(value):
            self._results[number, key] = value

    def _complete(self, open_race: _OpenRace) -> None:
        values = [value for value in open_race.values if value is not None]
        if open_race.name == "1.1.1.0.0":
            refuse_crashed(values, self._scenario)
        if self.race_listener is not None:
            self.race_listener(open_race.name, open_race.race, open_race.key, values)
        self._close(open_race.race, values, open_race.stream)

    def _close(self, race: Race, values: Sequence[TrialValue], stream: RaceStream) -> None:
        """Tell the core what a race brought."""
        self._n_races += 1
        for number, value in zip(race.racers, values, strict=True):
            self._n_successes[number] += succeeded(value)
        needs_all_costs = race.to_the_end or self._statistic.needs_all_costs
        stream.tell(race, outcome_of(values, needs_all_costs=needs_all_costs))
        self._refresh_incumbent()
        over = stream.winner is not None and stream is self._passes[-1].stream
        if over and self._finished is None:
            self._start_pass()

    def _refresh_incumbent(self) -> None:
        """Make the newest winner the incumbent, θ_0 before; never one that only failed."""
        winners = [0]
        for done in self._passes:
            winners += done.stream.epoch_winners
            if done.stream.winner is not None:  # a playoff may have preferred an earlier one
                winners.append(done.stream.winner)
        number = next((n for n in reversed(winners) if self._n_successes[n]), None)
        if number is None:
            number, n_successes = self._n_successes.most_common(1)[0]
            if not n_successes:
                return
        config = self.configurations[number]
        if self._incumbents and self._incumbents[0] is config:
            return
        self._n_incumbents += 1
        if self._n_incumbents > len(self._trajectory):
            self._update_trajectory([config])
        else:  # SMAC loaded the trajectory of an earlier process, which is gone through again
            self._incumbents = [config]
