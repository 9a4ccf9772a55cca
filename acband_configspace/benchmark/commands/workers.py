"""Show how busy several workers are with the races of the default search, and what they find.

Simulated on tables of run times. All numbers of workers get the same CPU time: twice as many have
half of the elapsed time. As in real runs, a race has a worker for each of its racers, all of which
start together if there are as many workers. Starting takes no time here, so a share below 100 %
says that workers wait. The gap is that of what is found.
"""

from __future__ import annotations

import argparse
import functools
import heapq
import itertools
import math
import os
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from acband_configspace.benchmark.commands.parallel import in_parallel
from acband_configspace.benchmark.simulation import Play, racing_play
from acband_configspace.benchmark.tables import open_table
from acband_configspace.benchmark.tables.loaders import SHIPPED
from acband_configspace.benchmark.tables.sources import HELP
from acband_configspace.core.checks import whole_number
from acband_configspace.core.race import Outcome, Race

MADE_UP = ("synthetic:4000x400:seed=1", "synthetic:4000x400:spread=1.5:seed=1")


@dataclass(frozen=True)
class Job:
    """A number of workers on a table."""

    table: str
    n_workers: int
    limit: int
    """CPU time of all workers, in multiples of the median configuration's mean run."""
    seed: int


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument("--table", action="append", default=[], help=f"{HELP}; may be repeated")
    parser.add_argument(
        "--workers", nargs="+", type=int, default=[1, 2, 4, 8, 16], metavar="N",
        help="numbers of workers (default: 1 2 4 8 16)",
    )  # fmt: skip
    parser.add_argument(
        "--limit", type=int, default=1600,
        help="CPU time of all workers, × the median configuration's mean run (default: 1600)",
    )  # fmt: skip
    parser.add_argument("--seeds", type=int, default=10, help="runs of each (default: 10)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")


def run(arguments: argparse.Namespace) -> int:
    """Print the share of time in which workers are busy, and the gap, for each table."""
    for name in ("limit", "seeds", "jobs"):
        whole_number(name, getattr(arguments, name), at_least=1)
    counts = [whole_number("workers", number, at_least=1) for number in arguments.workers]
    tables = arguments.table or [*SHIPPED, *MADE_UP]
    jobs = [
        Job(table, number, arguments.limit, seed)
        for table, number, seed in itertools.product(tables, counts, range(arguments.seeds))
    ]
    measured = in_parallel(measure, jobs, workers=arguments.jobs, title="workers")
    cube = np.array(measured).reshape(len(tables), len(counts), arguments.seeds, 2).mean(axis=2)
    print(_block("busy, % of the time", tables, counts, 100 * cube[:, :, 0]))
    print(_block("gap to the best configuration", tables, counts, cube[:, :, 1], digits=3))
    return 0


def _block(
    title: str,
    tables: Sequence[str],
    counts: Sequence[int],
    values: np.ndarray[tuple[int, ...], np.dtype[np.float64]],
    *,
    digits: int = 0,
) -> str:
    lines = [f"{title + '; workers:':48}" + "".join(f"{number:9}" for number in counts)]
    for table, row in zip(tables, values, strict=True):
        lines.append(f"    {table:44}" + "".join(f"{value:9.{digits}f}" for value in row))
    return "\n".join([*lines, ""])


_open = functools.lru_cache(maxsize=2)(open_table)


def measure(job: Job) -> tuple[float, float]:
    """Return the share of time in which workers are busy, and the gap of what is found."""
    table = _open(job.table)
    seconds = job.limit * float(np.median(table.mean_runtimes())) / job.n_workers
    play = racing_play(table, seed=job.seed)
    busy = Shift(play, job.n_workers).until(seconds) / (job.n_workers * seconds)
    return busy, table.gap_to_best(play.rows[play.engine.leader or 0])


class Shift:
    """Workers that run what an engine asks for, each one racer at a time."""

    def __init__(self, play: Play, n_workers: int) -> None:
        self._play = play
        self._n_workers = self._n_free = n_workers
        self._waiting: deque[tuple[float, int]] = deque()
        """The racers that no worker has yet: what each takes, and the number of its race."""
        self._ending: list[tuple[float, int]] = []
        """When each that runs will end, and the number of its race; a heap."""
        self._begun = -1
        """The race that has begun last."""
        self._races: list[tuple[Race, Outcome]] = []
        self._n_left: list[int] = []
        """How many racers of each race have not ended."""

    def until(self, end: float) -> float:
        """Work until then; return the seconds of all workers in which they were busy."""
        now = busy = 0.0
        while True:
            while self._has_work():
                seconds, number = self._waiting.popleft()
                self._begun = number
                self._n_free -= 1
                busy += min(seconds, end - now)
                heapq.heappush(self._ending, (now + seconds, number))
            if not self._ending or self._ending[0][0] > end:
                return busy
            now, number = heapq.heappop(self._ending)
            self._n_free += 1
            self._n_left[number] -= 1
            if not self._n_left[number]:
                self._play.engine.tell(*self._races[number])

    def _has_work(self) -> bool:
        """Return whether the next racer can start now."""
        if not self._n_free:
            return False
        if not self._waiting and (race := self._play.engine.ask()) is not None:
            outcome = self._play.outcome(race)
            self._waiting.extend((self._seconds(cost), len(self._races)) for cost in outcome.costs)
            self._races.append((race, outcome))
            self._n_left.append(len(race.racers))
        # Of a race that has begun, the others follow; none other is waiting.
        has_begun = self._waiting and self._waiting[0][1] == self._begun
        fits = len(self._waiting) <= self._n_free or len(self._waiting) > self._n_workers
        return bool(self._waiting) and (has_begun or fits)

    def _seconds(self, cost: float) -> float:
        """Return what a racer takes: one that meets the cutoff costs more than that."""
        return min(cost, self._play.cutoff) if math.isfinite(cost) else self._play.cutoff
