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
from acband_configspace.cli.files import ListedInstance, listed_instances, read_text, rest_by_name
from acband_configspace.cli.results import AclibResult
from acband_configspace.cli.scenario.assignments import (
    Assignments,
    number,
    plain_key,
    read_assignments,
)
from acband_configspace.cli.scenario.description import ScenarioFile
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
    "instance_seed_file": (),
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
    "adaptive-capping", "capping", "hydra_iterations",
    "intensification_percentage", "iteration_limit", "limit_resources", "maxR", "minR",
    "multi_objectives", "obj", "output_level", "pca_dim", "rand_prob", "rf_num_trees",
    "save_results_instantly", "shared_model", "shared-model-mode", "transform_y",
    "use-instances", "initial_challengers", "minimize_intensify_challengers",
    "acq_opt_challengers", "input_psmac_dirs", "stats-file", "scenario",
)  # fmt: skip
_NOT_NEEDED = {
    "feature_file": "features are not used",
    "instance_seed_file": "seeds are chosen here",
    "always_race_default": "the default always races here",
}
KEYS = frozenset(_ALIASES)


def read_aclib(path: Path, overrides: Mapping[str, str]) -> ScenarioFile:
    """Read a scenario of ``key = value`` lines; the command line's ``overrides`` come last."""
    # As AClib has it, all paths are relative to where the configurator is started.
    folders = (Path.cwd(), path.resolve().parent)
    assignments = read_assignments(read_text(path), path)
    unused = {plain_key(word) for word in _UNUSED}
    given = Assignments(path, folders, assignments, overrides, aliases=_ALIASES, unused=unused)
    quality = _minimises_quality(given)
    _refuse_seeds_alone(given)
    paths = (given.file(key) for key in ("instance_file", "test_instance_file"))
    train, test = (None if path is None else listed_instances(path) for path in paths)
    space = read_space(given.existing("paramfile", given.required("paramfile").value))
    for key, why in _NOT_NEEDED.items():
        if found := given.get(key):
            given.notes.append(f"{found.place}: {found.key} is ignored: {why}")
    return ScenarioFile(
        format="aclib",
        line=_line(given, [*(train or ()), *(test or ())]),
        space=space,
        reader=AclibResult(quality=quality),
        directory=given.folder("execdir", Path.cwd()),
        instances=None if train is None else tuple(instance.name for instance in train),
        test_instances=None if test is None else tuple(instance.name for instance in test),
        racing=not quality,
        clock="cpu",  # as AClib defines the cutoff, whatever is minimised
        par=_par(given, quality),
        cutoff=given.number("cutoff_time"),
        memory_limit=given.whole("memory_limit"),
        crash_cost=given.number("cost_for_crash") or math.inf,
        deterministic=given.truth("deterministic", default=True),
        n_trials=given.whole("runcount_limit"),
        walltime_limit=given.number("wallclock_limit"),
        cputime_limit=given.number("tunerTimeout"),
        given=_given(given, space),
        output=Path(outdir) if (outdir := given.text("outdir")) else None,
        keys=tuple(_KEYS),
        **given.common(),
    )


def _minimises_quality(given: Assignments) -> bool:
    """Return whether the quality is minimised, not the run time; ParamILS calls it "qual"."""
    word = given.text("run_obj").lower()
    if word == "runlength":
        raise InputError(
            given.place("run_obj"),
            "run_obj = runlength is not supported: let the wrapper print the run length as its "
            "quality, and write run_obj = quality",
        )
    return word == "qual" or given.choice("run_obj", ("runtime", "quality")) == "quality"


def _refuse_seeds_alone(given: Assignments) -> None:
    """Refuse ParamILS's list of instances with their seeds in place of one of instances."""
    found = given.get("instance_seed_file")
    if found is not None and given.get("instance_file") is None:
        raise InputError(
            found.place,
            f"{found.key} is not supported: list the instances, without seeds, in an instance_file",
        )


def _line(given: Assignments, instances: list[ListedInstance]) -> CommandLine:
    found = given.required("algo")
    try:
        command = tuple(shlex.split(found.value))
    except ValueError as error:
        raise InputError(found.place, f"{found.key} cannot be read: {error}") from None
    if given.choice("call_format", ("old", "aclib", "aclib2")) != "old":
        return Aclib2Command(command)
    specifics = rest_by_name(instances, given.place("test_instance_file"))
    text = given.text("cutoff_length", "0")
    return OldAclibCommand(
        command,
        specifics={name: rest for name, rest in specifics.items() if rest},
        cutoff_length="2147483647" if text.lower() == "max" else text,
    )


def _par(given: Assignments, quality: bool) -> float:
    found = given.get("overall_obj")
    if found is None:
        return 1.0 if quality else 10.0
    match = re.fullmatch(r"(?:par|mean|adj_mean)(\d*)", found.value.lower())
    if match is None:
        raise InputError(
            found.place,
            f"{found.key} must be mean or PAR10, for example, but got {found.value!r}",
        )
    return max(1.0, float(match[1] or 1))


def _given(given: Assignments, space: ConfigurationSpace) -> tuple[Mapping[str, Any], ...]:
    found = given.get("initial_incumbent")
    if found is None or found.value.upper() in ("DEFAULT", "RANDOM"):
        return ()
    pairs = re.findall(r"-?([^\s=,]+?)(?:\s*=\s*|\s+)['\"]?([^\s'\",]+)['\"]?", found.value)
    return (given_configuration(space, dict(pairs), found.place),)


def _is_same(text: str, value: object) -> bool:
    """Return whether a text stands for a value, however a number is written."""
    try:
        return float(text) == float(str(value))
    except ValueError:
        return text == str(value)


def given_configuration(
    space: ConfigurationSpace, texts: Mapping[str, str], place: Place
) -> Mapping[str, Any]:
    """Return a configuration from its values' texts, the space's defaults where none is given."""
    from ConfigSpace.hyperparameters import (
        Constant,
        IntegerHyperparameter,
        NumericalHyperparameter,
    )
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
            if isinstance(parameter, Constant) and _is_same(text, parameter.value):
                known = {text: parameter.value}
            values[name] = known.get(text, text)
    try:
        configuration: Configuration = deactivate_inactive_hyperparameters(values, space)
    except Exception as error:  # ConfigSpace's errors have no common base
        reason = str(error).partition("\n")[0]
        raise InputError(place, f"is not a configuration of this space: {reason}") from None
    return dict(configuration)
