"""Validation: one configuration on many instances, apart from the history of the run."""

from __future__ import annotations

import copy
import pickle
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from dask.distributed import Client
from smac import Scenario
from smac.callback.callback import Callback
from smac.main.smbo import SMBO
from smac.runhistory import TrialInfo
from smac.runhistory.enumerations import StatusType
from smac.runner.dask_runner import DaskParallelRunner
from smac.runner.target_function_runner import TargetFunctionRunner
from targets import PAPER, a_scenario, noisy, often_crashing, on_instance

from acband_configspace import ACBandFacade
from acband_configspace.runlog.report import html_report
from acband_configspace.smac_plugin.scenario import validation_keys
from acband_configspace.smac_plugin.validation import TestResults


def quiet(scenario: Scenario, target: Callable[..., Any], **options: Any) -> ACBandFacade:
    return ACBandFacade(scenario, target, logging_level=False, **{**PAPER, **options})


@pytest.fixture(params=["serial", "dask"])
def client(request: pytest.FixtureRequest) -> Any:
    return None if request.param == "serial" else request.getfixturevalue("four_workers")


def test_it_waits_for_all_and_leaves_the_history_alone(
    client: Client | None, make_scenario: Callable[..., Scenario]
) -> None:
    names = [f"i{n}" for n in range(25)]
    facade = quiet(make_scenario(instances=names), on_instance, dask_client=client)
    incumbent = facade.optimize()
    before = dict(facade.runhistory)
    validation = facade.validate(incumbent)
    assert [trial.instance for trial in validation.trials] == names
    costs = [trial.value.cost for trial in validation.trials]
    assert costs == [on_instance(incumbent, t.instance, t.seed) for t in validation.trials]
    assert validation == pytest.approx(np.mean(costs))
    assert dict(facade.runhistory) == before
    trained = {(key.instance, key.seed) for key in before}
    assert not trained & {(trial.instance, trial.seed) for trial in validation.trials}


def test_several_take_turns(make_scenario: Callable[..., Scenario]) -> None:
    names, runs = ["a", "b", "c"], []

    def noted(config: Any, instance: str, seed: int) -> float:
        runs.append((config["x"], instance))
        return on_instance(config, instance, seed)

    facade = quiet(make_scenario(instances=names), noted)
    first, second = facade.scenario.configspace.sample_configuration(2)
    one, other, again = facade.validate_all([first, second, dict(first)])
    assert runs == [(config["x"], name) for name in names for config in (first, second)]
    assert one == again == facade.validate(first)
    assert other == facade.validate(second)


def test_on_instances_of_ones_choice(make_scenario: Callable[..., Scenario]) -> None:
    facade = quiet(make_scenario(instances=["a", "b"]), on_instance)
    default = facade.scenario.configspace.get_default_configuration()
    validation = facade.validate(default, ["c", "d", "c"])
    assert [trial.instance for trial in validation.trials] == ["c", "d", "c"]
    assert len({trial.value.cost for trial in validation.trials}) == 3
    assert facade.validate(default, ["c", "d", "c"]) == validation
    assert facade.validate(default, ["c", "d", "c"], seed=9) != validation


@pytest.mark.parametrize(("deterministic", "n"), [(False, 30), (True, 1)])
def test_without_instances_on_fresh_seeds(
    deterministic: bool, n: int, make_scenario: Callable[..., Scenario]
) -> None:
    facade = quiet(make_scenario(deterministic=deterministic), noisy)
    validation = facade.validate(facade.scenario.configspace.get_default_configuration())
    assert len({trial.seed for trial in validation.trials}) == len(validation.trials) == n


def test_before_and_after_the_run_it_says_the_same(make_scenario: Callable[..., Scenario]) -> None:
    facade = quiet(make_scenario(), noisy)
    default = facade.scenario.configspace.get_default_configuration()
    before = facade.validate(default)
    incumbent = facade.optimize()
    assert facade.validate(default) == before
    assert facade.runhistory.finished == facade.schedule.n_trials
    assert facade.intensifier.get_incumbent() == incumbent


def test_a_configuration_may_be_given_by_its_values(
    client: Client | None, make_scenario: Callable[..., Scenario]
) -> None:
    facade = quiet(make_scenario(instances=["a"]), on_instance, dask_client=client)
    default = facade.scenario.configspace.get_default_configuration()
    assert facade.validate(dict(default), instances=["a"]) == facade.validate(default, ["a"])


