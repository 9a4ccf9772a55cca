"""The journal of a run: a JSON line per finished race, on disk before the race is used.

The first line says what run it is and how to build its engine again, a line per pass holds its
plan, notes say the rest, all others are races. A result that is told before the first race has a
line of its own until the run begins with it: from then on it is in the first one. Every line ends
with a checksum of itself. A process that is killed at any moment loses at most the line it was
writing: an unterminated last line is dropped. Any other damage is refused by the number of the
line, and the file is left alone.
"""

from __future__ import annotations

import json
import os
import re
import zlib
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, overload

from acband_configspace.core.engine import Plan
from acband_configspace.core.race import RaceId
from acband_configspace.errors import JournalError, RunDirectoryGoneError, RunInUseError
from acband_configspace.runlog.lock import RunLock
from acband_configspace.runlog.records import (
    FORMAT,
    NONSENSE,
    Header,
    RaceReader,
    RaceRecord,
    Recorded,
    as_json,
    header_line,
    note_line,
    plan_line,
    race_line,
    recorded_from,
    take_in,
    told_line,
)

#: The name of the file in the directory of a run.
JOURNAL = "journal.jsonl"

#: What follows the JSON text of a line, within its braces.
_CHECKSUM = ',"crc32":"{:08x}"}}\n'
_N_CHECKSUM = len(_CHECKSUM.format(0))
#: How the line of a race begins, with its place.
_RACE = b'{"race":'
_PLACE = re.compile(rb'{"race": ?\[(\d+), ?(\d+), ?(\d+), ?(\d+), ?(\d+)\]')


class Journal:
    """Reads, and appends to, the journal of a run, which is one's own as long as it is open.

    Parameters
    ----------
    path : Path
        The file. Whoever else has it open, here or in another process, makes :meth:`start` and
        :meth:`read` raise a :class:`~acband_configspace.errors.RunInUseError`.
    """

    def __init__(self, path: Path) -> None:
        self.path = Path(path).absolute()  # a target may change the working directory
        self._lock: RunLock | None = None
        self._descriptor: int | None = None
        self._pid = os.getpid()
        self._n_bytes = 0
        self._races: set[RaceId] = set()
        self._before = RacesOnDisk(self.path)
        self._configurations: set[int] = set()
        self._paused = False

    def start(self, header: Header, identity: Mapping[str, Any]) -> None:
        """Begin a new journal; an old one is replaced once the new one is on disk."""
        line = _encoded(header_line(header, identity))
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._take_lock()
        replace_whole(self.path, line)
        self._races, self._configurations = set(), set()
        self._before = RacesOnDisk(self.path)
        self._open(len(line))

    def read(self) -> Recorded | None:
        """Return what was recorded, None if there is nothing; further lines are appended to it.

        Its races are :class:`RacesOnDisk`: of each, the checksum and the place are looked at here,
        the rest when it is asked for.
        """
        if not self.path.exists():
            return None
        self._take_lock()
        races = RacesOnDisk(self.path)
        reader = _Reader(self.path)
        recorded = reader.recorded(races, lambda raw, start: races.add(_place_of(raw), start))
        if recorded is None:
            return None
        self._races, self._before, self._configurations = set(), races, set()
        self._open(reader.n_bytes)
        return recorded

    def earlier(self, place: RaceId) -> RaceRecord | None:
        """Return the race in a place, if it was there when the journal was read."""
        return self._before.take(place)

    def not_asked_for(self) -> Iterator[RaceRecord]:
        """Yield the races that were there, too, but that :meth:`earlier` was not asked for."""
        return self._before.rest()

    def add_plan(self, plan: Plan) -> None:
        """Record the plan of a pass."""
        self._append(plan_line(plan))

    def add_race(self, record: RaceRecord, configurations: Mapping[int, Mapping[str, Any]]) -> None:
        """Record a finished race; on return the line is out of this process's hands.

        Parameters
        ----------
        record : RaceRecord
            The race.
        configurations : mapping from int to mapping
            The values of its racers. Those that the journal does not have yet are written.
        """
        if record.id in self._races or self._before.has(record.id):
            raise ValueError(f"race {record.id} must be recorded once but is in {self.path}")
        before = self._before.configurations
        new = {
            number: configurations[number]
            for number in record.racers
            if number not in self._configurations and number not in before
        }
        self._append(race_line(record, new))
        self._races.add(record.id)
        self._configurations.update(new)

    def add_told(self, trial: Mapping[str, Any]) -> None:
        """Record a result that was told before the first race; :meth:`start` has it in its line."""
        self._append(told_line(trial))

    def add_note(self, kind: str, **values: Any) -> None:
        """Record anything else.

        Reports know ``finished`` with its ``reason``, ``limits`` with ``n_trials``, and
        ``verdict`` with what was found on test instances.
        """
        self._append(note_line(kind, values))

    def close(self) -> None:
        """Close the file and let others have it; :meth:`read` opens it again."""
        self._close_file()
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def pause(self) -> None:
        """Let others have the run until the next line is written; nobody may have added to it."""
        if self._descriptor is not None:
            if os.fstat(self._descriptor).st_size > self._n_bytes:  # of a write that failed
                os.ftruncate(self._descriptor, self._n_bytes)
            self.close()
            self._paused = True

    def go_on(self) -> None:
        """End a pause before there is a line to write."""
        if self._paused:
            self._resume()

    @property
    def is_open(self) -> bool:
        """Whether the run is ours now, and nobody else can write to it."""
        return self._descriptor is not None

    def check(self) -> None:
        """Raise an error if the file that is open is no longer the journal of this run."""
        if self._descriptor is not None:
            self._check_file(self._descriptor)

    def __del__(self) -> None:
        self._close_file()

    # --- the file -----------------------------------------------------------------------------

    def _take_lock(self) -> None:
        if self._lock is not None and self._pid != os.getpid():
            raise RunInUseError(str(self.path.parent))  # a forked child has a copy of this object
        if self._lock is None:
            self._lock = RunLock(self.path.with_suffix(".lock"))
            self._pid = os.getpid()

    def _open(self, n_bytes: int) -> None:
        self._close_file()
        self._descriptor = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
        self._n_bytes = n_bytes
        self._paused = False

    def _close_file(self) -> None:
        self._before.close()
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)

    def _append(self, line: Mapping[str, Any]) -> None:
        self.go_on()
        if self._descriptor is None:
            raise ValueError(f"{self.path} must be started or read before it is written to")
        if self._pid != os.getpid():
            raise RunInUseError(str(self.path.parent))
        self._check_file(self._descriptor)
        encoded = _encoded(line)
        # To the system: this survives a kill -9, though not a power failure.
        _write_all(self._descriptor, encoded)
        self._n_bytes += len(encoded)

    def _resume(self) -> None:
        if not self.path.exists():
            raise RunDirectoryGoneError(str(self.path))
        self._take_lock()
        if self.path.stat().st_size != self._n_bytes:
            self.close()
            raise JournalError(
                str(self.path), 1, "and others were changed by another process; start the run again"
            )
        self._open(self._n_bytes)

    def _check_file(self, descriptor: int) -> None:
        """Notice a file that is gone, and cut what an interrupted write has left at its end."""
        own = os.fstat(descriptor)
        try:
            there = os.stat(self.path)
        except FileNotFoundError:
            raise RunDirectoryGoneError(str(self.path)) from None
        if (own.st_dev, own.st_ino) != (there.st_dev, there.st_ino):
            raise RunDirectoryGoneError(str(self.path))
        if own.st_size < self._n_bytes:
            raise JournalError(str(self.path), 1, "and others were cut off by another process")
        if own.st_size > self._n_bytes:
            os.ftruncate(descriptor, self._n_bytes)


