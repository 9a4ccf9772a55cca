"""irace's ``scenario.txt``, with its instances, configurations and target runner."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ConfigSpace import ConfigurationSpace

from acband_configspace.cli.errors import InputError, Place
from acband_configspace.cli.files import (
    ListedInstance,
    files_in,
    listed_instances,
    locate,
    meaningful_lines,
    read_text,
    words_of,
)
from acband_configspace.cli.results import AclibResult, IraceResult, ResultReader
from acband_configspace.cli.scenario.aclib import given_configuration
from acband_configspace.cli.scenario.assignments import (
    Assignments,
    plain_key,
    read_assignments,
    whole,
)
from acband_configspace.cli.scenario.description import ScenarioFile
from acband_configspace.cli.scenario.target_runner import runner_line
from acband_configspace.cli.spaces.formats import forbidden_beside
from acband_configspace.cli.spaces.irace import (
    DIGITS,
    digits_needed,
    digits_of,
    parameters_of,
    read_irace,
)
from acband_configspace.cli.spaces.parameters import Parameter, parameter_of

_USED = (
    "execDir", "parameterFile", "forbiddenFile", "configurationsFile", "trainInstancesDir",
    "trainInstancesFile", "testInstancesDir", "testInstancesFile", "targetRunner",
    "targetRunnerLauncher", "targetRunnerLauncherArgs", "targetCmdline", "deterministic",
    "maxExperiments", "maxTime", "parallel", "digits", "seed", "capping", "boundMax", "boundPar",
    "aclib",
)  # fmt: skip
_UNUSED = (
    "logFile", "recoveryFile", "sampleInstances", "testNbElites", "testIterationElites",
    "testType", "firstTest", "eachTest", "targetRunnerRetries", "targetRunnerTimeout",
    "targetRunnerData", "budgetEstimation", "minMeasurableTime", "loadBalancing", "mpi",
    "batchmode", "quiet", "debugLevel", "softRestart", "softRestartThreshold", "elitist",
    "elitistNewInstances", "elitistLimit", "cappingType", "boundType", "boundDigits",
    "boundAsTimeout", "postselection", "nbIterations", "nbExperimentsPerIteration",
    "minNbSurvival", "nbConfigurations", "mu", "confidence", "scenarioFile",
    "cappingAfterFirstTest", "blockSize", "instancesPerBlock", "maxIterations", "trials",
    "minExperiments",
)  # fmt: skip
#: Settings that are R functions in irace, or would change what a run's result means.
_REFUSED = ("targetEvaluator", "targetRunnerParallel", "repairConfiguration")
KEYS = frozenset(plain_key(word) for word in (*_USED, *_UNUSED, *_REFUSED))
_LITERAL = re.compile(
    r"""^(?:"[^"]*"|'[^']*'|[-+]?[\d.]+(?:[eE][-+]?\d+)?L?|TRUE|FALSE|T|F|NULL|NA)$"""
)


def read_irace_scenario(path: Path, overrides: Mapping[str, str]) -> ScenarioFile:
    """Read a scenario of irace; the command line's ``overrides`` come last."""
    aliases = {plain_key(word): word for word in (*_USED, *_REFUSED)}
    aliases["trials"] = "maxExperiments"
    unused = {plain_key(word) for word in _UNUSED} - {"trials"}
    assignments = list(read_assignments(read_text(path), path, signs="=|<-"))
    for assignment in assignments:
        if not _LITERAL.match(assignment.value) and plain_key(assignment.key) in aliases:
            raise InputError(
                assignment.place,
                f"{assignment.key} must be a text in quotes, a number or TRUE or FALSE but is "
                f"{assignment.value!r}: R expressions are not evaluated",
            )
    folders = (path.resolve().parent, Path.cwd())
    known = Assignments(path, folders, assignments, overrides, aliases=aliases, unused=unused)
    for key in _REFUSED:
        if found := known.get(key):
            raise InputError(found.place, f"{found.key} is not supported")
    return _scenario(known)


