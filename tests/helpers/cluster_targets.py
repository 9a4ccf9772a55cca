"""What races in these tests. Workers import this, so it is quick to import."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def worker_pid() -> int:
    """The worker that this racer is below: it is below a watcher, and that below a supervisor."""
    pid = os.getpid()
    for _ in range(3):
        after_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2]
        pid = int(after_name.split()[1])
    return pid


def run(configuration: Mapping[str, Any]) -> tuple[int, float, float]:
    """Leave a file, kill the worker if asked to, sleep; return where and when."""
    started = time.time()
    if "file" in configuration:
        file = Path(configuration["file"])
        file.with_suffix(".new").write_text(str(os.getpid()))
        file.with_suffix(".new").rename(file)
    if configuration.get("kills"):
        os.kill(worker_pid(), signal.SIGKILL)
    time.sleep(configuration["seconds"])
    return worker_pid(), started, time.time()


class Counted:
    """Leaves a line in a file wherever it is loaded."""

    def __init__(self, file: str) -> None:
        self.file = file

    def __setstate__(self, state: dict[str, str]) -> None:
        self.__dict__.update(state)
        with open(self.file, "a") as lines:
            print(os.getpid(), file=lines)

    def __call__(self, configuration: Mapping[str, Any]) -> None:
        pass


class Unloadable:
    """Cannot be loaded anywhere."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _refuse, ()

    def __call__(self, configuration: Mapping[str, Any]) -> None:
        pass


def _refuse() -> None:
    raise ImportError("no such thing")


def sleep_as_configured(config: Any, instance: str, seed: int = 0) -> float:
    """Take a time, and have a cost, that depend on the configuration alone."""
    time.sleep(0.05 + 0.4 * config["x"])
    return float(config["x"])


def cost(config: Any, instance: str, seed: int = 0) -> float:
    """Return at once."""
    return float(abs(config["x"] - (int(instance) % 3) / 2))


def cost_by_data(config: Any, instance: str, seed: int = 0, data_to_scatter: Any = None) -> float:
    """Use data that was sent ahead."""
    return float(abs(config["x"] - data_to_scatter["best"]))


def endless(config: Any, instance: str, seed: int = 0) -> None:
    """Never come back."""
    time.sleep(600)
