"""Our own ``scenario.toml``."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from ConfigSpace import ConfigurationSpace

from acband_configspace.cli.command_lines import (
    COMMAND_FIELDS,
    PARAMETER_FIELDS,
    TemplateCommand,
    fields_in,
    quoted_fields,
)
from acband_configspace.cli.errors import COMMAND_LINE, InputError, Place, suggestion
from acband_configspace.cli.files import found_instances, locate, read_text
from acband_configspace.cli.results import (
    ANY_CODE,
    AclibResult,
    IraceResult,
    LastNumber,
    PatternResult,
    ResultReader,
)
from acband_configspace.cli.scenario.assignments import (
    Assignment,
    choice,
    number,
    parsed_value,
    seconds,
    truth,
    whole,
)
from acband_configspace.cli.scenario.description import ScenarioFile
from acband_configspace.cli.spaces.formats import names_in_file, read_inline, read_space

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

T = TypeVar("T")

#: The keys of each table; those of [space] and [options] are names of parameters and options.
KEYS: dict[str, tuple[str, ...]] = {
    "target": (
        "command", "shell", "directory", "parameter", "on", "off", "written", "success",
        "minimise", "pattern", "result", "cutoff", "memory", "par", "crash_cost", "deterministic",
    ),
    "space": (),
    "instances": ("train", "test"),
    "budget": ("trials", "wall_time", "cpu_time"),
    "run": ("seed", "workers", "output"),
    "options": (),
}  # fmt: skip
#: What ``acband new`` writes.
TEMPLATE = Path(__file__).with_name("template.toml")

_OBJECTIVES = ("cpu time", "wall time", "cost")


def read_toml(path: Path, overrides: Mapping[str, str]) -> ScenarioFile:
    """Read a ``scenario.toml``; the command line's ``overrides`` come last."""
    text = read_text(path)
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        line = re.search(r"at line (\d+)", str(error))
        place = Place(path, int(line[1]) if line else text.count("\n") + 1)
        raise InputError(place, f"is not valid TOML: {error}") from None
    return _scenario(_Tables(path, text, content, overrides))


class _Tables:
    """The tables of the file, with the lines of their keys, overridden by the command line."""

    def __init__(
        self, path: Path, text: str, content: Mapping[str, Any], overrides: Mapping[str, str]
    ) -> None:
        self.path = path
        self.folder = path.resolve().parent
        self._lines = _lines_of_keys(text)
        self._tables: dict[str, dict[str, Assignment]] = {name: {} for name in KEYS}
        for name, table in content.items():
            place = self.place(name)
            if name not in KEYS:
                hint = suggestion(name, KEYS)
                raise InputError(place, f"unknown table or key {name!r}{hint}")
            if not isinstance(table, dict):
                raise InputError(place, f"[{name}] must be a table but got {table!r}")
            for key, value in table.items():
                self._add(name, key, Assignment(key, value, self.place(name, key)))
        for written, value in overrides.items():
            self._override(written, value)

    def place(self, table: str, key: str | None = None) -> Place:
        """Return where a key is, or its table."""
        line = self._lines.get((table, key)) or self._lines.get((table, None))
        return Place(self.path, line)

    def _add(self, table: str, key: str, given: Assignment) -> None:
        known = KEYS[table]
        if known and key not in known:
            homes = [f"[{t}] {key}" for t, keys in KEYS.items() if key in keys]
            hint = f"; it belongs to {homes[0]}" if homes else suggestion(key, known)
            raise InputError(given.place, f"unknown key {key!r} in [{table}]{hint}")
        self._tables[table][key] = given

    def _override(self, written: str, text: str) -> None:
        """Take in what the command line says: ``table.key``, or a key alone; others are options."""
        table, _, key = written.rpartition(".")
        key = key.replace("-", "_") if not table or KEYS.get(table) else key
        if not table:
            table = next((t for t, keys in KEYS.items() if key in keys), "options")
        if table not in KEYS:
            hint = suggestion(table, KEYS)
            raise InputError(COMMAND_LINE, f"--{written}: unknown table {table!r}{hint}")
        self._add(table, key, Assignment(f"--{written}", parsed_value(text), COMMAND_LINE))

    def __getitem__(self, table: str) -> Mapping[str, Assignment]:
        return self._tables[table]

    def read(self, table: str, key: str, convert: Callable[..., T], **options: Any) -> T | None:
        """Return what a key was given, converted; None if nothing."""
        given = self._tables[table].get(key)
        return None if given is None else convert(key, given.value, place=given.place, **options)


