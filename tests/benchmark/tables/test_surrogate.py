"""The surrogate ranks what it has not seen, and is exact about what a table does not say."""

from __future__ import annotations

import numpy as np
import pytest
from ConfigSpace import Configuration, ConfigurationSpace

from acband_configspace.benchmark.tables import (
    RuntimeTable,
    TableError,
    load_shipped,
    synthetic_table,
)
from acband_configspace.benchmark.tables.surrogate import (
    Surrogate,
    distances,
    rank_correlations,
)


def test_held_out_configurations_are_ranked_right(small_table: RuntimeTable) -> None:
    forest, nearest = rank_correlations(small_table)
    assert forest > 0.9
    assert 0.5 < nearest < forest


@pytest.mark.parametrize(("name", "at_least"), [("minisat", 0.75), ("clasp", 0.65), ("highs", 0.9)])
def test_held_out_configurations_of_the_shipped_tables_are_ranked_right(
    name: str, at_least: float
) -> None:
    """And better than by their nearest neighbours, which is why there is a surrogate."""
    forest, nearest = rank_correlations(load_shipped(name))
    assert forest > at_least
    assert forest > nearest + 0.05


def test_one_configuration_is_predicted_as_many_are(small_table: RuntimeTable) -> None:
    surrogate = Surrogate(small_table)
    table = surrogate.sampled(10, seed=3)
    rows = [Configuration(surrogate.space, values=values) for values in table.config_values]
    assert rows[0] == surrogate.space.get_default_configuration()
    assert np.allclose([surrogate.runtimes(row) for row in rows], table.runtimes)
    assert table.mean_runtimes()[3] == pytest.approx(surrogate.mean_runtime(rows[3]))
    assert np.array_equal(table.runtimes, surrogate.sampled(10, seed=3).runtimes)


def test_no_prediction_exceeds_the_cutoff(small_table: RuntimeTable) -> None:
    table = small_table
    cut = RuntimeTable(table.runtimes, 5.0, config_values=table.config_values, space=table.space)
    assert Surrogate(cut).sampled(50, seed=0).runtimes.max() <= 5.0


def test_an_instance_that_takes_no_time_is_no_trouble(small_table: RuntimeTable) -> None:
    runtimes = small_table.runtimes.copy()
    runtimes[:, 0] = 0.0
    values, space = small_table.config_values, small_table.space
    table = RuntimeTable(runtimes, small_table.cutoff, config_values=values, space=space)
    predicted = Surrogate(table).sampled(5, seed=0).runtimes
    assert np.isfinite(predicted).all()
    assert predicted[:, 0].max() < 0.01


def test_distances_are_gowers(small_space: ConfigurationSpace) -> None:
    space = small_space
    rows = [
        Configuration(space, values={"mode": "slow", "size": 10.0}),
        Configuration(space, values={"mode": "slow", "size": 100.0}),
        Configuration(space, values={"mode": "fast", "size": 10.0, "speed": 0.5}),
        Configuration(space, values={"mode": "fast", "size": 10.0, "speed": 1.0}),
    ]
    expected = np.array([[0, 0.5, 2, 2], [0.5, 0, 2.5, 2.5], [2, 2.5, 0, 0.5], [2, 2.5, 0.5, 0]])
    assert np.allclose(distances(space, rows), expected / 3, atol=1e-6)


def test_a_table_without_values_has_no_surrogate() -> None:
    with pytest.raises(TableError, match="must hold the values of its configurations"):
        Surrogate(synthetic_table(10, 20))
