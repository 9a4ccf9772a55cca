"""Successive Halving and Hyperband: the paper's counts, and costs worked out by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from table_helpers import constant_table

from acband_configspace.benchmark import RuntimeTable
from acband_configspace.benchmark.methods.halving import (
    Hyperband,
    Rung,
    SuccessiveHalving,
    equal_rungs,
    rungs,
    winner_of,
)
from acband_configspace.benchmark.methods.method import Spending


@pytest.mark.parametrize(("eta", "count"), [(4, 378), (5, 842), (6, 280), (8, 618)])
def test_hyperband_draws_what_table_4_prints(eta: int, count: int) -> None:
    assert sum(Hyperband(eta).brackets(948)) == count
    assert sum(Hyperband(eta).brackets(2000)) == count


def test_a_small_table_lowers_s_max() -> None:
    # η = 4: s_max = 4 would draw 378, s_max = 3 draws 64 + 22 + 8 + 4 = 98.
    assert Hyperband(4).brackets(100) == [64, 22, 8, 4]


def test_rungs_of_one_bracket() -> None:
    assert rungs(81, 81, 3, 4) == [Rung(81, 1), Rung(27, 3), Rung(9, 9), Rung(3, 27), Rung(1, 81)]


def test_equal_rounds_cost_as_many_runs_each() -> None:
    steps = equal_rungs(27, 40, 3, 3)
    assert steps == [Rung(27, 1), Rung(9, 4), Rung(3, 13), Rung(1, 40)]
    seen = [0, *(step.n_instances for step in steps)]
    new = [step.n_configs * (step.n_instances - n) for step, n in zip(steps, seen, strict=False)]
    assert new == [27, 27, 27, 27]


def test_equal_rounds_are_cheaper_than_a_bracket() -> None:
    table = constant_table(*[1.0] * 64, n_instances=340)
    bracket, equal = (SuccessiveHalving(4, equal_rounds=e).run(table, 0) for e in (False, True))
    # 59 configurations, s = 2: rungs end at 21, 85, 340 and at 16, 80, 340 instances.
    assert bracket.cpu_time == 59 * 21 + 14 * 64 + 3 * 255
    assert equal.cpu_time == 59 * 16 + 14 * 64 + 3 * 260


def test_instances_already_seen_are_not_paid_again() -> None:
    # 4 configurations on 1 instance (1 + 2 + 3 + 4), 2 on 1 more (1 + 2), 1 on 2 more (1 + 1).
    result = SuccessiveHalving(eta=2).run(constant_table(1.0, 2.0, 3.0, 4.0, n_instances=4), seed=0)
    assert result.cpu_time == 10 + 3 + 2
    assert (result.incumbent, result.n_configs, result.n_instances) == (0, 4, 4)


def test_the_mean_decides_and_unsolved_counts_as_the_cutoff() -> None:
    times = np.array([[1.0, np.inf], [3.0, 3.0]])
    table = RuntimeTable(times, cutoff=6.0)
    spending = Spending(table, cpu_limit=np.inf)
    found = winner_of(np.array([0, 1]), np.array([0, 1]), [Rung(2, 2)], spending)
    assert (found, spending.cpu_time) == ((3.0, 1), 1 + 6 + 3 + 3)


def test_hyperband_returns_the_best_of_a_clear_order_and_uses_every_instance_once() -> None:
    table = constant_table(*np.linspace(1, 50, 98), n_instances=400)
    result = Hyperband(4).run(table, seed=3)
    assert result.incumbent == 0
    assert (result.n_configs, result.n_instances) == (98, 400)


@pytest.mark.parametrize("options", [{"eta": 1}, {"times": 0}])
def test_bad_options_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="must be at least"):
        Hyperband(**options)
