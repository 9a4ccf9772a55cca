"""After SMAC's own first example: to have AC-Band in its place, one line changes.

    -from smac import HyperparameterOptimizationFacade as Facade
    +from acband_configspace import ACBandFacade as Facade

The support vector machine is trained with a seed, which splits the data anew: there are no
instances here, so configurations race on seeds. The lower error wins.

    python examples/quickstart_svm.py
    python examples/quickstart_svm.py --trials 1000 --workers 4
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from ConfigSpace import Categorical, Configuration, ConfigurationSpace, EqualsCondition, Float
from sklearn import datasets, svm
from sklearn.model_selection import KFold, cross_val_score
from smac import Scenario

from acband_configspace import ACBandFacade as Facade

IRIS = datasets.load_iris()


def train(config: Configuration, seed: int = 0) -> float:
    """Return the error in cross-validation."""
    classifier = svm.SVC(**config, random_state=seed)
    folds = KFold(n_splits=3, shuffle=True, random_state=seed)
    return float(1 - cross_val_score(classifier, IRIS.data, IRIS.target, cv=folds).mean())


def make_space() -> ConfigurationSpace:
    space = ConfigurationSpace(name="SVM")
    kernel = Categorical("kernel", ["linear", "rbf", "sigmoid"], default="rbf")
    gamma = Float("gamma", (1e-4, 8.0), default=1.0, log=True)
    space.add(kernel, gamma, Float("C", (1e-3, 1000.0), default=1.0, log=True))
    space.add(EqualsCondition(gamma, kernel, "rbf"))
    return space


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--trials", type=int, default=300, help="runs of the target (300)")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, default=Path("acband_output"))
    arguments = parser.parse_args(argv)
    if arguments.trials < 2 or arguments.workers < 1:
        parser.error("--trials must be at least 2, and --workers at least 1")
    scenario = Scenario(
        make_space(),
        n_trials=arguments.trials,
        n_workers=arguments.workers,
        seed=arguments.seed,
        output_directory=arguments.output,
    )
    facade = Facade(scenario, train, overwrite=True, logging_level=30)
    print(facade.schedule)
    incumbent = facade.optimize()
    print(f"\nFound: {dict(incumbent)}")
    default = scenario.configspace.get_default_configuration()
    print(f"Error of the default:   {facade.validate(default):.4f}")
    print(f"Error of the incumbent: {facade.validate(incumbent):.4f}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
