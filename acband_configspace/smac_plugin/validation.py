"""Validation: the cost of one configuration on many instances, apart from the training history."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from ConfigSpace import Configuration
from smac.runhistory.dataclasses import InstanceSeedKey, TrialInfo, TrialValue
from smac.runner.abstract_runner import AbstractRunner


@dataclass(frozen=True)
class ValidatedTrial:
    """One run of a validation."""

    instance: str | None
    seed: int | None
    value: TrialValue


class Validation(float):
    """The mean cost, as a number; ``trials`` has what it was on each instance."""

    trials: tuple[ValidatedTrial, ...]

    def __new__(cls, trials: Sequence[ValidatedTrial]) -> Validation:
        """Average the costs of the trials."""
        validation = super().__new__(cls, np.mean([trial.value.cost for trial in trials]))
        validation.trials = tuple(trials)
        return validation

    def __reduce__(self) -> tuple[type[Validation], tuple[tuple[ValidatedTrial, ...]]]:
        """Let copies and pickles be made of the trials: a float alone does not have them."""
        return Validation, (self.trials,)


def validate(
    runner: AbstractRunner, config: Configuration, keys: Sequence[InstanceSeedKey]
) -> Validation:
    """Run a configuration on all instances, in parallel where there are workers."""
    values: dict[InstanceSeedKey, TrialValue] = {}

    def collect() -> None:
        for info, value in runner.iter_results():
            values[InstanceSeedKey(info.instance, info.seed)] = value

    for key in keys:
        runner.submit_trial(TrialInfo(config, key.instance, key.seed))
        collect()
    while len(values) < len(keys):
        runner.wait()
        collect()
    return Validation([ValidatedTrial(key.instance, key.seed, values[key]) for key in keys])
