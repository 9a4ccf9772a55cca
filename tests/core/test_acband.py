"""CSE and AC-Band as generators: invariants of the elimination, special cases, bad input."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from acband_configspace import Schedule
from acband_configspace.core.acband import Configurations, Round, Rounds, Verdict, acband, cse


def play(rounds_: Rounds, decide: Callable[[Round], Verdict]) -> tuple[int, list[Round]]:
    """Drive a generator of rounds_ to its end; return the winner and the rounds_ seen."""
    seen = []
    try:
        round_ = next(rounds_)
        while True:
            seen.append(round_)
            round_ = rounds_.send(decide(round_))
    except StopIteration as finished:
        return finished.value, seen


def highest_number_wins(round_: Round) -> Verdict:
    survivors = np.sort(round_.groups, axis=1)[:, ::-1][:, : round_.plan.survivors]
    return Verdict(survivors, np.full(round_.plan.n_groups, round_.plan.races_per_group))


cases = st.tuples(st.integers(1, 60), st.integers(2, 20), st.floats(0, 1), st.integers(0, 9))


@given(cases)
def test_the_one_that_wins_every_race_comes_out(case: tuple[int, int, float, int]) -> None:
    n, k, aggressiveness, seed = case
    rounds_ = cse(
        range(n),
        k=k,
        budget=10_000,
        rho=aggressiveness * math.log2(k),
        rng=np.random.default_rng(seed),
    )
    winner, seen = play(rounds_, highest_number_wins)
    assert winner == n - 1
    instances = np.concatenate([c.instances.ravel() for c in seen]) if seen else np.array([])
    assert len(set(instances.tolist())) == instances.size <= 10_000
    for round_ in seen:
        members = round_.groups.ravel().tolist()
        assert len(set(members)) == len(members)


def test_winner_stays_plays_a_knockout() -> None:
    rng = np.random.default_rng(0)
    _, seen = play(cse(range(8), k=2, budget=70, rho=1.0, rng=rng), highest_number_wins)
    assert [c.groups.shape for c in seen] == [(4, 2), (2, 2), (1, 2)]
    _, seen = play(cse(range(16), k=4, budget=70, rho=2.0, rng=rng), highest_number_wins)
    assert [c.groups.shape for c in seen] == [(4, 4), (1, 4)]


def test_successive_rejects_drops_one_per_group() -> None:
    rng = np.random.default_rng(0)
    _, seen = play(cse(range(4), k=4, budget=70, rho=0.0, rng=rng), highest_number_wins)
    assert [c.groups.shape for c in seen] == [(1, 4), (1, 3), (1, 2)]


def test_groups_are_random_but_repeatable() -> None:
    def first_groups(seed: int) -> Configurations:
        return next(cse(range(20), k=4, budget=99, rho=1, rng=np.random.default_rng(seed))).groups

    assert (first_groups(3) == first_groups(3)).all()
    assert (first_groups(3) != first_groups(4)).any()


def test_one_configuration_wins_without_a_race() -> None:
    assert play(
        cse([7], k=2, budget=0, rho=1, rng=np.random.default_rng(0)), highest_number_wins
    ) == (7, [])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"budget": 3}, "budget must be at least 6 races but got 3"),
        ({"k": 1}, "k must be at least 2 but got 1"),
        ({"rho": 1.5}, "rho must lie in"),
        ({"configurations": [1, 1]}, "configurations must be distinct"),
        ({"configurations": []}, "configurations must be distinct and not empty"),
    ],
)
def test_bad_input_is_named_before_anything_runs(arguments: dict[str, Any], message: str) -> None:
    valid = {"configurations": range(4), "k": 2, "budget": 100, "rho": 1.0}
    if "budget" in arguments:
        valid["configurations"] = range(5)  # 3 rounds of up to 2 groups
    with pytest.raises(ValueError, match=message):
        cse(**{**valid, **arguments}, rng=np.random.default_rng(0))


@given(st.integers(2, 9), st.integers(1, 80), st.integers(0, 9))
def test_acband_draws_new_configurations_each_epoch_and_keeps_the_winner(
    k: int, n_candidates: int, seed: int
) -> None:
    schedule = Schedule.plan(3000, k=k, n_candidates=n_candidates)
    winner, seen = play(acband(schedule, np.random.default_rng(seed)), highest_number_wins)
    assert winner == schedule.n_configs  # numbers grow with the epochs: the last drawn is best
    drawn: set[int] = set()
    for epoch in schedule.epochs:
        rounds_ = [c for c in seen if c.epoch == epoch.index]
        assert [c.plan for c in rounds_] == list(epoch.rounds)
        racing = {int(x) for c in rounds_ for x in c.groups.ravel()}
        assert len(racing) == epoch.n_configs
        assert len(racing - drawn) == epoch.n_configs - 1 or not drawn
        drawn |= racing
    assert drawn == set(range(schedule.n_configs + 1))
    instances = [i for c in seen for i in c.instances.ravel().tolist()]
    assert instances == list(range(schedule.n_races))
