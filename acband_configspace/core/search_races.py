"""The default search where losers are stopped: it looks for the lowest run times. Sans-I/O.

The winner of a race of the first round goes on alone, and nobody runs longer than would keep it
within reach of the champion. The champion meets new instances alone, for a fixed share of the
time. Whoever is left meets twice as many of them in each round, until it has met all of them.
Passes grow in length.

These did not help: several rounds of races before the playoff, letting the runners-up of a pass
enter the next, a reach that shrinks with the number of instances met, taking only the best of a
pass to the hard instances, hard instances first, a ranking of all that are left instead of groups,
and passes of bounded length. All quick instances first, with square roots of times, are a little
better where configurations differ by the same factor everywhere (up to 200 median runs), far worse
where they differ on hard instances only (4 times the gap at 1,600 median runs).
"""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence

import numpy as np

from acband_configspace.core.memory import Total
from acband_configspace.core.search import Order, Search, SearchRound
from acband_configspace.core.search_plan import PassPlan, first_round_share

#: Within reach of the champion is a run time of so many times its own.
REACH_IN_TIME = 1.5
#: A pass starts on one of this share of the champion's instances, the quickest: a race on a hard
#: one takes long and tells no more.
QUICK_SHARE = 0.6
#: The champion's own runs take at least this share of the time.
CHAMPION_SHARE = 0.2
#: Mean times count as at least this where something is divided by them.
SHORTEST_TIME = 1e-3


class RaceSearch(Search):
    """Looks for the lowest run times."""

    losers_are_stopped = True

    def _prepare(self) -> None:
        pass

    # --- the first round ----------------------------------------------------------------------

    def _first_round_share(self) -> float:
        if self._pool_size == 1:  # there is no second instance to meet on
            return 1.0
        return first_round_share(racing=True, n_trials=self._n_trials)

    def _begin(
        self, plan: PassPlan, rng: np.random.Generator
    ) -> Generator[SearchRound, None, tuple[list[int], Order]]:
        yield from ()  # nothing has to be run before
        order = Order(self._known(rng), self._pool_size)
        entrants = self._entrants(plan, rng)
        if self._n_idle_passes and 0 < len(entrants) < self._trials_left(plan):
            order.start_fresh()  # what the champion knows left nobody to race
        return entrants, order

    def _known(self, rng: np.random.Generator) -> list[int]:
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

    def _first_limits(self, entrants: Sequence[int], instance: int) -> dict[int, float]:
        return dict.fromkeys(
            entrants, REACH_IN_TIME * self._finishing(self._the_champion, instance)
        )

    def _first_survivors(self, entrants: Sequence[int], instance: int) -> list[int]:
        alive = []
        for group in self._groups(entrants):
            costs = {racer: self._finishing(racer, instance) for racer in group}
            # If nobody finishes, or several share the lowest cost, nobody is credited.
            best = min(costs.values())
            winners = [racer for racer, cost in costs.items() if cost == best < math.inf]
            alive += winners if len(winners) == 1 else []
        return alive

    # --- further rounds -----------------------------------------------------------------------

    def _set_pace(self, plan: PassPlan, order: Order) -> Generator[SearchRound, None, int]:
        if self.champion is None:
            return 1
        fresh = order.first(self._n_for_champion(plan))
        yield self._further_round(2, [[self.champion]], fresh, {})
        return 2

    def _n_for_champion(self, plan: PassPlan) -> int:
        """Return how many instances the champion is to have met before anybody is judged by it."""
        met = self._judged_on(self._the_champion)
        own_time = self.memory.total(self._the_champion, met).cost
        due = (CHAMPION_SHARE * self._spent - own_time) / max(own_time / len(met), SHORTEST_TIME)
        n_more = min(max(1.0, due), len(met) + 1, self._trials_left(plan))
        return len(met) + math.ceil(n_more)

    def _n_more(self, alive: Sequence[int], order: Order, n_met: int, plan: PassPlan) -> int:
        """Return on how many more instances they are to meet: twice as many, or all there are."""
        if self._pool_size == 1:
            return 0
        n_more = min(n_met, self.memory.n_met(self._the_champion) - n_met)
        return self._n_affordable(alive, order, n_met, n_more, self._trials_left(plan))

    def _is_last(self, alive: Sequence[int]) -> bool:
        return False  # the last one ends when it has met all

    def _allowances(self, alive: Sequence[int], met: Sequence[int]) -> dict[int, float]:
        """Return what each may take on an instance without falling out of the champion's reach."""
        most = self._most(met)
        allowances = {}
        for racer in alive:
            known = self.memory.total_so_far(racer, met)
            if racer == self.champion or known.n_failed < most.n_failed:
                continue
            behind = known.n_failed > most.n_failed
            allowances[racer] = -math.inf if behind else most.cost - known.cost
        return allowances

    def _survivors(self, groups: Sequence[Sequence[int]], met: Sequence[int]) -> list[int]:
        return [racer for group in groups for racer in self._better_half(group, met)]

    def _within_reach(self, racers: Sequence[int], met: Sequence[int]) -> list[int]:
        most = self._most(met)
        return [racer for racer in racers if self.memory.total(racer, met) <= most]

    def _most(self, met: Sequence[int]) -> Total:
        """Return the most that leaves a configuration within reach of the champion."""
        pace = self.memory.total(self._the_champion, met)
        return Total(pace.n_failed, REACH_IN_TIME * pace.cost)

    def _scale(self, cost: float) -> float:
        return math.log(max(cost, SHORTEST_TIME))  # of times, the ratios matter
