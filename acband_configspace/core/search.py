"""The default search: CSE with memory, in passes. Sans-I/O.

A pass is one run of combinatorial successive elimination, with three changes to the paper's:

* *Results are kept.* All groups of a round meet the same instances, a configuration is judged by
  its costs on all that it has met in this pass, and nothing that is known is run again.
* *One race at first.* The first round puts as many new configurations as it can on one instance
  each, and keeps few of them. In the further rounds, the playoff, the better half goes on, on more
  instances.
* *The champion is in every round.* A pass starts on instances whose costs are known for the
  champion. Who falls too far behind it is dropped at once; who is left and better on all that the
  champion has met takes its place. So a pass costs little where nobody can keep up, and what is
  left goes to the next one.

*With costs* all that have ever met the first instance of a pass are ranked together, and a sixth
of them goes on (where one cost tells little, fewer enter and a quarter goes on). Where the number
of trials is known there are two passes: two fifths of the trials, then the rest, on another first
instance, since one may mislead. What they leave over goes to further ones.

*Where losers are stopped* (``racing``), the winner of a race of the first round goes on alone, and
nobody runs longer than would keep it within reach of the champion. The champion meets new
instances alone, for a fixed share of the time. Whoever is left meets twice as many of them in each
round, until it has met all of them. Passes grow in length.

What the passes are worth was measured on tables (rank of what is returned, or gap to the best,
against random search with SMAC's intensification); the constants lie in the middle of wide ranges
that are about equally good. With costs these did not help, on eleven kinds of made-up tables and
eight of run times: passes that double (a fifth worse on the first, level on the second), one pass
alone, groups that keep their own best instead of a ranking of all (6 % worse), asynchronous
promotion (10 to 20 % worse), an index by the value of information under an estimated prior (better
up to 100 trials, many times worse from 500 on where costs are not normal), a first round whose
length follows the estimated noise more closely than in two steps, a tenth or a third going on, not
counting the first cost later on.

In races these did not help: several rounds of races before the playoff, letting the runners-up of
a pass enter the next, a reach that shrinks with the number of instances met, taking only the best
of a pass to the hard instances, hard instances first, a ranking of all that are left instead of
groups, and passes of bounded length. All quick instances first, with square roots of times, are a
little better where configurations differ by the same factor everywhere (up to 200 median runs),
far worse where they differ on hard instances only (4 times the gap at 1,600 median runs).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from acband_configspace.core.ends import End
from acband_configspace.core.epochs import last_true
from acband_configspace.core.instances import Instances
from acband_configspace.core.memory import UNKNOWN, Memory, Total
from acband_configspace.core.race import Outcome, Race, RaceId
from acband_configspace.core.search_plan import (
    Draw,
    KnownBest,
    PassPlan,
    first_round_share,
    plan_pass,
)
from acband_configspace.core.statistics import paired_noise

#: Where every cost is known, one in so many of those who met the first instance goes on …
FIRST_CUT = 6
#: … but not fewer than so many, of a few configurations one in FEW_CUT.
FEW = 6
FEW_CUT = 4
#: One cost tells little of a configuration if configurations differ by less than this share of
#: the variance of their costs on an instance. Then fewer enter, and more of them go on.
LITTLE = 0.25
FIRST_ROUND_SHARE_IN_NOISE = 0.4
FIRST_CUT_IN_NOISE = 4
#: So many instances are tried in search of one on which configurations differ.
MOST_FIRST_INSTANCES = 5
#: So many of them may be instances where the champion failed: maybe nobody finishes there.
MOST_FAILED = 2
#: Within reach of the champion is a mean cost that exceeds its by this many standard errors
REACH_IN_ERRORS = 1.5
#: (on a few instances by more, since the champion may just have been lucky on them) …
REACH_ON_FEW = 3.0
FEW_MET = 4
#: … or, where losers are stopped, a run time of so many times its own.
REACH_IN_TIME = 1.5
#: Where losers are stopped, a pass starts on one of this share of the champion's instances, the
#: quickest: a race on a hard one takes long and tells no more.
QUICK_SHARE = 0.6
#: Where losers are stopped, the champion's own runs take at least this share of the time.
CHAMPION_SHARE = 0.2
#: Mean times count as at least this where something is divided by them.
SHORTEST_TIME = 1e-3
#: Who leads the champion on at least this share of the instances that it has met is the incumbent
#: until the pass is over.
LEAD_SHARE = 0.5
#: The number of configurations from which noise is estimated: enough, and cheap.
NOISE_SAMPLE = 32
#: So many repeats with other seeds must agree to the digit to show that seeds do not matter.
ENOUGH_REPEATS = 8
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


class Search:
    """Names the races that may run now, is told their outcomes, and knows who leads.

    Parameters
    ----------
    racing : bool
        Whether losers are stopped.
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
        racing: bool,
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
        self._racing = racing
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
        self._noise: float | None = None
        self._spent = 0.0
        self._n_idle_passes = 0
        self._n_entered_before = 0
        self._last_left: list[int] = []
        self._first_instance = 0
        self._useless: set[int] = set()
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
        self._rounds = self._run()
        self._advance()

    # --- races --------------------------------------------------------------------------------

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

    # --- passes -------------------------------------------------------------------------------

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
        )

    def _first_round_share(self) -> float:
        if self._pool_size == 1:  # there is no second instance to meet on
            return 1.0
        if self._tells_little():
            return FIRST_ROUND_SHARE_IN_NOISE
        n_trials = self._n_trials - self._n_known
        return first_round_share(racing=self._racing, n_trials=n_trials)

    def _tells_little(self) -> bool:
        """Return whether noise hides from one cost who is good; it is that of a difference."""
        if self._racing or self._noise is None:
            return False
        costs = [self._finishing(racer, self._first_instance) for racer in range(self.n_entered)]
        costs = [cost for cost in costs if math.isfinite(cost)]
        variance = float(np.var(costs)) if len(costs) >= FEW else math.inf
        return self._noise**2 / 2.0 > (1.0 - LITTLE) * variance

    def _pass(self, plan: PassPlan) -> Generator[SearchRound, None, bool]:
        """Race a pass; return whether anybody was left after its first round."""
        rng = np.random.default_rng([self._seed, 2, plan.number])
        if self._racing:
            known = self._known_in_races(rng)
            alive = self._entrants(plan, rng)
        else:
            alive = self._entrants(plan, rng)
            known = yield from self._known_with_costs(alive)
        order = _Order(known, self._pool_size)
        if self._racing and self._n_idle_passes and 0 < len(alive) < self._trials_left(plan):
            order.start_fresh()  # what the champion knows left nobody to race
        met = order.first(1)
        yield self._first_round(alive, met[0])
        alive = self._after_first_round(alive, met[0])
        somebody_kept_up = bool(alive)
        if not somebody_kept_up:
            self._useless.add(met[0])
        number, last = 1, False
        if self._racing and self.champion is not None:  # it sets the pace, alone
            number += 1
            fresh = order.first(self._n_for_champion(plan))
            yield self._further_round(number, [[self.champion]], fresh, {})
        while self._rivals(alive) and not last:
            n_more = self._n_more(alive, order, len(met), plan)
            if not n_more:
                break
            met = order.first(len(met) + n_more)
            last = len(alive) == 1 and not self._racing
            number += 1
            groups = self._groups(rng.permutation(alive).tolist())
            yield self._further_round(number, groups, met, self._allowances(alive, met))
            alive = self._after_further_round(groups, met)
        return somebody_kept_up

    # --- the first round ----------------------------------------------------------------------

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

    def _scale(self, cost: float) -> float:
        """Return a cost as proposals are told of it: of times, the ratios matter."""
        return math.log(max(cost, SHORTEST_TIME)) if self._racing else cost

    def _known_with_costs(self, entrants: Sequence[int]) -> Generator[SearchRound, None, list[int]]:
        """Return the instances with which a pass begins, first one that tells configurations apart.

        The first group shows whether it does; the others follow there. The further ones are those
        that the champion has met.
        """
        met = [] if self.champion is None else self._judged_on(self.champion)
        pool_size = math.inf if self._pool_size is None else self._pool_size
        is_idle = self._n_idle_passes > 0 and len(entrants) > 0
        if is_idle and 0 < len(met) < pool_size and self._has_room_for([*entrants, 0]):
            unmet = next(number for number in itertools.count() if number not in met)
            return [unmet, *met]  # what the champion knows left nobody to race
        first = yield from self._sound(entrants, self._candidates(met))
        if self.champion is None:
            self._first_instance = first
            yield from self._repeat(entrants, first)
        return [first, *(instance for instance in met if instance != first)]

    def _candidates(self, met: Sequence[int]) -> list[int]:
        """Return the instances on which a pass may begin, the best first.

        Of those that the champion has met these are the ones where it failed, and then others than
        in the passes before. As long as there is no champion, they are fresh ones.
        """
        if not met:
            most = min(self._pool_size or MOST_FIRST_INSTANCES, MOST_FIRST_INSTANCES)
            return [self._fresh_instance() for _ in range(most)]
        useful = [instance for instance in met if instance not in self._useless] or list(met)
        turn = (len(self.plans) - 1) % len(useful)
        turned = [*useful[turn:], *useful[:turn]]
        costs = {instance: self._finishing(self._the_champion, instance) for instance in turned}
        failed = [instance for instance in turned if math.isinf(costs[instance])]
        others = [instance for instance in turned if math.isfinite(costs[instance])]
        return [*failed[:MOST_FAILED], *others][:MOST_FIRST_INSTANCES]

    def _sound(
        self, entrants: Sequence[int], candidates: Sequence[int]
    ) -> Generator[SearchRound, None, int]:
        """Race the first group until it is on an instance that tells configurations apart."""
        group = entrants[: self._k]
        best: int | None = None
        for n_before, instance in enumerate(candidates):
            yield self._first_round(group, instance, n_before)
            costs = {self._finishing(racer, instance) for racer in group}
            if len(group) < 2 or len(costs) > 1:
                return instance
            self._useless.add(instance)
            if best is None and min(costs, default=math.inf) < math.inf:
                best = instance  # rather where all are equal than where all fail
            if not self._has_room_for(entrants):
                break
        return instance if best is None else best

    def _repeat(self, entrants: Sequence[int], instance: int) -> Generator[SearchRound, None, None]:
        """If there are only seeds, find out whether they matter."""
        group = entrants[: self._k]
        repeating = group[:ENOUGH_REPEATS]
        others = [*entrants[len(group) :], *repeating]
        only_seeds = self._instances.n_names == 1 and self._pool_size is None
        if only_seeds and instance not in self._useless and self._has_room_for(others):
            again = self._fresh_instance()
            yield SearchRound(1, [repeating], [again], True, {}, MOST_FIRST_INSTANCES)
            self._learn_noise(repeating, [instance, again])

    def _has_room_for(self, racers: Sequence[int]) -> bool:
        """Return whether there are trials left for all of them to meet once."""
        return self._trials_left(self.plans[-1]) >= len(racers)

    def _known_in_races(self, rng: np.random.Generator) -> list[int]:
        """Return the instances with which a pass begins: all that the champion has met.

        They come in random order but for a quick one that is first. As long as there is no
        champion, every pass tries another instance.
        """
        if self.champion is None:  # nobody has finished on the instances of the passes before
            return [self._fresh_instance()]
        met = self._judged_on(self.champion)
        order = [int(instance) for instance in rng.permutation(met)]
        costs = self.memory.costs(self.champion)
        n_quick = math.ceil(QUICK_SHARE * len(order))
        quick = set(sorted(order, key=costs.__getitem__)[:n_quick])
        first = next(instance for instance in order if instance in quick)
        order.remove(first)
        order.insert(0, first)
        return order

    def _fresh_instance(self) -> int:
        """Return an instance that was not the first one of a pass yet, as long as there is one."""
        number = self._n_first_instances
        self._n_first_instances += 1
        return number if self._pool_size is None else number % self._pool_size

    def _n_for_champion(self, plan: PassPlan) -> int:
        """Return how many instances the champion is to have met before anybody is judged by it."""
        met = self._judged_on(self._the_champion)
        own_time = self.memory.total(self._the_champion, met).cost
        due = (CHAMPION_SHARE * self._spent - own_time) / max(own_time / len(met), SHORTEST_TIME)
        n_more = min(max(1.0, due), len(met) + 1, self._trials_left(plan))
        return len(met) + math.ceil(n_more)

    def _first_round(
        self, entrants: Sequence[int], instance: int, n_before: int = 0
    ) -> SearchRound:
        groups, limits = self._groups(entrants), {}
        if self.champion is not None:
            if self.memory.cost(self.champion, instance) is None:
                groups.append([self.champion])
            if self._racing:
                limit = REACH_IN_TIME * self._finishing(self.champion, instance)
                limits = dict.fromkeys(entrants, limit)
        return SearchRound(1, groups, [instance], not self._racing, limits, n_before)

    def _after_first_round(self, entrants: Sequence[int], instance: int) -> list[int]:
        alive = []
        for group in self._groups(entrants):
            costs = {racer: self._finishing(racer, instance) for racer in group}
            # If nobody finishes, or several share the lowest cost, nobody is credited.
            best = min(costs.values())
            winners = [racer for racer, cost in costs.items() if cost == best < math.inf]
            alive += winners if len(winners) == 1 else []
        if not self._racing:
            alive = self._best_on(instance, entrants)
        if self.champion is None and self.leader is not None and self.leader not in alive:
            alive.insert(0, self.leader)  # it shares the lowest cost, and somebody must go on
        return self._after_round(alive, [instance])

    def _best_on(self, instance: int, entrants: Sequence[int]) -> list[int]:
        """Return the best of all who have ever met an instance, the champion not counted.

        In a space that is used up, of those that enter once more.
        """
        new = self.n_entered > self._n_entered_before
        costs = {
            racer: cost
            for racer in (range(self.n_entered) if new else entrants)
            if racer != self.champion and math.isfinite(cost := self._finishing(racer, instance))
        }
        if not new:
            return _best(costs, -(-len(costs) // 2))
        cut = FIRST_CUT_IN_NOISE if self._tells_little() else FIRST_CUT
        return _best(costs, max(1, round(len(costs) / cut), min(FEW, len(costs) // FEW_CUT)))

    # --- further rounds -----------------------------------------------------------------------

    def _rivals(self, alive: Sequence[int]) -> list[int]:
        """Return who is left besides the champion."""
        return [racer for racer in alive if racer != self.champion]

    def _n_more(self, alive: Sequence[int], order: _Order, n_met: int, plan: PassPlan) -> int:
        """Return on how many more instances those left are to meet.

        With costs every round takes as many trials. In races their number doubles, up to all that
        the champion has met.
        """
        if self._pool_size == 1:  # noticed on the way
            return 0
        if self._racing:
            n_more = min(n_met, self.memory.n_met(self._the_champion) - n_met)
            return self._n_affordable(alive, order, n_met, n_more, self._trials_left(plan))
        n_rounds = max(1, (len(alive) - 1).bit_length())  # as often as half of them are left
        left = plan.n_trials - (self.n_started - self.n_started_before)
        n_more = max(1, self._n_affordable(alive, order, n_met, left, left / n_rounds))
        if len(alive) == 1:
            n_more = max(n_more, self.memory.n_met(self._the_champion) - n_met)
        return self._n_affordable(alive, order, n_met, n_more, self._trials_left(plan))

    def _n_affordable(
        self, alive: Sequence[int], order: _Order, n_met: int, most: int, n_trials: float
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

    def _allowances(self, alive: Sequence[int], met: Sequence[int]) -> dict[int, float]:
        """Return what each may take on an instance without falling out of the champion's reach."""
        if not self._racing:
            return {}
        most = self._reach(self.memory.total(self._the_champion, met), len(met))
        allowances = {}
        for racer in alive:
            known = self.memory.total_so_far(racer, met)
            if racer == self.champion or known.n_failed < most.n_failed:
                continue
            behind = known.n_failed > most.n_failed
            allowances[racer] = -math.inf if behind else most.cost - known.cost
        return allowances

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
        alive: list[int] = []
        # Where every cost is known all are ranked together: they have met the same instances.
        together = groups if self._racing else [[racer for group in groups for racer in group]]
        for racers in together:
            totals = {racer: self.memory.total(racer, met) for racer in racers}
            known = {racer: total for racer, total in totals.items() if total != UNKNOWN}
            alive += _best(known, max(1, len(racers) // 2))
        self._learn_noise([racer for group in groups for racer in group], met)
        return self._after_round(alive, met)

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

    def _within_reach(self, racers: Sequence[int], met: Sequence[int]) -> list[int]:
        """Return who is not too far behind the champion.

        With costs, what all were chosen by counts only for failures: of many, the best on the first
        instance were lucky there, the champion above all.
        """
        champion = self._the_champion
        judged = met if self._racing else met[1:]
        if not judged:
            return list(racers)
        most = self._reach(self.memory.total(champion, judged), len(judged))
        n_failed = self.memory.total(champion, met).n_failed
        return [
            racer
            for racer in racers
            if self.memory.total(racer, judged) <= most
            or self.memory.total(racer, met).n_failed < n_failed
        ]

    def _reach(self, pace: Total, n_met: int) -> Total:
        """Return the most that leaves a configuration within reach of the champion."""
        if self._racing:
            return Total(pace.n_failed, REACH_IN_TIME * pace.cost)
        error = math.inf if self._noise is None else self._noise * math.sqrt(n_met)
        reach = REACH_IN_ERRORS if n_met >= FEW_MET else REACH_ON_FEW
        return Total(pace.n_failed, pace.cost + reach * error)

    def _learn_noise(self, racers: Sequence[int], met: Sequence[int]) -> None:
        """Estimate how much costs vary, and notice a target whose costs do not depend on seeds."""
        known = [racer for racer in racers if self.memory.knows_all(racer, met)][:NOISE_SAMPLE]
        if not known or self._racing:
            return
        costs = self.memory.block(known, met)
        costs = costs[:, np.isfinite(costs).any(axis=0)]  # where all fail says nothing
        noise = paired_noise(costs)
        self._noise = self._noise if noise is None else noise
        n_repeats = len(known) * (costs.shape[1] - 1) if self._instances.n_names == 1 else 0
        if len(known) > 1 and n_repeats >= ENOUGH_REPEATS and (costs == costs[:, :1]).all():
            self._pool_size = 1

    def _judged_on(self, configuration: int) -> list[int]:
        """Return the instances that count of those that a configuration has met."""
        met = self.memory.met(configuration)
        return met[:1] if self._pool_size == 1 else met  # whatever the seed, the cost is the same

    # --- parts --------------------------------------------------------------------------------

    @property
    def _the_champion(self) -> int:
        assert self.champion is not None  # there is one once a round has left anybody
        return self.champion

    def _groups(self, racers: Sequence[int]) -> list[list[int]]:
        return [list(racers[i : i + self._k]) for i in range(0, len(racers), self._k)]


class _Order:
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


def _best(costs: Mapping[int, float] | Mapping[int, Total], n: int) -> list[int]:
    """Return the n configurations with the lowest costs, ties in the order given."""
    return sorted(costs, key=costs.__getitem__)[:n]