def _scenario(given: Assignments) -> ScenarioFile:
    train, test = (_instances(given, which) for which in ("train", "test"))
    if not train:
        raise InputError(Place(given.path), "there are no training instances")
    space, switches, digits, configurations = _space(given)
    bound = given.number("boundMax")
    capping = given.truth("capping", default=False) and bound is not None
    _note_capping(given)
    reader: ResultReader = IraceResult(bound if capping else None)
    if given.truth("aclib", default=False):
        reader = AclibResult(quality=not capping)
    instances = [*train, *(test or ())]
    return ScenarioFile(
        format="irace",
        line=runner_line(given, switches, instances, digits=digits, capping=capping),
        space=space,
        reader=reader,
        directory=given.folder("execDir", given.folders[0]),
        instances=tuple(instance.name for instance in train),
        test_instances=None if test is None else tuple(instance.name for instance in test),
        racing=capping,
        clock="cpu" if capping else "wall",
        par=max(1.0, given.number("boundPar") or 1.0),
        cutoff=bound,
        deterministic=given.truth("deterministic", default=False),
        n_trials=given.whole("maxExperiments"),
        cputime_limit=given.number("maxTime"),
        given=configurations,
        workers=given.whole("parallel") or 1,
        keys=_USED,
        **given.common(),
    )


def _note_capping(given: Assignments) -> None:
    """Say which version of irace is followed where they do not agree."""
    bounded = given.number("boundMax") is not None and given.number("maxTime") is not None
    if bounded and not given.is_given("capping"):
        given.notes.append(
            f"{given.place('boundMax')}: with boundMax and maxTime irace 4 caps the runs; acband, "
            "like irace 3.5, does so only with capping = 1, and minimises the cost without it"
        )


def _space(
    given: Assignments,
) -> tuple[ConfigurationSpace, dict[str, str], int, tuple[Mapping[str, Any], ...]]:
    """Return the space, its switches, the digits of its reals, and the given configurations."""
    path = given.existing("parameterFile", given.text("parameterFile", "./parameters.txt"))
    text = read_text(path)
    forbidden = given.file("forbiddenFile") or forbidden_beside(path)
    table = list(_configurations(given))
    first = table[0][0] if table else {}
    space = read_irace(text, path, defaults=first, forbidden=forbidden)
    digits, place = digits_of(text, path), Place(path)
    if digits is None:
        number, place = given.text("digits", str(DIGITS)).rstrip("L"), given.place("digits")
        digits = whole("digits", number, place, at_least=0)
    parameters = parameters_of(text, path)
    if not given.truth("aclib", default=False):  # such a wrapper is told all, and as it is
        _refuse_moved_bounds(space, digits, place)
        _refuse_lone_quotes(parameters)
    switches = {parameter.name: parameter.switch or "" for parameter in parameters}
    return space, switches, digits, tuple(given_configuration(space, *row) for row in table)


def _refuse_moved_bounds(space: ConfigurationSpace, digits: int, place: Place) -> None:
    """Refuse real parameters whose bounds change when they are rounded, as irace 4 does."""
    for parameter in map(parameter_of, space.values()):
        needed = digits_needed(parameter)
        if needed > digits:
            raise InputError(
                place,
                f"digits must be at least {needed} for the bounds of {parameter.name} but is "
                f"{digits}",
            )


def _refuse_lone_quotes(parameters: Iterable[Parameter]) -> None:
    """Refuse switches and values that are no words to a shell, through which irace passes them."""
    for parameter in parameters:
        for text in (parameter.switch or "", *parameter.values):
            words_of(str(text), parameter.place)


def _configurations(given: Assignments) -> Iterator[tuple[dict[str, str], Place]]:
    path = given.file("configurationsFile")
    if path is None:
        return
    names: tuple[str, ...] = ()
    for row in meaningful_lines(read_text(path), path):
        values = words_of(row.text, row.place)
        if not names:
            names = values
        elif len(values) != len(names):
            raise InputError(row.place, f"must have {len(names)} values but has {len(values)}")
        else:
            pairs = zip(names, values, strict=True)
            yield {n: v for n, v in pairs if v not in ("NA", "<NA>")}, row.place


def _instances(given: Assignments, which: str) -> list[ListedInstance] | None:
    listed, key = given.file(f"{which}InstancesFile"), f"{which}InstancesDir"
    name = given.text(key)
    is_default = which == "train" and not given.is_given(key)
    if is_default and locate("Instances", given.folders).is_dir():
        name = "./Instances"  # irace's default
    if listed is not None:
        found = listed_instances(listed, comments=True)
    elif name:
        folder = given.existing(key, name, is_folder=True)
        found = [ListedInstance(file) for file in files_in(folder, nested=True)]  # as irace does
    else:
        return None
    where = locate(name, given.folders)
    if where != given.folders[0] / name:  # nobody would find them from the scenario's folder
        name = str(where)
    return [ListedInstance(os.path.join(name, i.name), i.rest) for i in found]
