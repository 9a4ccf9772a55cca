"""SMAC's optimizer with a journal: resumes by itself, and saves at intervals."""

from __future__ import annotations

import atexit
import gc
import json
import logging
import math
import os
import sys
import time
import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from ConfigSpace import Configuration
from smac.main.smbo import SMBO
from smac.runhistory.dataclasses import TrialInfo, TrialKey, TrialValue
from smac.runhistory.enumerations import StatusType
from smac.runner.abstract_runner import AbstractRunner
from smac.scenario import Scenario
from smac.utils.numpyencoder import NumpyEncoder

from acband_configspace._version import __version__
from acband_configspace.core.ends import End
from acband_configspace.core.engine import Plan
from acband_configspace.core.instances import InstanceKey
from acband_configspace.core.race import RaceId
from acband_configspace.errors import (
    FirstRaceCrashedError,
    JournalError,
    RunDiffersError,
    RunDirectoryGoneError,
    RunFinishedError,
    RunInUseError,
)
from acband_configspace.runlog.journal import Journal
from acband_configspace.runlog.records import NONSENSE, Header, RaceRecord, Recorded
from acband_configspace.runlog.verdict import VERDICT, Verdict
from acband_configspace.smac_plugin.configurations import from_json, in_space
from acband_configspace.smac_plugin.identity import differences, plain, scenario_as_json
from acband_configspace.smac_plugin.intensifier import ACBandIntensifier
from acband_configspace.smac_plugin.logs import said_once
from acband_configspace.smac_plugin.pending import PendingRace, RaceCallback
from acband_configspace.smac_plugin.runhistory import (
    FIRST_FOREIGN,
    LinearRunHistory,
    n_saved,
    saved_trials,
)
from acband_configspace.smac_plugin.runners import RaceRunner
from acband_configspace.smac_plugin.told import Told
from acband_configspace.smac_plugin.trial_values import (
    ToldTrial,
    as_record,
    as_value,
    check_told,
    cost_of,
    end_of,
)
from acband_configspace.smac_plugin.validation import Validation, idle_runner, validate

logger = logging.getLogger(__name__)

#: SMAC's files are written at most this often, in seconds: the journal has it all anyway.
SAVE_INTERVAL = 10.0
#: And so seldom that saving takes at most this share of the time.
SAVE_SHARE = 0.05
#: Where the journal's first line has the results that were told before the first race.
TOLD = "told"


