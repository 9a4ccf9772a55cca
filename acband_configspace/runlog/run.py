"""A run as its journal tells it: what raced, on what, and what became of it.

Reads JSON only, no SMAC: a run can be looked at while it goes on, or on another machine.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from acband_configspace.core.race import Outcome
from acband_configspace.core.schedule import Schedule, Supply
from acband_configspace.core.statistics import wins

JOURNAL = "journal.jsonl"
FORMAT = 1

#: What became of a trial, in the order in which reports list it.
CAUSES = ("won", "finished", "lost", "cutoff", "memory", "crash")
#: SMAC's numbers for the ends of trials that do not say why themselves.
_CAUSES_BY_STATUS = {1: "finished", 2: "crash", 3: "cutoff", 4: "memory"}


#: Why a run has ended that a limit cut off, perhaps in the middle of a round.
LIMIT_REACHED = "its limit was reached"


#: How it says so if the trials left are too few for a race.
NO_ROOM = "leaves no room for another race"


class NoRunError(ValueError):
    """There is no run in that directory, or it cannot be read."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One configuration in one race."""

    configuration: int
    """Its number: 0 is the first, by default the space's default configuration."""
    cause: str
    """What became of it: one of :data:`CAUSES`."""
    cost: float
    time: float
    cpu_time: float
    started: float
    """When, in seconds since 1970."""
    reused: bool
    """Whether its result is that of an earlier race on the same instance: it cost nothing."""
    error: str | None

    @property
    def is_censored(self) -> bool:
        """Whether its cost is only known to exceed what is given, since another one won."""
        return self.cause == "lost"


@dataclass(frozen=True, slots=True)
class PlayedRace:
    """A race that is over."""

    pass_number: int
    epoch: int
    round: int
    group: int
    index: int
    instance: str | None
    seed: int
    trials: tuple[Trial, ...]
    walltime: float
    """Seconds the run had taken by then."""

    @property
    def name(self) -> str:
        """Its place in the run, as the journal and the logs have it."""
        return f"{self.pass_number}.{self.epoch}.{self.round}.{self.group}.{self.index}"

    @property
    def racers(self) -> tuple[int, ...]:
        """The numbers of the configurations that raced."""
        return tuple(trial.configuration for trial in self.trials)

    @property
    def outcome(self) -> Outcome:
        """What the race brought, as the core was told where only winning counts."""
        counts = ("won", "finished", "lost")
        costs = [t.cost if t.cause in counts else math.inf for t in self.trials]
        return Outcome(costs, [trial.is_censored for trial in self.trials])


