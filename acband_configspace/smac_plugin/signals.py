"""Ends a run in order when the system asks for it."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def exit_on_sigterm() -> Iterator[None]:
    """Let SIGTERM raise SystemExit here, as Ctrl-C raises KeyboardInterrupt.

    Batch systems end jobs with it; by default Python would die without stopping its racers or
    saving. A handler of the user's own is left alone, and so are threads, which cannot have one.
    """
    mine = threading.current_thread() is threading.main_thread()
    if not mine or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return

    def leave(number: int, frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
