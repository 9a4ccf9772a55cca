"""Who takes part in the comparison: AC-Band, SMAC's facades, irace and Optuna.

Each is set up as its documentation advises, with the space's default given where there is a place
for it. SMAC's facades may try a configuration on all instances, not on three only. Runs that are
timed are measured by the target itself, but for AC-Band, whose races are timed from outside.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import dask
import numpy as np
from compare_jobs import CUTOFF, JOBS, PAR, Job
from ConfigSpace import CategoricalHyperparameter, ConfigurationSpace, OrdinalHyperparameter
from ConfigSpace.hyperparameters import FloatHyperparameter, IntegerHyperparameter
from dask.distributed import Client, LocalCluster
from smac import (
    Callback,
    HyperparameterOptimizationFacade,
    RandomFacade,
    Scenario,
)
from smac.facade.abstract_facade import AbstractFacade
from smac.initial_design.abstract_initial_design import AbstractInitialDesign
from smac.main.smbo import SMBO
from smac.runhistory import TrialInfo, TrialValue

from acband_configspace import ACBandFacade

#: SMAC wants a number of trials, also where time is the limit: more than there will be.
NO_LIMIT = 100_000
#: How many configurations SMAC HPO begins with at most where time is the limit. By default a
#: quarter of the trials, of which it comes to 200 to 500 on these jobs.
MOST_AT_FIRST = 50
#: What a run that SMAC's capping stops costs, in multiples of the time that it had: who costs as
#: much as the incumbent would go on.
STOPPED_COST = 1.01


@dataclass(frozen=True)
class Task:
    """One run of a method: what to do it on, and with what."""

    job_name: str
    seed: int
    seconds: float
    """The limit of timed jobs ..."""
    n_trials: int
    """... and of all others."""
    workers: int
    """How many runs there are at a time: one after the other where trials are the limit."""
    folder: Path
    """For whatever is written ..."""
    instances: Path
    """... but for instances that are files."""

    @property
    def job(self) -> Job:
        """What to configure."""
        return JOBS[self.job_name]

    @property
    def train(self) -> list[str]:
        """The instances to train on."""
        return self.job.train(self.instances)

    @property
    def limit(self) -> float:
        """What may be spent, in seconds or trials."""
        return self.seconds if self.job.timed else self.n_trials


@dataclass(frozen=True)
class Run:
    """What a method did."""

    trajectory: list[tuple[float, dict[str, Any]]]
    """Seconds or trials spent, and what it would have returned from then on."""
    elapsed: float
    in_target: float
    """Seconds in which the target ran, of all workers together."""
    n_trials: int
    n_configs: int
    versions: dict[str, str] = field(default_factory=dict)
    """Of the packages that it was made with: a run may be kept for long."""
    yardstick: float | None = None
    """Milliseconds of CPU time that the machine took for a fixed piece of work, before and after:
    on a machine twice as fast, the same seconds are twice as much."""


def plain(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values in Python's own types, which JSON can write."""
    values = {name: config[name] for name in sorted(config)}
    return {n: v.item() if isinstance(v, np.generic) else v for n, v in values.items()}


@contextmanager
def worker_pool(task: Task) -> Iterator[Executor]:
    """Start processes that measure runs for those who have none of their own, before the clock."""
    with ProcessPoolExecutor(task.workers, get_context("spawn")) as pool:
        list(pool.map(be_there, range(task.workers)))
        yield pool


def be_there(number: int) -> None:
    """Import this module in a process of a pool, and leave time for the next one to start."""
    time.sleep(0.5)


# --- AC-Band and SMAC -------------------------------------------------------------------------


def run_acband(task: Task, **options: Any) -> Run:
    """Run AC-Band, racing where the cost is a run time."""
    job = task.job
    if job.race is not None:
        options = {**options, **job.race, "racing": True, "clock": "cpu", "par": PAR}
        scenario = make_scenario(task, trial_walltime_limit=CUTOFF)
    else:
        options["target_function"] = make_target(job, task.train)
        scenario = make_scenario(task)
    facade = ACBandFacade(scenario, logging_level=30, progress=False, **options)
    return run_facade(facade, task)


class SameSpace(Callback):
    """Lets SMAC know its configurations again when they come back from a Dask worker.

    ConfigSpace 1.2 does not hold an integer on a log scale equal to its own copy, so that SMAC
    would take each result for that of a new configuration, and wait for the one it asked for.
    """

    def on_tell_start(self, smbo: SMBO, info: TrialInfo, value: TrialValue) -> None:  # noqa: D102
        info.config.config_space = smbo._scenario.configspace


