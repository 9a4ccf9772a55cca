"""The default search where losers are stopped: it looks for the lowest run times. Sans-I/O.

A pass is short. Each of its groups races on an instance that the champion has met, and nobody may
take longer there than the champion did. The winner of a group challenges the champion: it meets 2,
4, 8, … of the champion's instances, in an order of its own, is dropped once it has taken longer
than the champion, and is crowned when it has met them all. Meanwhile the champion meets as many new
instances as there are groups, so that who is lucky on a few of them does not stay for long.

Passes overlap: while the winners of one are challenging, the groups of the next ones race already,
so that no worker waits for the last race of a round. They are judged pass by pass, and each pass
takes the champion and the instances of the moment at which it began, however many workers there
are. On eight tables that costs nothing for the same CPU time: .86, .98, .98, .99 and .89 of the gap
with one pass after the other, after 100, 200, 400, 800 and 1,600 median runs (40 seeds and more).
Two workers are busy for .98 of the time instead of .93, eight for .59 instead of .46, and since a
race begins with any free worker four for .87 instead of .74, eight for .61, sixteen for .35
(``benchmark workers --seeds 5``). Always four passes at a time: 1.06, 1.11, 1.02, 1.05 and .96 of
the gap. Rounds judged in the order in which they began, instead of pass by pass: 1.1 to 1.4 times
the gap, since a coronation takes longer. Passes of at least 5, 11 or 22 trials for each of 16
workers, or 4 or 8 at a time from the start, make them busier (.33 to .49 instead of .29) and find
nothing better for it: .86 to 1.10 of the gap after 1,600 median runs, with errors of .1 (seven
tables, 20 seeds).

Measured by the gap to the best configuration after 100, 200, 400, 800 and 1,600 median runs,
against random search with SMAC's intensification and capping: .76, .66, 1.17, 1.20 and .45 of its
gap on the three recorded tables; before passes overlapped .72, .88, .89, 1.08 and .74 there, and
1.01, 1.00, 1.07, 1.07 and 1.12 on twelve made-up tables (20 seeds each). Where all its challengers
meet the instances in one order, as in ParamILS, that search has 1.2 to 2.8 times the gap. The
constants lie in the middle of wide ranges that are about equally good.

These did not help. All groups of a pass on one instance, or one order for all challengers: 5 to 10
% worse. Passes that grow by half, half of the groups that are left going on, challengers that may
fall behind by a half: 10 to 25 % worse. Letting them fall behind by less, at first or later on;
more of the champion's instances, or quick ones first; fresh instances, or a margin, before a
coronation; earlier champions that come back; instances drawn by the root of the champion's times
and weighted by its inverse, which tells most for its time in theory; 2, 3, 6 or 8 racers: 0 to 10 %
worse. Two races before the challenge: level; three: 20 to 40 % worse. A model of times by instance
and configuration, which prefers quick instances where they tell more for their time: half to three
quarters of the gap where configurations differ by the same factor everywhere, up to ten times the
gap where they differ more on hard ones. Nobody gets close to the best where the times of instances
differ much: if their logarithms have a deviation of 2, as in the tables made up by default, the
mean over 300 instances rests on about six of them, and the hardest takes as long as 40 others.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from acband_configspace.core.epochs import last_true
from acband_configspace.core.search import MOST_BEST, Order, Search, SearchRound
from acband_configspace.core.search_plan import PassPlan, first_round_share

#: How many passes are under way at a time at first, after how many passes there is one more, and
#: how many there are at most. The later ones have their first rounds while the first is decided.
SIDE_BY_SIDE = 2
PASSES_FOR_ONE_MORE = 8
MOST_SIDE_BY_SIDE = 8
#: Times count as at least this where their logarithms are taken.
SHORTEST_TIME = 1e-3

#: Instances in the order of a challenger. Most challengers are dropped after a few of them, so this
#: must not take much memory: there are as many as the champion has met, for each of them.
Order32 = npt.NDArray[np.int32]


class RaceSearch(Search):
    """Looks for the lowest run times."""

    losers_are_stopped = True

    def _pass(self, plan: PassPlan) -> Generator[SearchRound, None, bool]:
        rng = np.random.default_rng([self._seed, 2, plan.number])
        groups = self._groups(self._entrants(plan, rng))
        firsts = self._first_instances(groups, plan, rng)
        n_entrants = sum(map(len, groups))
        n_for_champion = self._trials_left(plan) - n_entrants - self._n_reserved()
        ahead = self._ahead(len(groups), n_for_champion)
        yield self._first_round(groups, firsts, ahead)
        # Passes before this one may have crowned another champion meanwhile.
        winners, champion = self._winners(groups, firsts), self.champion
        if self.champion is None:
            self.champion = min(
                winners, key=lambda racer: self._finishing(racer, winners[racer]), default=None
            )
            if self.champion is None:
                return False
        known = set(self._judged_on(self.champion))
        winners = {racer: instance for racer, instance in winners.items() if instance in known}
        challengers = [racer for racer in winners if self._is_ahead(racer, [winners[racer]])]
        self._crown(challengers)  # there may be one instance only
        if self._pool_size == 1:
            return bool(winners)
        number = 1
        if self.champion != champion:  # a new one has met less than it may
            number = 2
            ahead = self._ahead(len(groups), self._trials_left(plan))
            yield SearchRound(number, [[self._the_champion]], [ahead], True, {})
        judged = np.array(self._judged_on(self._the_champion), dtype=np.int32)
        orders = {}
        for racer in self._rivals(challengers):
            shuffled = rng.permutation(judged)
            others = shuffled[shuffled != winners[racer]]
            orders[racer] = np.concatenate([np.array([winners[racer]], dtype=np.int32), others])
        yield from self._challenge(orders, plan, number)
        return bool(winners)

    def _n_side_by_side(self) -> int:
        # As long as there is no champion, it is not known what to race on; and what is left of a
        # small space depends on who is racing.
        if self.champion is None or self._all_entered:
            return 1
        return min(MOST_SIDE_BY_SIDE, SIDE_BY_SIDE + len(self.plans) // PASSES_FOR_ONE_MORE)

    # --- the first round ----------------------------------------------------------------------

    def _first_round_share(self) -> float:
        return first_round_share(racing=True, n_trials=self._n_trials)

    def _first_instances(
        self, groups: Sequence[Sequence[int]], plan: PassPlan, rng: np.random.Generator
    ) -> list[int]:
        """Return the instance that each group races on: one that the champion has met, at random.

        On the same one in all passes, a champion that is lucky there would turn everybody away. As
        long as there is no champion, every pass tries another instance, and so it does where what
        the champion knows left nobody to race.
        """
        if self.champion is None:
            return [self._fresh_instance()] * len(groups)
        met = self._judged_on(self.champion)
        unmet = self._unmet(1)
        n_entrants = sum(map(len, groups))
        if self._n_idle_passes and unmet and 0 < n_entrants < self._trials_left(plan):
            return unmet * len(groups)
        turns = -(-len(groups) // len(met))
        return [i for _ in range(turns) for i in rng.permutation(met).tolist()][: len(groups)]

    def _ahead(self, n_groups: int, n_trials: float) -> list[int]:
        """Return the next instances of the champion: one for each group, as far as trials go."""
        if self.champion is None:
            return []
        n_met = len(self._judged_on(self.champion))
        return self._unmet(math.floor(max(0, min(n_groups, n_met + 1, n_trials))))

    def _unmet(self, n: int) -> list[int]:
        """Return instances that the champion has not met, and is not meeting in another pass."""
        meeting = (
            race.instance
            for one in self._passes
            for race in one.races[one.n_judged :]
            if self.champion in race.racers
        )
        met = list(dict.fromkeys([*self._judged_on(self._the_champion), *meeting]))
        return Order(met, self._pool_size).first(len(met) + n)[len(met) :]

    def _first_round(
        self, groups: Sequence[Sequence[int]], firsts: Sequence[int], ahead: Sequence[int]
    ) -> SearchRound:
        """Let the groups race, and meanwhile the champion meet new instances: no worker waits."""
        alone: list[list[int]] = []
        limits: dict[int, float] = {}
        if self.champion is not None:
            alone = [[self.champion] for _ in ahead]
            for group, instance in zip(groups, firsts, strict=True):
                limits |= dict.fromkeys(group, self._finishing(self.champion, instance))
        instances = [[instance] for instance in [*ahead, *firsts]]
        return SearchRound(1, [*alone, *groups], instances, False, limits)

    def _winners(self, groups: Sequence[Sequence[int]], firsts: Sequence[int]) -> dict[int, int]:
        """Return who has won a race, and on which instance.

        If nobody finishes, or several share the lowest cost, nobody is credited.
        """
        winners = {}
        for group, instance in zip(groups, firsts, strict=True):
            costs = {racer: self._finishing(racer, instance) for racer in group}
            best = min(costs.values())
            quickest = [racer for racer, cost in costs.items() if cost == best < math.inf]
            if len(quickest) == 1:
                winners[quickest[0]] = instance
        if self.champion is None and self.leader is not None:
            winners.setdefault(self.leader, firsts[0])  # it may share the lowest cost
        return winners

    # --- challenges ---------------------------------------------------------------------------

    def _challenge(
        self, orders: Mapping[int, Order32], plan: PassPlan, number: int
    ) -> Generator[SearchRound, None, None]:
        """Let each meet the champion's instances in its own order, twice as many each time.

        The number is that of the round before.
        """
        challengers, n_met = list(orders), 1
        n_all = self._n_judged_on(self._the_champion)
        while challengers and n_met < n_all:
            n_more = self._n_affordable(
                [orders[racer][n_met : min(2 * n_met, n_all)].tolist() for racer in challengers],
                challengers,
                self._trials_left(plan),
            )
            if not n_more:
                return
            n_met += n_more
            number += 1
            met = {racer: orders[racer][:n_met].tolist() for racer in challengers}
            limits = {racer: self._allowance(racer, met[racer]) for racer in challengers}
            groups = [[racer] for racer in challengers]
            yield SearchRound(number, groups, list(met.values()), True, limits)
            challengers = [racer for racer in challengers if self._is_ahead(racer, met[racer])]
            if self.leader not in challengers:  # who led is out
                self._let_champion_lead()
            for racer in challengers:
                self._let_lead(racer, met[racer])
            if 1 <= len(challengers) <= MOST_BEST:
                self._last_left = challengers
        self._crown(challengers)

    def _let_champion_lead(self) -> None:
        champion = self._the_champion
        if self.memory.has_finished(champion, self._judged_on(champion)):
            self.leader = champion

    def _n_affordable(
        self, more: Sequence[Sequence[int]], racers: Sequence[int], n_trials: float
    ) -> int:
        """Return how many of these instances all can meet with so many trials."""

        def affordable(n: int) -> bool:
            runs = zip(racers, more, strict=True)
            return sum(self.memory.n_unknown([racer], some[:n]) for racer, some in runs) <= n_trials

        return last_true(affordable, 0, len(more[0]))

    def _allowance(self, racer: int, met: Sequence[int]) -> float:
        """Return what a challenger may take on an instance without taking longer in all."""
        pace = self.memory.total(self._the_champion, met)
        known = self.memory.total_so_far(racer, met)
        if known.n_failed != pace.n_failed:
            return math.inf if known.n_failed < pace.n_failed else -math.inf
        return pace.cost - known.cost

    def _scale(self, cost: float) -> float:
        return math.log(max(cost, SHORTEST_TIME))  # of times, the ratios matter

    def _units(self, behind: Mapping[int, Mapping[int, float]]) -> dict[int, float]:
        return {}  # ratios mean the same everywhere