def _lines_of_keys(text: str) -> dict[tuple[str, str | None], int]:
    """Return the lines of tables and keys, which tomllib does not tell."""
    lines: dict[tuple[str, str | None], int] = {}
    table = ""
    for number_, line in enumerate(text.split("\n"), 1):
        if heading := re.match(r"^\s*\[\s*([\w\"-]+)(?:\s*\.\s*(?:\"([^\"]+)\"|([\w-]+)))?", line):
            table = heading[1].strip('"')
            lines.setdefault((table, None), number_)
            if key := heading[2] or heading[3]:
                lines.setdefault((table, key), number_)
        elif assigned := re.match(r"^\s*(?:\"([^\"]+)\"|'([^']+)'|([\w-]+))\s*[.=]", line):
            key = assigned[1] or assigned[2] or assigned[3]
            lines.setdefault((table, key) if table else (key, None), number_)
    return lines


def _scenario(given: _Tables) -> ScenarioFile:
    objective = given.read("target", "minimise", choice, known=_OBJECTIVES) or "cpu time"
    racing = objective != "cost"
    crash = given.read("target", "crash_cost", number)
    output = given["run"].get("output")
    space, reader = _space(given), _result(given, racing)
    return ScenarioFile(
        path=given.path,
        format="toml",
        line=_line(given, space),
        space=space,
        reader=reader,
        success_codes=given.read("target", "success", _exit_codes) or _usual_codes(reader),
        directory=_directory(given),
        instances=_instances(given, "train"),
        test_instances=_instances(given, "test"),
        racing=racing,
        clock="cpu" if objective == "cpu time" else "wall",
        par=given.read("target", "par", number, at_least=1) or 10.0,
        cutoff=given.read("target", "cutoff", seconds),
        memory_limit=given.read("target", "memory", whole, at_least=1),
        crash_cost=math.inf if crash is None else crash,
        deterministic=given.read("target", "deterministic", truth) or False,
        n_trials=given.read("budget", "trials", whole, at_least=2),
        walltime_limit=given.read("budget", "wall_time", seconds),
        cputime_limit=given.read("budget", "cpu_time", seconds),
        seed=given.read("run", "seed", whole, at_least=0) or 0,
        workers=given.read("run", "workers", whole, at_least=1) or 1,
        output=None if output is None else given.folder / str(output.value),
        options={key: option.value for key, option in given["options"].items()},
        option_places={key: option.place for key, option in given["options"].items()},
        keys=tuple(key for keys in KEYS.values() for key in keys),
    )


def _directory(given: _Tables) -> Path:
    named = given["target"].get("directory")
    folder = given.folder if named is None else given.folder / str(named.value)
    if named is not None and not folder.is_dir():
        raise InputError(named.place, f"directory: there is no folder {folder}")
    return folder


def _line(given: _Tables, space: ConfigurationSpace) -> TemplateCommand:
    words, shell = _command(given)
    ways = {
        key: _texts(given["target"][key], PARAMETER_FIELDS)
        for key in ("parameter", "on", "off")
        if key in given["target"]
    }
    written = given["target"].get("written")
    return TemplateCommand(
        words,
        parameter=ways.get("parameter", TemplateCommand.parameter),
        on=ways.get("on"),
        off=ways.get("off"),
        written={} if written is None else _written(written, space),
        folder=str(given.folder),
        shell=shell,
        names=_names(given),
    )


def _command(given: _Tables) -> tuple[tuple[str, ...], bool]:
    """Return the words of the command, and whether they are one text for a shell."""
    command = given["target"].get("command")
    if command is None:
        raise InputError(
            given.place("target"), '[target] must have a command, such as ["minisat", "-verb=0"]'
        )
    shell = given.read("target", "shell", truth) or False
    if shell is not isinstance(command.value, str):
        wanted = "a text, since shell = true" if shell else 'a list of words, such as ["a", "b"]'
        raise InputError(command.place, f"command must be {wanted}, but got {command.value!r}")
    words = _texts(command, COMMAND_FIELDS)
    if shell:
        for name in quoted_fields(command.value):
            if name in ("parameters", "instance"):  # numbers need no quotes
                raise InputError(
                    command.place,
                    f"command must not have {{{name}}} within quotes, backticks, a comment or a "
                    "here-document: it is quoted for you",
                )
        return words, True
    if not words:
        raise InputError(command.place, "command must name a program but is empty")
    return (_program(words[0], given.folder), *words[1:]), False


