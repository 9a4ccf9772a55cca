"""A run as it took place: its journal played through the engine again. No SMAC.

The journal holds races, not verdicts: those are the engine's again. A run can be looked at while it
goes on, or on another machine.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from acband_configspace.core.ends import End
from acband_configspace.core.engine import Plan
from acband_configspace.core.instances import InstanceKey
from acband_configspace.core.statistics import Statistic
from acband_configspace.errors import JournalError
from acband_configspace.runlog.estimates import Comparison, Costs, Lead, comparison_of, leads_of
from acband_configspace.runlog.journal import JOURNAL, read_journal
from acband_configspace.runlog.played import Played, PlayedEpoch, PlayedRound, play
from acband_configspace.runlog.records import Header, RaceRecord, Recorded, TrialRecord
from acband_configspace.runlog.words import bounded, counted

#: What became of a trial, in the order in which reports list it. Who races alone wins nothing.
FATES = ("won", *(end.value for end in End))


class NoRunError(ValueError):
    """There is no run in that directory, or it cannot be read."""


@dataclass(frozen=True)
class Run:
    """A finished, interrupted or running run.

    Make one with :meth:`load`, from the output directory of a scenario.
    """

    directory: Path
    recorded: Recorded
    """What the journal holds."""
    finished: str | None
    """Why it has ended, None while it may go on."""
    statistic: Statistic | None = None
    """The user's own statistic, if it was given: the journal has its name only."""

    @classmethod
    def load(cls, directory: str | Path, *, statistic: Statistic | None = None) -> Run:
        """Read a run; a :class:`NoRunError` says what is wrong with the directory.

        Parameters
        ----------
        directory : str | Path
            The output directory of the scenario.
        statistic : Statistic | None
            The statistic of a run that was judged by one of the user's own.
        """
        directory = Path(directory)
        try:
            recorded = read_journal(journal_in(directory))
        except JournalError as error:
            raise NoRunError(str(error)) from error
        finished = recorded.finished or _finished(directory, recorded.races)
        return cls(directory, recorded, finished, statistic)

    @classmethod
    def of(cls, source: AnyRun) -> Run:
        """Return the run that is meant by a run, its directory, or a facade."""
        if isinstance(source, Run):
            return source
        if isinstance(source, (str, Path)):
            return cls.load(source)
        try:
            directory = source.scenario.output_directory  # type: ignore[attr-defined]
        except AttributeError:
            raise TypeError(
                "a run must be a directory, a Run or a facade but got "
                f"{type(source).__name__} {source!r}"
            ) from None
        settings = getattr(getattr(source, "intensifier", None), "settings", None)
        return cls.load(directory, statistic=getattr(settings, "judge_by", None))

    # --- what is recorded ---------------------------------------------------------------------

    @property
    def header(self) -> Header:
        """What sort of run it is."""
        return self.recorded.header

    @property
    def identity(self) -> Mapping[str, Any]:
        """Its settings, as JSON has them."""
        return self.recorded.identity

    @property
    def plans(self) -> Sequence[Plan]:
        """The plan of each pass."""
        return self.recorded.plans

    @property
    def races(self) -> Sequence[RaceRecord]:
        """All races, in the order in which they ended."""
        return self.recorded.races

    @property
    def configurations(self) -> Mapping[int, Mapping[str, Any]]:
        """Those that have raced, by their numbers."""
        return self.recorded.configurations

    @property
    def racing(self) -> bool:
        """Whether losers were stopped, so that costs are run times."""
        return self.header.racing

    @property
    def elapsed(self) -> float:
        """Seconds the run had taken when its last race was over."""
        return self.races[-1].walltime if self.races else 0.0

    @cached_property
    def trials(self) -> tuple[Trial, ...]:
        """All trials."""
        return tuple(_trials(self.races, results_kept=not self.racing))

    @property
    def cpu_time(self) -> float:
        """CPU seconds of all trials."""
        return sum(trial.cpu_time for trial in self.trials)

    @property
    def default(self) -> Mapping[str, Any]:
        """The values of the space's default configuration, as far as the journal knows them."""
        if self.header.default_values is not None:
            return self.header.default_values
        number = self.header.default
        return {} if number is None else self.configurations.get(number, {})

    def values(self, number: int) -> Mapping[str, Any]:
        """Return the values of a configuration; the default's are known before it has raced."""
        if number in self.configurations:
            return self.configurations[number]
        return self.default if number == self.header.default else {}

    def label(self, number: int | None) -> str:
        """Return what to call a configuration: its number, and whether it is the default."""
        if number is None:
            return "–"
        return f"#{number} (default)" if number == self.header.default else f"#{number}"

    # --- what follows from it -----------------------------------------------------------------

    @cached_property
    def _played(self) -> Played:
        return play(self.recorded, self.statistic)

    @property
    def problem(self) -> str | None:
        """Why who led and who went on cannot be told: then there are races only, and no rounds."""
        return self._played.problem

    @property
    def rounds(self) -> tuple[PlayedRound, ...]:
        """All rounds in their order, the last ones perhaps undecided."""
        return tuple(round_ for epoch in self.epochs for round_ in epoch.rounds)

    @property
    def epochs(self) -> tuple[PlayedEpoch, ...]:
        """The epochs in their order; with memory, the passes."""
        return self._played.epochs

    @cached_property
    def leads(self) -> tuple[Lead, ...]:
        """Who led from when, and at what estimated cost."""
        return leads_of(self._played.changes, self.costs)

    @property
    def incumbent(self) -> int | None:
        """Who leads now, None if nobody has finished a race yet."""
        return self.leads[-1].configuration if self.leads else None

    @cached_property
    def costs(self) -> Costs:
        """What is known of each configuration on each instance."""
        return Costs(self.races)

    @cached_property
    def comparison(self) -> Comparison | None:
        """How the incumbent compares with the default, None if neither has been seen."""
        default = self.header.default
        if default is None or self.incumbent is None:
            return None
        return comparison_of(self.costs, self.leads, default)

    @property
    def verdict(self) -> str:
        """How much better than the default the incumbent is, in a sentence or two."""
        if self.problem is not None:
            return f"It is not known who leads: {self.problem}."
        if self.incumbent is None:
            return "No configuration has finished a race yet."
        name, own = f"Configuration {self.label(self.incumbent)}", self.leads[-1].estimate
        if self.comparison is None:
            cost = ""
            if own is not None:
                cost = f", with an estimated mean of {bounded(own.mean, at_least=own.at_least)}"
            return f"{name} leads{cost}. The default takes no part in this run."
        if self.comparison.is_default:
            return "The default configuration itself leads: nothing better has been found so far."
        compared = self.comparison.in_words(own, racing=self.racing)
        failed = counted(self.comparison.n_default_failed, "instance")
        failures = f" The default failed on {failed}." if self.comparison.n_default_failed else ""
        return f"{name} {compared}.{failures}"


