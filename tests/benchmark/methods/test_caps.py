"""CapsAndRuns, CAR++ and ICAR: the paper's pools, costs worked out by hand, known winners."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest
from table_helpers import constant_table

from acband_configspace.benchmark import RuntimeTable, load_shipped, synthetic_table
from acband_configspace.benchmark.methods import caps_kernel as kernel
from acband_configspace.benchmark.methods.account import CPU_TIME_WITH_REPEATS, new_account, pay
from acband_configspace.benchmark.methods.capsandruns import (
    CapsAndRuns,
    ImpatientCapsAndRuns,
    caps_rules,
)
from acband_configspace.benchmark.methods.method import Method


@pytest.mark.parametrize(
    ("alpha", "pool", "icar_pool"), [(0.05, 97, 134), (0.02, 245, 351), (0.01, 492, 724)]
)
def test_the_pools_are_those_the_paper_prints(alpha: float, pool: int, icar_pool: int) -> None:
    assert CapsAndRuns(alpha).pool_size() == pool
    assert CapsAndRuns(alpha, improved=True).pool_size() == pool
    assert ImpatientCapsAndRuns(alpha).pool_size() == icar_pool


def test_constants_of_the_two_variants() -> None:
    published = caps_rules(900.0, 97, 0.05 / 7, 0.1, 0.05, improved=False)
    improved = caps_rules(900.0, 97, 0.05 / 7, 0.1, 0.05, improved=True)
    # ⌈48 ln(3 · 97 · 7 / .05) / .1⌉ and ⌈26 ln(2 · 97 · 7 / .05) / .1⌉
    assert (published.n_measured, improved.n_measured) == (5096, 2655)
    assert (published.reject_factor, improved.reject_factor) == (2.0, 1.5)
    assert published.work_step == 10.0


@pytest.mark.parametrize("improved", [False, True])
def test_one_configuration_costs_its_cap_and_two_runs(improved: bool) -> None:
    """Alone, it is done as soon as there is an upper bound: after two runs of the race."""
    table = constant_table(3.0)
    rules = caps_rules(900.0, 1, 0.05 / 7, 0.1, 0.05, improved)
    result = CapsAndRuns(improved=improved).run(table, seed=0)
    assert result.cpu_time_with_repeats == pytest.approx(3.0 * (rules.n_to_complete + 2))
    assert result.cpu_time == pytest.approx(3.0 * table.n_instances)
    assert result.incumbent == 0


def test_the_cap_lets_the_allowed_share_of_instances_go() -> None:
    """One of 20 instances takes 500 s; the cap is the longest of the 92.5 % done first."""
    times = np.where(np.arange(1000) % 20 == 0, 500.0, 1.0)[None, :]
    rules = caps_rules(900.0, 1, 0.05 / 7, 0.1, 0.05, improved=False)
    account = new_account(times)
    race = kernel.new_race(times, rules.n_measured, account)
    kernel.run_threads(race, rules, np.arange(1), False)
    assert race.threads[0]["cap"] == 1.0
    # 92.5 % of b take 1 s, those put off one work step of 10 s, then two runs of the race.
    n_hard = race.threads[0]["n_kept"]
    expected = rules.n_to_complete * 1.0 + n_hard * 10.0 + 2.0
    assert account.totals[CPU_TIME_WITH_REPEATS] == pytest.approx(expected)


def test_runs_that_reach_the_cutoff_are_completed_by_it() -> None:
    table = RuntimeTable(np.full((2, 30), np.inf), cutoff=9.0)
    result = CapsAndRuns().run(table, seed=0)
    assert np.isfinite(result.cpu_time)


@pytest.mark.parametrize(
    "method", [CapsAndRuns(), CapsAndRuns(improved=True), ImpatientCapsAndRuns()]
)
def test_the_best_of_a_clear_order_is_found(method: Method) -> None:
    table = constant_table(*np.linspace(2.0, 40.0, 20))
    result = method.run(table, seed=1)
    assert result.incumbent == 0
    assert sorted(result.configurations) == list(range(20))


def test_slow_configurations_are_given_up_early() -> None:
    table = constant_table(1.0, 2.0, *[800.0] * 10)
    n_measured = caps_rules(900.0, 12, 0.05 / 7, 0.1, 0.05, improved=True).n_measured
    result = CapsAndRuns(improved=True).run(table, seed=0)
    # A step of 10 s for each run that the best has begun, not 800 s for each of its own.
    assert result.cpu_time < 10 * n_measured * 11


def test_the_precheck_makes_icar_impatient() -> None:
    """Of the pool all but the first batch are very slow: ICAR pays them a few runs each."""
    seconds = np.full(134, 300.0)
    seconds[:30] = 1.0
    table = constant_table(*seconds)
    icar = ImpatientCapsAndRuns().run(table, seed=0)
    patient = CapsAndRuns(improved=True, alpha=0.037).run(table, seed=0)
    assert patient.n_configs == 132
    assert icar.cpu_time < patient.cpu_time
    assert table.gap_to_best(icar.incumbent) == 0.0


def test_a_second_of_a_run_is_paid_once() -> None:
    account = new_account(np.full((1, 40), 9.0), n_resumed=4)
    for before, after in ((0.0, 5.0), (0.0, 3.0), (3.0, 7.0)):
        pay(account, 0, 2, before, after)
    assert account.totals.tolist() == [7.0, 7.0, 2.0]
    pay(account, 0, 42, 0.0, 9.0)  # instance 2 again, 2 s longer; or a fresh one
    assert account.totals.tolist() == [9.0, 16.0, 42.0]


@pytest.mark.parametrize(
    ("method", "once", "with_repeats"),
    [
        (ImpatientCapsAndRuns(), 352.56, 14072.83),
        (CapsAndRuns(improved=True), 253.47, 9774.11),
        (CapsAndRuns(), 258.45, 14068.30),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_both_accounts_on_the_shipped_table(
    method: CapsAndRuns | ImpatientCapsAndRuns, once: float, with_repeats: float
) -> None:
    """Means over 5 seeds, as ``benchmark paper`` prints them."""
    results = [method.run(load_shipped("minisat"), seed) for seed in range(5)]
    assert np.mean([r.cpu_time for r in results]) == pytest.approx(once, rel=1e-3)
    repeated = np.mean([r.cpu_time_with_repeats for r in results])
    assert repeated == pytest.approx(with_repeats, rel=1e-4)


@pytest.mark.parametrize(
    ("method", "once", "with_repeats"),
    [
        (CapsAndRuns(), 258.2089, 12095.2225),
        (CapsAndRuns(improved=True), 251.8770, 7705.4160),
        (ImpatientCapsAndRuns(), 350.4325, 12272.2070),
        (ImpatientCapsAndRuns(guess_first=True), 349.4827, 11265.9981),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_the_authors_code_gives_the_same(
    method: CapsAndRuns | ImpatientCapsAndRuns, once: float, with_repeats: float
) -> None:
    """The code published by Weisz et al. (2020) on the same table, in both accounts.

    Same order of rows and columns, work steps of a 90th of the cutoff. It returns row 137, too.
    """
    result = method.run(load_shipped("minisat"), seed=0)
    assert result.incumbent == 137
    assert result.cpu_time == pytest.approx(once, rel=1e-5)
    assert result.cpu_time_with_repeats == pytest.approx(with_repeats, rel=1e-5)


def test_guessing_the_best_first_pays_where_good_configurations_are_rare() -> None:
    """A wide table: with a good one in the first batch, the precheck refuses nearly all others."""
    table = synthetic_table(300, 4000, spread=3.0, seed=1)
    plain, guessing = ImpatientCapsAndRuns(), ImpatientCapsAndRuns(guess_first=True)
    times = [
        np.mean([method.run(table, seed).cpu_time for seed in range(3)])
        for method in (plain, guessing)
    ]
    assert times[1] < 0.85 * times[0]
    assert guessing.name == "ICAR, guess first"
    assert guessing.pool_size() == 136  # ⌈ln(.05/13/4) / ln(1 - .05)⌉: one event more


def test_batches_of_icar_grow() -> None:
    assert ImpatientCapsAndRuns(0.05).batch_ends() == [14, 31, 66, 134]


@pytest.mark.parametrize("make", [CapsAndRuns, ImpatientCapsAndRuns])
def test_the_same_seed_gives_the_same_result(make: Callable[..., Method]) -> None:
    table = synthetic_table(40, 300, seed=2)
    assert make(alpha=0.2).run(table, 4) == make(alpha=0.2).run(table, 4)


def test_bad_options_are_refused() -> None:
    with pytest.raises(ValueError, match="alpha must lie strictly between 0 and 1"):
        CapsAndRuns(alpha=0.0)
    with pytest.raises(ValueError, match="alpha must be below 0.5"):
        ImpatientCapsAndRuns(alpha=0.6)


CODE = """
from acband_configspace.benchmark import synthetic_table
from acband_configspace.benchmark.methods.capsandruns import CapsAndRuns, ImpatientCapsAndRuns

table = synthetic_table(4, 100, cutoff=50.0, seed=5)
for make in (CapsAndRuns, ImpatientCapsAndRuns):
    result = make(alpha=0.2, epsilon=0.5, capped_share=0.5).run(table, 0)
    print(result.incumbent, repr(result.cpu_time))
"""


@pytest.mark.skipif(find_spec("numba") is None, reason="without numba there is one way only")
def test_plain_python_gives_the_same_numbers() -> None:
    plain = subprocess.run(
        [sys.executable, "-c", CODE],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    table = synthetic_table(4, 100, cutoff=50.0, seed=5)
    options: dict[str, Any] = {"alpha": 0.2, "epsilon": 0.5, "capped_share": 0.5}
    methods: list[Method] = [CapsAndRuns(**options), ImpatientCapsAndRuns(**options)]
    for line, method in zip(plain.stdout.splitlines(), methods, strict=True):
        result = method.run(table, 0)
        incumbent, cpu_time = line.split()
        assert int(incumbent) == result.incumbent
        assert float(cpu_time) == pytest.approx(result.cpu_time, rel=1e-9)
