"""irace's target runner: its program, or a launcher with it, and what it is called with."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

from acband_configspace.cli.command_lines import (
    TARGET_CMDLINE,
    Aclib2Command,
    CommandLine,
    IraceCommand,
)
from acband_configspace.cli.errors import InputError, Place, suggestion
from acband_configspace.cli.files import ListedInstance, locate, rest_by_name, words_of
from acband_configspace.cli.scenario.assignments import Assignments


def runner_line(
    given: Assignments,
    switches: Mapping[str, str],
    instances: Iterable[ListedInstance],
    *,
    digits: int,
    capping: bool,
) -> CommandLine:
    """Return how the target runner is called, with the parameters in the order of ``switches``."""
    command, arguments = _call(given, _arguments(given, capping=capping))
    folder = str(given.folders[0])
    if given.truth("aclib", default=False):
        names = {name: switch.strip() for name, switch in switches.items()}
        return Aclib2Command(command, names, folder=folder)
    rests = rest_by_name(instances, given.place("testInstancesFile"))
    bounded = given.number("boundMax") is not None
    return IraceCommand(
        command,
        switches=switches,
        numbers={name: index for index, name in enumerate(rests, 1)},
        extras={n: words_of(rest, Place(given.path)) for n, rest in rests.items() if rest},
        arguments=arguments,
        tells_cutoff=bounded and any("{bound}" in word for word in arguments),
        digits=digits,
        folder=folder,
    )


def _arguments(given: Assignments, *, capping: bool) -> tuple[str, ...]:
    """Return irace's arguments, as its version 4 lets ``targetCmdline`` say them."""
    found = given.get("targetCmdline")
    if found is not None and given.truth("aclib", default=False):
        given.notes.append(f"{found.place}: {found.key} has no meaning with aclib")
        found = None
    if found is None:
        return tuple(TARGET_CMDLINE.split())
    words = words_of(found.value, found.place)
    if "{targetRunnerArgs}" not in words:
        raise InputError(
            found.place, f"{found.key} must have {{targetRunnerArgs}} as an argument of its own"
        )
    for name in ("{seed}", "{instance}", *(("{bound}",) if capping else ())):
        if not any(name in word for word in words):
            raise InputError(found.place, f"{found.key} must have {name}")
    return words


def _call(
    given: Assignments, arguments: tuple[str, ...]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return what every call begins with, and irace's arguments, both with the runner's path."""
    runner = _program(given, "targetRunner", given.text("targetRunner", "./target-runner"))
    command: tuple[str, ...] = (runner,)
    if launcher := given.text("targetRunnerLauncher"):
        if os.sep in launcher:
            launcher = _program(given, "targetRunnerLauncher", launcher)
        command = (launcher, *_launcher_arguments(given, arguments))
    return _with_runner(command, runner), _with_runner(arguments, runner)


def _with_runner(words: Iterable[str], runner: str) -> tuple[str, ...]:
    return tuple(word.replace("{targetRunner}", runner) for word in words)


def _launcher_arguments(given: Assignments, arguments: tuple[str, ...]) -> tuple[str, ...]:
    """Return what is between a launcher and irace's arguments: the runner, unless they name it."""
    key = "targetRunnerLauncherArgs"
    found = given.get(key)
    is_aclib = given.truth("aclib", default=False)
    if found is not None and given.get("targetCmdline") is not None and not is_aclib:
        raise InputError(
            found.place,
            f"{found.key} must not be given beside targetCmdline, which takes its place in irace 4",
        )
    if any("{targetRunner}" in word for word in arguments):
        return ()
    words = words_of(given.text(key, "{targetRunner} {targetRunnerArgs}"), given.place(key))
    if words[-1:] != ("{targetRunnerArgs}",):
        raise InputError(given.place(key), f"{key} must end with {{targetRunnerArgs}}")
    return words[:-1]


def _program(given: Assignments, key: str, name: str) -> str:
    """Return the path of a program; one that is no file here is found on the PATH."""
    path = locate(name, given.folders)
    if path.is_file():
        return str(path)  # links are not followed: a virtual environment's python is one
    if os.sep in name:
        near = suggestion(path.name, [p.name for p in path.parent.glob("*")])
        raise InputError(given.place(key), f"{key}: there is no file {name}{near}")
    return name
