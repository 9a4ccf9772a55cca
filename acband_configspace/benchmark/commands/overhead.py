"""Measure the bookkeeping per trial of ACBandFacade beside SMAC's RandomFacade.

The target returns at once, so all the time that passes is the configurator's own: drawing, asking,
telling, journal and saving included. Memory is the growth of the process over the run. Learned
proposals, which fit a model and choose among many, are measured in a space of twenty numbers.

With ``--resume`` it measures what it takes to resume a long run, too: seconds and memory, by race.
These races are made up, so that no target is called: the engine chooses them, and the journal is
written as in a run. What resuming holds is told apart from what the run itself goes on to hold: the
run history, the configurations and the engine's memory, without which nothing can be decided.
"""

from __future__ import annotations

import argparse
import gc
import math
import multiprocessing
import tempfile
import time
import tracemalloc
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import psutil

if TYPE_CHECKING:
    from acband_configspace import ACBandFacade
    from acband_configspace.core.race import Race

AIM_MILLISECONDS = 1.0
AIM_GROWTH = 1.3
AIM_KILOBYTES = 2.0
#: The share of a run's time that learned proposals may take: of trials of at least some length.
AIM_LEARNED = 0.01
#: The aims of resuming, for a race.
RESUME_MILLISECONDS = 0.2
RESUME_BYTES = 500


@dataclass(frozen=True)
class Overhead:
    """What one run took per trial."""

    n_trials: int
    milliseconds: float
    kilobytes: float


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument(
        "--trials", type=int, nargs="*", default=[1_000, 10_000, 100_000], help="for ACBandFacade"
    )
    parser.add_argument(
        "--smac-trials", type=int, nargs="*", default=[500, 1_000], help="for RandomFacade"
    )
    parser.add_argument(
        "--learned-trials", type=int, nargs="*", default=[1_000, 10_000], help="proposals learned"
    )
    parser.add_argument("--resume", type=int, metavar="RACES", help="resume runs of this length")


def run(arguments: argparse.Namespace) -> int:
    """Print the overhead of both; the exit code says whether the aims were met."""
    print("facade        trials  ms a trial  KB a trial")
    for n_trials in arguments.smac_trials:
        _print("RandomFacade", _in_process(_measure, "RandomFacade", n_trials))
    ours: dict[int, Overhead] = {}
    for n_trials in arguments.trials:
        ours[n_trials] = _in_process(_measure, "ACBandFacade", n_trials)
        _print("ACBandFacade", ours[n_trials])
    learned = {n: _in_process(_measure, "ACBandFacade", n, 20) for n in arguments.learned_trials}
    for overhead in learned.values():
        _print("… learned", overhead)
    met = []
    if middle := ours.get(10_000):
        met.append(middle.milliseconds <= AIM_MILLISECONDS)
        print(f"\n10,000 trials: {middle.milliseconds:.2f} ms (aim: at most {AIM_MILLISECONDS})")
        if long := ours.get(100_000):
            growth = long.milliseconds / middle.milliseconds
            met += [growth <= AIM_GROWTH, long.kilobytes <= AIM_KILOBYTES]
            print(f"100,000 over 10,000: {growth:.2f} × (aim: at most {AIM_GROWTH})")
            print(f"memory: {long.kilobytes:.2f} KB a trial (aim: at most {AIM_KILOBYTES})")
    if overhead := learned.get(10_000):
        seconds = overhead.milliseconds / (1e3 * AIM_LEARNED)
        print(f"learned: {AIM_LEARNED:.0%} of the time where a trial takes {seconds:.2f} s")
    if arguments.resume is not None:
        met.append(_print_resuming(arguments.resume))
    return 0 if all(met) else 1


def _print(name: str, overhead: Overhead) -> None:
    print(
        f"{name:12}  {overhead.n_trials:7,}  {overhead.milliseconds:10.2f}  "
        f"{overhead.kilobytes:10.2f}",
        flush=True,
    )


def _measure(facade_name: str, n_trials: int, n_learned: int | None = None) -> Overhead:
    """Return what a run takes; with learned proposals in a space of so many numbers."""
    from smac import RandomFacade, Scenario

    from acband_configspace import ACBandFacade

    facades: dict[str, Any] = {"RandomFacade": RandomFacade, "ACBandFacade": ACBandFacade}
    space = _space() if n_learned is None else _space(n_learned)
    options: dict[str, Any] = {} if n_learned is None else {"proposals": "learned"}
    with tempfile.TemporaryDirectory() as directory:
        scenario = Scenario(space, n_trials=n_trials, output_directory=Path(directory))
        facade = facades[facade_name](scenario, _target, logging_level=False, **options)
        process = psutil.Process()
        memory = process.memory_info().rss
        start = time.perf_counter()
        facade.optimize()
        seconds = time.perf_counter() - start
        grown = process.memory_info().rss - memory
        n_done = facade.runhistory.finished
    return Overhead(n_trials, 1e3 * seconds / n_done, grown / 1024 / n_done)


def _target(config: Any, seed: int = 0) -> float:
    return float(config["x"]) + (seed % 1000) / 1e4


@dataclass(frozen=True)
class Resumed:
    """What resuming took, by race."""

    n_races: int
    n_trials: int
    milliseconds: float
    """CPU time."""
    own_bytes: float
    """Held only while the run is resumed."""
    run_bytes: float
    """Held by the run that goes on."""


