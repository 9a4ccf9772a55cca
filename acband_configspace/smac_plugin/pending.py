"""The races that are being run: their trials are handed out, waited for, and put together again."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ConfigSpace import Configuration
from smac.callback.callback import Callback
from smac.main.smbo import SMBO
from smac.runhistory.dataclasses import TrialInfo, TrialKey, TrialValue
from smac.runhistory.runhistory import RunHistory

from acband_configspace.core.ends import End
from acband_configspace.core.instances import InstanceKey
from acband_configspace.core.race import Race
from acband_configspace.errors import (
    FirstRaceCrashedError,
    OutcomesNeededError,
    RunFinishedError,
)
from acband_configspace.smac_plugin.configurations import Configurations, name_of_values
from acband_configspace.smac_plugin.runners import RaceRunner
from acband_configspace.smac_plugin.trial_values import (
    Ticket,
    cost_of,
    end_of,
    is_result,
    reason_of,
)

if TYPE_CHECKING:
    from acband_configspace.smac_plugin.intensifier import ACBandIntensifier

TrialOn = tuple[int, InstanceKey]
"""A configuration, by its number, on an instance."""
KnownValues = Mapping[Hashable, Mapping[InstanceKey, TrialValue]]
"""Results by the name of a configuration and the instance."""


@dataclass
class PendingRace:
    """A race that was handed out."""

    race: Race
    key: InstanceKey
    configs: Sequence[Configuration]
    """Its racers."""
    values: list[TrialValue | None]
    """Their results; None until they are known."""
    n_new: int
    """How many of its trials SMAC did not know when it was opened."""
    told: tuple[int, ...]
    """Those of its racers whose results the user knew before the run."""

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

    @property
    def time_to_beat(self) -> float:
        """The least time of those that are known to finish, unless all run to their end."""
        if self.race.to_the_end:
            return math.inf
        known = [value for value in self.values if value and end_of(value) is End.FINISHED]
        return min((cost_of(value) for value in known), default=math.inf)


class PendingRaces:
    """Hands out the trials of races and puts their results together.

    A trial whose result is in the run history is not run again: the user may have told it, a race
    that turned out needless may have left it, or a configuration may meet an instance again.
    ``needed`` says whether the outcome of a race still matters.
    """

    def __init__(
        self,
        configurations: Configurations,
        runhistory: RunHistory,
        needed: Callable[[Race], bool],
        told: KnownValues,
        *,
        racing: bool,
    ) -> None:
        self._told = told
        self._told_by_number: dict[int, Mapping[InstanceKey, TrialValue]] = {}
        self._racing = racing
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

    def look_up(self, race: Race, key: InstanceKey) -> PendingRace:
        """Return a race with those of its results that are known."""
        entries = [self._entry((number, key)) for number in race.racers]
        return PendingRace(
            race,
            key,
            configs=[self._configurations[number] for number in race.racers],
            values=[entry if entry and is_result(entry) else None for entry in entries],
            n_new=entries.count(None),
            told=tuple(number for number in race.racers if self.told_of((number, key)) is not None),
        )

    def told_of(self, trial: TrialOn) -> TrialValue | None:
        """Return a result that the user knew beforehand, perhaps under another seed."""
        if not self._told:
            return None
        number, key = trial
        if number not in self._told_by_number:  # it may have been drawn long after it was told
            name = name_of_values(self._configurations[number])
            self._told_by_number[number] = self._told.get(name, {})
        return self._told_by_number[number].get(key)

    def add(self, race: PendingRace) -> None:
        """Queue those trials of a race whose results are neither known nor on their way.

        A trial may be on its way for a race that turned out needless after it was started.
        """
        trials = race.trials
        new = [position for position in race.missing if trials[position] not in self._awaited]
        for position in race.missing:
            self._awaited.setdefault(trials[position], []).append((race, position))
        limits = race.race.limits
        best = race.time_to_beat if self._racing else math.inf
        for position in new:
            limit = best if limits is None else min(best, limits[position])
            ticket = Ticket(
                race.name,
                len(new),
                race.race.to_the_end,
                None if limit == math.inf else limit,
                configuration=race.race.racers[position],
            )
            self._queue.append(
                TrialInfo(
                    config=race.configs[position],
                    instance=race.key.instance,
                    seed=race.key.seed,
                    additional_info=ticket.as_info(),
                )
            )

    def take(self, info: TrialInfo, value: TrialValue) -> list[PendingRace] | None:
        """Take in a result; return the races that it completes, None if it is of no use here."""
        ticket = Ticket.of(info)
        trial = self._trial_of(info, ticket)
        if trial is None:
            return None
        entries = self._awaited.pop(trial, [])
        if end_of(value) is End.LOST:  # it lost that race, which tells nothing about another
            race = None if ticket is None else ticket.race
            others = [entry for entry in entries if entry[0].name != race]
            if others:
                self._awaited[trial] = others
            entries = [entry for entry in entries if entry[0].name == race]
        for pending, position in entries:
            pending.values[position] = value
        return [pending for pending, _ in entries if not pending.missing]

    def _trial_of(self, info: TrialInfo, ticket: Ticket | None) -> TrialOn | None:
        key = InstanceKey(info.instance, int(info.seed or 0))
        if ticket is not None and ticket.configuration is not None:
            trial = (ticket.configuration, key)
            # The ticket spares the search for a configuration by its values.
            if any(r.configs[i] is info.config for r, i in self._awaited.get(trial, ())):
                return trial
        number = self._configurations.number_of(info.config)
        return None if number is None else (number, key)

    def awaits_result_of(self, info: TrialInfo) -> bool:
        """Return whether the result of a trial is awaited."""
        return self._trial_of(info, Ticket.of(info)) in self._awaited

    @property
    def awaits_any(self) -> bool:
        """Whether any results are awaited."""
        return bool(self._awaited)

    def awaits(self, race: Race) -> bool:
        """Return whether results of a race are awaited."""
        return any(running.race == race for running in self._running())

    def hand_out_again(self) -> None:
        """Queue again the trials that were handed out and whose results will never come."""
        needed = [race for race in self._running() if self._needed(race.race)]
        self._awaited.clear()
        self._queue.clear()
        for race in needed:
            self.add(race)

    def pop_needless(self) -> list[str]:
        """Return the races that are running but whose groups have been decided without them.

        A race that is not handed out completely yet is left for later.
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
        if (told := self.told_of(trial)) is not None:
            return told
        number, key = trial
        if number not in self._config_ids:  # they are found by their hash, which takes long
            config_id = self._runhistory.config_ids.get(self._configurations[number])
            if config_id is None:
                return None
            self._config_ids[number] = config_id
        return self._runhistory.get(TrialKey(self._config_ids[number], key.instance, key.seed))


