"""Options for the facade, as texts of the command line."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from acband_configspace.cli.errors import COMMAND_LINE

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


def parsed_value(text: str) -> Any:
    """Return what a text is as a TOML value, or the text itself: 4, 0.5, true, none, "wins"."""
    if text.lower() in ("none", "null"):
        return None
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def parsed_options(options: Mapping[str, str]) -> dict[str, Any]:
    """Return the options with their values, and that they are the command line's."""
    parsed = {key.replace("-", "_"): parsed_value(text) for key, text in options.items()}
    return {"options": parsed, "option_places": dict.fromkeys(parsed, COMMAND_LINE)}