class ACBandOptimizer(SMBO):
    """Runs AC-Band in SMAC's loop and keeps its journal.

    An interrupted run is continued from the journal when it is started again: no race that is in
    it is run again. A run with other settings is refused with a list of the differences.
    """

    def __init__(
        self,
        scenario: Scenario,
        runner: AbstractRunner | None,
        runhistory: LinearRunHistory,
        intensifier: ACBandIntensifier,
        *,
        identity: Mapping[str, Any],
        warm: Sequence[ToldTrial] = (),
        overwrite: bool = False,
    ) -> None:
        self._identity = identity
        self._warm = warm
        self._history = runhistory
        self._journal = Journal(scenario.output_directory / "journal.jsonl")
        self._last_save = time.monotonic()
        self._save_seconds = 0.0
        self._acband = intensifier
        self._walltime_before = 0.0
        self._running_since: float | None = None
        self._all_crashed = False
        self._finished_before: str | None = None
        self._pid = os.getpid()
        self._unsaved = self._has_adopted = False
        self._saved_as: tuple[int, int] | None = None
        names: Sequence[str | None] | None = scenario.instances
        self._instance_names = frozenset(names or [None])
        try:
            super().__init__(scenario, runner, runhistory, intensifier, overwrite)
        except BaseException:
            self._journal.close()
            raise
        self._journal.pause()  # a facade that only looks at a run must not lock it
        _at_exit.add(self)

    def optimize(
        self, *, data_to_scatter: dict[str, Any] | None = None
    ) -> Configuration | list[Configuration]:
        """Run. The clock stands still outside of it: looking at a run uses none of its time."""
        if self._all_crashed:
            self._start_over(self._acband.told)
        self._acband.settle()
        if self._finished:
            with suppress(JournalError, RunInUseError, RunDirectoryGoneError, OSError):
                path = self._scenario.output_directory / "runhistory.json"
                if n_saved(path) < self._runhistory.finished:  # a process was killed at the end
                    self._save_as_own()
            return super().optimize(data_to_scatter=data_to_scatter)
        self._stop = False  # what a callback stopped may go on
        self._journal.go_on()  # whoever has the run is noticed before anything is run
        self._hand_out_again()  # SMAC stops at n_trials before their turn comes again
        self._running_since = time.monotonic()
        self._limit_waits(lambda: self.remaining_walltime)
        try:
            with said_once():
                return super().optimize(data_to_scatter=data_to_scatter)
        except FirstRaceCrashedError:
            self._all_crashed = True
            raise
        finally:
            self._leave(save=not self._all_crashed)

    def _leave(self, *, save: bool) -> None:
        """Let go of all that ``optimize`` had: trials that run, and the run itself."""
        self._walltime_before, self._running_since = self.used_walltime, None
        self._limit_waits(lambda: math.inf)
        for callback in self._callbacks:
            if isinstance(callback, RaceCallback):
                callback.left()
        if isinstance(self._runner, RaceRunner):
            self._runner.close()  # what an interrupt left running is of no use
        self._hand_out_again()  # who goes on by ask and tell has never been given them
        # SMAC takes only a run that has no trials left for one that is over.
        self._finished = self._finished or self._acband.is_over
        try:
            if save:
                self.save()  # with the results of races that are not over
        finally:
            self._journal.pause()  # another facade may go on with this run

    def _hand_out_again(self) -> None:
        """Queue the trials again that an interrupt lost, or that were called off."""
        if self._runner is not None and not self._runner.is_running():
            self._acband.pending.hand_out_again()

    def _limit_waits(self, seconds_left: Callable[[], float]) -> None:
        if isinstance(self._runner, RaceRunner):
            self._runner.seconds_left = seconds_left

    @property
    def used_walltime(self) -> float:
        """Seconds spent in ``optimize``, earlier processes included, by a monotonic clock."""
        since = self._running_since
        return self._walltime_before + (0.0 if since is None else time.monotonic() - since)

    @property
    def remaining_walltime(self) -> float:
        """Seconds left of the limit."""
        return float(self._scenario.walltime_limit) - self.used_walltime

    @property
    def remaining_trials(self) -> int:
        """Trials left of the limit."""
        left = self._acband.trial_limit - self.runhistory.submitted
        # Trials that an interrupt lost are handed out again, and count already.
        return int(min(max(left, bool(self._acband.pending)), sys.maxsize))

    def ask(self) -> TrialInfo:
        """Return the next trial; after a first round of crashes, the first one again."""
        if self._all_crashed:
            self._start_over(self._acband.told)
        self._trial_generator = iter(self._acband)  # the one before ends when a callback stops it
        try:
            return super().ask()
        except FirstRaceCrashedError:
            self._all_crashed = True  # the target may be repaired meanwhile
            raise
        except RunFinishedError:
            if self._unsaved:  # nobody may come to tell anything more
                self.save()
            raise

    def reset(self) -> None:
        """Start anew: forget what happened, and begin a new journal."""
        self._start_over(self._warm)

    def _start_over(self, known: Iterable[ToldTrial]) -> None:
        known = list(known)  # what it comes from is reset, too
        super().reset()
        self._stop = self._all_crashed = False
        self._walltime_before = 0.0
        self._finished_before = None
        self._begin_with(known)
        self._saved_as = self._stamp()  # the run is ours, whoever saved the files of the one before
        self.save()  # or the next process would take in results that are forgotten here

    def load(self) -> None:
        """Refuse: what there is to load was loaded when the facade was made."""
        raise RuntimeError(
            "load must not be called: a run continues from its journal as soon as its facade is "
            "made"
        )

    def tell(self, info: TrialInfo, value: TrialValue, save: bool = True) -> None:
        """Take in the result of a trial; SMAC's files are saved if it is time to."""
        check_told(value)
        if value.additional_info is None:  # as it may come from a file
            value = replace(value, additional_info={})
        info = self._checked(info)
        if value.status == StatusType.SUCCESS and not np.all(np.isfinite(value.cost)):
            crash_cost = self._scenario.crash_cost
            value = replace(value, status=StatusType.CRASHED, cost=crash_cost)
        if value.additional_info:  # as SMAC does later on, when it would be on record already
            json.dumps(value.additional_info, cls=NumpyEncoder)
        self._acband.take_beforehand(info, value)  # on record before anybody makes use of it
        self._unsaved = True
        super().tell(info, value, save=False)
        since = time.monotonic() - self._last_save
        if save and since > max(SAVE_INTERVAL, self._save_seconds / SAVE_SHARE):
            self.save()

    def _checked(self, info: TrialInfo) -> TrialInfo:
        """Return a trial as one of this run: its configuration is of the very space, it has a seed.

        A space may be equal to ours and have another name: its configurations are others' to SMAC.
        """
        if info.config.config_space is not self._scenario.configspace:
            own = in_space(self._scenario.configspace, info.config, what="config")
            info = replace(info, config=own)
        if info.instance not in self._instance_names:
            raise ValueError(
                f"instance must be one of those to train on but got {info.instance!r}"
                if self._scenario.instances
                else f"instance must be None, as the scenario has none, but got {info.instance!r}"
            )
        if info.seed is None:
            if not self._scenario.deterministic:
                raise ValueError(
                    "seed must be given, since the scenario is not deterministic, but is None"
                )
            info = replace(info, seed=self._only_seed)
        return info

    @cached_property
    def _only_seed(self) -> int:
        """The seed of all trials of a deterministic target."""
        return self._acband.engine.key(0).seed

    def validate(self, config: Configuration, *, seed: int | None = None) -> Validation:
        """Return the mean cost of a configuration on all instances, or on fresh seeds."""
        runner = idle_runner(self._runner, "validate")
        keys = self._acband.get_instance_seed_keys_of_interest(validate=True, seed=seed)
        try:
            (validation,) = validate(runner, [config], keys)
        finally:
            if isinstance(runner, RaceRunner):
                runner.close()
        return validation

    def save(self) -> None:
        """Write SMAC's files, each in one piece, unless they are somebody else's by now.

        Where they have no room, or no directory any more, the run goes on: its journal says so.
        """
        try:
            if self._journal.is_open:
                self._journal.check()
                self._write_files()
            elif not self._save_as_own():
                self._say_unsaved("another process has saved this run")
        except OSError as error:
            self._say_unsaved(f"{error}; but the journal of the run holds all its races")
        except (JournalError, RunDirectoryGoneError, RunInUseError) as error:
            self._say_unsaved(str(error).removesuffix("."))

    def _say_unsaved(self, why: str) -> None:
        self._last_save = time.monotonic()
        logger.warning("SMAC's files could not be saved: %s.", why)

    def save_at_exit(self) -> None:
        """Write SMAC's files if a result is missing in them and nobody else has the run by now."""
        if self._unsaved and not self._all_crashed:
            self._save_as_own()

    def __del__(self) -> None:
        """Save what is missing in SMAC's files, unless another facade has gone on with the run."""
        with suppress(Exception):  # it may never have been whole, or the disk is full: so be it
            directory = self._scenario.output_directory
            others = [one for one in _at_exit if one is not self]
            is_last = all(one._scenario.output_directory != directory for one in others)
            if is_last and self._intensifier.runhistory is self._runhistory:
                self.save_at_exit()

    def _save_as_own(self) -> bool:
        """Write SMAC's files unless somebody else has; raise an error if the run is another's.

        Returns whether they are written.
        """
        directory = self._scenario.output_directory
        if not directory.is_dir():
            raise RunDirectoryGoneError(str(directory))
        is_own = self._stamp() in (self._saved_as, None)  # where nothing is, nothing is lost
        if os.getpid() != self._pid or not is_own:  # a fork is somebody else
            return False
        self._journal.go_on()
        try:
            self._write_files()
        finally:
            self._journal.pause()
        return True

    def _stamp(self) -> tuple[int, int] | None:
        """Return what becomes another when somebody saves the run."""
        with suppress(OSError):
            found = (self._scenario.output_directory / "runhistory.json").stat()
            return found.st_ino, found.st_mtime_ns
        return None

    def _write_files(self, *, with_history: bool = True) -> None:
        self._acband.settle()  # numbers first: the ids of the run history depend on them
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
        if with_history:
            write_whole(directory / "runhistory.json", self._runhistory.save)
        self._saved_as = self._stamp()  # at once: what follows may be interrupted
        write_whole(directory / "intensifier.json", self._intensifier.save)
        self._last_save = time.monotonic()
        self._save_seconds = self._last_save - start
        if with_history:
            self._unsaved = False

    # --- the journal --------------------------------------------------------------------------

    def planned(self, plan: Plan) -> None:
        """Record the plan of a pass."""
        with self._open_journal() as journal:
            journal.add_plan(plan)

    def earlier(self, place: RaceId) -> RaceRecord | None:
        """Return the race of an earlier process in that place."""
        record = self._journal.earlier(place)
        if record is not None and self._acband.settings.proposals != "uniform":
            self._adopt(record)
        return record

    def _adopt(self, record: RaceRecord) -> None:
        """Let racers be what they were: a model differs in the last digits on other machines.

        At once, since what is proposed next depends on them.
        """
        configurations = self._acband.configurations
        for number, values in record.configurations.items():
            if number >= len(configurations) or configurations.has(number, values):
                continue
            own = from_json(self._scenario.configspace, values)
            if configurations.adopt(number, own) and not self._has_adopted:
                self._has_adopted = True
                logger.warning(
                    "Other configurations are proposed now than in the earlier process, as on "
                    "another kind of machine: those on record are used."
                )

    def taken_in(self, record: RaceRecord) -> None:
        """Let the run history have the trials of a race of an earlier process."""
        configurations, pending = self._acband.configurations, self._acband.pending
        for number, values in record.configurations.items():
            if configurations.has(number, values):
                continue
            # Another version of ConfigSpace or numpy may draw others from the same seed.
            if (drawn := plain(dict(configurations[number]))) != values:
                found = [f"configuration {number}: {values} before, {drawn} now"]
                if self._acband.settings.proposals != "uniform":
                    found.append("proposals must give the same one for the same arguments")
                raise RunDiffersError(str(self._scenario.output_directory), found)
        for number, trial in zip(record.racers, record.trials, strict=True):
            if pending.told_of((number, record.key)) is not None:
                continue  # the user told it
            key, value = TrialKey(number, *record.key), as_value(trial)
            if self._history.add_again(configurations[number], key, value):
                self._used_target_function_walltime += trial.time
                self._used_target_function_cputime += trial.cpu_time
                self._acband.show(configurations[number], value)  # as when it was told

    def raced(self, race: PendingRace, values: Sequence[TrialValue]) -> None:
        """Record a race that is over."""
        self._finished_before = None  # what ends the run next is a new end of it
        racers = race.race.racers
        record = RaceRecord(
            id=race.race.id,
            instance=race.race.instance,
            key=race.key,
            racers=racers,
            trials=tuple(as_record(value) for value in values),
            walltime=self.used_walltime,
            n_trials=self._acband.n_finished,
            known=race.told,
        )
        with self._open_journal() as journal:
            journal.add_race(record, dict(zip(racers, race.configs, strict=True)))

    def finished(self, reason: str) -> None:
        """Record that there is nothing left to race."""
        if reason != self._finished_before:
            with self._open_journal() as journal:
                journal.add_note("finished", reason=reason)

    def tested(self, verdict: Verdict) -> None:
        """Record how the incumbent compares with the default on test instances."""
        try:
            with self._open_journal() as journal:
                journal.add_note(VERDICT, **asdict(verdict))
        except (JournalError, RunDirectoryGoneError, RunInUseError, OSError) as error:
            # It holds for this incumbent, whoever has gone on with the run meanwhile.
            logger.warning("The result of the test is not recorded: %s", error)

    @contextmanager
    def _open_journal(self) -> Iterator[Journal]:
        """Write to the journal; outside ``optimize`` let go of it after each line."""
        try:
            yield self._journal
        finally:
            if self._running_since is None:
                self._journal.pause()

    def told(self, trial: ToldTrial) -> None:
        """Record a result that is told before the first race."""
        with self._open_journal() as journal:
            journal.add_told(plain(trial.as_json()))

    def begun(self) -> None:
        """Begin a new journal, with all that was told before the first race."""
        told = [trial.as_json() for trial in self._acband.told]
        with self._open_journal() as journal:
            if journal.path.exists():
                journal.go_on()  # whoever has changed it meanwhile is noticed
            journal.start(self._header(), plain({**self._identity, TOLD: told}))

    def renumber(self) -> None:
        """Give the configurations of a new run their numbers: what was told has had others."""
        self._history.number_anew()

    def _begin_with(self, known: Iterable[ToldTrial], *, write: bool = True) -> None:
        """Begin a new run with the results that are known."""
        self._acband.told = Told(known)
        self._acband.begin(recorder=self, write=write)
        self._take_in_told()

    def _take_in_told(self) -> None:
        for told in self._acband.told:
            self._add_to_history(told.config, told.key, told.value)
        for told in self._acband.told:  # now that all are there: their number is a date
            if not told.warm:
                self._acband.show(told.config, told.value)  # as when it was told

    def _initialize_state(self) -> None:
        self._acband.reset()  # another facade may have had it before
        recorded = None if self._overwrite else self._journal.read()
        goes_on = False
        if recorded is None:
            self._begin_with(self._warm)
        else:
            found = differences(_without_told(recorded.identity), self._identity)
            is_void = _has_only_crashed(recorded) and not self._acband.allow_crashes
            if found and recorded.races and not is_void:
                raise RunDiffersError(str(self._scenario.output_directory), found)
            if found:
                self._begin_with(self._warm)
            elif is_void or recorded.told:  # what was told last is not in its first line yet
                goes_on = not is_void
                self._begin_with(self._told_before(recorded), write=is_void)
            else:
                goes_on = True
                with _nothing_collected():
                    self._restore(recorded)
        directory = self._scenario.output_directory
        directory.mkdir(parents=True, exist_ok=True)
        write_whole(directory / "scenario.json", as_json(scenario_as_json(self._scenario)))
        write_whole(directory / "configspace.json", self._scenario.configspace.to_json)
        # Better refused now than after hours. A run history that is there already may be long,
        # and another process may have saved more in it.
        is_there = goes_on and (directory / "runhistory.json").exists()
        self._write_files(with_history=not is_there)

    def _header(self) -> Header:
        scenario, intensifier = self._scenario, self._acband
        default = scenario.configspace.get_default_configuration()
        return Header(
            settings=intensifier.settings,
            racing=intensifier.racing,
            seed=intensifier.meta["seed"],
            deterministic=scenario.deterministic,
            instances=None if scenario.instances is None else tuple(scenario.instances),
            n_given=intensifier.n_given,
            n_in_space=intensifier.n_in_space,
            n_trials=self._limit,
            default=intensifier.configurations.number_of(default),
            default_values=plain(dict(default)),
            objective=str(scenario.objectives),
            started=time.time(),
            version=__version__,
        )

    @property
    def _limit(self) -> int | None:
        """How many trials the races may have, None for any number."""
        limit = self._acband.n_trials
        return None if math.isinf(limit) else int(limit)

    def _restore(self, recorded: Recorded) -> None:
        """Bring the run history, the clocks and the intensifier to where the journal ends."""
        directory = str(self._scenario.output_directory)
        self._finished_before = recorded.finished
        self._acband.told = self._told_before(recorded)
        self._acband.begin(recorded, recorder=self)
        self._take_in_told()
        self._acband.take_in()
        for race in self._journal.not_asked_for():  # they had become needless
            self.taken_in(race)
        # With racing a race is one piece, but who has finished in the first one leads already.
        self._restore_saved(unraced=not (self._acband.racing and recorded.races))
        self._restore_clocks(recorded.races[-1].walltime if recorded.races else 0.0)
        if self._limit != recorded.n_trials and self.remaining_trials > 0:
            # Who plays the journal needs the limit under which its further races were chosen.
            self._journal.add_note("limits", n_trials=self._limit)
        if recorded.races or self._acband.started:  # before the first ask more may be told
            self._acband.fill()
        # SMAC would run a trial before it looks at the limits.
        self._finished = self._acband.finished is not None or self.budget_exhausted
        if self._finished:
            logger.warning(
                "The run in %s is finished: its result is returned, no further race is run. Use "
                "overwrite=True, or another name or output_directory, to start anew.",
                directory,
            )
        else:
            n_races = len(recorded.races)
            logger.log(
                logging.INFO if n_races else logging.DEBUG,
                "Continuing the run in %s after %s races.",
                directory,
                n_races,
            )

    def _told_before(self, recorded: Recorded) -> Told:
        """Return the results that were told before the first race."""
        space = self._scenario.configspace
        try:
            lines = [*recorded.identity.get(TOLD, []), *recorded.told]
            told = Told(ToldTrial.of_json(one, space) for one in lines)
        except NONSENSE as error:
            what = f"holds results told before the first race that make no sense: {error!r}"
            raise JournalError(str(self._journal.path), 1, what) from error
        warm = [trial for trial in self._warm if not told.replaces(trial)]
        if _warm_results(told) != _warm_results(warm):
            logger.warning(
                "warm_start has changed, but the run continues with the results it began with. Use "
                "overwrite=True to start over with the new ones."
            )
        return told

    def _restore_saved(self, *, unraced: bool) -> None:
        """Take in results that were saved and belong to no race that is over.

        Those of configurations that take no part, and, if ``unraced``, of unfinished races.
        """
        path = self._scenario.output_directory / "runhistory.json"
        configurations = self._acband.configurations

        def is_wanted(key: TrialKey) -> bool:
            if key.config_id >= FIRST_FOREIGN:
                return True
            known = 0 <= key.config_id < len(configurations)
            return unraced and known and key not in self._runhistory

        def keeps(value: TrialValue) -> bool:
            if self._acband.racing:  # a race of crashes is run again: the target may be repaired
                return end_of(value) in (End.FINISHED, End.CUTOFF, End.MEMORY)
            return value.status != StatusType.RUNNING

        try:
            for key, value, values in saved_trials(path, is_wanted):
                if key.config_id >= FIRST_FOREIGN:
                    self._restore_foreign(key, value, values)
                    continue
                config = configurations[key.config_id]
                if keeps(value) and plain(dict(config)) == values:
                    self._add_to_history(config, key, value)
                    self._acband.show(config, value)
                    self._acband.started = True  # or what is told next would change all numbers
        except (OSError, ValueError, TypeError, KeyError):  # not there, or torn: they are run again
            logger.debug("%s cannot be read.", path)

    def _restore_foreign(self, key: TrialKey, value: TrialValue, values: Mapping[str, Any]) -> None:
        """Take in a result of a configuration that takes no part, unless it is there."""
        config = from_json(self._scenario.configspace, values, origin="Told")
        id_ = self._history.config_ids.get(config)
        is_there = id_ is not None and TrialKey(id_, key.instance, key.seed) in self._history
        if not is_there and value.status != StatusType.RUNNING:
            self._add_to_history(config, key, value)

    def _add_to_history(
        self, config: Configuration, key: InstanceKey | TrialKey, value: TrialValue
    ) -> None:
        self._runhistory.add(
            config,
            instance=key.instance,
            seed=key.seed,
            force_update=True,  # a racer that lost may have been run again, to its end
            **vars(value),
        )

    def _restore_clocks(self, walltime: float) -> None:
        """Count the time of the races, or what was saved later, with races that a limit cut off."""
        saved: dict[str, Any] = {}
        path = self._scenario.output_directory / "optimization.json"
        try:
            saved = dict(json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):  # torn, or not there: the journal has the races
            logger.debug("%s cannot be read.", path)
        self._walltime_before = max(walltime, _seconds(saved, "used_walltime"))
        self._used_target_function_walltime = max(
            self._used_target_function_walltime, _seconds(saved, "used_target_function_walltime")
        )
        self._used_target_function_cputime = max(
            self._used_target_function_cputime, _seconds(saved, "used_target_function_cputime")
        )