class NoRunWithoutTime(Callback):
    """Spares a run for which SMAC's capping has left no time.

    It has lost already, but SMAC asks for it, and its model believes any cost. The target is told
    of a negative limit: so much the incumbent takes, and so the run counts as a little more.
    """

    def on_ask_end(self, smbo: SMBO, info: TrialInfo) -> None:  # noqa: D102
        incumbent = smbo.intensifier.get_incumbent()
        if incumbent is not None and info.additional_info.get("cutoff", np.inf) <= 0:
            mean = float(np.mean(smbo.runhistory.average_cost(incumbent)))
            info.additional_info["cutoff"] = -mean


def run_smac(
    task: Task,
    facade_class: type[AbstractFacade],
    *,
    features: bool = False,
    capped: bool = False,
) -> Run:
    """Run one of SMAC's facades, on Dask if there is more than one worker."""
    job, names = task.job, task.train
    own: dict[str, Any] = {"adaptive_capping": capped}  # which is off as SMAC comes
    if features and job.features is not None:
        own["instance_features"] = {name: list(job.features(name)) for name in names}
    options: dict[str, Any] = {
        "logging_level": 30,
        "overwrite": True,
        "callbacks": [SameSpace(), NoRunWithoutTime()] if capped else [SameSpace()],
    }
    scenario = make_scenario(task, **own)
    if facade_class in (RandomFacade, HyperparameterOptimizationFacade) and names:
        options["intensifier"] = facade_class.get_intensifier(scenario, max_config_calls=len(names))
    if facade_class is HyperparameterOptimizationFacade:
        options["initial_design"] = default_first(scenario, timed=job.timed)
    with dask_client(scenario.n_workers) as client:
        target = make_capped_target(job) if capped else make_target(job, names)
        facade = facade_class(scenario, target, dask_client=client, **options)
        return run_facade(facade, task)


def default_first(scenario: Scenario, *, timed: bool) -> AbstractInitialDesign:
    """Return HPO's own design with the default before all others, where other facades have it."""
    make_design = HyperparameterOptimizationFacade.get_initial_design
    design = make_design(scenario)
    if timed and design.meta["n_configs"] > MOST_AT_FIRST:
        design = make_design(scenario, n_configs=MOST_AT_FIRST)
    default = scenario.configspace.get_default_configuration()
    first = [default, *design.select_configurations()]
    return make_design(scenario, n_configs=0, additional_configs=first)


def make_target(job: Job, names: list[str]) -> Callable[..., float]:
    """Return the cost as a function with the arguments that SMAC wants."""

    def cost(config: Mapping[str, Any], instance: str, seed: int = 0) -> float:
        return job.cost(config, instance, seed, CUTOFF)

    def cost_alone(config: Mapping[str, Any], seed: int = 0) -> float:
        return job.cost(config, "", seed, CUTOFF)

    return cost if names else cost_alone


def make_capped_target(job: Job) -> Callable[..., float]:
    """Return the cost as a function that SMAC tells how long it may take."""

    def cost(config: Mapping[str, Any], instance: str, cutoff: float, seed: int = 0) -> float:
        if cutoff <= 0:  # see NoRunWithoutTime
            return STOPPED_COST * -cutoff
        seconds = job.cost(config, instance, seed, min(CUTOFF, cutoff))
        return STOPPED_COST * cutoff if seconds > cutoff and cutoff < CUTOFF else seconds

    return cost


def make_scenario(task: Task, **own: Any) -> Scenario:
    """Return the scenario of a task."""
    limits: dict[str, Any] = {"n_trials": task.n_trials}
    if task.job.timed:
        limits = {"walltime_limit": task.seconds, "n_trials": NO_LIMIT}
    return Scenario(
        task.job.space(),
        instances=task.train or None,
        deterministic=True,
        n_workers=task.workers,
        seed=task.seed,
        output_directory=task.folder / "smac",
        **limits,
        **own,
    )


