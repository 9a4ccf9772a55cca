"""A warm start: what is known is used, and not run again."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ConfigSpace import Configuration
from smac import RandomFacade, Scenario
from smac.runhistory.dataclasses import TrialInfo, TrialValue
from smac.runhistory.runhistory import RunHistory
from targets import Counted, a_scenario, exact, n_calls, noisy, on_instance, races_of

from acband_configspace import ACBandFacade
from acband_configspace.core.earlier import best_known
from acband_configspace.core.instances import InstanceKey
from acband_configspace.runlog.replay import Run
from acband_configspace.smac_plugin.progress import Progress

GOOD = {"x": 0.3, "n": 1}


def quiet(scenario: Scenario, target: Callable[..., float], **options: Any) -> ACBandFacade:
    return ACBandFacade(scenario, target, logging_level=False, **options)


def trials_of(facade: ACBandFacade) -> set[tuple[Any, ...]]:
    configs = facade.runhistory.ids_config
    return {(tuple(configs[k.config_id].items()), k.instance, k.seed) for k in facade.runhistory}


def test_a_list_of_results_is_used_and_not_run_again(tmp_path: Path) -> None:
    calls = tmp_path / "calls"
    scenario = a_scenario(tmp_path, deterministic=True, n_trials=20)
    target = Counted(exact, calls)
    facade = quiet(
        scenario, target, warm_start=[(GOOD, None, 0, 0.0), ({"x": 0.9, "n": 2}, None, 0, 0.6)]
    )
    incumbent = facade.optimize()
    assert dict(incumbent) == GOOD
    assert n_calls(calls) == 20  # a warm start takes nothing of n_trials
    assert not any(json.loads(line)[0] == GOOD for line in calls.read_text().splitlines())
    assert facade.runhistory.get_cost(incumbent) == 0.0
    assert len(facade.runhistory) == 22


def test_a_result_that_is_there_twice_counts_once(tmp_path: Path) -> None:
    calls = tmp_path / "calls"
    target = Counted(exact, calls)
    scenario = a_scenario(tmp_path, deterministic=True, n_trials=20)
    facade = quiet(scenario, target, warm_start=[(GOOD, None, 0, 0.0)] * 9)
    facade.optimize()
    assert n_calls(calls) == 20
    assert len(facade.runhistory) == 21


def test_a_known_time_is_the_time_to_beat(tmp_path: Path) -> None:
    scenario = a_scenario(tmp_path, deterministic=True, instances=["a", "b"])
    warm = [(GOOD, "a", 0, 0.25), ({"x": 0.9, "n": 2}, "a", 0, 0.5)]
    facade = quiet(scenario, on_instance, racing=True, k=4, warm_start=warm)
    asked = [facade.ask() for _ in range(2)]
    assert {info.instance for info in asked} == {"a"}
    assert [info.additional_info["limit"] for info in asked] == [0.25, 0.25]
    costs = quiet(a_scenario(tmp_path / "costs", instances=["a"]), on_instance, warm_start=warm)
    assert costs.ask().additional_info["limit"] is None  # a cost is no time


def test_results_of_a_run_that_was_overwritten_are_not_taken_in(tmp_path: Path) -> None:
    """Nor if the new one is killed before it has saved anything itself."""

    def start(**options: Any) -> ACBandFacade:
        return quiet(a_scenario(tmp_path), noisy, warm_start=[(GOOD, None, 0, 0.0)], **options)

    start().optimize()
    assert len(start(overwrite=True).runhistory) == 1
    assert len(start().runhistory) == 1


def test_results_without_seeds_are_repetitions(tmp_path: Path) -> None:
    earlier = [(GOOD, None, None, 0.1), (GOOD, None, None, 0.2), (GOOD, None, None, 0.6)]
    facade = quiet(a_scenario(tmp_path), noisy, warm_start=earlier)
    assert {key.seed for key in facade.runhistory} == {0, 1, 2}
    (good,) = facade.runhistory.get_configs()
    assert facade.runhistory.get_cost(good) == pytest.approx(0.3)


def test_what_is_shown_counts_new_trials_only(tmp_path: Path) -> None:
    earlier = [(GOOD, None, seed, 0.1) for seed in range(400)]
    facade = quiet(a_scenario(tmp_path), noisy, warm_start=earlier)
    begun = Progress.of(facade.optimizer)
    assert (begun.n_trials, begun.most_trials, begun.share) == (0, 60, 0.0)
    assert facade.schedule.n_trials == 60
    facade.optimize()
    assert Progress.of(facade.optimizer).n_trials == len(facade.runhistory) - 400 <= 60
    assert all(item.trial <= 60 for item in facade.intensifier.trajectory)
    assert all(race.n_trials <= 60 for race in Run.of(facade).races)


def test_the_papers_schedule_is_planned_for_the_trials_that_there_are(tmp_path: Path) -> None:
    earlier = [(GOOD, None, seed, 0.1) for seed in range(400)]
    scenario = a_scenario(tmp_path, n_trials=200)
    facade = quiet(scenario, noisy, warm_start=earlier, memory=False)
    assert facade.schedule.n_trials <= 200
    facade.optimize()
    assert len(facade.runhistory) - 400 <= 200
    assert "leaves no room" not in str(facade.intensifier.finished)


@pytest.mark.parametrize("deterministic", [True, False])
def test_all_trials_are_used_also_if_little_of_it_is_met(
    deterministic: bool, tmp_path: Path
) -> None:
    names = [f"i{number}" for number in range(60)]
    settings = {"instances": names, "deterministic": deterministic, "n_trials": 150}
    earlier = [(GOOD, name, 0, 9.0) for name in names]
    for n_trials in (150, 180):  # the second time the run goes on
        scenario = a_scenario(tmp_path, **{**settings, "n_trials": n_trials})
        facade = quiet(scenario, on_instance, warm_start=earlier)
        facade.optimize()
        assert len(facade.runhistory) - len(earlier) == n_trials
        assert facade.intensifier.finished == f"all n_trials={n_trials} trials are used"
        assert Run.of(facade).problem is None


def test_costs_of_several_objectives_are_refused(tmp_path: Path) -> None:
    scenario = a_scenario(tmp_path)
    history = RunHistory()
    config = scenario.configspace.get_default_configuration()
    history.add(config, cost=[1.0, 2.0], seed=0)
    with pytest.raises(ValueError, match="must hold costs of one objective but got"):
        quiet(scenario, noisy, warm_start=history)


def test_a_run_whose_costs_mean_something_else_is_refused(tmp_path: Path) -> None:
    def racing(name: str, **options: Any) -> ACBandFacade:
        scenario = a_scenario(tmp_path / name, trial_walltime_limit=5)
        return quiet(scenario, noisy, racing=True, **options)

    run = racing("earlier", par=2.0).scenario.output_directory
    with pytest.raises(ValueError, match=r"a run with the same par, 10.0, but got 2.0"):
        racing("later", warm_start=run)
    with pytest.raises(ValueError, match="a run with the same racing, False, but got True"):
        quiet(a_scenario(tmp_path), noisy, warm_start=run)
    racing("same", par=2.0, warm_start=run)


@pytest.mark.parametrize("by", ["directory", "history"])
@pytest.mark.parametrize("deterministic", [True, False])
def test_an_earlier_run_is_gone_on_with(by: str, deterministic: bool, tmp_path: Path) -> None:
    names = [f"i{number}" for number in range(12)]
    settings = {"instances": names, "deterministic": deterministic, "n_trials": 150}
    first = quiet(a_scenario(tmp_path / "first", **settings), on_instance)
    best = first.optimize()
    source = first.scenario.output_directory if by == "directory" else first.runhistory
    run: list[tuple[Any, ...]] = []

    def target(config: Configuration, instance: str, seed: int) -> float:
        run.append((tuple(config.items()), instance, None if deterministic else seed))
        return on_instance(config, instance, seed)

    scenario = a_scenario(tmp_path / "second", **{**settings, "seed": 8})
    second = quiet(scenario, target, warm_start=source)
    found = second.optimize()
    assert 140 <= len(run) <= 150
    known = {(c, i, None if deterministic else s) for c, i, s in trials_of(first)}
    assert not known & set(run)
    # The earlier incumbent takes part with what is known of it, and is not worse in the end.
    assert second.runhistory.get_cost(Configuration(scenario.configspace, values=dict(best))) < 1
    assert second.validate(found) <= second.validate(best) + 0.05
    racers = {number for race in races_of(second.scenario) for number in race.racers}
    assert second.intensifier.configurations.number_of(best) in racers


def test_a_run_of_one_of_smacs_facades_is_taken_too(tmp_path: Path) -> None:
    theirs = RandomFacade(a_scenario(tmp_path / "smac", n_trials=15), noisy, logging_level=False)
    theirs.optimize()
    directory = theirs.scenario.output_directory
    facade = quiet(a_scenario(tmp_path / "ours"), noisy, warm_start=directory)
    facade.optimize()
    assert facade.intensifier.n_given > 2
    assert facade.runhistory.finished > 60


def test_killed_and_started_again_it_goes_on(tmp_path: Path) -> None:
    earlier = [(GOOD, None, 0, 0.0)]
    calls = tmp_path / "calls"
    scenario = a_scenario(tmp_path, n_trials=30)
    interrupted = Counted(noisy, calls, signal_at=12, number=2)
    with pytest.raises(KeyboardInterrupt):
        quiet(scenario, interrupted, warm_start=earlier).optimize()
    facade = quiet(a_scenario(tmp_path, n_trials=30), noisy, warm_start=earlier)
    assert len(facade.runhistory) >= 2
    facade.optimize()
    assert facade.runhistory.finished == 31


@pytest.mark.parametrize("name", ["run", None])
def test_a_run_goes_on_though_its_source_has_grown_meanwhile(
    name: str | None, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def first(n_trials: int) -> ACBandFacade:
        return quiet(a_scenario(tmp_path / "first", n_trials=n_trials), noisy)

    def second(n_trials: int) -> ACBandFacade:
        own = a_scenario(tmp_path / "second", name=name, n_trials=n_trials, seed=8)
        return quiet(own, noisy, warm_start=source)

    source = first(40).scenario.output_directory
    first(40).optimize()
    before = second(30)
    before.optimize()
    first(200).optimize()
    source = source.rename(tmp_path / "elsewhere")
    assert "warm_start has changed" not in caplog.text
    again = second(60)
    assert "warm_start has changed" in caplog.text
    assert again.scenario.output_directory == before.scenario.output_directory
    assert again.intensifier.n_races >= before.intensifier.n_races > 0
    assert again.intensifier.n_warm == before.intensifier.n_warm
    again.optimize()
    assert 30 < again.intensifier.n_finished <= 60
    assert again.intensifier.finished is not None


def test_another_list_of_results_is_another_source(tmp_path: Path) -> None:
    def start(cost: float) -> ACBandFacade:
        return quiet(a_scenario(tmp_path, name=None), noisy, warm_start=[(GOOD, None, 0, cost)])

    directories = [start(cost).scenario.output_directory for cost in (0.0, 0.0, 0.1)]
    assert directories[0] == directories[1] != directories[2]


@pytest.mark.parametrize(
    ("source", "error", "message"),
    [
        ([({"y": 1}, None, 0, 1.0)], ValueError, "configurations of the scenario's space but got"),
        ([(GOOD, None, 1.0)], TypeError, "must hold .configuration, instance, seed, cost. but got"),
        ([(GOOD, None, 0, "cheap")], TypeError, "cost must be one real number but got 'cheap'"),
        ("nowhere", ValueError, "must be the directory of a run but nowhere has neither"),
        (7, TypeError, "must be a run's directory, a RunHistory or a list"),
    ],
)
def test_what_is_no_warm_start_is_refused(
    source: Any, error: type[Exception], message: str, tmp_path: Path
) -> None:
    with pytest.raises(error, match=message):
        quiet(a_scenario(tmp_path), noisy, warm_start=source)


def test_results_of_other_instances_are_counted_in_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    scenario = a_scenario(tmp_path, instances=["a", "b"])
    facade = quiet(scenario, on_instance, warm_start=[(GOOD, "a", 1, 0.1), (GOOD, "z", 1, 0.1)])
    assert "1 result of other instances left out" in caplog.text
    assert len(facade.runhistory) == 1


def test_few_results_are_trusted_less() -> None:
    steady = dict.fromkeys(range(9), 1.0)
    lucky = {0: 0.9}
    bad = dict.fromkeys(range(9), 3.0)
    assert best_known({1: bad, 2: lucky, 3: steady}, most=2) == [3, 2]
    assert best_known({1: {0: float("inf")}, 2: bad}, most=5) == [2, 1]


def test_costs_that_nobody_else_has_are_set_beside_those_of_the_same_instance() -> None:
    costs = {1: ("hard", 11.0), 2: ("hard", 9.0), 3: ("easy", 1.2), 4: ("easy", 0.8)}
    known = {number: {InstanceKey(name, number): cost} for number, (name, cost) in costs.items()}
    assert best_known(known, most=4) == [2, 4, 3, 1]
    assert best_known({1: {"a": 3.0}, 2: {"b": 2.0}, 3: {"c": 1.0}}, most=2) == [3, 2]


@pytest.mark.parametrize("first", ["default", "random"])
def test_the_default_is_warm_only_where_it_races_anyway(first: str, tmp_path: Path) -> None:
    default = {"x": 0.5, "n": 50}
    good = [({"x": 0.1 + number / 1000, "n": 1}, None, 0, 0.1) for number in range(20)]
    facade = quiet(
        a_scenario(tmp_path), noisy, first=first, warm_start=[*good, (default, None, 0, 9.0)]
    )
    told = [dict(trial.config) for trial in facade.intensifier.told]
    assert (default in told) == (first == "default")


def test_the_schedule_of_one_instance_has_every_trial_for_a_new_configuration(
    tmp_path: Path,
) -> None:
    facade = quiet(a_scenario(tmp_path, deterministic=True, n_trials=120), exact)
    assert facade.schedule.n_configs == 120
    facade.optimize()
    assert len(facade.runhistory.get_configs()) == 120


def test_what_was_told_in_the_place_of_a_known_result_is_no_other_source(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def start() -> ACBandFacade:
        return quiet(a_scenario(tmp_path), noisy, warm_start=[(GOOD, None, 0, 1.0)])

    facade = start()
    config = Configuration(facade.scenario.configspace, GOOD)
    facade.tell(TrialInfo(config, seed=0), TrialValue(cost=2.0))
    start().optimize()
    start()
    assert "warm_start has changed" not in caplog.text
