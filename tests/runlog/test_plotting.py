"""The pictures show what the run and the plan say."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from made_up import write_run

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

from matplotlib import pyplot as plt  # noqa: E402
from matplotlib.axes import Axes  # noqa: E402
from matplotlib.lines import Line2D  # noqa: E402
from matplotlib.patches import Rectangle  # noqa: E402

from acband_configspace.core.schedule import Schedule, sufficient_budget  # noqa: E402
from acband_configspace.core.search_plan import search_schedule  # noqa: E402
from acband_configspace.core.settings import Settings  # noqa: E402
from acband_configspace.core.statistics import Wins  # noqa: E402
from acband_configspace.runlog.plotting import (  # noqa: E402
    WINNER,
    plot_elimination,
    plot_incumbent,
    plot_schedule,
    plot_sufficient_budget,
)
from acband_configspace.runlog.replay import Run  # noqa: E402

KINDS: dict[str, dict[str, Any]] = {
    "memory": {},
    "racing": {"racing": True},
    "paper": {"settings": Settings(k=3, alpha=0.1, playoff=20), "n_trials": 900},
}


@pytest.fixture(scope="module", params=KINDS)
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    directory = tmp_path_factory.mktemp("run")
    write_run(directory, **KINDS[request.param])
    return Run.load(directory)


@pytest.fixture(autouse=True)
def _close_figures() -> Iterator[None]:
    yield
    plt.close("all")


def heights(line: Line2D) -> list[float]:
    return [float(y) for y in np.ravel(line.get_ydata())]


def bars(ax: Axes) -> list[float]:
    return [bar.get_height() for bar in ax.patches if isinstance(bar, Rectangle)]


class OwnWins(Wins):
    """A statistic of the user's own, of which a journal has the name only."""


@pytest.mark.parametrize("draw", [plot_elimination, plot_incumbent])
def test_a_run_that_cannot_be_replayed_is_refused(
    draw: Callable[..., Axes], tmp_path: Path
) -> None:
    write_run(tmp_path, Settings(statistic=OwnWins()))
    with pytest.raises(ValueError, match="cannot be drawn: it was judged by a statistic"):
        draw(tmp_path)
    assert draw(Run.load(tmp_path, statistic=OwnWins())).lines


def test_functions_draw_on_the_axes_they_are_given(run: Run) -> None:
    schedule = Schedule.plan(200, k=2, n_candidates=5)
    passes = search_schedule(n_trials=500, k=8, first_pass=25, growth=2.0, racing=False)
    drawings: list[Callable[[Axes | None], Axes]] = [
        lambda ax: plot_elimination(run, ax),
        lambda ax: plot_incumbent(run, ax),
        lambda ax: plot_schedule(schedule, ax),
        lambda ax: plot_schedule(passes, ax),
        lambda ax: plot_sufficient_budget(ax),
    ]
    for draw in drawings:
        _, ax = plt.subplots()
        assert draw(ax) is ax
        own = draw(None)
        assert own is not ax
        assert own.figure is not ax.figure


def test_a_run_may_be_given_as_its_directory_or_facade(run: Run) -> None:
    facade = SimpleNamespace(scenario=SimpleNamespace(output_directory=run.directory))
    for draw in (plot_elimination, plot_incumbent):
        expected = len(draw(run).lines)
        for source in (run.directory, str(run.directory), facade):
            assert len(draw(source).lines) == expected


def test_the_elimination_has_a_column_a_round_and_the_incumbents_path(run: Run) -> None:
    ax = plot_elimination(run)
    labels = [label.get_text() for label in ax.get_xticklabels()]
    assert labels == [str(len(round_.races)) for round_ in run.rounds]
    path = [
        line
        for line in ax.lines
        if line.get_color() == WINNER and len(np.ravel(line.get_xdata())) == 2
    ]
    columns = [run.incumbent in round_.in_play for round_ in run.rounds]
    n_steps = sum(a and b for a, b in itertools.pairwise(columns))
    assert len(path) == n_steps
    assert f"#{run.incumbent}" in ax.get_legend().get_texts()[0].get_text()


def test_an_unfinished_run_can_be_drawn(tmp_path: Path) -> None:
    for n_races in (0, 1, 10):
        write_run(tmp_path, stop_after=n_races)
        plot_elimination(tmp_path)
        plot_incumbent(tmp_path)


def test_the_incumbent_goes_down_to_its_estimate_and_the_default_is_a_line(run: Run) -> None:
    ax = plot_incumbent(run)
    training, default = ax.lines[:2]
    costs = heights(training)
    assert costs == sorted(costs, reverse=True)
    assert costs[-1] == run.leads[-1].estimate.mean
    assert set(heights(default)) == {run.comparison.default_estimate.mean}
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert any(label.startswith("the default") for label in labels)


def test_test_costs_are_drawn_beside_the_training_costs(run: Run) -> None:
    ax = plot_incumbent(run, test_costs={lead.configuration: 1.5 for lead in run.leads})
    [test] = [line for line in ax.lines if line.get_label() == "test"]
    assert set(heights(test)) == {1.5}


def test_costs_may_be_negative_and_test_costs_unknown(tmp_path: Path) -> None:
    write_run(tmp_path, cost=lambda values, key: -values["x"])
    ax = plot_incumbent(tmp_path, test_costs={9999: 1.0})
    low, high = ax.get_ylim()
    costs = heights(ax.lines[0])
    assert low < min(costs) <= max(costs) < high


def test_the_schedule_has_a_bar_a_round() -> None:
    schedule = Schedule.plan(20118, k=2)
    ax = plot_schedule(schedule)
    assert bars(ax) == [r.n_races for epoch in schedule.epochs for r in epoch.rounds]


def test_the_search_has_a_bar_a_pass() -> None:
    schedule = search_schedule(n_trials=2000, k=8, first_pass=25, growth=2.0, racing=False)
    assert bars(plot_schedule(schedule)) == [plan.n_trials for plan in schedule.passes]


def test_the_sufficient_budget_falls_with_k_alpha_and_delta() -> None:
    ax = plot_sufficient_budget(ks=(2, 4), alphas=(0.01, 0.05), deltas=(0.01, 0.1))
    lines = [heights(line) for line in ax.lines]
    assert lines[0] == [sufficient_budget(k, 0.01, 0.01) for k in (2, 4)]
    assert all(low < high for high, low in lines)
    assert lines[1][0] < lines[0][0]  # δ
    assert lines[2][0] < lines[0][0]  # α
