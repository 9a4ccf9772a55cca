"""Runtime tables: the paper's metrics."""

from __future__ import annotations

import numpy as np
import pytest

from acband_configspace.benchmark import RuntimeTable
from acband_configspace.benchmark.tables import open_table


def test_gaps_to_the_best_of_all_and_of_those_tried():
    table = RuntimeTable(np.array([[1.0, 3.0], [4.0, 4.0], [5.0, np.inf]]), cutoff=7.0)
    assert table.mean_runtimes().tolist() == [2.0, 4.0, 6.0]
    assert table.gap_to_best(2) == 2.0
    assert table.gap_to_subset_best(2, (1, 2)) == 0.5
    assert table.gap_to_subset_best(1, (1, 2)) == 0.0


def test_gap_where_nothing_takes_time():
    table = RuntimeTable(np.array([[0.0], [1.0]]), cutoff=7.0)
    assert (table.gap_to_best(0), table.gap_to_best(1)) == (0.0, np.inf)


def test_r_delta_leaves_the_slowest_tenth_out():
    table = RuntimeTable(np.arange(1.0, 21.0)[None, ::-1], cutoff=900.0)
    assert table.capped_mean_runtime(0) == np.mean(np.arange(1, 19))
    assert table.capped_mean_runtime(0, share=0.5) == np.mean(np.arange(1, 11))


def test_names_must_fit():
    with pytest.raises(ValueError, match="config_names must name all 2 but got 1"):
        RuntimeTable(np.ones((2, 3)), 9.0, config_names=("a",))


def test_made_up_tables_by_name():
    table = open_table("synthetic:30x50:4")
    assert table.runtimes.shape == (30, 50)
    assert np.array_equal(table.runtimes, open_table("synthetic:30x50:4").runtimes)
    assert not np.array_equal(table.runtimes, open_table("synthetic:30x50:5").runtimes)
    assert open_table("families:20x40", cutoff=5.0).cutoff == 5.0
    with pytest.raises(ValueError, match="but got 'synthetic:many'"):
        open_table("synthetic:many")
