"""The default search through SMAC: the whole budget, an incumbent at any moment, no odd cases."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ConfigSpace import Configuration, ConfigurationSpace
from smac import Callback, Scenario
from smac.main.config_selector import ConfigSelector
from smac.runhistory.dataclasses import TrialInfo, TrialValue
from smac.runhistory.enumerations import StatusType
from targets import (
    Stop,
    a_scenario,
    exact,
    noisy,
    on_instance,
    only,
    quiet,
    races_of,
    without_times,
)

from acband_configspace import ACBandFacade
from acband_configspace.benchmark import simulate_run
from acband_configspace.benchmark.tables import RuntimeTable
from acband_configspace.core.search_plan import SearchSchedule
from acband_configspace.errors import RunFinishedError
from acband_configspace.runlog.replay import Run

# --- the budget ------------------------------------------------------------------------------


@pytest.mark.parametrize("n_trials", [2, 5, 50, 100, 1000])
@pytest.mark.parametrize(("deterministic", "target"), [(True, exact), (False, noisy)])
def test_all_trials_are_used(
    n_trials: int,
    deterministic: bool,
    target: Callable[..., Any],
    make_scenario: Callable[..., Scenario],
) -> None:
    facade = quiet(make_scenario(n_trials=n_trials, deterministic=deterministic), target)
    assert isinstance(facade.schedule, SearchSchedule)
    assert facade.optimize() is not None
    assert facade.runhistory.finished == facade.runhistory.submitted == n_trials
    assert facade.intensifier.finished == f"all n_trials={n_trials} trials are used"


def test_a_time_limit_is_used_to_its_end_if_n_trials_is_not_given(tmp_path: Path) -> None:
    settings = {"n_trials": 100, "walltime_limit": 2.0}  # 100 is SMAC's default
    facade = quiet(a_scenario(tmp_path, **settings), noisy)
    assert facade.optimize() is not None
    assert facade.runhistory.finished > 100
    assert facade.optimizer.remaining_walltime <= 0
    assert "until time is up" in str(facade.schedule)


def test_more_workers_than_races(make_scenario: Callable[..., Scenario], tmp_path: Path) -> None:
    alone = quiet(a_scenario(tmp_path / "one", n_trials=6), noisy)
    many = quiet(a_scenario(tmp_path / "eight", n_trials=6, n_workers=8), noisy)
    assert many.optimize() == alone.optimize()
    assert many.runhistory.finished == 6


@pytest.mark.parametrize("proposals", ["uniform", "learned"])
@pytest.mark.parametrize("n_workers", [2, 8])
def test_with_workers_it_does_the_same(n_workers: int, proposals: str, tmp_path: Path) -> None:
    alone = quiet(a_scenario(tmp_path / "one"), noisy, proposals=proposals)
    more = a_scenario(tmp_path / "more", n_workers=n_workers)
    together = quiet(more, noisy, proposals=proposals)
    assert together.optimize() == alone.optimize()
    races = [without_times(races_of(facade.scenario)) for facade in (alone, together)]
    assert races[0] == races[1]


# --- the incumbent ---------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_stopped_by_a_callback_it_has_found_something(
    seed: int, make_scenario: Callable[..., Scenario]
) -> None:
    scenario = make_scenario(n_trials=200, seed=seed)
    facade = quiet(scenario, exact, callbacks=[Stop(50)])
    incumbent = facade.optimize()
    assert facade.runhistory.finished == 50
    default = scenario.configspace.get_default_configuration()
    assert exact(incumbent, 0) < 0.5 * exact(default, 0)


@pytest.mark.parametrize("after", [1, 3])
def test_stopped_before_a_race_is_over_the_best_trial_leads(
    after: int, make_scenario: Callable[..., Scenario]
) -> None:
    facade = quiet(make_scenario(), exact, callbacks=[Stop(after)])
    incumbent = facade.optimize()
    assert facade.runhistory.finished == after
    assert incumbent == min(facade.runhistory.get_configs(), key=facade.runhistory.get_cost)
    assert facade.validate(incumbent) == pytest.approx(exact(incumbent, 0))


def test_where_one_cost_says_all_the_lowest_leads_before_its_race_is_over(
    make_scenario: Callable[..., Scenario],
) -> None:
    """A time limit may end the run there."""
    facade = quiet(make_scenario(n_trials=100, deterministic=True), None)
    for number in range(30):
        info = facade.ask()
        cost = -float(number) if number % 3 else 1.0  # every third one is bad
        facade.tell(info, TrialValue(cost=cost))
        assert (facade.intensifier.get_incumbent() == info.config) is (cost < 0 or not number)


def test_what_led_before_a_race_was_over_leads_after_a_restart(
    make_scenario: Callable[..., Scenario],
) -> None:
    facade = quiet(make_scenario(n_trials=100), None)
    told = [facade.ask() for _ in range(3)]
    for info, cost in zip(told, (2.0, 1.0, 3.0), strict=True):
        facade.tell(info, TrialValue(cost=cost))
    facade.optimizer.save()
    again = quiet(make_scenario(n_trials=100), None)
    assert again.runhistory.finished == 3
    assert again.intensifier.get_incumbent() == told[1].config


def test_crashes_that_are_allowed_are_not_run_again(make_scenario: Callable[..., Scenario]) -> None:
    facade = quiet(make_scenario(), None, allow_crashes=True)
    for _ in range(16):
        facade.tell(facade.ask(), TrialValue(cost=math.inf, status=StatusType.CRASHED))
    assert facade.intensifier.n_races == 2
    again = quiet(make_scenario(), None, allow_crashes=True)
    assert (again.intensifier.n_races, again.runhistory.finished) == (2, 16)
    anew = quiet(make_scenario(), None)  # the target may have been repaired
    assert (anew.intensifier.n_races, anew.runhistory.finished) == (0, 0)


class Objects(Callback):
    """Raises an error once, when configurations are about to race."""

    def __init__(self, at: int) -> None:
        self.n_left = at

    def on_next_configurations_start(self, config_selector: ConfigSelector) -> None:
        self.n_left -= 1
        if not self.n_left:
            raise RuntimeError("not now")


@pytest.mark.parametrize("at", [1, 3, 20])
def test_after_an_error_of_a_callback_no_race_is_missing(
    at: int, make_scenario: Callable[..., Scenario], tmp_path: Path
) -> None:
    facade = quiet(make_scenario(), noisy, callbacks=[Objects(at)])
    with pytest.raises(RuntimeError, match="not now"):
        facade.optimize()
    whole = quiet(a_scenario(tmp_path / "whole"), noisy)
    assert facade.optimize() == whole.optimize()
    assert facade.runhistory.finished == 60


def test_a_run_that_was_stopped_goes_on_in_the_same_process(
    make_scenario: Callable[..., Scenario], tmp_path: Path
) -> None:
    stop = Stop(13)
    facade = quiet(make_scenario(), noisy, callbacks=[stop])
    facade.optimize()
    stop.after = 1000
    whole = quiet(a_scenario(tmp_path / "whole"), noisy)
    assert facade.optimize() == whole.optimize()
    assert facade.runhistory.finished == 60


def test_the_termination_threshold_returns_the_incumbent(
    make_scenario: Callable[..., Scenario],
) -> None:
    scenario = make_scenario(n_trials=500, termination_cost_threshold=0.21)
    facade = quiet(scenario, exact)
    incumbent = facade.optimize()
    assert exact(incumbent, 0) < 0.21
    assert facade.runhistory.finished < 20


@pytest.mark.parametrize("seed", range(5))
def test_also_in_the_middle_of_a_later_race(
    seed: int, make_scenario: Callable[..., Scenario]
) -> None:
    scenario = make_scenario(
        n_trials=5000, termination_cost_threshold=0.002, deterministic=True, seed=seed
    )
    facade = quiet(scenario, exact)
    incumbent = facade.optimize()
    assert exact(incumbent, 0) < 0.002
    assert facade.runhistory.finished < 5000


def test_but_not_for_a_low_cost_on_an_easy_instance(make_scenario: Callable[..., Scenario]) -> None:
    def target(config: Configuration, instance: str, seed: int) -> float:
        return exact(config, 0) + int(instance) % 2

    scenario = make_scenario(
        n_trials=2000,
        instances=[str(number) for number in range(30)],
        deterministic=True,
        termination_cost_threshold=0.003,
    )
    facade = quiet(scenario, target)
    incumbent = facade.optimize()
    intensifier = facade.intensifier
    assert intensifier.engine.leader is not None
    assert incumbent == intensifier.configurations[intensifier.engine.leader]
    assert facade.runhistory.finished < 2000


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("target", [noisy, exact])
def test_trajectories_go_down(
    target: Callable[..., Any], seed: int, make_scenario: Callable[..., Scenario]
) -> None:
    facade = quiet(make_scenario(n_trials=300, seed=seed), target)
    incumbent = facade.optimize()
    trajectory = facade.intensifier.trajectory
    for before, after in itertools.pairwise(trajectory):
        assert after.costs[0] <= before.costs[0]
        assert after.trial >= before.trial
        assert after.config_ids != before.config_ids
    assert trajectory[-1].config_ids == [facade.runhistory.get_config_id(incumbent)]
    reported = [lead.best for lead in Run.of(facade).leads]
    assert [item.costs[0] for item in trajectory] == pytest.approx(reported)
    assert facade.intensifier.incumbents_changed == len(trajectory)


def test_optimizer_reset_starts_anew(make_scenario: Callable[..., Scenario]) -> None:
    facade = quiet(make_scenario(), noisy)
    first = facade.optimize()
    facade.optimizer.reset()
    assert facade.runhistory.empty()
    assert facade.intensifier.get_incumbent() is None
    assert facade.optimize() == first
    assert facade.runhistory.finished == 60
    assert len(races_of(facade.scenario)) == facade.intensifier.n_races


# --- going on ---------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"proposals": "learned"}])
@pytest.mark.parametrize("after", [5, 61, 130])
def test_interrupted_it_goes_on(options: dict[str, Any], after: int, tmp_path: Path) -> None:
    whole = quiet(a_scenario(tmp_path / "whole", n_trials=160), noisy, **options)
    whole.optimize()
    callbacks = [Stop(after)]
    first = quiet(a_scenario(tmp_path, n_trials=160), noisy, callbacks=callbacks, **options)
    first.optimize()
    again = quiet(a_scenario(tmp_path, n_trials=160), noisy, **options)
    again.optimize()
    races = [without_times(races_of(facade.scenario)) for facade in (whole, again)]
    assert races[0] == races[1]
    moments = [
        [(item.costs, item.trial) for item in facade.intensifier.trajectory]
        for facade in (whole, again)
    ]
    assert moments[0] == moments[1]
    assert again.intensifier.get_incumbent() == whole.intensifier.get_incumbent()


# --- special cases ---------------------------------------------------------------------------


def test_seeds_that_do_not_matter_are_noticed(make_scenario: Callable[..., Scenario]) -> None:
    """Most scripts leave SMAC's deterministic=False though their target is exact."""
    facade = quiet(make_scenario(n_trials=200), exact)
    incumbent = facade.optimize()
    configs = facade.runhistory.get_configs()
    assert len(configs) > 150
    assert incumbent == min(configs, key=lambda config: exact(config, 0))


