"""The vectorised driver: it agrees with the streaming one, and pays as the paper counts."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acband_configspace import Schedule
from acband_configspace.benchmark import (
    RuntimeTable,
    SimulationResult,
    simulate,
    synthetic_table,
)
from acband_configspace.core.acband import acband
from acband_configspace.core.ends import End
from acband_configspace.core.paper_races import PaperRaces
from acband_configspace.core.race import Outcome, Race
from acband_configspace.core.settings import PRESETS
from acband_configspace.core.statistics import Floats


@pytest.fixture(scope="module")
def table() -> RuntimeTable:
    return synthetic_table(150, 1500, cutoff=20.0, seed=1)


def by_streaming(
    table: RuntimeTable,
    result: SimulationResult,
    *,
    k: int,
    budget: int,
    statistic: str,
    seed: int,
) -> tuple[int, tuple[int, ...], float, float]:
    """Feed the streaming driver from the table, with the rows and columns ``simulate`` drew."""
    schedule = Schedule.plan(budget, k=k)
    stream = PaperRaces(acband(schedule, np.random.default_rng([seed, 2])), statistic=statistic)
    cpu_time = wall_time = 0.0
    while isinstance(race := stream.ask(), Race):
        rows = [result.configurations[racer] for racer in race.racers]
        times = np.minimum(table.runtimes[rows, result.instances[race.instance]], table.cutoff)
        if statistic == "wins":
            first = times.min()
            lost = (times > first) | (times >= table.cutoff)
            ends = [End.LOST if stopped else End.FINISHED for stopped in lost]
            stream.tell(race, Outcome(np.minimum(times, first).tolist(), ends))
            cpu_time += float(first) * len(rows)
            wall_time += float(first)
        else:
            stream.tell(race, Outcome(times.tolist()))
            cpu_time += float(times.sum())
            wall_time += float(times.max())
    winners = tuple(result.configurations[number] for number in stream.epoch_winners)
    assert stream.winner is not None
    return result.configurations[stream.winner], winners, cpu_time, wall_time


@settings(max_examples=40)
@given(st.integers(0, 2**31), st.sampled_from([2, 3, 4, 8]), st.sampled_from(["wins", "mean"]))
def test_both_drivers_agree(table: RuntimeTable, seed: int, k: int, statistic: str) -> None:
    result = simulate(table, k=k, budget=800, statistic=statistic, seed=seed)
    incumbent, winners, cpu_time, wall_time = by_streaming(
        table, result, k=k, budget=800, statistic=statistic, seed=seed
    )
    assert (result.incumbent, result.epoch_winners) == (incumbent, winners)
    assert result.cpu_time == pytest.approx(cpu_time, rel=1e-5)
    assert result.wall_time == pytest.approx(wall_time, rel=1e-5)


@pytest.fixture(scope="module")
def golden_table() -> RuntimeTable:
    rng = np.random.default_rng(2023)
    runtimes = rng.lognormal(0, 1, (200, 2500)) * np.exp(rng.normal(0, 0.6, (200, 1)))
    return RuntimeTable(runtimes, 20.0)


@pytest.mark.parametrize(
    ("options", "incumbent", "counts", "epoch_winners", "cpu_time"),
    [
        # What commit 3724a8d (0.1.0) returned for this table: configurations, races and trials.
        ({"seed": 0}, 71, (60, 2465, 4930), (71, 71, 71, 71, 71, 71), 2293.286),
        ({"seed": 1}, 22, (60, 2465, 4930), (22, 22, 22, 22, 22, 22), 2473.525),
        ({"seed": 2}, 23, (60, 2465, 4930), (71, 23, 23, 23, 23, 23), 2214.789),
        (
            {"k": 4, "alpha": 0.02, "seed": 1},
            *(71, (153, 2482, 9496), (22, 71, 71, 71, 71, 71, 71, 71), 2510.114),
        ),
        ({"k": 16, "seed": 1}, 22, (60, 2497, 35270), (22, 22, 22, 22, 22, 22), 5654.171),
        (
            {"statistic": "mean", "seed": 4},
            *(45, (60, 2465, 4930), (45, 45, 45, 45, 45, 45), 5712.241),
        ),
    ],
)
def test_the_papers_preset_returns_what_it_always_did(
    golden_table: RuntimeTable,
    options: dict[str, Any],
    incumbent: int,
    counts: tuple[int, int, int],
    epoch_winners: tuple[int, ...],
    cpu_time: float,
) -> None:
    result = simulate(golden_table, **{**PRESETS["paper"].settings(), **options})
    assert result.incumbent == incumbent
    assert (result.n_configs, result.n_instances, result.n_trials) == counts
    assert result.epoch_winners == epoch_winners
    assert result.cpu_time == pytest.approx(cpu_time, abs=6e-4)


def test_so_do_the_additions_to_the_paper(golden_table: RuntimeTable) -> None:
    """As above, from commit 3724a8d."""
    spent = simulate(
        golden_table,
        n_candidates=97, k=8, early_stopping=0.1, playoff=100, spend="configurations", seed=2,
    )  # fmt: skip
    assert (spent.incumbent, spent.n_configs) == (71, 117)
    assert (spent.n_instances, spent.n_trials) == (2475, 17152)
    assert spent.epoch_winners == (23, 23, 23, 23, 23, 148, 92, 28, 28, 28)
    assert spent.cpu_time == pytest.approx(3453.121, abs=6e-4)
    again = simulate(
        golden_table, k=3, budget=9000, reuse=True, early_stopping=0.0, playoff=200, seed=3
    )
    assert (again.incumbent, again.n_configs) == (23, 60)
    assert (again.n_instances, again.n_trials) == (7167, 20512)
    assert again.epoch_winners == (23,) * 6
    assert again.cpu_time == pytest.approx(8260.372, abs=6e-4)


def test_costs_of_a_race_worked_out_by_hand() -> None:
    # One new configuration, k = 2: a single group; every race costs 2 × its winner's time.
    table = RuntimeTable(np.array([[1.0, 5.0, 9.0], [4.0, 2.0, 9.0]]), cutoff=9.0)
    result = simulate(table, k=2, n_candidates=1)
    assert (result.cpu_time, result.wall_time) == (2 * (1 + 2 + 9), 1 + 2 + 9)
    assert (result.n_configs, result.n_instances) == (1, 3)
    everything = simulate(table, k=2, n_candidates=1, statistic="mean")
    assert (everything.cpu_time, everything.wall_time) == (30, 4 + 5 + 9)


def test_the_best_of_a_table_with_a_clear_order_is_found() -> None:
    times = np.arange(1.0, 101.0)[:, None] * np.ones((1, 2000))
    result = simulate(RuntimeTable(times, 900.0), k=4, alpha=0.05, seed=3)
    assert result.incumbent == min(result.configurations)


def test_nobody_finishing_credits_nobody() -> None:
    """Row 0 never solves anything; with nobody credited, the order within groups decides."""
    unsolved = RuntimeTable(np.full((2, 40), np.inf), 10.0)
    winners = {simulate(unsolved, n_candidates=1, seed=seed).incumbent for seed in range(20)}
    assert winners == {0, 1}


def test_the_same_seed_gives_the_same_result(table: RuntimeTable) -> None:
    assert simulate(table, seed=5) == simulate(table, seed=5)
    assert simulate(table, seed=5).configurations != simulate(table, seed=6).configurations


def test_configurations_and_instances_are_drawn_without_replacement(table: RuntimeTable) -> None:
    result = simulate(table, alpha=0.05)
    assert len(set(result.configurations)) == len(result.configurations) == 61
    assert len(set(result.instances)) == len(result.instances) == result.n_instances


def test_the_table_is_not_copied() -> None:
    table = synthetic_table(400, 5000)
    tracemalloc.start()
    simulate(table, k=2)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < table.runtimes.nbytes / 4


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"budget": 1600}, "budget must be at most the table's 1500 instances but got 1600"),
        ({"alpha": 0.02}, "needs 154 configurations .* but the table has 150"),
        ({"budget": 10}, "budget must be at least 148 races"),
        ({"statistic": "best"}, "statistic must be one of"),
        ({"k": 1}, "k must be at least 2 but got 1"),
        ({"early_stopping": 2}, "early_stopping must be"),
        ({"playoff": -3}, "playoff must be"),
    ],
)
def test_bad_input_is_named(table: RuntimeTable, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        simulate(table, **arguments)


@pytest.mark.parametrize(
    ("runtimes", "cutoff", "error", "message"),
    [
        (np.ones(5), 9.0, ValueError, r"configurations × instances but got shape \(5,\)"),
        (np.ones((0, 5)), 9.0, ValueError, r"got shape \(0, 5\)"),
        (np.array([[1.0, np.nan]]), 9.0, ValueError, "runtimes must be numbers .* but got NaN"),
        (np.array([[1.0, -2.0]]), 9.0, ValueError, "runtimes must not be negative but got -2.0"),
        (np.array([["a"]]), 9.0, TypeError, "runtimes must be numbers but got an array of"),
        (np.ones((2, 2)), 0, ValueError, "cutoff must be positive and finite but got 0"),
        (np.ones((2, 2)), None, TypeError, "cutoff must be a number but got None"),
    ],
)
def test_bad_tables_are_refused(
    runtimes: Floats, cutoff: float, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        RuntimeTable(runtimes, cutoff)


def test_the_gap_to_the_best() -> None:
    table = RuntimeTable(np.array([[1.0, 3.0], [2.0, 20.0]]), cutoff=4.0)
    assert table.mean_runtimes().tolist() == [2.0, 3.0]
    assert [table.gap_to_best(row) for row in (0, 1)] == [0.0, 0.5]
