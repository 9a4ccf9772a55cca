"""The pictures show what the run and the plan say."""

from __future__ import annotations

import pytest
from run_helpers import make_run

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

from matplotlib import pyplot as plt  # noqa: E402

from acband_configspace.core.schedule import Schedule, sufficient_budget  # noqa: E402
from acband_configspace.runlog.bracket import incumbents, played_epochs  # noqa: E402
from acband_configspace.runlog.plotting import (  # noqa: E402
    WINNER,
    plot_elimination,
    plot_incumbent,
    plot_schedule,
    plot_sufficient_budget,
)
from acband_configspace.runlog.run import Run  # noqa: E402


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return Run.load(make_run(tmp_path_factory.mktemp("run")).scenario.output_directory)


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


def test_functions_draw_on_the_axes_they_are_given(run):
    schedule = run.schedules[0]
    for draw in (
        lambda ax: plot_elimination(run, ax),
        lambda ax: plot_incumbent(run, ax),
        lambda ax: plot_schedule(schedule, ax),
        lambda ax: plot_sufficient_budget(ax),
    ):
        _, ax = plt.subplots()
        assert draw(ax) is ax
        own = draw(None)
        assert own is not ax
        assert own.figure is not ax.figure


def test_the_elimination_has_a_column_a_round_and_the_winners_path(run):
    ax = plot_elimination(run)
    rounds = [round_ for epoch in played_epochs(run) for round_ in epoch.rounds]
    labels = [label.get_text() for label in ax.get_xticklabels()]
    assert labels == [str(sum(g.n_races for g in round_.groups)) for round_ in rounds]
    winner = incumbents(run)[-1][1]
    path = [line for line in ax.lines if line.get_color() == WINNER and len(line.get_xdata()) == 2]
    n_columns = sum(winner in round_.in_play for round_ in rounds)
    assert len(path) == n_columns - 1
    assert f"configuration {winner}" in ax.get_legend().get_texts()[0].get_text()


def test_an_unfinished_run_can_be_drawn(run):
    from dataclasses import replace

    for n_races in (0, 1, 10):
        part = replace(run, races=run.races[:n_races], finished=None)
        plot_elimination(part)
        plot_incumbent(part)


def test_test_costs_are_drawn_beside_the_training_costs(run):
    ax = plot_incumbent(run, test_costs={number: 1.5 for _, number in incumbents(run)})
    training, test = ax.lines[:2]
    assert set(test.get_ydata()) == {1.5}
    assert len(training.get_xdata()) > 1


def test_costs_may_be_negative_and_test_costs_unknown(tmp_path):
    facade = make_run(tmp_path, target=lambda config, seed=0: -config["x"])
    ax = plot_incumbent(Run.load(facade.scenario.output_directory), test_costs={9999: 1.0})
    low, high = ax.get_ylim()
    costs = ax.lines[0].get_ydata()
    assert low < min(costs) <= max(costs) < high


def test_the_schedule_has_a_bar_a_round():
    schedule = Schedule.plan(20118, k=2)
    ax = plot_schedule(schedule)
    heights = [bar.get_height() for bar in ax.patches]
    assert heights == [r.n_races for epoch in schedule.epochs for r in epoch.rounds]


def test_the_sufficient_budget_falls_with_k_alpha_and_delta():
    ax = plot_sufficient_budget(ks=(2, 4), alphas=(0.01, 0.05), deltas=(0.01, 0.1))
    lines = [list(line.get_ydata()) for line in ax.lines]
    assert lines[0] == [sufficient_budget(k, 0.01, 0.01) for k in (2, 4)]
    assert all(low < high for high, low in lines)
    assert lines[1][0] < lines[0][0]  # δ
    assert lines[2][0] < lines[0][0]  # α
