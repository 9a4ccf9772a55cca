"""AC-Band on a runtime table.

:func:`simulate` is the paper's, vectorised, a whole round at a time; :func:`simulate_run` is what
the facade would do within a limit: the plugin's own engine, told what the table holds.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from acband_configspace.benchmark.tables import RuntimeTable
from acband_configspace.core.acband import Round, Rounds, Verdict, acband, judge, judge_playoff
from acband_configspace.core.checks import real_number, whole_number
from acband_configspace.core.ends import End
from acband_configspace.core.engine import Engine, Limits
from acband_configspace.core.instances import Instances
from acband_configspace.core.race import Outcome, Race
from acband_configspace.core.schedule import Schedule, Supply
from acband_configspace.core.settings import Settings, settings_from
from acband_configspace.core.statistics import Flags, Floats, Statistic, get_statistic, wins
from acband_configspace.core.stopping import checked_early_stopping, decided

Numbers = npt.NDArray[np.int64]


def drawn_order(table: RuntimeTable, seed: int) -> tuple[Numbers, Numbers]:
    """Return rows and columns in random order; all methods draw the same from the same seed."""
    # Streams of their own, so that all else is the same whatever the size of the table.
    rows = np.random.default_rng([seed, 0]).permutation(table.n_configs)
    columns = np.random.default_rng([seed, 1]).permutation(table.n_instances)
    return rows, columns


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
    """Races run, each on an instance: fewer than planned if groups were decided early."""
    n_trials: int
    """Racers started in these races."""
    n_instances_planned: int
    """Races that the schedule allowed."""
    epoch_winners: tuple[int, ...]
    """The row that won each epoch."""
    configurations: tuple[int, ...] = field(repr=False)
    """The rows drawn, θ_0 first: configuration i of the core is row configurations[i]."""
    instances: tuple[int, ...] = field(repr=False)
    """The columns drawn: instance i of the core is column instances[i], or, when instances are
    used again, instances[i % len(instances)]."""


def simulate(
    table: RuntimeTable,
    *,
    k: int = 2,
    alpha: float | None = 0.05,
    delta: float = 0.05,
    n_candidates: int | None = None,
    n0: int | None = None,
    n_epochs: int | None = None,
    budget: int | None = None,
    statistic: str | Statistic = "wins",
    early_stopping: float | None = None,
    playoff: int = 0,
    spend: str = "nothing",
    reuse: bool = False,
    seed: int = 0,
) -> SimulationResult:
    """Run AC-Band on a table, configurations and instances drawn without replacement.

    ``alpha=None`` draws as many configurations as leave each group a few races.
    ``budget=None`` uses as many races as the table has instances; a larger one needs
    ``reuse=True``, by which groups may share instances, though none sees one twice. With the
    statistic "wins" a race ends for all when the first racer finishes, or at the cutoff; with the
    others, and in a playoff, every racer runs to its end, an unsolved instance counts as the
    cutoff, and all times are paid for.
    """
    budget = table.n_instances if budget is None else budget
    judge_by = get_statistic(statistic)
    level = checked_early_stopping(early_stopping, judge_by)
    supply = Supply(
        n_instances=table.n_instances if reuse else None,
        # α is not quietly changed if it is given: the table must have room for it.
        n_available=table.n_configs - 1 if alpha is None else None,
    )
    schedule = Schedule.plan(
        budget,
        k=k,
        alpha=alpha,
        delta=delta,
        n_candidates=n_candidates,
        n0=n0,
        n_epochs=n_epochs,
        supply=supply,
        playoff=playoff,
        set_aside=level is None,
    )
    _check_size(schedule, table)
    supply = dataclasses.replace(schedule.supply, n_available=table.n_configs - 1)
    schedule = dataclasses.replace(schedule, supply=supply)
    rows, columns = drawn_order(table, seed)
    columns = columns[: table.n_instances if reuse else schedule.n_races]
    races = _TableRaces(table, judge_by, level, rows, columns)
    winner = races.play(acband(schedule, np.random.default_rng([seed, 2]), spend=spend))
    return SimulationResult(
        incumbent=int(rows[winner]),
        cpu_time=races.cpu_time,
        wall_time=races.wall_time,
        n_configs=races.n_seen - 1,
        n_instances=races.n_races,
        n_trials=races.n_trials,
        n_instances_planned=schedule.n_races,
        epoch_winners=tuple(int(rows[number]) for number in races.epoch_winners),
        configurations=tuple(rows[: races.n_seen].tolist()),
        instances=tuple(columns.tolist()),
    )


def _check_size(schedule: Schedule, table: RuntimeTable) -> None:
    if schedule.n_races > table.n_instances and schedule.supply.n_instances is None:
        raise ValueError(
            f"budget must be at most the table's {table.n_instances} instances but got "
            f"{schedule.budget}; reuse=True uses instances again"
        )
    if schedule.n_configs + 1 > table.n_configs:
        raise ValueError(
            f"the schedule needs {schedule.n_configs + 1} configurations (θ_0 included) but the "
            f"table has {table.n_configs}: raise alpha or delta, or give n_candidates"
        )


@dataclass
class _TableRaces:
    """Looks up the rounds of one run and adds up what they cost."""

    table: RuntimeTable
    statistic: Statistic
    early_stopping: float | None
    rows: Numbers
    columns: Numbers
    cpu_time: float = 0.0
    wall_time: float = 0.0
    n_races: int = 0
    n_trials: int = 0
    n_seen: int = 1
    epoch_winners: list[int] = field(default_factory=list)

    def play(self, rounds_: Rounds) -> int:
        try:
            round_ = next(rounds_)
            while True:
                verdict = self._race(round_)
                if round_.decides_epoch:
                    self.epoch_winners.append(int(verdict.survivors.item()))
                round_ = rounds_.send(verdict)
        except StopIteration as finished:
            return int(finished.value)

    def _race(self, round_: Round) -> Verdict:
        rows = self.rows[round_.groups]
        columns = self.columns[round_.instances % len(self.columns)]
        # (groups, races, racers), gathered: the table itself is never copied.
        times: Floats = self.table.runtimes[rows[:, None, :], columns[:, :, None]]
        unsolved = times >= self.table.cutoff
        times = np.minimum(times, self.table.cutoff)
        verdict = self._judge(round_, times, unsolved)
        self._pay(round_, times, verdict.n_raced)
        self.n_seen = max(self.n_seen, int(round_.groups.max()) + 1)
        return verdict

    def _judge(self, round_: Round, times: Floats, unsolved: Flags) -> Verdict:
        plan = round_.plan
        if round_.is_playoff:
            return judge_playoff(round_, times)
        if self.early_stopping is None:
            all_known = self.statistic.needs_all_costs
            censored: Flags = np.zeros_like(unsolved) if all_known else unsolved
            scores = self.statistic.scores(times, censored)
            return judge(round_, scores, np.full(plan.n_groups, plan.races_per_group))
        counts = wins(times, unsolved).cumsum(axis=1, dtype=np.int64)
        n_raced = np.arange(1, plan.races_per_group + 1)
        enough = decided(counts, n_raced, plan, self.early_stopping)
        last = enough.argmax(axis=1)  # the first time; the last race always decides
        return judge(round_, counts[np.arange(plan.n_groups), last], last + 1)

    def _pay(self, round_: Round, times: Floats, n_raced: Numbers) -> None:
        run = np.arange(times.shape[1]) < n_raced[:, None]
        if round_.is_playoff or self.statistic.needs_all_costs:
            self.cpu_time += float(times.sum(dtype=float))
            self.wall_time += float(times.max(axis=-1).sum(dtype=float))
        else:
            first = float(times.min(axis=-1).sum(dtype=float, where=run))
            self.cpu_time += first * times.shape[-1]
            self.wall_time += first
        n_races = int(n_raced.sum())
        self.n_races += n_races
        self.n_trials += n_races * round_.plan.group_size


# --- the facade's own engine ------------------------------------------------------------------


@dataclass(frozen=True)
class SimulatedRun:
    """What a run within a limit would have returned, and what it would have cost."""

    incumbent: int
    """The row of the configuration that leads in the end; θ_0 if nothing ever finished."""
    cpu_time: float
    """Seconds of all runs together."""
    n_trials: int
    """Runs of a configuration on an instance."""
    n_configs: int
    """Configurations that have been run."""
    trajectory: tuple[tuple[float, int], ...]
    """CPU seconds (with ``cpu_limit``) or trials spent, and the row that leads from then on."""
    configurations: tuple[int, ...] = field(repr=False, default=())
    """The rows in the order drawn: configuration i of the engine is row configurations[i]."""


def simulate_run(
    table: RuntimeTable,
    *,
    cpu_limit: float | None = None,
    n_trials: int | None = None,
    seed: int = 0,
    preset: str | Settings = "default",
    par: float = 10.0,
    n_workers: int | None = None,
    **settings: Any,
) -> SimulatedRun:
    """Return what the facade would return with these settings, from a table.

    With ``cpu_limit`` it is ``ACBandFacade(racing=True)`` under that ``cputime_limit``; with
    ``n_trials`` alone it is ``ACBandFacade()`` on a deterministic target whose costs the table
    holds. One race is run after the other.

    Parameters
    ----------
    table : RuntimeTable
        Rows are drawn at random, the first of them as θ_0; its columns are the instances.
    cpu_limit : float | None
        CPU seconds of all runs; a race that exceeds it is not counted.
    n_trials : int | None
        Runs that may be started.
    seed : int
        Of everything that is random.
    preset : str | Settings
        What the settings start from: see :data:`~acband_configspace.PRESETS`.
    par : float
        A run that meets the cutoff costs so many times the cutoff, as in the facade.
    n_workers : int | None
        How many racers run at a time: by default all of a race, as the paper counts.
    **settings
        Options of :class:`~acband_configspace.core.settings.Settings`.

    Examples
    --------
    >>> from acband_configspace.benchmark import synthetic_table
    >>> table = synthetic_table(200, 300, seed=1)
    >>> run = simulate_run(table, n_trials=500)
    >>> run.n_trials, table.gap_to_best(run.incumbent) < 0.5
    (500, True)
    """
    if cpu_limit is None and n_trials is None:
        raise ValueError("cpu_limit or n_trials must be given but both are None")
    if cpu_limit is not None and not real_number("cpu_limit", cpu_limit) > 0:
        raise ValueError(f"cpu_limit must be positive but got {cpu_limit!r}")
    most_trials = math.inf if n_trials is None else whole_number("n_trials", n_trials, at_least=2)
    if not 1 <= real_number("par", par) < math.inf:
        raise ValueError(f"par must be at least 1 and finite but got {par!r}")
    if n_workers is not None:
        n_workers = whole_number("n_workers", n_workers, at_least=1)
    play = _play(
        table,
        settings_from(preset, **settings),
        n_trials=most_trials,
        racing=cpu_limit is not None,
        seed=seed,
        par=par,
        n_workers=n_workers,
    )
    return play.to_the_end(cpu_limit or math.inf)


def racing_play(table: RuntimeTable, *, seed: int) -> Play:
    """Return a run of ``ACBandFacade(racing=True)`` before its first race, without a limit."""
    return _play(table, settings_from("default"), n_trials=math.inf, racing=True, seed=seed)


def _play(
    table: RuntimeTable,
    settings: Settings,
    *,
    n_trials: float,
    racing: bool,
    seed: int,
    **options: Any,
) -> Play:
    engine = Engine(
        settings,
        racing=racing,
        instances=columns_as_instances(table, seed),
        draw=lambda n, known: min(n, table.n_configs),
        limits=Limits(n_trials, racing),
        n_in_space=table.n_configs,
        seed=seed,
    )
    rows, _ = drawn_order(table, seed)
    return Play(
        engine,
        rows.tolist(),
        lambda row, column: float(table.runtimes[row, column]),
        cutoff=table.cutoff,
        racing=racing,
        **options,
    )


def columns_as_instances(table: RuntimeTable, seed: int) -> Instances:
    """Return the columns of a table as the instances of an engine, each named by its number."""
    names = [str(column) for column in range(table.n_instances)]
    return Instances(names, deterministic=True, seed=seed)


@dataclass(frozen=True)
class Play:
    """Tells an engine what runs take, and adds up what they cost."""

    engine: Engine
    rows: Sequence[int]
    """Configuration i of the engine is row rows[i]."""
    look_up: Callable[[int, int], float]
    """What the configuration of a row takes on the instance of a column."""
    cutoff: float
    racing: bool
    par: float = 10.0
    n_workers: int | None = None

    def to_the_end(self, cpu_limit: float) -> SimulatedRun:
        """Run races until the engine has no more, or the CPU time is used up."""
        engine, rows = self.engine, self.rows
        trajectory: list[tuple[float, int]] = []
        cpu_time, n_trials, n_configs = 0.0, 0, 0
        known: set[tuple[int, int]] = set()
        while (race := engine.ask()) is not None:
            outcome, seconds = self._run(race, known)
            if cpu_time + seconds > cpu_limit:
                cpu_time = cpu_limit
                break
            cpu_time += seconds
            n_trials = n_trials + len(race.racers) if self.racing else len(known)
            n_configs = max(n_configs, 1 + max(race.racers))
            engine.tell(race, outcome)
            leader = rows[engine.leader or 0]
            if not trajectory or trajectory[-1][1] != leader:
                trajectory.append((cpu_time if self.racing else n_trials, leader))
        return SimulatedRun(
            incumbent=rows[engine.leader or 0],
            cpu_time=cpu_time,
            n_trials=n_trials,
            n_configs=n_configs,
            trajectory=tuple(trajectory),
            configurations=tuple(rows[:n_configs]),
        )

    def outcome(self, race: Race) -> Outcome:
        """Return what a race brings."""
        return self._run(race, set())[0]

    def column(self, race: Race) -> int:
        """Return the column of the instance of a race."""
        return int(self.engine.key(race.instance).instance or 0)

    def times(self, race: Race) -> list[float]:
        """Return what each racer takes if nothing stops it."""
        column = self.column(race)
        return [self.look_up(self.rows[racer], column) for racer in race.racers]

    def limits(self, race: Race) -> list[float]:
        """Return how long each racer may take."""
        return [min(self.cutoff, limit) for limit in race.limits or [math.inf] * len(race.racers)]

    def _run(self, race: Race, known: set[tuple[int, int]]) -> tuple[Outcome, float]:
        """Return what a race brings, and its CPU time; as in the facade, known costs take none."""
        times = self.times(race)
        if not self.racing:
            column = self.column(race)
            costs = [min(time, self.cutoff) for time in times]
            trials = [(racer, column) for racer in race.racers]
            seconds = sum(c for c, t in zip(costs, trials, strict=True) if t not in known)
            known.update(trials)
            return Outcome(costs), seconds
        limits = self.limits(race)
        size = len(times) if self.n_workers is None or race.to_the_end else self.n_workers
        best, spent = math.inf, 0.0
        for start in range(0, len(times), size):
            together = list(zip(times, limits, strict=True))[start : start + size]
            if not race.to_the_end:  # all stop when the first has finished
                finished = (t for t, limit in together if t < self.cutoff and t <= limit)
                best = min(best, min(finished, default=math.inf))
            spent += sum(max(0.0, min(t, limit, best)) for t, limit in together)
        return self._outcome(times, limits, best), spent

    def _outcome(self, times: list[float], limits: list[float], best: float) -> Outcome:
        costs, ends = [], []
        for time, limit in zip(times, limits, strict=True):
            if time < self.cutoff and time <= limit and time <= best:
                costs.append(time)
                ends.append(End.FINISHED)
            elif limit >= self.cutoff and best == math.inf:
                costs.append(self.par * self.cutoff)
                ends.append(End.CUTOFF)
            else:
                costs.append(max(0.0, min(limit, best)))
                ends.append(End.LOST)
        return Outcome(costs, ends)
