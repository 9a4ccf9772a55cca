"""Runs apart from the training history: validation on many instances, and a rehearsal on one."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from ConfigSpace import Configuration
from smac.runhistory.dataclasses import InstanceSeedKey, TrialInfo, TrialValue
from smac.runner.abstract_runner import AbstractRunner
from smac.scenario import Scenario

from acband_configspace.core.ends import End
from acband_configspace.runlog.verdict import Verdict
from acband_configspace.runlog.words import counted
from acband_configspace.smac_plugin.configurations import name_of_values
from acband_configspace.smac_plugin.runners import RaceRunner
from acband_configspace.smac_plugin.trial_values import Ticket, cost_of, end_of

#: A race takes some ten milliseconds to start and stop: shorter runs drown in that.
SHORT_RUN = 0.02


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
        own, other = (
            [cost_of(trial.value) for trial in validation.trials]
            for validation in (incumbent, default)
        )
        failures = (_n_failed(incumbent), _n_failed(default))
        return cls(incumbent, default, Verdict.of(own, other, failures=failures, **options))

    def __str__(self) -> str:
        return str(self.verdict)

    def _repr_html_(self) -> str:
        return self.verdict._repr_html_()


def _n_failed(validation: Validation) -> int:
    return sum(end_of(trial.value) is not End.FINISHED for trial in validation.trials)


def idle_runner(runner: AbstractRunner | None, purpose: str) -> AbstractRunner:
    """Return a runner that has nothing to do, or say why there is none."""
    if runner is None:
        raise ValueError(f"target_function must be given to {purpose} but is None")
    if runner.is_running() or runner._results_queue:
        raise RuntimeError(f"{purpose} must wait until no trial is running")
    return runner


def validate(
    runner: AbstractRunner, configs: Sequence[Configuration], keys: Sequence[InstanceSeedKey]
) -> list[Validation]:
    """Run configurations on all instances, in turn, in parallel where there are workers."""
    names = [name_of_values(config) for config in configs]
    distinct = dict(zip(names, configs, strict=True))
    trials = [
        TrialInfo(config, key.instance, key.seed) for key in keys for config in distinct.values()
    ]
    values = {
        (name_of_values(trial.config), InstanceSeedKey(trial.instance, trial.seed)): value
        for trial, value in _results(runner, trials)
    }
    return [
        Validation([ValidatedTrial(key.instance, key.seed, values[name, key]) for key in keys])
        for name in names
    ]


def _results(
    runner: AbstractRunner, trials: Sequence[TrialInfo]
) -> Iterator[tuple[TrialInfo, TrialValue]]:
    """Run trials; yield their results as they come in."""
    waiting, n_running = deque(trials), 0
    while waiting or n_running:
        if waiting:
            runner.submit_trial(waiting.popleft())
            n_running += 1
        else:
            runner.wait()
        for result in runner.iter_results():
            n_running -= 1
            yield result


def rehearse(
    scenario: Scenario,
    runner: AbstractRunner,
    racers: Mapping[str, Configuration],
    key: InstanceSeedKey,
    *,
    racing: bool,
) -> tuple[str, bool]:
    """Race the configurations once; return a report, and whether all is in order."""
    values = _race(runner, racers, key)
    place = f"instance {key.instance!r}" if key.instance is not None else "no instance"
    lines = [f"One race of {counted(len(racers), 'configuration')} on {place}, seed {key.seed}:"]
    if isinstance(runner, RaceRunner):
        config = next(iter(racers.values()))
        lines.append(f"  command    {runner.command(config, key.instance, key.seed)}")
    lines += [f"  {name:9}  {_told(value, racing)}" for name, value in values.items()]
    wrong = _problems(scenario, list(values.values()), racing)
    lines += [f"Problem: {text}" for text in wrong] or ["All is in order."]
    return "\n".join(lines), not wrong


def _race(
    runner: AbstractRunner, racers: Mapping[str, Configuration], key: InstanceSeedKey
) -> dict[str, TrialValue]:
    info = Ticket("check", len(racers)).as_info()
    trials = [
        TrialInfo(config, key.instance, key.seed, additional_info=info)
        for config in racers.values()
    ]
    # Not by identity: a runner of the user's own may return copies, as from another process.
    found = {name_of_values(trial.config): value for trial, value in _results(runner, trials)}
    return {name: found[name_of_values(config)] for name, config in racers.items()}


def _told(value: TrialValue, racing: bool) -> str:
    seconds = f"{value.time:.3f} s, {value.cpu_time:.3f} s of CPU time"
    if end_of(value) is End.LOST:
        return f"stopped after {seconds}: it lost"
    if end_of(value) is End.FINISHED:
        return f"finished after {seconds}: " + ("it won" if racing else f"cost {value.cost}")
    return f"{end_of(value).value} after {seconds}"


def _problems(scenario: Scenario, values: list[TrialValue], racing: bool) -> list[str]:
    wrong = []
    for value in values:
        if end_of(value) is End.CRASHED:
            reason = str(value.additional_info.get("error", "no reason was given"))
            wrong.append(f"a trial crashed: {reason}")
        if end_of(value) is End.MEMORY:
            wrong.append(f"a trial met the memory limit, {scenario.trial_memory_limit} MB")
    if all(end_of(value) is End.CUTOFF for value in values):
        wrong.append(f"nobody finished within the cutoff, {scenario.trial_walltime_limit} s")
    fastest = min((value.time for value in values if end_of(value) is End.FINISHED), default=1.0)
    if racing and fastest < SHORT_RUN:
        wrong.append(
            f"the winner took only {1e3 * fastest:.0f} ms: starting and stopping processes "
            "takes about as long, so use larger instances"
        )
    return wrong