@pytest.mark.parametrize("n", [2, 10])
@pytest.mark.parametrize("deterministic", [True, False])
def test_few_instances(n: int, deterministic: bool, make_scenario: Callable[..., Scenario]) -> None:
    calls: Counter[tuple[float, str, int]] = Counter()

    def target(config: Configuration, instance: str, seed: int) -> float:
        calls[config["x"], instance, seed] += 1
        return on_instance(config, instance, seed)

    names = [f"fold {i}" for i in range(n)]
    scenario = make_scenario(n_trials=200, instances=names, deterministic=deterministic)
    facade = quiet(scenario, target)
    incumbent = facade.optimize()
    assert facade.runhistory.finished == sum(calls.values()) == 200
    assert set(calls.values()) == {1}
    assert len(facade.runhistory.get_configs()) > 50
    assert abs(incumbent["x"] - 0.3) < 0.15
    met = {key.instance for key in facade.runhistory.get_trials(incumbent)}
    assert len(met) >= n / 2


def test_a_space_of_five(make_scenario: Callable[..., Scenario]) -> None:
    space = ConfigurationSpace({"x": [0.1, 0.2, 0.3, 0.4, 0.5]})
    settings = {"configspace": space, "instances": ["a", "b", "c"], "deterministic": True}
    facade = quiet(
        make_scenario(n_trials=100, **settings), lambda config, instance, seed: exact(config, seed)
    )
    assert facade.optimize()["x"] == 0.3
    assert len(facade.runhistory.get_configs()) == 5
    assert facade.runhistory.finished <= 15
    assert "every configuration of the space" in facade.intensifier.finished


