"""Files of ``key = value`` lines, and the same on the command line; keys in any spelling."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from acband_configspace.cli.errors import COMMAND_LINE, InputError, Place, suggestion
from acband_configspace.cli.files import meaningful_lines, unquoted


@dataclass(frozen=True)
class Assignment:
    """What a key was given, and where."""

    key: str
    value: str
    place: Place


def plain_key(key: str) -> str:
    """Return a key without the differences between spellings: cutoff_time, cutoff-time, …"""
    return re.sub(r"[-_.]", "", key).lower()


def read_assignments(text: str, source: Path | str, *, signs: str = "=") -> Iterator[Assignment]:
    """Yield the assignments of a text."""
    pattern = re.compile(rf"^([\w.-]+)\s*(?:{signs})\s*(.*)$")
    for line in meaningful_lines(text, source):
        match = pattern.match(line.text)
        if match is None:
            raise InputError(line.place, f"must be 'key = value' but is {line.text!r}")
        yield Assignment(match[1], match[2].strip(), line.place)


class Settings:
    """The assignments of a file by their canonical keys, overridden by the command line.

    Parameters
    ----------
    aliases : Mapping[str, str]
        From plain keys to canonical ones.
    unused : Collection[str]
        Plain keys of settings that have no meaning here; they become notes.
    """

    def __init__(self, aliases: Mapping[str, str], unused: Collection[str]) -> None:
        self._aliases = aliases
        self._unused = unused
        self._found: dict[str, Assignment] = {}
        self.notes: list[str] = []
        self.options: dict[str, str] = {}
        """What the command line says that is no key of the format: an option, perhaps."""

    def add_all(self, assignments: Iterator[Assignment]) -> None:
        """Take in a file; unknown keys are an error with the nearest known one."""
        for assignment in assignments:
            plain = plain_key(assignment.key)
            if plain in self._aliases:
                self._found[self._aliases[plain]] = assignment
            elif plain in self._unused:
                self.notes.append(f"{assignment.place}: {assignment.key} has no meaning here")
            else:
                hint = suggestion(assignment.key, {*self._aliases.values(), *self._unused})
                raise InputError(assignment.place, f"unknown key {assignment.key!r}{hint}")

    def override(self, overrides: Mapping[str, str]) -> None:
        """Take in what the command line says."""
        for key, value in overrides.items():
            plain = plain_key(key)
            if plain in self._aliases:
                assignment = Assignment(f"--{key}", value, COMMAND_LINE)
                self._found[self._aliases[plain]] = assignment
            else:
                self.options[key] = value

    def __contains__(self, key: str) -> bool:
        return key in self._found

    def get(self, key: str) -> Assignment | None:
        """Return what a key was given, None if nothing or an empty text."""
        assignment = self._found.get(key)
        return None if assignment is None or not unquoted(assignment.value) else assignment
