"""Messages between two processes: pickles with their length in front, over a socket.

Written by hand because ``multiprocessing.connection`` cannot send without waiting: a supervisor
that waits for a busy user's process to read its reports would stop losers late.
"""

from __future__ import annotations

import contextlib
import fcntl
import pickle
import socket
import struct
from typing import Any

_LENGTH = struct.Struct("!Q")


class Channel:
    """One end of a connection.

    Sending to a process that is gone does nothing: the loss shows where messages are received.
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
