"""What a journal holds: the values, and their JSON. One schema, for writing and for reading."""

from __future__ import annotations

import dataclasses
import json
import math
import reprlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from acband_configspace.core.ends import End
from acband_configspace.core.engine import Plan
from acband_configspace.core.epochs import Supply
from acband_configspace.core.instances import InstanceKey
from acband_configspace.core.passes import SchedulePlan
from acband_configspace.core.race import Outcome, RaceId
from acband_configspace.core.rounds import EpochPlan, RoundPlan
from acband_configspace.core.schedule import Schedule
from acband_configspace.core.search_plan import PassPlan
from acband_configspace.core.settings import Settings
from acband_configspace.core.statistics import MeanCost, QuantileCost, Statistic, Wins
from acband_configspace.runlog.verdict import VERDICT, Verdict

#: The version of the schema. Format 1 was that of version 0.1.0.
FORMAT = 2

#: A text that a target returns is cut to this many characters …
MOST_CHARACTERS = 1000
#: … and of the values that it returns, this many are kept.
MOST_VALUES = 50

#: Whole numbers of a journal are smaller than this.
LARGEST = 2**63
#: What reading a line raises that is JSON, but not what it should be.
NONSENSE = (LookupError, TypeError, ValueError, ArithmeticError, AttributeError, RecursionError)

_STATISTICS = {kind.__name__: kind for kind in (Wins, MeanCost, QuantileCost)}
_ENDS = {end.value: end for end in End}
_NOTHING: Mapping[Any, Any] = {}
_KINDS: Mapping[str, tuple[type, ...]] = {
    "int": (int,),
    "float": (int, float),
    "bool": (bool,),
    "str": (str,),
    "None": (type(None),),
}
_Record = TypeVar("_Record")


@dataclass(frozen=True, slots=True)
class TrialRecord:
    """One racer of a race."""

    end: End
    """How its run ended."""
    cost: float
    """What it came to; of a racer that lost, only a lower bound."""
    time: float
    """Seconds it took."""
    cpu_time: float
    """CPU seconds it took."""
    started: float
    """When it started, in seconds since 1970."""
    info: Mapping[str, Any] = field(default_factory=dict)
    """What the target said: numbers and short texts; ``error`` and ``traceback`` if it failed."""


@dataclass(frozen=True, slots=True)
class RaceRecord:
    """A race that is over."""

    id: RaceId
    """Its place in the run."""
    instance: int
    """The number of the instance it was run on."""
    key: InstanceKey
    """What that number stands for."""
    racers: tuple[int, ...]
    """The numbers of the configurations, in the race's order."""
    trials: tuple[TrialRecord, ...]
    """What became of each."""
    walltime: float
    """Seconds the run had taken when the race was over."""
    n_trials: int
    """How many trials had finished by then, without those of a warm start."""
    configurations: Mapping[int, Mapping[str, Any]] = field(
        default_factory=lambda: _NOTHING, compare=False, repr=False
    )
    """The values of those that race for the first time, where the journal was read."""
    known: tuple[int, ...] = ()
    """Those of the racers whose results were known before the run."""

    @property
    def outcome(self) -> Outcome:
        """What the race brought, as the engine is told it."""
        costs, ends = zip(*((trial.cost, trial.end) for trial in self.trials), strict=True)
        return Outcome(costs, ends, n_known=len(self.known))

    @property
    def winner(self) -> int | None:
        """The configuration that won: alone at the top, finished, with a finite cost."""
        best, winner, n_best = math.inf, None, 0
        for racer, trial in zip(self.racers, self.trials, strict=True):
            if trial.end is End.FINISHED and trial.cost <= best and math.isfinite(trial.cost):
                n_best = n_best + 1 if trial.cost == best else 1
                best, winner = trial.cost, racer
        passed = any(trial.end is End.LOST and trial.cost < best for trial in self.trials)
        return winner if n_best == 1 and not passed else None


@dataclass(frozen=True, kw_only=True)
class Header:
    """What it takes to build the engine again, and what reports say of the run as a whole."""

    settings: Settings
    racing: bool
    """Whether losers are stopped."""
    seed: int
    deterministic: bool
    instances: tuple[str, ...] | None = None
    """The names of the instances, None if there are none."""
    n_given: int = 1
    """How many configurations were given: they race from the start."""
    n_in_space: int | None = None
    """How many configurations the space has at most, None if it is not finite."""
    n_trials: int | None = None
    """The limit on trials at the first start. A later start that has another adds the note
    ``limits`` with its ``n_trials``."""
    default: int | None = 0
    """The number of the space's default configuration, None if it takes no part."""
    default_values: Mapping[str, Any] | None = None
    """The values of the space's default configuration."""
    objective: str = "cost"
    """What the cost is called."""
    started: float = 0.0
    """When the run was started first, in seconds since 1970."""
    version: str = ""
    """The version of this package that started it."""
    own_statistic: str | None = None
    """The user's own statistic, as it prints: the journal cannot hold it, so that the settings
    read back have "wins" in its place."""
    own_proposals: str | None = None
    """Likewise, the user's own proposals; the settings read back have "learned"."""


