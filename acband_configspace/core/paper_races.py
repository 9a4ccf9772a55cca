"""The paper's schedule, race by race: names the races that may run now, is told their outcomes.

Outcomes may be told in any order. A group is decided on its outcomes in race order, without gaps:
whether it is decided after race t depends on the outcomes up to t only, whatever else is in. A
round ends with its last group. So the result depends on the outcomes alone, never on when they
arrive.
"""

from __future__ import annotations

import enum
import math
from collections import Counter
from collections.abc import Iterator

import numpy as np

from acband_configspace.core.acband import Round, Rounds, Verdict, judge, judge_playoff
from acband_configspace.core.ends import End
from acband_configspace.core.race import Outcome, Race, RaceId
from acband_configspace.core.statistics import Statistic, get_statistic, wins
from acband_configspace.core.stopping import checked_early_stopping, decided


class Signal(enum.Enum):
    """What :meth:`PaperRaces.ask` answers when there is no race to run."""

    WAIT = "every race that may run now is handed out: tell outcomes, then ask again"
    DONE = "the last race is judged"


class PaperRaces:
    """Drives :func:`~acband_configspace.core.acband.acband` or a CSE race by race.

    >>> from acband_configspace.core.acband import acband
    >>> from acband_configspace.core.schedule import Schedule
    >>> schedule = Schedule.plan(200, k=2, n_candidates=5)
    >>> stream = PaperRaces(acband(schedule, np.random.default_rng(0)))
    >>> while isinstance(race := stream.ask(), Race):  # higher numbers are the better ones here
    ...     stream.tell(race, Outcome([-racer for racer in race.racers]))
    >>> stream.winner == schedule.n_configs
    True
    """

    def __init__(
        self,
        rounds_: Rounds,
        *,
        statistic: str | Statistic = "wins",
        early_stopping: float | None = None,
        pass_number: int = 1,
        n_finished: Counter[int] | None = None,
    ) -> None:
        self.n_finished: Counter[int] = Counter() if n_finished is None else n_finished
        """How often each configuration has finished in races that counted."""
        self._rounds = rounds_
        self._pass_number = pass_number
        self._statistic = get_statistic(statistic)
        self._early_stopping = checked_early_stopping(early_stopping, self._statistic)
        self._epoch_winners: list[int] = []
        self._winner: int | None = None
        self._running: set[Race] = set()
        self._n_races = 0
        self._n_trials = 0
        self._round: _RoundInProgress | None = None
        self._advance(None)

    @property
    def winner(self) -> int | None:
        """The winning configuration, None until all is judged."""
        return self._winner

    @property
    def epoch_winners(self) -> tuple[int, ...]:
        """The winners of the epochs that are over."""
        return tuple(self._epoch_winners)

    @property
    def round_(self) -> Round | None:
        """The round that is being raced, None when all is judged."""
        return self._round.round_ if self._round else None

    @property
    def n_races(self) -> int:
        """Races that decided the rounds that are over: compare with the schedule's."""
        return self._n_races

    @property
    def n_trials(self) -> int:
        """Racers in these races."""
        return self._n_trials

    def ask(self) -> Race | Signal:
        """Return a race that may run now, or the signal that says why there is none."""
        if self._round is None:
            return Signal.DONE
        race = next(self._round.waiting, None)
        if race is None:
            return Signal.WAIT
        self._running.add(race)
        return race

    def is_open(self, race: Race) -> bool:
        """Return whether the outcome of a race still matters: if not, it can be stopped.

        It matters from the time the race is handed out until it is told or its group is decided.
        """
        return race in self._running and self._round is not None and self._round.needs(race)

    def tell(self, race: Race, outcome: Outcome) -> None:
        """Take in the outcome of a race that was handed out; a refused one changes nothing.

        If the race's group is decided without it, be it in an earlier round, it is ignored.
        """
        if race not in self._running:
            raise ValueError(
                f"an outcome must be told once, of a race that was handed out, but got {race}"
            )
        if len(outcome.costs) != len(race.racers):
            raise ValueError(f"{race} must have {len(race.racers)} costs but got {outcome.costs}")
        if self._round is None or not self._round.needs(race):
            self._running.remove(race)
            return
        if self._statistic.needs_all_costs and any(outcome.censored) and not self._in_playoff:
            raise ValueError(
                f"statistic {self._statistic!r} must know every cost but got a censored one in "
                f"{outcome}"
            )
        self._running.remove(race)
        self._round.record(race, outcome)
        if self._round.complete:
            self._advance(self._round.verdict())

    @property
    def _in_playoff(self) -> bool:
        # There the cutoff counts as what it cost: censored costs are taken as they are.
        return self._round is not None and self._round.round_.is_playoff

    def _advance(self, verdict: Verdict | None) -> None:
        if verdict is not None and self._round is not None:
            n_races = int(verdict.n_raced.sum())
            self._n_races += n_races
            self._n_trials += n_races * self._round.round_.plan.group_size
            if self._round.round_.decides_epoch:
                self._epoch_winners.append(int(verdict.survivors.item()))
        try:
            round_ = next(self._rounds) if verdict is None else self._rounds.send(verdict)
        except StopIteration as finished:
            self._round, self._winner = None, finished.value
        else:
            self._round = _RoundInProgress(
                round_, self._statistic, self._early_stopping, self._pass_number, self.n_finished
            )


