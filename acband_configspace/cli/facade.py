"""From a scenario file to SMAC's Scenario and the facade: the one way out of this room."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from ConfigSpace import Configuration
from smac.callback.callback import Callback
from smac.main.smbo import SMBO
from smac.runhistory.dataclasses import TrialInfo, TrialValue
from smac.scenario import Scenario

from acband_configspace.cli.command_lines import ProgramArguments
from acband_configspace.cli.errors import COMMAND_LINE, InputError, Place, suggestion
from acband_configspace.cli.results import SAID_ABORT
from acband_configspace.cli.scenario.description import ScenarioFile
from acband_configspace.core.settings import settings_from
from acband_configspace.errors import RunDiffersError
from acband_configspace.smac_plugin.facade import ACBandFacade
from acband_configspace.smac_plugin.intensifier import OPTIONS
from acband_configspace.smac_plugin.scenario import DEFAULT_N_TRIALS, ScenarioWithTrials


class AbortCallback(Callback):
    """Ends the run when the target says ABORT: a wrapper's word that nothing will work."""

    def __init__(self) -> None:
        super().__init__()
        self.reason: str | None = None
        """What the target said, once it has."""

    def on_tell_end(self, smbo: SMBO, info: TrialInfo, value: TrialValue) -> bool | None:
        """Return False, SMAC's word for "stop", if this trial's target said ABORT."""
        said = str(value.additional_info.get("additional_info", ""))
        if not said.startswith(SAID_ABORT):
            return None
        self.reason = said
        return False


def make_facade(
    scenario_file: ScenarioFile,
    output: Path,
    *,
    fresh: bool = False,
    workers: int | None = None,
    dask_client: Any = None,
    callbacks: list[Callback] | None = None,
    progress: bool | None = None,
    logging_level: Any = False,
) -> ACBandFacade:
    """Return the facade for a scenario file, with ``output`` as the directory of its run.

    An :class:`InputError` names the place of an option that does not exist, or is refused.
    """
    check_options(scenario_file)
    scenario = _scenario(scenario_file, output, workers=workers)
    default = dict(scenario_file.space.get_default_configuration())
    program, *_ = scenario_file.line.words(default, "", 0, 1.0)
    try:
        given = [Configuration(scenario_file.space, values=dict(v)) for v in scenario_file.given]
        return ACBandFacade(
            scenario,
            racing=scenario_file.racing,
            clock=scenario_file.clock,
            par=scenario_file.par,
            initial_design=ACBandFacade.get_initial_design(scenario, additional_configs=given),
            overwrite=fresh,
            dask_client=dask_client,
            callbacks=callbacks,
            progress=progress,
            logging_level=logging_level,
            target_function=[program],
            to_arguments=ProgramArguments(scenario_file.line, scenario_file.cutoff),
            success_codes=scenario_file.success_codes,
            read_result=scenario_file.reader,
            directory=scenario_file.directory,
            **scenario_file.options,
        )
    except RunDiffersError:
        raise  # it says itself what to do
    except (TypeError, ValueError) as error:
        raise _refused(scenario_file, error) from error


def runs_at_a_time(scenario_file: ScenarioFile) -> int:
    """Return how many runs there are at a time: the k of a race, or one where nothing races."""
    if not scenario_file.racing:
        return 1
    options = {name: v for name, v in scenario_file.options.items() if name in OPTIONS}
    try:
        return settings_from(**options).racers(racing=True)
    except (TypeError, ValueError) as error:
        raise _refused(scenario_file, error) from error


def _refused(scenario_file: ScenarioFile, error: Exception) -> InputError:
    """Return what is wrong with an option, with its place."""
    option = str(error).partition(" ")[0]
    place = scenario_file.option_places.get(option, Place(scenario_file.path))
    return InputError(place, str(error))


def _scenario(scenario_file: ScenarioFile, output: Path, *, workers: int | None) -> Scenario:
    """Return SMAC's scenario; its directory is exactly ``output``."""
    instances = scenario_file.instances
    # Without a number of trials there is a time limit, and with SMAC's own it alone decides.
    kind: type[Scenario] = Scenario if scenario_file.n_trials is None else ScenarioWithTrials
    scenario = kind(
        scenario_file.space,
        name=output.name or "run",
        deterministic=scenario_file.deterministic,
        crash_cost=scenario_file.crash_cost,
        trial_walltime_limit=scenario_file.limit,  # fractions count
        trial_memory_limit=scenario_file.memory_limit,
        instances=None if instances is None else list(instances),
        n_trials=scenario_file.n_trials or DEFAULT_N_TRIALS,
        walltime_limit=scenario_file.walltime_limit or math.inf,
        cputime_limit=scenario_file.cputime_limit or math.inf,
        seed=scenario_file.seed,
        n_workers=workers or scenario_file.workers,
    )
    # SMAC would append the name and the seed.
    object.__setattr__(scenario, "output_directory", output)
    return scenario


def check_options(scenario_file: ScenarioFile) -> None:
    """Refuse options that do not exist, with the nearest one that does."""
    known = (*OPTIONS, "grace", "worker_timeout")
    for name in scenario_file.options:
        if name not in known:
            place = scenario_file.option_places[name]
            near = (*known, *scenario_file.keys) if place == COMMAND_LINE else known
            raise InputError(place, f"unknown option {name!r}{suggestion(name, near)}")