@dataclass(frozen=True, slots=True)
class Note:
    """Anything else that was worth recording."""

    kind: str
    values: Mapping[str, Any]
    n_races: int
    """How many races stand before it."""


@dataclass(frozen=True)
class Recorded:
    """All that a journal holds."""

    identity: dict[str, Any]
    """What makes two runs the same."""
    header: Header
    plans: list[Plan] = field(default_factory=list)
    """One for each pass so far."""
    races: Sequence[RaceRecord] = ()
    """In the order in which they ended."""
    notes: list[Note] = field(default_factory=list)
    told: list[dict[str, Any]] = field(default_factory=list)
    """Results that were told after the first line was written, and before the first race."""

    @cached_property
    def configurations(self) -> Mapping[int, Mapping[str, Any]]:
        """The values of every configuration that has raced, by its number."""
        return {
            number: values for race in self.races for number, values in race.configurations.items()
        }

    def note(self, kind: str) -> Note | None:
        """Return the last note of a kind."""
        return next((note for note in reversed(self.notes) if note.kind == kind), None)

    def closing_note(self, kind: str) -> Note | None:
        """Return the last note of a kind, None if the run has been continued since."""
        note = self.note(kind)
        return None if note is None or note.n_races < len(self.races) else note

    @property
    def finished(self) -> str | None:
        """Why the run has ended, None while it may go on: it may have been continued since."""
        note = self.closing_note("finished")
        return None if note is None else str(note.values.get("reason", "finished"))

    @property
    def n_trials(self) -> int | None:
        """The limit on trials of the latest start, None for none."""
        note = self.note("limits")
        limit = self.header.n_trials if note is None else note.values.get("n_trials")
        return None if limit is None else int(limit)

    @property
    def n_changes(self) -> int:
        """How often that limit has been changed."""
        return sum(note.kind == "limits" for note in self.notes)


# --- to JSON ----------------------------------------------------------------------------------


def header_line(header: Header, identity: Mapping[str, Any]) -> dict[str, Any]:
    """Return the first line of a journal."""
    values = {name: value for name, value in vars(header).items() if name != "settings"}
    options = (option.name for option in dataclasses.fields(Settings) if option.init)
    settings = {name: getattr(header.settings, name) for name in options}
    settings["statistic"], own = _statistic_as_json(header.settings.statistic)
    if own is not None:
        values["own_statistic"] = own
    if not isinstance(header.settings.proposals, str):
        settings["proposals"] = "learned"  # passes grow alike
        values["own_proposals"] = short_text(header.settings.proposals)
    values["settings"] = settings
    return {"format": FORMAT, "header": values, "identity": dict(identity)}


def _statistic_as_json(statistic: str | Statistic) -> tuple[Any, str | None]:
    if isinstance(statistic, str):
        return statistic, None
    name = type(statistic).__name__
    if type(statistic) is _STATISTICS.get(name):
        return {"kind": name, **dataclasses.asdict(statistic)}, None
    return "wins", short_text(statistic)


def plan_line(plan: Plan) -> dict[str, Any]:
    """Return the line of a plan: all its values, not what they were computed from."""
    kind = "schedule" if isinstance(plan, SchedulePlan) else "pass"
    return {"plan": kind, **dataclasses.asdict(plan)}


def race_line(record: RaceRecord, new: Mapping[int, Mapping[str, Any]]) -> dict[str, Any]:
    """Return the line of a race, with the values of configurations that are new in it."""
    line: dict[str, Any] = {
        "race": record.id,
        "instance": record.instance,
        "on": record.key,
        "racers": record.racers,
        "trials": [_trial_as_json(trial) for trial in record.trials],
        "walltime": record.walltime,
        "n_trials": record.n_trials,
    }
    if record.known:
        line["known"] = record.known
    if new:
        line["configurations"] = {number: dict(values) for number, values in new.items()}
    return line


def _trial_as_json(trial: TrialRecord) -> list[Any]:
    values = [trial.end.value, trial.cost, trial.time, trial.cpu_time, trial.started]
    return [*values, short_info(trial.info)] if trial.info else values


