"""The races that are being run: trials to be handed out, and trials whose results are awaited."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from smac.runhistory.dataclasses import TrialInfo, TrialKey, TrialValue
from smac.runhistory.runhistory import RunHistory

from acband_configspace.core.ends import End
from acband_configspace.core.instances import InstanceKey
from acband_configspace.core.race import Race
from acband_configspace.smac_plugin.configurations import Configurations
from acband_configspace.smac_plugin.trial_values import Ticket, end_of, is_result

TrialOn = tuple[int, InstanceKey]
"""A configuration, by its number, on an instance."""


@dataclass
class PendingRace:
    """A race that was handed out."""

    race: Race
    key: InstanceKey
    values: list[TrialValue | None] = field(default_factory=list)
    """A result is None until it is known."""

    @property
    def name(self) -> str:
        """Its place, as the journal and the logs have it."""
        return str(self.race.id)

    @property
    def trials(self) -> list[TrialOn]:
        """The trials, in the race's order."""
        return [(number, self.key) for number in self.race.racers]

    @property
    def missing(self) -> list[int]:
        """Positions of the racers whose results are not known."""
        return [position for position, value in enumerate(self.values) if value is None]


class PendingRaces:
    """Hands out the trials of races and puts their results together.

    No trial is run whose result the run history has, be it told by the user, from a race that
    turned out needless, or since a configuration meets an instance again.

    Parameters
    ----------
    configurations : Configurations
        What the numbers of the core stand for.
    runhistory : RunHistory
        What is known.
    needed : callable
        Says whether the outcome of a race still matters.
    told : mapping
        Results that the user knew beforehand, perhaps under another seed.
    """

    def __init__(
        self,
        configurations: Configurations,
        runhistory: RunHistory,
        needed: Callable[[Race], bool],
        told: Mapping[TrialOn, TrialValue],
    ) -> None:
        self._told = told
        self._configurations = configurations
        self._runhistory = runhistory
        self._needed = needed
        self._config_ids: dict[int, int] = {}
        self._queue: deque[TrialInfo] = deque()
        self._awaited: dict[TrialOn, list[tuple[PendingRace, int]]] = {}

    def __bool__(self) -> bool:
        """Return whether there are trials to be handed out."""
        return bool(self._queue)

    def pop(self) -> TrialInfo:
        """Hand out a trial."""
        return self._queue.popleft()

    def look_up(self, race: PendingRace) -> int:
        """Give a race the results that are known; return how many trials are new to SMAC."""
        entries = [self._entry(trial) for trial in race.trials]
        race.values = [entry if entry and is_result(entry) else None for entry in entries]
        return entries.count(None)

    def add(self, race: PendingRace) -> None:
        """Queue those trials of a race whose results are neither known nor on their way.

        A trial may be on its way for a race that turned out needless after it was started.
        """
        trials = race.trials
        new = [position for position in race.missing if trials[position] not in self._awaited]
        for position in race.missing:
            self._awaited.setdefault(trials[position], []).append((race, position))
        limits = race.race.limits
        for position in new:
            number, key = trials[position]
            limit = None if limits is None or limits[position] == float("inf") else limits[position]
            ticket = Ticket(race.name, len(new), race.race.to_the_end, limit)
            self._queue.append(
                TrialInfo(
                    config=self._configurations[number],
                    instance=key.instance,
                    seed=key.seed,
                    additional_info=ticket.as_info(),
                )
            )

    def take(self, trial: TrialOn, value: TrialValue, *, race: str | None) -> list[PendingRace]:
        """Take in a result of the named race, and return the races that it completes."""
        entries = self._awaited.pop(trial, [])
        if end_of(value) is End.LOST:  # it lost that race, which tells nothing about another
            others = [entry for entry in entries if entry[0].name != race]
            if others:
                self._awaited[trial] = others
            entries = [entry for entry in entries if entry[0].name == race]
        for pending, position in entries:
            pending.values[position] = value
        return [pending for pending, _ in entries if not pending.missing]

    def put_back(self, races: Sequence[PendingRace]) -> None:
        """Await all results of races anew, but for those that were judged."""
        for race in races:
            if self._needed(race.race):
                race.values = [None] * len(race.trials)
                for position, trial in enumerate(race.trials):
                    self._awaited.setdefault(trial, []).append((race, position))

    def hand_out_again(self) -> None:
        """Queue the trials that were handed out and whose results will not come any more."""
        needed = [race for race in self._running() if self._needed(race.race)]
        self._awaited.clear()
        self._queue.clear()
        for race in needed:
            self.add(race)

    def pop_needless(self) -> list[str]:
        """Return the races that are running but whose groups have been decided without them.

        A race is whole first: one of which some trials are still to be handed out comes later.
        """
        running = [race for race in self._running() if not self._needed(race.race)]
        if not running:
            return []
        queued = {ticket.race for info in self._queue if (ticket := Ticket.of(info))}
        needless = {race.name for race in running if race.name not in queued}
        for trial, entries in list(self._awaited.items()):
            kept = [entry for entry in entries if entry[0].name not in needless]
            if kept:
                self._awaited[trial] = kept
            else:
                del self._awaited[trial]
        return sorted(needless)

    def _running(self) -> Sequence[PendingRace]:
        return list({race.name: race for e in self._awaited.values() for race, _ in e}.values())

    def _entry(self, trial: TrialOn) -> TrialValue | None:
        """Return what the user, or the run history, knows of a trial."""
        if trial in self._told:
            return self._told[trial]
        number, key = trial
        if number not in self._config_ids:  # they are found by their hash, which takes long
            config_id = self._runhistory.config_ids.get(self._configurations[number])
            if config_id is None:
                return None
            self._config_ids[number] = config_id
        return self._runhistory.get(TrialKey(self._config_ids[number], key.instance, key.seed))