class CrashWatch:
    """Takes note of crashes until a trial does not crash: whether the target works at all.

    Parameters
    ----------
    works : bool
        Whether it is known already that the target works.
    n_enough : int
        So many crashes say something even if most of the first round was known beforehand.
    """

    def __init__(self, *, works: bool, n_enough: int) -> None:
        self._works = works
        self._n_enough = n_enough
        self._n_crashed = 0
        self._first_reason: str | None = None

    def note(self, race: PendingRace) -> None:
        """Take note of a race that is over.

        What was known before the run says nothing of its target.
        """
        for number, value in zip(race.race.racers, race.values, strict=True):
            if value is None or number in race.told:
                continue
            if end_of(value) is End.CRASHED:
                self._n_crashed += 1
            else:
                self._works = True
            self._first_reason = self._first_reason or reason_of(value)

    def refuse(self, upcoming: Race | None, *, finished: bool, any_told: bool) -> None:
        """Raise an error if every trial of the first round crashed.

        Parameters
        ----------
        upcoming : Race | None
            The next race; None if there is none, or results are awaited.
        finished : bool
            Whether there will be no further one.
        any_told : bool
            Whether results were known beforehand.
        """
        if self._works or not self._first_reason:
            return
        if upcoming is None and not finished:  # results are awaited
            return
        if upcoming is not None and upcoming.id[:3] == (1, 1, 1):
            return
        if any_told and upcoming is not None and self._n_crashed < self._n_enough:
            return  # most of the round was known: too few were run to tell
        raise FirstRaceCrashedError(
            "every trial of the first round crashed; the first one because of:\n"
            f"{self._first_reason}"
        )


