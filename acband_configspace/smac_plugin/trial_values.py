"""SMAC's trials in the words of the core: the only module that reads or writes their extra keys."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import numpy as np
from ConfigSpace import Configuration, ConfigurationSpace
from smac.runhistory.dataclasses import TrialInfo, TrialValue
from smac.runhistory.enumerations import StatusType
from smac.utils.numpyencoder import NumpyEncoder

from acband_configspace.core.ends import End
from acband_configspace.core.instances import InstanceKey
from acband_configspace.core.race import Outcome
from acband_configspace.runlog.records import TrialRecord, short_info
from acband_configspace.running import Clock, RaceReport, RacerReport
from acband_configspace.running.local.messages import both_ends
from acband_configspace.smac_plugin.configurations import from_json

_STATUS = {
    End.FINISHED: StatusType.SUCCESS,
    End.LOST: StatusType.TIMEOUT,
    End.CUTOFF: StatusType.TIMEOUT,
    End.MEMORY: StatusType.MEMORYOUT,
    End.CRASHED: StatusType.CRASHED,
    End.CANCELLED: StatusType.TIMEOUT,
}
_END = {
    StatusType.SUCCESS: End.FINISHED,
    StatusType.TIMEOUT: End.CUTOFF,
    StatusType.MEMORYOUT: End.MEMORY,
}
#: Where texts that come from targets are cut: a journal is not a place for data.
LONGEST_TEXT = 1000
#: Tracebacks may be longer; their end is what tells.
LONGEST_ERROR = 4000


@dataclass(frozen=True)
class Ticket:
    """What a trial's info says of the race it belongs to."""

    race: str
    """The race's place, as the journal and the logs have it."""
    n_racers: int
    """How many trials of the race are run."""
    to_the_end: bool = False
    """Whether losers go on."""
    limit: float | None = None
    """Seconds after which the trial has lost."""
    configuration: int | None = None
    """The number of the configuration."""

    def as_info(self) -> dict[str, Any]:
        """Return it as SMAC carries it: ``additional_info`` of a trial's info."""
        return asdict(self)

    @classmethod
    def of(cls, info: TrialInfo) -> Ticket | None:
        """Return the ticket of a trial, None if it belongs to no race."""
        extra = info.additional_info
        if not isinstance(extra, Mapping) or "n_racers" not in extra:
            return None
        return cls(**{field.name: extra[field.name] for field in fields(cls)})


@dataclass(frozen=True)
class ToldTrial:
    """A result that was told before anything was asked for: last week's, or another tool's."""

    config: Configuration
    key: InstanceKey
    value: TrialValue
    warm: bool = False
    """Whether it comes from a warm start: then it takes nothing of ``n_trials``."""

    def as_json(self) -> dict[str, Any]:
        """Return it as the journal keeps it."""
        record = as_record(self.value)
        content = asdict(replace(record, info=short_info(record.info)))
        place = {"config": dict(self.config), "instance": self.key, "warm": self.warm}
        return {**place, **content, "end": record.end.value}

    @classmethod
    def of_json(cls, content: Mapping[str, Any], space: ConfigurationSpace) -> ToldTrial:
        """Return what :meth:`as_json` gave."""
        place = ("config", "instance", "warm")
        rest = {name: item for name, item in content.items() if name not in place}
        info = rest.get("info")
        info = info if isinstance(info, dict) else {}  # a long one was written as a text once
        record = TrialRecord(**{**rest, "end": End(content["end"]), "info": info})
        config = from_json(space, content["config"], origin="Told")
        key, warm = InstanceKey(*content["instance"]), content.get("warm", False)
        return cls(config, key, as_value(record), warm)


def end_of(value: TrialValue) -> End:
    """Return how a trial ended; a cost that is not finite is a crash."""
    if value.status == StatusType.SUCCESS:
        cost = value.cost
        finite = math.isfinite(cost) if type(cost) is float else np.all(np.isfinite(cost))
        return End.FINISHED if finite else End.CRASHED
    said = value.additional_info.get("end")
    if said in (End.LOST.value, End.CANCELLED.value, End.CUTOFF.value, End.MEMORY.value):
        return End(said)
    return _END.get(value.status, End.CRASHED)


def check_told(value: TrialValue) -> None:
    """Refuse what is not a result."""
    if value.status == StatusType.RUNNING:
        raise ValueError("status must be that of a trial that is over but got RUNNING")
    if _one_number(value.cost) is None:
        raise TypeError(f"cost must be one real number but got {value.cost!r}")


def is_result(value: TrialValue) -> bool:
    """Return whether a trial has a result, so that it need not be run again."""
    running = value.status == StatusType.RUNNING
    return not running and end_of(value) not in (End.LOST, End.CANCELLED)


def cost_of(value: TrialValue) -> float:
    """Return the cost of a trial as one number; what is not finite costs infinity."""
    cost = float(np.asarray(value.cost, dtype=float).squeeze())
    return cost if math.isfinite(cost) else math.inf


def outcome_of(values: Sequence[TrialValue], *, n_known: int) -> Outcome:
    """Return the outcome of a race, of whose results so many were known before the run."""
    costs, ends = [cost_of(value) for value in values], [end_of(value) for value in values]
    return Outcome(costs, ends, n_known=n_known)


def reason_of(value: TrialValue) -> str | None:
    """Return what went wrong in a trial, in words, if that is known."""
    info = value.additional_info
    return info.get("traceback") or info.get("error")


def as_record(value: TrialValue) -> TrialRecord:
    """Return a trial as the journal keeps it."""
    info = {name: item for name, item in value.additional_info.items() if name != "end"}
    return TrialRecord(
        end=end_of(value),
        cost=cost_of(value),
        time=float(value.time),
        cpu_time=float(value.cpu_time),
        started=float(value.starttime),
        info=info,
    )


