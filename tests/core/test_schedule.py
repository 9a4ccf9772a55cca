"""The schedule against the paper's numbers, its invariants, and bad input."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acband_configspace import Schedule, sufficient_budget
from acband_configspace.core.epochs import MOST_CANDIDATES
from acband_configspace.core.schedule import (
    SENSIBLE_RACES,
    Supply,
    cse_rounds,
    share_kept,
    survivors,
)


@pytest.mark.parametrize(
    ("alpha", "delta", "drawn"),
    [
        # Caption of the paper's first results figure (δ = 0.05).
        (0.05, 0.05, 60),
        (0.02, 0.05, 153),
        (0.01, 0.05, 303),
        # The appendix' table for δ = 0.01.
        (0.05, 0.01, 93),
        (0.02, 0.01, 232),
        (0.01, 0.01, 462),
    ],
)
def test_configurations_drawn_as_in_the_paper(alpha: float, delta: float, drawn: int) -> None:
    assert Schedule.plan(20118, alpha=alpha, delta=delta).n_configs == drawn


@pytest.mark.parametrize(
    ("n_candidates", "drawn"),
    # Caption of the appendix' Table 3. It prints 492 for the last, but the formula,
    # Σ ⌈493 / 2^e⌉ over 9 epochs, gives 495.
    [(97, 101), (245, 247), (492, 495)],
)
def test_configurations_drawn_with_the_candidates_of_car(n_candidates: int, drawn: int) -> None:
    assert Schedule.plan(20118, n_candidates=n_candidates).n_configs == drawn


def test_epoch_sizes_worked_out_by_hand() -> None:
    # N = ⌈ln .05 / ln .95⌉ = 59, n_0 = 60, E = ⌈log2 60⌉ = 6, n_e = ⌈60 / 2^e⌉ + 1.
    schedule = Schedule.plan(20118)
    assert (schedule.n_candidates, schedule.n0) == (59, 60)
    assert [epoch.n_configs for epoch in schedule.epochs] == [31, 16, 9, 5, 3, 2]


@pytest.mark.parametrize("k", [2, 4, 8, 16])
def test_epoch_budgets_follow_c_e(k: int) -> None:
    """B / c_e with the paper's own expression for c_e, evaluated independently."""
    budget, n_candidates, n0, epochs = 20118, 59, 60, 6
    q = 1 + (k - 1) / epochs
    c1 = math.log(2, q)
    c2 = 1 + math.log(n0 + 4 * n0 / (n0 - n_candidates), q)
    c3 = math.ceil(math.log(k, q))
    numerator = c1 * epochs - (2**epochs - 1) * (2 * c1 - c2 - c3)
    for epoch in Schedule.plan(budget, k=k).epochs:
        e = epoch.index
        c_e = numerator * 2**e / (2**epochs * (-e * c1 + c2 + c3))
        assert epoch.budget == math.floor(budget / c_e)


def test_rounds_of_a_small_case_worked_out_by_hand() -> None:
    # n = 10, k = 4, halving: two groups of 4 keep 2 each, 2 are carried: 6 left; one group of 4
    # keeps 2, 2 carried: 4 left; 4 -> 2; then the second loop, 2 -> 1. Four rounds share 96.
    rounds = cse_rounds(10, k=4, budget=96, share=Fraction(1, 2))
    assert [(r.n_groups, r.group_size, r.survivors, r.carried) for r in rounds] == [
        (2, 4, 2, 2),
        (1, 4, 2, 2),
        (1, 4, 2, 0),
        (1, 2, 1, 0),
    ]
    assert [r.races_per_group for r in rounds] == [12, 24, 24, 24]


