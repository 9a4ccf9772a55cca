"""What the processes of a race track tell each other, and the channel that carries it.

::

    user's process  --Setup, StartRace, CancelRace-->  supervisor
                    <--Loaded, RaceReport--
    supervisor      --RunRacer, LowerLimit, StopRacer-->  watcher
                    <--Finished, RacerReport--
    racer           --its token, the moment, then RacerEnd-->  watcher

On a Dask cluster ``TrackSettings``, ``StartRace`` and ``RaceReport`` travel between the
user's process and the workers. What functions returned stays pickled until it is there.
"""

from __future__ import annotations

import contextlib
import fcntl
import pickle
import selectors
import socket
import struct
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

from acband_configspace.core.ends import End
from acband_configspace.running.race import TrackLimits

#: What stands before each message on a channel: the length of its pickle.
_LENGTH = struct.Struct("!Q")
#: When a function returned, by the system-wide monotonic clock.
ENDED = struct.Struct("d")
#: A returned value whose pickle has more bytes is cut: every race's report is kept.
LARGEST_VALUE = 10_000
#: So many characters of a repr are kept...
LONGEST_TEXT = 1000
#: ... and the parts of a large tuple or dictionary that has no more than these.
MOST_PARTS = 20


@dataclass(frozen=True)
class CommandJob:
    """Replace the racer's process by this command."""

    arguments: tuple[str, ...]
    success_codes: frozenset[int] = frozenset({0})
    """The exit codes of a run that came to its end."""
    directory: str | None = None
    """Where it runs; where the supervisor is by default."""


@dataclass(frozen=True)
class CallJob:
    """Call the target function with these pickled arguments."""

    arguments: bytes


@dataclass(frozen=True)
class BrokenJob:
    """A racer whose command could not even be put together."""

    error: str


Job = CommandJob | CallJob | BrokenJob


@dataclass(frozen=True)
class TrackSettings:
    """What a supervisor loads before it can start racers, pickled, and what it holds them to."""

    function: bytes | None
    """The function the racers call."""
    read_result: bytes | None
    """The function that reads the output of commands, if it is not SMAC's convention."""
    shared: bytes
    """The object that the arguments of calls refer to."""
    limits: TrackLimits


@dataclass(frozen=True)
class Setup:
    """The first message: everything the supervisor must know."""

    arguments: list[str]
    """The user's ``sys.argv``, which a target may look at."""
    settings: TrackSettings
    slots: int
    user_process: int


@dataclass(frozen=True)
class Loaded:
    """The target is loaded and racers can start, or could not be loaded."""

    traceback: str | None


@dataclass(frozen=True)
class StartRace:
    """Queue a race; the number, or on a cluster the name, tells it from all others."""

    key: Hashable
    jobs: tuple[Job, ...]
    limits: tuple[float, ...]
    stop_losers: bool


@dataclass(frozen=True)
class CancelRace:
    """Stop a race, or forget it if it has not begun."""

    key: Hashable


@dataclass(frozen=True)
class RunRacer:
    """Start a racer, which has lost if it takes longer than the limit."""

    job: Job
    limit: float
    room: float = 0.0
    """Seconds more than the cutoff: what is around a target that tells its own time."""


@dataclass(frozen=True)
class LowerLimit:
    """Another racer of the race has finished in this time."""

    limit: float


@dataclass(frozen=True)
class StopRacer:
    """The race is cancelled."""


@dataclass(frozen=True)
class Finished:
    """The racer has finished in this time; its report follows once its tree is gone."""

    time: float


@dataclass(frozen=True)
class RacerEnd:
    """What a racer says of its end: a function that is over, or a command that did not start."""

    ended: float
    """By the system-wide monotonic clock: no time between the processes is lost."""
    status: End
    error: str | None = None
    returned: PickledValue | None = None


@dataclass(frozen=True)
class PickledValue:
    """A returned value, on its way to the user's process through processes that need not know it.

    The values of a function's module may not be importable, or may not be picklable at all.
    """

    pickled: bytes | None
    text: str

    @classmethod
    def of(cls, value: object) -> PickledValue:
        """Pickle a value, shortened if it is large, or describe it if that is impossible."""
        try:
            short, pickled = _shortened(value, LARGEST_VALUE)
            repr(short)  # whoever gets the value may want to show it
        except Exception:  # __reduce__ and friends may raise anything
            return cls(None, description(value))
        return cls(pickled, f"a {type(value).__name__} that cannot be loaded here")

    def load(self) -> Any:
        """Return the value, or its description."""
        if self.pickled is None:
            return self.text
        try:
            return pickle.loads(self.pickled)
        except Exception:  # likewise __setstate__
            return self.text


