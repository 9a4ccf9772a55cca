"""What is wrong with a user's input, with its file, line and a suggestion; and exit codes."""

from __future__ import annotations

import difflib
import enum
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path


class ExitCode(enum.IntEnum):
    """What ``acband`` exits with."""

    DONE = 0
    TARGET_FAILS = 1
    BAD_INPUT = 2
    RUN_IN_THE_WAY = 3
    ABORTED = 4
    CLUSTER_LOST = 5
    INTERRUPTED = 130


EXIT_CODES = """exit codes:
  0    done
  1    the target does not work, no trial finished, or check found a problem
  2    a file or an option is invalid
  3    the directory holds another run, or one that another process has open, changed or removed
  4    the target said ABORT
  5    the cluster is gone, takes no jobs, or had no workers for too long; started again, the run
       continues
  130  interrupted (143: by SIGTERM, 129: its terminal was closed); started again, the run
       continues
"""


@dataclass(frozen=True)
class Place:
    """A place in a user's input: a line of a file, or the command line."""

    source: Path | str
    line: int | None = None

    def __str__(self) -> str:
        return f"{self.source}" if self.line is None else f"{self.source}:{self.line}"


#: The place of what is in no file.
COMMAND_LINE = Place("command line")


class InputError(ValueError):
    """Something a user gave cannot be used; ``place`` and ``message`` say what and where."""

    def __init__(self, place: Place, message: str) -> None:
        super().__init__(f"{place}: {message}")
        self.place = place
        self.message = message


@contextmanager
def located(place: Place, *kinds: type[Exception]) -> Iterator[None]:
    """Give errors of these kinds the place of the input that is at fault."""
    try:
        yield
    except kinds as error:
        raise InputError(place, str(error)) from None


class TargetAborted(RuntimeError):  # noqa: N818  # an order, not an error
    """The target said ABORT."""


class NothingFoundError(RuntimeError):
    """The run ended without an incumbent."""


def suggestion(word: str, known: Iterable[str]) -> str:
    """Return "; did you mean …?" for the nearest known word, or nothing if none is near."""
    by_plain_form = {_plain(name): name for name in known}
    near = difflib.get_close_matches(_plain(word), by_plain_form, n=1, cutoff=0.6)
    return f"; did you mean {by_plain_form[near[0]]!r}?" if near else ""


def _plain(word: str) -> str:
    return word.lower().replace("-", "").replace("_", "")
