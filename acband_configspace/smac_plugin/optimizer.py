"""SMAC's optimizer with a journal: resumes by itself, and saves at intervals."""

from __future__ import annotations

import json
import logging
import math
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from ConfigSpace import Configuration
from smac.main.smbo import SMBO
from smac.runhistory.dataclasses import TrialInfo, TrialValue
from smac.runhistory.enumerations import StatusType
from smac.runhistory.runhistory import RunHistory
from smac.runner.abstract_runner import AbstractRunner
from smac.scenario import Scenario
from smac.utils.numpyencoder import NumpyEncoder

from acband_configspace.core.instances import InstanceKey
from acband_configspace.core.race import Race
from acband_configspace.errors import RunDiffersError
from acband_configspace.smac_plugin.identity import differences, plain, scenario_as_json
from acband_configspace.smac_plugin.intensifier import ACBandIntensifier
from acband_configspace.smac_plugin.journal import Journal, Recorded
from acband_configspace.smac_plugin.runners import RaceRunner
from acband_configspace.smac_plugin.trials import RaceRecord

logger = logging.getLogger(__name__)

#: SMAC's files are written at most this often, in seconds: the journal has it all anyway.
SAVE_INTERVAL = 10.0
#: And so seldom that saving takes at most this share of the time.
SAVE_SHARE = 0.05


