"""What happened round by round: the journal played through the engine again.

Told the races in the order in which they ended, the engine takes the decisions that it took then:
who met whom, who went on, who led since when.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from acband_configspace.core.engine import Engine, KnownBest, Limits, ReplayError
from acband_configspace.core.instances import Instances
from acband_configspace.core.race import Race, RaceId
from acband_configspace.core.search_plan import PassPlan
from acband_configspace.core.statistics import Statistic
from acband_configspace.runlog.records import NONSENSE, RaceRecord, Recorded


@dataclass(frozen=True, slots=True)
class PlayedGroup:
    """A group and how it fared so far."""

    members: tuple[int, ...]
    wins: tuple[int, ...]
    """Races won against others, in the order of the members."""
    n_races: int
    """Races of several that are over: who races alone, because the others' results are known, or
    there are none, wins nothing."""
    has_raced: bool
    """Whether any of its races is over, of several or not."""
    survivors: tuple[int, ...] | None
    """Who goes on, None as long as that is open."""


@dataclass(frozen=True, slots=True)
class PlayedRound:
    """A round and its groups."""

    pass_number: int
    epoch: int
    number: int
    """The round within its epoch, from 1."""
    is_playoff: bool
    groups: tuple[PlayedGroup, ...]
    carried: tuple[int, ...]
    """Configurations that found no full group and went on without racing, as far as they have
    turned up again."""
    races: tuple[RaceRecord, ...]
    """Those that are over."""
    n_planned_races: int
    """How many the engine would have run at most."""
    n_planned_trials: int

    @property
    def in_play(self) -> tuple[int, ...]:
        """Everyone who was in the running."""
        return (*(number for group in self.groups for number in group.members), *self.carried)

    @property
    def remaining(self) -> tuple[int, ...]:
        """Everyone who is in the running after it, as far as that is decided."""
        survivors = (number for group in self.groups for number in group.survivors or ())
        return (*survivors, *self.carried)

    @property
    def is_open(self) -> bool:
        """Whether it is not known yet who goes on."""
        return any(group.survivors is None for group in self.groups)

    @property
    def ended(self) -> float:
        """Seconds the run had taken when its last race ended."""
        return max(race.walltime for race in self.races)


@dataclass(frozen=True, slots=True)
class PlayedEpoch:
    """An epoch or a playoff of the paper's schedule, or a pass of the search with memory."""

    pass_number: int
    index: int
    name: str
    """What to call it."""
    is_playoff: bool
    rounds: tuple[PlayedRound, ...]
    winner: int | None
    """Who won it: with memory, the champion after the pass. None as long as that is open, or if
    nobody has finished."""

    @property
    def ended(self) -> float:
        """Seconds the run had taken when its last race ended."""
        return max(round_.ended for round_ in self.rounds)


@dataclass(frozen=True)
class Played:
    """How a run went."""

    epochs: tuple[PlayedEpoch, ...] = ()
    changes: tuple[tuple[RaceRecord, int], ...] = ()
    """The races after which somebody else led, and who that is."""
    problem: str | None = None
    """Why the engine did not take in the journal: then nothing is known but its races."""


def play(recorded: Recorded, statistic: Statistic | None = None) -> Played:
    """Return how a run went, or why that is not known."""
    if not recorded.races:
        return Played()
    own = recorded.header.own_statistic
    if own is not None and statistic is None:
        return Played(
            problem=f"it was judged by a statistic of the user's own, {own}, which the journal "
            "cannot hold: give it to Run.load"
        )
    try:
        return _Player(recorded, None if own is None else statistic).play()
    except NONSENSE as error:  # ReplayError, or what the engine does not take
        return Played(problem=f"its journal cannot be replayed: {error}")


def playable(recorded: Recorded) -> list[RaceRecord]:
    """Return the races that the engine takes in, of a journal in which others may be missing.

    What depends on a missing race is left out, so that what is left could have been recorded
    just so: the missing ones were still running.
    """
    if not recorded.races:
        return []
    return _Player(recorded, None).take_in(leave_out=True)


EpochPlace = tuple[int, int]
"""Pass and epoch."""


@dataclass
class _RoundInProgress:
    """A round of which races are handed out, and end."""

    is_playoff: bool
    groups: dict[int, dict[int, None]] = field(default_factory=dict)
    """The members of each group, in their order."""
    n_races: int = 0
    n_trials: int = 0
    races: list[RaceRecord] = field(default_factory=list)

    def hand_out(self, race: Race) -> None:
        self.groups.setdefault(race.id.group, {}).update(dict.fromkeys(race.racers))
        self.n_races += 1
        self.n_trials += len(race.racers)

    @property
    def members(self) -> set[int]:
        return {racer for group in self.groups.values() for racer in group}