def told_line(trial: Mapping[str, Any]) -> dict[str, Any]:
    """Return the line of a result that was told before the first race."""
    return {"told": dict(trial)}


def note_line(kind: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the line of a note."""
    return {"note": kind, "values": short_info(values)}


def as_json(line: Mapping[str, Any]) -> str:
    """Return a line's text; values of numpy's become Python's, anything else its short text."""
    return json.dumps(line, default=_plain, separators=(",", ":"))


def _plain(value: object) -> object:
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, (set, frozenset)):
        return sorted(value, key=str)
    return short_text(value)


def short_info(info: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is kept of the values that a target returned: numbers and short texts.

    >>> short_info({"gap": 0.5, "trace": [0.0] * 300000})
    {'gap': 0.5, 'trace': '[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, ...]'}
    """
    kept = list(info.items())[:MOST_VALUES]
    return {_cut(str(name)): _short_value(value) for name, value in kept}


def _short_value(value: object) -> object:
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, float)):
        return value
    if isinstance(value, int) and value.bit_length() <= 64:
        return value
    return short_text(value)


def short_text(value: object) -> str:
    """Return a text, or a short representation of anything else; this never raises."""
    if isinstance(value, str):
        return _cut(value)
    if isinstance(value, int):  # long ones refuse to be printed
        return f"a number of {value.bit_length()} bits" if value.bit_length() > 64 else str(value)
    try:
        return _cut(_REPR.repr(value))
    except Exception:
        return f"<{type(value).__name__}>"


def _cut(text: str) -> str:
    """Return a text without its middle if it is long: errors end with what matters."""
    if len(text) <= MOST_CHARACTERS:
        return str(text)
    half = (MOST_CHARACTERS - 3) // 2
    return f"{text[:half]} … {text[-half:]}"


_REPR = reprlib.Repr()
_REPR.maxstring = _REPR.maxother = MOST_CHARACTERS


# --- from JSON --------------------------------------------------------------------------------


def checked(record: _Record) -> _Record:
    """Return a dataclass, of which what is annotated as a plain value has to be one."""
    for field_ in dataclasses.fields(record):  # type: ignore[arg-type]  # a dataclass has no type
        names = str(field_.type).split(" | ")
        if all(name in _KINDS for name in names):
            value = getattr(record, field_.name)
            kinds = tuple(kind for name in names for kind in _KINDS[name])
            is_number = isinstance(value, bool) and "bool" not in names
            if is_number or not isinstance(value, kinds):
                expected = " or ".join(names)
                raise ValueError(f"{field_.name} must be {expected} but is {short_text(value)}")
            if isinstance(value, int) and abs(value) >= LARGEST:
                raise ValueError(f"{field_.name} must be less than 2**63")
    return record


def recorded_from(line: Mapping[str, Any], races: Sequence[RaceRecord]) -> Recorded:
    """Return what the first line of a journal holds, with the races that are added later."""
    return Recorded(dict(line["identity"]), _header_from(line["header"]), races=races)


def take_in(recorded: Recorded, line: Mapping[str, Any]) -> None:
    """Add the plan, told result or note of a line; the races before it are there already."""
    if "plan" in line:
        recorded.plans.append(_plan_from(line))
    elif "told" in line:
        recorded.told.append(dict(line["told"]))
    else:
        recorded.notes.append(_note_from(line, len(recorded.races)))


def _header_from(values: Mapping[str, Any]) -> Header:
    known = {option.name for option in dataclasses.fields(Header)}
    given = {name: value for name, value in values.items() if name in known}
    settings = dict(values["settings"])
    statistic = settings["statistic"]
    if isinstance(statistic, dict):
        arguments = {name: value for name, value in statistic.items() if name != "kind"}
        settings["statistic"] = _STATISTICS[statistic["kind"]](**arguments)
    given["settings"] = Settings(**settings)
    names = given.get("instances")
    if names is not None and not (
        isinstance(names, list) and all(isinstance(name, str) for name in names)
    ):
        raise ValueError(f"instances must be a list of names but are {short_text(names)}")
    given["instances"] = None if names is None else tuple(names)
    if not isinstance(given.get("default_values"), (dict, type(None))):
        raise ValueError("default_values must be an object")
    return checked(Header(**given))


def _plan_from(line: Mapping[str, Any]) -> Plan:
    values = {name: value for name, value in line.items() if name != "plan"}
    if line["plan"] == "pass":
        plan = checked(PassPlan(**values))
        if plan.number < 1 or not 0 < plan.n_entrants <= plan.n_trials:
            raise ValueError(f"{plan} cannot be")
        return plan
    if line["plan"] != "schedule":
        raise ValueError(f"a plan must be 'pass' or 'schedule' but is {line['plan']!r}")
    return checked(SchedulePlan(_schedule_from(values["schedule"]), values["n_trials"]))


def _schedule_from(values: Mapping[str, Any]) -> Schedule:
    """Return a schedule whose values ``dataclasses.asdict`` gave."""
    epochs = []
    for epoch in values["epochs"]:
        rounds = tuple(checked(RoundPlan(**round_)) for round_ in epoch["rounds"])
        epochs.append(_checked_epoch(checked(EpochPlan(**{**epoch, "rounds": rounds}))))
    supply = checked(Supply(**values["supply"]))
    return checked(Schedule(**{**values, "supply": supply, "epochs": tuple(epochs)}))


def _checked_epoch(epoch: EpochPlan) -> EpochPlan:
    """Return an epoch whose rounds leave one configuration of those that enter it."""
    n_left = epoch.n_configs
    for round_ in epoch.rounds:
        possible = 1 <= round_.survivors <= round_.group_size and round_.races_per_group >= 0
        if round_.n_configs != n_left or not possible:
            raise ValueError(f"{n_left} configurations cannot race in {round_}")
        n_left = round_.n_groups * round_.survivors + round_.carried
    if n_left != 1:
        raise ValueError(f"epoch {epoch.index} leaves {n_left} configurations")
    return epoch


def _note_from(line: Mapping[str, Any], n_races: int) -> Note:
    note = Note(str(line["note"]), dict(line["values"]), n_races)
    if note.kind == "limits":
        limit = note.values["n_trials"]
        if limit is not None and not (type(limit) is int and 0 <= limit < LARGEST):
            raise ValueError(f"n_trials must be a whole number but is {short_text(limit)}")
    if note.kind == VERDICT:
        str(checked(Verdict.of_note(note.values)))  # it can be told
    return note


class RaceReader:
    """Makes race records of lines; what many of them share is kept once."""

    def __init__(self) -> None:
        self._keys: dict[tuple[str | None, int], InstanceKey] = {}
        self._numbers: dict[int, int] = {}

    def read(self, line: Mapping[str, Any]) -> RaceRecord:
        """Return the race that a line holds."""
        name, seed = line["on"]
        key = self._keys.get((name, seed))
        if key is None:
            if not isinstance(name, (str, type(None))) or type(seed) is not int:
                raise ValueError(f"a name and a seed must be given but are {name!r} and {seed!r}")
            key = self._keys[name, seed] = InstanceKey(name, seed)
        numbers = self._numbers
        racers = tuple([numbers.setdefault(number, number) for number in line["racers"]])
        trials = tuple([_trial_from(values) for values in line["trials"]])
        if len(racers) != len(trials) or not racers:
            raise ValueError(f"{len(racers)} racers have {len(trials)} trials")
        place = RaceId(*line["race"])
        named_by = (*place, *racers, line["instance"])
        if not all(type(number) is int and 0 <= number < LARGEST for number in named_by):
            raise ValueError(f"race {place} of {racers} is not named by whole numbers")
        instance = numbers.setdefault(line["instance"], line["instance"])
        known = tuple(line.get("known", ()))
        if not set(known) <= set(racers):
            raise ValueError(f"of {racers} the results of {known} were known")
        new = line.get("configurations")
        for values in () if new is None else new.values():
            if any(isinstance(value, dict) for value in values.values()):
                raise ValueError(f"a configuration has values but is {short_text(values)}")
        return RaceRecord(
            place,
            instance,
            key,
            racers,
            trials,
            float(line["walltime"]),
            int(line["n_trials"]),
            {int(number): dict(values) for number, values in new.items()} if new else _NOTHING,
            known,
        )


def _trial_from(values: list[Any]) -> TrialRecord:
    end, cost, time, cpu_time, started = values[:5]
    cost, time, cpu_time = float(cost), float(time), float(cpu_time)
    if cost != cost:
        raise ValueError("a cost is not a number")
    # In races the cost is the time, and often all of it was CPU time: one object for both.
    time = cost if time == cost else time
    cpu_time = time if cpu_time == time else cpu_time
    info = values[5] if len(values) > 5 else _NOTHING
    if type(info) is not dict:
        raise ValueError(f"what a target said must be an object but is {info!r}")
    return TrialRecord(_ENDS[end], cost, time, cpu_time, float(started), info)