class ACBandOptimizer(SMBO):
    """Runs AC-Band in SMAC's loop and keeps its journal.

    An interrupted run is continued from the journal when it is started again: no race that is in
    it is run again. A run with other settings is refused with a list of the differences.
    """

    def __init__(
        self,
        scenario: Scenario,
        runner: AbstractRunner | None,
        runhistory: RunHistory,
        intensifier: ACBandIntensifier,
        *,
        identity: Mapping[str, Any],
        overwrite: bool = False,
    ) -> None:
        self._identity = identity
        self._journal = Journal(scenario.output_directory / "journal.jsonl")
        self._last_save = time.monotonic()
        self._save_seconds = 0.0
        self._acband = intensifier
        self._walltime_before = 0.0
        super().__init__(scenario, runner, runhistory, intensifier, overwrite)

    def optimize(
        self, *, data_to_scatter: dict[str, Any] | None = None
    ) -> Configuration | list[Configuration]:
        """Run, with the clock running only meanwhile: a run that is looked at loses no time."""
        self._limit_waits(lambda: self.remaining_walltime)
        try:
            return super().optimize(data_to_scatter=data_to_scatter)
        finally:
            self._walltime_before, self._start_time = self.used_walltime, None
            self._limit_waits(lambda: math.inf)

    def _limit_waits(self, seconds_left: Callable[[], float]) -> None:
        if isinstance(self._runner, RaceRunner):
            self._runner.seconds_left = seconds_left

    @property
    def used_walltime(self) -> float:
        """Seconds spent in ``optimize``, earlier processes included."""
        return self._walltime_before + super().used_walltime

    @property
    def remaining_walltime(self) -> float:
        """Seconds left of the limit."""
        return float(self._scenario.walltime_limit) - self.used_walltime

    def tell(self, info: TrialInfo, value: TrialValue, save: bool = True) -> None:
        """Take in the result of a trial; SMAC's files are saved if it is time to."""
        if value.status == StatusType.SUCCESS and not np.all(np.isfinite(value.cost)):
            crash_cost = self._scenario.crash_cost
            value = replace(value, status=StatusType.CRASHED, cost=crash_cost)
        super().tell(info, value, save=False)
        since = time.monotonic() - self._last_save
        if save and since > max(SAVE_INTERVAL, self._save_seconds / SAVE_SHARE):
            self.save()

    def save(self) -> None:
        """Write SMAC's files, each in one piece."""
        directory = self._scenario.output_directory
        start = time.monotonic()
        state = {
            "used_walltime": self.used_walltime,
            "used_target_function_walltime": self.used_target_function_walltime,
            "used_target_function_cputime": self.used_target_function_cputime,
            "last_update": time.time(),
            "finished": self._finished,
        }
        write_whole(directory / "optimization.json", as_json(state))
        write_whole(directory / "runhistory.json", self._runhistory.save)
        write_whole(directory / "intensifier.json", self._intensifier.save)
        self._last_save = time.monotonic()
        self._save_seconds = self._last_save - start

    def _initialize_state(self) -> None:
        recorded = None if self._overwrite else self._journal.read()
        if recorded is not None and recorded.races:
            if found := differences(recorded.identity, self._identity):
                raise RunDiffersError(str(self._scenario.output_directory), found)
            self._listen()  # going on may mean a further pass, or races of known results
            self._restore(recorded)
        else:
            plans = self._acband.plans  # one that cannot be made leaves no files behind
            self._journal.start(self._identity)
            for plan in plans:
                self._journal.add_plan(plan)
            self._listen()
        directory = self._scenario.output_directory
        write_whole(directory / "scenario.json", as_json(scenario_as_json(self._scenario)))
        write_whole(directory / "configspace.json", self._scenario.configspace.to_json)
        self.save()

    def _listen(self) -> None:
        self._acband.plan_listener = self._journal.add_plan
        self._acband.race_listener = self._record

    def _restore(self, recorded: Recorded) -> None:
        """Bring the run history, the clocks and the intensifier to where the journal ends."""
        fresh = list(_not_used_before(recorded.races))
        self._acband.replay(recorded.plans, recorded.races)
        configurations = self._acband.configurations
        for number, values in recorded.configurations.items():
            # Another version of ConfigSpace or numpy may draw others from the same seed.
            if (drawn := plain(dict(configurations[number]))) != values:
                raise RunDiffersError(
                    str(self._scenario.output_directory),
                    [f"configuration {number}: {values} before, {drawn} now"],
                )
        for number, key, value in fresh:
            self._runhistory.add(
                configurations[number],
                cost=value.cost,
                time=value.time,
                cpu_time=value.cpu_time,
                status=value.status,
                instance=key.instance,
                seed=key.seed,
                starttime=value.starttime,
                endtime=value.endtime,
                additional_info=value.additional_info,
                force_update=True,  # a racer that lost may have been run again, to its end
            )
            self._used_target_function_walltime += float(value.time)
            self._used_target_function_cputime += float(value.cpu_time)
        self._restore_clocks(recorded.races[-1].walltime)
        self._acband.fill()
        # SMAC would run a trial before it looks at the limits.
        self._finished = self._acband.finished is not None or self.budget_exhausted
        logger.info(
            "Continuing the run in %s after %s races.",
            self._scenario.output_directory,
            len(recorded.races),
        )

    def _restore_clocks(self, walltime: float) -> None:
        """Count the time of the races, or what was saved later: it has races cut by a limit."""
        saved = {}
        if (path := self._scenario.output_directory / "optimization.json").exists():
            saved = json.loads(path.read_text(encoding="utf-8"))
        self._walltime_before = max(walltime, saved.get("used_walltime", 0.0))
        self._used_target_function_walltime = max(
            self._used_target_function_walltime, saved.get("used_target_function_walltime", 0.0)
        )
        self._used_target_function_cputime = max(
            self._used_target_function_cputime, saved.get("used_target_function_cputime", 0.0)
        )

    def _record(
        self, name: str, race: Race, key: InstanceKey, values: Sequence[TrialValue]
    ) -> None:
        record = RaceRecord(
            name=name,
            key=key,
            racers=race.racers,
            values=tuple(values),
            walltime=self.used_walltime,
            n_trials=self._runhistory.finished,
        )
        configurations = self._acband.configurations
        self._journal.add_race(record, [configurations[number] for number in race.racers])


def _not_used_before(
    races: Sequence[RaceRecord],
) -> Iterator[tuple[int, InstanceKey, TrialValue]]:
    """Yield the trials of the races, a result that several races used only once."""
    seen = set()
    for race in races:
        for number, value in zip(race.racers, race.values, strict=True):
            trial = (number, race.key, value.starttime, value.endtime)
            if trial not in seen:
                seen.add(trial)
                yield number, race.key, value


def as_json(content: Any) -> Callable[[Path], object]:
    """Return a function that writes ``content`` to a file."""
    text = json.dumps(content, indent=2, cls=NumpyEncoder)
    return lambda path: path.write_text(text, encoding="utf-8")


def write_whole(path: Path, write: Callable[[Path], object]) -> None:
    """Write a file so that a reader, or a crash, never sees half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # SMAC insists on the ending of the name.
    temporary = path.with_name(f".{path.stem}.{os.getpid()}.json")
    write(temporary)
    os.replace(temporary, path)