class _Player:
    """Plays a journal through the engine and writes down what happens."""

    def __init__(self, recorded: Recorded, statistic: Statistic | None) -> None:
        header = recorded.header
        settings = header.settings
        if statistic is not None:
            settings = replace(settings, statistic=statistic)
        self._memory = bool(settings.memory)
        self._recorded = recorded
        self._engine = Engine(
            settings,
            racing=header.racing,
            instances=Instances(
                header.instances, deterministic=header.deterministic, seed=header.seed
            ),
            draw=_Space(recorded).draw,
            limits=Limits(
                math.inf if recorded.n_trials is None else recorded.n_trials,
                n_changes=recorded.n_changes,
            ),
            n_given=header.n_given,
            n_in_space=header.n_in_space,
            seed=header.seed,
            plans=recorded.plans,
        )
        self._handed_out: dict[RaceId, Race] = {}
        self._drafts: dict[EpochPlace, dict[int, _RoundInProgress]] = {}
        """The rounds of each epoch."""
        self._changes: list[tuple[RaceRecord, int]] = []

    def play(self) -> Played:
        self.take_in()
        return Played(tuple(self._epochs()), tuple(self._changes))

    def take_in(self, *, leave_out: bool = False) -> list[RaceRecord]:
        """Take in the races; raise at one that could not be run at its time, or leave it out."""
        taken = []
        self._take_races()
        for record in self._recorded.races:
            try:
                race = self._race_of(record)
            except ReplayError:
                if leave_out:
                    continue
                raise
            self._engine.tell(race, record.outcome)
            self._drafts[record.id[:2]][record.id.round].races.append(record)
            self._take_races()
            leader = self._engine.leader
            if leader is not None and leader != self._leader:
                self._changes.append((record, leader))
            taken.append(record)
        return taken

    @property
    def _leader(self) -> int | None:
        return self._changes[-1][1] if self._changes else None

    def _race_of(self, record: RaceRecord) -> Race:
        race = self._handed_out.pop(record.id, None)
        if race is None:
            raise ReplayError(f"race {record.id} is not one that could be run at that time")
        if (race.racers, race.instance) != (record.racers, record.instance):
            raise ReplayError(
                f"race {record.id} was {record.racers} on instance {record.instance}, "
                f"now it is {race.racers} on {race.instance}"
            )
        return race

    def _take_races(self) -> None:
        """Take all that may run now, so that every race of the journal is known when it ends."""
        engine = self._engine
        while (race := engine.ask()) is not None:
            drafts = self._drafts.setdefault(race.id[:2], {})
            if race.id.round not in drafts:
                # With memory, the passes under way have rounds of both kinds.
                later = race.id.round > 1 if self._memory else engine.position.is_playoff
                drafts[race.id.round] = _RoundInProgress(later)
            drafts[race.id.round].hand_out(race)
            self._handed_out[race.id] = race

    def _epochs(self) -> Iterator[PlayedEpoch]:
        last = max(self._drafts)
        for place, drafts in sorted(self._drafts.items()):
            if any(draft.races for draft in drafts.values()):
                is_over = place < last or bool(self._engine.finished)
                if self._memory:  # later passes begin before
                    is_over = place[0] in self._engine.champions
                winner = self._winner(place) if is_over else None
                yield _epoch(place, drafts, winner, is_over=is_over, memory=self._memory)

    def _winner(self, place: EpochPlace) -> int | None:
        pass_number, epoch = place
        if self._memory:
            is_last = bool(self._engine.finished) and place == max(self._drafts)
            return self._leader if is_last else self._engine.champions[pass_number]
        winners = self._engine.epoch_winners[pass_number - 1]
        if epoch <= len(winners):
            return winners[epoch - 1]
        return self._engine.champions.get(pass_number, self._leader)  # of a playoff


class _Space:
    """Says how many configurations there were whenever some were drawn."""

    def __init__(self, recorded: Recorded) -> None:
        self._memory = recorded.header.settings.memory
        self._n_in_space = recorded.header.n_in_space
        self._n_raced = 1 + max(racer for race in recorded.races for racer in race.racers)
        passes = (plan for plan in recorded.plans if isinstance(plan, PassPlan))
        self._n_entered = iter([plan.n_entered for plan in passes])

    def draw(self, n: int, known: Callable[[], KnownBest]) -> int:
        """Return n, or how many there were if the space had no more."""
        if not self._memory:  # the paper's plans are recorded; for others nothing was drawn
            return min(n, self._n_raced)
        n_entered = next(self._n_entered, None)  # each pass draws once, one after the other
        most = self._n_in_space if n_entered is None else n_entered
        return n if most is None else min(n, most)


def _epoch(
    place: EpochPlace,
    drafts: Mapping[int, _RoundInProgress],
    winner: int | None,
    *,
    is_over: bool,
    memory: bool,
) -> PlayedEpoch:
    """Return an epoch: whoever races again in it has survived the rounds before."""
    later: set[int] = set() if winner is None else {winner}
    is_decided = is_over
    rounds: list[PlayedRound] = []
    for number, draft in sorted(drafts.items(), reverse=True):
        members = draft.members
        # With memory nobody waits: who turns up later is the champion, which need not race.
        may_wait = is_decided and not memory and not draft.is_playoff
        carried = sorted(later - members) if may_wait else []
        if draft.races:
            rounds.append(
                PlayedRound(
                    *place,
                    number=number,
                    is_playoff=draft.is_playoff,
                    groups=_groups(draft, later if is_decided else None),
                    carried=tuple(carried),
                    races=tuple(draft.races),
                    n_planned_races=draft.n_races,
                    n_planned_trials=draft.n_trials,
                )
            )
        later |= members
        # One alone may be the champion that sets the pace: who else goes on is open.
        is_decided = is_decided or len(members) > 1
    is_playoff = rounds[-1].is_playoff
    name = f"pass {place[0]}" if memory else "playoff" if is_playoff else f"epoch {place[1]}"
    return PlayedEpoch(*place, name, is_playoff, tuple(reversed(rounds)), winner)


def _groups(draft: _RoundInProgress, later: set[int] | None) -> tuple[PlayedGroup, ...]:
    wins: Counter[tuple[int, int | None]] = Counter()
    n_races: Counter[int] = Counter()
    have_raced = {race.id.group for race in draft.races}
    for race in draft.races:
        if len(race.racers) > 1:
            wins[race.id.group, race.winner] += 1
            n_races[race.id.group] += 1
    return tuple(
        PlayedGroup(
            members=tuple(members),
            wins=tuple(wins[number, racer] for racer in members),
            n_races=n_races[number],
            has_raced=number in have_raced,
            survivors=None if later is None else tuple(r for r in members if r in later),
        )
        for number, members in sorted(draft.groups.items())
    )
