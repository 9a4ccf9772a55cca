"""ACBandIntensifier in SMAC's own facades, with SMAC's own runners."""

from __future__ import annotations

import stat
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ConfigSpace import Configuration
from dask.distributed import Client
from smac import (
    AlgorithmConfigurationFacade,
    BlackBoxFacade,
    HyperbandFacade,
    HyperparameterOptimizationFacade,
    MultiFidelityFacade,
    RandomFacade,
    Scenario,
)
from smac.callback.callback import Callback
from smac.facade.abstract_facade import AbstractFacade
from smac.intensifier.abstract_intensifier import AbstractIntensifier
from smac.main.smbo import SMBO
from smac.runhistory.dataclasses import TrialInfo, TrialValue
from smac.runhistory.enumerations import StatusType
from targets import (
    PAPER,
    a_scenario,
    always_crashing,
    noisy,
    often_crashing,
    on_instance,
    only,
    trials_of,
)

from acband_configspace import ACBandFacade, ACBandIntensifier
from acband_configspace.errors import FirstRaceCrashedError

STOCK = [
    RandomFacade,
    AlgorithmConfigurationFacade,
    HyperparameterOptimizationFacade,
    HyperbandFacade,
    MultiFidelityFacade,
    BlackBoxFacade,
]


def in_stock(
    facade: type[AbstractFacade],
    scenario: Scenario,
    target: Callable[..., Any] | str,
    *,
    options: dict[str, Any] | None = None,
    **arguments: Any,
) -> AbstractFacade:
    intensifier = ACBandIntensifier(scenario, **PAPER, **(options or {}))
    return facade(scenario, target, intensifier=intensifier, logging_level=False, **arguments)


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> ACBandFacade:
    scenario = a_scenario(tmp_path_factory.mktemp("acband"))
    facade = ACBandFacade(scenario, noisy, logging_level=False, **PAPER)
    facade.optimize()
    return facade


@pytest.mark.parametrize("facade", STOCK)
def test_in_a_stock_facade_it_does_what_it_does_in_its_own(
    facade: type[AbstractFacade], make_scenario: Callable[..., Scenario], reference: Any
) -> None:
    smac = in_stock(facade, make_scenario(), noisy)
    assert isinstance(smac.intensifier, AbstractIntensifier)
    assert smac.optimize() == reference.intensifier.get_incumbent()
    assert trials_of(smac) == trials_of(reference)
    assert smac.runhistory.running == 0
    assert [i.trial for i in smac.intensifier.trajectory] == [
        i.trial for i in reference.intensifier.trajectory
    ]


def test_under_dask_it_does_the_same(
    make_scenario: Callable[..., Scenario], reference: Any, four_workers: Client
) -> None:
    smac = in_stock(RandomFacade, make_scenario(), noisy, dask_client=four_workers)
    assert smac.optimize() == reference.intensifier.get_incumbent()
    assert trials_of(smac) == trials_of(reference)
    assert smac.runhistory.running == 0


def test_with_dask_processes_of_smacs_own_it_does_the_same(
    make_scenario: Callable[..., Scenario], reference: Any
) -> None:
    smac = in_stock(RandomFacade, make_scenario(n_workers=2), noisy)
    try:
        assert smac.optimize() == reference.intensifier.get_incumbent()
        assert trials_of(smac) == trials_of(reference)
    finally:
        smac._runner._client.close()  # at the interpreter's end its workers would be waited for


@pytest.mark.parametrize("facade", [AlgorithmConfigurationFacade, RandomFacade])
def test_with_instances(
    facade: type[AbstractFacade], make_scenario: Callable[..., Scenario]
) -> None:
    names = [f"i{n}" for n in range(100)]
    settings = {"instances": names, "instance_features": {n: [len(n)] for n in names}}
    smac = in_stock(facade, make_scenario(**settings), on_instance)
    incumbent = only(smac.optimize())
    scenario = make_scenario(name="own", **settings)
    own = ACBandFacade(scenario, on_instance, logging_level=False, **PAPER)
    assert own.optimize() == incumbent
    assert trials_of(smac) == trials_of(own)
    assert smac.validate(incumbent) == pytest.approx(own.validate(incumbent))


@pytest.mark.parametrize("facade", [RandomFacade, ACBandFacade])
def test_with_smacs_script_runner(
    facade: type[AbstractFacade],
    make_scenario: Callable[..., Scenario],
    tmp_path: Path,
    reference: Any,
) -> None:
    script = tmp_path / "solver"
    script.write_text(
        "#!/bin/sh\n"
        'for a in "$@"; do case $a in --x=*) x=${a#--x=};; --seed=*) s=${a#--seed=};; esac; done\n'
        '[ -n "$s" ] || exit 1\n'
        "awk -v x=$x 'BEGIN { d = x - 0.3; printf \"cost=%f\", d < 0 ? -d : d }'\n"
    )
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    smac = in_stock(facade, make_scenario(), str(script))
    incumbent = smac.optimize()
    assert {value.status for value in smac.runhistory.values()} == {StatusType.SUCCESS}
    configs = smac.runhistory.get_configs()
    assert incumbent == min(configs, key=lambda config: abs(config["x"] - 0.3))
    assert len(configs) == len(reference.runhistory.get_configs())