# --- the simulation --------------------------------------------------------------------------


def a_table(seed: int, n_configs: int = 300, n_instances: int = 20) -> RuntimeTable:
    rng = np.random.default_rng(seed)
    size = (n_configs, n_instances)
    costs = rng.uniform(0.5, 2.0, size=(n_configs, 1)) + rng.uniform(0.0, 1.0, size=size)
    return RuntimeTable(costs, cutoff=3.5)


def named_space(n_configs: int) -> ConfigurationSpace:
    return ConfigurationSpace({"row": [f"{row}" for row in range(n_configs)]}, seed=0)


class Rows:
    """The rows of a table that the plugin's configurations stand for: drawn in the same order."""

    def __init__(self, facade: ACBandFacade, drawn: tuple[int, ...]) -> None:
        configurations = facade.intensifier.configurations
        self._rows = {configurations[i]["row"]: row for i, row in enumerate(drawn)}

    def __getitem__(self, config: Configuration) -> int:
        return self._rows[config["row"]]


@pytest.mark.parametrize("n_instances", [1, 3, 20])
@pytest.mark.parametrize("options", [{}, {"k": 4}, {"memory": False}])
@pytest.mark.parametrize("seed", [0, 1])
def test_the_simulation_finds_the_same_by_cost(
    n_instances: int, options: dict[str, Any], seed: int, tmp_path: Path
) -> None:
    table = a_table(seed, n_instances=n_instances)
    simulated = simulate_run(table, n_trials=150, seed=seed, **options)
    scenario = a_scenario(
        tmp_path,
        configspace=named_space(table.n_configs),
        instances=[f"{column}" for column in range(table.n_instances)],
        deterministic=True,
        n_trials=150,
        seed=seed,
    )

    def target(config: Configuration, instance: str, seed: int) -> float:
        return float(table.runtimes[rows[config], int(instance)])

    facade = quiet(scenario, target, **options)
    rows = Rows(facade, simulated.configurations)
    incumbent = facade.optimize()
    assert rows[incumbent] == simulated.incumbent
    if not options.get("memory", True):
        return
    assert facade.runhistory.finished == simulated.n_trials
    changes = [facade.runhistory.get_config(i.config_ids[0]) for i in facade.intensifier.trajectory]
    assert [rows[config] for config in changes] == [row for _, row in simulated.trajectory]


