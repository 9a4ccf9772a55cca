"""All processes below this one: find them, measure them, signal them, reap them.

psutil does the measuring. Finding is by hand on Linux, because psutil reads every process of the
machine to find children (milliseconds), while the kernel lists them (microseconds).
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
import sys
from collections.abc import Iterable

import psutil

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36

#: Not every kernel lists a process's children.
LISTS_CHILDREN = os.path.exists(f"/proc/self/task/{os.getpid()}/children")

#: Elsewhere a process whose parent has ended can no longer be found, unless by its group.
ADOPTS_ORPHANS = sys.platform == "linux"

# Loaded once: a freshly forked racer should not search for the C library again.
_prctl = ctypes.CDLL(None, use_errno=True).prctl if ADOPTS_ORPHANS else None


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent ends, so that none can get away."""
    if _prctl is not None:
        _prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def die_with_parent(parent: int) -> None:
    """Have the kernel kill this process when its parent ends, however that happens."""
    if _prctl is not None:
        _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # it ended before the call
        os._exit(1)


def descendants(pid: int) -> list[int]:
    """Return the processes below a process, parents before their children."""
    if not LISTS_CHILDREN:
        return [process.pid for process in psutil.Process(pid).children(recursive=True)]
    found = children(pid)
    for child in found:  # grows while it is walked
        found.extend(children(child))
    return found


def children(pid: int) -> list[int]:
    """Return the children of a process, whichever of its threads started them."""
    if not LISTS_CHILDREN:
        return [process.pid for process in psutil.Process(pid).children()]
    found: list[int] = []
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has just ended
        for thread in os.listdir(f"/proc/{pid}/task"):
            # Unbuffered: a third of the time, while losers wait to be stopped.
            with open(f"/proc/{pid}/task/{thread}/children", "rb", buffering=0) as listing:
                found.extend(int(child) for child in listing.readall().split())
    return found


def send_signal(pids: Iterable[int], number: signal.Signals) -> None:
    """Signal processes, some of which may be gone already."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def signal_group(group: int, number: signal.Signals) -> None:
    """Signal a process group that may be gone already."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def group_of(pid: int) -> int | None:
    """Return the process group of a process, or None if it is gone."""
    try:
        return os.getpgid(pid)
    except ProcessLookupError:
        return None


def reap() -> tuple[dict[int, int], bool]:
    """Collect the children that have ended, without waiting.

    Returns their wait statuses, and whether any child is left.
    """
    statuses: dict[int, int] = {}
    try:
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return statuses, True
            statuses[pid] = status
    except ChildProcessError:
        return statuses, False


def reaped_cpu_time() -> float:
    """Return the CPU seconds of all descendants that have been reaped so far."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def living_cpu_time(pids: Iterable[int]) -> float:
    """Return the CPU seconds of living processes and of the children they have reaped."""
    total = 0.0
    for pid in pids:
        with contextlib.suppress(psutil.Error):
            times = psutil.Process(pid).cpu_times()
            total += times.user + times.system
            total += getattr(times, "children_user", 0.0) + getattr(times, "children_system", 0.0)
    return total


def used_memory_mb(pids: Iterable[int], *, limit_mb: int, without: int | None = None) -> float:
    """Return the megabytes that processes use together, exactly only if near the limit.

    A forked process shares most of its memory with its parent. Resident sizes count shared pages
    again and again but are quick to read, so they are asked first; only if they exceed the limit
    the proportional sizes, which share out each page among its users, decide. What a process was
    born with is not its own: name the one it was forked ``without``, whose share is as large.
    """
    processes = []
    for pid in pids:
        with contextlib.suppress(psutil.Error):
            processes.append(psutil.Process(pid))
    resident = _total_memory_mb(processes, proportional=False)
    if resident <= limit_mb:
        return resident
    own = _total_memory_mb(processes, proportional=True)
    if without is not None:
        own -= _total_memory_mb([psutil.Process(without)], proportional=True)
    return own


def _total_memory_mb(processes: list[psutil.Process], *, proportional: bool) -> float:
    total = 0
    for process in processes:
        with contextlib.suppress(psutil.Error):
            memory = process.memory_full_info() if proportional else process.memory_info()
            total += memory.pss if hasattr(memory, "pss") else memory.rss
    return total / 2**20
