"""Targets and runs that other processes can import: Dask's workers, and those that are killed."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import time
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from ConfigSpace import Configuration, ConfigurationSpace
from smac import Scenario
from smac.callback import Callback
from smac.facade.abstract_facade import AbstractFacade
from smac.main.smbo import SMBO
from smac.runhistory.dataclasses import TrialInfo, TrialValue
from smac.runhistory.enumerations import StatusType

from acband_configspace import ACBandFacade
from acband_configspace.core.race import RaceId
from acband_configspace.errors import OutcomesNeededError, RunFinishedError, RunInUseError
from acband_configspace.runlog.journal import read_journal
from acband_configspace.runlog.records import RaceRecord

#: The paper's schedule, every race of it run: how many trials there will be is known before.
PAPER: dict[str, Any] = {"early_stopping": None, "playoff": 0}


def a_space() -> ConfigurationSpace:
    return ConfigurationSpace({"x": (0.0, 1.0), "n": (1, 100)}, seed=5)


def a_scenario(directory: Path, **settings: Any) -> Scenario:
    given = {
        "configspace": a_space(),
        "name": "run",
        "n_trials": 60,
        "deterministic": False,
        "seed": 3,
        "output_directory": directory,
    }
    return Scenario(**{**given, **settings})


def noise(*what: object) -> float:
    """Return a number in [0, 1) that depends on its arguments alone."""
    return float(np.random.default_rng(zlib.crc32(repr(what).encode())).random())


def noisy(config: Mapping[str, Any], seed: int | None) -> float:
    """Cost more the further x is from 0.3, with noise that the seed decides."""
    return abs(config["x"] - 0.3) + 0.2 * noise(config["x"], seed)


def on_instance(config: Configuration, instance: str | None, seed: int | None) -> float:
    return abs(config["x"] - 0.3) + 0.2 * noise(config["x"], instance, seed)


def exact(config: Mapping[str, Any], seed: int | None) -> float:
    return abs(config["x"] - 0.3)


def busy(config: Mapping[str, Any], seed: int | None) -> float:
    """Use 5 ms of the processor."""
    end = time.process_time() + 0.005
    while time.process_time() < end:
        pass
    return noisy(config, seed)


def often_crashing(config: Mapping[str, Any], seed: int | None) -> float:
    """Crash in half of all trials, but not in all of the first ones."""
    if noise("crash", config["x"], seed) < 0.5:
        raise RuntimeError("the target broke down")
    return noisy(config, seed)


def always_crashing(config: Mapping[str, Any], seed: int | None) -> float:
    raise RuntimeError("no licence found")


def only(incumbent: Configuration | list[Configuration] | None) -> Configuration:
    """Return the incumbent that SMAC types as one of three things."""
    assert isinstance(incumbent, Configuration)
    return incumbent


def result_of(config: Mapping[str, Any], seed: int | None) -> TrialValue:
    return TrialValue(cost=noisy(config, seed), time=0.1, status=StatusType.SUCCESS)


def quiet(scenario: Scenario, target: Callable[..., Any] | None, **options: Any) -> ACBandFacade:
    return ACBandFacade(scenario, target, logging_level=False, **options)


class Stop(Callback):
    """Ends a run after some trials, as a user's callback may."""

    def __init__(self, after: int) -> None:
        self.after = after

    def on_tell_end(self, smbo: SMBO, info: TrialInfo, value: TrialValue) -> bool:
        return smbo.runhistory.finished < self.after


def ask_all(smac: AbstractFacade) -> list[TrialInfo]:
    """Ask until results must be told first, or the run is finished."""
    trials = []
    with contextlib.suppress(OutcomesNeededError, RunFinishedError):
        while True:
            trials.append(smac.ask())
    return trials


def answer(smac: AbstractFacade, info: TrialInfo) -> None:
    """Tell the result of a trial: that of ``noisy``, or ``on_instance``."""
    value = result_of(info.config, info.seed)
    if info.instance is not None:
        value = TrialValue(cost=on_instance(info.config, info.instance, info.seed))
    smac.tell(info, value, save=False)


def trials_of(smac: AbstractFacade) -> set[tuple[float, str | None, int | None]]:
    history = smac.runhistory
    return {(history.get_config(k.config_id)["x"], k.instance, k.seed) for k in history}


def races_of(scenario: Scenario) -> list[RaceRecord]:
    """Return the races of the journal, in the order in which they ended."""
    return [*read_journal(scenario.output_directory / "journal.jsonl").races]


Signature = list[tuple[RaceId, str | None, int, tuple[int, ...], list[Any]]]


def without_times(races: list[RaceRecord]) -> Signature:
    """Return what does not depend on clocks: which races there were, and their costs."""
    return sorted(
        (race.id, *race.key, race.racers, [trial.cost for trial in race.trials]) for race in races
    )


class Counted:
    """A target that notes each call in a file, and may send its own process a signal."""

    def __init__(
        self,
        target: Callable[..., float],
        calls: Path,
        *,
        signal_at: int | None = None,
        number: int = signal.SIGKILL,
    ) -> None:
        self.target = target
        self.calls = calls
        self.signal_at = signal_at
        self.number = number
        self.n_calls = 0

    def __call__(self, config: Mapping[str, Any], seed: int | None) -> float:
        with self.calls.open("a") as file:
            file.write(json.dumps([dict(config), seed]) + "\n")
        self.n_calls += 1
        if self.n_calls == self.signal_at:
            os.kill(os.getpid(), self.number)
        return self.target(config, seed)


def n_calls(calls: Path) -> int:
    return len(calls.read_text().splitlines()) if calls.exists() else 0


def run_and_be_killed(
    directory: Path,
    calls: Path,
    signal_at: int,
    number: int = signal.SIGKILL,
    options: dict[str, Any] | None = None,
    settings: dict[str, Any] | None = None,
) -> None:
    """Optimize until the target has been called so often, then die. For a process of its own."""
    target = Counted(noisy, calls, signal_at=signal_at, number=number)
    scenario = a_scenario(directory, **(settings or {}))
    ACBandFacade(scenario, target, logging_level=False, **(options or PAPER)).optimize()


def be_refused(directory: Path, overwrite: bool) -> None:
    """Exit with 7 if the run is said to be in use. For a process of its own."""
    try:
        options = {**PAPER, "overwrite": overwrite, "logging_level": False}
        ACBandFacade(a_scenario(directory), noisy, **options)
    except RunInUseError as error:
        sys.exit(7 if str(directory) in str(error) else str(error))


class _Killer:
    """Kills its process when that is called for the n-th time, by a function SMAC can describe."""

    signal_at = -1
    n_calls = 0


def noisy_and_killed(config: Mapping[str, Any], seed: int | None) -> float:
    _Killer.n_calls += 1
    if _Killer.n_calls == _Killer.signal_at:
        os.kill(os.getpid(), signal.SIGKILL)
    return noisy(config, seed)


def run_stock_and_be_killed(
    facade: type[AbstractFacade],
    directory: Path,
    signal_at: int,
    settings: dict[str, Any],
    options: dict[str, Any] | None = None,
) -> None:
    from acband_configspace import ACBandIntensifier

    _Killer.signal_at = signal_at
    scenario = a_scenario(directory, **settings)
    intensifier = ACBandIntensifier(scenario, **(options or PAPER))
    facade(scenario, noisy_and_killed, intensifier=intensifier, logging_level=False).optimize()
