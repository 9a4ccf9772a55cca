"""Scenario files of AClib, SMAC (1 to 3 v1) and ParamILS."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ConfigSpace import Configuration, ConfigurationSpace

from acband_configspace.cli.command_lines import Aclib2Command, CommandLine, OldAclibCommand
from acband_configspace.cli.errors import InputError, Place
from acband_configspace.cli.files import locate, read_text, unquoted
from acband_configspace.cli.results import AclibResult
from acband_configspace.cli.scenario.assignments import (
    Assignment,
    Settings,
    plain_key,
    read_assignments,
)
from acband_configspace.cli.scenario.description import ScenarioFile
from acband_configspace.cli.scenario.instances import ListedInstance, listed_instances
from acband_configspace.cli.scenario.options import parsed_options
from acband_configspace.cli.scenario.values import choice, number, truth, whole
from acband_configspace.cli.spaces.formats import read_space

_KEYS = {
    "algo": ("algoExec", "ta", "algo-executable"),
    "execdir": ("algoExecDir", "exec-dir"),
    "deterministic": ("algo-deterministic",),
    "run_obj": ("run-objective", "runObj"),
    "overall_obj": ("intra-obj", "intra-instance-obj", "overall-objective"),
    "cutoff_time": ("cutoff", "algo-cutoff-time", "target-run-cputime-limit"),
    "cutoff_length": ("algo-cutoff-length",),
    "memory_limit": ("memory", "algo-memory-limit"),
    "tunerTimeout": ("algo_runs_timelimit", "cputime_limit", "tuner-timeout"),
    "wallclock_limit": ("runtime-limit", "wallclock"),
    "runcount_limit": ("ta_run_limit", "total-num-runs-limit", "number-of-runs-limit", "trials"),
    "paramfile": ("pcs_fn", "pcs-file", "param-file"),
    "instance_file": ("instances", "train_inst_fn", "instance-train-file"),
    "test_instance_file": ("test-instances", "test_inst_fn"),
    "feature_file": ("instance_feature_file", "feature_fn"),
    "cost_for_crash": (),
    "initial_incumbent": (),
    "always_race_default": (),
    "outdir": ("output-dir", "output_directory"),
    "seed": (),
    "call_format": ("tae", "tae_runner_obj", "ta_call_format"),
}
_ALIASES = {plain_key(word): key for key, others in _KEYS.items() for word in (key, *others)}
#: Keys that AClib's scenarios may have, about things that do not exist here.
_UNUSED = (
    "validation", "abort_on_first_run_crash", "check_instances_exist", "check-instances-exist",
    "adaptive-capping", "capping", "hydra_iterations", "instance_seed_file",
    "intensification_percentage", "iteration_limit", "limit_resources", "maxR", "minR",
    "multi_objectives", "obj", "output_level", "pca_dim", "rand_prob", "rf_num_trees",
    "save_results_instantly", "shared_model", "shared-model-mode", "transform_y",
    "use-instances", "initial_challengers", "minimize_intensify_challengers",
    "acq_opt_challengers", "input_psmac_dirs", "stats-file", "scenario",
)  # fmt: skip
KEYS = frozenset(_ALIASES)


def read_aclib(path: Path, overrides: Mapping[str, str]) -> ScenarioFile:
    """Read a scenario of ``key = value`` lines; the command line's ``overrides`` come last."""
    settings = Settings(_ALIASES, {plain_key(word) for word in _UNUSED})
    settings.add_all(read_assignments(read_text(path), path))
    settings.override(overrides)
    return _Reader(path, settings).scenario()


