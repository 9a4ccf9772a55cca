"""Runtime tables: the paper's metrics."""

from __future__ import annotations

import numpy as np
import pytest

from acband_configspace.benchmark import RuntimeTable
from acband_configspace.benchmark.simulation import racing_play
from acband_configspace.benchmark.tables import open_table
from acband_configspace.core.ends import End


def test_gaps_to_the_best_of_all_and_of_those_tried() -> None:
    table = RuntimeTable(np.array([[1.0, 3.0], [4.0, 4.0], [5.0, np.inf]]), cutoff=7.0)
    assert table.mean_runtimes().tolist() == [2.0, 4.0, 6.0]
    assert table.gap_to_best(2) == 2.0
    assert table.gap_to_subset_best(2, (1, 2)) == 0.5
    assert table.gap_to_subset_best(1, (1, 2)) == 0.0


def test_gap_where_nothing_takes_time() -> None:
    table = RuntimeTable(np.array([[0.0], [1.0]]), cutoff=7.0)
    assert (table.gap_to_best(0), table.gap_to_best(1)) == (0.0, np.inf)


def test_r_delta_leaves_the_slowest_tenth_out() -> None:
    table = RuntimeTable(np.arange(1.0, 21.0)[None, ::-1], cutoff=900.0)
    assert table.capped_mean_runtime(0) == np.mean(np.arange(1, 19))
    assert table.capped_mean_runtime(0, share=0.5) == np.mean(np.arange(1, 11))


def test_names_must_fit() -> None:
    with pytest.raises(ValueError, match="config_names must be given for all 2 but got 1"):
        RuntimeTable(np.ones((2, 3)), 9.0, config_names=("a",))


def test_made_up_tables_by_name() -> None:
    table = open_table("synthetic:30x50:4")
    assert table.runtimes.shape == (30, 50)
    assert np.array_equal(table.runtimes, open_table("synthetic:30x50:seed=4").runtimes)
    assert not np.array_equal(table.runtimes, open_table("synthetic:30x50:5").runtimes)
    assert open_table("families:20x40", cutoff=5.0).cutoff == 5.0


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("synthetic:many", "but got 'synthetic:many'"),
        ("synthetic:9x9:speed=3", "which has a 'speed'"),
        ("noisy:9x9:noise=loud", "noise must be a number but got 'loud'"),
        ("noisy:9x9:noise=-1", "noise must not be negative but got -1.0"),
        ("synthetic:9x9:n_configs=3", "which has a 'n_configs'"),
    ],
)
def test_wrong_names_are_refused(name: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        open_table(name)


def test_costs_have_no_cutoff() -> None:
    with pytest.raises(ValueError, match="cutoff must not be given for a table of costs"):
        open_table("noisy:9x9", cutoff=3.0)


def log_runtimes(options: str) -> np.ndarray:
    return np.log(open_table(f"synthetic:400x400:{options}", cutoff=1e30).runtimes)


def test_spread_noise_and_tails_are_what_they_say() -> None:
    narrow, wide = log_runtimes("spread=0.1"), log_runtimes("spread=2")
    assert narrow.mean(axis=1).std() == pytest.approx(0.1, rel=0.2)
    assert wide.mean(axis=1).std() == pytest.approx(2.0, rel=0.2)
    calm, loud = log_runtimes("spread=0:noise=0.5"), log_runtimes("spread=0:noise=2:tails=3")
    assert (calm - calm.mean(axis=0)).std() == pytest.approx(0.5, rel=0.05)
    assert np.abs(loud - loud.mean(axis=0)).max() > 6 * 2.0  # a normal one would stay below 5 σ


def test_costs_are_configuration_instance_and_noise() -> None:
    table = open_table("noisy:400x300:noise=2:seed=1")
    costs = np.asarray(table.runtimes, dtype=float)
    assert costs.min() == 0.0
    assert table.cutoff > costs.max()
    configs, instances = costs.mean(axis=1, keepdims=True), costs.mean(axis=0)
    assert configs.std() == pytest.approx(1.0, rel=0.15)
    assert instances.std() == pytest.approx(1.0, rel=0.15)
    assert (costs - configs - instances).std() == pytest.approx(2.0, rel=0.05)


def test_what_was_stopped_at_the_cutoff_is_not_solved_in_any_precision() -> None:
    """Single precision has no 0.9, but 0.89999998."""
    play = racing_play(RuntimeTable(np.full((6, 4), 0.9, np.float32), 0.9), seed=0)
    race = play.engine.ask()
    assert race is not None
    assert set(play.outcome(race).ends) == {End.CUTOFF}
