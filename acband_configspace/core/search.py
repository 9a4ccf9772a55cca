"""The default search: CSE with memory, in passes. Sans-I/O.

A pass is one run of combinatorial successive elimination, with three changes to the paper's:

* *Results are kept.* Configurations meet on the same instances, are judged by their costs on all
  that they have met in this pass, and nothing that is known is run again.
* *One race at first.* The first round puts each new configuration on one instance, and keeps few of
  them. In the further rounds, the playoff, those who keep up meet on more instances.
* *All are judged by the champion.* A pass starts on instances whose costs are known for the
  champion. Who does not keep up with it is dropped at once; who is left and better on all that the
  champion has met takes its place. So a pass costs little where nobody can keep up, and what is
  left goes to the next one.

What a pass is like differs between ``search_costs`` and ``search_races``.

What the passes are worth was measured on tables (rank of what is returned, or gap to the best,
against random search with SMAC's intensification). The constants lie in the middle of wide ranges
that are about equally good. Both modules list what did not help.
"""

from __future__ import annotations

import abc
import math
from collections import Counter, deque
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import ClassVar

import numpy as np

from acband_configspace.core.ends import End
from acband_configspace.core.instances import Instances
from acband_configspace.core.memory import Memory, Total
from acband_configspace.core.race import Outcome, Race, RaceId
from acband_configspace.core.search_plan import Draw, KnownBest, PassPlan, plan_pass

#: Who leads the champion on at least this share of the instances that it has met is the incumbent
#: until the pass is over.
LEAD_SHARE = 0.5
#: A run counts as this logarithm of a factor slower than the time at which it was stopped.
STOPPED_BEHIND = math.log(2.0)
#: Of those left in the last pass, so many count as good besides the champion.
MOST_BEST = 4
#: After so many passes in a row that brought no new configuration, and in which nothing had to be
#: run or nobody kept up with the champion, there is nothing left to learn.
MOST_IDLE_PASSES = 20


@dataclass(frozen=True)
class SearchRound:
    """A round: groups, and the instances that each of them meets."""

    number: int
    """Within the pass, from 1."""
    groups: Sequence[Sequence[int]]
    instances: Sequence[Sequence[int]]
    """Those of each group."""
    to_the_end: bool
    """Whether losers go on."""
    limits: dict[int, float]
    """The cost at which a configuration is stopped on an instance, where there is one."""
    n_before: int = 0
    """How many races each group has had in this round already."""


@dataclass
class Pass:
    """A pass that is under way."""

    plan: PassPlan
    rounds: Generator[SearchRound, None, bool]
    """Those that are left; in the end, whether anybody came through the first one."""
    n_entered_before: int
    """How many configurations had entered before it."""
    round_number: int = 1
    races: list[Race] = field(default_factory=list)
    """Those of this round ..."""
    n_judged: int = 0
    """... and how many of them are judged."""


