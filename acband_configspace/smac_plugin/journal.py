"""The journal of a run: one JSON line per finished race, appended before it is used.

The first line says what run it is, a line per pass holds its plan, all others are races. A process
that is killed at any moment loses at most the line it was writing.
"""

from __future__ import annotations

import fcntl
import json
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, ClassVar
from weakref import WeakValueDictionary

from smac.runhistory.dataclasses import TrialValue
from smac.runhistory.enumerations import StatusType
from smac.utils.numpyencoder import NumpyEncoder

from acband_configspace.core.instances import InstanceKey
from acband_configspace.core.schedule import Schedule, Supply
from acband_configspace.errors import RunDiffersError, RunInUseError
from acband_configspace.smac_plugin.passes import PassPlan
from acband_configspace.smac_plugin.trials import RaceRecord

logger = logging.getLogger(__name__)

FORMAT = 1


@dataclass(frozen=True)
class Recorded:
    """What a journal holds."""

    identity: dict[str, Any]
    plans: list[PassPlan] = field(default_factory=list)
    races: list[RaceRecord] = field(default_factory=list)
    configurations: dict[int, dict[str, Any]] = field(default_factory=dict)
    """What every configuration that raced was."""


class Journal:
    """Appends to, and reads, the journal file of a run, which is one process's at a time."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: BinaryIO | None = None
        self._lock: _Lock | None = None
        self._known: set[int] = set()

    def start(self, identity: Mapping[str, Any]) -> None:
        """Begin a new journal; an old one is gone."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._open().truncate(0)
        self._known.clear()
        self._write({"format": FORMAT, "identity": identity})

    def add_plan(self, plan: PassPlan) -> None:
        """Record the plan of a pass."""
        schedule = plan.schedule
        inputs = ("budget", "k", "delta", "n_candidates", "n0", "playoff")
        plan_inputs = {name: getattr(schedule, name) for name in inputs}
        self._write(
            {
                "plan": {**plan_inputs, "set_aside": schedule.set_aside > 0},
                "supply": asdict(schedule.supply),
                "n_trials": plan.n_trials,
            }
        )

    def add_race(self, record: RaceRecord, racers: Sequence[Mapping[str, Any]]) -> None:
        """Record a finished race; on return the line is out of this process's hands."""
        named = zip(record.racers, racers, strict=True)
        new = {number: dict(racer) for number, racer in named if number not in self._known}
        line: dict[str, Any] = {
            "race": record.name,
            "on": record.key,
            "racers": record.racers,
            "trials": [
                [
                    int(v.status),
                    v.cost,
                    v.time,
                    v.cpu_time,
                    v.starttime,
                    v.endtime,
                    v.additional_info,
                ]
                for v in record.values
            ],
            "walltime": round(record.walltime, 3),
            "n_trials": record.n_trials,
        }
        if new:
            line["configurations"] = new
        self._write(line)
        self._known.update(new)

    def read(self) -> Recorded | None:
        """Return what was recorded, None if there is nothing; further races are appended to it."""
        if not self.path.exists():
            return None
        file = self._open()
        lines, n_bytes = _intact_lines(file, self.path)
        if not lines:
            return None
        recorded = _parse(self.path, lines)
        file.truncate(n_bytes)  # a torn line must not swallow the next one
        self._known = set(recorded.configurations)
        return recorded

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _open(self) -> BinaryIO:
        """Open the file for this process alone, as long as there is this journal."""
        self.close()
        self._lock = _Lock.of(self.path.with_suffix(".lock"))
        self._file = self.path.open("a+b")
        return self._file

    def _write(self, line: Mapping[str, Any]) -> None:
        assert self._file is not None
        self._file.write(json.dumps(line, cls=NumpyEncoder).encode() + b"\n")
        # To the system: this survives a kill -9, though not a power failure.
        self._file.flush()


class _Lock:
    """A file that is locked for this process as long as anything here refers to the lock.

    Not flock, which would last as long as a racer that inherited the file. But POSIX' locks are
    gone when the process closes the file just once, so it is opened once, and nobody else's.
    """

    _held: ClassVar[WeakValueDictionary[Path, _Lock]] = WeakValueDictionary()

    @classmethod
    def of(cls, path: Path) -> _Lock:
        """Return this process's lock, or say that another process has it."""
        path = path.resolve()
        lock = cls._held.get(path)
        if lock is None:
            lock = cls._held[path] = cls(path)
        return lock

    _file: BinaryIO | None = None

    def __init__(self, path: Path) -> None:
        self._file = path.open("ab")
        try:
            fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):  # POSIX allows either
            raise RunInUseError(str(path.parent)) from None
        except OSError as error:  # some network file systems have no locks
            logger.debug("%s cannot be locked: %s", path, error)

    def __del__(self) -> None:
        if self._file is not None:
            self._file.close()


def _intact_lines(file: BinaryIO, path: Path) -> tuple[list[dict[str, Any]], int]:
    """Return the lines up to the first that is torn, and how many bytes they are."""
    lines: list[dict[str, Any]] = []
    n_bytes = 0
    file.seek(0)
    for number, raw in enumerate(file, start=1):
        try:
            if not raw.endswith(b"\n"):
                raise ValueError("no end of line")
            lines.append(json.loads(raw))
        except ValueError:
            logger.warning("Line %s of %s is torn: dropped, with what follows.", number, path)
            break
        n_bytes += len(raw)
    return lines, n_bytes


def _parse(path: Path, lines: Iterable[Mapping[str, Any]]) -> Recorded:
    first, *rest = lines
    if first.get("format") != FORMAT:
        raise RunDiffersError(str(path), [f"format: {first.get('format')} before, {FORMAT} now"])
    recorded = Recorded(dict(first["identity"]))
    for line in rest:
        if "plan" in line:
            schedule = Schedule.plan(**line["plan"], supply=Supply(**line["supply"]))
            recorded.plans.append(PassPlan(schedule, line["n_trials"]))
        else:
            recorded.races.append(_parse_race(line))
            drawn = line.get("configurations", {})
            recorded.configurations.update({int(number): c for number, c in drawn.items()})
    return recorded


def _parse_race(line: Mapping[str, Any]) -> RaceRecord:
    return RaceRecord(
        name=line["race"],
        key=InstanceKey(*line["on"]),
        racers=tuple(line["racers"]),
        values=tuple(
            TrialValue(
                status=StatusType(status),
                cost=cost,
                time=time,
                cpu_time=cpu_time,
                starttime=start,
                endtime=end,
                additional_info=info,
            )
            for status, cost, time, cpu_time, start, end, info in line["trials"]
        ),
        walltime=line["walltime"],
        n_trials=line["n_trials"],
    )
