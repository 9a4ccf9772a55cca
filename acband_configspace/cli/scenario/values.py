"""Values as scenario files and command lines have them: numbers, truths, times, options."""

from __future__ import annotations

import math
import re
import sys
from typing import Any

from acband_configspace.cli.errors import InputError, Place

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_UNITS = {"s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_UNITS |= {"sec": 1.0, "second": 1.0, "seconds": 1.0, "m": 60.0, "minute": 60.0, "minutes": 60.0}
_UNITS |= {"hour": 3600.0, "hours": 3600.0, "day": 86400.0, "days": 86400.0}
_TRUE, _FALSE = ("true", "1", "yes", "t", "on"), ("false", "0", "no", "f", "off")


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