def as_value(record: TrialRecord) -> TrialValue:
    """Return a trial of the journal as SMAC has it."""
    info = dict(record.info)
    if record.end is not End.FINISHED:
        info["end"] = record.end.value
    return TrialValue(
        status=_STATUS[record.end],
        cost=record.cost,
        time=record.time,
        cpu_time=record.cpu_time,
        starttime=record.started,
        endtime=record.started + record.time,
        additional_info=info,
    )


@dataclass(frozen=True)
class Accounting:
    """Turns reports of races into trial values.

    With ``racing`` the cost of a finisher is its time (what it says itself, if it does), that of a
    racer that met the cutoff ``par`` times the cutoff, and that of a loser its time so far.
    Otherwise the cost is what the target returns or prints.
    """

    racing: bool
    clock: Clock
    par: float
    cutoff: float | None
    crash_cost: float

    def values(self, report: RaceReport, race: str | None) -> list[TrialValue]:
        """Return a trial value for each racer of a race."""
        place = {} if race is None or not self.racing else {"race": race, "winner": report.winner}
        return [self._value(racer, place) for racer in report.racers]

    def _value(self, racer: RacerReport, place: Mapping[str, Any]) -> TrialValue:
        info: dict[str, Any] = dict(place)
        if racer.error is not None:
            info["error"] = info["traceback"] = both_ends(racer.error, LONGEST_ERROR)
        if racer.reported is not None and racer.reported.additional_info is not None:
            info["additional_info"] = racer.reported.additional_info[:LONGEST_TEXT]
        end = racer.status
        if self.racing:
            status, cost = _STATUS[end], self._race_cost(racer)
            info.update(_as_json({"returned": racer.returned, "reported": racer.reported}))
        else:
            status, cost = self._own_cost(racer, info)
        if status != StatusType.SUCCESS:
            info["end"] = End.CRASHED.value if end is End.FINISHED else end.value
        return TrialValue(
            status=status,
            cost=cost,
            time=racer.time,
            # A wrapper whose objective is not run time may say 0: a limit must still be reached.
            # Of one that was stopped, it is what it must have exceeded, and not what it used.
            cpu_time=racer.cpu_time if end is End.LOST else racer.own_time or racer.cpu_time,
            starttime=racer.started,
            endtime=racer.started + racer.time,
            additional_info=info,
        )

    def _race_cost(self, racer: RacerReport) -> float:
        if racer.own_time is not None and racer.status in (End.FINISHED, End.LOST):
            return racer.own_time
        if racer.status in (End.FINISHED, End.LOST, End.CANCELLED):
            return racer.cpu_time if self.clock == "cpu" else racer.time
        crashed = racer.status is End.CRASHED
        if self.cutoff is None or (crashed and math.isfinite(self.crash_cost)):
            return self.crash_cost
        return self.par * self.cutoff

    def _own_cost(self, racer: RacerReport, info: dict[str, Any]) -> tuple[StatusType, float]:
        """Return what the target says it cost; a failure costs what the scenario says."""
        if racer.status is not End.FINISHED:
            return _STATUS[racer.status], self.crash_cost
        if racer.command is None:
            said = racer.returned
        else:
            said = None if racer.reported is None else racer.reported.cost
        status, cost, more = judged(said)
        if status != StatusType.SUCCESS and racer.command is not None and racer.output:
            more["error"] += f"; the command printed: {racer.output[-LONGEST_TEXT:]!r}"
        info.update(more)
        return status, cost if status == StatusType.SUCCESS else self.crash_cost


def judged(returned: object) -> tuple[StatusType, float, dict[str, Any]]:
    """Return the status, cost and additional information that a target's return value means.

    As in SMAC: a number, or a pair of a number and a dictionary. Anything else is a crash, and so
    are NaN and infinity.
    """
    cost: Any = returned
    info: Mapping[str, Any] = {}
    if isinstance(returned, tuple) and len(returned) == 2 and isinstance(returned[1], Mapping):
        cost, info = returned
    if isinstance(cost, Mapping) and len(cost) == 1:
        (cost,) = cost.values()
    more = _as_json(info)
    number = _one_number(cost)
    if number is None or not math.isfinite(number):
        what = "finite" if number is not None else "one real number"
        error = f"the cost must be {what}: {_shortened(cost)}"
        return StatusType.CRASHED, math.inf, {**more, "error": error}
    return StatusType.SUCCESS, number, more


def _one_number(cost: object) -> float | None:
    """Return a cost as a float, None if it is not one real number."""
    if isinstance(cost, (str, bytes)):
        return None
    try:
        array = np.asarray(cost)
    except Exception:  # a ragged list, or an object of the user's own, which may raise anything
        return None
    if array.size != 1 or array.dtype.kind not in "fiub":
        return None
    return float(array.reshape(()))


def _as_json(info: Mapping[str, Any]) -> dict[str, Any]:
    """Return what fits into short JSON as it is, the rest as text; leave out what is None."""
    kept: dict[str, Any] = {}
    for name, value in info.items():
        if value is None:
            continue
        try:
            text = json.dumps(value, cls=NumpyEncoder)
        except (TypeError, ValueError, RecursionError):
            text = ""
        kept[str(name)] = json.loads(text) if 0 < len(text) <= LONGEST_TEXT else _shortened(value)
    return kept


def _shortened(value: object) -> str:
    try:
        text = repr(value)
    except Exception:  # a repr of the user's own may raise anything
        text = object.__repr__(value)
    return text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]}…"
