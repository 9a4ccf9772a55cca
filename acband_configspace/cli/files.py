"""Users' text files: any line ends, UTF-8 with or without a byte order mark, comments, quotes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from acband_configspace.cli.errors import InputError, Place


@dataclass(frozen=True)
class Line:
    """A line that says something, without its comment."""

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
        raise InputError(Place.of(path), f"cannot be read: {error.strerror}") from None
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError(Place.of(path, line), "is not UTF-8; save the file as UTF-8") from None
    return text.replace("\r\n", "\n").replace("\r", "\n")


def meaningful_lines(text: str, source: Path | str) -> Iterator[Line]:
    """Yield the lines that are neither empty nor comments, stripped."""
    for number, raw in enumerate(text.split("\n"), 1):
        line = without_comment(raw).strip()
        if line:
            yield Line(line, Place.of(source, number))


def without_comment(line: str) -> str:
    """Return a line up to the first ``#`` that stands outside double quotes."""
    if "#" not in line:
        return line
    if '"' not in line:
        return line[: line.index("#")]
    quoted = False
    for index, character in enumerate(line):
        if character == '"':
            quoted = not quoted
        elif character == "#" and not quoted:
            return line[:index]
    # A lone quote, an inch sign in a comment, say, protects nothing.
    return line[: line.index("#")] if quoted else line


def unquoted(text: str) -> str:
    """Return a text without the quotes around it, if it has a pair of them."""
    text = text.strip()
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "\"'":
        return text[1:-1]
    return text


def split_values(text: str) -> list[str]:
    """Return the values of a list with commas; those in double quotes may contain commas."""
    if '"' not in text:
        return [unquoted(part) for part in text.split(",")]
    parts, start, quoted = [], 0, False
    for index, character in enumerate(text):
        if character == '"':
            quoted = not quoted
        elif character == "," and not quoted:
            parts.append(text[start:index])
            start = index + 1
    parts.append(text[start:])
    return [unquoted(part) for part in parts]


def locate(name: str, folders: Sequence[Path]) -> Path:
    """Return the first of the folders' files of that name, or the path in the first folder."""
    path = Path(name).expanduser()
    candidates = [path] if path.is_absolute() else [folder / path for folder in folders]
    return next((candidate for candidate in candidates if candidate.exists()), candidates[0])
