"""Show how busy several workers are with the races of the default search, and what they find.

Simulated on tables of run times. All numbers of workers get the same CPU time: twice as many have
half of the elapsed time. As in real runs, a worker runs one racer at a time, and a race begins with
any free worker. Starting takes no time here, so a share below 100 % says that workers wait. The gap
is that of what is found.
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
from dataclasses import dataclass, field

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
    parser.add_argument(
        "--processes", type=int, default=os.cpu_count() or 1,
        help="how many processes to use; by default one for each core",
    )  # fmt: skip


def run(arguments: argparse.Namespace) -> int:
    """Print the share of time in which workers are busy, and the gap, for each table."""
    for name in ("limit", "seeds", "processes"):
        whole_number(name, getattr(arguments, name), at_least=1)
    counts = [whole_number("workers", number, at_least=1) for number in arguments.workers]
    tables = arguments.table or [*SHIPPED, *MADE_UP]
    jobs = [
        Job(table, number, arguments.limit, seed)
        for table, number, seed in itertools.product(tables, counts, range(arguments.seeds))
    ]
    measured = in_parallel(measure, jobs, workers=arguments.processes, title="workers")
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


@dataclass(eq=False)
class _UnderWay:
    """A race that is not over."""

    race: Race
    outcome: Outcome
    times: Sequence[float]
    """What each racer takes if nothing stops it ..."""
    limits: Sequence[float]
    """... and how long it may take."""
    n_left: int
    """How many racers have not ended."""
    best: float = math.inf
    """The limit of all others, once one has finished."""
    since: dict[int, float] = field(default_factory=dict)
    """When each that runs has started."""

    def end_of(self, index: int) -> float:
        """Return when a racer that runs will end, as far as is known now."""
        seconds = min(self.times[index], self.limits[index], self.best)
        return self.since[index] + max(0.0, seconds)

    def finishes(self, index: int, cutoff: float) -> bool:
        """Return whether a racer comes to its end, and is the best so far."""
        time = self.times[index]
        return time < cutoff and time <= self.limits[index] and time < self.best


class Shift:
    """Workers that run what an engine asks for, each one racer at a time."""

    def __init__(self, play: Play, n_workers: int) -> None:
        self._play = play
        self._n_free = n_workers
        self._waiting: deque[tuple[_UnderWay, int]] = deque()
        """The racers that no worker has yet: the race, and the place in it."""
        self._ends: list[tuple[float, int, _UnderWay, int]] = []
        """When racers end; a heap, with a number that keeps what is due at the same time apart."""
        self._numbers = itertools.count()
        self._running: list[_UnderWay] = []

    def until(self, end: float) -> float:
        """Work until then; return the seconds of all workers in which they were busy."""
        now = busy = 0.0
        while True:
            while self._n_free and (self._waiting or self._ask()):
                self._start(now)
            if not self._ends or self._ends[0][0] > end:
                starts = (since for one in self._running for since in one.since.values())
                return busy + sum(end - start for start in starts)
            now, _, under_way, index = heapq.heappop(self._ends)
            if index in under_way.since:  # or it was stopped before
                busy += now - under_way.since[index]
                self._end(under_way, index, now)

    def _ask(self) -> bool:
        """Ask for a race; say whether there is one."""
        play = self._play
        race = play.engine.ask()
        if race is None:
            return False
        times, limits = play.times(race), play.limits(race)
        under_way = _UnderWay(race, play.outcome(race), times, limits, len(times))
        self._running.append(under_way)
        self._waiting.extend((under_way, index) for index in range(len(times)))
        return True

    def _start(self, now: float) -> None:
        under_way, index = self._waiting.popleft()
        self._n_free -= 1
        under_way.since[index] = now
        self._expect(under_way, index, now)

    def _expect(self, under_way: _UnderWay, index: int, now: float) -> None:
        end = max(now, under_way.end_of(index))
        heapq.heappush(self._ends, (end, next(self._numbers), under_way, index))

    def _end(self, under_way: _UnderWay, index: int, now: float) -> None:
        self._n_free += 1
        under_way.n_left -= 1
        del under_way.since[index]
        if not under_way.race.to_the_end and under_way.finishes(index, self._play.cutoff):
            under_way.best = under_way.times[index]
            for other in under_way.since:
                self._expect(under_way, other, now)
        if not under_way.n_left:
            self._running.remove(under_way)
            self._play.engine.tell(under_way.race, under_way.outcome)