@pytest.mark.parametrize("n_instances", [3, 20])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_simulation_finds_the_same_in_races(
    n_instances: int, seed: int, tmp_path: Path
) -> None:
    """Run times are never exact, so the races are asked for and told as a table has them."""
    table = a_table(seed, n_instances=n_instances)
    simulated = simulate_run(table, cpu_limit=1e9, n_trials=150, seed=seed)
    scenario = a_scenario(
        tmp_path,
        configspace=named_space(table.n_configs),
        instances=[f"{column}" for column in range(table.n_instances)],
        deterministic=True,
        n_trials=150,
        seed=seed,
        walltime_limit=1e9,
        trial_walltime_limit=table.cutoff,
    )
    facade = quiet(scenario, None, racing=True)
    rows = Rows(facade, simulated.configurations)
    n_trials = play_races(
        facade, lambda info: table.runtimes[rows[info.config], int(info.instance)]
    )
    assert rows[only(facade.intensifier.get_incumbent())] == simulated.incumbent
    assert n_trials == simulated.n_trials


def play_races(facade: ACBandFacade, seconds_of: Any) -> int:
    """Ask for whole races and tell what a runner would; return how many trials there were."""
    n_trials = 0
    while True:
        try:
            racers = [facade.ask()]
        except RunFinishedError:
            return n_trials
        racers += [facade.ask() for _ in range(racers[0].additional_info["n_racers"] - 1)]
        n_trials += len(racers)
        times = [float(seconds_of(info)) for info in racers]
        for info, value in zip(racers, raced(facade, racers, times), strict=True):
            facade.tell(info, value, save=False)


def raced(facade: ACBandFacade, racers: list[TrialInfo], times: list[float]) -> list[TrialValue]:
    cutoff = float(facade.scenario.trial_walltime_limit or np.inf)
    to_the_end = racers[0].additional_info["to_the_end"]
    limits = [min(cutoff, info.additional_info["limit"] or cutoff) for info in racers]
    finished = [t for t, limit in zip(times, limits, strict=True) if t < cutoff and t <= limit]
    best = np.inf if to_the_end else min(finished, default=np.inf)
    values = []
    for time, limit in zip(times, limits, strict=True):
        if time < cutoff and time <= min(limit, best):
            values.append(TrialValue(cost=time, time=time))
        else:
            end, cost = ("lost", min(limit, best))
            if limit >= cutoff and best == np.inf:
                end, cost = "cutoff", 10 * cutoff
            values.append(
                TrialValue(
                    cost=cost,
                    time=min(limit, best),
                    status=StatusType.TIMEOUT,
                    additional_info={"end": end},
                )
            )
    return values


# --- ask and tell ----------------------------------------------------------------------------


@pytest.mark.parametrize("n_trials", [5, 60, 200])
def test_a_plain_loop_of_ask_and_tell_goes_to_the_end(n_trials: int, tmp_path: Path) -> None:
    facade = quiet(a_scenario(tmp_path, n_trials=n_trials), None)
    for _ in range(n_trials):
        info = facade.ask()
        facade.tell(info, TrialValue(cost=noisy(info.config, info.seed)))
    whole = quiet(a_scenario(tmp_path / "whole", n_trials=n_trials), noisy)
    assert facade.intensifier.get_incumbent() == whole.optimize()
