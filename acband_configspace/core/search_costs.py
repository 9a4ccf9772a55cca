"""The default search with costs: every cost is known, and all are ranked together. Sans-I/O.

All that have ever met the first instance of a pass are ranked together, and a sixth of them goes
on (where one cost tells little, fewer enter and a quarter goes on). Where the number of trials is
known there are two passes: two fifths of the trials, then the rest, on another first instance,
since one may mislead. What they leave over goes to further ones.

These did not help, on eleven kinds of made-up tables and eight of run times: passes that double (a
fifth worse on the first, level on the second), one pass alone, groups that keep their own best
instead of a ranking of all (6 % worse), asynchronous promotion (10 to 20 % worse), an index by the
value of information under an estimated prior (better up to 100 trials, many times worse from 500
on where costs are not normal), a first round whose length follows the estimated noise more closely
than in two steps, a tenth or a third going on, not counting the first cost later on.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Generator, Mapping, Sequence

import numpy as np

from acband_configspace.core.epochs import last_true
from acband_configspace.core.memory import UNKNOWN, Total
from acband_configspace.core.search import MOST_BEST, Order, Search, SearchRound, best_of
from acband_configspace.core.search_plan import PassPlan, first_round_share
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
#: (on a few instances by more, since the champion may just have been lucky on them).
REACH_ON_FEW = 3.0
FEW_MET = 4
#: The number of configurations from which noise is estimated: enough, and cheap.
NOISE_SAMPLE = 32
#: Where so many differ from the champion, their median counts as much as that of all instances.
FEW_DIFFERENCES = 3
#: So many repeats with other seeds must agree to the digit to show that seeds do not matter.
ENOUGH_REPEATS = 8


class CostSearch(Search):
    """Looks for the lowest costs."""

    losers_are_stopped = False

    def _prepare(self) -> None:
        self._noise: float | None = None
        self._has_repeated = False
        self._first_instance = 0
        self._useless: set[int] = set()

    def _pass(self, plan: PassPlan) -> Generator[SearchRound, None, bool]:
        rng = np.random.default_rng([self._seed, 2, plan.number])
        entrants = self._entrants(plan, rng)
        order = Order((yield from self._known(entrants)), self._pool_size)
        met = order.first(1)
        yield self._first_round(entrants, met[0])
        alive = self._after_round(self._first_survivors(entrants, met[0]), met)
        somebody_kept_up = bool(alive)
        number = 1
        while self._rivals(alive) and (n_more := self._n_more(alive, order, len(met), plan)):
            met = order.first(len(met) + n_more)
            is_last = len(alive) == 1
            number += 1
            alive = rng.permutation(alive).tolist()
            yield self._further_round(number, alive, met)
            alive = self._after_round(self._survivors(alive, met), met)
            if is_last:
                break
        return somebody_kept_up

    # --- the first round ----------------------------------------------------------------------

    def _first_round_share(self) -> float:
        if self._tells_little():
            return FIRST_ROUND_SHARE_IN_NOISE
        return first_round_share(racing=False, n_trials=self._n_trials)

    def _tells_little(self) -> bool:
        """Return whether noise hides from one cost who is good; it is that of a difference."""
        if self._noise is None:
            return False
        costs = [self._finishing(racer, self._first_instance) for racer in range(self.n_entered)]
        costs = [cost for cost in costs if math.isfinite(cost)]
        variance = float(np.var(costs)) if len(costs) >= FEW else math.inf
        return self._noise**2 / 2.0 > (1.0 - LITTLE) * variance

    def _known(self, entrants: Sequence[int]) -> Generator[SearchRound, None, list[int]]:
        """Return the instances with which a pass begins, first one that tells configurations apart.

        The first group shows whether it does; the others follow there. The further ones are those
        that the champion has met.
        """
        met = [] if self.champion is None else self._judged_on(self.champion)
        pool_size = math.inf if self._pool_size is None else self._pool_size
        is_idle = self._n_idle_passes > 0 and len(entrants) > 0
        if is_idle and 0 < len(met) < pool_size and self._has_room_for([*entrants, 0]):
            known = set(met)
            unmet = next(number for number in itertools.count() if number not in known)
            return [unmet, *met]  # what the champion knows left nobody to race
        first = yield from self._sound(entrants, self._candidates(met))
        if self.champion is None:
            self._first_instance = first
        if not self._all_entered:
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
            if len(group) < 2:
                return instance
            if len(costs) > 1:
                self._useless.discard(instance)  # others were equal there, in an earlier pass
                return instance
            self._useless.add(instance)
            if best is None and min(costs, default=math.inf) < math.inf:
                best = instance  # rather where all are equal than where all fail
            if not self._has_room_for(entrants):
                break
        return instance if best is None else best

    def _repeat(self, entrants: Sequence[int], instance: int) -> Generator[SearchRound, None, None]:
        """If there are only seeds, find out whether they matter, once.

        By new configurations: those that are left later on were chosen, perhaps for being steady.
        """
        only_seeds = self._instances.n_names == 1 and self._pool_size is None
        if not only_seeds or self._has_repeated or instance in self._useless:
            return
        repeating, met = entrants[:ENOUGH_REPEATS], [instance]
        while repeating and self._has_room_for([*entrants[self._k :], *repeating]):
            self._has_repeated = True
            while (again := self._fresh_instance()) in met:
                pass
            met = [*met, again]
            groups = self._groups(repeating)
            yield SearchRound(1, groups, [met] * len(groups), True, {}, MOST_FIRST_INSTANCES - 1)
            self._learn_noise(repeating, met)
            costs = np.array([[self._finishing(racer, i) for i in met] for racer in repeating])
            if (costs != costs[:, :1]).any():
                return
            repeating = [r for r, cost in zip(repeating, costs[:, 0], strict=True) if cost < np.inf]
            if len(repeating) * (len(met) - 1) >= ENOUGH_REPEATS:
                self._pool_size = 1
                return

    def _has_room_for(self, racers: Sequence[int]) -> bool:
        """Return whether there are trials left for all of them to meet once."""
        return self._trials_left(self.plans[-1]) >= len(racers)

    def _first_round(
        self, entrants: Sequence[int], instance: int, n_before: int = 0
    ) -> SearchRound:
        groups = self._groups(entrants)
        if self.champion is not None and self.memory.cost(self.champion, instance) is None:
            groups.append([self.champion])
        return SearchRound(1, groups, [[instance]] * len(groups), True, {}, n_before)

    def _first_survivors(self, entrants: Sequence[int], instance: int) -> list[int]:
        best = self._best_on(instance, entrants)
        if not best:
            self._useless.add(instance)
        if self.champion is None and self.leader is not None and self.leader not in best:
            best.insert(0, self.leader)  # it shares the lowest cost, and somebody must go on
        return best

    def _best_on(self, instance: int, entrants: Sequence[int]) -> list[int]:
        """Return the best of all who have ever met an instance, the champion not counted.

        In a space that is used up, of those that enter once more.
        """
        new = not self._all_entered
        costs = {
            racer: cost
            for racer in (range(self.n_entered) if new else entrants)
            if racer != self.champion and math.isfinite(cost := self._finishing(racer, instance))
        }
        if not new:
            return best_of(costs, -(-len(costs) // 2))
        cut = FIRST_CUT_IN_NOISE if self._tells_little() else FIRST_CUT
        return best_of(costs, max(1, round(len(costs) / cut), min(FEW, len(costs) // FEW_CUT)))

    # --- further rounds -----------------------------------------------------------------------

    def _further_round(self, number: int, alive: Sequence[int], met: Sequence[int]) -> SearchRound:
        groups = self._groups(alive)
        if self._the_champion not in alive:  # it keeps up: all are judged by it
            groups.append([self._the_champion])
        return SearchRound(number, groups, [met] * len(groups), True, {})

    def _n_more(self, alive: Sequence[int], order: Order, n_met: int, plan: PassPlan) -> int:
        """Return on how many more instances those left are to meet: rounds take equal shares."""
        if self._pool_size == 1:
            return 0
        n_rounds = max(1, (len(alive) - 1).bit_length())  # as often as half of them are left
        left = plan.n_trials - self.n_started_in[plan.number]
        n_more = max(1, self._n_affordable(alive, order, n_met, left, left / n_rounds))
        if len(alive) == 1:
            n_more = max(n_more, self.memory.n_met(self._the_champion) - n_met)
        return self._n_affordable(alive, order, n_met, n_more, self._trials_left(plan))

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

    def _survivors(self, racers: Sequence[int], met: Sequence[int]) -> list[int]:
        """Return the better half; all are ranked together, since they met the same instances."""
        self._learn_noise(racers, met)
        totals = {racer: self.memory.total(racer, met) for racer in racers}
        known = {racer: total for racer, total in totals.items() if total != UNKNOWN}
        return best_of(known, max(1, len(racers) // 2))

    def _after_round(self, alive: Sequence[int], met: Sequence[int]) -> list[int]:
        """Crown who is better than the champion on all it has met; drop who is out of reach."""
        totals = {racer: self.memory.total(racer, met) for racer in alive}
        if self.champion is None and totals:
            self.champion = min(totals, key=totals.__getitem__)
        if self.champion is None:
            return []
        self._crown(alive)
        if totals:
            self._let_lead(min(totals, key=totals.__getitem__), met)
        alive = self._within_reach(alive, met)
        if 1 <= len(alive) <= MOST_BEST:
            self._last_left = sorted(alive, key=totals.__getitem__)
        return alive

    def _within_reach(self, racers: Sequence[int], met: Sequence[int]) -> list[int]:
        """Return who is not too far behind the champion, or leads.

        What all were chosen by counts only for failures: of many, the best on the first instance
        were lucky there, the champion above all.
        """
        champion, judged = self._the_champion, met[1:]
        if not judged:
            return list(racers)
        most = self._most(self.memory.total(champion, judged), len(judged))
        n_failed = self.memory.total(champion, met).n_failed
        return [
            racer
            for racer in racers
            if racer == self.leader  # it must not stay the incumbent without meeting the others
            or self.memory.total(racer, judged) <= most
            or self.memory.total(racer, met).n_failed < n_failed
        ]

    def _most(self, pace: Total, n_met: int) -> Total:
        """Return the most that leaves a configuration within reach of the champion."""
        error = math.inf if self._noise is None else self._noise * math.sqrt(n_met)
        reach = REACH_IN_ERRORS if n_met >= FEW_MET else REACH_ON_FEW
        return Total(pace.n_failed, pace.cost + reach * error)

    def _learn_noise(self, racers: Sequence[int], met: Sequence[int]) -> None:
        """Estimate how much costs vary."""
        known = [racer for racer in racers if self.memory.knows_all(racer, met)][:NOISE_SAMPLE]
        if not known:
            return
        costs = self.memory.block(known, met)
        costs = costs[:, np.isfinite(costs).any(axis=0)]  # where all fail says nothing
        noise = paired_noise(costs)
        self._noise = self._noise if noise is None else noise

    def _scale(self, cost: float) -> float:
        return cost

    def _units(self, behind: Mapping[int, Mapping[int, float]]) -> dict[int, float]:
        """Return how much configurations usually differ from the champion on each instance.

        It is the median; where few are known, something between that and the median of all.
        """
        found: dict[int, list[float]] = {}
        for some in (some for number, some in behind.items() if number != self.champion):
            for instance, difference in some.items():
                if math.isfinite(difference):
                    found.setdefault(instance, []).append(abs(difference))
        medians = {instance: float(np.median(some)) for instance, some in found.items()}
        usual = float(np.median(list(medians.values()))) if medians else 0.0
        if not usual:
            return {}
        units = {}
        for instance, median in medians.items():
            n = len(found[instance])
            units[instance] = (n * median + FEW_DIFFERENCES * usual) / (n + FEW_DIFFERENCES)
        return units
