"""irace's ``scenario.txt``, with its instances, configurations and target runner."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ConfigSpace import ConfigurationSpace

from acband_configspace.cli.command_lines import Aclib2Command, CommandLine, IraceCommand
from acband_configspace.cli.errors import InputError, Place, suggestion
from acband_configspace.cli.files import Line, locate, meaningful_lines, read_text, unquoted
from acband_configspace.cli.results import AclibResult, IraceResult
from acband_configspace.cli.scenario.aclib import given_configuration
from acband_configspace.cli.scenario.assignments import (
    Assignment,
    Settings,
    plain_key,
    read_assignments,
)
from acband_configspace.cli.scenario.description import ScenarioFile
from acband_configspace.cli.scenario.instances import (
    ListedInstance,
    files_in,
    listed_instances,
    words_of,
)
from acband_configspace.cli.scenario.options import parsed_options
from acband_configspace.cli.scenario.values import number, truth, whole
from acband_configspace.cli.spaces.formats import forbidden_beside
from acband_configspace.cli.spaces.irace import DIGITS, digits_of, read_irace
from acband_configspace.cli.spaces.parameters import SWITCH

_USED = (
    "execDir", "parameterFile", "forbiddenFile", "configurationsFile", "trainInstancesDir",
    "trainInstancesFile", "testInstancesDir", "testInstancesFile", "targetRunner",
    "targetRunnerLauncher", "targetRunnerLauncherArgs", "deterministic", "maxExperiments",
    "maxTime", "parallel", "digits", "seed", "capping", "boundMax", "boundPar", "aclib",
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
    settings = Settings(aliases, {plain_key(word) for word in _UNUSED} - {"trials"})
    assignments = list(read_assignments(read_text(path), path, signs="=|<-"))
    for assignment in assignments:
        if not _LITERAL.match(assignment.value) and plain_key(assignment.key) in aliases:
            raise InputError(
                assignment.place,
                f"{assignment.key} must be a text in quotes, a number or TRUE or FALSE but is "
                f"{assignment.value!r}: R expressions are not evaluated",
            )
    settings.add_all(iter(assignments))
    settings.override(overrides)
    return _Reader(path, settings).scenario()


class _Reader:
    def __init__(self, path: Path, settings: Settings) -> None:
        self._path = path
        self._settings = settings
        self._folders = (path.resolve().parent, Path.cwd())

    def scenario(self) -> ScenarioFile:
        for key in _REFUSED:
            if found := self._settings.get(key):
                raise InputError(found.place, f"{found.key} is not supported")
        train = self._instances("train") or []
        if not train:
            raise InputError(Place.of(self._path), "there are no training instances")
        test = self._instances("test")
        space, digits, given = self._space()
        bound = self._number("boundMax")
        capping = self._truth("capping", False) and bound is not None
        time = self._number("maxTime")
        aclib = self._truth("aclib", False)
        return ScenarioFile(
            path=self._path,
            format="irace",
            line=self._line(space, [*train, *(test or ())], digits, bound is not None, aclib),
            space=space,
            reader=AclibResult(quality=not capping)
            if aclib
            else IraceResult(bound if capping else None),
            success_codes=tuple(range(256)),  # the reader judges the exit code
            directory=self._directory(),
            instances=tuple(instance.name for instance in train),
            test_instances=None if test is None else tuple(instance.name for instance in test),
            racing=capping,
            clock="cpu",
            par=max(1.0, self._number("boundPar") or 1.0),
            cutoff=bound,
            deterministic=self._truth("deterministic", False),
            n_trials=self._whole("maxExperiments"),
            cputime_limit=time,
            given=given,
            seed=self._whole("seed", at_least=0) or 0,
            workers=max(1, self._whole("parallel", at_least=0) or 1),
            **parsed_options(self._settings.options),
            keys=tuple(_USED),
            notes=tuple(self._settings.notes),
        )

    def _get(self, key: str) -> Assignment | None:
        found = self._settings.get(key)
        return None if found is None or found.value in ("NULL", "NA") else found

    def _number(self, key: str) -> float | None:
        found = self._get(key)
        if found is None:
            return None
        value = number(found.key, unquoted(found.value).rstrip("L"), found.place, at_least=0)
        return value or None  # irace's 0 means "not set"

    def _whole(self, key: str, at_least: int = 1) -> int | None:
        value, found = self._number(key), self._get(key)
        if value is None or found is None:
            return None
        return whole(found.key, value, found.place, at_least=at_least)

    def _truth(self, key: str, default: bool) -> bool:
        found = self._get(key)
        return default if found is None else truth(found.key, unquoted(found.value), found.place)

    def _file(self, key: str, default: str | None = None) -> Path | None:
        found = self._get(key)
        name = default if found is None else unquoted(found.value)
        if name is None:
            return None
        path = locate(name, self._folders)
        if not path.is_file():
            place = Place.of(self._path) if found is None else found.place
            raise InputError(place, f"{key}: there is no file {name}")
        return path

    def _directory(self) -> Path:
        found = self._get("execDir")
        if found is None:
            return self._folders[0]
        folder = locate(unquoted(found.value), self._folders)
        if not folder.is_dir():
            raise InputError(found.place, f"{found.key}: there is no folder {folder}")
        return folder.resolve()

    def _space(self) -> tuple[ConfigurationSpace, int, tuple[Mapping[str, Any], ...]]:
        path = self._file("parameterFile", "./parameters.txt")
        assert path is not None
        text = read_text(path)
        forbidden: list[Line] = []
        apart = self._file("forbiddenFile")
        beside = forbidden_beside(path)
        for file in (apart, beside if apart is None and beside.exists() else None):
            if file is not None:
                forbidden += meaningful_lines(read_text(file), file)
        table = self._configurations()
        first = table[0][0] if table else {}
        space = read_irace(text, path, defaults=first, forbidden=forbidden)
        given = tuple(given_configuration(space, values, place) for values, place in table)
        digits = digits_of(text, path)
        if digits is None:
            found = self._whole("digits", at_least=0)
            digits = DIGITS if found is None else found
        return space, digits, given

    def _configurations(self) -> list[tuple[dict[str, str], Place]]:
        path = self._file("configurationsFile")
        if path is None:
            return []
        rows = list(meaningful_lines(read_text(path), path))
        if not rows:
            return []
        names = words_of(rows[0].text, rows[0].place)
        table = []
        for row in rows[1:]:
            values = words_of(row.text, row.place)
            if len(values) != len(names):
                raise InputError(row.place, f"must have {len(names)} values but has {len(values)}")
            pairs = zip(names, values, strict=True)
            table.append(({n: v for n, v in pairs if v not in ("NA", "<NA>")}, row.place))
        return table

    def _instances(self, which: str) -> list[ListedInstance] | None:
        listed, folder = self._file(f"{which}InstancesFile"), self._get(f"{which}InstancesDir")
        name = None if folder is None else unquoted(folder.value)
        if name is None and which == "train" and locate("Instances", self._folders).is_dir():
            name = "./Instances"  # irace's default
        if listed is None:
            if name is None:
                return None
            place = Place.of(self._path) if folder is None else folder.place
            path = locate(name, self._folders)
            if not path.is_dir():
                raise InputError(place, f"{which}InstancesDir: there is no folder {name}")
            return [ListedInstance(os.path.join(name, file)) for file in files_in(path)]
        found = listed_instances(listed, comments=True)
        if name is None:
            return found
        return [ListedInstance(os.path.join(name, i.name), i.rest) for i in found]

    def _line(
        self,
        space: ConfigurationSpace,
        instances: Sequence[ListedInstance],
        digits: int,
        bound: bool,
        aclib: bool,
    ) -> CommandLine:
        command = self._command()
        switches = {hp.name: (hp.meta or {})[SWITCH] for hp in space.values()}
        if aclib:
            return Aclib2Command(command, {name: s.strip() for name, s in switches.items()})
        place = Place.of(self._path)
        return IraceCommand(
            command,
            switches=switches,
            numbers={instance.name: index for index, instance in enumerate(instances, 1)},
            extras={i.name: words_of(i.rest, place) for i in instances if i.rest},
            tells_cutoff=bound,
            digits=digits,
            folder=str(self._folders[0]),
        )

    def _command(self) -> tuple[str, ...]:
        found = self._get("targetRunner")
        name = "./target-runner" if found is None else unquoted(found.value)
        path = locate(name, self._folders)
        if not path.is_file() and os.sep in name:
            place = Place.of(self._path) if found is None else found.place
            near = suggestion(path.name, [p.name for p in path.parent.glob("*")])
            raise InputError(place, f"targetRunner: there is no file {name}{near}")
        runner = str(path.resolve()) if path.is_file() else name
        launcher = self._get("targetRunnerLauncher")
        if launcher is None:
            return (runner,)
        given = self._get("targetRunnerLauncherArgs")
        template = "{targetRunner} {targetRunnerArgs}" if given is None else unquoted(given.value)
        words = shlex.split(template)
        if words[-1:] != ["{targetRunnerArgs}"]:
            place = launcher.place if given is None else given.place
            raise InputError(place, "targetRunnerLauncherArgs must end with {targetRunnerArgs}")
        arguments = [word.replace("{targetRunner}", runner) for word in words[:-1]]
        return (unquoted(launcher.value), *arguments)
