"""The engine: ask it for a race, tell it an outcome, and it says who leads. Sans-I/O.

Passes, who leads, which instance, when a group is decided and how a recorded run is taken in again
are decided here and nowhere else. The plugin and the simulation on tables drive this one engine.
Outcomes may be told in any order; they are judged in race order, so the result depends only on
the seed and the costs.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from acband_configspace.core.acband import Round, acband
from acband_configspace.core.ends import End
from acband_configspace.core.instances import InstanceKey, Instances
from acband_configspace.core.memory import Memory
from acband_configspace.core.paper_races import PaperRaces
from acband_configspace.core.passes import SchedulePlan, SchedulePlanner
from acband_configspace.core.race import Outcome, Race, RaceId
from acband_configspace.core.schedule import Supply
from acband_configspace.core.search import Search
from acband_configspace.core.search_costs import CostSearch
from acband_configspace.core.search_plan import Draw, PassPlan
from acband_configspace.core.search_plan import KnownBest as KnownBest
from acband_configspace.core.search_races import RaceSearch
from acband_configspace.core.settings import Settings

Plan = SchedulePlan | PassPlan

#: The paper's schedule needs a number: more than any run gets to, where n_trials is infinite.
MOST_TRIALS = 10**9


class ReplayError(ValueError):
    """A recorded race is not the one that stands in its place now."""


@dataclass(frozen=True)
class Position:
    """Where a run is."""

    pass_number: int
    """From 1."""
    epoch: int
    round: int
    n_epochs: int | None = None
    """How many epochs the pass has, as far as that is planned."""
    share: float = 0.0
    """The share of the pass that is over, by its trials or races."""
    is_playoff: bool = False


@dataclass(frozen=True)
class Limits:
    """What a run may use, as far as the engine must know it."""

    n_trials: float = math.inf
    """Trials that may be started. What is known before the run takes none of them; the paper's
    schedule is planned as if all were run."""
    timed: bool = False
    """Whether a time limit ends the run."""
    n_changes: int = 0
    """How often ``n_trials`` has been changed since the run began."""


class Engine:
    """One run of AC-Band, from the first race to the last.

    Parameters
    ----------
    settings : Settings
        Every option.
    racing : bool
        Whether losers are stopped.
    instances : Instances
        What instance numbers stand for.
    draw : callable
        Asked for n configurations in all, and given a function that tells who is best so far,
        returns how many of them there are.
    limits : Limits
        What the run may use.
    n_given : int
        How many configurations are given: θ_0, and others that race from the start.
    n_in_space : int | None
        How many configurations the space has at most, None if it is not finite.
    seed : int
        Of everything that is random here.
    plans : sequence
        The plans of passes of an earlier process.
    recorded : callable | None
        Asked for a race by its place, returns the racers and the outcome if it was run before: it
        is then taken in at once.
    replayed : callable | None
        Called with each of them as soon as it is taken in.

    Examples
    --------
    >>> engine = Engine(
    ...     Settings(k=2),
    ...     racing=False,
    ...     instances=Instances(None, deterministic=True, seed=0),
    ...     draw=lambda n, known: min(n, 10),
    ...     limits=Limits(n_trials=10),
    ... )
    >>> while (race := engine.ask()) is not None:  # higher numbers are the better ones here
    ...     engine.tell(race, Outcome([-racer for racer in race.racers]))
    >>> engine.leader
    9
    """

    def __init__(
        self,
        settings: Settings,
        *,
        racing: bool,
        instances: Instances,
        draw: Draw,
        limits: Limits,
        n_given: int = 1,
        n_in_space: int | None = None,
        seed: int = 0,
        plans: Sequence[Plan] = (),
        recorded: Callable[[RaceId], tuple[tuple[int, ...], Outcome] | None] | None = None,
        replayed: Callable[[Race], None] | None = None,
    ) -> None:
        self._instances = instances
        self._recorded = recorded
        self._replayed = replayed
        self._running: dict[RaceId, Race] = {}
        self.n_races = 0
        """Races that are over."""
        self._ended: str | None = None
        self._driver: _MemoryDriver | _PaperDriver
        if settings.memory:
            search: type[Search] = RaceSearch if racing else CostSearch
            self._driver = _MemoryDriver(
                search(
                    k=settings.racers(racing=racing),
                    first_pass=settings.trials_of_first_pass(
                        racing=racing, timed=limits.timed or math.isinf(limits.n_trials)
                    ),
                    growth=settings.growth(racing=racing),
                    instances=instances,
                    draw=draw,
                    n_given=n_given,
                    n_trials=limits.n_trials,
                    n_changes=limits.n_changes,
                    seed=seed,
                    plans=[plan for plan in plans if isinstance(plan, PassPlan)],
                )
            )
        else:
            n_trials = int(min(limits.n_trials, MOST_TRIALS))
            planner = SchedulePlanner(
                settings,
                n_trials,
                limits.timed,
                # The paper draws all configurations beforehand.
                lambda n: draw(n, lambda: KnownBest(1, ())),
                n_in_space,
            )
            self._driver = _PaperDriver(
                settings,
                planner,
                racing=racing,
                n_given=n_given,
                n_instances=instances.n_distinct,
                seed=seed,
                plans=[plan for plan in plans if isinstance(plan, SchedulePlan)],
            )

    # --- races --------------------------------------------------------------------------------

    def ask(self) -> Race | None:
        """Return a race to run; None if outcomes must be told first, or the run is finished."""
        while self._ended is None and (race := self._driver.ask()) is not None:
            self._running[race.id] = race
            record = None if self._recorded is None else self._recorded(race.id)
            if record is None:
                return race
            racers, outcome = record
            if racers != race.racers:
                raise ReplayError(f"racers of race {race.id}: {racers} before, {race.racers} now")
            self.tell(race, outcome)
            if self._replayed is not None:
                self._replayed(race)
        return None

    def give_back(self, races: Sequence[Race]) -> None:
        """Take back races that were handed out and not begun: they are handed out again in turn."""
        for race in races:
            del self._running[race.id]
        self._driver.give_back(races)

    def tell(self, race: Race, outcome: Outcome) -> None:
        """Take in what a race brought; of a race whose group is decided it is ignored."""
        if self._running.get(race.id) != race:
            raise ValueError(
                f"an outcome must be told once, of a race that was handed out, but got {race}"
            )
        if len(outcome.costs) != len(race.racers):
            raise ValueError(f"{race} must have {len(race.racers)} costs but got {outcome.costs}")
        self._driver.tell(race, outcome)
        del self._running[race.id]
        self.n_races += 1

    def needs(self, race: Race) -> bool:
        """Return whether the outcome of a race that runs still matters: else it can be stopped."""
        return race.id in self._running and self._driver.needs(race)

    @property
    def drops_races(self) -> bool:
        """Whether a race that runs may turn out needless."""
        return self._driver.drops_races

    def key(self, instance: int) -> InstanceKey:
        """Return what an instance number stands for."""
        return self._instances[instance]

    # --- where the run is ---------------------------------------------------------------------

    @property
    def finished(self) -> str | None:
        """Why there is nothing left to race, None while there is."""
        return self._ended or self._driver.finished

    def finish(self, reason: str) -> None:
        """End the run: there is no room for what would be raced next."""
        self._ended = reason

    @property
    def leader(self) -> int | None:
        """The incumbent: who leads now. Never a configuration that only failed."""
        return self._driver.leader

    @property
    def plans(self) -> Sequence[Plan]:
        """The plans of all passes so far."""
        return self._driver.plans

    @property
    def position(self) -> Position:
        """Where the run is."""
        return self._driver.position

    @property
    def epoch_winners(self) -> list[tuple[int, ...]]:
        """The winners of the epochs that are over, pass by pass; with memory, one champion."""
        return self._driver.epoch_winners

    @property
    def champions(self) -> Mapping[int, int | None]:
        """Who was champion at the end of each pass that is over."""
        return self._driver.champions

    @property
    def n_entered(self) -> int:
        """How many configurations have entered a race."""
        return self._driver.n_entered

    def costs(self, configuration: int) -> dict[InstanceKey, float]:
        """Return the known costs of a configuration."""
        return self._by_key(self._driver.memory.costs(configuration))

    def bounds(self, configuration: int) -> dict[InstanceKey, float]:
        """Return, where a configuration was stopped, what its cost exceeds."""
        return self._by_key(self._driver.memory.bounds(configuration))

    def _by_key(self, costs: Mapping[int, float]) -> dict[InstanceKey, float]:
        return {self.key(instance): cost for instance, cost in costs.items()}


class _MemoryDriver:
    """The default search behind the engine's door."""

    drops_races = False

    def __init__(self, search: Search) -> None:
        self._search = search
        self.memory = search.memory

    def ask(self) -> Race | None:
        return self._search.ask()

    def give_back(self, races: Sequence[Race]) -> None:
        self._search.give_back(races)

    def tell(self, race: Race, outcome: Outcome) -> None:
        self._search.tell(race, outcome)

    def needs(self, race: Race) -> bool:
        return True  # rounds are decided on all their races

    @property
    def finished(self) -> str | None:
        return self._search.finished

    @property
    def leader(self) -> int | None:
        return self._search.leader

    @property
    def plans(self) -> Sequence[PassPlan]:
        return self._search.plans

    @property
    def n_entered(self) -> int:
        return self._search.n_entered

    @property
    def champions(self) -> Mapping[int, int | None]:
        return self._search.champions

    @property
    def epoch_winners(self) -> list[tuple[int, ...]]:
        champion = self._search.champion
        return [] if champion is None else [(champion,)]

    @property
    def position(self) -> Position:
        search, current = self._search, self._search.current
        if current is None:
            n_passes = len(search.plans)
            return Position(n_passes, epoch=1, round=1, n_epochs=1, share=1.0, is_playoff=False)
        return Position(
            pass_number=current.plan.number,
            epoch=1,
            round=current.round_number,
            n_epochs=1,
            share=min(
                1.0, search.n_started_in[current.plan.number] / max(1, current.plan.n_trials)
            ),
            is_playoff=current.round_number > 1,
        )