AnyRun = Run | str | Path | object
"""A run, its directory, or its facade."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One configuration in one race."""

    race: RaceRecord
    configuration: int
    record: TrialRecord
    fate: str
    """What became of it: one of :data:`FATES`."""
    reused: bool
    """Whether its result was known before the run, or from an earlier race on the same instance: it
    cost nothing."""

    @property
    def cpu_time(self) -> float:
        """CPU seconds that it cost."""
        return 0.0 if self.reused else self.record.cpu_time


def _trials(races: Iterable[RaceRecord], *, results_kept: bool) -> Iterator[Trial]:
    seen: set[tuple[int, InstanceKey, float, float]] = set()
    for race in races:
        winner = race.winner if len(race.racers) > 1 else None  # alone there is nobody to beat
        for racer, record in zip(race.racers, race.trials, strict=True):
            fate = "won" if racer == winner else record.end.value
            key = (racer, race.key, record.started, record.time)
            reused = racer in race.known or (results_kept and key in seen)
            seen.add(key)
            yield Trial(race, racer, record, fate, reused)


def journal_in(directory: Path) -> Path:
    """Return the journal of a run; a NoRunError says what is wrong with the directory."""
    path = directory / JOURNAL
    if not directory.is_dir():
        raise NoRunError(f"{directory} is not a directory")
    if not path.is_file():
        found = sorted(
            p.parent for pattern in ("*", "*/*") for p in directory.glob(f"{pattern}/{JOURNAL}")
        )
        hint = f"; did you mean {found[0]}?" if found else ""
        raise NoRunError(f"{directory} holds no run: it has no {JOURNAL}{hint}")
    return path


def _finished(directory: Path, races: Sequence[RaceRecord]) -> str | None:
    """Return why the run has ended, from what SMAC saves beside the journal."""
    try:
        state = json.loads((directory / "intensifier.json").read_text(encoding="utf-8"))["state"]
        optimization = json.loads((directory / "optimization.json").read_text(encoding="utf-8"))
        if races and optimization.get("used_walltime", math.inf) < races[-1].walltime:
            return None  # of an earlier end: the run has been continued since
        if state.get("finished"):
            return str(state["finished"])
        # A limit has cut it off, perhaps in the middle of a round.
        return "its limit was reached" if optimization.get("finished") else None
    except (OSError, ValueError, KeyError, AttributeError, TypeError):  # torn, or not yet there
        return None
