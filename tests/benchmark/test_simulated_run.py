"""A whole run from a table: the engine's own decisions, paid for as a real run would be."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acband_configspace.benchmark import RuntimeTable, SimulatedRun, simulate_run, synthetic_table
from acband_configspace.core.ends import End
from acband_configspace.core.engine import Engine, Limits
from acband_configspace.core.instances import Instances
from acband_configspace.core.race import Outcome, Race
from acband_configspace.core.settings import Settings, settings_from


@pytest.fixture(scope="module")
def table() -> RuntimeTable:
    return synthetic_table(120, 60, cutoff=20.0, seed=1)


def engine_for(table: RuntimeTable, *, racing: bool, n_trials: float, seed: int) -> Engine:
    return Engine(
        Settings(),
        racing=racing,
        instances=Instances(
            [str(column) for column in range(table.n_instances)], deterministic=True, seed=seed
        ),
        draw=lambda n, known: min(n, table.n_configs),
        limits=Limits(n_trials, timed=racing),
        n_in_space=table.n_configs,
        seed=seed,
    )


def race_by_hand(race: Race, times: list[float], cutoff: float) -> tuple[Outcome, float]:
    """Run a race second by second, so to speak: return its outcome, and its CPU time."""
    limits = race.limits or (math.inf,) * len(times)
    finishers = [
        time for time, limit in zip(times, limits, strict=True) if time < cutoff and time <= limit
    ]
    first = min(finishers, default=math.inf)
    costs: list[float] = []
    ends: list[End] = []
    seconds = 0.0
    for time, limit in zip(times, limits, strict=True):
        stop = min(limit, math.inf if race.to_the_end else first)
        if time < cutoff and time <= stop:
            costs.append(time)
            ends.append(End.FINISHED)
        elif stop < cutoff:
            costs.append(stop)
            ends.append(End.LOST)
        else:
            costs.append(10 * cutoff)
            ends.append(End.CUTOFF)
        seconds += min(time, stop, cutoff)
    return Outcome(costs, ends), seconds


@settings(max_examples=15)
@given(seed=st.integers(0, 1000), n_trials=st.sampled_from([2, 25, 60, 333]))
def test_trials_agree_with_an_engine_driven_by_hand(
    table: RuntimeTable, seed: int, n_trials: int
) -> None:
    run = simulate_run(table, n_trials=n_trials, seed=seed)
    engine = engine_for(table, racing=False, n_trials=n_trials, seed=seed)
    seconds = 0.0
    while (race := engine.ask()) is not None:
        rows = [run.configurations[racer] for racer in race.racers]
        column = int(engine.key(race.instance).instance or "")
        costs = np.minimum(table.runtimes[rows, column], table.cutoff).tolist()
        seconds += sum(costs)
        engine.tell(race, Outcome(costs))
    assert engine.leader is not None
    assert run.incumbent == run.configurations[engine.leader]
    assert run.n_configs == engine.n_entered
    assert run.n_trials == n_trials
    assert run.cpu_time == pytest.approx(seconds)


@settings(max_examples=15)
@given(seed=st.integers(0, 1000), cpu_limit=st.sampled_from([5.0, 300.0, 3000.0]))
def test_races_agree_with_an_engine_driven_by_hand(
    table: RuntimeTable, seed: int, cpu_limit: float
) -> None:
    run = simulate_run(table, cpu_limit=cpu_limit, seed=seed)
    engine = engine_for(table, racing=True, n_trials=math.inf, seed=seed)
    rows = np.random.default_rng([seed, 0]).permutation(table.n_configs).tolist()
    seconds, n_trials = 0.0, 0
    while (race := engine.ask()) is not None:
        column = int(engine.key(race.instance).instance or "")
        times = [float(table.runtimes[rows[racer], column]) for racer in race.racers]
        outcome, used = race_by_hand(race, times, table.cutoff)
        if seconds + used > cpu_limit:
            break
        seconds += used
        n_trials += len(race.racers)
        engine.tell(race, outcome)
    assert run.incumbent == rows[engine.leader or 0]
    assert run.n_trials == n_trials
    assert run.cpu_time == (pytest.approx(seconds) if race is None else cpu_limit)
    assert list(run.configurations) == rows[: run.n_configs]


LIMITS: list[dict[str, Any]] = [
    {"n_trials": 2},
    {"n_trials": 300},
    {"cpu_limit": 1.0},
    {"cpu_limit": 1500.0},
    {"cpu_limit": 1500.0, "n_trials": 100},
    {"n_trials": 400, "preset": "paper", "alpha": 0.3},
    {"cpu_limit": 1500.0, "preset": "paper", "alpha": 0.3},
]


def check(run: SimulatedRun, limits: dict[str, Any]) -> None:
    assert run.n_trials <= limits.get("n_trials", math.inf)
    assert run.cpu_time <= limits.get("cpu_limit", math.inf)
    assert len(set(run.configurations)) == len(run.configurations) == run.n_configs
    assert run.n_configs <= run.n_trials
    spent = [at for at, _ in run.trajectory]
    assert spent == sorted(spent)
    if run.trajectory:
        assert run.trajectory[-1][1] == run.incumbent
        assert spent[-1] <= (run.cpu_time if "cpu_limit" in limits else run.n_trials)
    for (_, before), (_, after) in zip(run.trajectory, run.trajectory[1:], strict=False):
        assert before != after
    assert {row for _, row in run.trajectory} <= set(run.configurations)


@pytest.mark.parametrize("limits", LIMITS)
def test_the_same_seed_gives_the_same_run_and_a_trajectory_that_ends_in_it(
    table: RuntimeTable, limits: dict[str, Any]
) -> None:
    for seed in range(5):
        run = simulate_run(table, **limits, seed=seed)
        assert run == simulate_run(table, **limits, seed=seed)
        check(run, limits)
    assert run != simulate_run(table, **limits, seed=77)


def test_a_longer_run_starts_as_a_shorter_one(table: RuntimeTable) -> None:
    short, long = (simulate_run(table, cpu_limit=limit) for limit in (500.0, 4000.0))
    assert long.trajectory[: len(short.trajectory)] == short.trajectory
    assert long.configurations[: short.n_configs] == short.configurations


def test_trials_buy_better_configurations(table: RuntimeTable) -> None:
    gaps = [
        np.mean(
            [
                table.gap_to_best(simulate_run(table, n_trials=n, seed=s).incumbent)
                for s in range(20)
            ]
        )
        for n in (10, 500, 4000)
    ]
    assert gaps[0] > 2 * gaps[1]
    assert gaps[2] < 0.05


def test_a_table_that_is_used_up_ends_the_run() -> None:
    table = synthetic_table(12, 8, cutoff=20.0, seed=0)
    for limits in ({"n_trials": 10_000}, {"cpu_limit": 1e9}):
        run = simulate_run(table, **limits)
        assert run.n_configs == 12
        assert run.n_trials < 10_000
        assert run.cpu_time < 1e9
        assert table.gap_to_best(run.incumbent) < 0.2


def test_run_times_of_zero_do_not_run_for_ever() -> None:
    nothing = RuntimeTable(np.zeros((30, 20)), 10.0)
    assert simulate_run(nothing, cpu_limit=1.0).cpu_time == 0.0
    rng = np.random.default_rng(0)
    some = RuntimeTable(np.where(rng.random((30, 20)) < 0.5, 0.0, rng.random((30, 20))), 10.0)
    assert simulate_run(some, cpu_limit=1e6).cpu_time < 1e6


def test_if_nothing_is_solved_the_first_remains() -> None:
    unsolved = RuntimeTable(np.full((30, 20), np.inf), 10.0)
    run = simulate_run(unsolved, cpu_limit=3000.0)
    assert run.incumbent == run.configurations[0]
    assert run.cpu_time <= 3000.0


def test_with_few_workers_later_racers_are_stopped_at_the_best_time_so_far() -> None:
    # Four race on one instance: 4, 3, 2 and 1 seconds in some order, one after the other.
    table = RuntimeTable(np.array([[4.0], [3.0], [2.0], [1.0]]), cutoff=9.0)
    together = simulate_run(table, cpu_limit=100.0, n_trials=4)
    alone = simulate_run(table, cpu_limit=100.0, n_trials=4, n_workers=1)
    assert together.cpu_time == 4 * 1.0
    times = [table.runtimes[row, 0] for row in alone.configurations]
    assert alone.cpu_time == sum(np.minimum.accumulate(times))
    assert together.incumbent == alone.incumbent == 3


def test_settings_are_those_of_the_facade(table: RuntimeTable) -> None:
    by_name = simulate_run(table, n_trials=200, k=3, first_pass=40)
    assert by_name == simulate_run(table, n_trials=200, preset=settings_from(k=3, first_pass=40))
    assert by_name != simulate_run(table, n_trials=200)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({}, ValueError, "cpu_limit or n_trials must be given but both are None"),
        ({"cpu_limit": 0}, ValueError, "cpu_limit must be positive but got 0"),
        ({"cpu_limit": math.nan}, ValueError, "cpu_limit must be positive but got nan"),
        ({"cpu_limit": "1"}, TypeError, "cpu_limit must be a number but got '1'"),
        ({"n_trials": 1}, ValueError, "n_trials must be at least 2 but got 1"),
        ({"n_trials": 9.5}, TypeError, "n_trials must be a whole number but got 9.5"),
        ({"n_trials": 9, "preset": "best"}, ValueError, "preset must be one of 'default', 'paper'"),
        ({"n_trials": 9, "kk": 3}, TypeError, "'kk' is not an option of AC-Band"),
        ({"n_trials": 9, "k": 1}, ValueError, "k must be at least 2 but got 1"),
        ({"cpu_limit": 9, "n_workers": 0}, ValueError, "n_workers must be at least 1 but got 0"),
        ({"cpu_limit": 9, "par": 0}, ValueError, "par must be at least 1 and finite but got 0"),
        ({"n_trials": 9, "preset": "paper"}, ValueError, "n_trials must be at least"),
    ],
)
def test_bad_input_is_named(
    table: RuntimeTable, arguments: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        simulate_run(table, **arguments)


def test_what_is_known_is_neither_counted_nor_paid_again() -> None:
    """As in the facade: with five instances the paper's schedule comes back to them."""
    table = synthetic_table(100, 5, seed=1)
    run = simulate_run(table, n_trials=400, preset="paper")
    assert run.n_trials <= min(400, 5 * run.n_configs)
    assert run.cpu_time <= np.minimum(table.runtimes, table.cutoff).sum()
