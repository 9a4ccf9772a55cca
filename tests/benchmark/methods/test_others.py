"""The other methods: known winners, costs worked out by hand, and the registry."""

from __future__ import annotations

import numpy as np
import pytest
from table_helpers import constant_table

from acband_configspace.benchmark import load_shipped, simulate, synthetic_table
from acband_configspace.benchmark.methods.acband import ACBand
from acband_configspace.benchmark.methods.leapsandbounds import LeapsAndBounds
from acband_configspace.benchmark.methods.method import Method
from acband_configspace.benchmark.methods.procrastination import (
    ProcrastinationWithConfidence,
    StructuredProcrastination,
    lower_bound,
)
from acband_configspace.benchmark.methods.random_racing import UniformRacing
from acband_configspace.benchmark.methods.registry import METHODS, Setting, build

SEQUENTIAL = [LeapsAndBounds(), StructuredProcrastination(), ProcrastinationWithConfidence()]


@pytest.mark.parametrize("method", [*SEQUENTIAL, UniformRacing(k=3)], ids=lambda m: m.name)
def test_the_best_of_a_clear_order_is_found(method: Method) -> None:
    table = constant_table(30.0, 4.0, 60.0, 12.0, 200.0, n_instances=300)
    result = method.run(table, seed=1)
    assert result.incumbent == 1
    assert result.n_configs in (4, 5)
    assert sorted(result.configurations) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("method", SEQUENTIAL, ids=lambda m: m.name)
def test_the_same_seed_gives_the_same_result(method: Method) -> None:
    table = synthetic_table(12, 200, seed=3)
    assert method.run(table, 5) == method.run(table, 5)


def test_acband_is_simulate() -> None:
    table = synthetic_table(100, 900, seed=0)
    ours, theirs = ACBand(k=4, alpha=0.1).run(table, 7), simulate(table, k=4, alpha=0.1, seed=7)
    assert (ours.incumbent, ours.cpu_time) == (theirs.incumbent, theirs.cpu_time)
    assert (ours.n_configs, ours.configurations) == (theirs.n_configs, theirs.configurations)


def test_a_race_costs_k_times_its_winner() -> None:
    table = constant_table(2.0, 7.0, n_instances=10)
    result = UniformRacing(k=2).run(table, seed=0)
    assert (result.cpu_time, result.wall_time) == (2 * 2.0 * 10, 2.0 * 10)


def test_procrastination_pays_for_a_run_that_was_put_off_once() -> None:
    table = constant_table(5.0)
    for method in (StructuredProcrastination(), ProcrastinationWithConfidence()):
        result = method.run(table, seed=0)
        # Most runs have taken their 5 s, in steps of 1, 1, 2 and 1 s; some are still put off.
        n_runs = result.extra["n_runs_of_a_configuration"]
        assert 0.75 * 5.0 * n_runs < result.cpu_time_with_repeats <= 5.0 * n_runs
        assert result.cpu_time <= 5.0 * table.n_instances


def test_lower_bound_of_equal_runtimes() -> None:
    # All 1000 runs took at least 4 s: ∫ from 0 to 4 of 1 / (1 + ε), nothing beyond, where
    # ε = √(9 ln t / r), as in the authors' code since November 2019.
    edges, counts = np.array([0.0, 4.0, 8.0]), np.array([0, 1000, 0])
    error = np.sqrt(9 * np.log(500) / 1000)
    assert lower_bound(edges, counts, 1000, 500) == pytest.approx(4.0 / (1 + error))
    assert lower_bound(edges, counts, 100, 500) == 0.0  # ε = 0.75 > 1/2: too few to say anything


def test_leaps_and_bounds_raises_its_guess_until_a_mean_is_below() -> None:
    fast = LeapsAndBounds().run(constant_table(1.0), seed=0)
    slow = LeapsAndBounds().run(constant_table(30.0), seed=0)
    # The first guess is 16/7 s; 16/7 · 1.25^(p-1) > 30 first for p = 13.
    assert (fast.extra["phases"], slow.extra["phases"]) == (1, 13)


def test_leaps_and_bounds_resumes_its_runs() -> None:
    """13 phases, and yet no second of any of the 60 instances is paid twice."""
    result = LeapsAndBounds().run(constant_table(30.0, n_instances=60), seed=0)
    assert result.cpu_time == pytest.approx(60 * 30.0)
    n_runs = result.extra["n_runs_of_a_configuration"]
    assert result.cpu_time_with_repeats <= n_runs * 30.0


@pytest.mark.parametrize(
    ("method", "incumbent", "with_repeats", "within"),
    [
        (LeapsAndBounds(alpha=0.3), 6, 693.796, 1e-5),
        (StructuredProcrastination(alpha=0.3), 129, 2858.770, 1e-5),
        # Ours counts runtimes in bins, and looks at all bounds again at other moments.
        (ProcrastinationWithConfidence(alpha=0.3), 129, 134.077, 0.02),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_the_authors_code_gives_the_same(
    method: Method, incumbent: int, with_repeats: float, within: float
) -> None:
    """The code published by Weisz et al. (2018) and Kleinberg et al. (2019) on the same table.

    Same order of rows and columns, times in 900ths of the cutoff; that of Kleinberg et al. was
    stopped where ours ends.
    """
    result = method.run(load_shipped("minisat"), seed=0)
    assert result.incumbent == incumbent
    assert result.cpu_time_with_repeats == pytest.approx(with_repeats, rel=within)


def test_every_method_can_be_built_by_name() -> None:
    setting = Setting(alpha=0.05, delta=0.05, ks=(2, 4), etas=(4,))
    names = [method.name for family in METHODS for method in build(family, setting)]
    assert len(names) == len(set(names)) == 16
    with pytest.raises(ValueError, match="methods must be some of .* but got 'random'"):
        build("random", setting)