def test_it_does_not_mix_with_a_run_that_goes_on(make_scenario: Callable[..., Scenario]) -> None:
    class Eager(Callback):
        def on_ask_end(self, smbo: SMBO, info: TrialInfo) -> None:
            if smbo.runhistory.running > 1:
                facade.validate(info.config)

    facade = quiet(make_scenario(n_workers=2), noisy, callbacks=[Eager()])
    with pytest.raises(RuntimeError, match="validate must wait until no trial is running"):
        facade.optimize()


def test_crashes_count_with_their_cost(make_scenario: Callable[..., Scenario]) -> None:
    facade = quiet(make_scenario(crash_cost=10.0), often_crashing)
    validation = facade.validate(facade.scenario.configspace.get_default_configuration())
    crashed = [t for t in validation.trials if t.value.status == StatusType.CRASHED]
    assert 5 < len(crashed) < 25
    assert {trial.value.cost for trial in crashed} == {10.0}
    assert validation > 2


def test_test_instances_make_the_final_report(
    client: Client | None, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    scenario = a_scenario(tmp_path, instances=["a", "b", "c"])
    tests: list[Any] = ["x", "y", 7]
    facade = quiet(scenario, on_instance, test_instances=tests, dask_client=client)
    before = facade.test_results
    with caplog.at_level("INFO", logger="acband_configspace"):
        incumbent = facade.optimize()
    results = facade.test_results
    assert before is None
    default = scenario.configspace.get_default_configuration()
    for config, result in [(incumbent, results.incumbent), (default, results.default)]:
        assert [trial.instance for trial in result.trials] == ["x", "y", "7"]
        assert result == facade.validate(config, tests)
    assert {key.instance for key in facade.runhistory} == {"a", "b", "c"}
    assert results.verdict.incumbent_mean == pytest.approx(float(results.incumbent))
    assert results.verdict.n_instances == 3
    assert str(results) in caplog.text
    assert results.verdict.text in html_report(facade)


def test_a_share_of_the_instances_is_held_back(make_scenario: Callable[..., Scenario]) -> None:
    names = [f"i{number}" for number in range(30)]
    scenario = make_scenario(instances=names, n_trials=200)
    facade = quiet(scenario, on_instance, test_share=0.5)
    facade.optimize()
    trained = {key.instance for key in facade.runhistory}
    assert facade.test_results is not None
    tested = {trial.instance for trial in facade.test_results.incumbent.trials}
    assert len(tested) == 15
    assert trained | tested <= set(names)
    assert not trained & tested
    assert scenario.instances == names
    verdict = facade.test_results.verdict
    assert re.fullmatch(
        r"The incumbent costs \d+ % less than the default \(95 % interval \d+ % to \d+ %\) "
        r"on 15 unseen instances\.",
        verdict.text,
    )
    assert verdict.p_value < 0.01


def test_a_share_holds_for_an_intensifier_of_the_users(
    make_scenario: Callable[..., Scenario],
) -> None:
    scenario = make_scenario(instances=list("abcdefgh"))
    intensifier = ACBandFacade.get_intensifier(scenario, k=3)
    facade = ACBandFacade(
        scenario, on_instance, intensifier=intensifier, test_share=0.25, logging_level=False
    )
    facade.optimize()
    assert len({key.instance for key in facade.runhistory}) <= 6
    assert facade.schedule.k == 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"test_share": 1.0}, "test_share must lie between 0 and 1 but got 1.0"),
        ({"test_share": "half"}, "test_share must be a number but got 'half'"),
        ({"test_share": 0.5, "test_instances": ["x"]}, "test_share must be None"),
    ],
)
def test_shares_that_make_no_sense_are_refused(
    options: dict[str, Any], message: str, make_scenario: Callable[..., Scenario]
) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        quiet(make_scenario(instances=["a", "b"]), on_instance, **options)
    with pytest.raises(ValueError, match="at least two instances but got 0"):
        quiet(make_scenario(), noisy, test_share=0.5)


@pytest.mark.parametrize("n_workers", [1, 2])
def test_instances_reach_the_target_of_a_scenario_without_any(
    n_workers: int, make_scenario: Callable[..., Scenario]
) -> None:
    def cost(config: Any, seed: int, instance: str | None = None) -> float:
        return float(instance or 0)

    facade = quiet(make_scenario(n_workers=n_workers), cost, test_instances=["2", "4"])
    default = facade.scenario.configspace.get_default_configuration()
    assert facade.validate(default, ["2", "4"]) == 3.0
    assert facade.validate(default) == 0.0


