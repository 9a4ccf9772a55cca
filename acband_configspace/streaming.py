"""The streaming driver: names the races that may run now and is told their outcomes.

Outcomes may be told in any order. A group is judged once all its outcomes are in, by their race
order, and a round ends with its last group: so the result depends on the outcomes alone, never
on when they arrive.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from acband_configspace.elimination import Contest, Contests, best_of
from acband_configspace.race import Outcome, Race
from acband_configspace.statistics import Statistic, get_statistic


class Signal(enum.Enum):
    """What :meth:`RaceStream.ask` answers when there is no race to run."""

    WAIT = "every race that may run now is handed out: tell outcomes, then ask again"
    DONE = "the last race is judged"


class RaceStream:
    """Drives :func:`~acband_configspace.acband.acband` or a CSE race by race.

    >>> from acband_configspace.acband import acband
    >>> from acband_configspace.schedule import Schedule
    >>> schedule = Schedule.plan(200, k=2, n_candidates=5)
    >>> stream = RaceStream(acband(schedule, np.random.default_rng(0)))
    >>> while isinstance(race := stream.ask(), Race):  # higher numbers are the better ones here
    ...     stream.tell(race, Outcome([-racer for racer in race.racers]))
    >>> stream.winner == schedule.n_configs
    True
    """

    def __init__(self, contests: Contests, *, statistic: str | Statistic = "wins") -> None:
        self._contests = contests
        self._statistic = get_statistic(statistic)
        self._epoch_winners: list[int] = []
        self._winner: int | None = None
        self._heat: _Heat | None = None
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
    def contest(self) -> Contest | None:
        """The round that is being raced, None when all is judged."""
        return self._heat.contest if self._heat else None

    def ask(self) -> Race | Signal:
        """Return a race that may run now, or the signal that says why there is none."""
        if self._heat is None:
            return Signal.DONE
        return next(self._heat.waiting, Signal.WAIT)

    def tell(self, race: Race, outcome: Outcome) -> None:
        """Take in the outcome of a race that was handed out; a refused one changes nothing."""
        if self._heat is None:
            raise ValueError(f"nothing is being raced any more but got an outcome of {race}")
        if self._statistic.needs_all_costs and any(outcome.censored):
            raise ValueError(
                f"statistic {self._statistic!r} must know every cost but got a censored one in "
                f"{outcome}"
            )
        self._heat.record(race, outcome)
        if self._heat.complete:
            self._advance(self._heat.survivors(self._statistic))

    def _advance(self, survivors: npt.NDArray[np.int64] | None) -> None:
        if survivors is not None and self._heat is not None and self._heat.contest.decides_epoch:
            self._epoch_winners.append(int(survivors.item()))
        try:
            contest = next(self._contests) if survivors is None else self._contests.send(survivors)
        except StopIteration as finished:
            self._heat, self._winner = None, finished.value
        else:
            self._heat = _Heat(contest)


class _Heat:
    """The outcomes of one round so far."""

    def __init__(self, contest: Contest) -> None:
        plan = contest.plan
        shape = (plan.n_groups, plan.races_per_group, plan.group_size)
        self.contest = contest
        self.waiting = self._races()
        self._costs = np.full(shape, np.nan)
        self._censored = np.zeros(shape, dtype=bool)
        self._n_missing = plan.n_races

    def _races(self) -> Iterator[Race]:
        # All groups advance together: a rule that ends groups early then wastes the fewest
        # races that are already running.
        contest = self.contest
        racers = [tuple(group) for group in contest.groups.tolist()]
        instances = contest.instances().tolist()
        for index in range(contest.plan.races_per_group):
            for group, members in enumerate(racers):
                instance = instances[group][index]
                yield Race(contest.epoch, contest.round, group, index, instance, members)

    def record(self, race: Race, outcome: Outcome) -> None:
        if (race.epoch, race.round) != (self.contest.epoch, self.contest.round):
            raise ValueError(
                f"the race must be of epoch {self.contest.epoch}, round {self.contest.round}, "
                f"but got {race}"
            )
        if len(outcome.costs) != len(race.racers):
            raise ValueError(f"{race} must have {len(race.racers)} costs but got {outcome.costs}")
        if not np.isnan(self._costs[race.group, race.index, 0]):
            raise ValueError(f"the outcome of {race} must be told once but came again")
        self._costs[race.group, race.index] = outcome.costs
        self._censored[race.group, race.index] = outcome.censored
        self._n_missing -= 1

    @property
    def complete(self) -> bool:
        return self._n_missing == 0

    def survivors(self, statistic: Statistic) -> npt.NDArray[np.int64]:
        scores = statistic.scores(self._costs, self._censored)
        return best_of(self.contest.groups, scores, self.contest.plan.survivors)