class _Reader:
    def __init__(self, path: Path, settings: Settings) -> None:
        self._path = path
        self._settings = settings
        # As AClib has it, all paths are relative to where the configurator is started.
        self._folders = (Path.cwd(), path.resolve().parent)
        self._notes = settings.notes

    def scenario(self) -> ScenarioFile:
        quality = self._choice("run_obj", ("runtime", "quality"), "runtime") == "quality"
        instances = self._instances("instance_file")
        test = self._instances("test_instance_file")
        space = self._space()
        cutoff = self._number("cutoff_time")
        limit, wall = self._number("tunerTimeout"), self._number("wallclock_limit")
        crash = self._number("cost_for_crash")
        self._note_unused()
        outdir = self._settings.get("outdir")
        return ScenarioFile(
            path=self._path,
            format="aclib",
            line=self._line([*(instances or ()), *(test or ())]),
            space=space,
            reader=AclibResult(quality=quality),
            success_codes=tuple(range(256)),  # the result line says how it went
            directory=self._directory(),
            instances=None if instances is None else tuple(i.name for i in instances),
            test_instances=None if test is None else tuple(i.name for i in test),
            racing=not quality,
            clock="cpu",
            par=self._par(quality),
            cutoff=cutoff,
            memory_limit=self._whole("memory_limit"),
            crash_cost=math.inf if crash is None else crash,
            deterministic=self._truth("deterministic", True),
            n_trials=self._whole("runcount_limit"),
            walltime_limit=wall,
            cputime_limit=limit,
            given=self._given(space),
            seed=self._whole("seed", at_least=0) or 0,
            output=None if outdir is None else Path(unquoted(outdir.value)),
            **parsed_options(self._settings.options),
            keys=tuple(_KEYS),
            notes=tuple(self._notes),
        )

    def _required(self, key: str) -> Assignment:
        found = self._settings.get(key)
        if found is None:
            raise InputError(Place.of(self._path), f"the key {key!r} is missing")
        return found

    def _number(self, key: str) -> float | None:
        found = self._settings.get(key)
        if found is None or found.value.lower() in ("inf", "infinity", "none", "null"):
            return None
        return number(found.key, unquoted(found.value), found.place, at_least=0)

    def _whole(self, key: str, at_least: int = 1) -> int | None:
        value, found = self._number(key), self._settings.get(key)
        if value is None or found is None:
            return None
        return whole(found.key, value, found.place, at_least=at_least)

    def _truth(self, key: str, default: bool) -> bool:
        found = self._settings.get(key)
        return default if found is None else truth(found.key, unquoted(found.value), found.place)

    def _choice(self, key: str, known: tuple[str, ...], default: str) -> str:
        found = self._settings.get(key)
        if found is None:
            return default
        return choice(found.key, unquoted(found.value), known, found.place)

    def _file(self, found: Assignment) -> Path:
        path = locate(unquoted(found.value), self._folders)
        if not path.is_file():
            raise InputError(found.place, f"{found.key}: there is no file {unquoted(found.value)}")
        return path

    def _space(self) -> ConfigurationSpace:
        return read_space(self._file(self._required("paramfile")))

    def _directory(self) -> Path:
        found = self._settings.get("execdir")
        if found is None:
            return Path.cwd()
        folder = locate(unquoted(found.value), self._folders).resolve()
        if not folder.is_dir():
            raise InputError(found.place, f"{found.key}: there is no folder {folder}")
        return folder

    def _instances(self, key: str) -> list[ListedInstance] | None:
        found = self._settings.get(key)
        return None if found is None else listed_instances(self._file(found))

    def _line(self, instances: list[ListedInstance]) -> CommandLine:
        found = self._required("algo")
        try:
            command = tuple(shlex.split(unquoted(found.value)))
        except ValueError as error:
            raise InputError(found.place, f"{found.key} cannot be read: {error}") from None
        if self._choice("call_format", ("old", "aclib", "aclib2"), "old") != "old":
            return Aclib2Command(command)
        length = self._settings.get("cutoff_length")
        text = "0" if length is None else unquoted(length.value)
        return OldAclibCommand(
            command,
            specifics={i.name: i.rest for i in instances if i.rest},
            cutoff_length="2147483647" if text.lower() == "max" else text,
        )

    def _par(self, quality: bool) -> float:
        found = self._settings.get("overall_obj")
        if found is None:
            return 1.0 if quality else 10.0
        match = re.fullmatch(r"(?:par|mean|adj_mean)(\d*)", unquoted(found.value).lower())
        if match is None:
            raise InputError(
                found.place,
                f"{found.key} must be mean or PAR10, say, but got {unquoted(found.value)!r}",
            )
        return max(1.0, float(match[1] or 1))

    def _given(self, space: ConfigurationSpace) -> tuple[Mapping[str, Any], ...]:
        found = self._settings.get("initial_incumbent")
        if found is None or unquoted(found.value).upper() in ("DEFAULT", "RANDOM"):
            return ()
        pairs = re.findall(r"-?([^\s=,]+?)(?:\s*=\s*|\s+)['\"]?([^\s'\",]+)['\"]?", found.value)
        return (given_configuration(space, dict(pairs), found.place),)

    def _note_unused(self) -> None:
        for key, why in {
            "feature_file": "features are not used",
            "always_race_default": "the default always races here",
        }.items():
            if found := self._settings.get(key):
                self._notes.append(f"{found.place}: {found.key} is read, but {why}")


def given_configuration(
    space: ConfigurationSpace, texts: Mapping[str, str], place: Place
) -> Mapping[str, Any]:
    """Return a configuration from its values' texts, the space's defaults where none is given."""
    from ConfigSpace.hyperparameters import IntegerHyperparameter, NumericalHyperparameter
    from ConfigSpace.util import deactivate_inactive_hyperparameters

    values = {hp.name: hp.default_value for hp in space.values()}
    for name, text in texts.items():
        if name not in space:
            raise InputError(place, f"there is no parameter {name!r}")
        parameter = space[name]
        if isinstance(parameter, NumericalHyperparameter):
            value = number(name, text, place)
            values[name] = int(value) if isinstance(parameter, IntegerHyperparameter) else value
        else:
            known = {str(v): v for v in getattr(parameter, "choices", ())}
            known |= {str(v): v for v in getattr(parameter, "sequence", ())}
            values[name] = known.get(text, text)
    try:
        configuration: Configuration = deactivate_inactive_hyperparameters(values, space)
    except Exception as error:  # ConfigSpace's errors have no common base
        reason = str(error).partition("\n")[0]
        raise InputError(place, f"is no configuration of the space: {reason}") from None
    return dict(configuration)
