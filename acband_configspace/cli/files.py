"""Users' files: texts with any line ends, comments and quotes; lists, folders and patterns."""

from __future__ import annotations

import glob
import os
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from acband_configspace.cli.errors import InputError, Place


@dataclass(frozen=True)
class Line:
    """A line that is not empty, without its comment."""

    text: str
    place: Place


def read_text(path: Path) -> str:
    r"""Return the text of a file with ``\n`` as its line ends.

    Raises
    ------
    InputError
        If there is no such file, or it is not UTF-8; the line is given then.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(Place(path), f"cannot be read: {error.strerror}") from None
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError(Place(path, line), "is not UTF-8; save the file as UTF-8") from None
    return text.replace("\r\n", "\n").replace("\r", "\n")


def meaningful_lines(text: str, source: Path | str) -> Iterator[Line]:
    """Yield the lines that are neither empty nor comments, stripped."""
    for number, raw in enumerate(text.split("\n"), 1):
        line = without_comment(raw).strip()
        if line:
            yield Line(line, Place(source, number))


def without_comment(line: str) -> str:
    """Return a line up to the first ``#`` outside double quotes."""
    end = next(_outside_quotes(line, "#"), None)
    if end is None and line.count('"') % 2:
        return line.partition("#")[0]  # a lone quote, an inch sign, say, protects nothing
    return line[:end]


def unquoted(text: str) -> str:
    """Return a text without the quotes around it, if it has a pair of them."""
    text = text.strip()
    if len(text) < 2 or text[0] != text[-1] or text[0] not in "\"'":
        return text
    quote, inner = text[0], text[1:-1]
    # Words may be in quotes of their own: then the first ends, and the last begins, at a space.
    first_ends = re.match(rf"[^{quote}]*{quote}\s", inner)
    last_begins = re.search(rf"\s{quote}[^{quote}]*$", inner)
    return text if first_ends and last_begins else inner


def split_values(text: str) -> list[str]:
    """Return the values of a list with commas; those in double quotes may contain commas."""
    commas = [*_outside_quotes(text, ",")]
    starts, ends = [0, *(comma + 1 for comma in commas)], [*commas, len(text)]
    return [unquoted(text[start:end]) for start, end in zip(starts, ends, strict=True)]


def _outside_quotes(text: str, sign: str) -> Iterator[int]:
    """Yield where a sign is outside double quotes; a quote that is never closed goes on."""
    found = re.finditer(rf'"[^"]*"?|{sign}', text)
    return (match.start() for match in found if match[0] == sign)


def locate(name: str, folders: Sequence[Path]) -> Path:
    """Return the first of the folders' files of that name, or the path in the first folder."""
    path = Path(name).expanduser()
    candidates = [path] if path.is_absolute() else [folder / path for folder in folders]
    return next((candidate for candidate in candidates if candidate.exists()), candidates[0])


@dataclass(frozen=True)
class ListedInstance:
    """A line of a list of instances."""

    name: str
    rest: str = ""
    """What follows the name."""


def listed_instances(
    path: Path, *, comments: bool = False, names_only: bool = False
) -> list[ListedInstance]:
    """Return the instances of a file.

    A name with spaces is in quotes; what follows it belongs to the instance, except for
    ``comments`` after a ``#``. With ``names_only`` a line is a name, spaces within it included.
    """
    found: dict[str, ListedInstance] = {}
    for number, line in enumerate(read_text(path).split("\n"), 1):
        text = (without_comment(line) if comments else line).strip()
        if not text or text.startswith("#"):
            continue
        name, rest = (text, "") if names_only else _split(text, Place(path, number))
        known = found.setdefault(name, ListedInstance(name, rest))
        if known.rest != rest:
            raise InputError(
                Place(path, number),
                f"{name!r} is listed with {known.rest!r} and with {rest!r}: give one of them "
                "another name, that of a link to it, for example",
            )
    if not found:
        raise InputError(Place(path), "lists no instance")
    return list(found.values())


def rest_by_name(instances: Iterable[ListedInstance], place: Place) -> dict[str, str]:
    """Return what follows the names of the instances, first those of training, then of testing.

    ``place`` is that of the list for testing, where no name may mean something else.
    """
    rests: dict[str, str] = {}
    for one in instances:
        if (known := rests.setdefault(one.name, one.rest)) != one.rest:
            raise InputError(
                place,
                f"{one.name!r} is listed with {known!r} for training and with {one.rest!r} for "
                "testing: give one of them another name",
            )
    return rests


def _split(text: str, place: Place) -> tuple[str, str]:
    quote = text[0]
    if quote not in "\"'":
        name, *rest = text.split(None, 1)
        return name, "".join(rest)
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


def files_in(folder: Path, *, nested: bool = False) -> list[str]:
    """Return the files of a folder, sorted, without hidden ones; ``nested``: its folders' too.

    The names are relative to the folder.
    """
    names = sorted(_visible_files(folder, nested=nested))
    if not names:
        raise InputError(Place(folder), "has no files that could be instances")
    return names


def _visible_files(folder: Path, *, nested: bool, way: tuple[Path, ...] = ()) -> Iterator[str]:
    """Yield the files of a folder; ``way`` are the folders above it, without links."""
    here = Path(os.path.realpath(folder))
    if any(above.is_relative_to(here) for above in way):  # a link leads back
        return
    try:
        names = [name for name in os.listdir(folder) if not name.startswith(".")]
    except OSError as error:
        if way:  # lost+found, say: nobody means that
            return
        raise InputError(Place(folder), f"cannot be read: {error.strerror}") from None
    yield from (name for name in names if os.path.isfile(folder / name))
    for name in names if nested else ():
        if os.path.isdir(folder / name):
            for inner in _visible_files(folder / name, nested=True, way=(*way, here)):
                yield os.path.join(name, inner)


def found_instances(text: str, base: Path, place: Place) -> list[str]:
    """Return the instances that a folder, a pattern or a list file stands for.

    The names are relative to ``base``, where they can be.
    """
    path = base / text
    if path.is_dir():
        return [os.path.join(text, name) for name in files_in(path)]
    if glob.has_magic(text) and not path.exists():
        found = sorted(glob.glob(text, root_dir=base, recursive=True))
        names = [name for name in found if (base / name).is_file()]
        if not names:
            raise InputError(place, f"no file matches {text!r} in {base}")
        return names
    if not path.exists():
        raise InputError(place, f"there is no file or folder {text!r} in {base}")
    return [instance.name for instance in listed_instances(path, names_only=True)]