class Search(abc.ABC):
    """Names the races that may run now, is told their outcomes, and knows who leads.

    Parameters
    ----------
    k : int
        How many configurations race together.
    first_pass : int | None
        Trials of the first pass; None: the passes divide up all n_trials.
    growth : float
        How many times as long as the one before each further pass is.
    instances : Instances
        What instance numbers stand for.
    draw : callable
        Asked for n configurations, and given a function that tells who is best so far, returns how
        many of them there are (a finite space may have fewer).
    n_given : int
        How many configurations are given: they enter the first pass.
    n_trials : float
        How many trials may be started; infinity if something else ends the run.
    n_changes : int
        How often that has been changed since the run began.
    seed : int
        Of the order of instances, and of the groups.
    plans : sequence of PassPlan
        Those of an earlier process: they are taken as they are.
    """

    def __init__(
        self,
        *,
        k: int,
        first_pass: int | None,
        growth: float,
        instances: Instances,
        draw: Draw,
        n_given: int,
        n_trials: float,
        n_changes: int = 0,
        seed: int,
        plans: Sequence[PassPlan] = (),
    ) -> None:
        self._k = k
        self._first_pass = first_pass
        self._growth = growth
        self._instances = instances
        self._draw = draw
        self._n_given = n_given
        self._n_trials = n_trials
        self._n_changes = n_changes
        self._seed = seed
        self._recorded_plans = list(plans)
        self._pool_size = instances.n_distinct
        self._n_idle_passes = 0
        self._passes: deque[Pass] = deque()
        self._all_entered = False
        self._last_left: list[int] = []
        self._n_first_instances = 0
        self.memory = Memory()
        """What is known."""
        self.plans: list[PassPlan] = []
        """The plans of all passes so far."""
        self.champion: int | None = None
        """The best configuration so far on all instances that it has met."""
        self.leader: int | None = None
        """The incumbent: the champion, or who leads it at the moment."""
        self.champions: dict[int, int | None] = {}
        """Who was champion when each pass that is over came to its end."""
        self.n_entered = 0
        """How many configurations have raced."""
        self.n_started = 0
        """How many trials were started ..."""
        self.n_started_in: Counter[int] = Counter()
        """... and how many in each pass."""
        self._n_known = 0
        """How many of them turned out to be known before the run, and took nothing of it."""
        self.finished: str | None = None
        """Why there is nothing left to race."""
        self._waiting: deque[Race] = deque()
        self._told: dict[RaceId, Outcome] = {}
        self._prepare()
        self._begin_passes()

    def _prepare(self) -> None:  # noqa: B027  # most searches keep nothing else
        """Set up what only this kind of search keeps."""

    @property
    def current(self) -> Pass | None:
        """The pass whose rounds are decided now, None if all is over."""
        return self._passes[0] if self._passes else None

    # --- races ------------------------------------------------------------------------------

    def ask(self) -> Race | None:
        """Return a race that may run now, None if outcomes must be told first, or all is over."""
        return self._waiting.popleft() if self._waiting else None

    def give_back(self, races: Sequence[Race]) -> None:
        """Take back races that were asked for and not begun: they come first again."""
        self._waiting.extendleft(reversed(races))

    def tell(self, race: Race, outcome: Outcome) -> None:
        """Take in what a race brought; the last one of a round decides it.

        A pass comes to its end before the next one is looked at, whichever is over first: what
        comes next does not depend on how many workers there are.
        """
        self._told[race.id] = outcome
        while self._passes and self._is_judged(self._passes[0]):
            if not self._go_on(self._passes[0]):
                self._passes.popleft()
            self._begin_passes()

    def _is_judged(self, one: Pass) -> bool:
        """Judge the races of a round, in race order, without gaps; return whether all are."""
        while one.n_judged < len(one.races):
            judged = one.races[one.n_judged]
            told = self._told.pop(judged.id, None)
            if told is None:
                return False
            self._judge(judged, told)
            one.n_judged += 1
        return True

    def _judge(self, race: Race, outcome: Outcome) -> None:
        self._n_known += outcome.n_known
        for racer, cost, end in zip(race.racers, outcome.costs, outcome.ends, strict=True):
            if end is End.LOST:
                self.memory.add_bound(racer, race.instance, cost)
                continue
            self.memory.add(racer, race.instance, cost, finished=end is End.FINISHED)
        # The best of the first race leads until there is a better one; on a single instance, who
        # has the lowest cost always does.
        if self.champion is None or self._pool_size == 1:
            best = min(race.racers, key=lambda racer: self._finishing(racer, race.instance))
            if self.leader is None or self._finishing(best, race.instance) < self._finishing(
                self.leader, race.instance
            ):
                self._lead(best, (race.instance,))

    def _finishing(self, racer: int, instance: int) -> float:
        return self.memory.finishing_cost(racer, instance)

    def _lead(self, rival: int, instances: Sequence[int]) -> None:
        """Let a configuration lead that has finished, if it is known to be better."""
        if not self.memory.has_finished(rival, instances):
            return
        if self.leader in (None, rival) or self.memory.is_better(rival, self.leader):
            self.leader = rival

    def _races_of(self, pass_number: int, round_: SearchRound) -> Iterator[Race]:
        """Yield the races of a round, all groups advancing together: what is known is not run."""
        for index in range(max(map(len, round_.instances), default=0)):
            for number, group in enumerate(round_.groups):
                if index < len(round_.instances[number]):
                    instance = round_.instances[number][index]
                    place = RaceId(pass_number, 1, round_.number, number, round_.n_before + index)
                    limits = self._limits(round_, group, instance)
                    if limits:
                        yield _race(place, instance, limits, to_the_end=round_.to_the_end)

    def _limits(self, round_: SearchRound, group: Sequence[int], instance: int) -> dict[int, float]:
        """Return those of a group that have to be run, and the cost at which each is stopped."""
        best = math.inf
        if not round_.to_the_end:  # a known time is the time to beat
            best = min(self._finishing(racer, instance) for racer in group)
        limits = {}
        for racer in group:
            limit = min(best, round_.limits.get(racer, math.inf))
            hopeless = limit < 0.0 or limit <= self.memory.bound(racer, instance)
            if self.memory.cost(racer, instance) is None and not hopeless:
                limits[racer] = limit
        return limits

    # --- passes -----------------------------------------------------------------------------

    def _begin_passes(self) -> None:
        """Begin passes until as many are under way as may be."""
        while len(self._passes) < self._n_side_by_side():
            plan = self._plan()
            if plan is None:
                break
            self.plans.append(plan)
            one = Pass(plan, self._pass(plan), self.n_entered)
            is_under_way = self._go_on(one)
            self.plans[-1] = replace(plan, n_entered=self.n_entered)
            if is_under_way:
                self._passes.append(one)

    def _go_on(self, one: Pass) -> bool:
        """Go on to the next round of a pass in which anything has to be run, if there is one."""
        while True:
            try:
                round_ = next(one.rounds)
            except StopIteration as end:
                self._end(one, somebody_kept_up=end.value)
                return False
            one.races, one.n_judged = list(self._races_of(one.plan.number, round_)), 0
            if one.races:
                break
        one.round_number = round_.number
        n_trials = sum(len(race.racers) for race in one.races)
        self.n_started += n_trials
        self.n_started_in[one.plan.number] += n_trials
        if self._passes and one is self._passes[0]:  # the others wait for it
            self._waiting.extendleft(reversed(one.races))
        else:
            self._waiting.extend(one.races)
        return True

    def _end(self, one: Pass, *, somebody_kept_up: bool) -> None:
        self.champions[one.plan.number] = self.champion
        hopeless = self.champion is not None and not somebody_kept_up
        nothing_run = self.n_started_in[one.plan.number] == 0
        idle = nothing_run or (hopeless and self.n_entered == one.n_entered_before)
        self._n_idle_passes = self._n_idle_passes + 1 if idle else 0

    def _plan(self) -> PassPlan | None:
        """Plan the next pass; if there is none, and none is under way, say why."""
        recorded = self._recorded_plans[0] if self._recorded_plans else None
        limit, n_changes = self._n_trials, self._n_changes
        if recorded is not None:
            limit, n_changes = recorded.limit, recorded.n_changes
        if any((one.plan.limit, one.plan.n_changes) != (limit, n_changes) for one in self._passes):
            return None  # those of an earlier limit come to their end as they did under it
        left = self._n_left(limit)
        why = None
        if left < 1:
            why = f"all n_trials={self._n_trials:.0f} trials are used"
        elif self._n_idle_passes >= MOST_IDLE_PASSES:
            why = "every configuration of the space has raced: nothing is left to learn"
        if recorded is not None and (why is None or not self._passes):
            return self._recorded_plans.pop(0)
        if why is not None:
            self.finished = None if self._passes else why
            return None
        number = len(self.plans) + 1
        plan = plan_pass(
            number,
            left=left,
            first_pass=self._first_pass,
            growth=self._growth,
            # Of one instance nothing is left to meet on after the first round.
            share=1.0 if self._pool_size == 1 else self._first_round_share(),
            at_least=self._n_given if number == 1 else 1,
            limit=self._n_trials,
            multiple=self._k if self.losers_are_stopped else 1,
        )
        return replace(plan, n_changes=n_changes)

    def _n_left(self, limit: float) -> float:
        """Return how many trials there are for a new pass."""
        return limit - self.n_started + self._n_known - self._n_reserved()

    def _n_reserved(self) -> int:
        """Return what passes under way may still have: that is not for those after them."""
        return sum(
            max(0, one.plan.n_trials - self.n_started_in[one.plan.number]) for one in self._passes
        )

    def _entrants(self, plan: PassPlan, rng: np.random.Generator) -> list[int]:
        """Return new configurations; those dropped before, if there is no new one."""
        n_there = self._draw(self.n_entered + plan.n_entrants, partial(self._known_best, plan))
        new = list(range(self.n_entered, min(n_there, self.n_entered + plan.n_entrants)))
        self.n_entered += len(new)
        self._all_entered = not new
        if new:
            return new
        racing = (racer for one in self._passes for race in one.races for racer in race.racers)
        others = sorted(set(range(self.n_entered)) - {self.champion, *racing})
        return [int(number) for number in rng.permutation(others)[: plan.n_entrants]]

    def _known_best(self, plan: PassPlan) -> KnownBest:
        if self.champion is None:
            return KnownBest(plan.number, tuple(range(self._n_given)))
        others = (racer for racer in self._last_left if racer != self.champion)
        behind = self.memory.behind(self.champion, self._scale, STOPPED_BEHIND)
        units = self._units(behind)
        means = {
            number: sum(each / units.get(i, 1.0) for i, each in some.items()) / len(some)
            for number, some in behind.items()
        }
        n_common = {number: len(some) for number, some in behind.items()}
        one_instance = self._pool_size == 1
        return KnownBest(plan.number, (self.champion, *others), means, n_common, one_instance)

    # --- who is the best so far ---------------------------------------------------------------

    def _crown(self, rivals: Sequence[int]) -> None:
        """Crown who is better than the champion on all that it has met."""
        met = self._judged_on(self._the_champion)
        complete = [racer for racer in rivals if self.memory.knows_all(racer, met)]
        self.champion = min(
            [self._the_champion, *complete], key=lambda racer: self.memory.total(racer, met)
        )
        self._lead(self.champion, self._judged_on(self.champion))

    def _is_ahead(self, racer: int, met: Sequence[int]) -> bool:
        """Return whether a configuration is better than the champion on these instances."""
        return self.memory.total(racer, met) < self.memory.total(self._the_champion, met)

    def _let_lead(self, racer: int, met: Sequence[int]) -> None:
        """Let who is ahead of the champion lead, if that is on enough of its instances."""
        n_met = self._n_judged_on(self._the_champion)
        if len(met) >= LEAD_SHARE * n_met and self._is_ahead(racer, met):
            self._lead(racer, met)

    def _rivals(self, alive: Sequence[int]) -> list[int]:
        """Return who is left besides the champion."""
        return [racer for racer in alive if racer != self.champion]

    def _trials_left(self, plan: PassPlan) -> float:
        # Of the limit under which it was planned: a run that goes on under another one, even a
        # lower one, must come to the same races first.
        return plan.limit - self.n_started + self._n_known

    # --- what differs between costs and races -------------------------------------------------

    losers_are_stopped: ClassVar[bool]
    """Whether the first to finish ends a race of the first round."""

    def _n_side_by_side(self) -> int:
        """Return how many passes may be under way at a time."""
        return 1

    @abc.abstractmethod
    def _first_round_share(self) -> float:
        """Return which share of a pass' trials goes to its first round."""

    @abc.abstractmethod
    def _pass(self, plan: PassPlan) -> Generator[SearchRound, None, bool]:
        """Race a pass; return whether anybody came through its first round."""

    @abc.abstractmethod
    def _scale(self, cost: float) -> float:
        """Return a cost as proposals are told of it."""

    @abc.abstractmethod
    def _units(self, behind: Mapping[int, Mapping[int, float]]) -> dict[int, float]:
        """Return which difference counts as one, by instance; where none is given, it is 1."""

    # --- parts ------------------------------------------------------------------------------

    def _judged_on(self, configuration: int) -> list[int]:
        """Return the instances that count of those that a configuration has met."""
        met = self.memory.met(configuration)
        return met[:1] if self._pool_size == 1 else met  # whatever the seed, the cost is the same

    def _n_judged_on(self, configuration: int) -> int:
        """Return how many those are."""
        n_met = self.memory.n_met(configuration)
        return min(1, n_met) if self._pool_size == 1 else n_met

    def _fresh_instance(self) -> int:
        """Return an instance that was not the first one of a pass yet, as long as there is one."""
        number = self._n_first_instances
        self._n_first_instances += 1
        return number if self._pool_size is None else number % self._pool_size

    @property
    def _the_champion(self) -> int:
        assert self.champion is not None  # there is one once a round has left anybody
        return self.champion

    def _groups(self, racers: Sequence[int]) -> list[list[int]]:
        return [list(racers[i : i + self._k]) for i in range(0, len(racers), self._k)]


class Order:
    """The instances in the order in which a pass meets them: known ones first, then fresh ones."""

    def __init__(self, known: Sequence[int], pool_size: int | None) -> None:
        self._instances = list(known)
        self._known = set(known)
        self._pool_size = pool_size
        self._next = 0

    def first(self, n: int) -> list[int]:
        """Return the first n, or as many as there are."""
        n = n if self._pool_size is None else min(n, self._pool_size)
        while len(self._instances) < n:
            if self._next not in self._known:
                self._instances.append(self._next)
            self._next += 1
        return self._instances[:n]


def best_of(costs: Mapping[int, float] | Mapping[int, Total], n: int) -> list[int]:
    """Return the n configurations with the lowest costs, ties in the order given."""
    return sorted(costs, key=costs.__getitem__)[:n]


def _race(place: RaceId, instance: int, limits: Mapping[int, float], *, to_the_end: bool) -> Race:
    """Return the race of those that have limits, infinite ones included."""
    bounded = any(math.isfinite(limit) for limit in limits.values())
    return Race(
        place, instance, tuple(limits), to_the_end, tuple(limits.values()) if bounded else None
    )
