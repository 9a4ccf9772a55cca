"""Measure races on a Dask cluster: throughput, what a race costs us, how many cores we can feed.

Starts a scheduler and two single-threaded workers on this machine. The share of the ideal is what
the racers' own run time is of the workers' time. Then races that end at once show how many of them
one scheduler and one parent process can feed in a second, and so how many cores.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

WORKERS = 2
#: The aims: share of the ideal throughput, and milliseconds of the parent's time for each race.
SHARE_AIM, DISPATCH_AIM = 0.85, 10.0
#: Mean race times, in seconds, for which the number of cores is stated.
RACE_SECONDS = (0.1, 1.0, 10.0, 60.0)


@dataclass(frozen=True)
class Throughput:
    """What it took to run some races on the cluster."""

    n_races: int
    seconds: float
    """Elapsed, from the first race sent to the last report."""
    share: float
    """The share of the workers' time that racers ran."""
    parent: float
    """Milliseconds of CPU time that a race costs the parent, all its threads together."""
    scheduler: float
    """What it costs the scheduler."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of this command."""
    parser.add_argument(
        "--races", type=int, default=100, help="races that take a while (default: 100)"
    )
    parser.add_argument(
        "--seconds", type=float, default=0.2, help="how long these take (default: 0.2)"
    )
    parser.add_argument("--instant", type=int, default=500, help="instant races (default: 500)")


def run(arguments: argparse.Namespace) -> int:
    """Print the figures; the exit code is 1 if one of them misses its aim."""
    import distributed

    connect: Any = distributed.Client  # some versions of it have types, some have none
    path = os.pathsep.join(entry for entry in sys.path if entry)
    environment = {**os.environ, "PYTHONPATH": path}
    with (
        tempfile.TemporaryDirectory() as folder,
        # In processes of its own, so that only our share counts as the parent's.
        contextlib.closing(Cluster(Path(folder), environment, threads=1)) as cluster,
        connect(scheduler_file=str(cluster.file)) as client,
    ):
        client.wait_for_workers(WORKERS)
        scheduler = psutil.Process(cluster.scheduler.pid)
        timed = _measure(client, scheduler, arguments.races, arguments.seconds)
        instant = _measure(client, scheduler, arguments.instant, 0.0)
    share_ok = timed.share >= SHARE_AIM
    dispatch_ok = timed.parent <= DISPATCH_AIM
    print(f"{timed.n_races} races of {arguments.seconds} s on {WORKERS} workers of one thread:")
    print(
        f"  share of the ideal throughput  {timed.share:8.1%}     "
        f"aim ≥ {SHARE_AIM:.0%}   {_verdict(share_ok)}"
    )
    print(
        f"  the parent's CPU time a race   {timed.parent:8.1f} ms  "
        f"aim ≤ {DISPATCH_AIM:.0f} ms {_verdict(dispatch_ok)}"
    )
    _print_capacity(instant)
    return 0 if share_ok and dispatch_ok else 1


