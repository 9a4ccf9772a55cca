"""SMAC runners: the target in this process, or races in processes of their own, here or on Dask."""

from __future__ import annotations

import functools
import inspect
import logging
import math
import resource
import shlex
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from ConfigSpace import Configuration
from dask.distributed import Client
from smac.runhistory.dataclasses import TrialInfo, TrialValue
from smac.runhistory.enumerations import StatusType
from smac.runner.abstract_runner import AbstractRunner
from smac.runner.abstract_serial_runner import AbstractSerialRunner
from smac.runner.dask_runner import DaskParallelRunner
from smac.runner.target_function_runner import TargetFunctionRunner
from smac.runner.target_function_script_runner import TargetFunctionScriptRunner
from smac.scenario import Scenario

from acband_configspace.running import (
    Clock,
    CommandTarget,
    PythonTarget,
    RaceCluster,
    RaceSpec,
    RaceTrack,
)
from acband_configspace.running.local.messages import CommandJob
from acband_configspace.smac_plugin.trial_values import Accounting, Ticket, judged

logger = logging.getLogger(__name__)

TargetFunction = Callable[..., Any] | str | Sequence[str]
"""A function, a program, or the beginning of a program's argument list."""
Result = tuple[StatusType, float, float, float, dict[str, Any]]


def make_runner(
    scenario: Scenario,
    target: TargetFunction | AbstractRunner | None,
    *,
    dask_client: Client | None,
    worker_timeout: float,
    k: int,
    racing: bool,
    **options: Any,
) -> AbstractRunner | None:
    """Return what runs the target: a runner of the user's own, on a cluster, or the simplest."""
    if target is None:
        return None
    if isinstance(target, AbstractRunner):
        if dask_client is not None:
            raise TypeError(
                "dask_client must be None with a runner of your own: give the client to that runner"
            )
        if scenario.n_workers > 1 and isinstance(target, AbstractSerialRunner):
            logger.warning(
                "n_workers=%s has no effect on a runner of your own: %s runs one trial after the "
                "other. Pass the target function itself, or a runner that has several workers.",
                scenario.n_workers,
                type(target).__name__,
            )
        return target
    if dask_client is not None:
        return DaskRaceRunner(
            scenario,
            target,
            dask_client,
            k=k,
            worker_timeout=worker_timeout,
            racing=racing,
            **options,
        )
    limited = scenario.trial_walltime_limit is not None or scenario.trial_memory_limit is not None
    if racing or limited or scenario.n_workers > 1 or not callable(target):
        return RaceRunner(scenario, target, racing=racing, **options)
    return SerialRunner(scenario, target)


def required_arguments(scenario: Scenario) -> tuple[str, ...]:
    """Return the arguments that a target gets besides the configuration."""
    return ("seed",) if scenario.instances is None else ("instance", "seed")


def check_arguments(target: object, names: Iterable[str]) -> None:
    """Refuse a function that does not take what it will be called with.

    A command is given all there is, and a runner of the user's own knows itself what to pass on;
    one of SMAC's passes on what it was told to.
    """
    if isinstance(target, DaskParallelRunner):
        target = target._single_worker
    if isinstance(target, (TargetFunctionRunner, TargetFunctionScriptRunner)):
        for name in names:
            if name not in target._required_arguments:
                raise TypeError(
                    f"the runner must pass on the argument {name!r} but has "
                    f"required_arguments={target._required_arguments!r}"
                )
    if not callable(target) or isinstance(target, AbstractRunner):
        return
    parameters = inspect.signature(target).parameters
    if any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values()):
        return
    for name in names:
        if name not in parameters:
            raise TypeError(f"the target function must take the argument {name!r}: {target!r}")


class SerialRunner(AbstractSerialRunner):
    """Calls a Python function in this process, one trial after the other.

    SMAC's own does so too, but copies the whole space with each configuration, which takes longer
    than all other bookkeeping, and does not count the CPU time of child processes.
    """

    def __init__(self, scenario: Scenario, target: Callable[..., Any]) -> None:
        required = required_arguments(scenario)
        check_arguments(target, required)
        super().__init__(scenario, list(required))
        self._target = target
        instance = inspect.signature(target).parameters.get("instance")
        self._asks_for_instance = instance is not None and instance.default is instance.empty

    def run(
        self,
        config: Configuration,
        instance: str | None = None,
        budget: float | None = None,
        seed: int | None = None,
        additional_info: dict[str, Any] | None = None,
        **scattered: Any,
    ) -> Result:
        """Call the target; an exception is a crash."""
        known = {"instance": instance, "seed": seed}
        names = set(self._required_arguments)
        # A scenario without any may still be tested on some.
        if instance is not None or self._asks_for_instance:
            names.add("instance")
        arguments = {name: value for name, value in known.items() if name in names}
        # The target may change its configuration, but not ours.
        own = Configuration(
            config.config_space,
            vector=config.get_array().copy(),
            origin=config.origin,
            config_id=config.config_id,
        )
        start, cpu_start = time.monotonic(), _cpu_seconds()
        try:
            returned = self._target(own, **arguments, **scattered)
        except Exception as error:  # the target's own, whatever it is: a crash of this trial
            status, cost = StatusType.CRASHED, math.inf
            info: dict[str, Any] = {"traceback": traceback.format_exc(), "error": repr(error)}
        else:
            status, cost, info = judged(returned)
        if status == StatusType.CRASHED:
            cost = float(np.max(self._scenario.crash_cost))
        return status, cost, time.monotonic() - start, _cpu_seconds() - cpu_start, info


