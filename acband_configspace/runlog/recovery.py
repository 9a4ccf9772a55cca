"""Makes a damaged journal whole again: a copy is kept, and what checks out is salvaged.

Only on request. Whoever just starts a run with a damaged journal is refused, and the file is left
alone.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from acband_configspace.core.race import RaceId
from acband_configspace.errors import JournalError
from acband_configspace.runlog.journal import decoded, read_journal, replace_whole
from acband_configspace.runlog.lock import RunLock
from acband_configspace.runlog.played import playable
from acband_configspace.runlog.records import (
    NONSENSE,
    RaceReader,
    RaceRecord,
    recorded_from,
    take_in,
)
from acband_configspace.runlog.verdict import VERDICT

#: How a line begins that holds a race, a note or a told result: what else is damaged may be a plan,
#: and without its plan nothing of a pass makes sense.
_NO_PLAN = (b'{"race"', b'{"note"', b'{"told"')


@dataclass(frozen=True)
class Recovery:
    """What was salvaged of a journal."""

    copy: Path | None
    """The journal as it was; None if there was nothing to mend."""
    damaged: tuple[int, ...]
    """The numbers of the lines that were damaged, from 1."""
    n_races: int
    """How many races the journal has now."""
    n_dependent: int
    """Races that were whole, but only follow from damaged ones: these are run again, too."""


def recover(path: Path) -> Recovery:
    """Mend a journal; the run then goes on, and runs again what could not be salvaged.

    Parameters
    ----------
    path : Path
        The journal. Nobody else may have it open.

    Raises
    ------
    JournalError
        If nothing can be salvaged, because the first line is damaged.
    RunInUseError
        If the run is open.
    """
    lock = RunLock(path.with_suffix(".lock"))
    try:
        # What follows the last line end is a line that was being written: it is no damage.
        lines = [line + b"\n" for line in path.read_bytes().split(b"\n")[:-1]]
        salvage = _Salvage(path, lines)
        if not salvage.damaged:
            return Recovery(None, (), len(salvage.recorded.races), 0)
        kept = salvage.kept()
        copy = _free_name(path)
        shutil.copy2(path, copy)
        replace_whole(path, b"".join(kept))
        n_races = len(read_journal(path).races)
    finally:
        lock.release()
    n_dependent = len(salvage.recorded.races) - n_races
    return Recovery(copy, tuple(salvage.damaged), n_races, n_dependent)


def _free_name(path: Path) -> Path:
    names = (path.with_name(f"{path.name}.damaged-{number}") for number in range(1, 10_000))
    return next(name for name in names if not name.exists())


class _Salvage:
    """The lines of a journal that check out, one by one."""

    def __init__(self, path: Path, lines: list[bytes]) -> None:
        self._lines = lines
        self._races: list[RaceRecord] = []
        self._positions: dict[RaceId, int] = {}
        self._ends: list[int] = []
        self._reader = RaceReader()
        self.damaged: list[int] = []
        """Their numbers, from 1."""
        try:
            self.recorded = recorded_from(decoded(lines[0]), self._races)
        except NONSENSE as error:
            raise JournalError(
                str(path), 1, f"is damaged, and it identifies the run: start anew ({error})"
            ) from None
        for position, raw in enumerate(lines[1:], 1):
            self._try(position, raw)

    def _try(self, position: int, raw: bytes) -> None:
        try:
            self._take(position, decoded(raw))
        except NONSENSE:
            self.damaged.append(position + 1)

    def _take(self, position: int, line: Mapping[str, Any]) -> None:
        if "race" not in line:
            take_in(self.recorded, line)
            if line.get("note") in ("finished", VERDICT):  # of a run that had all its races
                self._ends.append(position)
            return
        race = self._reader.read(line)
        if race.id in self._positions:
            raise ValueError(f"race {race.id} is there twice")
        self._positions[race.id] = position
        self._races.append(race)

    def kept(self) -> list[bytes]:
        """Return the lines of a journal without damage."""
        cut_there = self.recorded.header.own_statistic is not None or not all(
            self._lines[number - 1].startswith(_NO_PLAN) for number in self.damaged
        )
        if cut_there:  # as if the run had been killed at that moment
            return self._lines[: self.damaged[0] - 1]
        fitting = {race.id for race in playable(self.recorded)}
        dropped = {position for place, position in self._positions.items() if place not in fitting}
        dropped.update(number - 1 for number in self.damaged)
        dropped.update(self._ends)  # it may go on now
        return [line for position, line in enumerate(self._lines) if position not in dropped]
