"""What ends a run from outside: Ctrl-C and signals, and where they have to wait."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType

#: How ``exit_on_signals`` handles signals at the moment.
_handlers: dict[int, Callable[[int, FrameType | None], None]] = {}


@contextmanager
def exit_on_signals() -> Iterator[None]:
    """Let SIGTERM and SIGHUP raise SystemExit here, as Ctrl-C raises KeyboardInterrupt.

    Batch systems end jobs with the one, terminals that are closed with the other; by default Python
    would die without stopping its racers or saving. A handler of the user's own is left alone, as
    are signals that are ignored, below nohup, and threads, which cannot have handlers.
    """
    mine = threading.current_thread() is threading.main_thread()
    signals = (signal.SIGTERM, signal.SIGHUP)
    numbers = [n for n in signals if mine and signal.getsignal(n) is signal.SIG_DFL]

    def leave(number: int, frame: FrameType | None) -> None:
        if number == signal.SIGHUP:  # a shell that ends passes it on, and so does the system
            signal.signal(number, signal.SIG_IGN)
        raise SystemExit(128 + number)

    for number in numbers:
        signal.signal(number, leave)
        _handlers[number] = leave
    try:
        yield
    finally:
        for number in numbers:
            _handlers.pop(number, None)
            signal.signal(number, signal.SIG_DFL)


def _let_children_end() -> None:
    """Let these signals end a child that a target forks at once, as they do without us.

    A handler has to wait until C code returns: a solver, say, that the target wants to stop.
    """
    for number, handler in _handlers.items():
        with suppress(ValueError):  # forked by a thread
            if signal.getsignal(number) is handler:
                signal.signal(number, signal.SIG_DFL)
    _handlers.clear()


os.register_at_fork(after_in_child=_let_children_end)


@contextmanager
def interrupt_on_ctrl_c() -> Iterator[None]:
    """Let Ctrl-C raise KeyboardInterrupt here, also where dask-jobqueue has been imported.

    With that it would end Python without a word, and with exit status 0.
    """
    before = signal.getsignal(signal.SIGINT)
    mine = threading.current_thread() is threading.main_thread()
    if not mine or getattr(before, "__module__", None) != "dask_jobqueue.runner":
        yield
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def interrupts_held() -> Iterator[None]:
    """Let Ctrl-C, SIGTERM and SIGHUP wait until this is done, but not if they come twice.

    Threads cannot do so, and need not.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    held: list[int] = []
    signals = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {n: handler for n in signals if callable(handler := signal.getsignal(n))}

    def let_go() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    def hold(number: int, frame: FrameType | None) -> None:
        held.append(number)
        if len(held) > 1:  # something hangs
            let_go()
            signal.raise_signal(number)

    for number in before:
        signal.signal(number, hold)
    try:
        yield
    finally:
        let_go()
        if len(held) == 1:
            signal.raise_signal(held[0])
