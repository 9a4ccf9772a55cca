"""The default search: CSE with memory, in passes. Sans-I/O.

A pass is one run of combinatorial successive elimination, with three changes to the paper's:

* *Results are kept.* All groups of a round meet the same instances, a configuration is judged by
  its costs on all that it has met in this pass, and nothing that is known is run again.
* *One race at first.* The first round puts as many new configurations as it can on one instance
  each, and keeps few of them. In the further rounds, the playoff, those who keep up meet on more
  instances.
* *The champion is in every round.* A pass starts on instances whose costs are known for the
  champion. Who falls too far behind it is dropped at once; who is left and better on all that the
  champion has met takes its place. So a pass costs little where nobody can keep up, and what is
  left goes to the next one.

What a round is like differs between ``search_costs`` and ``search_races``.

What the passes are worth was measured on tables (rank of what is returned, or gap to the best,
against random search with SMAC's intensification); the constants lie in the middle of wide ranges
that are about equally good. What did not help stands there.
"""

from __future__ import annotations

import abc
import math
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from acband_configspace.core.ends import End
from acband_configspace.core.epochs import last_true
from acband_configspace.core.instances import Instances
from acband_configspace.core.memory import UNKNOWN, Memory, Total
from acband_configspace.core.race import Outcome, Race, RaceId
from acband_configspace.core.search_plan import Draw, KnownBest, PassPlan, plan_pass

#: Who leads the champion on at least this share of the instances that it has met is the incumbent
#: until the pass is over.
LEAD_SHARE = 0.5
#: A run that was stopped counts as slower than the champion's by this logarithm of a factor.
STOPPED_BEHIND = math.log(2.0)
#: Of those left in the last pass, so many count as good besides the champion.
MOST_BEST = 4
#: After so many passes in a row that brought no new configuration, and in which nothing had to be
#: run or nobody kept up with the champion, there is nothing left to learn.
MOST_IDLE_PASSES = 20


