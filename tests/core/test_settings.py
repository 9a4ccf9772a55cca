"""The presets: the paper's is the paper, and all of them are settings that run."""

from __future__ import annotations

import numpy as np
import pytest
from acband_configspace.core.presets import PRESETS, get_preset

from acband_configspace.benchmark import RuntimeTable, simulate
from acband_configspace.core.schedule import Schedule


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    return RuntimeTable(rng.lognormal(0, 1, (150, 1500)) * (1 + np.arange(150)[:, None]), 1e3)


def test_the_papers_preset_is_the_default_of_simulate(table):
    assert simulate(table, **get_preset("paper").settings()) == simulate(table)


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_runs(table, name):
    preset = get_preset(name)
    budget = int(preset.budget_share * table.n_instances)
    result = simulate(table, **preset.settings(), budget=budget)
    assert result.n_instances <= result.n_instances_planned <= budget


def test_alpha_of_none_lets_the_budget_say():
    few, many = (Schedule.plan(budget, k=4, alpha=None, n_epochs=1) for budget in (100, 5029))
    assert few.n_configs < many.n_configs
    for schedule in (few, many):
        assert min(r.races_per_group for e in schedule.epochs for r in e.rounds) >= 5
    with pytest.raises(ValueError, match="n0 needs alpha or n_candidates"):
        Schedule.plan(100, alpha=None, n0=50)


@pytest.mark.parametrize("n_epochs", [1, 2, 3, 20])
def test_at_most_so_many_epochs(n_epochs):
    schedule = Schedule.plan(20118, n_epochs=n_epochs)
    assert len(schedule.epochs) <= n_epochs
    assert schedule.n_candidates < schedule.n0 <= 2 * schedule.n_candidates
    assert schedule.n_configs >= schedule.n_candidates
    with pytest.raises(ValueError, match="n0 must be None with n_epochs"):
        Schedule.plan(20118, n_epochs=n_epochs, n0=80)


def test_unknown_presets():
    with pytest.raises(ValueError, match="preset must be one of 'paper', 'recommended'"):
        get_preset("best")
