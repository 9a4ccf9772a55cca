"""Measure what a race costs beyond the run time of its winner.

Races sleeping scripts and sleeping Python functions that use numpy, 2, 4 and 8 at a time, stops
busy ones at a limit of CPU time, and runs many short races in a row to see whether anything is left
behind.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from acband_configspace.running import CommandTarget, PythonTarget, RaceSpec, RaceTrack
from acband_configspace.running.targets import Target

RACER_COUNTS = (2, 4, 8)
WINNER_SECONDS = 0.1
LOSER_SECONDS = 60.0
#: The aims, in milliseconds, and for CPU in percent of a core.
SCRIPT_AIM, FUNCTION_AIM, STOP_AIM, CPU_AIM, OVERRUN_AIM = 10.0, 25.0, 20.0, 5.0, 10.0
#: The limit, in CPU seconds, at which busy racers are stopped.
BUSY_LIMIT = 0.05

_SCRIPT = """#!/bin/sh
sleep "${1#--seconds=}"
"""


@dataclass(frozen=True)
class Figure:
    """One measured number beside its aim."""

    name: str
    value: float
    unit: str
    aim: float

    @property
    def is_missed(self) -> bool:
        """Whether the number exceeds the aim."""
        return self.value > self.aim

    def __str__(self) -> str:
        verdict = "missed" if self.is_missed else "ok"
        return f"{self.name:<61}{self.value:>7.1f} {self.unit:<3} aim {self.aim:>5.1f}  {verdict}"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of this command."""
    parser.add_argument("--races", type=int, default=25, help="races per figure (default: 25)")
    parser.add_argument(
        "--in-a-row", type=int, default=1000, help="short races in a row (default: 1000)"
    )


def run(arguments: argparse.Namespace) -> int:
    """Print the figures; the exit code is 1 if one of them misses its aim."""
    missed = 0
    for figure in _figures(arguments):
        print(figure, flush=True)
        missed += figure.is_missed
    return int(missed > 0)


def _figures(arguments: argparse.Namespace) -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder, "sleeping script")
        script.write_text(_SCRIPT)
        script.chmod(0o755)
        kinds: list[tuple[str, Target, float]] = [
            ("scripts", CommandTarget(str(script)), SCRIPT_AIM),
            ("Python functions", PythonTarget(_sleep), FUNCTION_AIM),
        ]
        for kind, target, aim in kinds:
            for racers in RACER_COUNTS:
                yield from _measure(kind, target, aim, racers, arguments.races)
    yield _measure_overrun(arguments.races)
    yield from _measure_watching()
    yield from _measure_leaks(arguments.in_a_row)


def _sleep(configuration: Mapping[str, Any]) -> float:
    time.sleep(configuration["seconds"])
    return float(np.sqrt(configuration["seconds"]))


def _measure(kind: str, target: Target, aim: float, racers: int, races: int) -> list[Figure]:
    beyond: list[float] = []
    stopping: list[float] = []
    with RaceTrack(target, slots=racers) as track:
        for number in range(races):
            seconds = [LOSER_SECONDS] * racers
            seconds[number % racers] = WINNER_SECONDS
            started = time.perf_counter()
            track.start(RaceSpec(number, tuple({"seconds": value} for value in seconds)))
            [report] = track.wait()
            elapsed = time.perf_counter() - started
            if report.winner != number % racers:
                raise RuntimeError(f"the wrong racer won: {report}")
            beyond.append(elapsed - report.racers[report.winner].time)
            ends = [racer.started + racer.time for racer in report.racers]
            stopping.append(max(ends) - ends[report.winner])  # of the last loser's process tree
    name = f"{racers} {kind}"
    return [
        Figure(f"{name}: race beyond the winner's time, median", _ms(beyond), "ms", aim),
        Figure(f"{name}: all losers gone after the finish, median", _ms(stopping), "ms", STOP_AIM),
    ]


def _be_busy(configuration: Mapping[str, Any]) -> None:
    while True:
        pass


def _measure_overrun(races: int) -> Figure:
    """Measure how much CPU time a racer gets beyond its limit, with ``clock="cpu"``."""
    beyond: list[float] = []
    with RaceTrack(PythonTarget(_be_busy), slots=1, cutoff=60, clock="cpu") as track:
        for number in range(races):
            track.start(RaceSpec(number, ({},), limits=(BUSY_LIMIT,)))
            [report] = track.wait()
            beyond.append(report.racers[0].cpu_time - BUSY_LIMIT)
    name = f"a busy function stopped after {BUSY_LIMIT:g} CPU s: CPU beyond, median"
    return Figure(name, _ms(beyond), "ms", OVERRUN_AIM)


def _ms(seconds: list[float]) -> float:
    return 1000 * statistics.median(seconds)


def _measure_watching() -> list[Figure]:
    """Measure what it takes to watch 8 racers that run, with all limits set."""
    racers = max(RACER_COUNTS)
    seconds = 2.0
    target = PythonTarget(_sleep)
    with RaceTrack(target, slots=racers, cutoff=60, memory_limit_mb=1000) as track:
        track.start(RaceSpec("long", tuple({"seconds": 2 * seconds} for _ in range(racers))))
        track.wait(0.5)
        user = psutil.Process()
        [supervisor] = user.children()
        processes = [supervisor, *supervisor.children()]
        before = _cpu_time([user]), _cpu_time(processes)
        track.wait(seconds)
        after = _cpu_time([user]), _cpu_time(processes)
    name = f"{racers} racers running: CPU of"
    return [
        Figure(f"{name} the user's process", 100 * (after[0] - before[0]) / seconds, "%", CPU_AIM),
        Figure(
            f"{name} supervisor and watchers", 100 * (after[1] - before[1]) / seconds, "%", CPU_AIM
        ),
    ]


def _cpu_time(processes: list[psutil.Process]) -> float:
    return sum(sum(process.cpu_times()[:2]) for process in processes)


def _measure_leaks(races: int) -> list[Figure]:
    """Run races of functions that do next to nothing, and compare what is there afterwards."""
    with RaceTrack(PythonTarget(lambda configuration: None), slots=2) as track:
        _run_in_a_row(track, races // 10)  # by now everything is allocated that stays
        before, started = _resources(), time.perf_counter()
        _run_in_a_row(track, races)
        seconds, after = time.perf_counter() - started, _resources()
    name = f"{races} races in a row"
    return [
        Figure(f"{name}: each, both racers returning at once", 1000 * seconds / races, "ms", 25.0),
        Figure(f"{name}: processes left", after[0] - before[0], "", 0),
        Figure(f"{name}: file descriptors left", after[1] - before[1], "", 0),
        Figure(f"{name}: memory grown, all processes", after[2] - before[2], "MB", 2.0),
    ]


def _run_in_a_row(track: RaceTrack, races: int) -> None:
    for number in range(races):
        track.start(RaceSpec(number, ({}, {})))
        track.wait()


def _resources() -> tuple[int, int, float]:
    """Return the number of processes, their open files, and the megabytes only they use."""
    user = psutil.Process()
    processes = [user, *user.children(recursive=True)]
    return (
        len(processes),
        sum(process.num_fds() for process in processes),
        sum(process.memory_full_info().uss for process in processes) / 2**20,
    )
