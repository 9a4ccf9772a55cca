"""AC-Band as a SMAC facade: put ``ACBandFacade`` in place of SMAC's own in any script."""

from __future__ import annotations

import html
import logging
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, NoReturn, cast

import smac
from ConfigSpace import Configuration
from dask.distributed import Client
from smac.acquisition.function.abstract_acquisition_function import AbstractAcquisitionFunction
from smac.acquisition.maximizer.random_search import RandomSearch
from smac.callback.callback import Callback
from smac.facade.random_facade import RandomFacade
from smac.initial_design.abstract_initial_design import AbstractInitialDesign
from smac.initial_design.default_design import DefaultInitialDesign
from smac.intensifier.abstract_intensifier import AbstractIntensifier
from smac.model.random_model import RandomModel
from smac.random_design.abstract_random_design import AbstractRandomDesign
from smac.runhistory.encoder.encoder import RunHistoryEncoder
from smac.runner.abstract_runner import AbstractRunner
from smac.scenario import Scenario

from acband_configspace.core.schedule import Schedule
from acband_configspace.core.search_plan import SearchSchedule
from acband_configspace.core.settings import Settings
from acband_configspace.core.statistics import Statistic
from acband_configspace.errors import RunInterrupted
from acband_configspace.running import Clock, ScriptReport
from acband_configspace.running.signals import exit_on_signals, interrupt_on_ctrl_c
from acband_configspace.smac_plugin.configurations import Configurations, from_json
from acband_configspace.smac_plugin.identity import identity_of, name_of
from acband_configspace.smac_plugin.intensifier import NOT_GIVEN, OPTIONS, ACBandIntensifier
from acband_configspace.smac_plugin.logs import set_up_logging
from acband_configspace.smac_plugin.optimizer import ACBandOptimizer
from acband_configspace.smac_plugin.options import (
    OF_DESIGNS,
    OF_INTENSIFIERS,
    RUNNER_OPTIONS,
    check_run_options,
    configs_of,
    warn_of_ignored,
    without_ignored,
)
from acband_configspace.smac_plugin.progress import (
    ProgressCallback,
    how_it_stands,
    in_notebook,
    is_terminal,
)
from acband_configspace.smac_plugin.proposals import Proposals
from acband_configspace.smac_plugin.runhistory import LinearRunHistory
from acband_configspace.smac_plugin.runners import (
    RaceRunner,
    TargetFunction,
    check_arguments,
    make_runner,
)
from acband_configspace.smac_plugin.scenario import (
    hold_back,
    own_copy,
    refuse_unsupported,
    validation_keys,
)
from acband_configspace.smac_plugin.validation import (
    TestResults,
    Validation,
    idle_runner,
    rehearse,
    validate,
)
from acband_configspace.smac_plugin.warm_start import WarmStart, earlier_results, source_name

logger = logging.getLogger(__name__)

#: Arguments of SMAC's facades that have no meaning here.
IGNORED = (
    "model", "acquisition_function", "acquisition_maximizer", "random_design",
    "multi_objective_algorithm", "runhistory_encoder", "config_selector",
)  # fmt: skip


