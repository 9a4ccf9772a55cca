"""One script for each kind of example that SMAC ships, with its facade and with ours.

Each kind is a function of the facade class: the one line that a user changes. What is returned
must be no worse than what SMAC's random search returns with as many trials: best of so many random
ones, it differs by luck, so a tenth of what there is to gain over the default is let pass.
"""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ConfigSpace import (
    BetaFloatHyperparameter,
    Configuration,
    ConfigurationSpace,
    Float,
    NormalFloatHyperparameter,
)
from dask.distributed import Client
from sklearn.datasets import load_iris
from sklearn.model_selection import cross_val_score
from sklearn.svm import SVC
from smac import Callback, RandomFacade, Scenario
from smac.callback.metadata_callback import MetadataCallback
from smac.initial_design import SobolInitialDesign
from smac.intensifier.hyperband_utils import get_n_trials_for_hyperband_multifidelity
from smac.main.smbo import SMBO
from smac.runhistory.dataclasses import TrialInfo, TrialValue

from acband_configspace import ACBandFacade

Facade = Any
N_TRIALS = 40


def valley(config: Configuration, seed: int = 0) -> float:
    """Return a quadratic with its lowest point, 0, at (2, -1)."""
    return float((config["x"] - 2) ** 2 + (config["y"] + 1) ** 2)


def a_space() -> ConfigurationSpace:
    space = ConfigurationSpace(seed=0)
    space.add(Float("x", (-5, 5), default=-5), Float("y", (-5, 5), default=5))
    return space


def a_scenario(folder: Path, **settings: Any) -> Scenario:
    space = settings.pop("configspace", None) or a_space()
    given = {"n_trials": N_TRIALS, "deterministic": True, "seed": 1, "output_directory": folder}
    return Scenario(space, **{**given, **settings})


def per_fold(config: Configuration, instance: str, seed: int = 0) -> float:
    """Differ from fold to fold by more than configurations do."""
    level = float(np.random.default_rng(int(instance)).normal(10.0, 3.0))
    return level + valley(config) / 10


def quadratic(facade_class: Facade, folder: Path) -> Configuration:
    facade = facade_class(a_scenario(folder), valley, overwrite=True, logging_level=False)
    incumbent = facade.optimize()
    assert facade.validate(incumbent) <= facade.validate(a_space().get_default_configuration())
    for key, value in facade.runhistory.items():
        assert value.cost == pytest.approx(valley(facade.runhistory.get_config(key.config_id)))
    return incumbent


def with_a_design(facade_class: Facade, folder: Path) -> Configuration:
    """An initial design from the facade class."""
    scenario = a_scenario(folder)
    design = facade_class.get_initial_design(scenario)
    return facade_class(scenario, valley, initial_design=design, logging_level=False).optimize()


def ask_and_tell(facade_class: Facade, folder: Path) -> Configuration:
    scenario = a_scenario(folder, deterministic=False)
    intensifier = facade_class.get_intensifier(scenario, max_config_calls=1)
    facade = facade_class(scenario, valley, intensifier=intensifier, logging_level=False)
    for _ in range(10):
        info = facade.ask()
        assert info.seed is not None
        facade.tell(info, TrialValue(cost=valley(info.config, info.seed), time=0.5))
    return facade.optimize()


def asked_to_the_end(facade_class: Facade, folder: Path) -> Configuration:
    facade = facade_class(a_scenario(folder), logging_level=False)
    for _ in range(N_TRIALS):
        info = facade.ask()
        facade.tell(info, TrialValue(cost=valley(info.config), time=0.5))
    return facade.intensifier.get_incumbent()


class StopAfter(Callback):
    def __init__(self, n_trials: int) -> None:
        self.n_trials = n_trials

    def on_tell_end(self, smbo: SMBO, info: TrialInfo, value: TrialValue) -> bool | None:
        return False if smbo.runhistory.finished == self.n_trials else None


