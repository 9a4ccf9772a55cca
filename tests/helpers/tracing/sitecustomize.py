"""Writes down which modules of the package are entered, and when: Python runs it as it starts.

Every process whose PYTHONPATH names this folder has a file of its own in the folder TRACE names. A
line is a moment, by the clock that all processes share, and a module that was entered or left.
"""

from __future__ import annotations

import functools
import os
import sys
import threading
import time
from types import CodeType, FrameType

FOLDER = os.environ["TRACE"]
PACKAGE = f"{os.sep}acband_configspace{os.sep}"
_files: dict[int, int] = {}


@functools.cache
def module_of(code: CodeType) -> str | None:
    """Return the module that code is of, None if it is none of ours."""
    _, found, name = code.co_filename.rpartition(PACKAGE)
    return name.removesuffix(".py").replace(os.sep, ".") if found else None


def trace(frame: FrameType, event: str, argument: object) -> None:
    """Take note of a function that is entered or left."""
    module = module_of(frame.f_code) if event in ("call", "return") else None
    if module is None:
        return
    pid = os.getpid()  # another one in a fork, which must not write to its parent's file
    if pid not in _files:
        path = os.path.join(FOLDER, f"{pid}.trace")
        _files[pid] = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(_files[pid], f"{time.monotonic()} {module}\n".encode())


threading.setprofile(trace)
sys.setprofile(trace)
