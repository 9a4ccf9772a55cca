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
)
from acband_configspace.cli.errors import COMMAND_LINE, InputError, Place, suggestion
from acband_configspace.cli.files import found_instances, locate, read_text
from acband_configspace.cli.results import (
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
from acband_configspace.cli.spaces.formats import read_inline, read_space

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
_RESULTS = ("exit code", "last number", "aclib", "irace")


def read_toml(path: Path, overrides: Mapping[str, str]) -> ScenarioFile:
    """Read a ``scenario.toml``; the command line's ``overrides`` come last."""
    text = read_text(path)
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        line = re.search(r"at line (\d+)", str(error))
        place = Place(path, int(line[1]) if line else text.count("\n") + 1)
        raise InputError(place, f"is not valid TOML: {error}") from None
    tables = _Tables(path, text, content)
    tables.override(overrides)
    return _Reader(path, tables).scenario()


class _Tables:
    """The tables of the file, with the lines of their keys."""

    def __init__(self, path: Path, text: str, content: Mapping[str, Any]) -> None:
        self._path = path
        self._lines = _lines_of_keys(text)
        self._tables: dict[str, dict[str, Assignment]] = {name: {} for name in KEYS}
        for name, table in content.items():
            place = self._place(name, None)
            if name not in KEYS:
                hint = suggestion(name, KEYS)
                raise InputError(place, f"unknown table or key {name!r}{hint}")
            if not isinstance(table, dict):
                raise InputError(place, f"[{name}] must be a table but got {table!r}")
            for key, value in table.items():
                self._check(name, key, self._place(name, key))
                self._tables[name][key] = Assignment(key, value, self._place(name, key))

    def _place(self, table: str, key: str | None) -> Place:
        line = self._lines.get((table, key)) or self._lines.get((table, None))
        return Place(self._path, line)

    def _check(self, table: str, key: str, place: Place) -> None:
        known = KEYS[table]
        if known and key not in known:
            homes = [f"[{t}] {key}" for t, keys in KEYS.items() if key in keys]
            hint = f"; it belongs to {homes[0]}" if homes else suggestion(key, known)
            raise InputError(place, f"unknown key {key!r} in [{table}]{hint}")

    def override(self, overrides: Mapping[str, str]) -> None:
        """Take in what the command line says: ``table.key``, or a key alone; others are options."""
        for written, text in overrides.items():
            table, _, key = written.rpartition(".")
            key = key.replace("-", "_") if not table or KEYS.get(table) else key
            if not table:
                table = next((t for t, keys in KEYS.items() if key in keys), "options")
            if table not in KEYS:
                hint = suggestion(table, KEYS)
                raise InputError(COMMAND_LINE, f"--{written}: unknown table {table!r}{hint}")
            self._check(table, key, COMMAND_LINE)
            self._tables[table][key] = Assignment(f"--{written}", parsed_value(text), COMMAND_LINE)

    def get(self, table: str, key: str) -> Assignment | None:
        """Return what a key was given, if anything."""
        return self._tables[table].get(key)

    def all_of(self, table: str) -> Mapping[str, Assignment]:
        """Return a whole table."""
        return self._tables[table]

    def missing(self, table: str, key: str, example: str) -> InputError:
        """Return the error for a key that must be there."""
        return InputError(self._place(table, None), f"[{table}] must have {key}, such as {example}")


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


class _Reader:
    def __init__(self, path: Path, tables: _Tables) -> None:
        self._path = path
        self._folder = path.resolve().parent
        self._tables = tables

    def scenario(self) -> ScenarioFile:
        objective = self._read("target", "minimise", choice, known=_OBJECTIVES) or "cpu time"
        racing = objective != "cost"
        crash = self._read("target", "crash_cost", number)
        options = self._tables.all_of("options")
        return ScenarioFile(
            path=self._path,
            format="toml",
            line=self._line(),
            space=self._space(),
            reader=self._result(racing),
            success_codes=self._success(),
            directory=self._directory(),
            instances=self._instances("train"),
            test_instances=self._instances("test"),
            racing=racing,
            clock="wall" if objective == "wall time" else "cpu",
            par=self._read("target", "par", number, at_least=1) or 10.0,
            cutoff=self._read("target", "cutoff", seconds),
            memory_limit=self._read("target", "memory", whole, at_least=1),
            crash_cost=math.inf if crash is None else crash,
            deterministic=self._read("target", "deterministic", truth) or False,
            n_trials=self._read("budget", "trials", whole, at_least=2),
            walltime_limit=self._read("budget", "wall_time", seconds),
            cputime_limit=self._read("budget", "cpu_time", seconds),
            seed=self._read("run", "seed", whole, at_least=0) or 0,
            workers=self._read("run", "workers", whole, at_least=1) or 1,
            output=self._output(),
            options={key: given.value for key, given in options.items()},
            option_places={key: given.place for key, given in options.items()},
            keys=tuple(key for keys in KEYS.values() for key in keys),
        )

    def _read(self, table: str, key: str, convert: Callable[..., T], **options: Any) -> T | None:
        """Return what a key was given, converted; None if nothing."""
        given = self._tables.get(table, key)
        return None if given is None else convert(key, given.value, place=given.place, **options)

    def _output(self) -> Path | None:
        given = self._tables.get("run", "output")
        return None if given is None else self._folder / str(given.value)

    def _directory(self) -> Path:
        given = self._tables.get("target", "directory")
        if given is None:
            return self._folder
        folder = self._folder / str(given.value)
        if not folder.is_dir():
            raise InputError(given.place, f"directory: there is no folder {folder}")
        return folder

    def _line(self) -> TemplateCommand:
        given = self._tables.get("target", "command")
        if given is None:
            raise self._tables.missing("target", "a command", '["minisat", "-verb=0"]')
        shell = self._read("target", "shell", truth) or False
        if shell is not isinstance(given.value, str):
            wanted = (
                "a text, since shell = true" if shell else 'a list of words, such as ["a", "b"]'
            )
            raise InputError(given.place, f"command must be {wanted}, but got {given.value!r}")
        words = _texts(given, COMMAND_FIELDS)
        if not shell and not words:
            raise InputError(given.place, "command must name a program but is empty")
        written = self._tables.get("target", "written")
        return TemplateCommand(
            (_program(words[0], self._folder), *words[1:]) if not shell else words,
            parameter=self._words("parameter") or TemplateCommand.parameter,
            on=self._words("on"),
            off=self._words("off"),
            written={} if written is None else _written(written),
            folder=str(self._folder),
            shell=shell,
        )

    def _words(self, key: str) -> tuple[str, ...] | None:
        given = self._tables.get("target", key)
        return None if given is None else _texts(given, PARAMETER_FIELDS)

    def _success(self) -> tuple[int, ...]:
        given = self._tables.get("target", "success")
        if given is None:
            return (0,)
        codes = given.value if isinstance(given.value, list) else [given.value]
        found = tuple(whole("success", code, given.place, at_least=0) for code in codes)
        if not found or max(found) > 255:
            raise InputError(given.place, f"success must be exit codes of 0 to 255 but got {codes}")
        return found

    def _result(self, racing: bool) -> ResultReader | None:
        pattern = self._tables.get("target", "pattern")
        if pattern is not None:
            try:
                re.compile(str(pattern.value))
            except re.error as error:
                raise InputError(
                    pattern.place, f"pattern is not a regular expression: {error}"
                ) from None
            return PatternResult(str(pattern.value))
        kind = self._read("target", "result", choice, known=_RESULTS)
        kind = kind or ("exit code" if racing else "last number")
        readers: dict[str, ResultReader | None] = {
            "exit code": None,
            "last number": LastNumber(),
            "aclib": AclibResult(quality=not racing),
            "irace": IraceResult(),
        }
        if readers[kind] is None and not racing:
            given = self._tables.get("target", "result")
            place = Place(self._path) if given is None else given.place
            raise InputError(place, "result must not be 'exit code' if a cost is minimised")
        return readers[kind]

    def _instances(self, which: str) -> tuple[str, ...] | None:
        given = self._tables.get("instances", which)
        if given is None:
            return None
        if isinstance(given.value, list):
            return tuple(dict.fromkeys(str(name) for name in given.value))
        if not isinstance(given.value, str):
            raise InputError(
                given.place,
                f"{which} must be a file, folder, pattern or list but got {given.value!r}",
            )
        return tuple(found_instances(given.value, self._folder, given.place))

    def _space(self) -> ConfigurationSpace:
        table = self._tables.all_of("space")
        file = table.get("file")
        if file is None or not isinstance(file.value, str):
            if not table:
                raise self._tables.missing("space", "parameters or a file", 'file = "params.pcs"')
            return read_inline({key: (given.value, given.place) for key, given in table.items()})
        if len(table) > 1:
            raise InputError(file.place, "[space] must have a file or parameters, not both")
        path = locate(file.value, (self._folder,))
        if not path.is_file():
            raise InputError(file.place, f"there is no file {file.value!r} in {self._folder}")
        return read_space(path)


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


def _written(given: Assignment) -> dict[str, tuple[str, ...]]:
    if not isinstance(given.value, dict):
        raise InputError(given.place, f"written must be a table but got {given.value!r}")
    return {
        name: _texts(Assignment(f"written.{name}", value, given.place), PARAMETER_FIELDS)
        for name, value in given.value.items()
    }
