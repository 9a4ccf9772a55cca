"""Who met whom, who went on and who was out: the rounds of a run, judged as the core did.

The journal holds races, not verdicts. They are repeated here with the core's own functions; what
is not decided yet stays open.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter

import numpy as np

from acband_configspace.core.rounds import Round
from acband_configspace.core.schedule import Schedule
from acband_configspace.core.statistics import MeanCost, QuantileCost, Statistic, Wins, wins
from acband_configspace.core.stopping import decided
from acband_configspace.runlog.run import PlayedRace, Run


@dataclass(frozen=True)
class PlayedGroup:
    """A group and how it fared so far."""

    members: tuple[int, ...]
    wins: tuple[int, ...]
    """Races won, in the order of the members."""
    n_races: int
    """Races that counted: those after the decision do not."""
    survivors: tuple[int, ...] | None
    """Who goes on, None as long as that is open."""


@dataclass(frozen=True)
class PlayedRound:
    """A round and its groups."""

    number: int
    plan: Round | None
    """What was planned; None in an epoch that saved races bought."""
    groups: tuple[PlayedGroup, ...]
    carried: tuple[int, ...]
    """Configurations that found no full group, as far as they have turned up later."""
    races: tuple[PlayedRace, ...]

    @property
    def in_play(self) -> tuple[int, ...]:
        """Everyone who was in the running."""
        return tuple(itertools.chain.from_iterable(g.members for g in self.groups)) + self.carried

    @property
    def remaining(self) -> tuple[int, ...]:
        """Everyone who is in the running after it, as far as that is decided."""
        survivors = [group.survivors or () for group in self.groups]
        return (*itertools.chain.from_iterable(survivors), *self.carried)


@dataclass(frozen=True)
class PlayedEpoch:
    """An epoch, or the playoff, as far as it has been raced."""

    pass_number: int
    index: int
    is_playoff: bool
    rounds: tuple[PlayedRound, ...]
    winner: int | None

    @property
    def name(self) -> str:
        """What to call it."""
        return "playoff" if self.is_playoff else f"epoch {self.index}"

    @property
    def ended(self) -> float:
        """Seconds the run had taken when its last race ended."""
        return max(race.walltime for round_ in self.rounds for race in round_.races)


def played_epochs(run: Run) -> tuple[PlayedEpoch, ...]:
    """Return the epochs of a run in their order, the last one perhaps undecided."""
    judge = _Judge(_statistic(run), run.identity.get("early_stopping"))
    place = attrgetter("pass_number", "epoch")
    known: set[int] = set()
    epochs = []
    for (pass_number, index), races in itertools.groupby(sorted(run.races, key=place), place):
        schedule = run.schedules[pass_number - 1]
        own = tuple(races)
        racers = {number for race in own for number in race.racers}
        # A playoff has no plan among the epochs, and nobody in it is new.
        is_playoff = index > len(schedule.epochs) and racers <= known
        known |= racers
        epochs.append(_played_epoch(judge, schedule, own, is_playoff))
    if epochs and epochs[-1].is_playoff and run.was_cut:
        # How long a playoff is depends on what was saved, which the journal does not say: it is
        # over for certain only when something came after it.
        epochs[-1] = replace(epochs[-1], winner=None)
    return tuple(_settled(run, epochs))


def _settled(run: Run, epochs: Sequence[PlayedEpoch]) -> Iterator[PlayedEpoch]:
    """Yield the epochs, with the winners that follow from what came after.

    A winner goes on into the next epoch. Of an epoch without a plan, or with a statistic that is
    not known, that is all there is to see; in the last one without a plan most wins decide.
    """
    for epoch, after in itertools.zip_longest(epochs, epochs[1:]):
        last = epoch.rounds[-1]
        winner = epoch.winner
        if winner is None and not epoch.is_playoff and len(last.groups) == 1:
            [group] = last.groups
            if after is not None:
                racers = {n for round_ in after.rounds for n in round_.in_play}
                going_on = [n for n in group.members if n in racers]
                winner = going_on[0] if len(going_on) == 1 else None
            elif not run.was_cut and last.plan is None:
                winner = group.members[group.wins.index(max(group.wins))]
            if winner is not None:
                last = replace(last, groups=(replace(group, survivors=(winner,)),))
        yield replace(epoch, rounds=(*epoch.rounds[:-1], last), winner=winner)


def incumbents(run: Run) -> list[tuple[float, int]]:
    """Return when, in seconds, which configuration became the incumbent; θ_0 was at first."""
    changes = [(0.0, 0)]
    proven = {t.configuration for _, t in run.trials if t.cause in ("won", "finished")}
    for epoch in played_epochs(run):
        # One that only failed may win an epoch of failures, but is nobody's choice.
        if epoch.winner in proven and epoch.winner != changes[-1][1]:
            changes.append((epoch.ended, epoch.winner))
    return changes


def _played_epoch(
    judge: _Judge, schedule: Schedule, races: Sequence[PlayedRace], is_playoff: bool
) -> PlayedEpoch:
    first = races[0]
    planned = not is_playoff and first.epoch <= len(schedule.epochs)
    plans = schedule.epochs[first.epoch - 1].rounds if planned else ()
    numbers = sorted({race.round for race in races})
    rounds: list[PlayedRound] = []
    for number in numbers:
        own = tuple(race for race in races if race.round == number)
        later = {n for race in races if race.round > number for n in race.racers}
        plan = plans[number - 1] if number <= len(plans) else None
        by_group = _by_group(own)
        if is_playoff:
            before = [race for race in races if race.round < number]
            groups = [_playoff_group(group, before, later) for group in by_group]
        else:
            groups = [judge.group(group, plan, later) for group in by_group]
        racing = {n for race in own for n in race.racers}
        waiting = later if not rounds else set(rounds[-1].remaining)
        rounds.append(
            PlayedRound(number, plan, tuple(groups), tuple(sorted(waiting - racing)), own)
        )
    last = rounds[-1]
    is_last = not plans or last.number == len(plans)
    alone = len(last.groups) == 1 and not last.carried and len(last.remaining) == 1
    winner = last.remaining[0] if is_last and alone else None
    return PlayedEpoch(first.pass_number, first.epoch, is_playoff, tuple(rounds), winner)


def _by_group(races: Iterable[PlayedRace]) -> list[list[PlayedRace]]:
    """Return the races of each group in race order, up to the first that is missing."""
    place = attrgetter("group", "index")
    groups = []
    for _, own in itertools.groupby(sorted(races, key=place), attrgetter("group")):
        all_races = list(own)
        gapless = [race for i, race in enumerate(all_races) if race.index == i]
        groups.append(gapless or all_races[:1])
    return groups


@dataclass(frozen=True)
class _Judge:
    """Judges a group on its races."""

    statistic: Statistic | None
    """None if it is the user's own, of which the journal has the name only."""
    early_stopping: float | None

    def group(
        self, races: Sequence[PlayedRace], plan: Round | None, later: set[int]
    ) -> PlayedGroup:
        members = races[0].racers
        costs = np.array([race.outcome.costs for race in races])
        censored = np.array([race.outcome.censored for race in races])
        won = np.cumsum(wins(costs, censored), axis=0)
        if plan is None or self.statistic is None:  # whoever turns up again has survived
            survivors = tuple(n for n in members if n in later) or None
            return PlayedGroup(members, tuple(won[-1].tolist()), len(races), survivors)
        n_races = self._n_needed(won, plan)
        if n_races is None:
            return PlayedGroup(members, tuple(won[-1].tolist()), len(races), None)
        if self.statistic.needs_all_costs:  # a limit that was met costs what the user says
            costs = np.array([[trial.cost for trial in race.trials] for race in races])
        scores = self.statistic.scores(costs[:n_races], censored[:n_races])
        best = np.sort(np.argsort(-scores, kind="stable")[: plan.survivors])
        survivors = tuple(members[i] for i in best.tolist())
        return PlayedGroup(members, tuple(won[n_races - 1].tolist()), n_races, survivors)

    def _n_needed(self, won: np.ndarray, plan: Round) -> int | None:
        """Return after how many races the group was decided, None if it is not."""
        if self.early_stopping is not None:
            for n_raced, counts in enumerate(won, start=1):
                if decided(counts, n_raced, plan, self.early_stopping):
                    return n_raced
        return plan.races_per_group if len(won) >= plan.races_per_group else None


def _playoff_group(
    races: Sequence[PlayedRace], before: Sequence[PlayedRace], later: set[int]
) -> PlayedGroup:
    """Judge a step of the playoff: by those who go on, in the last one by the mean cost."""
    members = races[0].racers
    won = [
        sum(t.cause == "won" for race in races for t in race.trials if t.configuration == n)
        for n in members
    ]
    sums = dict.fromkeys(members, 0.0)
    for race in (*before, *races):
        for trial in race.trials:
            if trial.configuration in sums:
                sums[trial.configuration] += trial.cost
    going_on = tuple(n for n in members if n in later)
    survivors = (
        going_on or (min(members, key=lambda n: sums[n]),)
        if len(members) == 2 or going_on
        else None
    )
    return PlayedGroup(members, tuple(won), len(races), survivors)


def _statistic(run: Run) -> Statistic | None:
    """Return the statistic that ranked the groups, by its name; None for one of the user's own."""
    name = str(run.identity.get("statistic", ""))
    if name.startswith("MeanCost"):
        return MeanCost()
    if found := re.fullmatch(r"QuantileCost\(quantile=([\d.e-]+)\)", name):
        return QuantileCost(float(found[1]))
    return Wins() if name.startswith("Wins") else None
