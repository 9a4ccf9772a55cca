"""Lists of instances: files that list them, folders and patterns."""

from __future__ import annotations

import glob
import os
import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from acband_configspace.cli.errors import InputError, Place
from acband_configspace.cli.files import read_text, without_comment


@dataclass(frozen=True)
class ListedInstance:
    """A line of a list of instances."""

    name: str
    rest: str = ""
    """What follows the name."""


def listed_names(path: Path) -> list[str]:
    """Return the lines of a file, each an instance, spaces within it included."""
    lines = (line.strip() for line in read_text(path).split("\n"))
    names = [line for line in lines if line and not line.startswith("#")]
    return unique(names, path)


def listed_instances(path: Path, *, comments: bool = False) -> list[ListedInstance]:
    """Return the instances of a file whose lines may say more than the name.

    A name with spaces stands in quotes; what follows it belongs to the instance, except for
    ``comments`` after a ``#``.
    """
    found: dict[str, ListedInstance] = {}
    for number, line in enumerate(read_text(path).split("\n"), 1):
        text = (without_comment(line) if comments else line).strip()
        if not text or text.startswith("#"):
            continue
        name, rest = _split(text, Place.of(path, number))
        found.setdefault(name, ListedInstance(name, rest))
    if not found:
        raise InputError(Place.of(path), "lists no instance")
    return list(found.values())


def _split(text: str, place: Place) -> tuple[str, str]:
    quote = text[0]
    if quote not in "\"'":
        name, _, rest = text.partition(" ") if " " in text else text.partition("\t")
        return name, rest.strip()
    end = text.find(quote, 1)
    if end < 0:
        raise InputError(place, f"the quote at the beginning is never closed: {text!r}")
    return text[1:end], text[end + 1 :].strip()


def words_of(rest: str, place: Place) -> tuple[str, ...]:
    """Return what follows a name as separate arguments."""
    try:
        return tuple(shlex.split(rest))
    except ValueError as error:
        raise InputError(place, f"{rest!r}: {error}") from None


def files_in(folder: Path) -> list[str]:
    """Return the files of a folder, by name, without hidden ones; not those of its folders."""
    try:
        entries = sorted(e.name for e in os.scandir(folder) if e.is_file())
    except OSError as error:
        raise InputError(Place.of(folder), f"cannot be read: {error.strerror}") from None
    names = [name for name in entries if not name.startswith(".")]
    if not names:
        raise InputError(Place.of(folder), "has no files that could be instances")
    return names


def found_instances(text: str, base: Path, place: Place) -> list[str]:
    """Return the instances that a folder, a pattern or a list file stands for.

    The names are relative to ``base``, where they can be.
    """
    path = base / text
    if path.is_dir():
        return [os.path.join(text, name) for name in files_in(path)]
    if glob.has_magic(text) and not path.exists():
        found = sorted(name for name in glob.glob(text, root_dir=base, recursive=True))
        names = [name for name in found if (base / name).is_file()]
        if not names:
            raise InputError(place, f"no file matches {text!r} in {base}")
        return names
    if not path.exists():
        raise InputError(place, f"there is no file or folder {text!r} in {base}")
    return listed_names(path)


def unique(names: Iterable[str], source: Path) -> list[str]:
    """Return the names, each once."""
    found = list(dict.fromkeys(names))
    if not found:
        raise InputError(Place.of(source), "lists no instance")
    return found
