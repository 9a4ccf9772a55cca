"""How a run's command line is put together: our templates, AClib's two ways, and irace's."""

from __future__ import annotations

import os
import re
import shlex
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from acband_configspace.cli.spaces.parameters import number_text, value_text

#: Values that mean a switch is on, or off.
ON, OFF = ("on", "yes", "true"), ("off", "no", "false")
#: What may be in braces in a command, and what in the text of a parameter.
COMMAND_FIELDS = ("parameters", "instance", "seed", "cutoff")
PARAMETER_FIELDS = ("name", "value")
#: The cutoff where a call format asks for one and the scenario has none: SMAC's own "infinity".
NO_CUTOFF = 2147483647.0
#: What irace calls a target runner with, unless the scenario says otherwise.
TARGET_CMDLINE = "{configurationID} {instanceID} {seed} {instance} {bound} {targetRunnerArgs}"

Values = Mapping[str, Any]

_FIELD = re.compile(r"\{\{|\}\}|\{(\w+)\}")
#: Fields, and what decides whether they are within quotes of a shell.
_SHELL_SIGN = re.compile(
    r"\{\{|\}\}|\\?\{(\w+)\}|\\.|\$\(\((?:[^()]|\([^()]*\))*\)\)|\$\(|['\"`()]"
    r"|(?<!<)<<(?!<)|(?<![^\s;&|(])#",
    re.DOTALL,
)
#: What opens something within parentheses, quotes and here-documents, and what closes these.
_OPENS_IN: dict[str, tuple[str, ...]] = {
    "(": ("'", '"', "`", "(", "$(", "<<"), '"': ("`", "$("), "'": (), "`": (), "<": ()
}  # fmt: skip
_CLOSES: dict[str, tuple[str, ...]] = {
    "(": (")",), '"': ('"',), "'": ("'", "\\'"), "`": ("`",), "<": ()
}  # fmt: skip


class CommandLine(Protocol):
    """Makes the argument list of one run."""

    def words(
        self, values: Values, instance: str | None, seed: int | None, cutoff: float | None
    ) -> list[str]:
        """Return the program and its arguments."""

    @property
    def tells_cutoff(self) -> bool:
        """Whether the target is told its cutoff, and so can keep to it."""


@dataclass(frozen=True)
class ProgramArguments:
    """What follows the program's name, as the facade's ``to_arguments``."""

    line: CommandLine
    cutoff: float | None
    """What the target is told; it may be stopped later than that."""

    def __call__(
        self, values: Values, instance: str | None, seed: int | None, cutoff: float | None
    ) -> list[str]:
        """Return the arguments of one run."""
        return self.line.words(values, instance, seed, self.cutoff)[1:]