class RaceRunner(AbstractRunner):
    """Runs trials in processes of their own, limited and accounted for.

    With ``racing`` the trials of a race run at the same time, as far as slots are free; their cost
    is the time they take, and the losers are stopped when the first has finished. Without, each
    trial runs to its end and its cost is what the target returns, or prints. Options
    ``of_commands`` are those of :class:`~acband_configspace.running.CommandTarget`; None stands for
    its default.
    """

    def __init__(
        self,
        scenario: Scenario,
        target: TargetFunction,
        *,
        racing: bool,
        clock: Clock = "wall",
        par: float = 10.0,
        grace: float = 0.05,
        **of_commands: Any,
    ) -> None:
        super().__init__(scenario, list(required_arguments(scenario)))
        self._accounting = Accounting(
            racing=racing,
            clock=clock,
            par=par,
            cutoff=scenario.trial_walltime_limit,
            crash_cost=float(np.max(scenario.crash_cost)),
        )
        self._grace = grace
        self._target = self._as_target(
            target, {name: given for name, given in of_commands.items() if given is not None}
        )
        self._given_target = target
        self._name = getattr(target, "__qualname__", repr(target))
        self._track: RaceTrack | RaceCluster | None = None
        self._gathered: list[TrialInfo] = []
        self._trials: dict[object, list[TrialInfo]] = {}
        self._cancelled: set[object] = set()
        self._n_singles = 0
        self.seconds_left: Callable[[], float] = lambda: math.inf
        """How much time there is: set by the optimizer while it runs."""

    def _as_target(
        self, target: TargetFunction, of_commands: Mapping[str, Any]
    ) -> PythonTarget | CommandTarget:
        if not callable(target):
            return CommandTarget(target, **of_commands)
        for name, option in of_commands.items():
            raise TypeError(f"{name} must be None for a Python function but got {option!r}")
        check_arguments(target, required_arguments(self._scenario))
        return PythonTarget(target)

    def scatter(self, data: Mapping[str, Any]) -> None:
        """Pass this to the target function as ``data_to_scatter``, as SMAC does.

        It goes to each worker once, as a part of the target, and racers find it in memory.
        """
        if not callable(self._given_target):
            raise TypeError("data_to_scatter must be None for a command, which cannot take it")
        self.close()
        with_data = functools.partial(self._given_target, data_to_scatter=dict(data))
        self._target = PythonTarget(with_data)

    def submit_trial(self, trial_info: TrialInfo) -> None:
        """Queue a trial, in a race once all its racers are there; wait while too many run."""
        if self._gathered and _race_of(self._gathered[0]) != _race_of(trial_info):
            self._gathered.clear()  # half a race that an interrupted run has left
        self._gathered.append(trial_info)
        race = Ticket.of(trial_info) if self._accounting.racing else None
        if race is not None and len(self._gathered) < race.n_racers:
            return
        racers, self._gathered = self._gathered, []
        self._n_singles += race is None
        key: object = ("trial", self._n_singles) if race is None else ("race", race.race)
        while self._has_enough(len(racers)) and self.seconds_left() > 0:
            self._collect(wait=True)
        self._open_track().start(
            RaceSpec(
                key=key,
                configurations=tuple(racer.config for racer in racers),
                instance=trial_info.instance,
                seed=trial_info.seed,
                stop_losers=race is not None and not race.to_the_end,
                limits=None if race is None else tuple(_limit(racer) for racer in racers),
            )
        )
        self._trials[key] = racers

    def iter_results(self) -> Iterator[tuple[TrialInfo, TrialValue]]:
        """Yield the trials that are over."""
        self._collect(wait=False)
        while self._results_queue:
            yield self._results_queue.pop(0)

    def wait(self) -> None:
        """Wait until a trial is over; if the time is, stop them all."""
        self._collect(wait=True)

    def is_running(self) -> bool:  # noqa: D102
        return bool(self._trials)

    def count_available_workers(self) -> int:  # noqa: D102
        return max(0, self._n_slots - self._n_unfinished)

    def cancel(self, race: str) -> None:
        """Stop a race whose outcome no longer matters; its trials are reported as cancelled."""
        for key, (first, *_) in self._trials.items():
            if _race_of(first) == race:
                self._cancel(key)

    def stop(self) -> None:
        """Stop all races: the time is up. Their trials are reported as cancelled."""
        for key in self._trials:
            self._cancel(key)

    def close(self) -> None:
        """Stop all that runs and end the processes; what is submitted later starts them again."""
        if self._track is not None:
            self._track.close()
            self._track = None
        self._trials.clear()
        self._cancelled.clear()
        self._gathered.clear()
        self._results_queue.clear()

    @property
    def n_workers(self) -> int:
        """How many racers can run at once."""
        return self._scenario.n_workers

    def command(self, config: Configuration, instance: str | None, seed: int | None) -> str:
        """Return how the target is called, for a person to read."""
        if isinstance(self._target, PythonTarget):
            return f"{self._name}({', '.join(('config', *self._target.arguments))})"
        cutoff = self._scenario.trial_walltime_limit
        job = self._target.job(config, instance=instance, seed=seed, cutoff=cutoff, shared=None)
        return shlex.join(job.arguments) if isinstance(job, CommandJob) else str(job)

    def run(
        self,
        config: Configuration,
        instance: str | None = None,
        budget: float | None = None,
        seed: int | None = None,
        additional_info: dict[str, Any] | None = None,
    ) -> Result:
        """Run one trial and wait for it."""
        track = self._open_track()
        track.start(RaceSpec(("run",), (config,), instance, seed, stop_losers=False))
        while not (reports := track.wait()):
            pass
        (value,) = self._accounting.values(reports[0], None)
        cost = float(np.max(value.cost))
        return value.status, cost, value.time, value.cpu_time, value.additional_info

    @property
    def _n_slots(self) -> int:
        return self._scenario.n_workers

    def _has_enough(self, n_racers: int) -> bool:
        """Return whether a race of so many racers must wait for another to end.

        There are enough if the supervisor has the next race at hand when one ends. How many that
        is may change while we wait: workers join a cluster.
        """
        return self._n_unfinished >= 2 * max(self._n_slots, n_racers)

    @property
    def _n_unfinished(self) -> int:
        return sum(len(trials) for trials in self._trials.values())

    def _cancel(self, key: object) -> None:
        if self._track is not None and key not in self._cancelled:
            self._cancelled.add(key)
            self._track.cancel(key)

    def _open_track(self) -> RaceTrack | RaceCluster:
        if self._track is None:
            self._track = self._new_track()
        return self._track

    def _new_track(self) -> RaceTrack | RaceCluster:
        return RaceTrack(self._target, slots=self._n_slots, **self._track_options())

    def _track_options(self) -> dict[str, Any]:
        memory = self._scenario.trial_memory_limit
        return {
            "cutoff": self._scenario.trial_walltime_limit,
            "memory_limit_mb": None if memory is None else math.ceil(memory),
            "clock": self._accounting.clock,
            "grace": self._grace,
            "shared": self._scenario.configspace,
        }

    def _collect(self, *, wait: bool) -> None:
        """Fetch what is over into the queue."""
        if self._track is None or not self._trials:
            return
        seconds = self.seconds_left() if wait else 0.0
        if wait and seconds <= 0:
            self.stop()
            seconds = math.inf  # they are gone within the grace
        reports = self._track.wait(None if seconds == math.inf else seconds)
        for report in reports:
            trials = self._trials.pop(report.key)
            self._cancelled.discard(report.key)
            values = self._accounting.values(report, _race_of(trials[0]))
            self._results_queue.extend(zip(trials, values, strict=True))


