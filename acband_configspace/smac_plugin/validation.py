"""Validation: the cost of one configuration on many instances, apart from the training history."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from ConfigSpace import Configuration
from smac.runhistory.dataclasses import InstanceSeedKey, TrialInfo, TrialValue
from smac.runner.abstract_runner import AbstractRunner

from acband_configspace.runlog.verdict import Verdict
from acband_configspace.smac_plugin.trial_values import cost_of


@dataclass(frozen=True)
class ValidatedTrial:
    """One run of a validation."""

    instance: str | None
    seed: int | None
    value: TrialValue


class Validation(float):
    """The mean cost, as a number; ``trials`` has the cost on each instance."""

    trials: tuple[ValidatedTrial, ...]

    def __new__(cls, trials: Sequence[ValidatedTrial]) -> Validation:
        """Average the costs of the trials."""
        validation = super().__new__(cls, np.mean([trial.value.cost for trial in trials]))
        validation.trials = tuple(trials)
        return validation

    def __reduce__(self) -> tuple[type[Validation], tuple[tuple[ValidatedTrial, ...]]]:
        """Let copies and pickles be made of the trials: a float alone does not have them."""
        return Validation, (self.trials,)


@dataclass(frozen=True)
class TestResults:
    """What a run is worth: its incumbent and the default on the test instances."""

    __test__ = False  # pytest would take it for a test

    incumbent: Validation
    default: Validation
    verdict: Verdict
    """How they compare, in figures and in a sentence."""

    @classmethod
    def of(cls, incumbent: Validation, default: Validation, **options: Any) -> TestResults:
        """Compare two validations on the same instances, by options of :meth:`Verdict.of`."""
        costs = [
            [cost_of(trial.value) for trial in validation.trials]
            for validation in (incumbent, default)
        ]
        return cls(incumbent, default, Verdict.of(costs[0], costs[1], **options))

    def __str__(self) -> str:
        return str(self.verdict)

    def _repr_html_(self) -> str:
        return self.verdict._repr_html_()


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