class ACBandFacade(RandomFacade):
    """Configures a target with AC-Band, in place of one of SMAC's facades.

    .. code-block:: python

        from acband_configspace import ACBandFacade as Facade

        facade = Facade(scenario, target)
        print(facade.schedule)          # what will be done
        incumbent = facade.optimize()

    The arguments are those of SMAC's facades; the options of :class:`ACBandIntensifier` (``k``,
    ``alpha``, …) may be given here as well. A run that was interrupted goes on when the script is
    started again. If a setting has changed, an error lists what differs; limits may change.

    Parameters
    ----------
    scenario : Scenario
        ``trial_walltime_limit`` is the cutoff (fractions of a second count), and
        ``trial_memory_limit`` holds for the whole process tree of a trial.
    target_function : callable, str, list of str, or runner
        A function as in SMAC, or a script or binary: its name, or the beginning of its argument
        list. It is called as in SMAC, ``--instance=… --seed=… --name=value``.
    racing : bool
        Minimise the run time: the k racers of a race run at the same time, as far as workers are
        free, each in a process of its own, and when the first has finished the others are stopped.
        The value that a function returns is then not its cost. Set ``trial_walltime_limit``: a run
        without end would hold up all others.
    clock : "wall" | "cpu"
        Which run time counts.
    par : float
        A racer that meets the cutoff costs ``par`` times the cutoff.
    grace : float
        Seconds between asking a loser to end (SIGTERM) and ending it (SIGKILL).
    to_arguments : callable | None
        For a binary with a command line of its own: from (config, instance, seed, cutoff) to the
        list of arguments.
    success_codes : collection of int | None
        The exit codes that mean that a binary ran to its end: 0 by default. SAT solvers exit with
        10 or 20.
    progress : bool | None
        Whether to show a :class:`ProgressCallback`: by default in a notebook, or if the standard
        error stream is a terminal, and no such callback is given.
    test_instances : list of str | None
        The incumbent and the default are compared on them at the end: see ``test_results``. A
        function must then take the argument ``instance``, which is None before that if the scenario
        has no instances.
    test_share : float | None
        Instead of ``test_instances``: the share of the scenario's instances to hold back for it.
    warm_start : run directory | RunHistory | list of (config, instance, seed, cost) | None
        Earlier results of the same space, whose costs mean the same. The k best of these
        configurations race from the start, on the instances and seeds with the most results; known
        results of these and of the default are not run again, and use none of ``n_trials``.
    allow_crashes : bool
        Whether to go on if every trial of the first round crashes.
    dask_client : Client | None
        Run on the workers of this Dask cluster, each race on one of them; ``n_workers`` is
        ignored. Each worker runs as many trials at once as it has threads. Workers may come and go,
        but hardly more tasks are sent than there is room for: a cluster that adapts to demand needs
        a minimum. The client stays open.
    worker_timeout : float
        How many seconds to wait for workers when the cluster has none, before giving up.
    read_result : callable | None
        For a command that prints its result in a way of its own: from (standard output, exit code)
        to a :class:`~acband_configspace.running.ScriptReport`. A ``runtime`` in it counts in place
        of the time measured here.
    directory : str | Path | None
        Where a command runs: here by default, or where a worker of the cluster is.
    preset, k, first_pass, proposals, first, memory, alpha, delta, n_candidates, n_epochs, budget, \
statistic, early_stopping, playoff, spend
        Options of :class:`ACBandIntensifier`, unless an ``intensifier`` is given.

    intensifier : ACBandIntensifier | None
        One of SMAC's is ignored with a warning.
    initial_design : AbstractInitialDesign | None
        Its configurations race from the start.
    overwrite : bool
        Whether to start over if there is a run of the same name, whose files are then replaced.
    logging_level, callbacks
        As in SMAC's facades; ``logging_level=False`` leaves logging alone.
    model, acquisition_function, acquisition_maximizer, random_design, \
multi_objective_algorithm, runhistory_encoder, config_selector
        Accepted so that SMAC scripts run unchanged, and ignored with a warning: SMAC's model is not
        used.

    Limits: see :class:`ACBandIntensifier`.
    """

    def __init__(
        self,
        scenario: Scenario,
        target_function: TargetFunction | AbstractRunner | None = None,
        *,
        racing: bool = False,
        clock: Clock = "wall",
        par: float = 10.0,
        grace: float = 0.05,
        to_arguments: Callable[..., Sequence[object]] | None = None,
        success_codes: Collection[int] | None = None,
        read_result: Callable[[str, int], ScriptReport | None] | None = None,
        directory: str | Path | None = None,
        intensifier: AbstractIntensifier | None = None,
        initial_design: AbstractInitialDesign | None = None,
        test_instances: Sequence[str] | None = None,
        test_share: float | None = None,
        warm_start: WarmStart | None = None,
        allow_crashes: bool = False,
        logging_level: int | Path | Literal[False] | None = None,
        callbacks: list[Callback] | None = None,
        progress: bool | None = None,
        overwrite: bool = False,
        dask_client: Client | None = None,
        worker_timeout: float = 300.0,
        model: object = None,
        acquisition_function: object = None,
        acquisition_maximizer: object = None,
        random_design: object = None,
        multi_objective_algorithm: object = None,
        runhistory_encoder: object = None,
        config_selector: object = None,
        preset: str | Settings = NOT_GIVEN,
        k: int | None = NOT_GIVEN,
        first_pass: int | None = NOT_GIVEN,
        proposals: str | Proposals = NOT_GIVEN,
        first: Literal["default", "random"] = NOT_GIVEN,
        memory: bool | None = NOT_GIVEN,
        alpha: float | None = NOT_GIVEN,
        delta: float = NOT_GIVEN,
        n_candidates: int | None = NOT_GIVEN,
        n_epochs: int | None = NOT_GIVEN,
        budget: int | None = NOT_GIVEN,
        statistic: str | Statistic = NOT_GIVEN,
        early_stopping: float | None = NOT_GIVEN,
        playoff: int = NOT_GIVEN,
        spend: Literal["nothing", "configurations"] = NOT_GIVEN,
    ) -> None:
        arguments = locals()
        set_up_logging(logging_level)
        refuse_unsupported(scenario)
        check_run_options(arguments)
        warn_of_ignored("ACBandFacade", _ignored(arguments))
        if test_share is not None:
            if test_instances is not None:
                raise TypeError("test_share must be None if test_instances are given")
            scenario, test_instances = hold_back(scenario, test_share)
        if test_instances is not None:
            check_arguments(target_function, ["instance"])
        if initial_design is None:
            initial_design = self.get_initial_design(scenario)
        # As SMAC does before it asks a design: a random one would draw others in each process.
        scenario.configspace.seed(scenario.seed)
        added = configs_of(initial_design)
        options = {name: arguments[name] for name in OPTIONS if arguments[name] is not NOT_GIVEN}
        intensifier = self._checked_intensifier(
            scenario, intensifier, {**options, "racing": racing, "additional_configs": added}
        )
        intensifier.allow_crashes = allow_crashes
        k = intensifier.meta["k"]
        self._warm = earlier_results(
            warm_start,
            scenario,
            most=k,
            with_default=intensifier.settings.first == "default",
            racing=racing,
            clock=clock,
            par=par,
        )
        source = None if warm_start is None else source_name(warm_start, self._warm)
        self._identity = identity_of(
            scenario,
            **({} if source is None else {"warm_start": source}),
            **({} if success_codes is None else {"success_codes": sorted(success_codes)}),
            **{f"intensifier_{k}" if k == "seed" else k: v for k, v in intensifier.meta.items()},
            given=[dict(config) for config in intensifier.additional_configs],
            clock=clock,
            par=par,
        )
        code = [target_function, to_arguments, read_result]
        code += [] if directory is None else [str(directory)]
        scenario = own_copy(scenario, partial(name_of, self._identity, *code))
        self._test_instances = None if test_instances is None else [str(i) for i in test_instances]
        self._given_target = target_function
        self._scale = {"racing": racing, "par": par, "cutoff": scenario.trial_walltime_limit}
        self.test_results: TestResults | None = None
        """After ``optimize``, with ``test_instances`` or ``test_share``: how good the incumbent is
        beside the default. ``print`` it for the verdict."""
        self._own_runner = make_runner(
            scenario,
            target_function,
            dask_client=dask_client,
            worker_timeout=worker_timeout,
            k=k,
            **{name: arguments[name] for name in RUNNER_OPTIONS},
        )
        super().__init__(
            scenario,
            None,  # SMAC would wrap a runner of ours in Dask to have several workers
            intensifier=intensifier,
            initial_design=initial_design,
            logging_level=False,
            callbacks=_with_progress(callbacks or [], progress),
            overwrite=overwrite,
        )

    def _checked_intensifier(
        self, scenario: Scenario, intensifier: object, options: dict[str, Any]
    ) -> ACBandIntensifier:
        """Return the user's intensifier, or one with these options, fit for this run."""
        if intensifier is None or _is_foreign(intensifier):
            checked = self.get_intensifier(scenario, **options)
        elif not isinstance(intensifier, ACBandIntensifier):
            raise TypeError(f"intensifier must be an ACBandIntensifier but got {intensifier!r}")
        elif given := [name for name in options if name in OPTIONS]:
            raise TypeError(f"{', '.join(given)} must be given to the intensifier that was passed")
        else:
            # Made before there was a facade, it knows neither how trials run nor what else races.
            checked = intensifier.with_run(
                scenario,
                racing=options["racing"],
                additional_configs=options["additional_configs"],
            )
        if checked.settings.proposals == "selector":
            raise ValueError(
                "proposals must not be 'selector' in ACBandFacade, which has no model: give it to "
                "the intensifier of another of SMAC's facades"
            )
        return checked

    @staticmethod
    def get_intensifier(  # type: ignore[override]
        scenario: Scenario, **options: Any
    ) -> ACBandIntensifier:
        """Return an :class:`ACBandIntensifier` with these options; others of SMAC's are ignored."""
        known = without_ignored("get_intensifier", options, OF_INTENSIFIERS)
        return ACBandIntensifier(scenario, **known)

    @staticmethod
    def get_initial_design(
        scenario: Scenario, *, additional_configs: list[Configuration] | None = None, **options: Any
    ) -> DefaultInitialDesign:
        """Return the design of a run: θ_0 and what is added; other options of SMAC's are ignored.

        For a Sobol, Latin hypercube or other design, pass one to the facade.
        """
        if unknown := without_ignored("get_initial_design", options, OF_DESIGNS):
            raise TypeError(f"get_initial_design has no option {next(iter(unknown))!r}")
        added = additional_configs or []
        # The numbers mean nothing here, but SMAC would say that it reduces them.
        return DefaultInitialDesign(
            scenario, n_configs_per_hyperparameter=1, max_ratio=1.0, additional_configs=added
        )

    @staticmethod
    def get_model(scenario: Scenario, **options: Any) -> RandomModel:
        """Return a dummy: AC-Band needs no model."""
        warn_of_ignored("get_model", list(options))
        return RandomModel(configspace=scenario.configspace, seed=scenario.seed)

    @staticmethod
    def get_acquisition_function(scenario: Scenario, **options: Any) -> AbstractAcquisitionFunction:
        """Return a dummy: AC-Band needs no acquisition function."""
        warn_of_ignored("get_acquisition_function", list(options))
        return RandomFacade.get_acquisition_function(scenario)

    @staticmethod
    def get_acquisition_maximizer(scenario: Scenario, **options: Any) -> RandomSearch:
        """Return a dummy: AC-Band needs no acquisition function."""
        warn_of_ignored("get_acquisition_maximizer", list(options))
        return RandomFacade.get_acquisition_maximizer(scenario)

    @staticmethod
    def get_random_design(scenario: Scenario, **options: Any) -> AbstractRandomDesign:
        """Return a dummy: there is no model to interleave random configurations with."""
        warn_of_ignored("get_random_design", list(options))
        return RandomFacade.get_random_design(scenario)

    @staticmethod
    def get_runhistory_encoder(scenario: Scenario) -> RunHistoryEncoder:
        """Return a dummy: there is no model to encode for, nor need for instance features."""
        return RunHistoryEncoder(replace(scenario, instances=None, instance_features=None))

    @property
    def schedule(self) -> Schedule | SearchSchedule:
        """The plan: what will be done, before anything runs."""
        return self.intensifier.schedule

    def _repr_html_(self) -> str:
        text = how_it_stands(self.optimizer, interrupted=False)
        results = "" if self.test_results is None else self.test_results._repr_html_()
        return f"<pre>{html.escape(text)}\n\n{html.escape(str(self.schedule))}</pre>{results}"

    @property
    def meta(self) -> dict[str, Any]:
        """What identifies the run, without the code of the target: see :mod:`.identity`."""
        return {
            "facade": {"name": type(self).__name__},
            "intensifier": self._intensifier.meta,
            "version": smac.version,
        }

    def optimize(self, *, data_to_scatter: dict[str, Any] | None = None) -> Configuration:
        """Run to the end of the plan or to a limit, and return the winner.

        A run that is interrupted continues when it is started again. Ctrl-C says where the
        run is, in three lines, and raises :class:`~acband_configspace.errors.RunInterrupted`: a
        KeyboardInterrupt, which ends a script that does not catch it with exit status 130.

        Parameters
        ----------
        data_to_scatter : dict[str, Any] | None
            Sent to each worker once, and passed to the target function as its argument
            ``data_to_scatter``: with a ``dask_client``, or where racers have processes of their
            own.
        """
        if data_to_scatter and isinstance(self._runner, RaceRunner):
            self._runner.scatter(data_to_scatter)
            data_to_scatter = None
        try:
            with exit_on_signals(), interrupt_on_ctrl_c():
                if data_to_scatter is not None and not data_to_scatter:
                    raise ValueError("data_to_scatter must not be empty but got {}")
                # Not by way of SMAC's facade, which saves also where the run was refused, and
                # belongs to another process.
                incumbent = self.optimizer.optimize(data_to_scatter=data_to_scatter)
                assert not isinstance(incumbent, list)  # one objective, one incumbent
                if self._test_instances is not None and incumbent is not None:
                    self._close_runner()
                    self._test(incumbent, self._test_instances)
        except KeyboardInterrupt as interrupt:
            self._interrupted(interrupt)
        finally:
            self._close_runner()
            for progress in self._displays:
                progress.close()  # SMAC tells callbacks of the end, but of no exception
        return incumbent

    def _interrupted(self, interrupt: KeyboardInterrupt) -> NoReturn:
        """Say where the run is, and let the interrupt go on its way."""
        for progress in self._displays:
            progress.close()
        summary = how_it_stands(self.optimizer)
        print(summary, file=sys.stderr)
        if in_notebook() or hasattr(sys, "ps1"):  # a prompt would take SystemExit for its own end
            raise interrupt
        raise RunInterrupted(summary) from None

    def _test(self, incumbent: Configuration, instances: Sequence[str]) -> None:
        """Run the incumbent and the default on the test instances, and say how they compare."""
        default = self._scenario.configspace.get_default_configuration()
        is_default = dict(incumbent) == dict(default)
        own, other = self.validate_all([incumbent, default], instances)
        seen = not set(instances).isdisjoint(self._scenario.instances or ())
        what = "test instances" if seen else "unseen instances"
        results = TestResults.of(own, other, what=what, is_default=is_default, **self._scale)
        self.test_results = results
        assert isinstance(self.optimizer, ACBandOptimizer)
        self.optimizer.tested(results.verdict)
        if not any(progress.say(str(results)) for progress in self._displays):
            logger.info("%s", results)

    def validate(
        self,
        config: Configuration | Mapping[str, Any],
        instances: Sequence[str] | None = None,
        *,
        seed: int | None = None,
    ) -> Validation:
        """Return the mean cost of a configuration, run to its end or cutoff on each instance.

        Parameters
        ----------
        config : Configuration | Mapping[str, Any]
            Or its values, as they come out of a file.
        instances : Sequence[str] | None
            The scenario's by default; without any, fresh seeds. A target function must take the
            argument ``instance`` if there are any.
        seed : int | None
            What the seeds of the runs are drawn from; the scenario's by default.
        """
        (validation,) = self.validate_all([config], instances, seed=seed)
        return validation

    def validate_all(
        self,
        configs: Sequence[Configuration | Mapping[str, Any]],
        instances: Sequence[str] | None = None,
        *,
        seed: int | None = None,
    ) -> list[Validation]:
        """Validate several configurations, to compare them.

        They take turns, instance by instance, so that a machine that slows down does so for all;
        duplicates are run once. The arguments are those of :meth:`validate`.
        """
        runner = idle_runner(self._runner, "validate")
        if instances is not None:
            check_arguments(self._given_target, ["instance"])
        space = self._scenario.configspace
        own = [one if isinstance(one, Configuration) else from_json(space, one) for one in configs]
        names = self._scenario.instances if instances is None else [str(i) for i in instances]
        try:
            return validate(runner, own, validation_keys(self._scenario, names, seed))
        finally:
            self._close_runner()

    def check(self) -> bool:
        """Race the default configuration against a random one on one instance, and say how it went.

        Prints the command, the times, who was stopped and what is wrong; nothing is recorded.
        Returns whether all is in order.
        """
        runner = idle_runner(self._runner, "check")
        racers = {"default": self._scenario.configspace.get_default_configuration()}
        # Not of those of the run, who may be proposed in view of races that are yet to come.
        drawn = Configurations(
            self._scenario.configspace, [racers["default"]], seed=self._scenario.seed
        )
        if drawn.draw(2) > 1:
            racers["random"] = drawn[1]
        key = validation_keys(self._scenario, self._scenario.instances, None)[0]
        try:
            report, in_order = rehearse(
                self._scenario, runner, racers, key, racing=self.intensifier.racing
            )
        finally:
            self._close_runner()
        print(report)
        return in_order

    def _close_runner(self) -> None:
        if isinstance(self._runner, RaceRunner):
            self._runner.close()

    def _get_optimizer(self) -> ACBandOptimizer:
        return ACBandOptimizer(
            self._scenario,
            self._runner,
            cast(LinearRunHistory, self._runhistory),  # see _update_dependencies
            self.intensifier,
            identity=self._identity,
            warm=self._warm,
            overwrite=self._overwrite,
        )

    def _update_dependencies(self) -> None:
        self._runhistory = LinearRunHistory()
        self._runhistory.number_of = lambda one: self.intensifier.number_of(one)
        if self._runner is None:
            self._runner = self._own_runner
        super()._update_dependencies()

    @property
    def _displays(self) -> list[ProgressCallback]:
        return [one for one in self._callbacks if isinstance(one, ProgressCallback)]

    @property
    def intensifier(self) -> ACBandIntensifier:
        """The intensifier, which asks the engine for races and tells it their outcomes."""
        assert isinstance(self._intensifier, ACBandIntensifier)
        return self._intensifier


def _is_foreign(intensifier: object) -> bool:
    """Return whether this is one of SMAC's intensifiers, and not ours."""
    ours = isinstance(intensifier, ACBandIntensifier)
    return isinstance(intensifier, AbstractIntensifier) and not ours


def _ignored(arguments: Mapping[str, Any]) -> list[str]:
    """Return the arguments that were given and have no meaning here."""
    names = [name for name in IGNORED if arguments[name] is not None]
    return [*names, "intensifier"] if _is_foreign(arguments["intensifier"]) else names


def _with_progress(callbacks: list[Callback], progress: bool | None) -> list[Callback]:
    """Add a progress display if it is wanted and there is none."""
    given = any(isinstance(callback, ProgressCallback) for callback in callbacks)
    if sys.stderr is None:  # closed, as by a daemon: nobody would see it
        progress = False
    wanted = is_terminal(sys.stderr) or in_notebook() if progress is None else progress
    return callbacks if given or not wanted else [*callbacks, ProgressCallback()]
