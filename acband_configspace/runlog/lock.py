"""A lock on a run: one process at a time, and within it one journal at a time.

By hand, with POSIX record locks. The libraries at hand (locket, filelock) use ``flock``, whose
locks belong to the open file: a forked racer inherits it, and the run would stay locked for as
long as that racer lives, though the run itself was killed.
"""

from __future__ import annotations

import fcntl
import logging
import os
import threading
from pathlib import Path
from typing import ClassVar

from acband_configspace.errors import RunInUseError

logger = logging.getLogger(__name__)

#: How long to wait for another thread that opens or closes a run; it takes far less.
GUARD_SECONDS = 5.0


class RunLock:
    """A lock file that is this object's until it is released, or gone.

    A process loses its POSIX lock as soon as it closes the file just once, however often it has
    opened it. So what this process holds is looked up before the file is opened again.
    """

    _held: ClassVar[dict[tuple[int, int], int]] = {}
    """The files (device and inode) that are locked, and by which process: a forked child has a
    copy of this table, but not the locks."""
    _guard: ClassVar[threading.Lock] = threading.Lock()

    def __init__(self, path: Path) -> None:
        self._descriptor: int | None = None
        self._pid = os.getpid()
        # A collection of garbage within may close, or open, another run in this very thread.
        if not self._guard.acquire(timeout=GUARD_SECONDS):
            raise RunInUseError(str(path.parent))
        try:
            if path.exists() and self._held.get(_file_id(os.stat(path))) == self._pid:
                raise RunInUseError(str(path.parent))
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
            try:
                _lock(descriptor, path)
            except BaseException:
                os.close(descriptor)
                raise
            self._file_id = _file_id(os.fstat(descriptor))
            self._descriptor = descriptor
            self._held[self._file_id] = self._pid
        finally:
            self._guard.release()

    def release(self) -> None:
        """Let others have it."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is None:
            return
        os.close(descriptor)  # before anybody else here may open it: closing ends all locks on it
        if self._held.get(self._file_id) == self._pid == os.getpid():
            del self._held[self._file_id]

    def __del__(self) -> None:
        self.release()


def _lock(descriptor: int, path: Path) -> None:
    try:
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):  # POSIX allows either
        raise RunInUseError(str(path.parent)) from None
    except OSError as error:  # some network file systems have no locks
        logger.warning("%s cannot be locked (%s): start this run only once.", path, error)


def _file_id(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino
