"""SMAC runners: the target in this process, or races in processes of their own, here or on Dask."""

from __future__ import annotations

import functools
import inspect
import math
import os
import resource
import shlex
import time
import traceback
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from ConfigSpace import Configuration
from dask.distributed import Client
from smac.runhistory.dataclasses import TrialInfo, TrialValue
from smac.runhistory.enumerations import StatusType
from smac.runner.abstract_runner import AbstractRunner
from smac.runner.abstract_serial_runner import AbstractSerialRunner
from smac.scenario import Scenario

from acband_configspace.running import (
    Clock,
    CommandTarget,
    PythonTarget,
    RaceCluster,
    RaceSpec,
    RaceTrack,
    ScriptReport,
)
from acband_configspace.running.local.messages import CommandJob
from acband_configspace.smac_plugin.trial_values import Accounting, Ticket, judged

Result = tuple[StatusType, float, float, float, dict[str, Any]]


def make_runner(
    scenario: Scenario,
    target: Callable[..., Any] | str | Sequence[str],
    *,
    racing: bool,
    parallel: bool,
    **options: Any,
) -> AbstractRunner:
    """Return the simplest runner that can do what is asked for."""
    limited = scenario.trial_walltime_limit is not None or scenario.trial_memory_limit is not None
    if racing or parallel or limited or not callable(target):
        return RaceRunner(scenario, target, racing=racing, **options)
    return SerialRunner(scenario, target)


def required_arguments(scenario: Scenario) -> tuple[str, ...]:
    """Return the arguments that a target gets besides the configuration."""
    return ("seed",) if scenario.instances is None else ("instance", "seed")


def check_arguments(target: Callable[..., Any], scenario: Scenario) -> None:
    """Refuse a function that does not take what it will be called with."""
    parameters = inspect.signature(target).parameters
    if any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values()):
        return
    for name in required_arguments(scenario):
        if name not in parameters:
            raise TypeError(f"the target function must take the argument {name!r}: {target!r}")


class SerialRunner(AbstractSerialRunner):
    """Calls a Python function in this process, one trial after the other.

    SMAC's own does so too, but copies the whole space with each configuration, which takes longer
    than all other bookkeeping, and does not count the CPU time of child processes.
    """

    def __init__(self, scenario: Scenario, target: Callable[..., Any]) -> None:
        check_arguments(target, scenario)
        super().__init__(scenario, list(required_arguments(scenario)))
        self._target = target

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
        arguments = {name: known[name] for name in self._required_arguments}
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

    With ``racing`` the trials of a race run at the same time, their cost is the time they take,
    and the losers are stopped when the first has finished. Without, each trial runs to its end and
    its cost is what the target returns, or prints.
    """

    def __init__(
        self,
        scenario: Scenario,
        target: Callable[..., Any] | str | Sequence[str],
        *,
        racing: bool,
        clock: Clock = "wall",
        par: float = 10.0,
        grace: float = 0.05,
        to_arguments: Callable[..., Sequence[object]] | None = None,
        success_codes: Collection[int] | None = None,
        read_result: Callable[[str, int], ScriptReport | None] | None = None,
        directory: str | os.PathLike[str] | None = None,
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
            target,
            to_arguments=to_arguments,
            success_codes=success_codes,
            read_result=read_result,
            directory=directory,
        )
        self._name = getattr(target, "__qualname__", repr(target))
        self._track: RaceTrack | RaceCluster | None = None
        self._gathered: list[TrialInfo] = []
        self._trials: dict[object, list[TrialInfo]] = {}
        self._cancelled: set[object] = set()
        self._n_singles = 0
        self.seconds_left: Callable[[], float] = lambda: math.inf
        """How much time there is: set by the optimizer while it runs."""

    def _as_target(
        self, target: Callable[..., Any] | str | Sequence[str], **options: Any
    ) -> PythonTarget | CommandTarget:
        given = {name: option for name, option in options.items() if option is not None}
        if not callable(target):
            return CommandTarget(target, **given)
        for name, option in given.items():
            raise TypeError(f"{name} must be None for a Python function but got {option!r}")
        check_arguments(target, self._scenario)
        return PythonTarget(target)

    def submit_trial(self, trial_info: TrialInfo) -> None:
        """Queue a trial, in a race once all its racers are there; wait while too many run."""
        ticket = Ticket.of(trial_info)
        first = Ticket.of(self._gathered[0]) if self._gathered else None
        if first is not None and (ticket is None or first.race != ticket.race):
            self._gathered.clear()  # half a race that an interrupted run has left
        self._gathered.append(trial_info)
        together = self._accounting.racing and ticket is not None
        if together and ticket is not None and len(self._gathered) < ticket.n_racers:
            return
        racers, self._gathered = self._gathered, []
        if together and ticket is not None:
            key: object = ("race", ticket.race)
        else:
            self._n_singles += 1
            key = ("trial", self._n_singles)
        # Enough for the supervisor to have the next race at hand when one ends, and no more.
        most = 2 * max(self._n_slots, len(racers))
        while self._n_unfinished >= most and self.seconds_left() > 0:
            self._collect(wait=True)
        self._open_track().start(
            RaceSpec(
                key=key,
                configurations=tuple(racer.config for racer in racers),
                instance=trial_info.instance,
                seed=trial_info.seed,
                stop_losers=together and ticket is not None and not ticket.to_the_end,
                limits=tuple(_limit(racer) for racer in racers) if together else None,
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
            ticket = Ticket.of(first)
            if ticket is not None and ticket.race == race:
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

    @property
    def _n_unfinished(self) -> int:
        return sum(len(trials) for trials in self._trials.values())

    def _cancel(self, key: object) -> None:
        if self._track is not None and key not in self._cancelled:
            self._cancelled.add(key)
            self._track.cancel(key)

    def _open_track(self) -> RaceTrack | RaceCluster:
        if self._track is None:
            options = self._track_options()
            self._track = RaceTrack(self._target, slots=self._n_slots, **options)
        return self._track

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
            ticket = Ticket.of(trials[0])
            values = self._accounting.values(report, None if ticket is None else ticket.race)
            self._results_queue.extend(zip(trials, values, strict=True))


class DaskRaceRunner(RaceRunner):
    """Runs trials like :class:`RaceRunner`, but on the workers of a Dask cluster.

    With ``racing`` all trials of a race run on one worker, otherwise each trial for itself.
    Workers may join and leave: what a lost worker was running is run again elsewhere.

    Parameters
    ----------
    scenario : Scenario
        ``n_workers`` is ignored: the cluster has its own number of workers.
    target : callable, str or list of str
        As for the facade. Sent to each worker once, as is the space.
    client : Client
        Stays open.
    k : int
        How many racers a race has.
    worker_timeout : float
        Seconds to wait for workers when there are none.
    **options
        Those of :class:`RaceRunner`.
    """

    def __init__(
        self,
        scenario: Scenario,
        target: Callable[..., Any] | str | Sequence[str],
        client: Client,
        *,
        k: int,
        worker_timeout: float = 300.0,
        racing: bool,
        **options: Any,
    ) -> None:
        super().__init__(scenario, target, racing=racing, **options)
        self._client = client
        self._given_target = target
        self._k = k if racing else 1
        self._worker_timeout = worker_timeout
        self._cluster: RaceCluster | None = None

    def scatter(self, data: Mapping[str, Any]) -> None:
        """Pass this to the target function as ``data_to_scatter``, as SMAC does.

        It goes to each worker once, as a part of the target, and racers find it in memory.
        """
        if not callable(self._given_target):
            raise TypeError("data_to_scatter must be None for a command, which cannot take it")
        self.close()
        with_data = functools.partial(self._given_target, data_to_scatter=dict(data))
        self._target = PythonTarget(with_data)

    def close(self) -> None:
        """Stop all that runs on the workers; what is submitted later starts them again."""
        super().close()
        self._cluster = None

    @property
    def _n_slots(self) -> int:
        return self._open_track().slots

    def _open_track(self) -> RaceCluster:
        if self._cluster is None:
            self._track = self._cluster = RaceCluster(
                self._client,
                self._target,
                racers=self._k,
                worker_timeout=self._worker_timeout,
                **self._track_options(),
            )
        return self._cluster


def _limit(trial: TrialInfo) -> float | None:
    ticket = Ticket.of(trial)
    return None if ticket is None else ticket.limit


def _cpu_seconds() -> float:
    """Return the CPU time of this process and of its children that have ended."""
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)
