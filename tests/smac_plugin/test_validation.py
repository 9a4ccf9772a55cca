"""Validation: one configuration on many instances, apart from the history of the run."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
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
from targets import PAPER, a_scenario, noisy, often_crashing, on_instance

from acband_configspace import ACBandFacade


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
    assert facade.test_results == {}
    with caplog.at_level("INFO", logger="acband_configspace"):
        incumbent = facade.optimize()
    assert set(facade.test_results) == {"incumbent", "default"}
    for config, result in [
        (incumbent, facade.test_results["incumbent"]),
        (scenario.configspace.get_default_configuration(), facade.test_results["default"]),
    ]:
        assert [trial.instance for trial in result.trials] == ["x", "y", "7"]
        assert result == facade.validate(config, tests)
    assert {key.instance for key in facade.runhistory} == {"a", "b", "c"}
    assert "Mean cost of the incumbent on the test instances: 0." in caplog.text


def test_it_can_be_copied_and_pickled(make_scenario: Callable[..., Scenario]) -> None:
    facade = quiet(make_scenario(instances=["a", "b"]), on_instance)
    validation = facade.validate(facade.scenario.configspace.get_default_configuration())
    for copied in (copy.copy(validation), copy.deepcopy(validation)):
        assert copied == validation
        assert copied.trials == validation.trials
    again = pickle.loads(pickle.dumps(validation))
    assert type(again) is type(validation)
    assert (float(again), again.trials) == (float(validation), validation.trials)
