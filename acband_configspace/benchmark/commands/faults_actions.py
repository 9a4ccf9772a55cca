"""What is done to a run: which processes are killed, and how its files are damaged."""

from __future__ import annotations

import contextlib
import os
import random
from pathlib import Path

import psutil

from acband_configspace.benchmark.commands.cluster import Cluster
from acband_configspace.running.local import process_tree

#: The variable by which the processes of a disturbed run are found, wherever they have hidden.
MARK = "ACBAND_FAULTS_RUN"
#: The variable by which targets know where to write down that they were called.
CALLS = "ACBAND_FAULTS_CALLS"
#: The names of those on a Dask worker that may wait for the next race.
_IDLE = ("acband-superv.", "acband-watcher")


class Processes:
    """The processes of a run, by what they are."""

    def __init__(self, user: int, cluster: Cluster | None) -> None:
        self._user = user
        self._cluster = cluster

    def supervisors(self) -> list[psutil.Process]:
        """Return the supervisors, here or on the workers."""
        above = [self._user] if self._cluster is None else [w.pid for w in self._cluster.workers]
        return [c for pid in above for c in _children(pid) if _name(c) == "acband-superv."]

    def watchers(self) -> list[psutil.Process]:
        """Return the watchers."""
        below = [child for process in self.supervisors() for child in _children(process.pid)]
        return [child for child in below if _name(child) == "acband-watcher"]

    def racers(self) -> list[psutil.Process]:
        """Return what runs the target."""
        return [child for watcher in self.watchers() for child in _children(watcher.pid)]

    def victims(self, what: str) -> list[psutil.Process]:
        """Return whom a fault kills, all of them at the same moment; empty if there is nobody."""
        user = [psutil.Process(self._user)] if psutil.pid_exists(self._user) else []
        if what == "user process":
            return user
        if what == "all that watch":
            supervisors, watchers = self.supervisors(), self.watchers()
            return [*user, *supervisors, *watchers] if watchers else []
        if what == "Dask scheduler" and self._cluster is not None:
            return [psutil.Process(self._cluster.scheduler.pid)]
        if what == "Dask worker" and self._cluster is not None:
            found = [psutil.Process(worker.pid) for worker in self._cluster.workers]
        else:
            find = {
                "supervisor": self.supervisors,
                "watcher": self.watchers,
                "racer": self.racers,
            }
            found = find[what]()
        return random.sample(found, 1) if found else []


def _children(pid: int) -> list[psutil.Process]:
    found = []
    for child in process_tree.children(pid):
        with contextlib.suppress(psutil.Error):
            found.append(psutil.Process(child))
    return found


def _name(process: psutil.Process) -> str:
    with contextlib.suppress(psutil.Error):
        return str(process.name())
    return ""


def left_behind(mark: str, cluster: Cluster | None) -> list[str]:
    """Return what carries the mark, but for a cluster and what waits there for the next race."""
    own = set() if cluster is None else cluster.pids
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            marked = process.environ().get(MARK) == mark
            alive = process.status() != psutil.STATUS_ZOMBIE
            waits = cluster is not None and _waits(process)
            if marked and alive and process.pid not in own and not waits:
                found.append(f"{process.pid} {' '.join(process.cmdline())[:80]}")
    return found


def _waits(process: psutil.Process) -> bool:
    """Return whether a process may wait on a Dask worker; a guard only below its supervisor."""
    if process.name() in _IDLE:
        return True
    above = process.parent()
    is_guard = process_tree.GUARD in process.cmdline()
    return is_guard and above is not None and _name(above) == _IDLE[0]


# --- damage -----------------------------------------------------------------------------------


def cut_off(journal: Path) -> None:
    """Cut off the end of a journal, as if it had not been written yet."""
    size = journal.stat().st_size
    first_line = journal.read_bytes().index(b"\n") + 1
    os.truncate(journal, max(first_line, size - random.randint(1, 300)))


def change_byte(journal: Path) -> int:
    """Change a byte of a journal; return the number of its line."""
    content = bytearray(journal.read_bytes())
    first_line = content.index(b"\n") + 1  # without it nobody knows what run it is
    place = random.randrange(first_line, content.rindex(b"\n"))
    number = bytes(content[:place]).count(b"\n") + 1
    content[place] ^= random.randint(1, 255)
    journal.write_bytes(content)
    return number


def tear_smacs_files(directory: Path) -> None:
    """Damage what SMAC keeps beside the journal: cut it off, or fill it with something else."""
    for name in ("optimization.json", "runhistory.json", "intensifier.json", "scenario.json"):
        path = directory / name
        if path.exists():
            content = path.read_bytes()
            wrong = [content[: random.randint(0, len(content))], b"\0" * 50, b"[1, 2]", b'{"a": 1}']
            path.write_bytes(random.choice(wrong))
