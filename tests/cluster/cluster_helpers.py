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
        self._processes: list[subprocess.Popen[bytes]] = []
        self.scheduler = self._launch(
            "scheduler", "--host", "127.0.0.1", "--port", "0", "--scheduler-file", str(self._file)
        )
        eventually(self._file.exists)
        self.client = Client(scheduler_file=str(self._file), timeout=5)

    @property
    def address(self) -> str:
        return str(self.client.scheduler.address)

    def add_workers(self, *threads: int) -> list[subprocess.Popen[bytes]]:
        """Start workers without nannies: killed, they stay dead. Wait until they are there."""
        count = len(self.client.nthreads()) + len(threads)
        workers = [self.launch_worker(number) for number in threads]
        self.await_workers(count)
        return workers

    def launch_worker(self, threads: int = 1) -> subprocess.Popen[bytes]:
        return self._launch(
            "worker",
            *("--scheduler-file", str(self._file), "--host", "127.0.0.1"),
            *("--nthreads", str(threads), "--no-nanny", "--local-directory", str(self._folder)),
            *("--memory-limit", "0"),
        )

    def await_workers(self, count: int) -> None:
        eventually(lambda: len(self.client.nthreads()) == count)

    def _launch(self, *arguments: str) -> subprocess.Popen[bytes]:
        with open(self._folder / "log", "ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "dask", *arguments, "--no-dashboard"],
                env={**os.environ, "PYTHONPATH": SEARCH_PATH},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        self._processes.append(process)
        return process

    def end_workers(self) -> None:
        for process in self._processes[1:]:
            process.kill()
            process.wait()
        del self._processes[1:]

    def close(self) -> None:
        self.client.close(timeout=3)
        self.end_workers()
        kill(self.scheduler)


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
