"""How the run of a configuration on an instance ended: one word for it, in every room."""

from __future__ import annotations

import enum


class End(str, enum.Enum):
    """How a run ended."""

    FINISHED = "finished"
    """It came to its own end, in time, and reported no failure. Only a finisher can win."""
    LOST = "lost"
    """It was stopped because another was faster, or because it reached a limit of its own."""
    CUTOFF = "cutoff"
    """It reached the cutoff, or said itself that it ran out of time."""
    MEMORY = "memory"
    """It reached the memory limit, or said itself that it ran out of memory."""
    CRASHED = "crashed"
    """It raised, exited with a failure, was killed, could not start, or said so."""
    CANCELLED = "cancelled"
    """The whole race was stopped."""
