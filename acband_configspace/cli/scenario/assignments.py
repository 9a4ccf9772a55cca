"""``key = value`` in files and on the command line: keys in any spelling, values of all kinds."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from acband_configspace.cli.errors import COMMAND_LINE, InputError, Place, suggestion
from acband_configspace.cli.files import locate, meaningful_lines, unquoted
from acband_configspace.cli.results import ANY_CODE

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_UNITS = {"s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_UNITS |= {"sec": 1.0, "second": 1.0, "seconds": 1.0, "m": 60.0, "minute": 60.0, "minutes": 60.0}
_UNITS |= {"hour": 3600.0, "hours": 3600.0, "day": 86400.0, "days": 86400.0}
_TRUE, _FALSE = ("true", "1", "yes", "t", "on"), ("false", "0", "no", "f", "off")


@dataclass(frozen=True)
class Assignment:
    """What a key was given, and where."""

    key: str
    value: Any
    """A text, or in TOML what it stands for."""
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


class Assignments:
    """The assignments of a file by their canonical keys, overridden by the command line.

    Parameters
    ----------
    path : Path
        The scenario file.
    folders : tuple of Path
        Where files that it names are looked for.
    assignments : iterable of Assignment
        What the file says; unknown keys are an error with the nearest known one.
    overrides : Mapping[str, str]
        What the command line says; what is not a key of the format may be an option.
    aliases : Mapping[str, str]
        From plain keys to canonical ones.
    unused : Collection[str]
        Plain keys of settings that have no meaning here; they become notes.
    """

    def __init__(
        self,
        path: Path,
        folders: tuple[Path, ...],
        assignments: Iterable[Assignment],
        overrides: Mapping[str, str],
        *,
        aliases: Mapping[str, str],
        unused: Collection[str],
    ) -> None:
        self.path = path
        self.folders = folders
        self._found: dict[str, Assignment] = {}
        self._options: dict[str, Any] = {}
        self.notes: list[str] = []
        for given in assignments:
            plain = plain_key(given.key)
            if plain in aliases:
                self._found[aliases[plain]] = given
            elif plain in unused:
                self.notes.append(f"{given.place}: {given.key} has no meaning here")
            else:
                hint = suggestion(given.key, {*aliases.values(), *unused})
                raise InputError(given.place, f"unknown key {given.key!r}{hint}")
        for key, value in overrides.items():
            if (plain := plain_key(key)) in aliases:
                self._found[aliases[plain]] = Assignment(f"--{key}", value, COMMAND_LINE)
            else:
                self._options[key.replace("-", "_")] = parsed_value(value)

    def common(self) -> dict[str, Any]:
        """Return what a scenario has in each of these formats."""
        return {
            "path": self.path,
            "success_codes": ANY_CODE,
            "seed": self.whole("seed") or 0,
            "options": self._options,
            "option_places": dict.fromkeys(self._options, COMMAND_LINE),
            "notes": tuple(self.notes),
        }

    def get(self, key: str) -> Assignment | None:
        """Return what a key was given, None if nothing, R's NULL, or an empty text."""
        assignment = self._found.get(key)
        if assignment is None or assignment.value in ("NULL", "NA"):
            return None
        text = unquoted(assignment.value)
        return replace(assignment, value=text) if text else None

    def is_given(self, key: str) -> bool:
        """Return whether a key was given anything, be it an empty text; R's NULL is nothing."""
        return key in self._found and self._found[key].value not in ("NULL", "NA")

    def place(self, key: str) -> Place:
        """Return where a key is, or should be."""
        found = self.get(key)
        return Place(self.path) if found is None else found.place

    def required(self, key: str) -> Assignment:
        """Return what a key was given that must be there."""
        found = self.get(key)
        if found is None:
            raise InputError(Place(self.path), f"the key {key!r} is missing")
        return found

    def text(self, key: str, default: str = "") -> str:
        """Return a text."""
        found = self.get(key)
        return default if found is None else found.value

    def number(self, key: str) -> float | None:
        """Return a number; None for 0, infinity and ParamILS's "max": there is no limit."""
        found = self.get(key)
        if found is None or found.value.lower() in ("inf", "infinity", "max", "none", "null"):
            return None
        return number(found.key, found.value.rstrip("L"), found.place, at_least=0) or None

    def whole(self, key: str) -> int | None:
        """Return a whole number, None for 0."""
        value = self.number(key)
        return None if value is None else whole(key, value, self.place(key), at_least=1)

    def truth(self, key: str, *, default: bool) -> bool:
        """Return a truth value."""
        found = self.get(key)
        return default if found is None else truth(found.key, found.value, found.place)

    def choice(self, key: str, known: tuple[str, ...]) -> str:
        """Return one of the known words, the first by default."""
        found = self.get(key)
        return known[0] if found is None else choice(key, found.value, known, found.place)

    def existing(self, key: str, name: str, *, is_folder: bool = False) -> Path:
        """Return the path of the file, or the folder, that a key names; it must be there."""
        path = locate(name, self.folders)
        if not (path.is_dir() if is_folder else path.is_file()):
            what = "folder" if is_folder else "file"
            raise InputError(self.place(key), f"{key}: there is no {what} {name}")
        return path

    def file(self, key: str) -> Path | None:
        """Return the path of a file, None if none is named."""
        name = self.text(key)
        return self.existing(key, name) if name else None

    def folder(self, key: str, default: Path) -> Path:
        """Return the path of a folder."""
        name = self.text(key)
        return self.existing(key, name, is_folder=True).resolve() if name else default


def number(name: str, value: object, place: Place, *, at_least: float = -math.inf) -> float:
    """Return a number; infinity is none."""
    try:
        result = math.nan if isinstance(value, bool) else float(str(value))
    except ValueError:
        result = math.nan
    if not math.isfinite(result):
        raise InputError(place, f"{name} must be a number but got {value!r}")
    if result < at_least:
        raise InputError(place, f"{name} must be at least {at_least:g} but got {result:g}")
    return result


def whole(name: str, value: object, place: Place, *, at_least: int) -> int:
    """Return a whole number."""
    result = number(name, value, place, at_least=at_least)
    if not result.is_integer():
        raise InputError(place, f"{name} must be a whole number but got {value!r}")
    return int(result)


def truth(name: str, value: object, place: Place) -> bool:
    """Return a truth value, in any of the usual words."""
    word = str(value).strip().lower()
    if word not in (*_TRUE, *_FALSE):
        raise InputError(place, f"{name} must be true or false but got {value!r}")
    return word in _TRUE


def seconds(name: str, value: object, place: Place) -> float:
    """Return a time in seconds: a number of them, or a text such as "30 min" or "2h"."""
    match = re.fullmatch(r"\s*([\d.eE+-]+)\s*([A-Za-z]*)\s*", str(value))
    if match is None or match[2].lower() not in ("", *_UNITS):
        raise InputError(
            place, f"{name} must be a time, such as 90, '30 min' or '2h', but got {value!r}"
        )
    result = number(name, match[1], place) * _UNITS.get(match[2].lower(), 1.0)
    if result <= 0:
        raise InputError(place, f"{name} must be positive but got {value!r}")
    return result


def choice(name: str, value: object, known: tuple[str, ...], place: Place) -> str:
    """Return one of the known words."""
    word = str(value).strip().lower()
    if word not in known:
        raise InputError(place, f"{name} must be one of {', '.join(known)} but got {value!r}")
    return word


def parsed_value(text: str) -> Any:
    """Return what a text is as a TOML value, or the text itself: 4, 0.5, true, none, "wins"."""
    if text.lower() in ("none", "null"):
        return None
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text
