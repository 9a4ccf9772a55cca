"""A rehearsal: one race of two configurations, and what is wrong with it in plain words."""

from __future__ import annotations

from collections.abc import Mapping

from ConfigSpace import Configuration
from smac.runhistory.dataclasses import InstanceSeedKey, TrialInfo, TrialValue
from smac.runner.abstract_runner import AbstractRunner
from smac.scenario import Scenario

from acband_configspace.core.ends import End
from acband_configspace.runlog.words import counted
from acband_configspace.smac_plugin.runners import RaceRunner
from acband_configspace.smac_plugin.trial_values import Ticket, end_of

#: A race takes some ten milliseconds to start and stop: shorter runs drown in that.
SHORT_RUN = 0.02


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
    results: list[tuple[TrialInfo, TrialValue]] = []
    info = Ticket("check", len(racers)).as_info()
    for config in racers.values():
        runner.submit_trial(TrialInfo(config, key.instance, key.seed, additional_info=info))
    results.extend(runner.iter_results())
    while len(results) < len(racers):
        runner.wait()
        results.extend(runner.iter_results())
    names = {id(config): name for name, config in racers.items()}
    found = {names[id(trial.config)]: value for trial, value in results}
    return {name: found[name] for name in racers}


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