def stopped(facade_class: Facade, folder: Path) -> Configuration:
    callbacks = [StopAfter(30)]
    facade = facade_class(a_scenario(folder), valley, callbacks=callbacks, logging_level=False)
    incumbent = facade.optimize()
    assert facade.runhistory.finished == 30
    return incumbent


def continued(facade_class: Facade, folder: Path) -> Configuration:
    scenario = a_scenario(folder, name="again")
    first = facade_class(scenario, valley, callbacks=[StopAfter(10)], logging_level=False)
    first.optimize()
    second = facade_class(scenario, valley, overwrite=False, logging_level=False)
    assert second.runhistory.finished == 10
    incumbent = second.optimize()
    assert second.runhistory.finished == N_TRIALS
    return incumbent


def with_priors(facade_class: Facade, folder: Path) -> Configuration:
    space = ConfigurationSpace(seed=0)
    space.add(
        NormalFloatHyperparameter("x", mu=2, sigma=1, lower=-5, upper=5, default_value=-5),
        BetaFloatHyperparameter("y", alpha=4, beta=6, lower=-5, upper=5, default_value=5),
    )
    scenario = a_scenario(folder, configspace=space)
    default = space.get_default_configuration()
    design = facade_class.get_initial_design(scenario, additional_configs=[default])
    return facade_class(scenario, valley, initial_design=design, logging_level=False).optimize()


def on_a_cluster(facade_class: Facade, folder: Path) -> Configuration:
    with Client(n_workers=1, threads_per_worker=2, processes=False, dashboard_address=None) as own:
        scenario = a_scenario(folder, n_workers=2)
        return facade_class(scenario, valley, dask_client=own, logging_level=False).optimize()


def warm(facade_class: Facade, folder: Path) -> Configuration:
    scenario = a_scenario(folder, deterministic=False)
    facade = facade_class(scenario, valley, logging_level=False)
    for x in (2.0, 4.0):
        config = Configuration(scenario.configspace, values={"x": x, "y": -1.0})
        facade.tell(TrialInfo(config, seed=0), TrialValue(cost=valley(config), time=0.1))
    incumbent = facade.optimize()
    assert valley(incumbent) <= 1.0  # it was told of 0 and 4
    return incumbent


class Shifted:
    def __init__(self, bias: float) -> None:
        self.bias = bias

    def train(self, config: Configuration, seed: int = 0) -> float:
        return valley(config, seed) + self.bias


def with_bias(config: Configuration, seed: int, bias: float) -> float:
    return valley(config, seed) + bias


def with_arguments(facade_class: Facade, folder: Path) -> Configuration:
    method = Shifted(2.0).train
    facade_class(a_scenario(folder / "1", n_trials=5), method, logging_level=False).optimize()
    partial = functools.partial(with_bias, bias=2.0)
    return facade_class(a_scenario(folder / "2"), partial, logging_level=False).optimize()


def on_folds(facade_class: Facade, folder: Path) -> Configuration:
    folds = [str(fold) for fold in range(5)]
    scenario = a_scenario(folder, instances=folds, n_trials=60)
    return facade_class(scenario, per_fold, logging_level=False).optimize()


def on_datasets(facade_class: Facade, folder: Path) -> Configuration:
    names = [str(number) for number in range(12)]
    features = {name: [float(name), 1.0] for name in names}
    settings = {"instances": names, "instance_features": features, "n_trials": 60}
    scenario = a_scenario(folder, deterministic=False, **settings)
    return facade_class(scenario, per_fold, logging_level=False).optimize()


def with_metadata(facade_class: Facade, folder: Path) -> Configuration:
    note = MetadataCallback(repository="mine", branch="main")
    facade = facade_class(a_scenario(folder), valley, callbacks=[note], logging_level=False)
    incumbent = facade.optimize()
    directory = facade.scenario.output_directory
    assert json.loads((directory / "metadata.json").read_text())["branch"] == "main"
    return incumbent


SCRIPT = """#!{python}
import sys
given = dict(word[2:].split("=") for word in sys.argv[1:])
cost = (float(given["x"]) - 2) ** 2 + (float(given["y"]) + 1) ** 2
print(f"cost={{cost}}; status=SUCCESS")
"""