@pytest.mark.parametrize("k", range(2, 65))
def test_special_cases_of_rho(k: int) -> None:
    assert survivors(k, share_kept(1, k=k)) == max(1, k // 2)  # CSH
    assert survivors(k, share_kept(math.log2(k), k=k)) == 1  # CSWS
    assert survivors(k, share_kept(0, k=k)) == k - 1  # CSR
    assert survivors(k, share_kept(1e-9, k=k)) == k - 1


@given(st.integers(1, 12), st.integers(2, 64), st.integers(1, 64))
def test_rho_as_a_float_means_the_integer_rule(e: int, k: int, x: int) -> None:
    exact = max(1, min(x - 1, x * e // (e + k - 1)))
    assert survivors(x, share_kept(math.log2((e + k - 1) / e), k=k)) == exact


schedules = st.builds(
    lambda k, n, stretch, factor: (k, n, n + 1 + round(stretch * (n - 1)), factor),
    st.integers(2, 20),
    st.integers(1, 400),
    st.floats(0, 1),
    st.floats(1, 30),
)


@given(schedules)
def test_a_schedule_keeps_its_budget_and_ends_with_one(inputs: tuple[int, int, int, float]) -> None:
    k, n_candidates, n0, factor = inputs
    least = Schedule.minimum_budget(k=k, n_candidates=n_candidates, n0=n0)
    budget = int(least * factor)
    schedule = Schedule.plan(budget, k=k, n_candidates=n_candidates, n0=n0)
    assert schedule.n_races <= sum(epoch.budget for epoch in schedule.epochs) <= budget
    assert schedule.n_configs >= n_candidates
    for epoch in schedule.epochs:
        left = epoch.n_configs
        for round_ in epoch.rounds:
            assert round_.n_configs == left
            assert round_.group_size == min(k, left)
            assert round_.races_per_group >= 1
            assert 1 <= round_.survivors < round_.group_size
            share = Fraction(epoch.index, epoch.index + k - 1)
            assert round_.survivors == max(1, math.floor(round_.group_size * share))
            left = round_.n_groups * round_.survivors + round_.carried
        assert left == 1
        assert epoch.n_races <= epoch.budget


@given(schedules, st.integers(1, 200), st.sampled_from([None, 1, 2]))
def test_a_playoff_leaves_every_group_a_race(
    inputs: tuple[int, int, int, float], playoff: int, n_epochs: int | None
) -> None:
    k, n_candidates, _, factor = inputs
    sizes: dict[str, Any] = {"k": k, "n_candidates": n_candidates, "n_epochs": n_epochs}
    budget = int(Schedule.minimum_budget(**sizes) * factor)
    planned = Schedule.plan(budget, **sizes, playoff=playoff)
    for schedule in (planned, Schedule.for_trials(planned.n_trials, **sizes, playoff=playoff)):
        rounds = [round_ for epoch in schedule.epochs for round_ in epoch.rounds]
        assert min(round_.races_per_group for round_ in rounds) >= 1
        assert schedule.n_races <= schedule.budget
        assert schedule.set_aside <= max(1, schedule.budget // 4)
    assert schedule.n_trials <= planned.n_trials


@given(schedules)
def test_the_minimum_budget_is_the_minimum(inputs: tuple[int, int, int, float]) -> None:
    k, n_candidates, n0, _ = inputs
    least = Schedule.minimum_budget(k=k, n_candidates=n_candidates, n0=n0)
    Schedule.plan(least, k=k, n_candidates=n_candidates, n0=n0)
    if least > 1:
        with pytest.raises(ValueError, match=f"budget must be at least {least} races"):
            Schedule.plan(least - 1, k=k, n_candidates=n_candidates, n0=n0)


@given(st.integers(2, 5000), st.integers(2, 16))
def test_for_trials_takes_the_largest_budget(n_trials: int, k: int) -> None:
    schedule = Schedule.for_trials(n_trials, k=k)
    assert schedule.n_races >= 1
    assert schedule.n_trials <= n_trials
    larger = Schedule.plan(schedule.budget + 1, k=k, n_candidates=schedule.n_candidates)
    assert larger.n_trials > n_trials


@given(st.integers(100, 3000), st.integers(2, 9), st.integers(2, 12))
def test_for_trials_takes_the_largest_budget_with_a_playoff_too(
    n_trials: int, k: int, n_candidates: int
) -> None:
    """Its playoff takes fewer trials than the races that are set aside for it."""
    options: dict[str, Any] = {
        "k": k,
        "n_candidates": n_candidates,
        "n_epochs": 1,
        "playoff": 100,
    }
    schedule = Schedule.for_trials(n_trials, **options)
    assert schedule.n_trials <= n_trials
    for budget in range(schedule.budget + 1, schedule.budget + 60):
        assert Schedule.plan(budget, **options).n_trials > n_trials


def test_where_there_is_room_for_a_playoff_it_takes_place() -> None:
    """8 · 107 trials, less 6 for each of the 26 races that two contestants run in place of 8."""
    schedule = Schedule.for_trials(700, k=8, n_candidates=7, n_epochs=1, playoff=100)
    assert (schedule.budget, schedule.set_aside, schedule.n_trials) == (107, 26, 700)


@pytest.mark.parametrize("n_trials", [100, 500, 5000, 100_000])
def test_for_trials_draws_as_many_as_get_sensible_races(n_trials: int) -> None:
    def fewest_races(schedule: Schedule) -> int:
        return min(r.races_per_group for epoch in schedule.epochs for r in epoch.rounds)

    schedule = Schedule.for_trials(n_trials)
    assert fewest_races(schedule) >= SENSIBLE_RACES
    more = Schedule.for_trials(n_trials, n_candidates=schedule.n_candidates + 1)
    assert fewest_races(more) < SENSIBLE_RACES


def test_any_number_of_trials_can_be_planned_for() -> None:
    schedule = Schedule.for_trials(10**8)
    assert 10**6 < schedule.n_candidates <= MOST_CANDIDATES
    assert schedule.n_trials <= 10**8


def test_a_further_epoch_needs_no_more_races_than_there_are_instances() -> None:
    schedule = Schedule.plan(500, n_candidates=20, supply=Supply(n_instances=3))
    epoch = schedule.further_epoch(6, n_drawn=20, n_races=500, n_trials=1000)
    assert epoch is not None
    assert {round_.races_per_group for round_ in epoch.rounds} == {3}


def test_for_trials_names_the_least_number_of_trials() -> None:
    with pytest.raises(ValueError, match="n_trials must be at least 274 .* but got 100") as error:
        Schedule.for_trials(100, alpha=0.05)
    assert "59 configurations" in str(error.value)
    assert Schedule.for_trials(274, alpha=0.05).n_trials == 274


@given(st.integers(0, 80), st.integers(2, 8))
def test_a_finite_space_is_used_up(n_available: int, k: int) -> None:
    schedule = Schedule.plan(5000, k=k, supply=Supply(n_available=n_available))
    assert schedule.n_configs == min(n_available, 60)
    assert all(epoch.n_configs >= 2 for epoch in schedule.epochs)


def test_one_configuration_needs_no_race() -> None:
    schedule = Schedule.plan(100, supply=Supply(n_available=0))
    assert (schedule.epochs, schedule.n_races, schedule.n_trials) == ((), 0, 0)
    assert Schedule.for_trials(100, supply=Supply(n_available=0)).epochs == ()


def test_given_configurations_come_on_top() -> None:
    alone, given = (Schedule.plan(5000, supply=Supply(n_given=n)) for n in (1, 4))
    assert alone.n_configs == given.n_configs == 60
    assert [epoch.n_configs for epoch in given.epochs] == [34, 16, 9, 5, 3, 2]


@given(st.integers(2, 3000), st.integers(1, 30), st.integers(2, 6), st.booleans())
def test_few_instances_cap_the_races_of_a_group(
    n_trials: int, n_instances: int, k: int, results_kept: bool
) -> None:
    supply = Supply(n_instances=n_instances, results_kept=results_kept)
    schedule = Schedule.for_trials(n_trials, k=k, supply=supply)
    assert schedule.n_trials <= n_trials
    for epoch in schedule.epochs:
        assert all(1 <= round_.races_per_group <= n_instances for round_ in epoch.rounds)


def test_one_result_per_configuration_makes_a_trial_of_each() -> None:
    """A deterministic target without instances: as many configurations as trials."""
    schedule = Schedule.for_trials(100, supply=Supply(n_instances=1, results_kept=True))
    assert 90 <= schedule.n_configs + 1 <= 100


def test_sufficient_budget_of_theorem_1() -> None:
    # n_0/k · (C_1 E - (2^E - 1)(2 C_1 - C_2 - C_3)) / 2^E for k = 2, N = 59, n_0 = 60, E = 6.
    q = 1 + 1 / 6
    c1, c2, c3 = math.log(2, q), 1 + math.log(300, q), math.ceil(math.log(2, q))
    factor = (c1 * 6 - 63 * (2 * c1 - c2 - c3)) / 64
    assert sufficient_budget(2, 0.05, 0.05) == pytest.approx(30 * factor)
    assert sufficient_budget(2, 0.05, 0.05, crude=True) == pytest.approx((60 + 128) / 2 * factor)


@given(st.integers(2, 31), st.floats(0.005, 0.5), st.floats(0.005, 0.5))
def test_sufficient_budget_falls_with_k(k: int, alpha: float, delta: float) -> None:
    """The appendix' discussion: the sufficient budget decreases with k."""
    assert sufficient_budget(k + 1, alpha, delta) < sufficient_budget(k, alpha, delta)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"k": 1}, ValueError, "k must be at least 2 but got 1"),
        ({"k": 2.0}, TypeError, "k must be a whole number but got 2.0"),
        ({"alpha": 0}, ValueError, "alpha must lie strictly between 0 and 1 but got 0"),
        ({"alpha": float("nan")}, ValueError, "alpha must lie strictly between 0 and 1"),
        ({"delta": 1}, ValueError, "delta must lie strictly between 0 and 1 but got 1"),
        ({"delta": "x"}, TypeError, "delta must be a number but got 'x'"),
        ({"n_candidates": 0}, ValueError, "n_candidates must be at least 1 but got 0"),
        ({"n0": 59}, ValueError, r"n0 must lie in \(N, 2N\] = \(59, 118\] but got 59"),
        ({"n0": 119}, ValueError, r"n0 must lie in \(N, 2N\] = \(59, 118\] but got 119"),
        ({"budget": 147}, ValueError, "budget must be at least 148 races .* but got 147"),
        ({"budget": 1000.5}, TypeError, "budget must be a whole number but got 1000.5"),
        ({"budget": True}, TypeError, "budget must be a whole number but got True"),
    ],
)
def test_bad_input_is_named(
    arguments: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        Schedule.plan(**{"budget": 1000, **arguments})


@pytest.mark.parametrize("field", ["n_available", "n_given", "n_instances"])
def test_bad_supplies(field: str) -> None:
    with pytest.raises(ValueError, match=f"{field} must be at least . but got -1"):
        Supply(**{field: -1})  # type: ignore[arg-type]


@pytest.mark.parametrize("rho", [-0.1, 1.1, float("nan")])
def test_bad_rho(rho: float) -> None:
    with pytest.raises(ValueError, match=r"rho must lie in \[0, log2\(k\)\]"):
        share_kept(rho, k=2)


def test_the_table_shows_every_round() -> None:
    schedule = Schedule.plan(1000, k=4, n_candidates=20)
    text = str(schedule)
    n_rounds = sum(len(epoch.rounds) for epoch in schedule.epochs)
    assert len(text.splitlines()) == 3 + n_rounds
    assert f"{schedule.n_races:,} races = {schedule.n_trials:,} trials" in text


@pytest.mark.parametrize("options", [{"alpha": 1e-300}, {"n_candidates": 10**12}], ids=str)
def test_more_configurations_than_anybody_can_race_are_refused_at_once(
    options: dict[str, Any],
) -> None:
    with pytest.raises(ValueError, match="at most 10,000,000|more than 10,000,000"):
        Schedule.for_trials(1000, **options)