@dataclass(frozen=True)
class SearchRound:
    """A round: groups that meet the same instances."""

    number: int
    """Within the pass, from 1."""
    groups: Sequence[Sequence[int]]
    instances: Sequence[int]
    to_the_end: bool
    """Whether losers go on."""
    limits: dict[int, float]
    """The cost at which a configuration is stopped on an instance, where there is one."""
    n_before: int = 0
    """How many races each group has had in this round already."""


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
        Asked for n configurations, returns how many of them there are (a finite space may have
        fewer).
    n_given : int
        How many configurations are given: they enter the first pass.
    n_trials : float
        How many trials may be started; infinity if something else ends the run.
    n_known : int
        How many of them at most are known beforehand.
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
        n_known: int = 0,
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
        self._n_known = n_known
        self._seed = seed
        self._recorded_plans = list(plans)
        self._pool_size = instances.n_distinct
        self._spent = 0.0
        self._n_idle_passes = 0
        self._n_entered_before = 0
        self._last_left: list[int] = []
        self._n_first_instances = 0
        self.memory = Memory()
        """What is known."""
        self.plans: list[PassPlan] = []
        """The plans of all passes so far."""
        self.champion: int | None = None
        """The best configuration so far on all instances that it has met."""
        self.leader: int | None = None
        """The incumbent: the champion, or who leads it in this pass."""
        self.n_entered = 0
        """How many configurations have raced."""
        self.n_started = 0
        """How many trials were started."""
        self.n_started_before = 0
        """How many of them in earlier passes."""
        self.finished: str | None = None
        """Why there is nothing left to race."""
        self.round: SearchRound | None = None
        self._waiting: Iterator[Race] = iter(())
        self._races: list[Race] = []
        self._told: dict[RaceId, Outcome] = {}
        self._n_judged = 0
        self._prepare()
        self._rounds = self._run()
        self._advance()

    # --- races ------------------------------------------------------------------------------

    def ask(self) -> Race | None:
        """Return a race that may run now, None if outcomes must be told first, or all is over."""
        return next(self._waiting, None)

    def tell(self, race: Race, outcome: Outcome) -> None:
        """Take in what a race brought; the last one of a round decides it."""
        self._told[race.id] = outcome
        while self._n_judged < len(self._races):  # in race order, without gaps
            judged = self._races[self._n_judged]
            told = self._told.pop(judged.id, None)
            if told is None:
                return
            self._judge(judged, told)
            self._n_judged += 1
        self._advance()

    def _judge(self, race: Race, outcome: Outcome) -> None:
        for racer, cost, end in zip(race.racers, outcome.costs, outcome.ends, strict=True):
            if math.isfinite(cost):
                self._spent += cost
            if end is End.LOST:
                self.memory.add_bound(racer, race.instance, cost)
                continue
            self.memory.add(racer, race.instance, cost, finished=end is End.FINISHED)
        if self.champion is None:  # the best of the first race leads until there is a better one
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

    def _advance(self) -> None:
        """Go on to the next round in which anything has to be run."""
        for round_ in self._rounds:
            self.round = round_
            self._races = list(self._races_of(round_))
            self._n_judged = 0
            self._waiting = iter(self._races)
            self.n_started += sum(len(race.racers) for race in self._races)
            if self._races:
                return
        self.round = None

    def _races_of(self, round_: SearchRound) -> Iterator[Race]:
        """Yield the races of a round, all groups advancing together: what is known is not run."""
        for index, instance in enumerate(round_.instances):
            for number, group in enumerate(round_.groups):
                limits = self._limits(round_, group, instance)
                if not limits:
                    continue
                bounded = any(math.isfinite(limit) for limit in limits.values())
                yield Race(
                    RaceId(len(self.plans), 1, round_.number, number, round_.n_before + index),
                    instance,
                    tuple(limits),
                    round_.to_the_end,
                    tuple(limits.values()) if bounded else None,
                )

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

    def _run(self) -> Generator[SearchRound, None, None]:
        while (plan := self._plan()) is not None:
            self.plans.append(plan)
            self.n_started_before, self._n_entered_before = self.n_started, self.n_entered
            somebody_kept_up = yield from self._pass(plan)
            nothing_run = self.n_started == self.n_started_before
            hopeless = self.champion is not None and not somebody_kept_up
            idle = nothing_run or (hopeless and self.n_entered == self._n_entered_before)
            self._n_idle_passes = self._n_idle_passes + 1 if idle else 0

    def _plan(self) -> PassPlan | None:
        """Plan the next pass, or say why there is none."""
        number = len(self.plans) + 1
        if self._recorded_plans:
            return self._recorded_plans.pop(0)
        left = self._n_trials - self.n_started
        if left > self._n_known:  # what is known beforehand takes no time, and may never be used
            left -= self._n_known
        if left < 1:
            self.finished = f"all n_trials={self._n_trials:.0f} trials are used"
            return None
        if self._n_idle_passes >= MOST_IDLE_PASSES:
            self.finished = "every configuration of the space has raced: nothing is left to learn"
            return None
        return plan_pass(
            number,
            left=left,
            first_pass=self._first_pass,
            growth=self._growth,
            share=self._first_round_share(),
            at_least=self._n_given if number == 1 else 1,
            limit=self._n_trials,
            multiple=self._k if self.losers_are_stopped else 1,
        )

    def _pass(self, plan: PassPlan) -> Generator[SearchRound, None, bool]:
        """Race a pass; return whether anybody was left after its first round."""
        rng = np.random.default_rng([self._seed, 2, plan.number])
        alive, order = yield from self._begin(plan, rng)
        met = order.first(1)
        yield self._first_round(alive, met[0])
        alive = self._after_first_round(alive, met[0])
        somebody_kept_up = bool(alive)
        number = yield from self._set_pace(plan, order)
        while self._rivals(alive) and (n_more := self._n_more(alive, order, len(met), plan)):
            met = order.first(len(met) + n_more)
            is_last = self._is_last(alive)
            number += 1
            groups = self._groups(rng.permutation(alive).tolist())
            yield self._further_round(number, groups, met, self._allowances(alive, met))
            alive = self._after_further_round(groups, met)
            if is_last:
                break
        return somebody_kept_up

    def _entrants(self, plan: PassPlan, rng: np.random.Generator) -> list[int]:
        """Return new configurations; those dropped before, if there is no new one."""
        n_there = self._draw(self.n_entered + plan.n_entrants, self._known_best(plan))
        new = list(range(self.n_entered, min(n_there, self.n_entered + plan.n_entrants)))
        self.n_entered += len(new)
        if new:
            return new
        others = [number for number in range(self.n_entered) if number != self.champion]
        return [int(number) for number in rng.permutation(others)[: plan.n_entrants]]

    def _known_best(self, plan: PassPlan) -> KnownBest:
        if self.champion is None:
            return KnownBest(plan.number, tuple(range(self._n_given)))
        others = (racer for racer in self._last_left if racer != self.champion)
        behind = self.memory.behind(self.champion, self._scale, STOPPED_BEHIND)
        means = {number: sum(some) / len(some) for number, some in behind.items()}
        n_common = {number: len(some) for number, some in behind.items()}
        return KnownBest(plan.number, (self.champion, *others), means, n_common)

    # --- rounds -----------------------------------------------------------------------------

    def _first_round(
        self, entrants: Sequence[int], instance: int, n_before: int = 0
    ) -> SearchRound:
        groups, limits = self._groups(entrants), {}
        if self.champion is not None:
            if self.memory.cost(self.champion, instance) is None:
                groups.append([self.champion])
            limits = self._first_limits(entrants, instance)
        to_the_end = not self.losers_are_stopped
        return SearchRound(1, groups, [instance], to_the_end, limits, n_before)

    def _after_first_round(self, entrants: Sequence[int], instance: int) -> list[int]:
        alive = self._first_survivors(entrants, instance)
        if self.champion is None and self.leader is not None and self.leader not in alive:
            alive.insert(0, self.leader)  # it shares the lowest cost, and somebody must go on
        return self._after_round(alive, [instance])

    def _rivals(self, alive: Sequence[int]) -> list[int]:
        """Return who is left besides the champion."""
        return [racer for racer in alive if racer != self.champion]

    def _n_affordable(
        self, alive: Sequence[int], order: Order, n_met: int, most: int, n_trials: float
    ) -> int:
        """Return on how many more instances, at most, they can meet with so many trials."""
        racers = {*alive, self._the_champion}

        def affordable(n: int) -> bool:
            more = order.first(n_met + n)[n_met:]
            return len(more) == n and self.memory.n_unknown(racers, more) <= n_trials

        n = 1
        while n < most and affordable(n):  # few, as a rule, even of very many
            n *= 2
        return last_true(affordable, 0, max(0, min(n, most)))

    def _trials_left(self, plan: PassPlan) -> float:
        return min(plan.limit, self._n_trials) - self.n_started

    def _further_round(
        self,
        number: int,
        groups: Sequence[Sequence[int]],
        met: Sequence[int],
        limits: dict[int, float],
    ) -> SearchRound:
        champion = self._the_champion
        if not any(champion in group for group in groups):  # it keeps up: all are judged by it
            groups = [*groups, [champion]]
        return SearchRound(number, groups, met, True, limits)

    def _after_further_round(
        self, groups: Sequence[Sequence[int]], met: Sequence[int]
    ) -> list[int]:
        return self._after_round(self._survivors(groups, met), met)

    def _better_half(self, racers: Sequence[int], met: Sequence[int]) -> list[int]:
        totals = {racer: self.memory.total(racer, met) for racer in racers}
        known = {racer: total for racer, total in totals.items() if total != UNKNOWN}
        return best_of(known, max(1, len(racers) // 2))

    def _after_round(self, alive: Sequence[int], met: Sequence[int]) -> list[int]:
        """Crown who is better than the champion on all it has met; drop who is out of reach."""
        totals = {racer: self.memory.total(racer, met) for racer in alive}
        if self.champion is None and totals:
            self.champion = min(totals, key=totals.__getitem__)
        champion = self.champion
        if champion is None:
            return []
        all_met = self._judged_on(champion)
        rivals = [racer for racer in alive if self.memory.knows_all(racer, all_met)]
        self.champion = min(
            [champion, *rivals], key=lambda racer: self.memory.total(racer, all_met)
        )
        pace = self.memory.total(self.champion, met)
        all_met = self._judged_on(self.champion)
        self._lead(self.champion, all_met)
        if totals and len(met) >= LEAD_SHARE * len(all_met):
            best = min(totals, key=totals.__getitem__)
            if totals[best] < pace:
                self._lead(best, met)
        alive = self._within_reach(alive, met)
        if 1 <= len(alive) <= MOST_BEST:
            self._last_left = sorted(alive, key=totals.__getitem__)
        return alive

    # --- what differs between costs and races -------------------------------------------------

    losers_are_stopped: ClassVar[bool]
    """Whether the first to finish ends a race of the first round."""

    @abc.abstractmethod
    def _prepare(self) -> None:
        """Set up what only this kind of search keeps."""

    @abc.abstractmethod
    def _first_round_share(self) -> float:
        """Return which share of a pass' trials goes to its first round."""

    @abc.abstractmethod
    def _begin(
        self, plan: PassPlan, rng: np.random.Generator
    ) -> Generator[SearchRound, None, tuple[list[int], Order]]:
        """Return who enters a pass, and the order in which instances are met."""

    @abc.abstractmethod
    def _first_limits(self, entrants: Sequence[int], instance: int) -> dict[int, float]:
        """Return the cost at which each is stopped in the first round, if there is a champion."""

    @abc.abstractmethod
    def _first_survivors(self, entrants: Sequence[int], instance: int) -> list[int]:
        """Return who goes on after the first round."""

    @abc.abstractmethod
    def _set_pace(self, plan: PassPlan, order: Order) -> Generator[SearchRound, None, int]:
        """Let the champion run ahead; return the number of the round before the next one."""

    @abc.abstractmethod
    def _n_more(self, alive: Sequence[int], order: Order, n_met: int, plan: PassPlan) -> int:
        """Return on how many more instances those left are to meet."""

    @abc.abstractmethod
    def _is_last(self, alive: Sequence[int]) -> bool:
        """Return whether the coming round is the last one of a pass."""

    @abc.abstractmethod
    def _allowances(self, alive: Sequence[int], met: Sequence[int]) -> dict[int, float]:
        """Return what each may take on an instance without falling out of the champion's reach."""

    @abc.abstractmethod
    def _survivors(self, groups: Sequence[Sequence[int]], met: Sequence[int]) -> list[int]:
        """Return who goes on after a further round."""

    @abc.abstractmethod
    def _within_reach(self, racers: Sequence[int], met: Sequence[int]) -> list[int]:
        """Return who is not too far behind the champion."""

    @abc.abstractmethod
    def _scale(self, cost: float) -> float:
        """Return a cost as proposals are told of it."""

    # --- parts ------------------------------------------------------------------------------

    def _judged_on(self, configuration: int) -> list[int]:
        """Return the instances that count of those that a configuration has met."""
        met = self.memory.met(configuration)
        return met[:1] if self._pool_size == 1 else met  # whatever the seed, the cost is the same

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

    def start_fresh(self) -> None:
        """Put a fresh instance before the known ones, if there is one left."""
        n_known = len(self._instances)
        self.first(n_known + 1)
        self._instances = [*self._instances[n_known:], *self._instances[:n_known]]


def best_of(costs: Mapping[int, float] | Mapping[int, Total], n: int) -> list[int]:
    """Return the n configurations with the lowest costs, ties in the order given."""
    return sorted(costs, key=costs.__getitem__)[:n]
