"""The default search where losers are stopped: it looks for the lowest run times. Sans-I/O.

A pass is short. Its groups race on an instance that the champion has met, and nobody may take
longer than the champion took there. The winner of a group challenges the champion: it may take as
long as the champion on 2, 4, 8, … instances, is dropped as soon as it takes longer, and is crowned
when it has met them all. Meanwhile the champion meets as many new instances as there are groups, so
that whoever is lucky on a few of them does not stay for long.

Measured against random search with SMAC's intensification and capping, by the gap to the best on
eight kinds of made-up tables and three recorded ones after 100 to 1,600 median runs: 8 to 15 % less
on the first, a quarter to two thirds less on the second. These did not help. Longer passes: 10 to
20 % worse if they grow by half, and worse still the more configurations a short run has seen.
Letting challengers fall behind by a fifth or a half, at first or later on: 0 to 10 %. Only the
better half of the challengers going on, more than one race before the challenge (two: level, three:
20 to 40 % worse), twice the champion's new instances (10 %), fresh instances before a coronation
(5 to 10 %), a return of earlier champions. A model of times (instance × configuration, with
quick instances first where they tell more for their time) has half to three quarters of the gap
where configurations differ by the same factor everywhere, and up to ten times the gap where they
differ more on hard instances.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence

import numpy as np

from acband_configspace.core.search import Order, Search, SearchRound
from acband_configspace.core.search_plan import PassPlan, first_round_share

#: Times count as at least this where their logarithms are taken.
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
        """Return the instances with which a pass begins: all that the champion has met, shuffled.

        In one order for all passes, a champion that is lucky on the first ones would turn everybody
        away. As long as there is no champion, every pass tries another instance.
        """
        if self.champion is None:  # nobody has finished on the instances of the passes before
            return [self._fresh_instance()]
        return [int(instance) for instance in rng.permutation(self._judged_on(self.champion))]

    def _first_limits(self, entrants: Sequence[int], instance: int) -> dict[int, float]:
        return dict.fromkeys(entrants, self._finishing(self._the_champion, instance))

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
        n_met = len(self._judged_on(self._the_champion))
        n_groups = -(-plan.n_entrants // self._k)
        return n_met + math.ceil(min(n_groups, n_met + 1, self._trials_left(plan)))

    def _n_more(self, alive: Sequence[int], order: Order, n_met: int, plan: PassPlan) -> int:
        """Return on how many more instances they are to meet: twice as many, or all there are."""
        if self._pool_size == 1:
            return 0
        n_more = min(n_met, self.memory.n_met(self._the_champion) - n_met)
        return self._n_affordable(alive, order, n_met, n_more, self._trials_left(plan))

    def _is_last(self, alive: Sequence[int]) -> bool:
        return False  # the last one ends when it has met all

    def _allowances(self, alive: Sequence[int], met: Sequence[int]) -> dict[int, float]:
        """Return what each may take on an instance without taking longer than the champion."""
        pace = self.memory.total(self._the_champion, met)
        allowances = {}
        for racer in self._rivals(alive):
            known = self.memory.total_so_far(racer, met)
            if known.n_failed >= pace.n_failed:
                behind = known.n_failed > pace.n_failed
                allowances[racer] = -math.inf if behind else pace.cost - known.cost
        return allowances

    def _survivors(self, groups: Sequence[Sequence[int]], met: Sequence[int]) -> list[int]:
        return [racer for group in groups for racer in group]

    def _within_reach(self, racers: Sequence[int], met: Sequence[int]) -> list[int]:
        pace = self.memory.total(self._the_champion, met)
        return [
            racer
            for racer in racers
            if racer == self.champion or self.memory.total(racer, met) < pace
        ]

    def _scale(self, cost: float) -> float:
        return math.log(max(cost, SHORTEST_TIME))  # of times, the ratios matter