@contextmanager
def dask_client(workers: int) -> Iterator[Client | None]:
    """Start SMAC's workers before its clock, and end them in order, which SMAC's own does not."""
    if workers == 1:
        yield None
        return
    # Workers must be allowed to have children, as SMAC has them.
    dask.config.set({"distributed.worker.daemon": False})
    with (
        LocalCluster(workers, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        yield client


def run_facade(facade: AbstractFacade, task: Task) -> Run:
    """Let a facade optimize, and tell what it did."""
    facade.optimize()
    optimizer, history = facade._optimizer, facade.runhistory
    trajectory = [
        (
            float(item.walltime if task.job.timed else item.trial),
            plain(history.get_config(item.config_ids[0])),
        )
        for item in facade.intensifier.trajectory
        if item.config_ids
    ]
    return Run(
        trajectory=trajectory,
        elapsed=optimizer.used_walltime,
        in_target=optimizer.used_target_function_walltime,
        n_trials=history.finished,
        # SMAC notes configurations before they run; only what came to an end was tried.
        n_configs=len({k.config_id for k, v in history.items() if v.status.name != "RUNNING"}),
    )


# --- Optuna -----------------------------------------------------------------------------------


@dataclass
class Account:
    """What was spent, and what was the best by then, told by several threads."""

    task: Task
    start: float = field(default_factory=time.perf_counter)
    n_trials: int = 0
    in_target: float = 0.0
    trajectory: list[tuple[float, dict[str, Any]]] = field(default_factory=list)
    best: float = np.inf
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def spent(self) -> float:
        """Seconds or trials."""
        return time.perf_counter() - self.start if self.task.job.timed else self.n_trials

    @property
    def over(self) -> bool:
        """Whether the limit is met."""
        return self.spent >= self.task.limit

    def add(self, seconds: float) -> None:
        """Count a trial."""
        with self.lock:
            self.n_trials += 1
            self.in_target += seconds

    def offer(self, config: Mapping[str, Any], mean: float) -> None:
        """Note a configuration that has met all instances."""
        with self.lock:
            if mean < self.best:
                self.best = mean
                self.trajectory.append((float(self.spent), plain(config)))


def timed_cost(
    job_name: str, config: Mapping[str, Any], instance: str, limit: float
) -> tuple[float, float]:
    """Return the cost of a run, and how many seconds passed, in a process of a pool."""
    start = time.perf_counter()
    cost = JOBS[job_name].cost(config, instance, 0, limit)
    return cost, time.perf_counter() - start


def run_optuna(task: Task) -> Run:
    """Run Optuna's TPE with its WilcoxonPruner, which compares on common instances.

    As its documentation shows: instances in a new random order each time, and a trial that is
    pruned returns the mean so far. Who has met all instances can be returned; before there is
    anybody, it is the default, which is tried first.
    """
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    space, names = task.job.space(), task.train or [""]
    default = space.get_default_configuration()
    # Some parameters have conditions: a model of all that are active together needs groups.
    sampler = optuna.samplers.TPESampler(
        seed=task.seed, constant_liar=task.workers > 1, multivariate=True, group=True
    )
    study = optuna.create_study(sampler=sampler, pruner=optuna.pruners.WilcoxonPruner())
    study.enqueue_trial(_as_optuna(space, plain(default)))
    tried: set[str] = set()
    with worker_pool(task) if task.job.timed else nullcontext() as pool:
        account = Account(task)

        def objective(trial: Any) -> float:
            config = _suggested(trial, space)
            order = np.random.default_rng([task.seed, trial.number]).permutation(len(names))
            costs: list[float] = []
            for number in order.tolist():
                if account.over:
                    study.stop()
                    raise optuna.TrialPruned
                cost, seconds = (
                    pool.submit(timed_cost, task.job_name, config, names[number], CUTOFF).result()
                    if pool is not None
                    else timed_cost(task.job_name, config, names[number], CUTOFF)
                )
                account.add(seconds)
                tried.add(repr(config))
                costs.append(cost)
                trial.report(cost, number)
                if trial.should_prune():
                    return float(np.mean(costs))
            account.offer(config, float(np.mean(costs)))
            return float(np.mean(costs))

        study.optimize(objective, n_jobs=task.workers)
        elapsed = time.perf_counter() - account.start
    return Run(account.trajectory, elapsed, account.in_target, account.n_trials, len(tried))


def _suggested(trial: Any, space: ConfigurationSpace) -> dict[str, Any]:
    """Ask Optuna for the parameters that are active, parents first."""
    config: dict[str, Any] = {}
    for name, parameter in space.items():
        conditions = space.parent_conditions_of[name]
        parents = {parent.name for parent in space.parents_of[name]}
        if not parents <= config.keys():
            continue
        if not all(condition.satisfied_by_value(config) for condition in conditions):
            continue
        if isinstance(parameter, CategoricalHyperparameter):
            config[name] = trial.suggest_categorical(name, list(parameter.choices))
        elif isinstance(parameter, OrdinalHyperparameter):  # Optuna knows no order but numbers'
            config[name] = parameter.sequence[trial.suggest_int(name, 0, parameter.size - 1)]
        elif isinstance(parameter, IntegerHyperparameter):
            low, high = int(parameter.lower), int(parameter.upper)
            config[name] = trial.suggest_int(name, low, high, log=parameter.log)
        elif isinstance(parameter, FloatHyperparameter):
            lower, upper = float(parameter.lower), float(parameter.upper)
            config[name] = trial.suggest_float(name, lower, upper, log=parameter.log)
        else:
            raise TypeError(f"{parameter} must be a category, an order or a number")
    return plain(config)


def _as_optuna(space: ConfigurationSpace, config: Mapping[str, Any]) -> dict[str, Any]:
    """Return a configuration as ``_suggested`` would have been told of it."""
    ordinal = {n: p for n, p in space.items() if isinstance(p, OrdinalHyperparameter)}
    return {
        name: ordinal[name].sequence.index(value) if name in ordinal else value
        for name, value in config.items()
    }