class RaceCallback(Callback):
    """Waits before a trial is asked for, and passes results on.

    SMAC has no word for "wait": a generator that ends stops the run. But callbacks are called
    before each trial is asked for, so the waiting is done here.
    """

    def __init__(self, intensifier: ACBandIntensifier) -> None:
        super().__init__()
        self._intensifier = intensifier
        self._optimizing = False
        self._incumbent: Configuration | None = None

    def on_start(self, smbo: SMBO) -> None:  # noqa: D102
        self._optimizing = True

    def on_end(self, smbo: SMBO) -> None:
        """Judge the races whose results are all known: SMAC stops at the last trial."""
        self._optimizing = False
        self._intensifier.fill()

    def left(self) -> None:
        """Know that ``optimize`` was left: SMAC does not say so if an error or Ctrl-C ended it."""
        self._optimizing = False

    def on_ask_start(self, smbo: SMBO) -> None:
        """Wait until there is a trial to hand out; in ask/tell, say that there is none."""
        intensifier = self._intensifier
        while not intensifier.fill() and intensifier.finished is None:
            runner = smbo._runner
            if not self._optimizing or runner is None:
                raise OutcomesNeededError(
                    "AC-Band needs the outcomes of this round's races before it can name more: "
                    "tell the results of the trials you asked for, then ask again"
                )
            if smbo._stop or smbo.budget_exhausted:
                return  # the generator ends, and with it SMAC's loop
            if runner.is_running():
                runner.wait()
                smbo._add_results()
                continue
            n_finished = smbo.runhistory.finished
            smbo._add_results()  # a runner that no longer runs anything may have some
            if smbo.runhistory.finished > n_finished:
                continue
            # An interrupted ``optimize`` lost them, or they were asked for and never told.
            intensifier.pending.hand_out_again()
            if not intensifier.fill() and intensifier.finished is None:
                raise RuntimeError(
                    "AC-Band is waiting for results of trials that nobody is running"
                )
        if intensifier.finished is not None and not self._optimizing:
            raise RunFinishedError(
                f"AC-Band is finished: {intensifier.finished}. The incumbent is "
                f"{intensifier.get_incumbent()}"
            )

    def on_iteration_end(self, smbo: SMBO) -> None:
        """Stop what runs when a time limit is met, or a callback or cost threshold ends the run."""
        time_is_up = smbo.remaining_walltime <= 0 or smbo.remaining_cputime <= 0
        called_off = smbo._stop and self._intensifier.finished is None
        if (time_is_up or called_off) and isinstance(smbo._runner, RaceRunner):
            smbo._runner.stop()
        self._stop_needless(smbo)

    def on_tell_start(self, smbo: SMBO, info: TrialInfo, value: TrialValue) -> None:
        """Restore the space of a configuration that comes back from another process.

        ConfigSpace 1.2 does not hold a hyperparameter on a log scale of integers, or with a normal
        or beta prior, equal to its own copy; SMAC's run history would see a new configuration.
        """
        ours, theirs = smbo._scenario.configspace, info.config.config_space
        if theirs is not ours and str(theirs) == str(ours):
            info.config.config_space = ours

    def on_tell_end(self, smbo: SMBO, info: TrialInfo, value: TrialValue) -> None:
        """Pass on a result, and stop the races that it makes needless."""
        self._intensifier.record(info, value)
        self._stop_needless(smbo)
        incumbent = self._intensifier.get_incumbent()
        if incumbent is not None and incumbent is not self._incumbent:
            self._incumbent = incumbent
            for callback in smbo._callbacks:  # no hook of SMAC's, but one that callbacks may have
                if (hook := getattr(callback, "on_incumbent_changed", None)) is not None:
                    hook(smbo, incumbent)

    def _stop_needless(self, smbo: SMBO) -> None:
        if not self._intensifier.started or not self._intensifier.engine.drops_races:
            return
        if isinstance(smbo._runner, RaceRunner):
            for race in self._intensifier.pending.pop_needless():
                smbo._runner.cancel(race)