@dataclass(frozen=True)
class Run:
    """A finished, interrupted or running run.

    Make one with :meth:`load`, from the output directory of a scenario.
    """

    directory: Path
    identity: Mapping[str, Any]
    """Its settings, as JSON has them."""
    schedules: tuple[Schedule, ...]
    """The plan of each pass."""
    races: tuple[PlayedRace, ...]
    """In the order in which they ended."""
    configurations: Mapping[int, Mapping[str, Any]]
    """Those that have raced, by their numbers."""
    finished: str | None
    """Why it has ended, None while it may go on."""

    @classmethod
    def load(cls, directory: str | Path) -> Run:
        """Read a run; a :class:`NoRunError` says what is wrong with the directory."""
        directory = Path(directory)
        lines = list(_lines(directory))
        first, *rest = lines
        if not isinstance(first, dict) or first.get("format") != FORMAT:
            raise NoRunError(f"{directory / JOURNAL} is no journal of a run in format {FORMAT}")
        try:
            plans = [line for line in rest if "plan" in line]
            # One that could not be written whole was run again, and stands there twice.
            races = list({line["race"]: line for line in rest if "race" in line}.values())
            configurations = {
                int(number): values
                for line in races
                for number, values in line.get("configurations", {}).items()
            }
            return cls(
                directory=directory,
                identity=first["identity"],
                schedules=tuple(
                    Schedule.plan(**line["plan"], supply=Supply(**line["supply"])) for line in plans
                ),
                races=tuple(_played_races(races)),
                configurations=configurations,
                finished=_finished(directory),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise NoRunError(f"{directory / JOURNAL} cannot be read: {error!r}") from error

    @property
    def was_cut(self) -> bool:
        """Whether it may have stopped in the middle of a round: a limit was met, or it goes on."""
        cut = self.finished in (None, LIMIT_REACHED)
        return cut or str(self.finished).endswith(NO_ROOM)

    @property
    def racing(self) -> bool:
        """Whether losers were stopped, so that costs are run times."""
        return bool(self.identity.get("racing"))

    @property
    def elapsed(self) -> float:
        """Seconds the run had taken when its last race ended."""
        return self.races[-1].walltime if self.races else 0.0

    @cached_property
    def trials(self) -> tuple[tuple[PlayedRace, Trial], ...]:
        """All trials with their races."""
        return tuple((race, trial) for race in self.races for trial in race.trials)

    @property
    def cpu_time(self) -> float:
        """CPU seconds of all trials."""
        return sum(trial.cpu_time for _, trial in self.trials if not trial.reused)

    @property
    def default(self) -> Mapping[str, Any]:
        """The space's default configuration, as far as the journal knows it."""
        if self.identity.get("first") == "default" and 0 in self.configurations:
            return self.configurations[0]
        parameters = self.identity["configspace"]["hyperparameters"]
        return {p["name"]: p.get("default_value", p.get("value")) for p in parameters}


def _lines(directory: Path) -> Iterator[Any]:
    path = directory / JOURNAL
    if not directory.is_dir():
        raise NoRunError(f"{directory} is no directory")
    if not path.is_file():
        found = sorted(
            p.parent for pattern in ("*", "*/*") for p in directory.glob(f"{pattern}/{JOURNAL}")
        )
        hint = f"; did you mean {found[0]}?" if found else ""
        raise NoRunError(f"{directory} holds no run: it has no {JOURNAL}{hint}")
    n_lines = 0
    with path.open("rb") as file:
        for raw in file:
            try:
                line = json.loads(raw)
            except ValueError:
                break  # torn: the run was killed, or is just writing it
            n_lines += 1
            yield line
    if not n_lines:
        raise NoRunError(f"{path} is empty or no journal of a run")


def _finished(directory: Path) -> str | None:
    """Return why the run has ended, from what SMAC saves beside the journal."""
    try:
        state = json.loads((directory / "intensifier.json").read_text(encoding="utf-8"))["state"]
        optimization = json.loads((directory / "optimization.json").read_text(encoding="utf-8"))
    except (OSError, ValueError, KeyError):  # not yet there: the journal comes first
        return None
    if state.get("finished"):
        return str(state["finished"])
    return LIMIT_REACHED if optimization.get("finished") else None


def _played_races(lines: list[dict[str, Any]]) -> Iterator[PlayedRace]:
    seen: set[tuple[Any, ...]] = set()
    for line in lines:
        place = (int(part) for part in line["race"].split("."))
        pass_number, epoch, round_, group, index = place
        instance, seed = line["on"]
        trials = []
        for number, ended in zip(line["racers"], line["trials"], strict=True):
            status, cost, time, cpu_time, start, end, info = ended
            key = (number, instance, seed, start, end)
            cause = _CAUSES_BY_STATUS.get(status, "crash")
            if cause != "finished" and info.get("why") in CAUSES:  # else it is the target's word
                cause = info["why"]
            error = info.get("error")
            reused = key in seen
            seen.add(key)
            trials.append(Trial(number, cause, float(cost), time, cpu_time, start, reused, error))
        yield _with_winner(
            PlayedRace(
                pass_number=pass_number,
                epoch=epoch,
                round=round_,
                group=group,
                index=index,
                instance=instance,
                seed=seed,
                trials=tuple(trials),
                walltime=line["walltime"],
            )
        )


def _with_winner(race: PlayedRace) -> PlayedRace:
    outcome = race.outcome
    won = wins(np.array(outcome.costs), np.array(outcome.censored))
    trials = (
        replace(trial, cause="won") if is_winner else trial
        for trial, is_winner in zip(race.trials, won.tolist(), strict=True)
    )
    return replace(race, trials=tuple(trials))
