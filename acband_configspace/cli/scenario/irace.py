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
from acband_configspace.cli.files import (
    Line,
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
    unused = {plain_key(word) for word in _UNUSED} - {"trials"}
    known = Assignments(path, (path.resolve().parent, Path.cwd()), aliases, unused)
    assignments = list(read_assignments(read_text(path), path, signs="=|<-"))
    for assignment in assignments:
        if not _LITERAL.match(assignment.value) and plain_key(assignment.key) in aliases:
            raise InputError(
                assignment.place,
                f"{assignment.key} must be a text in quotes, a number or TRUE or FALSE but is "
                f"{assignment.value!r}: R expressions are not evaluated",
            )
    known.add_all(iter(assignments))
    known.override(overrides)
    return _Reader(known).scenario()


class _Reader:
    def __init__(self, assignments: Assignments) -> None:
        self._assignments = assignments

    def scenario(self) -> ScenarioFile:
        for key in _REFUSED:
            if found := self._assignments.get(key):
                raise InputError(found.place, f"{found.key} is not supported")
        set_to = self._assignments
        train = self._instances("train") or []
        if not train:
            raise InputError(Place(set_to.path), "there are no training instances")
        test = self._instances("test")
        space, digits, given = self._space()
        bound = set_to.number("boundMax")
        capping = set_to.truth("capping", default=False) and bound is not None
        reader: ResultReader = IraceResult(bound if capping else None)
        if aclib := set_to.truth("aclib", default=False):
            reader = AclibResult(quality=not capping)
        return ScenarioFile(
            path=set_to.path,
            format="irace",
            line=self._line(space, [*train, *(test or ())], digits, bound is not None, aclib),
            space=space,
            reader=reader,
            success_codes=tuple(range(256)),  # the reader judges the exit code
            directory=set_to.folder("execDir", set_to.folders[0]),
            instances=tuple(instance.name for instance in train),
            test_instances=None if test is None else tuple(instance.name for instance in test),
            racing=capping,
            par=max(1.0, set_to.number("boundPar") or 1.0),
            cutoff=bound,
            deterministic=set_to.truth("deterministic", default=False),
            n_trials=set_to.whole("maxExperiments"),
            cputime_limit=set_to.number("maxTime"),
            given=given,
            seed=set_to.whole("seed") or 0,
            workers=set_to.whole("parallel") or 1,
            **set_to.options(),
            keys=_USED,
            notes=tuple(set_to.notes),
        )

    def _space(self) -> tuple[ConfigurationSpace, int, tuple[Mapping[str, Any], ...]]:
        path = self._assignments.file("parameterFile", "./parameters.txt")
        assert path is not None
        text = read_text(path)
        forbidden: list[Line] = []
        apart = self._assignments.file("forbiddenFile")
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
            text = self._assignments.text("digits", str(DIGITS)).rstrip("L")
            digits = whole("digits", text, self._assignments.place("digits"), at_least=0)
        return space, digits, given

    def _configurations(self) -> list[tuple[dict[str, str], Place]]:
        path = self._assignments.file("configurationsFile")
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
        listed, key = self._assignments.file(f"{which}InstancesFile"), f"{which}InstancesDir"
        name = self._assignments.text(key)
        folders = self._assignments.folders
        if not name and which == "train" and locate("Instances", folders).is_dir():
            name = "./Instances"  # irace's default
        if listed is not None:
            found = listed_instances(listed, comments=True)
            return [ListedInstance(os.path.join(name, i.name), i.rest) for i in found]
        if not name:
            return None
        if not locate(name, folders).is_dir():
            raise InputError(self._assignments.place(key), f"{key}: there is no folder {name}")
        files = files_in(locate(name, folders))
        return [ListedInstance(os.path.join(name, file)) for file in files]

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
        place = Place(self._assignments.path)
        return IraceCommand(
            command,
            switches=switches,
            numbers={instance.name: index for index, instance in enumerate(instances, 1)},
            extras={i.name: words_of(i.rest, place) for i in instances if i.rest},
            tells_cutoff=bound,
            digits=digits,
            folder=str(self._assignments.folders[0]),
        )

    def _command(self) -> tuple[str, ...]:
        given = self._assignments
        name = given.text("targetRunner", "./target-runner")
        path = locate(name, given.folders)
        if not path.is_file() and os.sep in name:
            near = suggestion(path.name, [p.name for p in path.parent.glob("*")])
            raise InputError(
                given.place("targetRunner"), f"targetRunner: there is no file {name}{near}"
            )
        runner = str(path.resolve()) if path.is_file() else name
        launcher = given.text("targetRunnerLauncher")
        if not launcher:
            return (runner,)
        key = "targetRunnerLauncherArgs"
        words = shlex.split(given.text(key, "{targetRunner} {targetRunnerArgs}"))
        if words[-1:] != ["{targetRunnerArgs}"]:
            raise InputError(given.place(key), f"{key} must end with {{targetRunnerArgs}}")
        return (launcher, *(word.replace("{targetRunner}", runner) for word in words[:-1]))
