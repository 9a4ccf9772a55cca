"""What is wrong with a user's file, said with the file, the line and a suggestion."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Place:
    """Where in a user's input something stands: a line of a file, or the command line."""

    source: str
    line: int | None = None

    @classmethod
    def of(cls, path: Path | str, line: int | None = None) -> Place:
        """Return a place in a file."""
        return cls(str(path), line)

    def __str__(self) -> str:
        return self.source if self.line is None else f"{self.source}:{self.line}"


#: What stands in no file.
COMMAND_LINE = Place("command line")


class InputError(ValueError):
    """Something a user gave cannot be used; ``place`` and ``message`` say what and where."""

    def __init__(self, place: Place, message: str) -> None:
        super().__init__(f"{place}: {message}")
        self.place = place
        self.message = message


def suggestion(word: str, known: Iterable[str]) -> str:
    """Return "; did you mean …?" for the nearest known word, or nothing if none is near."""
    by_plain_form = {_plain(name): name for name in known}
    near = difflib.get_close_matches(_plain(word), by_plain_form, n=1, cutoff=0.6)
    return f"; did you mean {by_plain_form[near[0]]!r}?" if near else ""


def _plain(word: str) -> str:
    return word.lower().replace("-", "").replace("_", "")