def read_journal(path: str | Path) -> Recorded:
    """Return what a journal holds; it is neither locked nor changed, and may be being written.

    Raises
    ------
    JournalError
        If there is no whole line in it, or a line is damaged.
    """
    races: list[RaceRecord] = []
    reader, seen = RaceReader(), set[RaceId]()

    def keep(raw: bytes, _: int) -> None:
        race = reader.read(decoded(raw))
        if race.id in seen:
            raise ValueError(f"race {race.id} is there twice")
        seen.add(race.id)
        races.append(race)

    recorded = _Reader(Path(path)).recorded(races, keep)
    if recorded is None:
        raise JournalError(str(path), 1, "is missing: nothing was recorded")
    return recorded


def read_header(path: Path) -> Header:
    """Return what the first line of a whole journal says; the others are not read."""
    with path.open("rb") as file:
        return recorded_from(decoded(file.readline()), []).header


class RacesOnDisk(Sequence[RaceRecord]):
    """The races of a journal in their order, each read when it is asked for.

    All of them at once would take more memory than the run that goes on with them.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._starts = array("Q")
        self._numbers: dict[RaceId, int] = {}
        self._taken = bytearray()
        self._is_read = bytearray()
        self._configurations: set[int] = set()
        self._reader = RaceReader()
        self._file: BinaryIO | None = None

    def add(self, place: RaceId, start: int) -> None:
        """Note where in the file the line of the next race starts."""
        if place in self._numbers:
            raise ValueError(f"race {place} is there twice")
        self._numbers[place] = len(self._starts)
        self._starts.append(start)
        self._taken.append(False)
        self._is_read.append(False)

    @property
    def configurations(self) -> set[int]:
        """The numbers of those whose values are among them."""
        while (number := self._is_read.find(False)) >= 0:
            _ = self[number]
        return self._configurations

    def has(self, place: RaceId) -> bool:
        """Return whether a race is among them."""
        return place in self._numbers

    def take(self, place: RaceId) -> RaceRecord | None:
        """Return a race by its place, None if it is not among them."""
        number = self._numbers.get(place)
        if number is None:
            return None
        self._taken[number] = True
        return self[number]

    def rest(self) -> Iterator[RaceRecord]:
        """Yield those that nobody has taken."""
        return (self[number] for number, taken in enumerate(self._taken) if not taken)

    def __len__(self) -> int:
        return len(self._starts)

    @overload
    def __getitem__(self, number: int) -> RaceRecord: ...
    @overload
    def __getitem__(self, number: slice) -> list[RaceRecord]: ...
    def __getitem__(self, number: int | slice) -> RaceRecord | list[RaceRecord]:
        if isinstance(number, slice):
            return [self[each] for each in range(len(self))[number]]
        start = self._starts[number]
        raw = self._line(start)
        try:
            race = self._reader.read(decoded(raw))
        except NONSENSE as error:
            n_before = self._path.read_bytes()[:start].count(b"\n")
            raise _nonsense(self._path, n_before + 1, error) from error
        self._is_read[number] = True
        self._configurations.update(race.configurations)
        return race

    def _line(self, start: int) -> bytes:
        if self._file is None:
            self._file = self._path.open("rb")
        self._file.seek(start)
        return self._file.readline()

    def close(self) -> None:
        """Close the file, until a race is asked for again."""
        self._reader = RaceReader()
        if self._file is not None:
            self._file.close()
            self._file = None


class _Reader:
    """Reads a journal from its first line to its last whole one."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._n_lines = 0
        self.n_bytes = 0
        """The length of what was read."""

    def recorded(
        self, races: Sequence[RaceRecord], keep: Callable[[bytes, int], None]
    ) -> Recorded | None:
        """Return what the journal holds; ``keep`` adds a race to ``races``, by line and start."""
        lines = self._lines()
        try:
            raw = next(lines, None)
            if raw is None:
                return None
            recorded = recorded_from(decoded(raw), races)
            for raw in lines:
                if raw.startswith(_RACE):
                    keep(raw, self.n_bytes)
                else:
                    take_in(recorded, decoded(raw))
        except JournalError:
            raise
        except NONSENSE as error:
            raise _nonsense(self._path, self._n_lines, error) from error
        return recorded

    def _lines(self) -> Iterator[bytes]:
        """Yield the lines that are whole; refuse one that does not agree with its checksum."""
        with self._path.open("rb") as file:
            for raw in file:
                if not raw.endswith(b"\n"):
                    return  # torn: the run was killed, or is just writing it
                self._n_lines += 1
                if self._n_lines == 1:
                    self._check_format(raw)
                try:
                    without_checksum(raw)
                except ValueError as error:
                    hint = (
                        f"'acband recover {self._path.parent}' keeps a copy and salvages the rest"
                    )
                    raise self._error(f"{error}; {hint}") from None
                yield raw
                self.n_bytes += len(raw)

    def _check_format(self, raw: bytes) -> None:
        """Refuse what is in another format, whose lines may have no checksums."""
        try:
            found = json.loads(raw)["format"]
        except (ValueError, KeyError, TypeError):
            raise self._error("is damaged, or this is not the journal of a run") from None
        if found == 1:
            raise self._error(
                "was written by version 0.1.0; this version cannot continue it - "
                "use overwrite=True or another output_directory"
            )
        if found != FORMAT:
            raise self._error(f"is in format {found!r}, but this version reads format {FORMAT}")

    def _error(self, problem: str) -> JournalError:
        return JournalError(str(self._path), self._n_lines, problem)