def on_the_command_line(facade_class: Facade, folder: Path) -> Configuration:
    folder.mkdir(exist_ok=True)
    script = folder / "script.py"
    script.write_text(SCRIPT.format(python=f"{sys.executable} -SE"))
    script.chmod(0o755)
    scenario = a_scenario(folder, n_trials=15)
    return facade_class(scenario, str(script), logging_level=False).optimize()


def own_design(facade_class: Facade, folder: Path) -> Configuration:
    scenario = a_scenario(folder)
    design = SobolInitialDesign(scenario, n_configs=16, max_ratio=1.0)
    facade = facade_class(scenario, valley, initial_design=design, logging_level=False)
    return facade.optimize()


KINDS: list[Callable[[Facade, Path], Configuration]] = [
    quadratic, with_a_design, ask_and_tell, asked_to_the_end, stopped, continued, with_priors,
    on_a_cluster, warm, with_arguments, on_folds, on_datasets, with_metadata, on_the_command_line,
    own_design,
]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_with_one_line_changed_it_is_no_worse_than_random_search(
    kind: Callable[[Facade, Path], Configuration], tmp_path: Path
) -> None:
    theirs = kind(RandomFacade, tmp_path / "smac")
    ours = kind(ACBandFacade, tmp_path / "acband")
    assert isinstance(ours, Configuration)
    to_gain = valley(a_space().get_default_configuration())
    assert valley(ours) <= valley(theirs) + 0.1 * to_gain
    assert valley(ours) <= 0.15 * to_gain


def svm(config: Configuration, seed: int = 0) -> float:
    """Return the error of a support vector machine on iris, by five folds."""
    data = load_iris()
    learner = SVC(C=config["C"], gamma=config["gamma"])
    return 1.0 - float(np.mean(cross_val_score(learner, data.data, data.target, cv=5)))


def test_a_support_vector_machine_by_cross_validation(tmp_path: Path) -> None:
    space = ConfigurationSpace(seed=0)
    space.add(
        Float("C", (1e-3, 1e3), log=True, default=1e-3),
        Float("gamma", (1e-4, 1e1), log=True, default=1e-4),
    )
    errors = []
    for facade_class in (RandomFacade, ACBandFacade):
        scenario = a_scenario(tmp_path / facade_class.__name__, configspace=space)
        incumbent = facade_class(scenario, svm, logging_level=False).optimize()
        assert isinstance(incumbent, Configuration)
        errors.append(svm(incumbent))
    theirs, ours = errors
    assert ours <= theirs + 0.02
    assert ours < svm(space.get_default_configuration())


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        # Epochs as fidelity, and Hyperband by a total budget.
        ({"min_budget": 1, "max_budget": 25}, "races on instances or seeds instead of fidelities"),
        # Objectives with weights, and ParEGO.
        ({"objectives": ["loss", "time"]}, "objectives must be a single one for AC-Band but got"),
        # Adaptive capping.
        (
            {"adaptive_capping": True, "runtime_cutoff": 5},
            "stops losers by itself with racing=",
        ),
    ],
)
def test_what_cannot_be_had_is_refused_in_one_sentence(
    settings: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=message) as refused:
        ACBandFacade(a_scenario(tmp_path, **settings), valley, logging_level=False)
    assert "\n" not in str(refused.value)


def test_trials_of_a_total_budget_are_an_n_trials_like_any_other(tmp_path: Path) -> None:
    n_trials = get_n_trials_for_hyperband_multifidelity(
        total_budget=200, min_budget=5, max_budget=20, eta=3, print_summary=False
    )
    scenario = a_scenario(tmp_path, n_trials=n_trials)
    facade = ACBandFacade(
        scenario,
        valley,
        intensifier=ACBandFacade.get_intensifier(scenario, eta=3),
        logging_level=False,
    )
    facade.optimize()
    assert facade.runhistory.finished == n_trials