class DaskRaceRunner(RaceRunner):
    """Runs trials like :class:`RaceRunner`, but on the workers of a Dask cluster.

    With ``racing`` all trials of a race run on one worker, otherwise each trial for itself.
    Workers may join and leave: what a lost worker was running is run again elsewhere. The target
    and the space are sent to each worker once. ``n_workers`` of the scenario is ignored, and the
    client stays open.
    """

    def __init__(
        self,
        scenario: Scenario,
        target: TargetFunction,
        client: Client,
        *,
        k: int,
        worker_timeout: float = 300.0,
        racing: bool,
        **options: Any,
    ) -> None:
        super().__init__(scenario, target, racing=racing, **options)
        self._client = client
        self._k = k if racing else 1
        self._worker_timeout = worker_timeout

    @property
    def n_workers(self) -> int:
        """How many racers can run at once; 0 as long as none was sent to the cluster."""
        return 0 if self._track is None else self._track.slots

    @property
    def _n_slots(self) -> int:
        return self._open_track().slots

    def _new_track(self) -> RaceCluster:
        return RaceCluster(
            self._client,
            self._target,
            racers=self._k,
            worker_timeout=self._worker_timeout,
            **self._track_options(),
        )


def _race_of(trial: TrialInfo) -> str | None:
    ticket = Ticket.of(trial)
    return None if ticket is None else ticket.race


def _limit(trial: TrialInfo) -> float | None:
    ticket = Ticket.of(trial)
    return None if ticket is None else ticket.limit


def _cpu_seconds() -> float:
    """Return the CPU time of this process and of its children that have ended."""
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)
