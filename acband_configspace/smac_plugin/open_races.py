"""The races that are being run: trials to be handed out, and trials whose results are awaited."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from smac.runhistory.dataclasses import TrialInfo, TrialValue
from smac.runhistory.enumerations import StatusType

from acband_configspace.instances import InstanceKey
from acband_configspace.race import Race
from acband_configspace.smac_plugin.configurations import Configurations
from acband_configspace.smac_plugin.trials import is_censored
from acband_configspace.streaming import RaceStream

Trial = tuple[int, InstanceKey]
"""A configuration, by its number, on an instance."""


@dataclass
class OpenRace:
    """A race that was handed out."""

    name: str
    race: Race
    key: InstanceKey
    stream: RaceStream
    values: list[TrialValue | None] = field(default_factory=list)
    """A result is None until it is known."""

    @property
    def trials(self) -> list[Trial]:
        """The trials, in the race's order."""
        return [(number, self.key) for number in self.race.racers]

    @property
    def missing(self) -> list[int]:
        """Positions of the racers whose results are not known."""
        return [position for position, value in enumerate(self.values) if value is None]

    @property
    def is_needed(self) -> bool:
        """Whether the outcome matters: its group may have been decided without it."""
        return self.stream.is_open(self.race)


class OpenRaces:
    """Hands out the trials of races, each trial once, and puts their results together."""

    def __init__(self, configurations: Configurations) -> None:
        self._configurations = configurations
        self._queue: deque[TrialInfo] = deque()
        self._awaited: dict[Trial, list[tuple[OpenRace, int]]] = {}
        self._results: dict[Trial, TrialValue] = {}
        self._submitted_before: set[Trial] = set()

    def __bool__(self) -> bool:
        """Return whether there are trials to be handed out."""
        return bool(self._queue)

    def pop(self) -> TrialInfo:
        """Hand out a trial."""
        return self._queue.popleft()

    def keep(self, trial: Trial, value: TrialValue) -> None:
        """Remember a result, in case the configuration meets the instance again."""
        if value.status == StatusType.RUNNING:  # when an earlier process ended
            self._submitted_before.add(trial)
        elif not is_censored(value):
            self._results[trial] = value

    def look_up(self, race: OpenRace) -> None:
        """Give a race the results that are known."""
        race.values = [self._results.get(trial) for trial in race.trials]

    def count_new(self, race: OpenRace) -> int:
        """Return how many trials of a race SMAC would count as submitted, if it were run now."""
        missing = {race.trials[position] for position in race.missing}
        return len(missing - self._submitted_before - self._awaited.keys())

    def add(self, race: OpenRace) -> None:
        """Queue those trials of a race whose results are neither known nor on their way.

        A trial may be on its way for a race that turned out needless after it was started.
        """
        trials = race.trials
        new = [
            trials[position] for position in race.missing if trials[position] not in self._awaited
        ]
        for position in race.missing:
            self._awaited.setdefault(trials[position], []).append((race, position))
        for number, key in new:
            self._queue.append(
                TrialInfo(
                    config=self._configurations[number],
                    instance=key.instance,
                    seed=key.seed,
                    additional_info={
                        "race": race.name,
                        "n_racers": len(new),
                        "to_the_end": race.race.to_the_end,
                    },
                )
            )

    def take(self, trial: Trial, value: TrialValue) -> list[OpenRace]:
        """Take in a result and return the races that it completes."""
        completed = []
        for race, position in self._awaited.pop(trial, ()):
            race.values[position] = value
            if not race.missing:
                completed.append(race)
        return completed

    def hand_out_again(self) -> None:
        """Queue the trials that were handed out and whose results will not come any more."""
        needed = [race for race in self._running() if race.is_needed]
        self._awaited.clear()
        for race in needed:
            self.add(race)

    def pop_needless(self) -> list[str]:
        """Return the races that are running but whose groups have been decided without them.

        A race is whole first: one of which some trials are still to be handed out comes later.
        """
        queued = {info.additional_info["race"] for info in self._queue}
        needless = {
            race.name for race in self._running() if not race.is_needed and race.name not in queued
        }
        if needless:
            for trial, entries in list(self._awaited.items()):
                kept = [entry for entry in entries if entry[0].name not in needless]
                if kept:
                    self._awaited[trial] = kept
                else:
                    del self._awaited[trial]
        return sorted(needless)

    def _running(self) -> Sequence[OpenRace]:
        return list({race.name: race for e in self._awaited.values() for race, _ in e}.values())
