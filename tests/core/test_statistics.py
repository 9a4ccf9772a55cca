"""Statistics: who is credited with a race, and which costs a statistic can live with."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from acband_configspace.core.statistics import Floats, QuantileCost, get_statistic, wins

INF = float("inf")


@pytest.mark.parametrize(
    ("costs", "censored", "winner"),
    [
        ([3.0, 1.0, 2.0], [0, 0, 0], 1),
        ([1.0, 1.0, 2.0], [0, 0, 0], None),  # a tie credits nobody
        ([2.0, 1.0, 1.0], [0, 0, 1], 1),  # stopped when the winner finished
        ([5.0, 5.0, 5.0], [1, 1, 1], None),  # nobody finished before the cutoff
        ([INF, INF, 4.0], [0, 0, 0], 2),  # the others crashed
        ([INF, INF, INF], [0, 0, 0], None),
        ([2.0, 0.5, 3.0], [0, 1, 0], None),  # stopped at 0.5: might have been the faster one
        ([-1.0, 0.0, 3.0], [0, 0, 0], 0),  # costs need not be times
    ],
)
def test_who_wins_a_race(costs: list[float], censored: list[int], winner: int | None) -> None:
    flags = np.array([costs]), np.array([censored], dtype=bool)
    expected = [i == winner for i in range(3)]
    assert wins(*flags).tolist() == [expected]


tables = hnp.arrays(
    float,
    st.tuples(st.integers(1, 5), st.integers(1, 6), st.integers(2, 5)),
    elements=st.one_of(st.integers(0, 4).map(float), st.just(INF)),
)


@given(tables)
def test_at_most_one_wins_and_it_is_the_cheapest(costs: Floats) -> None:
    credited = wins(costs, np.zeros(costs.shape, dtype=bool))
    assert (credited.sum(axis=-1) <= 1).all()
    assert (costs[credited] == costs.min(axis=-1)[credited.any(axis=-1)]).all()


@given(tables)
def test_stopping_the_losers_changes_no_win(costs: Floats) -> None:
    everything = wins(costs, np.zeros(costs.shape, dtype=bool))
    first = costs.min(axis=-1, keepdims=True)
    alone = (costs == first).sum(axis=-1, keepdims=True) == 1
    stopped = (costs > first) & np.isfinite(first) & alone
    assert (wins(np.where(stopped, first, costs), stopped) == everything).all()


def test_scores_of_the_statistics() -> None:
    costs = np.array([[1.0, 2.0], [1.0, 2.0], [9.0, 2.0]])
    none = np.zeros(costs.shape, dtype=bool)
    assert get_statistic("wins").scores(costs, none).tolist() == pytest.approx([2 / 3, 1 / 3])
    assert get_statistic("mean").scores(costs, none).tolist() == pytest.approx([-11 / 3, -2])
    assert get_statistic("quantile").scores(costs, none).tolist() == [-1, -2]
    assert QuantileCost(1.0).scores(costs, none).tolist() == [-9, -2]


def test_a_failure_ranks_last_by_mean_and_quantile() -> None:
    costs = np.array([[1.0, 5.0], [INF, 5.0]])
    none = np.zeros(costs.shape, dtype=bool)
    for statistic in (get_statistic("mean"), QuantileCost(0.9)):
        assert statistic.scores(costs, none).argmax() == 1


@pytest.mark.parametrize("name", ["mean", "quantile"])
def test_censored_costs_are_refused_where_they_would_mislead(name: str) -> None:
    costs = np.array([[1.0, 1.0]])
    with pytest.raises(ValueError, match=f"{name}.* must know every cost but got 1 censored"):
        get_statistic(name).scores(costs, np.array([[False, True]]))


def test_unknown_statistics_are_refused() -> None:
    with pytest.raises(ValueError, match="statistic must be one of 'wins', .* but got 'best'"):
        get_statistic("best")
    with pytest.raises(TypeError, match="statistic must be a name or an object with scores"):
        get_statistic(3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"quantile must lie in \[0, 1\] but got 2"):
        QuantileCost(2)
