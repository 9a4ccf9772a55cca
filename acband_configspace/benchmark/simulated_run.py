"""A whole run of the facade from a table: the plugin's own engine, told what the table holds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from acband_configspace.benchmark.tables import RuntimeTable
from acband_configspace.core.checks import real_number, whole_number
from acband_configspace.core.ends import End
from acband_configspace.core.engine import Engine, Limits
from acband_configspace.core.instances import Instances
from acband_configspace.core.race import Outcome, Race
from acband_configspace.core.settings import Settings, settings_from


@dataclass(frozen=True)
class SimulatedRun:
    """What a run would have returned, and what it would have cost."""

    incumbent: int
    """The row of the configuration that leads in the end; θ_0 if nothing ever finished."""
    cpu_time: float
    """Seconds of all runs together."""
    n_trials: int
    """Runs started."""
    n_configs: int
    """Configurations that have raced."""
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
    chosen = settings_from(preset, **settings)
    racing = cpu_limit is not None
    names = [str(column) for column in range(table.n_instances)]
    instances = Instances(names, deterministic=True, seed=seed)
    engine = Engine(
        chosen,
        racing=racing,
        instances=instances,
        draw=lambda n, known: min(n, table.n_configs),
        limits=Limits(most_trials, racing),
        n_in_space=table.n_configs,
        seed=seed,
    )
    rows = np.random.default_rng([seed, 0]).permutation(table.n_configs).tolist()
    return Play(table, engine, rows, racing, par, n_workers).to_the_end(cpu_limit or math.inf)


class Play:
    """Tells an engine what a table holds, and adds up what it costs."""

    def __init__(
        self,
        table: RuntimeTable,
        engine: Engine,
        rows: Sequence[int],
        racing: bool,
        par: float,
        n_workers: int | None,
    ) -> None:
        self._table = table
        self._engine = engine
        self._rows = rows
        self._racing = racing
        self._par = par
        self._n_workers = n_workers
        self._cpu_time = 0.0
        self._n_trials = 0
        self._n_configs = 0

    def to_the_end(self, cpu_limit: float) -> SimulatedRun:
        """Run races until the engine has no more, or the CPU time is used up."""
        engine = self._engine
        trajectory: list[tuple[float, int]] = []
        while (race := engine.ask()) is not None:
            outcome, seconds = self._run(race)
            if self._cpu_time + seconds > cpu_limit:
                self._cpu_time = cpu_limit
                break
            self._cpu_time += seconds
            self._n_trials += len(race.racers)
            self._n_configs = max(self._n_configs, 1 + max(race.racers))
            engine.tell(race, outcome)
            leader = self._rows[engine.leader or 0]
            if not trajectory or trajectory[-1][1] != leader:
                spent = self._cpu_time if self._racing else self._n_trials
                trajectory.append((spent, leader))
        return SimulatedRun(
            incumbent=self._rows[engine.leader or 0],
            cpu_time=self._cpu_time,
            n_trials=self._n_trials,
            n_configs=self._n_configs,
            trajectory=tuple(trajectory),
            configurations=tuple(self._rows[: self._n_configs]),
        )

    def _run(self, race: Race) -> tuple[Outcome, float]:
        column = int(self._engine.key(race.instance).instance or 0)
        runtimes = self._table.runtimes
        times = [float(runtimes[self._rows[racer], column]) for racer in race.racers]
        cutoff = self._table.cutoff
        if not self._racing:
            seconds = [min(time, cutoff) for time in times]
            return Outcome(seconds), sum(seconds)
        limits = [cutoff] * len(times)
        if race.limits is not None:
            limits = [min(cutoff, limit) for limit in race.limits]
        size = len(times) if self._n_workers is None or race.to_the_end else self._n_workers
        best, spent = math.inf, 0.0
        for start in range(0, len(times), size):
            together = list(zip(times, limits, strict=True))[start : start + size]
            if not race.to_the_end:  # all stop when the first has finished
                finished = (t for t, limit in together if t < cutoff and t <= limit)
                best = min(best, min(finished, default=math.inf))
            spent += sum(max(0.0, min(t, limit, best)) for t, limit in together)
        return self._outcome(times, limits, best), spent

    def _outcome(self, times: list[float], limits: list[float], best: float) -> Outcome:
        cutoff = self._table.cutoff
        costs, ends = [], []
        for time, limit in zip(times, limits, strict=True):
            if time < cutoff and time <= limit and time <= best:
                costs.append(time)
                ends.append(End.FINISHED)
            elif limit >= cutoff and best == math.inf:
                costs.append(self._par * cutoff)
                ends.append(End.CUTOFF)
            else:
                costs.append(max(0.0, min(limit, best)))
                ends.append(End.LOST)
        return Outcome(costs, ends)