def test_a_script_that_fails_is_shown(
    make_scenario: Callable[..., Scenario], tmp_path: Path
) -> None:
    script = tmp_path / "solver"
    script.write_text(f"#!{sys.executable}\nimport sys; sys.exit('no such solver')\n")
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    with pytest.raises(FirstRaceCrashedError, match="no such solver"):
        ACBandFacade(make_scenario(), str(script), logging_level=False).optimize()


def test_crashes_in_a_stock_facade(make_scenario: Callable[..., Scenario]) -> None:
    smac = in_stock(RandomFacade, make_scenario(n_trials=100), often_crashing)
    assert smac.runhistory.min_cost(only(smac.optimize())) < 2
    broken = in_stock(RandomFacade, make_scenario(name="broken"), always_crashing)
    with pytest.raises(FirstRaceCrashedError, match="no licence found"):
        broken.optimize()


def test_a_limit_that_is_met_loses_and_is_no_reason_to_stop(
    make_scenario: Callable[..., Scenario],
) -> None:
    def target(config: Configuration, seed: int) -> float:
        if config["x"] > 0.4:
            time.sleep(30)
        return 0.5

    scenario = make_scenario(n_trials=2, trial_walltime_limit=1, crash_cost=100.0, seed=6)
    smac = ACBandFacade(scenario, target, logging_level=False)
    smac.optimize()
    statuses = {value.status for value in smac.runhistory.values()}
    assert statuses <= {StatusType.TIMEOUT, StatusType.SUCCESS}
    assert StatusType.TIMEOUT in statuses


def test_the_schedule_is_there_without_a_facade(
    make_scenario: Callable[..., Scenario], reference: Any
) -> None:
    intensifier = ACBandIntensifier(make_scenario(), **PAPER)
    assert str(intensifier.schedule) == str(reference.schedule)


def test_reset_forgets_the_run(make_scenario: Callable[..., Scenario], reference: Any) -> None:
    smac = in_stock(RandomFacade, make_scenario(), noisy)
    first = smac.optimize()
    smac.optimizer.reset()
    assert isinstance(smac.intensifier, ACBandIntensifier)
    assert smac.intensifier.n_races == 0
    assert smac.intensifier.get_incumbent() is None
    smac.optimizer._stop = False  # SMAC's own reset leaves it set
    assert smac.optimize() == first == reference.intensifier.get_incumbent()


@pytest.mark.parametrize("seed", [0, 7])
def test_its_own_seed_comes_before_the_scenarios(seed: int, tmp_path: Path) -> None:
    racers = []
    for scenario_seed in (1, 2):
        scenario = a_scenario(tmp_path / str(scenario_seed), seed=scenario_seed)
        smac = in_stock(RandomFacade, scenario, noisy, options={"seed": seed})
        smac.optimize()
        racers.append(trials_of(smac))
    assert racers[0] == racers[1]


def test_20_000_instances_are_no_burden(make_scenario: Callable[..., Scenario]) -> None:
    """SMAC's own intensifiers take seconds before the first trial."""
    names = [f"i{n}" for n in range(20_000)]
    smac = ACBandFacade(make_scenario(instances=names), on_instance, logging_level=False)
    start = time.process_time()
    smac.ask()
    assert time.process_time() - start < 1.0


class Watching(Callback):
    """Notes, after each trial, who leads and who the trajectory says does."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[int, list[int], int]] = []

    def on_tell_end(self, smbo: SMBO, info: TrialInfo, value: TrialValue) -> None:
        leader = smbo.runhistory.get_config_id(only(smbo.intensifier.get_incumbent()))
        trajectory = smbo.intensifier.trajectory
        self.seen.append((leader, trajectory[-1].config_ids, trajectory[-1].trial))


@pytest.mark.parametrize("deterministic", [False, True])
def test_the_last_of_the_trajectory_is_the_incumbent_at_any_moment(
    deterministic: bool, make_scenario: Callable[..., Scenario]
) -> None:
    watching = Watching()
    scenario = make_scenario(deterministic=deterministic)
    facade = ACBandFacade(scenario, noisy, logging_level=False, callbacks=[watching])
    facade.optimize()
    assert len(watching.seen) > 50
    for n_trials, (leader, ids, at) in enumerate(watching.seen, 1):
        assert ids == [leader]
        assert at <= n_trials
    assert facade.intensifier.incumbents_changed == len(facade.intensifier.trajectory)
