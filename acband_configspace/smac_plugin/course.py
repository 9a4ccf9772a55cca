"""The course of a run: pass after pass, round after round, race after race."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from smac.runhistory.dataclasses import TrialInfo, TrialValue
from smac.runhistory.runhistory import RunHistory
from smac.scenario import Scenario

from acband_configspace.core.acband import acband
from acband_configspace.core.elimination import Contest
from acband_configspace.core.instances import InstanceKey, Instances
from acband_configspace.core.race import Race
from acband_configspace.core.schedule import Supply
from acband_configspace.core.statistics import Statistic
from acband_configspace.core.streaming import RaceStream
from acband_configspace.errors import RunDiffersError
from acband_configspace.runlog.run import NO_ROOM
from acband_configspace.smac_plugin.configurations import Configurations
from acband_configspace.smac_plugin.open_races import OpenRace, OpenRaces
from acband_configspace.smac_plugin.passes import PassPlan, PassPlanner, Position
from acband_configspace.smac_plugin.trials import (
    RaceRecord,
    is_cancelled,
    outcome_of,
    refuse_crashed,
    succeeded,
)

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Rules:
    """How a run is decided; see :class:`~acband_configspace.ACBandIntensifier`."""

    statistic: Statistic
    early_stopping: float | None
    spend: str
    racing: bool
    """Whether the runner stops losers, so that their results cannot be used again."""
    seed: int


@dataclass(frozen=True)
class History:
    """What is known from an earlier process: plans and races are taken as they are."""

    plans: Sequence[PassPlan] = ()
    races: Sequence[RaceRecord] = ()


class Observer(Protocol):
    """Who is told what happens."""

    def planned(self, plan: PassPlan) -> None:
        """Take note of the plan of a pass, before it starts."""

    def raced(self, name: str, race: Race, key: InstanceKey, values: Sequence[TrialValue]) -> None:
        """Take note of a race that is over, before anything is decided on it."""

    def judged(self, record: RaceRecord | None) -> None:
        """Take note that a race was taken into account; one of an earlier process has a record."""


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


class Course:
    """Opens race after race, takes in their results, and starts a further pass after the last."""

    def __init__(
        self,
        scenario: Scenario,
        planner: PassPlanner,
        rules: Rules,
        configurations: Configurations,
        *,
        observer: Observer,
        runhistory: RunHistory | None,
        history: History,
    ) -> None:
        self._scenario = scenario
        self._planner = planner
        self._rules = rules
        self._observer = observer
        self._runhistory = runhistory
        self._instances = Instances(
            scenario.instances, deterministic=scenario.deterministic, seed=rules.seed
        )
        self.configurations = configurations
        """The configurations by their numbers."""
        self.n_races = 0
        """Races that are over."""
        self.finished: str | None = None
        """Why there is nothing left to race, None while there is."""
        self._races = OpenRaces(configurations, runhistory)
        self._recorded_plans = list(history.plans)
        self._recorded_races = {race.name: race for race in history.races}
        self._n_successes: Counter[int] = Counter()
        self._passes: list[_Pass] = []
        self._start_pass()

    # --- what is planned, and how far it is ---------------------------------------------------

    @property
    def plans(self) -> list[PassPlan]:
        """The plans of all passes so far."""
        return [done.plan for done in self._passes]

    @property
    def epoch_winners(self) -> list[tuple[int, ...]]:
        """The winners of the epochs that are over, pass by pass."""
        return [done.stream.epoch_winners for done in self._passes]

    @property
    def position(self) -> Position:
        """Where the run is."""
        current = self._passes[-1]
        # A pass that is over has no contest any more; its last one tells where it ended.
        contest = current.stream.contest or current.contest
        return Position(
            number=current.number,
            schedule=current.plan.schedule,
            epoch=contest.epoch if contest else 1,
            round=contest.round if contest else 1,
            n_races=self.n_races - current.n_races_before,
            is_playoff=contest is not None and contest.is_playoff,
        )

    @property
    def leader(self) -> int | None:
        """The newest winner, θ_0 before there is one; never a configuration that only failed."""
        winners = [0]
        for done in self._passes:
            winners += done.stream.epoch_winners
            if done.stream.winner is not None:  # a playoff may have preferred an earlier one
                winners.append(done.stream.winner)
        for number in reversed(winners):
            if self._n_successes[number]:
                return number
        return next((n for n, times in self._n_successes.most_common(1) if times), None)

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
        seed = [self._rules.seed, 2, number] if number else [self._rules.seed, 2]
        contests = acband(
            plan.schedule,
            np.random.default_rng(seed),
            given=given,
            first_new=n_known,
            first_instance=next_instance,
            spend=self._rules.spend,
        )
        stream = RaceStream(
            contests,
            statistic=self._rules.statistic,
            early_stopping=self._rules.early_stopping,
        )
        self._passes.append(_Pass(number + 1, plan, stream, n_known, next_instance, self.n_races))

    def _plan(self, n_given: int, n_known: int) -> PassPlan | str:
        number = len(self._passes)
        if number < len(self._recorded_plans):
            return self._recorded_plans[number]
        n_instances = self._instances.n_distinct
        plan = self._planner.plan(
            self.plans,
            self.configurations,
            supply=Supply(
                n_given=n_given, n_instances=n_instances, results_kept=not self._rules.racing
            ),
            n_known=n_known,
            spend=self._rules.spend,
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
            self._observer.planned(plan)
        return plan

    def _finish(self, reason: str) -> None:
        self.finished = reason
        logger.info("AC-Band is finished: %s.", reason)

    # --- races --------------------------------------------------------------------------------

    def fill(self) -> bool:
        """Open the next race unless trials are waiting to be handed out; say whether any are."""
        while not self._races and self.finished is None:
            current = self._passes[-1]
            race = current.stream.ask()
            if not isinstance(race, Race):
                break
            self._open(race, current)
        return bool(self._races)

    def pop_trial(self) -> TrialInfo:
        """Hand out a trial."""
        return self._races.pop()

    def hand_out_again(self) -> None:
        """Queue the trials that were handed out and whose results will not come any more."""
        self._races.hand_out_again()

    def pop_needless(self) -> list[str]:
        """Return the races that are running but whose groups have been decided without them."""
        return self._races.pop_needless()

    def record(self, number: int, key: InstanceKey, value: TrialValue, *, race: str | None) -> None:
        """Take in the result of a trial of the named race; the last one of a race completes it."""
        if is_cancelled(value):  # nothing is known of it, and nobody needs to know
            return
        completed = self._races.take((number, key), value, race=race)
        try:
            for open_race in completed:
                self._complete(open_race)
        except BaseException:  # a target that crashes, a full disk, Ctrl-C: they are run again
            self._races.put_back(completed)
            raise

    def _open(self, race: Race, current: _Pass) -> None:
        """Queue the trials of a race, but for those whose results are known."""
        if current.contest is not current.stream.contest:
            self._enter_round(current)
        name = f"{current.number}.{race.epoch}.{race.round}.{race.group}.{race.index}"
        if (record := self._recorded_races.pop(name, None)) is not None:
            self._repeat(race, record, current.stream)
            return
        key = current.keys[race.group][race.index]
        open_race = OpenRace(name, race, key, current.stream)
        n_new = self._races.look_up(open_race)
        n_trials = self._scenario.n_trials
        assert self._runhistory is not None  # a facade has set it
        if self._runhistory.submitted + n_new > n_trials:
            self._finish(f"n_trials={n_trials} {NO_ROOM}")
            return
        self._races.add(open_race)
        if not open_race.missing:
            self._complete(open_race)

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
        self._close(race, record.values, stream, record)

    def _complete(self, open_race: OpenRace) -> None:
        values = [value for value in open_race.values if value is not None]
        if open_race.name == "1.1.1.0.0":
            refuse_crashed(values, self._scenario)
        self._observer.raced(open_race.name, open_race.race, open_race.key, values)
        self._close(open_race.race, values, open_race.stream, None)

    def _close(
        self,
        race: Race,
        values: Sequence[TrialValue],
        stream: RaceStream,
        record: RaceRecord | None,
    ) -> None:
        """Tell the core what a race brought."""
        self.n_races += 1
        if stream.is_open(race):  # what came too late must not tell who leads either
            for number, value in zip(race.racers, values, strict=True):
                self._n_successes[number] += succeeded(value)
        needs_all_costs = race.to_the_end or self._rules.statistic.needs_all_costs
        stream.tell(race, outcome_of(values, needs_all_costs=needs_all_costs))
        self._observer.judged(record)
        over = stream.winner is not None and stream is self._passes[-1].stream
        if over and self.finished is None:
            self._start_pass()
