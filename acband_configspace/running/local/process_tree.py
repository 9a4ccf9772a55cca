"""All processes below this one: start them, find them, measure, signal and reap them.

psutil does the measuring. Finding is by hand on Linux, because psutil reads every process of the
machine to find children (milliseconds), while the kernel lists them (microseconds).
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

import psutil

T = TypeVar("T")

_PR_SET_PDEATHSIG = 1
_PR_SET_NAME = 15
_PR_SET_CHILD_SUBREAPER = 36

#: The environment variable by which the processes of a race track are found in an emergency.
MARK = "ACBAND_TRACK"
#: By what name a guard is found among the arguments of a shell.
GUARD = "acband-guard"
#: Seconds to wait for a process, or for the descriptors it needs, to become available.
START_PATIENCE = 10.0
#: Seconds that a process may take to be gone after SIGKILL. One with more rights than ours, or
#: that hangs in the kernel, is never gone.
KILL_PATIENCE = 5.0
#: Seconds between two rounds of SIGKILL, for trees that still fork while they are killed.
KILL_INTERVAL = 0.01

#: Not every kernel lists a process's children.
LISTS_CHILDREN = os.path.exists(f"/proc/self/task/{os.getpid()}/children")

#: Elsewhere a process whose parent has ended can no longer be found, unless by its group.
ADOPTS_ORPHANS = sys.platform == "linux"

# Loaded once: a freshly forked racer should not search for the C library again.
_prctl = ctypes.CDLL(None, use_errno=True).prctl if ADOPTS_ORPHANS else None


def patiently(start: Callable[[], T]) -> T:
    """Start a process, with some patience if there are too many of them at the moment."""
    deadline = time.monotonic() + START_PATIENCE
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError):  # no more processes, descriptors or memory
            return start()
        time.sleep(0.05)
    return start()


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


def rename(name: str) -> None:
    """Give this process the name that ``ps`` and ``killall`` know it by, of up to 15 bytes."""
    if _prctl is not None:
        _prctl(_PR_SET_NAME, name.encode(), 0, 0, 0)


#: Waits until the pipe that it reads from is closed, then kills whatever carries the mark.
_GUARD = """
trap '' HUP INT TERM
read -r _
tries=0
while [ $tries -lt 100 ]; do
    found=$(grep -lsaF -- "$1" /proc/[0-9]*/environ)
    [ -n "$found" ] || exit 0
    for file in $found; do
        file=${file#/proc/}
        kill -9 "${file%/environ}"
    done
    tries=$((tries + 1))
    sleep 0.05
done
"""


def start_guard() -> subprocess.Popen[bytes] | None:
    """Start a shell that kills all that carries our mark as soon as this process has ended.

    For the case that all who watch over racers are killed at the same moment: the kernel kills the
    racers then, but not what they have started. Nobody else may hold its standard input. Races
    need no guard, so if it cannot be started, that is said, and None returned.
    """
    mark = os.environ.get(MARK)
    if not ADOPTS_ORPHANS or mark is None:
        return None
    try:
        return subprocess.Popen(
            ["/bin/sh", "-c", _GUARD, GUARD, f"{MARK}={mark}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            # All but the mark, by which it would find itself; others look for what is left by
            # marks of their own.
            env={name: value for name, value in os.environ.items() if name != MARK},
            cwd="/",
            start_new_session=True,
        )
    except OSError as error:  # no more processes, or no /bin/sh
        print(
            f"acband: the guard could not be started, so races run without it: {error}",
            file=sys.stderr,
        )
        return None


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
    # It has just ended, or is somebody else's: /proc may hide what a setuid program does.
    with contextlib.suppress(FileNotFoundError, ProcessLookupError, PermissionError):
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


def is_stopped(pid: int) -> bool:
    """Return whether a process is suspended, so that it cannot do anything."""
    with contextlib.suppress(psutil.Error):
        status: str = psutil.Process(pid).status()
        return status in (psutil.STATUS_STOPPED, psutil.STATUS_TRACING_STOP)
    return False


def kill_marked(mark: str) -> list[int]:
    """Kill all processes with this mark in their environment; return those that are left."""
    deadline = time.monotonic() + KILL_PATIENCE
    while marked := [process for process in psutil.process_iter() if _has_mark(process, mark)]:
        if time.monotonic() > deadline:
            break
        for process in marked:
            with contextlib.suppress(psutil.Error):
                process.kill()
        time.sleep(KILL_INTERVAL)
    return [process.pid for process in marked]


def _has_mark(process: psutil.Process, mark: str) -> bool:
    try:
        marked: bool = process.environ().get(MARK) == mark
        return marked and bool(process.status() != psutil.STATUS_ZOMBIE)
    except (psutil.Error, OSError):  # gone, or not ours
        return False


@dataclass(frozen=True)
class _Usage:
    """The CPU seconds of a living process and of the children it has reaped; its threads."""

    seconds: float
    parent: int
    n_threads: int


class TreeClock:
    """The CPU time used below this process from now on.

    The kernel counts a process that has ended where it is reaped, so all that is left to do is to
    add up. Only the children of a process that ignores SIGCHLD are reaped by nobody: what they
    had used at the last look is all that can be known.
    """

    def __init__(self) -> None:
        self._before = _reaped_cpu_time()
        self._seen: dict[int, _Usage] = {}
        self._ignoring: set[int] = set()
        self._reaped: set[int] = set()
        self._unaccounted = 0.0
        self.n_threads: int | None = None
        """How many threads there were at the last look, the most cores that they can use."""

    def note_reaped(self, pids: Iterable[int]) -> None:
        """Take note of processes that were reaped here, which the kernel has counted."""
        self._reaped.update(pids)

    def look(self) -> float:
        """Return the CPU seconds so far, of the living as well."""
        seen: dict[int, _Usage] = {}
        for pid in descendants(os.getpid()):
            with contextlib.suppress(psutil.Error):
                seen[pid] = _usage(psutil.Process(pid))
        self.n_threads = sum(usage.n_threads for usage in seen.values())
        for pid, usage in self._seen.items():
            if pid not in seen and usage.parent in self._ignoring and pid not in self._reaped:
                self._unaccounted += usage.seconds
        self._seen = seen
        self._ignoring = {pid for pid in seen if _ignores_children(pid)}
        self._reaped.clear()
        return self.total() + sum(usage.seconds for usage in seen.values())

    def total(self) -> float:
        """Return the CPU seconds of all that has ended."""
        return _reaped_cpu_time() - self._before + self._unaccounted


def _usage(process: psutil.Process) -> _Usage:
    with process.oneshot():
        times = process.cpu_times()
        own = _clock_of(process.pid)
        if own is None:
            own = times.user + times.system
        of_children = getattr(times, "children_user", 0.0) + getattr(times, "children_system", 0.0)
        return _Usage(own + of_children, process.ppid(), process.num_threads())


def _clock_of(pid: int) -> float | None:
    """Return the CPU seconds of a process, as of the scheduler's last tick; None if unknown.

    Python has no ``clock_getcpuclockid``; this is what that returns on Linux.
    """
    if sys.platform != "linux":
        return None
    try:
        return time.clock_gettime(~pid << 3 | _CPU_CLOCK_OF_SCHEDULER)
    except OSError:  # it has just ended, or this kernel keeps such clocks to itself
        return None


_CPU_CLOCK_OF_SCHEDULER = 2
#: Whether there are such clocks here. What psutil reads moves in steps of 10 ms.
HAS_CPU_CLOCKS = _clock_of(os.getpid()) is not None


def _ignores_children(pid: int) -> bool:
    with contextlib.suppress(OSError), open(f"/proc/{pid}/status", "rb", buffering=0) as status:
        ignored = status.readall().partition(b"SigIgn:")[2].split(maxsplit=1)
        return bool(ignored) and bool(int(ignored[0], 16) >> (signal.SIGCHLD - 1) & 1)
    return False


def _reaped_cpu_time() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def used_memory_mb(pids: Iterable[int], *, limit_mb: float, without: int | None = None) -> float:
    """Return the megabytes that processes use together, exact only near the limit.

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
            total += _memory(process, proportional=proportional)
    return total / 2**20


def _memory(process: psutil.Process, *, proportional: bool) -> int:
    """Return the bytes that a process uses; its resident size if no more may be known.

    Only Linux has proportional sizes, and it keeps those of some processes to itself: of a program
    that may be executed but not read, for one.
    """
    if proportional and sys.platform == "linux":
        with contextlib.suppress(psutil.AccessDenied):
            memory = process.memory_full_info()
            return int(memory.pss if hasattr(memory, "pss") else memory.rss)
    return int(process.memory_info().rss)