def _place_of(raw: bytes) -> RaceId:
    """Return the place of the race that a line holds; the rest of it is left unread."""
    found = _PLACE.match(raw)
    if found is None:
        raise ValueError("it does not begin with the place of a race")
    return RaceId(*map(int, found.groups()))


def _nonsense(path: Path, line: int, error: Exception) -> JournalError:
    what = str(error) if type(error) is ValueError else repr(error)
    return JournalError(str(path), line, f"makes no sense: {what}")


def decoded(raw: bytes) -> dict[str, Any]:
    """Return what a line holds; a ValueError says what is wrong with it."""
    line = json.loads(without_checksum(raw) + b"}")
    if not isinstance(line, dict):
        raise ValueError("it is not a JSON object")
    return line


def without_checksum(raw: bytes) -> bytes:
    """Return a line without its checksum and end; a ValueError says if they do not agree."""
    text, end = raw[:-_N_CHECKSUM], raw[-_N_CHECKSUM:]
    if end != _CHECKSUM.format(zlib.crc32(text)).encode():
        raise ValueError("is damaged: it does not agree with its checksum")
    return text


def _encoded(line: Mapping[str, Any]) -> bytes:
    text = as_json(line).encode()[:-1]  # the checksum goes before the closing brace
    return text + _CHECKSUM.format(zlib.crc32(text)).encode()


def replace_whole(path: Path, content: bytes) -> None:
    """Put new content in the place of a file that is locked, once all of it is on disk."""
    new = path.with_name(f"{path.name}.new")  # the lock says that nobody else has it
    try:
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o666)
        try:
            _write_all(descriptor, content)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        os.replace(new, path)
    except BaseException:
        new.unlink(missing_ok=True)
        raise


def _write_all(descriptor: int, content: bytes) -> None:
    view = memoryview(content)
    while view:
        view = view[os.write(descriptor, view) :]