def _exit_codes(name: str, value: object, place: Place) -> tuple[int, ...]:
    codes = value if isinstance(value, list) else [value]
    found = tuple(whole(name, code, place, at_least=0) for code in codes)
    if not found or max(found) > 255:
        raise InputError(place, f"{name} must be exit codes of 0 to 255 but got {codes}")
    return found


def _usual_codes(reader: ResultReader | None) -> tuple[int, ...]:
    """Return the exit codes of success: AClib's wrappers may exit with their solver's."""
    return ANY_CODE if isinstance(reader, AclibResult) else (0,)


def _result(given: _Tables, racing: bool) -> ResultReader | None:
    pattern = given["target"].get("pattern")
    if pattern is not None:
        try:
            re.compile(str(pattern.value))
        except re.error as error:
            raise InputError(
                pattern.place, f"pattern is not a regular expression: {error}"
            ) from None
        return PatternResult(str(pattern.value))
    readers: dict[str, ResultReader | None] = {
        "exit code": None,
        "last number": LastNumber(),
        "aclib": AclibResult(quality=not racing),
        "irace": IraceResult(),
    }
    kind = given.read("target", "result", choice, known=tuple(readers))
    kind = kind or ("exit code" if racing else "last number")
    if readers[kind] is None and not racing:
        raise InputError(
            given["target"]["result"].place, "result must not be 'exit code' if a cost is minimised"
        )
    return readers[kind]


def _instances(given: _Tables, which: str) -> tuple[str, ...] | None:
    found = given["instances"].get(which)
    if found is None:
        return None
    if isinstance(found.value, list) and found.value:
        return tuple(dict.fromkeys(str(name) for name in found.value))
    if not isinstance(found.value, str):
        raise InputError(
            found.place,
            f"{which} must be a file, a folder, a pattern or a list of at least one instance but "
            f"got {found.value!r}",
        )
    return tuple(found_instances(found.value, given.folder, found.place))


def _space(given: _Tables) -> ConfigurationSpace:
    table = given["space"]
    if not table:
        raise InputError(
            given.place("space"),
            '[space] must have parameters or a file, such as file = "params.pcs"',
        )
    path = _space_file(given)
    if path is None:
        return read_inline({key: (found.value, found.place) for key, found in table.items()})
    return read_space(path)


def _names(given: _Tables) -> tuple[str, ...]:
    """Return the parameters in the order in which they are described, as far as that is known."""
    path = _space_file(given)
    if path is None:
        return tuple(n for n, found in given["space"].items() if isinstance(found.value, dict))
    return names_in_file(path)


def _space_file(given: _Tables) -> Path | None:
    """Return the file that describes the parameters, None if the table does."""
    table = given["space"]
    file = table.get("file")
    if file is None or not isinstance(file.value, str):
        return None
    if len(table) > 1:
        raise InputError(file.place, "[space] must have a file or parameters, not both")
    path = locate(file.value, (given.folder,))
    if not path.is_file():
        raise InputError(file.place, f"there is no file {file.value!r} in {given.folder}")
    return path


def _program(word: str, folder: Path) -> str:
    """Return a program of the scenario's folder with its path; others are found on the PATH."""
    path = folder / word
    return str(path) if "/" in word and path.is_file() else word


def _texts(given: Assignment, fields: Sequence[str]) -> tuple[str, ...]:
    """Return a text, or a list of them, whose fields in braces are known ones."""
    values = given.value if isinstance(given.value, list) else [given.value]
    for value in values:
        if not isinstance(value, str):
            raise InputError(given.place, f"{given.key} must hold texts but got {value!r}")
        for name in fields_in(value):
            if name not in fields:
                listed = ", ".join(f"{{{field}}}" for field in fields)
                raise InputError(
                    given.place,
                    f"{given.key}: {{{name}}} is none of {listed}{suggestion(name, fields)} "
                    "(write {{ and }} for braces)",
                )
    return tuple(values)


def _written(given: Assignment, space: ConfigurationSpace) -> dict[str, tuple[str, ...]]:
    if not isinstance(given.value, dict):
        raise InputError(given.place, f"written must be a table but got {given.value!r}")
    for name in given.value:
        if name not in space:
            hint = suggestion(name, space)
            raise InputError(given.place, f"written: there is no parameter {name!r}{hint}")
    return {
        name: _texts(Assignment(f"written.{name}", value, given.place), PARAMETER_FIELDS)
        for name, value in given.value.items()
    }
