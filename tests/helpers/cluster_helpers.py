"""Real Dask schedulers and workers on this machine, each a process that can be killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from dask.distributed import Client

#: So that the workers find the package and the tests' targets where this process does.
SEARCH_PATH = os.pathsep.join(entry for entry in sys.path if entry)


class Cluster:
    """A scheduler, its workers, and a client as a user would have it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file = folder / f"scheduler-{time.monotonic_ns()}.json"
        self._workers: dict[subprocess.Popen[bytes], int] = {}
        """With their numbers of threads."""
        self.scheduler = self._launch(
            "scheduler", "--host", "127.0.0.1", "--port", "0", "--scheduler-file", str(self._file)
        )
        eventually(self._file.exists)
        self.client = Client(scheduler_file=str(self._file), timeout=5)

    @property
    def address(self) -> str:
        return str(self.client.scheduler.address)

    def have_workers(self, *threads: int) -> list[subprocess.Popen[bytes]]:
        """Have exactly these workers, of earlier tests where possible: they take long to start."""
        kept = []
        for number in threads:
            idle = [w for w in self.living_workers if self._workers[w] == number and w not in kept]
            kept.append(idle[0] if idle else self.launch_worker(number))
        for worker in [worker for worker in self._workers if worker not in kept]:
            self.end(worker)
        self.await_workers(len(threads))
        return kept

    def launch_worker(self, threads: int = 1, *, finds: str = "") -> subprocess.Popen[bytes]:
        """Start a worker without a nanny: killed, it stays dead. Modules it ``finds`` go first."""
        worker = self._launch(
            "worker",
            *("--scheduler-file", str(self._file), "--host", "127.0.0.1"),
            *("--nthreads", str(threads), "--no-nanny", "--local-directory", str(self._folder)),
            *("--memory-limit", "0"),
            finds=finds,
        )
        self._workers[worker] = threads
        return worker

    def await_workers(self, count: int) -> None:
        """Wait until so many workers take tasks."""
        eventually(lambda: len(self.client.sync(self.client.scheduler.ncores_running)) == count)

    def _launch(self, *arguments: str, finds: str = "") -> subprocess.Popen[bytes]:
        with open(self._folder / "log", "ab") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "dask", *arguments, "--no-dashboard"],
                env={**os.environ, "PYTHONPATH": f"{finds}{os.pathsep}{SEARCH_PATH}"},
                cwd=self._folder,  # which comes before the search path
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    def end(self, worker: subprocess.Popen[bytes]) -> None:
        del self._workers[worker]
        kill(worker)

    @property
    def living_workers(self) -> list[subprocess.Popen[bytes]]:
        """The workers that were not killed meanwhile."""
        for worker in [worker for worker in self._workers if worker.poll() is not None]:
            self.end(worker)
        return list(self._workers)

    def close(self) -> None:
        self.client.close(timeout=3)
        for process in [*self._workers, self.scheduler]:
            kill(process)


def kill(process: subprocess.Popen[bytes]) -> None:
    """Kill -9."""
    process.send_signal(signal.SIGKILL)
    process.wait()


def eventually(condition: Callable[[], object], seconds: float = 30.0) -> None:
    """Wait until a condition holds; fail if it takes too long."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds} seconds: {condition}"
        time.sleep(0.02)