class _RoundInProgress:
    """The outcomes of one round so far."""

    def __init__(
        self,
        round_: Round,
        statistic: Statistic,
        early_stopping: float | None,
        pass_number: int,
        n_finished: Counter[int],
    ) -> None:
        plan = round_.plan
        self._pass_number = pass_number
        self._n_finished = n_finished
        self._finishers: dict[tuple[int, int], list[int]] = {}
        shape = (plan.n_groups, plan.races_per_group, plan.group_size)
        self.round_ = round_
        self.waiting = self._races(round_.is_playoff or statistic.needs_all_costs)
        self._statistic = statistic
        self._early_stopping = None if round_.is_playoff else early_stopping
        self._costs = np.full(shape, np.nan)
        self._censored = np.zeros(shape, dtype=bool)
        self._wins = np.zeros((plan.n_groups, plan.group_size), dtype=np.int64)
        self._n_raced = [0] * plan.n_groups
        self._undecided = set(range(plan.n_groups))

    def _races(self, to_the_end: bool) -> Iterator[Race]:
        # All groups advance together: this wastes the fewest races that are already running when
        # a group is decided.
        round_ = self.round_
        racers = [tuple(group) for group in round_.groups.tolist()]
        instances = round_.instances.tolist()
        for index in range(round_.plan.races_per_group):
            for group in sorted(self._undecided):
                if group in self._undecided:  # it may have been decided since
                    instance = instances[group][index]
                    place = (self._pass_number, round_.epoch, round_.round, group, index)
                    yield Race(RaceId(*place), instance, racers[group], to_the_end)

    def needs(self, race: Race) -> bool:
        this_round = race.id[:3] == (self._pass_number, self.round_.epoch, self.round_.round)
        return this_round and race.id.group in self._undecided

    def record(self, race: Race, outcome: Outcome) -> None:
        group, index = race.id.group, race.id.index_in_group
        self._costs[group, index] = outcome.costs if race.to_the_end else outcome.finishing_costs
        self._censored[group, index] = outcome.censored
        self._finishers[group, index] = [
            racer
            for racer, cost, end in zip(race.racers, outcome.costs, outcome.ends, strict=True)
            if end is End.FINISHED and math.isfinite(cost)
        ]
        while group in self._undecided and self._has(group, self._n_raced[group]):
            # Only now: of races that are told after the one that decides, nobody knows with fewer
            # workers.
            self._n_finished.update(self._finishers.pop((group, self._n_raced[group])))
            self._n_raced[group] += 1
            if self._is_decided(group):
                self._undecided.remove(group)

    def _has(self, group: int, index: int) -> bool:
        return not math.isnan(self._costs[group, index, 0])

    def _is_decided(self, group: int) -> bool:
        plan, n_raced = self.round_.plan, self._n_raced[group]
        if self._early_stopping is None:
            return n_raced == plan.races_per_group
        last = (group, n_raced - 1)
        self._wins[group] += wins(self._costs[last], self._censored[last])
        return bool(decided(self._wins[group], n_raced, plan, self._early_stopping))

    @property
    def complete(self) -> bool:
        return not self._undecided

    def verdict(self) -> Verdict:
        if self.round_.is_playoff:
            return judge_playoff(self.round_, self._costs)
        n_raced = np.array(self._n_raced)
        if self._early_stopping is not None:
            return judge(self.round_, self._wins, n_raced)
        return judge(self.round_, self._statistic.scores(self._costs, self._censored), n_raced)
