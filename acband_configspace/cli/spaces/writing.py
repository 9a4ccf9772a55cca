"""What a writer of a format hands back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Written:
    """A space as the text of a file."""

    text: str
    notes: tuple[str, ...] = ()
    """What of the space the format does not keep, in words."""
    beside: dict[str, str] = field(default_factory=dict)
    """Further files that belong to it: from the ending of the name to the text."""


def refuse(problems: Sequence[str], format_name: str) -> None:
    """Raise an error that lists what a format cannot express, if there is anything."""
    if problems:
        listing = "".join(f"\n  {problem}" for problem in problems)
        raise ValueError(f"cannot be written as {format_name}:{listing}")
