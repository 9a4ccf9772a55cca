"""The vectorised driver: AC-Band on a runtime table, a whole round at a time."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from acband_configspace.acband import acband
from acband_configspace.benchmark.tables import RuntimeTable
from acband_configspace.elimination import Contest, best_of
from acband_configspace.schedule import Schedule
from acband_configspace.statistics import Flags, Floats, Statistic, get_statistic

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class SimulationResult:
    """What a simulated run found and what it would have cost."""

    incumbent: int
    """The row of the winning configuration."""
    cpu_time: float
    """Seconds of all racers together: a race costs its number of racers × its winner's time."""
    wall_time: float
    """Seconds if one race runs after the other: a race takes its winner's time."""
    n_configs: int
    """New configurations drawn (θ_0 comes on top, as in the paper's counts)."""
    n_instances: int
    """Instances used, which is the number of races."""
    epoch_winners: tuple[int, ...]
    """The row that won each epoch."""
    configurations: tuple[int, ...] = field(repr=False)
    """The rows drawn, θ_0 first: configuration i of the core is row configurations[i]."""
    instances: tuple[int, ...] = field(repr=False)
    """The columns drawn: instance i of the core is column instances[i]."""


def simulate(
    table: RuntimeTable,
    *,
    k: int = 2,
    alpha: float = 0.05,
    delta: float = 0.05,
    n_candidates: int | None = None,
    budget: int | None = None,
    statistic: str | Statistic = "wins",
    early_stopping: float | None = None,
    playoff: int = 0,
    seed: int = 0,
) -> SimulationResult:
    """Run AC-Band on a table, configurations and instances drawn without replacement.

    ``budget=None`` uses as many races as the table has instances. With the statistic "wins" a
    race ends for all when the first racer finishes, or at the cutoff; with the others every racer
    runs to its end, an unsolved instance counts as the cutoff, and all times are paid for.
    """
    if early_stopping is not None:
        raise ValueError(f"early_stopping must be None so far but got {early_stopping!r}")
    if playoff != 0:
        raise ValueError(f"playoff must be 0 so far but got {playoff!r}")
    budget = table.n_instances if budget is None else budget
    schedule = Schedule.plan(budget, k=k, alpha=alpha, delta=delta, n_candidates=n_candidates)
    if schedule.n_races > table.n_instances:
        raise ValueError(
            f"budget must be at most the table's {table.n_instances} instances but got {budget}"
        )
    if schedule.n_configs + 1 > table.n_configs:
        raise ValueError(
            f"the schedule needs {schedule.n_configs + 1} configurations (θ_0 included) but the "
            f"table has {table.n_configs}: raise alpha or delta, or give n_candidates"
        )
    # Streams of their own, so that the groups are the same whatever the size of the table.
    draw_rows, draw_columns, draw_groups = (np.random.default_rng([seed, i]) for i in range(3))
    rows = draw_rows.permutation(table.n_configs)[: schedule.n_configs + 1]
    columns = draw_columns.permutation(table.n_instances)[: schedule.n_races]
    races = _TableRaces(table, get_statistic(statistic), rows, columns)
    winner = races.play(schedule, draw_groups)
    return SimulationResult(
        incumbent=int(rows[winner]),
        cpu_time=races.cpu_time,
        wall_time=races.wall_time,
        n_configs=schedule.n_configs,
        n_instances=schedule.n_races,
        epoch_winners=tuple(int(rows[number]) for number in races.epoch_winners),
        configurations=tuple(rows.tolist()),
        instances=tuple(columns.tolist()),
    )


class _TableRaces:
    """Looks up the rounds of one run and adds up what they cost."""

    def __init__(
        self, table: RuntimeTable, statistic: Statistic, rows: Numbers, columns: Numbers
    ) -> None:
        self._table = table
        self._statistic = statistic
        self._rows = rows
        self._columns = columns
        self.cpu_time = 0.0
        self.wall_time = 0.0
        self.epoch_winners: list[int] = []

    def play(self, schedule: Schedule, rng: np.random.Generator) -> int:
        contests = acband(schedule, rng)
        try:
            contest = next(contests)
            while True:
                survivors = self._race(contest)
                if contest.decides_epoch:
                    self.epoch_winners.append(int(survivors.item()))
                contest = contests.send(survivors)
        except StopIteration as finished:
            return int(finished.value)

    def _race(self, contest: Contest) -> Numbers:
        rows = self._rows[contest.groups]
        columns = self._columns[contest.instances()]
        # (groups, races, racers), gathered: the table itself is never copied.
        times: Floats = self._table.runtimes[rows[:, None, :], columns[:, :, None]]
        unsolved = times >= self._table.cutoff
        times = np.minimum(times, self._table.cutoff)
        self._pay(times)
        censored: Flags = np.zeros_like(unsolved) if self._statistic.needs_all_costs else unsolved
        scores = self._statistic.scores(times, censored)
        return best_of(contest.groups, scores, contest.plan.survivors)

    def _pay(self, times: Floats) -> None:
        if self._statistic.needs_all_costs:
            self.cpu_time += float(times.sum(dtype=float))
            self.wall_time += float(times.max(axis=-1).sum(dtype=float))
        else:
            first = float(times.min(axis=-1).sum(dtype=float))
            self.cpu_time += first * times.shape[-1]
            self.wall_time += first
