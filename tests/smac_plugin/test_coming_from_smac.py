"""One test for each sentence of the README's paragraph "Coming from SMAC"."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from ConfigSpace import Configuration, ConfigurationSpace, Float, Normal
from smac import HyperparameterOptimizationFacade, RandomFacade, Scenario
from smac.callback import Callback
from smac.main.smbo import SMBO
from smac.runhistory.dataclasses import TrialInfo, TrialValue
from targets import a_scenario, exact, noisy, on_instance, only

from acband_configspace import ACBandFacade, ACBandIntensifier
from acband_configspace.errors import OutcomesNeededError, RunFinishedError

FACADES = [ACBandFacade, RandomFacade]


def quiet(scenario: Scenario, target: Any, **options: Any) -> ACBandFacade:
    return ACBandFacade(scenario, target, logging_level=False, **options)


class Told(Callback):
    """Counts what it is told of."""

    def __init__(self) -> None:
        self.n_told = 0

    def on_tell_end(self, smbo: SMBO, info: TrialInfo, value: TrialValue) -> bool | None:
        self.n_told += 1
        return None


@pytest.mark.parametrize("facade", FACADES)
def test_optimize_runhistory_trajectory_and_callbacks_are_the_same(
    facade: Any, tmp_path: Path
) -> None:
    told = Told()
    smac = facade(a_scenario(tmp_path), noisy, callbacks=[told], logging_level=False)
    incumbent = only(smac.optimize())
    assert smac.runhistory.finished == told.n_told == 60
    last = smac.intensifier.trajectory[-1]
    assert smac.runhistory.get_config(last.config_ids[0]) == incumbent
    assert incumbent in smac.runhistory.get_configs()


@pytest.mark.parametrize("facade", FACADES)
def test_ask_and_tell_are_the_same(facade: Any, tmp_path: Path) -> None:
    smac = facade(a_scenario(tmp_path), noisy, logging_level=False)
    for _ in range(20):
        info = smac.ask()
        smac.tell(info, TrialValue(cost=noisy(info.config, info.seed), time=0.1))
    assert smac.runhistory.finished == 20
    assert isinstance(smac.intensifier.get_incumbent(), Configuration)


def test_priors_of_the_space_are_honoured(tmp_path: Path) -> None:
    space = ConfigurationSpace(seed=1)
    space.add(Float("x", (0.0, 1.0), distribution=Normal(0.8, 0.02), default=0.8))
    facade = quiet(a_scenario(tmp_path, configspace=space), exact)
    facade.optimize()
    drawn = [config["x"] for config in facade.runhistory.get_configs()]
    assert len(drawn) > 20
    assert all(0.6 < x < 1.0 for x in drawn)  # ten standard deviations


def test_additional_configs_race_from_the_start(tmp_path: Path) -> None:
    scenario = a_scenario(tmp_path)
    best = Configuration(scenario.configspace, {"x": 0.3, "n": 7})
    design = ACBandFacade.get_initial_design(scenario, additional_configs=[best])
    facade = quiet(scenario, exact, initial_design=design)
    assert any(facade.ask().config == best for _ in range(4))
    assert only(facade.optimize()) == best


@pytest.mark.parametrize("racing", [False, True])
def test_so_do_those_of_an_intensifier_made_before(racing: bool, tmp_path: Path) -> None:
    scenario = a_scenario(tmp_path, n_workers=2)
    mine, designed = (Configuration(scenario.configspace, {"x": x, "n": 7}) for x in (0.3, 0.4))
    intensifier = ACBandIntensifier(scenario, additional_configs=[mine])
    design = ACBandFacade.get_initial_design(scenario, additional_configs=[designed])
    facade = quiet(scenario, exact, intensifier=intensifier, initial_design=design, racing=racing)
    given = [facade.intensifier.configurations[number] for number in range(3)]
    assert facade.intensifier.n_given == 3
    assert given[1:] == [mine, designed]


def test_the_best_of_a_warm_start_race_and_are_not_run_again(tmp_path: Path) -> None:
    earlier = quiet(a_scenario(tmp_path / "earlier"), noisy)
    incumbent = only(earlier.optimize())
    known = {(key.instance, key.seed) for key in earlier.runhistory.get_trials(incumbent)}
    runs: list[tuple[dict[str, Any], int | None]] = []

    def target(config: Configuration, seed: int | None) -> float:
        runs.append((dict(config), seed))
        return noisy(config, seed)

    run = earlier.scenario.output_directory
    later = quiet(a_scenario(tmp_path / "later"), target, warm_start=run)
    later.optimize()
    assert later.runhistory.has_config(incumbent)
    assert len(runs) == 60
    assert not [
        seed for config, seed in runs if config == dict(incumbent) and (None, seed) in known
    ]


def test_ask_says_where_results_must_come_first_and_that_all_is_over(tmp_path: Path) -> None:
    facade = quiet(a_scenario(tmp_path, n_trials=30), noisy)
    open_trials: list[TrialInfo] = []

    def ask_on() -> None:
        while True:
            open_trials.append(facade.ask())

    with pytest.raises(OutcomesNeededError):
        ask_on()
    for info in open_trials:
        facade.tell(info, TrialValue(cost=noisy(info.config, info.seed), time=0.1))
    facade.optimize()
    with pytest.raises(RunFinishedError):
        facade.ask()


def test_validate_waits_for_all_and_is_a_number_with_trials(tmp_path: Path) -> None:
    scenario = a_scenario(tmp_path, instances=["a", "b"], deterministic=True, n_workers=2)
    facade = quiet(scenario, on_instance)
    config = scenario.configspace.get_default_configuration()
    value = facade.validate(config, instances=["c", "d"])
    assert [trial.instance for trial in value.trials] == ["c", "d"]
    costs = [on_instance(config, trial.instance, trial.seed) for trial in value.trials]
    assert value == pytest.approx(sum(costs) / 2)


def test_workers_are_processes_of_our_own(tmp_path: Path) -> None:
    facade = quiet(a_scenario(tmp_path, n_workers=2), noisy)
    alone = quiet(a_scenario(tmp_path / "alone"), noisy)
    assert only(facade.optimize()) == only(alone.optimize())
    assert "dask" not in type(facade._runner).__module__.lower()


@pytest.mark.parametrize("deterministic", [True, False])
def test_an_instance_used_again_has_a_new_seed_unless_one_result_is_enough(
    deterministic: bool, tmp_path: Path
) -> None:
    scenario = a_scenario(tmp_path, instances=["a", "b"], deterministic=deterministic, n_trials=100)
    facade = quiet(scenario, on_instance)
    facade.optimize()
    seeds: dict[tuple[int, str | None], set[int | None]] = defaultdict(set)
    for key in facade.runhistory:
        seeds[key.config_id, key.instance].add(key.seed)
    most = max(len(each) for each in seeds.values())
    assert most == 1 if deterministic else most > 1


def test_the_intensifier_works_in_a_facade_of_smacs_own(tmp_path: Path) -> None:
    scenario = a_scenario(tmp_path, n_trials=30)
    stock = HyperparameterOptimizationFacade(
        scenario, noisy, intensifier=ACBandIntensifier(scenario), logging_level=False
    )
    stock.optimize()
    assert stock.runhistory.finished == 30


@pytest.mark.parametrize(
    "refused",
    [
        {"min_budget": 1, "max_budget": 9},
        {"objectives": ["loss", "time"]},
        {"adaptive_capping": True, "runtime_cutoff": 5},
    ],
)
def test_what_has_no_meaning_is_refused_by_name(refused: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="|".join(refused)):
        quiet(a_scenario(tmp_path, **refused), noisy)
