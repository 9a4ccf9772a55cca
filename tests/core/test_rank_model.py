"""A Gaussian process of ranks: it finds what matters, and hopes for less where others are tried."""

from __future__ import annotations

import numpy as np
import pytest

from acband_configspace.core.rank_model import RankModel


def a_model(n: int = 60, *, noise: float = 0.0, seed: int = 0) -> RankModel:
    """Return a model of a bowl around 0.7 in the first of three parameters; the rest is idle."""
    random = np.random.default_rng(seed)
    points = random.random((n, 3))
    costs = np.exp(10.0 * (points[:, 0] - 0.7) ** 2) + noise * random.normal(size=n)
    return RankModel(points, costs, [0, 1, 2], np.ones(n))


@pytest.mark.parametrize("noise", [0.0, 0.3])
def test_what_matters_is_found(noise: float) -> None:
    model = a_model(noise=noise)
    good, idle = np.array([[0.7, 0.1, 0.9], [0.7, 0.8, 0.2]]), np.array([[0.1, 0.5, 0.5]])
    assert model.mean(good).max() < -0.8
    assert model.mean(idle)[0] > 0.5
    assert model.promise(good).min() > model.promise(idle)[0]


def test_only_the_order_of_values_matters() -> None:
    """So outliers and scales do not; and who shares a value shares a rank, in any order."""
    random = np.random.default_rng(1)
    points, places = random.random((40, 2)), random.random((5, 2))
    values = np.minimum(points[:, 0], 0.5)  # half of them are equal
    expected = RankModel(points, values, [0, 1], np.ones(40)).promise(places)
    again = RankModel(points, np.exp(9.0 * values), [0, 1], np.ones(40)).promise(places)
    assert (again == expected).all()
    turned = RankModel(points[::-1], values[::-1], [0, 1], np.ones(40))
    high = np.array([[0.6, 0.5], [0.9, 0.5]])
    assert turned.mean(high) == pytest.approx(turned.mean(high)[0], abs=0.35)
    assert turned.mean(np.array([[0.1, 0.5]]))[0] < turned.mean(high).min() - 0.5


def test_where_something_is_being_tried_less_is_hoped_for() -> None:
    model = a_model(12)
    place, elsewhere = np.array([[0.95, 0.95, 0.05]]), np.array([[0.05, 0.05, 0.95]])
    before = [model.promise(place)[0], model.promise(elsewhere)[0], model.mean(place)[0]]
    model.believe(place[0])
    assert model.promise(place)[0] < before[0] - 0.1
    assert model.promise(elsewhere)[0] == pytest.approx(before[1], abs=0.1)
    assert model.mean(place)[0] == pytest.approx(before[2])


def test_a_point_may_be_believed_often() -> None:
    points = np.random.default_rng(2).random((9, 2))
    model = RankModel(points, np.arange(9.0), [0, 1], np.ones(9))
    for _ in range(30):  # nothing may become singular
        model.believe(points[0])
    assert np.isfinite(model.promise(points)).all()


def test_trusted_ranks_are_followed_more_closely() -> None:
    random = np.random.default_rng(3)
    points = random.random((40, 2))  # an order by chance: all of it is noise
    points[0] = [0.5, 0.5]
    weights = np.ones(40)
    weights[0] = 1000.0
    values = np.arange(40.0)
    doubted = RankModel(points, values, [0, 1], np.ones(40)).mean(points[:1])[0]
    assert RankModel(points, values, [0, 1], weights).mean(points[:1])[0] < doubted


def test_columns_of_a_category_have_one_length() -> None:
    random = np.random.default_rng(4)
    chosen = random.integers(3, size=50)
    points = np.hstack([0.5 * np.eye(3)[chosen], random.random((50, 1))])
    values = np.where(chosen == 1, 0.0, 1.0)  # the second is the best
    model = RankModel(points, values, [0, 0, 0, 1], np.ones(50))
    places = np.hstack([0.5 * np.eye(3), np.full((3, 1), 0.5)])
    assert model.mean(places).argmin() == 1


def test_where_all_are_equal_nothing_is_learned() -> None:
    points = np.random.default_rng(6).random((20, 2))
    model = RankModel(points, np.ones(20), [0, 1], np.ones(20))
    assert np.isfinite(model.promise(points)).all()
    assert model.mean(points) == pytest.approx(0.0)


def test_equal_points_do_no_harm() -> None:
    model = RankModel(np.full((20, 2), 0.5), np.arange(20.0), [0, 1], np.ones(20))
    assert np.isfinite(model.promise(np.random.default_rng(5).random((4, 2)))).all()