@dataclass(frozen=True)
class TemplateCommand:
    """A command with places for the parameters, the instance, the seed and the cutoff.

    ``{parameters}`` becomes one or more words; without it they follow the command, and without
    ``{instance}`` the instance comes last. For a ``shell`` they are quoted here, so none of them
    may be within quotes there: see :func:`quoted_fields`.
    """

    command: tuple[str, ...]
    parameter: tuple[str, ...] = ("--{name}={value}",)
    on: tuple[str, ...] | None = None
    off: tuple[str, ...] | None = None
    written: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The parameters that are written in ways of their own."""
    folder: str | None = None
    """Where instances are that are named relative to it."""
    shell: bool = False
    names: tuple[str, ...] = ()
    """The parameters that come first, in this order."""

    @property
    def tells_cutoff(self) -> bool:
        """Whether the command has a place for the cutoff."""
        return any("cutoff" in fields_in(part) for part in self.command)

    def words(
        self, values: Values, instance: str | None, seed: int | None, cutoff: float | None
    ) -> list[str]:
        """Return the program and its arguments."""
        known = {
            "instance": "" if instance is None else path_of(instance, self.folder),
            "seed": str(seed or 0),
            "cutoff": _cutoff_text(cutoff),
        }
        ordered = _in_order(values, self.names)
        parameters = [w for n, v in ordered.items() for w in self._parameter(n, v)]
        template = list(self.command)
        if not any("{parameters}" in part for part in template):
            template.append("{parameters}")
        if instance is not None and not any("{instance}" in part for part in template):
            template.append("{instance}")
        if self.shell:
            known = {name: shlex.quote(value) for name, value in known.items()}
            known["parameters"] = shlex.join(parameters)
            return ["/bin/sh", "-c", filled(" ".join(template), known)]
        words: list[str] = []
        for part in template:
            if part == "{parameters}":
                words += parameters
            else:
                words.append(filled(part, {**known, "parameters": " ".join(parameters)}))
        return words

    def _parameter(self, name: str, value: Any) -> list[str]:
        text = value_text(value)
        template: tuple[str, ...] | None = self.written.get(name)
        if template is None and self.on is not None and text.lower() in ON:
            template = self.on
        if template is None and self.off is not None and text.lower() in OFF:
            template = self.off
        if template is None:
            template = self.parameter
        values = {"name": name, "value": text}
        return [filled(part, values) for part in template if part]


@dataclass(frozen=True)
class OldAclibCommand:
    """``algo instance specifics cutoff cutoff_length seed -name value …``: ParamILS and SMAC."""

    tells_cutoff = True
    command: tuple[str, ...]
    specifics: Mapping[str, str] = field(default_factory=dict)
    cutoff_length: str = "0"

    def words(
        self, values: Values, instance: str | None, seed: int | None, cutoff: float | None
    ) -> list[str]:
        """Return the program and its arguments."""
        name = "no_instance" if instance is None else instance
        return [
            *self.command,
            name,
            self.specifics.get(name, "0"),
            _cutoff_text(cutoff),
            self.cutoff_length,
            str(seed or 0),
            *_name_value_words(values),
        ]


@dataclass(frozen=True)
class Aclib2Command:
    """``algo --instance I --cutoff C --seed S --config -name value …``: AClib2."""

    tells_cutoff = True
    command: tuple[str, ...]
    switches: Mapping[str, str] = field(default_factory=dict)
    """What replaces the names of some parameters, which come first, in this order."""
    folder: str | None = None
    """Where instances are that are named relative to it."""

    def words(
        self, values: Values, instance: str | None, seed: int | None, cutoff: float | None
    ) -> list[str]:
        """Return the program and its arguments."""
        where = [] if instance is None else ["--instance", path_of(instance, self.folder)]
        ordered = _in_order(values, self.switches)
        return [
            *self.command,
            *where,
            "--cutoff",
            _cutoff_text(cutoff),
            "--seed",
            str(seed or 0),
            "--config",
            *_name_value_words({self.switches.get(n, n): v for n, v in ordered.items()}),
        ]


@dataclass(frozen=True)
class IraceCommand:
    """``target-runner configurationID instanceID seed instance [bound] parameters``: irace.

    The configuration's number is made from its values: the same values have the same number.
    """

    command: tuple[str, ...]
    switches: Mapping[str, str]
    """Of the parameters, in the order in which they are passed."""
    numbers: Mapping[str, int]
    """Of the instances, from 1."""
    extras: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Arguments that belong to an instance, and follow the one that names it."""
    arguments: tuple[str, ...] = tuple(TARGET_CMDLINE.split())
    """What follows the command, with irace's fields."""
    tells_cutoff: bool = False
    digits: int = 4
    folder: str | None = None

    def words(
        self, values: Values, instance: str | None, seed: int | None, cutoff: float | None
    ) -> list[str]:
        """Return the program and its arguments."""
        texts = {name: self._text(value) for name, value in values.items()}
        identity = zlib.crc32(repr(sorted(texts.items())).encode()) % 10**9
        name = instance or ""
        known = {
            "configurationID": str(identity),
            "instanceID": str(self.numbers.get(name, 0)),
            "seed": str(seed or 0),
            "instance": path_of(name, self.folder),
            "bound": _cutoff_text(cutoff) if self.tells_cutoff else "",
        }
        words = list(self.command)
        for part in self.arguments:
            if part == "{targetRunnerArgs}":
                words += self._parameters(texts)
            elif part != "{bound}" or self.tells_cutoff:
                words.append(filled(part, known))
            if "{instance}" in part:
                words += self.extras.get(name, ())
        return words

    def _parameters(self, texts: Mapping[str, str]) -> list[str]:
        # As irace's shell would: "--local 1" are two words, wherever they come from.
        passed = (switch + texts[n] for n, switch in self.switches.items() if n in texts)
        return [word for text in passed for word in shlex.split(text)]

    def _text(self, value: Any) -> str:
        if isinstance(value, float):
            return number_text(round(value, self.digits))
        return value_text(value)


def _cutoff_text(cutoff: float | None) -> str:
    return number_text(NO_CUTOFF if cutoff is None else cutoff)


def path_of(instance: str, folder: str | None) -> str:
    """Return the path of an instance that is a file of the folder; others are names."""
    if folder is None or not instance:
        return instance
    path = os.path.join(folder, instance)
    return path if os.path.exists(path) else instance


def _in_order(values: Values, names: Iterable[str]) -> Values:
    """Return the values in the order of the names, and then the others.

    ConfigSpace has an order of its own, by dependence and name.
    """
    return {name: values[name] for name in (*names, *values) if name in values}


def _name_value_words(values: Values) -> list[str]:
    return [w for name, value in values.items() for w in (f"-{name}", value_text(value))]


def filled(template: str, values: Mapping[str, str]) -> str:
    """Return a template with its ``{fields}`` filled in; ``{{`` and ``}}`` are single braces."""

    def fill(match: re.Match[str]) -> str:
        return match[0][0] if match[1] is None else values.get(match[1], match[0])

    return _FIELD.sub(fill, template)


def fields_in(template: str) -> list[str]:
    """Return the names of a template's fields."""
    return [match[1] for match in _FIELD.finditer(template) if match[1] is not None]


def quoted_fields(command: str) -> list[str]:
    """Return the names of the fields that are within quotes of a shell's command.

    So are those after a backslash, within backticks, arithmetic or a comment, and after the
    beginning of a here-document: further quotes protect nothing there. A ``$(…)`` is a command of
    its own, even within quotes.
    """
    found: list[str] = []
    around = ["("]  # the innermost last; the whole command is like one in parentheses
    position = 0
    while (match := _SHELL_SIGN.search(command, position)) is not None:
        sign, inner, position = match[0], around[-1], match.end()
        if match[1] is not None:
            if inner != "(" or sign[0] == "\\":
                found.append(match[1])
        elif sign.startswith("$(("):
            found += fields_in(sign)
        elif sign == "#":
            if inner == "(":
                comment = command[position:].partition("\n")[0]
                found += fields_in(comment)
                position += len(comment)
        elif sign in _OPENS_IN[inner]:
            around.append(sign[-1])
        elif sign in _CLOSES[inner] and len(around) > 1:
            around.pop()
    return found