@dataclass
class _Pass:
    """One run through a schedule."""

    plan: SchedulePlan
    stream: PaperRaces
    n_known: int
    """Configurations that have raced by the end of this round: the next pass counts on here."""
    next_instance: int
    """The first instance that no round so far was given."""
    n_races: int = 0
    round_: Round | None = None


class _PaperDriver:
    """The paper's schedule behind the engine's door, pass after pass."""

    drops_races = True

    def __init__(
        self,
        settings: Settings,
        planner: SchedulePlanner,
        *,
        racing: bool,
        n_given: int,
        n_instances: int | None,
        seed: int,
        plans: Sequence[SchedulePlan],
    ) -> None:
        self._settings = settings
        self._planner = planner
        self._supply = Supply(n_given, n_instances=n_instances, results_kept=not racing)
        self._seed = seed
        self._recorded_plans = list(plans)
        self._passes: list[_Pass] = []
        self._given_back: deque[Race] = deque()
        self._n_finished: Counter[int] = Counter()
        self.memory = Memory()
        self.finished: str | None = None
        self._start_pass(tuple(range(n_given)), n_given, 0)

    @property
    def plans(self) -> Sequence[SchedulePlan]:
        return [each.plan for each in self._passes]

    @property
    def n_entered(self) -> int:
        return self._passes[-1].n_known if self._passes else 0

    @property
    def champions(self) -> Mapping[int, int | None]:
        winners = {number: each.stream.winner for number, each in enumerate(self._passes, 1)}
        return {number: winner for number, winner in winners.items() if winner is not None}

    @property
    def epoch_winners(self) -> list[tuple[int, ...]]:
        return [each.stream.epoch_winners for each in self._passes]

    @property
    def leader(self) -> int | None:
        """The newest winner, θ_0 before there is one; never a configuration that only failed."""
        winners = [0]
        for each in self._passes:
            winners += each.stream.epoch_winners
            if each.stream.winner is not None:  # a playoff may have preferred an earlier one
                winners.append(each.stream.winner)
        for number in reversed(winners):
            if self._n_finished[number]:
                return number
        # Whoever finished most often; the first drawn of several, whatever the order of telling.
        best = min(self._n_finished, key=lambda n: (-self._n_finished[n], n), default=None)
        return best if best is not None and self._n_finished[best] else None

    @property
    def position(self) -> Position:
        current = self._passes[-1]
        schedule = current.plan.schedule
        # A pass that is over has no round any more; its last one tells where it ended.
        round_ = current.stream.round_ or current.round_
        epoch, number = (round_.epoch, round_.round) if round_ else (1, 1)
        n_before = sum(
            plan.n_races
            for planned in schedule.epochs
            for r, plan in enumerate(planned.rounds, start=1)
            if (planned.index, r) < (epoch, number)
        )
        return Position(
            pass_number=len(self._passes),
            epoch=epoch,
            round=number,
            # None in an epoch that was not planned: saved races bought it.
            n_epochs=len(schedule.epochs) if epoch <= len(schedule.epochs) else None,
            # Rounds that ended early count in full.
            share=min(1.0, max(n_before, current.n_races) / max(1, schedule.n_races)),
            is_playoff=round_ is not None and round_.is_playoff,
        )

    def ask(self) -> Race | None:
        if self.finished is not None:
            return None
        while self._given_back:
            given_back = self._given_back.popleft()
            if self.needs(given_back):
                return given_back
        current = self._passes[-1]
        race = current.stream.ask()
        if not isinstance(race, Race):
            return None
        if current.round_ is not current.stream.round_:
            self._enter_round(current)
        return race

    def give_back(self, races: Sequence[Race]) -> None:
        self._given_back.extendleft(reversed(races))

    def needs(self, race: Race) -> bool:
        return self._passes[race.id.pass_number - 1].stream.is_open(race)

    def tell(self, race: Race, outcome: Outcome) -> None:
        current = self._passes[race.id.pass_number - 1]
        is_open = current.stream.is_open(race)
        current.stream.tell(race, outcome)  # first: what it refuses changes nothing
        current.n_races += 1
        if is_open:
            for racer, cost, end in zip(race.racers, outcome.costs, outcome.ends, strict=True):
                if end is End.LOST:
                    self.memory.add_bound(racer, race.instance, cost)
                else:
                    self.memory.add(racer, race.instance, cost, finished=end is End.FINISHED)
        winner = current.stream.winner
        if winner is not None and current is self._passes[-1] and self.finished is None:
            self._start_pass((winner,), current.n_known, current.next_instance)

    def _enter_round(self, current: _Pass) -> None:
        round_ = current.round_ = current.stream.round_
        assert round_ is not None
        current.n_known = max(current.n_known, int(round_.groups.max()) + 1)
        current.next_instance = max(current.next_instance, int(round_.instances.max()) + 1)

    def _start_pass(self, given: tuple[int, ...], n_known: int, next_instance: int) -> None:
        """Start a pass, or finish the run if there is none."""
        number = len(self._passes)
        plan: SchedulePlan | str
        if number < len(self._recorded_plans):
            plan = self._recorded_plans[number]
        else:
            supply = Supply(
                len(given),
                n_instances=self._supply.n_instances,
                results_kept=self._supply.results_kept,
            )
            plan = self._planner.plan(self.plans, supply=supply, n_known=n_known)
        if isinstance(plan, str):
            self.finished = plan
            return
        seed = [self._seed, 2, number] if number else [self._seed, 2]
        rounds_ = acband(
            plan.schedule,
            np.random.default_rng(seed),
            given=given,
            first_new=n_known,
            first_instance=next_instance,
            spend=self._settings.spend,
        )
        stream = PaperRaces(
            rounds_,
            statistic=self._settings.judge_by,
            early_stopping=self._settings.early_stopping,
            pass_number=number + 1,
            n_finished=self._n_finished,
        )
        self._passes.append(_Pass(plan, stream, n_known, next_instance))