class Cluster:
    """A Dask scheduler and two workers on this machine, each a process that can be killed."""

    def __init__(self, folder: Path, environment: Mapping[str, str], *, threads: int) -> None:
        self._folder = folder
        self._environment = environment
        self._threads = threads
        self.file = folder / f"scheduler-{time.monotonic_ns()}.json"
        self.workers: list[subprocess.Popen[bytes]] = []
        self.scheduler = self._launch("scheduler", "--port", "0")
        try:
            self._await_scheduler()
            self.replace_workers()
        except BaseException:
            self.close()  # nobody else knows of it yet
            raise

    def _await_scheduler(self) -> None:
        deadline = time.monotonic() + 60.0
        while not self.file.exists():
            if time.monotonic() > deadline:
                raise RuntimeError("the Dask cluster does not start")
            time.sleep(0.05)

    def replace_workers(self) -> None:
        """Start workers in the place of those that were killed."""
        self.workers = [worker for worker in self.workers if worker.poll() is None]
        while len(self.workers) < WORKERS:
            options = ("--nthreads", str(self._threads), "--no-nanny", "--memory-limit", "0")
            home = ("--local-directory", str(self._folder))
            self.workers.append(self._launch("worker", *home, *options))

    def _launch(self, *arguments: str) -> subprocess.Popen[bytes]:
        common = ("--host", "127.0.0.1", "--scheduler-file", str(self.file), "--no-dashboard")
        with open(self._folder / "dask.log", "ab") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "dask", *arguments, *common],
                env=self._environment,
                cwd=self._folder,
                stdout=log,
                stderr=log,
            )

    @property
    def pids(self) -> set[int]:
        """Its own processes, without what the workers have started."""
        return {process.pid for process in (self.scheduler, *self.workers)}

    def close(self) -> None:
        """Kill all of it."""
        for process in (*self.workers, self.scheduler):
            process.kill()
            process.wait()


def _verdict(met: bool) -> str:
    return "ok" if met else "missed"


def _print_capacity(instant: Throughput) -> None:
    """State how many cores can be kept busy.

    Here the workers share the machine, so what was fed is a lower bound. With workers elsewhere
    the scheduler or the parent, whichever a race costs more, is what is saturated first.
    """
    fed = instant.n_races / instant.seconds
    feedable = 1000 / max(instant.parent, instant.scheduler)
    print(f"{instant.n_races} instant races:")
    print(f"  CPU time a race                {instant.parent:8.1f} ms  the parent's")
    print(f"  CPU time a race                {instant.scheduler:8.1f} ms  the scheduler's")
    print(f"  fed, all on this machine       {fed:8.0f} races/s")
    print(f"  feedable to workers elsewhere  {feedable:8.0f} races/s, by the CPU time above")
    print("One scheduler saturates, with k = 2 racers on a core each:")
    for seconds in RACE_SECONDS:
        print(
            f"  {2 * feedable * seconds:8,.0f} cores if a race takes {seconds:g} s on average "
            f"(as fed here: {2 * fed * seconds:,.0f})"
        )


def _measure(client: Any, scheduler: psutil.Process, n_races: int, seconds: float) -> Throughput:
    from acband_configspace.running import PythonTarget, RaceSpec
    from acband_configspace.running.dask.cluster import RaceCluster

    races = RaceCluster(client, PythonTarget(_sleep), racers=1)
    try:
        _race(races, [RaceSpec(("warm", n), ({"seconds": 0.1},)) for n in range(3 * WORKERS)])
        specs = [RaceSpec(number, ({"seconds": seconds},)) for number in range(n_races)]
        before = time.perf_counter(), time.process_time(), _cpu_seconds(scheduler)
        racing_seconds = _race(races, specs)
        after = time.perf_counter(), time.process_time(), _cpu_seconds(scheduler)
        elapsed, parent, at_scheduler = (b - a for a, b in zip(before, after, strict=True))
        share = racing_seconds / (WORKERS * elapsed)
        costs = (1000 * seconds / n_races for seconds in (parent, at_scheduler))
        return Throughput(n_races, elapsed, share, *costs)
    finally:
        races.close()


def _cpu_seconds(process: psutil.Process) -> float:
    return float(sum(process.cpu_times()[:2]))


def _race(races: Any, specs: list[Any]) -> float:
    """Run races as the runner does, a few of them ahead of the workers; return their seconds."""
    total = 0.0
    for spec in specs:
        while races.unfinished >= 2 * max(1, races.slots):
            total += _seconds_of(races.wait())
        races.start(spec)
    while races.unfinished:
        total += _seconds_of(races.wait())
    return total


def _seconds_of(reports: list[Any]) -> float:
    return float(sum(max(racer.time for racer in report.racers) for report in reports))


def _sleep(configuration: Mapping[str, Any]) -> None:
    time.sleep(configuration["seconds"])
