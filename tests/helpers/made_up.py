"""Runs of the engine on a made-up target, with their journals: no SMAC, no processes."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from acband_configspace.core.ends import End
from acband_configspace.core.engine import Engine, Limits
from acband_configspace.core.instances import InstanceKey, Instances
from acband_configspace.core.race import Race
from acband_configspace.core.settings import Settings
from acband_configspace.runlog.journal import Journal
from acband_configspace.runlog.records import Header, RaceRecord, TrialRecord

#: A run that takes longer is stopped.
CUTOFF = 20.0
#: What a run costs then.
CUTOFF_COST = 10 * CUTOFF

Cost = Callable[[Mapping[str, Any], InstanceKey], float]


def values_of(number: int, seed: int = 0) -> dict[str, Any]:
    """Return a configuration; number 0 is the default."""
    rng = random.Random(f"{seed}-{number}")
    x = 5.0 if number == 0 else round(rng.uniform(0, 10), 4)
    if number == 0 or rng.random() < 0.5:
        return {"mode": "plain", "x": x}
    return {"mode": "fancy", "x": x, "extra": round(rng.random(), 4)}


def usual_cost(values: Mapping[str, Any], key: InstanceKey) -> float:
    """Return a cost that grows with x; it crashes beyond 9, and some instances are hard."""
    rng = random.Random(f"{key.instance}-{key.seed}")
    if values["x"] > 9:
        return math.inf
    own = random.Random(f"{values['x']}-{key.seed}").gauss(0, 0.2)
    return float((0.5 + values["x"]) * math.exp(rng.gauss(0, 0.5) + own))


def write_run(
    directory: Path,
    settings: Settings | None = None,
    *,
    racing: bool = False,
    n_trials: int = 300,
    timed: bool = False,
    seed: int = 3,
    instances: tuple[str, ...] | None = None,
    deterministic: bool = False,
    n_workers: int = 1,
    stop_after: float = math.inf,
    n_in_space: int | None = None,
    cost: Cost = usual_cost,
    header: Mapping[str, Any] | None = None,
) -> Engine:
    """Drive the engine to its end, or until so many races are over, and write the journal."""
    settings = settings or Settings()
    engine = Engine(
        settings,
        racing=racing,
        instances=Instances(instances, deterministic=deterministic, seed=seed),
        draw=lambda n, standing: n if n_in_space is None else min(n, n_in_space),
        limits=Limits(n_trials, timed),
        n_in_space=n_in_space,
        seed=seed,
    )
    journal = Journal(directory / "journal.jsonl")
    details = {
        "settings": settings,
        "racing": racing,
        "seed": seed,
        "deterministic": deterministic,
        "instances": instances,
        "n_in_space": n_in_space,
        "n_trials": n_trials,
        "default_values": values_of(0, seed),
        **(header or {}),
    }
    journal.start(Header(**details), {"made_up": True, "seed": seed})
    writer = _Writer(engine, journal, seed, cost, racing)
    rng = random.Random(seed)
    running: list[Race] = []
    while engine.n_races < stop_after:
        while len(running) < n_workers and (race := engine.ask()) is not None:
            running.append(race)
        writer.write_plans()
        running = [race for race in running if engine.needs(race)]
        if not running:
            break
        race = running.pop(rng.randrange(len(running)))
        writer.run(race)
    if engine.finished:
        journal.add_note("finished", reason=engine.finished)
    journal.close()
    return engine


class _Writer:
    """Runs races on the made-up target and records them."""

    def __init__(
        self, engine: Engine, journal: Journal, seed: int, cost: Cost, racing: bool
    ) -> None:
        self._engine = engine
        self._journal = journal
        self._seed = seed
        self._cost = cost
        self._racing = racing
        self._n_plans = 0
        self._n_trials = 0
        self._clock = 0.0

    def write_plans(self) -> None:
        for plan in self._engine.plans[self._n_plans :]:
            self._journal.add_plan(plan)
            self._n_plans += 1

    def run(self, race: Race) -> None:
        key = self._engine.key(race.instance)
        values = {number: values_of(number, self._seed) for number in race.racers}
        trials = self._trials(race, [self._cost(values[n], key) for n in race.racers])
        self._clock += max(trial.time for trial in trials)
        self._n_trials += len(trials)
        record = RaceRecord(
            race.id, race.instance, key, race.racers, trials, self._clock, self._n_trials
        )
        self._journal.add_race(record, values)
        self._engine.tell(race, record.outcome)

    def _trials(self, race: Race, costs: list[float]) -> tuple[TrialRecord, ...]:
        stop = min(costs) if self._racing and not race.to_the_end else math.inf
        limits = race.limits or (math.inf,) * len(costs)
        return tuple(
            self._trial(cost, min(stop, limit)) for cost, limit in zip(costs, limits, strict=True)
        )

    def _trial(self, cost: float, stop: float) -> TrialRecord:
        started = 1.7e9 + self._clock
        if math.isinf(cost):
            info = {"error": "too much <b>x</b>\nand more", "traceback": "Traceback …"}
            crash_cost = CUTOFF_COST if self._racing else math.inf
            return TrialRecord(End.CRASHED, crash_cost, 0.01, 0.01, started, info)
        if cost > min(stop, CUTOFF):
            if stop < CUTOFF:
                return TrialRecord(End.LOST, stop, stop, 0.9 * stop, started)
            return TrialRecord(End.CUTOFF, CUTOFF_COST, CUTOFF, CUTOFF, started)
        return TrialRecord(End.FINISHED, cost, cost, 0.9 * cost, started, {"gap": 0.5})