@pytest.mark.parametrize("n_workers", [1, 2])
def test_without_instances_the_target_is_told_so_while_it_is_trained(
    n_workers: int, make_scenario: Callable[..., Scenario]
) -> None:
    def cost(config: Any, seed: int, instance: str | None) -> float:
        return abs(config["x"] - 0.3) + (0.0 if instance is None else 5.0)

    facade = quiet(make_scenario(n_workers=n_workers), cost, test_instances=["2", "4"])
    facade.optimize()
    assert facade.test_results is not None
    assert {trial.value.cost >= 5.0 for trial in facade.test_results.incumbent.trials} == {True}
    assert all(value.cost < 5.0 for value in facade.runhistory.values())


@pytest.mark.parametrize("n_workers", [1, 2])
def test_a_target_that_takes_no_instance_is_not_tested_on_any(
    n_workers: int, make_scenario: Callable[..., Scenario]
) -> None:
    with pytest.raises(TypeError, match="must take the argument 'instance'"):
        quiet(make_scenario(n_workers=n_workers), noisy, test_instances=["2", "4"])
    facade = quiet(make_scenario(n_workers=n_workers), noisy)
    default = facade.scenario.configspace.get_default_configuration()
    with pytest.raises(TypeError, match="must take the argument 'instance'"):
        facade.validate(default, ["2", "4"])


def test_crashes_are_failures_whatever_they_cost(make_scenario: Callable[..., Scenario]) -> None:
    facade = quiet(make_scenario(crash_cost=10.0), often_crashing)
    both = facade.validate_all(facade.scenario.configspace.sample_configuration(2))
    own, other = (
        sum(trial.value.status == StatusType.CRASHED for trial in one.trials) for one in both
    )
    verdict = TestResults.of(*both).verdict
    assert min(own, other) > 0
    assert (verdict.incumbent_failures, verdict.default_failures) == (own, other)


def test_a_rehearsal_takes_copies_of_what_it_has_raced(
    make_scenario: Callable[..., Scenario], four_workers: Client
) -> None:
    """As from SMAC's own runner on Dask, which sends configurations to its workers and back."""
    scenario = make_scenario()
    worker = TargetFunctionRunner(scenario, noisy, required_arguments=["seed"])
    runner = DaskParallelRunner(worker, dask_client=four_workers)
    facade = ACBandFacade(scenario, runner, logging_level=False)
    assert facade.check()


def test_it_can_be_copied_and_pickled(make_scenario: Callable[..., Scenario]) -> None:
    facade = quiet(make_scenario(instances=["a", "b"]), on_instance)
    validation = facade.validate(facade.scenario.configspace.get_default_configuration())
    for copied in (copy.copy(validation), copy.deepcopy(validation)):
        assert copied == validation
        assert copied.trials == validation.trials
    again = pickle.loads(pickle.dumps(validation))
    assert type(again) is type(validation)
    assert (float(again), again.trials) == (float(validation), validation.trials)


def test_the_optimizer_validates_as_the_facade_does(make_scenario: Callable[..., Scenario]) -> None:
    """With workers, too: SMAC's own averages what has come in when the last run was submitted."""
    names = [f"i{n}" for n in range(9)]
    facade = quiet(make_scenario(instances=names, n_workers=2), on_instance)
    default = facade.scenario.configspace.get_default_configuration()
    validation = facade.optimizer.validate(default, seed=5)
    seeds = [key.seed for key in validation_keys(facade.scenario, names, 5)]
    assert [(t.instance, t.seed) for t in validation.trials] == list(zip(names, seeds, strict=True))
    costs = [on_instance(default, t.instance, t.seed) for t in validation.trials]
    assert validation == pytest.approx(np.mean(costs))


def by_instance(config: Mapping[str, Any], seed: int, instance: str | None = None) -> float:
    return noisy(config, seed) + float(instance or 0)


def test_a_runner_of_smacs_that_passes_on_no_instance_cannot_test_on_any(tmp_path: Path) -> None:
    scenario = a_scenario(tmp_path)
    runner = TargetFunctionRunner(scenario, by_instance, required_arguments=["seed"])
    with pytest.raises(TypeError, match="the runner must pass on the argument 'instance'"):
        ACBandFacade(scenario, runner, test_instances=["2", "4"], logging_level=False)
    facade = ACBandFacade(scenario, runner, logging_level=False)
    with pytest.raises(TypeError, match="the runner must pass on the argument 'instance'"):
        facade.validate(scenario.configspace.get_default_configuration(), instances=["2"])
    passing = TargetFunctionRunner(scenario, by_instance, required_arguments=["seed", "instance"])
    other = a_scenario(tmp_path / "2")
    facade = ACBandFacade(other, passing, test_instances=["2", "4"], logging_level=False)
    facade.optimize()
    assert facade.test_results is not None