def _shortened(value: object, most_bytes: int) -> tuple[object, bytes]:
    """Return a value and its pickle; of a large one the small parts, and text for the others.

    A cost is often returned together with all that is known of the run: the cost must survive.
    """
    pickled = pickle.dumps(value)
    if len(pickled) <= most_bytes:
        return value, pickled
    short: object = description(value)
    if isinstance(value, (tuple, dict)) and len(value) <= MOST_PARTS:
        share = most_bytes // len(value)
        if isinstance(value, dict):
            short = {name: _shortened(part, share)[0] for name, part in value.items()}
        else:
            short = tuple(_shortened(part, share)[0] for part in value)
    return short, pickle.dumps(short)


def both_ends(text: str, most: int) -> str:
    """Return a text; of one with more characters than that, about as many of its two ends."""
    if len(text) <= most:
        return text
    return f"{text[: most // 2]}\n[...]\n{text[-(most // 2) :]}"


def description(value: object) -> str:
    """Return the beginning of an object's repr, whatever that raises."""
    try:
        return repr(value)[:LONGEST_TEXT]
    except Exception:
        return object.__repr__(value)


class Channel:
    """One end of a connection: pickles with their length in front, over a socket.

    Written by hand because ``multiprocessing.connection`` cannot send without waiting: a supervisor
    that waits for a busy user's process to read its reports would stop losers late. Sending to a
    process that is gone does nothing: the loss shows where messages are received.
    """

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._incoming = bytearray()
        self._outgoing = bytearray()
        self._ended = False

    def fileno(self) -> int:
        """Return the file descriptor, so that a selector can wait for messages."""
        return self._socket.fileno()

    def send(self, message: object) -> None:
        """Send a message; wait while the other end is too busy to take it."""
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self._socket.sendall(_framed(message))

    def post(self, message: object) -> None:
        """Send a message without waiting; ``flush`` sends the rest of it later."""
        self._outgoing += _framed(message)
        self.flush()

    def flush(self) -> None:
        """Send as much of the posted messages as the other end takes at once."""
        with contextlib.suppress(BlockingIOError, BrokenPipeError, ConnectionResetError):
            while self._outgoing:
                sent = self._socket.send(self._outgoing, socket.MSG_DONTWAIT)
                del self._outgoing[:sent]

    @property
    def has_unsent(self) -> bool:
        """Whether posted messages wait for a ``flush``."""
        return bool(self._outgoing)

    def wait(self, timeout: float | None) -> None:
        """Wait until something has arrived, or the other end is closed; at most so many seconds."""
        with selectors.DefaultSelector() as selector:
            selector.register(self, selectors.EVENT_READ)
            # epoll refuses more than 24 days.
            selector.select(timeout if timeout is None else min(timeout, 86_400.0))

    def receive(self) -> list[Any]:
        """Return the messages that have arrived, without waiting.

        Raises
        ------
        EOFError
            If the other end is closed and all its messages have been returned.
        """
        try:
            while not self._ended:
                data = self._socket.recv(1 << 16, socket.MSG_DONTWAIT)
                self._incoming += data
                self._ended = not data
        except BlockingIOError:
            pass
        except ConnectionResetError:
            self._ended = True
        messages = self._complete_messages()
        if self._ended and not messages:
            raise EOFError("the other end of the channel is closed")
        return messages

    def _complete_messages(self) -> list[Any]:
        messages = []
        while len(self._incoming) >= _LENGTH.size:
            end = _LENGTH.size + _LENGTH.unpack_from(self._incoming)[0]
            if len(self._incoming) < end:
                break
            messages.append(pickle.loads(self._incoming[_LENGTH.size : end]))
            del self._incoming[:end]
        return messages

    def end_sending(self) -> None:
        """Tell the other end that nothing more will come; it can still answer."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        """Close this end."""
        self._socket.close()


def channel_pair() -> tuple[Channel, Channel]:
    """Return the two ends of a new connection."""
    one, other = (_away_from_streams(end) for end in socket.socketpair())
    return Channel(one), Channel(other)


def _away_from_streams(end: socket.socket) -> socket.socket:
    """Return a socket that nobody takes for a stream.

    Where the standard streams are closed, as by a daemon, their numbers are given out again.
    """
    if end.fileno() > 2:
        return end
    with end:
        return socket.socket(fileno=fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 3))


def _framed(message: object) -> bytes:
    data = pickle.dumps(message)
    return _LENGTH.pack(len(data)) + data