#: Those that may have something left to save when Python ends; they are not kept for it.
_at_exit: weakref.WeakSet[ACBandOptimizer] = weakref.WeakSet()


@atexit.register
def _save_at_exit() -> None:
    for optimizer in list(_at_exit):
        with suppress(Exception):  # somebody else has the run, or the disk is full: so be it
            optimizer.save_at_exit()


@contextmanager
def _nothing_collected() -> Iterator[None]:
    """Keep Python from looking for garbage, which takes a third of the time of resuming.

    Each look is at all that has been made so far, and all of it is needed.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if gc.get_freeze_count() == 0:  # what is new counts as old, without a look at all of it
            gc.freeze()
            gc.unfreeze()
        if was_enabled:
            gc.enable()


def _seconds(saved: Mapping[str, Any], name: str) -> float:
    """Return a number of seconds; 0 if there is none."""
    value = saved.get(name)
    return float(value) if isinstance(value, (int, float)) and math.isfinite(value) else 0.0


def _without_told(identity: Mapping[str, Any]) -> dict[str, Any]:
    """Return an identity without the results told later, as a script starts with it."""
    return {name: value for name, value in identity.items() if name != TOLD}


def _warm_results(told: Iterable[ToldTrial]) -> Counter[tuple[InstanceKey, float]]:
    return Counter((one.key, cost_of(one.value)) for one in told if one.warm)


def _has_only_crashed(recorded: Recorded) -> bool:
    """Return whether every trial that was run crashed: the target may have been repaired since."""
    ends = (
        trial.end
        for race in recorded.races
        for racer, trial in zip(race.racers, race.trials, strict=True)
        if racer not in race.known
    )
    return next(ends, None) is End.CRASHED and all(end is End.CRASHED for end in ends)


def as_json(content: Any) -> Callable[[Path], object]:
    """Return a function that writes ``content`` to a file."""
    text = json.dumps(content, indent=2, cls=NumpyEncoder)
    return lambda path: path.write_text(text, encoding="utf-8")


def write_whole(path: Path, write: Callable[[Path], object]) -> None:
    """Write a file so that a reader, or a crash, never sees half of it.

    Its directory must be there: one that was deleted during a run is not made again.
    """
    # SMAC insists on the ending of the name.
    temporary = path.with_name(f".{path.stem}.{os.getpid()}.json")
    try:
        write(temporary)
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