def _print_resuming(n_races: int) -> bool:
    """Print what resuming takes, with costs and in races; return whether the aims were met."""
    print("\nresumed       k    races  trials a race  ms a race  bytes a race  the run's own")
    met = True
    for racing in (False, True):
        for k in (4, 8):
            found = measure_resuming(n_races, racing=racing, k=k)
            print(
                f"{'races' if racing else 'costs':10}  {k:3}  {found.n_races:7,}  "
                f"{found.n_trials / found.n_races:13.1f}  {found.milliseconds:9.2f}  "
                f"{found.own_bytes:12.0f}  {found.run_bytes:13.0f}",
                flush=True,
            )
            met &= found.milliseconds <= RESUME_MILLISECONDS and found.own_bytes <= RESUME_BYTES
    print(f"(aims: at most {RESUME_MILLISECONDS} ms and {RESUME_BYTES} bytes)")
    return met


def measure_resuming(n_races: int, *, racing: bool, k: int) -> Resumed:
    """Return what it takes to resume a run of ``n_races`` races."""
    with tempfile.TemporaryDirectory() as folder:
        limit = k * n_races  # with costs, all configurations of a pass are drawn beforehand
        _in_process(_write, folder, n_races, racing, k, limit)
        seconds, n_races, n_trials = _in_process(_time, folder, racing, k, limit)
        peak, held = _in_process(_trace, folder, racing, k, limit)
    milliseconds = 1e3 * seconds / n_races
    return Resumed(n_races, n_trials, milliseconds, (peak - held) / n_races, held / n_races)


def _in_process(function: Any, *arguments: Any) -> Any:
    # A process of its own for each, so that none finds the memory of another.
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(function, arguments)


def _space(n_numbers: int = 2) -> Any:
    from ConfigSpace import ConfigurationSpace, Float

    space = ConfigurationSpace(seed=0)
    names = ["x", "y", *(f"z{number}" for number in range(2, n_numbers))]
    space.add([Float(name, (0.0, 1.0)) for name in names])
    return space


def _facade(folder: str, racing: bool, k: int, n_trials: int) -> ACBandFacade:
    from smac import Scenario

    from acband_configspace import ACBandFacade

    scenario = Scenario(
        _space(),
        name="long",
        n_trials=n_trials,
        instances=[str(number) for number in range(1000)],
        trial_walltime_limit=60,
        output_directory=Path(folder),
    )
    return ACBandFacade(scenario, _never, racing=racing, k=k, logging_level=False)


def _write(folder: str, n_races: int, racing: bool, k: int, limit: int) -> None:
    """Write the journal of a run."""
    from acband_configspace.smac_plugin.optimizer import ACBandOptimizer
    from acband_configspace.smac_plugin.pending import PendingRace
    from acband_configspace.smac_plugin.trial_values import outcome_of

    facade = _facade(folder, racing, k, limit)
    engine, recorder = facade.intensifier.engine, cast(ACBandOptimizer, facade.optimizer)
    made_up = _MadeUp(facade, racing)
    n_plans = len(engine.plans)
    while engine.n_races < n_races and (race := engine.ask()) is not None:
        values = made_up.values(race)
        configs = [facade.intensifier.configurations[racer] for racer in race.racers]
        pending = PendingRace(race, engine.key(race.instance), configs, [*values], len(values), ())
        recorder.raced(pending, values)
        engine.tell(race, outcome_of(values, n_known=0))
        for plan in engine.plans[n_plans:]:
            recorder.planned(plan)
        n_plans = len(engine.plans)


class _MadeUp:
    """Results of trials, the same whenever a configuration meets an instance again."""

    def __init__(self, facade: ACBandFacade, racing: bool) -> None:
        self._configurations = facade.intensifier.configurations
        self._racing = racing
        self._known: dict[tuple[int, int], Any] = {}
        self._random = np.random.default_rng(0)
        self._clock = 1.7e9

    def values(self, race: Race) -> list[Any]:
        costs = [0.1 + self._configurations[racer]["x"] for racer in race.racers]
        costs = [float(cost + 0.3 * self._random.random()) for cost in costs]
        return [self._value(race, racer, costs) for racer in race.racers]

    def _value(self, race: Race, racer: int, costs: list[float]) -> Any:
        from smac.runhistory.dataclasses import TrialValue
        from smac.runhistory.enumerations import StatusType

        place = (racer, race.instance)
        if place in self._known:
            return self._known[place]
        number = race.racers.index(racer)
        cost, limit = costs[number], math.inf if race.limits is None else race.limits[number]
        if not race.to_the_end:
            limit = min(limit, *costs)
        lost = self._racing and cost > limit
        seconds = limit if lost else cost
        self._clock += seconds
        value = TrialValue(
            cost=seconds,
            time=seconds,
            cpu_time=0.99 * seconds,
            status=StatusType.TIMEOUT if lost else StatusType.SUCCESS,
            starttime=self._clock,
            endtime=self._clock + seconds,
            additional_info={"end": "lost"} if lost else {},
        )
        if not lost:
            self._known[place] = value
        return value


def _time(folder: str, racing: bool, k: int, limit: int) -> tuple[float, int, int]:
    with tempfile.TemporaryDirectory() as other:
        _facade(other, racing, k, limit)  # what is imported counts for nothing
    start = time.process_time()
    facade = _facade(folder, racing, k, limit)
    seconds = time.process_time() - start
    return seconds, facade.intensifier.n_races, facade.runhistory.finished


def _trace(folder: str, racing: bool, k: int, limit: int) -> tuple[int, int]:
    with tempfile.TemporaryDirectory() as other:
        _facade(other, racing, k, limit)
    gc.collect()
    tracemalloc.start()
    facade = _facade(folder, racing, k, limit)
    peak = tracemalloc.get_traced_memory()[1]
    gc.collect()
    held = tracemalloc.get_traced_memory()[0]
    del facade
    return peak, held


def _never(config: Any, instance: str, seed: int = 0) -> float:
    raise AssertionError("nothing is run here")
