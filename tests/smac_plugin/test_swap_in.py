"""What a script written for SMAC's facades does, it does with AC-Band's."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest
from ConfigSpace import Configuration, ConfigurationSpace
from smac import HyperparameterOptimizationFacade, RandomFacade, Scenario
from smac.callback.callback import Callback
from smac.initial_design import (
    AbstractInitialDesign,
    LatinHypercubeInitialDesign,
    RandomInitialDesign,
    SobolInitialDesign,
)
from smac.intensifier.intensifier import Intensifier
from smac.main.smbo import SMBO
from smac.runhistory.dataclasses import TrialInfo, TrialValue
from smac.runhistory.enumerations import StatusType
from smac.runner.abstract_runner import AbstractRunner
from targets import a_scenario, a_space, always_crashing, exact, noisy, only, quiet, races_of

from acband_configspace import ACBandFacade


def test_parts_of_smacs_are_taken_and_named_in_one_warning(
    make_scenario: Callable[..., Scenario], caplog: pytest.LogCaptureFixture
) -> None:
    scenario = make_scenario()
    theirs = HyperparameterOptimizationFacade
    facade = quiet(
        scenario,
        noisy,
        model=theirs.get_model(scenario),
        acquisition_function=theirs.get_acquisition_function(scenario),
        acquisition_maximizer=theirs.get_acquisition_maximizer(scenario),
        random_design=theirs.get_random_design(scenario),
        multi_objective_algorithm=theirs.get_multi_objective_algorithm(scenario),
        runhistory_encoder=RandomFacade.get_runhistory_encoder(scenario),
        config_selector=theirs.get_config_selector(scenario),
    )
    (said,) = [r.getMessage() for r in caplog.records if "ignores" in r.getMessage()]
    assert "model, acquisition_function, acquisition_maximizer, random_design" in said
    assert facade.optimize() is not None


def test_an_intensifier_of_smacs_is_named_in_the_warning(
    make_scenario: Callable[..., Scenario], caplog: pytest.LogCaptureFixture
) -> None:
    scenario = make_scenario()
    quiet(scenario, noisy, intensifier=Intensifier(scenario, max_config_calls=3))
    assert "ACBandFacade ignores intensifier" in caplog.text


def test_crashes_alone_can_be_gone_on_with(make_scenario: Callable[..., Scenario]) -> None:
    facade = quiet(make_scenario(), always_crashing, allow_crashes=True)
    assert facade.optimize() is None
    assert facade.runhistory.finished == 60


def test_static_methods_take_smacs_arguments(
    make_scenario: Callable[..., Scenario], caplog: pytest.LogCaptureFixture
) -> None:
    scenario = make_scenario()
    intensifier = ACBandFacade.get_intensifier(
        scenario, max_config_calls=3, max_incumbents=2, eta=3, k=4
    )
    assert "get_intensifier ignores max_config_calls, max_incumbents, eta" in caplog.text
    added = scenario.configspace.sample_configuration(2)
    design = ACBandFacade.get_initial_design(
        scenario, n_configs=5, max_ratio=0.5, additional_configs=added
    )
    assert "get_initial_design ignores n_configs, max_ratio" in caplog.text
    ACBandFacade.get_model(scenario, n_trees=5)
    ACBandFacade.get_acquisition_function(scenario, xi=0.1)
    ACBandFacade.get_acquisition_maximizer(scenario, challengers=10)
    ACBandFacade.get_random_design(scenario, probability=0.5)
    ACBandFacade.get_config_selector(scenario, retries=4)
    facade = quiet(scenario, noisy, intensifier=intensifier, initial_design=design)
    assert facade.schedule.k == 4
    assert facade.intensifier.n_given == 3
    with pytest.raises(TypeError, match="'n_config'"):
        ACBandFacade.get_initial_design(scenario, n_config=5)
    with pytest.raises(TypeError, match="max_calls"):
        ACBandFacade.get_intensifier(scenario, max_calls=3)


@pytest.mark.parametrize("design", [SobolInitialDesign, LatinHypercubeInitialDesign])
def test_a_users_design_races_from_the_start(
    design: type[AbstractInitialDesign], make_scenario: Callable[..., Scenario]
) -> None:
    scenario = make_scenario(n_trials=100)
    sampled = design(scenario, n_configs=7).select_configurations()
    facade = quiet(scenario, noisy, initial_design=design(scenario, n_configs=7))
    facade.optimize()
    first_round = [race for race in races_of(facade.scenario) if race.id[:3] == (1, 1, 1)]
    raced = {n for race in first_round for n in race.racers}
    numbers = {facade.intensifier.configurations.number_of(config) for config in sampled}
    assert numbers <= raced
    assert 0 in raced


def test_a_random_design_is_the_same_when_the_script_is_started_again(tmp_path: Path) -> None:
    def start() -> ACBandFacade:
        space = ConfigurationSpace({"x": (0.0, 1.0), "n": (1, 100)})  # without a seed
        scenario = a_scenario(tmp_path, name="random", configspace=space, n_trials=100)
        design = RandomInitialDesign(scenario, n_configs=5)
        return quiet(scenario, noisy, initial_design=design)

    facade = start()
    incumbent = facade.optimize()
    assert facade.intensifier.n_given == 6
    again = start()  # with others it would be refused
    assert again.intensifier.n_races == facade.intensifier.n_races
    assert again.optimize() == incumbent


def test_an_intensifier_may_serve_one_facade_after_another(tmp_path: Path) -> None:
    scenario = a_scenario(tmp_path, name="mine", n_trials=100)
    intensifier = ACBandFacade.get_intensifier(scenario)
    first = quiet(scenario, noisy, intensifier=intensifier)
    incumbent = first.optimize()
    before = [item.config_ids for item in intensifier.trajectory]
    again = quiet(scenario, noisy, intensifier=intensifier)  # a notebook's cell, run again
    assert again.optimize() == incumbent
    assert [item.config_ids for item in intensifier.trajectory] == before
    anew = quiet(scenario, noisy, intensifier=intensifier, overwrite=True)
    assert anew.optimize() == incumbent
    assert [item.config_ids for item in intensifier.trajectory] == before


def test_an_intensifier_of_the_users_stays_the_one_that_is_used(
    make_scenario: Callable[..., Scenario],
) -> None:
    scenario = make_scenario()
    intensifier = ACBandFacade.get_intensifier(scenario)
    facade = quiet(scenario, noisy, intensifier=intensifier)
    assert facade.intensifier is intensifier
    assert facade.optimize() == intensifier.get_incumbent()


def test_a_space_in_place_of_a_scenario() -> None:
    with pytest.raises(TypeError, match=r"must be a smac.Scenario .* Scenario\(space, n_trials="):
        ACBandFacade(a_space(), noisy)  # type: ignore[arg-type]


def test_two_facades_on_one_scenario_do_not_disturb_each_other(tmp_path: Path) -> None:
    scenario = a_scenario(tmp_path, name=None)
    first = quiet(scenario, noisy)
    second = quiet(scenario, noisy, k=3)
    again = quiet(scenario, noisy)
    assert scenario.name is None
    assert first.scenario.output_directory == again.scenario.output_directory
    assert first.scenario.output_directory != second.scenario.output_directory
    first.optimize()
    second.optimize()
    assert len(races_of(first.scenario)) == first.intensifier.n_races
    assert len(races_of(second.scenario)) == second.intensifier.n_races


def test_a_target_that_changes_directory_leaves_all_files_in_one_place(tmp_path: Path) -> None:
    def target(config: Mapping[str, Any], seed: int) -> float:
        os.chdir(tmp_path / "elsewhere")
        return noisy(config, seed)

    (tmp_path / "elsewhere").mkdir()
    with contextlib.chdir(tmp_path):
        facade = quiet(a_scenario(Path("here")), target)
        facade.optimize()
    directory = tmp_path / "here" / "run" / "3"
    assert facade.scenario.output_directory == directory
    assert not list((tmp_path / "elsewhere").iterdir())
    saved = json.loads((directory / "runhistory.json").read_text())
    assert saved["stats"]["finished"] == 60


def test_the_log_says_each_thing_once(
    make_scenario: Callable[..., Scenario], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level("INFO"):
        quiet(make_scenario(n_workers=2), noisy).optimize()
    said = [record.getMessage() for record in caplog.records]
    assert any("pass 1: " in text and " configurations" in text for text in said)
    assert "Finished 50 trials." in said
    assert len(said) == len(set(said))
    noise = ("Finished 0 trials", "Reducing the number of initial", "Entry was not added")
    assert not [text for text in said if text.startswith(noise)]


def test_results_of_races_that_are_not_over_are_kept(
    make_scenario: Callable[..., Scenario],
) -> None:
    class Stopping(Callback):
        def on_tell_end(self, smbo: SMBO, info: TrialInfo, value: TrialValue) -> bool | None:
            return False if smbo.runhistory.finished == 11 else None

    first = quiet(make_scenario(), exact, callbacks=[Stopping()])
    first.optimize()
    saved = json.loads((first.scenario.output_directory / "runhistory.json").read_text())
    second = quiet(make_scenario(), exact)
    done = {key for key, value in first.runhistory.items() if value.status != StatusType.RUNNING}
    assert saved["stats"]["finished"] == first.runhistory.finished == len(done) == 11
    assert set(second.runhistory) == done
    second.optimize()
    assert len(second.runhistory) == second.runhistory.finished == 60


def test_callbacks_come_in_pairs(make_scenario: Callable[..., Scenario]) -> None:
    class Counting(Callback):
        def __init__(self) -> None:
            self.calls: dict[str, int] = {}

        def __getattribute__(self, name: str) -> Any:
            if name.startswith("on_"):
                calls = super().__getattribute__("calls")
                calls[name] = calls.get(name, 0) + 1
            return super().__getattribute__(name)

    class Following(Callback):
        def __init__(self) -> None:
            self.leaders: list[Configuration] = []

        def on_incumbent_changed(self, smbo: SMBO, config: Configuration) -> None:
            self.leaders.append(config)

    counting, following = Counting(), Following()
    facade = quiet(make_scenario(), exact, callbacks=[counting, following])
    facade.optimize()
    n_configs = len(facade.runhistory.get_configs())
    assert counting.calls["on_next_configurations_start"] == n_configs
    assert counting.calls["on_next_configurations_end"] == n_configs
    assert counting.calls["on_ask_start"] == counting.calls["on_ask_end"] == 60
    assert following.leaders[-1] == facade.intensifier.get_incumbent()
    assert all(a != b for a, b in itertools.pairwise(following.leaders))
    assert counting.calls["on_start"] == counting.calls["on_end"] == 1
    assert counting.calls["on_tell_start"] == counting.calls["on_tell_end"] == 60
    assert counting.calls["on_iteration_start"] == counting.calls["on_iteration_end"]


def data_decide(config: Configuration, seed: int, data_to_scatter: Mapping[str, float]) -> float:
    return float(abs(config["x"] - data_to_scatter["best"]))


def test_data_to_scatter_reaches_the_target_without_a_cluster(tmp_path: Path) -> None:
    facade = quiet(a_scenario(tmp_path, n_workers=2), data_decide)
    best = only(facade.optimize(data_to_scatter={"best": 0.8}))
    assert abs(best["x"] - 0.8) < 0.1
    assert {value.status for value in facade.runhistory.values()} == {StatusType.SUCCESS}


def forks_and_stops(config: Configuration, seed: int) -> float:
    """Stop a child that is in C code, as a target does that has a time limit of its own."""
    arguments = ("sha256", b"a", b"b", 100_000_000)
    child = get_context("fork").Process(target=hashlib.pbkdf2_hmac, args=arguments)
    child.start()
    time.sleep(0.1)
    child.terminate()
    child.join(2)
    is_alive = child.is_alive()
    child.kill()
    return float(is_alive)


def test_a_target_may_stop_what_it_has_forked(tmp_path: Path) -> None:
    facade = quiet(a_scenario(tmp_path, n_trials=3), forks_and_stops)
    facade.optimize()
    assert [value.cost for value in facade.runhistory.values()] == [0.0] * 3


class Behind(AbstractRunner):
    """Has results of which it does not say, once they are there, that anything is running."""

    def __init__(self, scenario: Scenario) -> None:
        super().__init__(scenario, ["seed"])
        self.calls: list[tuple[float, int | None]] = []
        self._is_early = False

    def submit_trial(self, trial_info: TrialInfo) -> None:
        self.calls.append((trial_info.config["x"], trial_info.seed))
        value = TrialValue(cost=noisy(trial_info.config, trial_info.seed))
        self._results_queue.append((trial_info, value))
        self._is_early = True

    def iter_results(self) -> Iterator[tuple[TrialInfo, TrialValue]]:
        if self._is_early:  # who looks at once finds none
            self._is_early = False
            return
        while self._results_queue:
            yield self._results_queue.pop(0)

    def wait(self) -> None:
        raise AssertionError("there is nothing to wait for")

    def is_running(self) -> bool:
        return False

    def count_available_workers(self) -> int:
        return 8

    def run(
        self,
        config: Configuration,
        instance: str | None = None,
        budget: float | None = None,
        seed: int | None = None,
        additional_info: dict[str, Any] | None = None,
    ) -> Any:
        raise AssertionError("trials are submitted")


def test_results_that_are_there_are_not_run_again(tmp_path: Path) -> None:
    scenario = a_scenario(tmp_path)
    runner = Behind(scenario)
    facade = ACBandFacade(scenario, runner, logging_level=False)
    facade.optimize()
    assert len(set(runner.calls)) == len(runner.calls) == 60
    assert facade.runhistory.finished >= 40  # SMAC does not look for the last ones again
