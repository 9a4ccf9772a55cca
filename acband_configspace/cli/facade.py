"""From a scenario file to SMAC's Scenario and the facade: the one way out of this room."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ConfigSpace import Configuration
from smac.callback.callback import Callback
from smac.main.smbo import SMBO
from smac.runhistory.dataclasses import TrialInfo, TrialValue
from smac.scenario import Scenario

from acband_configspace.cli.command_lines import ProgramArguments
from acband_configspace.cli.errors import COMMAND_LINE, InputError, Place, suggestion
from acband_configspace.cli.results import ABORT, ExitCode
from acband_configspace.cli.scenario.description import PLENTY, ScenarioFile
from acband_configspace.cli.target import CommandFunction
from acband_configspace.errors import RunDiffersError
from acband_configspace.smac_plugin.facade import ACBandFacade
from acband_configspace.smac_plugin.intensifier import ACBandIntensifier
from acband_configspace.smac_plugin.scenario import DEFAULT_N_TRIALS

#: As our own function says it, or as a racer's report is told; not just any such word of a target.
_SAID_ABORT = re.compile(rf"the target said {ABORT}\b|\bstatus='?{ABORT}\b")


class AbortCallback(Callback):
    """Ends the run when the target says ABORT: a wrapper's word that nothing will work."""

    def __init__(self) -> None:
        super().__init__()
        self.reason: str | None = None
        """What the target said, once it has."""

    def on_tell_end(self, smbo: SMBO, info: TrialInfo, value: TrialValue) -> bool | None:
        """Return False, SMAC's word for "stop", if this trial's target said ABORT."""
        said = " ".join(
            str(value.additional_info.get(key, "")) for key in ("error", "reported", "traceback")
        )
        if not _SAID_ABORT.search(said):
            return None
        self.reason = str(value.additional_info.get("error") or said).strip()
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

    Raises
    ------
    InputError
        If there is no such option, or the facade refuses what it is given.
    """
    check_options(scenario_file)
    scenario = _scenario(scenario_file, output, workers=workers)
    try:
        return ACBandFacade(
            scenario,
            racing=scenario_file.racing,
            clock=scenario_file.clock,
            par=scenario_file.par,
            initial_design=ACBandFacade.get_initial_design(
                scenario,
                additional_configs=[
                    Configuration(scenario_file.space, values=dict(values))
                    for values in scenario_file.given
                ],
            ),
            overwrite=fresh,
            dask_client=dask_client,
            callbacks=callbacks,
            progress=progress,
            logging_level=logging_level,
            **_target(scenario_file, remote=dask_client is not None),
            **scenario_file.options,
        )
    except RunDiffersError:
        raise  # it says itself what to do
    except (TypeError, ValueError) as error:
        raise InputError(Place.of(scenario_file.path), str(error)) from error


def _target(scenario_file: ScenarioFile, *, remote: bool) -> dict[str, Any]:
    """Return the facade's arguments about what runs."""
    line, reader = scenario_file.line, scenario_file.reader
    if remote and reader is None:
        reader = ExitCode()  # a command would run where the worker is, not in the directory
    if reader is None:
        words = line.words(dict(scenario_file.space.get_default_configuration()), "", 0, 1.0)
        return {
            "target_function": words[:1],
            "to_arguments": ProgramArguments(line),
            "success_codes": scenario_file.success_codes,
        }
    function: Callable[..., Any] = CommandFunction(
        line=line,
        reader=reader,
        success_codes=scenario_file.success_codes,
        directory=str(scenario_file.directory),
        cutoff=scenario_file.cutoff,
    )
    return {"target_function": function}


def _scenario(scenario_file: ScenarioFile, output: Path, *, workers: int | None) -> Scenario:
    """Return SMAC's scenario; its directory is exactly ``output``."""
    instances = scenario_file.instances
    # With a time limit, and SMAC's own number of trials, the time alone decides.
    timed = scenario_file.walltime_limit or scenario_file.cputime_limit
    scenario = Scenario(
        scenario_file.space,
        name=output.name or "run",
        deterministic=scenario_file.deterministic,
        crash_cost=scenario_file.crash_cost,
        trial_walltime_limit=scenario_file.cutoff,  # fractions count
        trial_memory_limit=scenario_file.memory_limit,
        instances=None if instances is None else list(instances),
        n_trials=scenario_file.n_trials or (DEFAULT_N_TRIALS if timed else PLENTY),
        walltime_limit=scenario_file.walltime_limit or math.inf,
        cputime_limit=scenario_file.cputime_limit or math.inf,
        seed=scenario_file.seed,
        n_workers=workers or scenario_file.workers,
    )
    # SMAC would append the name and the seed.
    object.__setattr__(scenario, "output_directory", output)
    return scenario


def option_names() -> list[str]:
    """Return the options of the facade that a scenario may give."""
    parameters = inspect.signature(ACBandIntensifier.__init__).parameters
    named = [name for name in parameters if name not in ("self", "scenario", "seed")]
    return [*named, "grace", "worker_timeout"]


def check_options(scenario_file: ScenarioFile) -> None:
    """Refuse options that do not exist, with the nearest one that does."""
    known = option_names()
    for name in scenario_file.options:
        if name not in known and not _takes_anything():
            place = scenario_file.option_places.get(name, COMMAND_LINE)
            near = (*known, *scenario_file.keys) if place == COMMAND_LINE else known
            raise InputError(place, f"unknown option {name!r}{suggestion(name, near)}")


def _takes_anything() -> bool:
    parameters = inspect.signature(ACBandIntensifier.__init__).parameters
    return any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values())


def configuration(scenario_file: ScenarioFile, values: Mapping[str, Any]) -> Configuration:
    """Return a configuration of the scenario's space from plain values."""
    return Configuration(scenario_file.space, values=dict(values))
