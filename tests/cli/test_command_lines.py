"""The argument lists of runs."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from acband_configspace.cli.command_lines import (
    Aclib2Command,
    IraceCommand,
    OldAclibCommand,
    ProgramArguments,
    TemplateCommand,
    quoted_fields,
)

VALUES = {"rinc": np.float64(2.0), "luby": np.str_("on"), "n": np.int64(3), "odd one": "a b"}


def test_a_template() -> None:
    line = TemplateCommand(
        ("solve", "--t={cutoff}", "{parameters}", "-s{seed}", "{{x}}"),
        parameter=("-{name}", "{value}"),
        on=("-{name}",),
        off=("-no-{name}",),
        written={"n": ("+n:{value}",)},
    )
    words = line.words({**VALUES, "elim": "off"}, "i 1.cnf", 7, 2.5)
    assert words == [
        *("solve", "--t=2.5", "-rinc", "2", "-luby", "+n:3", "-odd one", "a b", "-no-elim"),
        *("-s7", "{x}", "i 1.cnf"),
    ]


def test_parameters_and_instance_come_last_by_default() -> None:
    assert TemplateCommand(("solve",)).words({"a": 1}, "i", 0, None) == ["solve", "--a=1", "i"]
    assert TemplateCommand(("solve",)).words({"a": 1}, None, 0, None) == ["solve", "--a=1"]


def test_an_empty_way_of_writing_writes_nothing() -> None:
    line = TemplateCommand(("solve",), off=(), written={"x": ()})
    words = line.words({"a": "off", "b": "on", "x": 3}, None, 0, None)
    assert words == ["solve", "--b=on"]


def test_instances_are_files_of_the_folder_or_names(tmp_path: Path) -> None:
    (tmp_path / "i.cnf").touch()
    line = TemplateCommand(("solve",), folder=str(tmp_path))
    assert line.words({}, "i.cnf", 0, None)[-1] == str(tmp_path / "i.cnf")
    assert line.words({}, "other", 0, None)[-1] == "other"


def test_the_ways_of_aclib() -> None:
    line = OldAclibCommand(("w", "--x"), specifics={"i": "s p"}, cutoff_length="9")
    assert line.words({"a": 0.5}, "i", 4, 3.0) == [
        "w",
        "--x",
        "i",
        "s p",
        "3",
        "9",
        "4",
        "-a",
        "0.5",
    ]
    assert line.words({}, "j", None, None)[2:] == ["j", "0", "2147483647", "9", "0"]
    new = Aclib2Command(("w",)).words({"a": "x"}, "i", 4, 3.5)
    expected = "w --instance i --cutoff 3.5 --seed 4 --config -a x"
    assert new == expected.split()


def test_the_way_of_irace() -> None:
    switches = {"a": "--a ", "b": "-b=", "c": "", "d": "--d x "}
    line = IraceCommand(
        ("r",), switches, {"i": 3}, extras={"i": ("--t", "1")}, tells_cutoff=True, digits=2
    )
    values = {"a": 1.2345, "b": 2, "c": "--flag", "d": "v 'w z'"}
    words = line.words(values, "i", 5, 8.0)
    assert words[2:] == [
        *("3", "5", "i", "--t", "1", "8", "--a", "1.23", "-b=2", "--flag", "--d", "x", "v", "w z")
    ]
    assert words[1] == line.words(values, "j", 6, 8.0)[1]


def test_parameters_are_in_the_order_that_a_command_has() -> None:
    values = {"a": 1, "b": 2, "z": 3}
    template = TemplateCommand(("solve",), names=("z", "x", "b"))
    assert template.words(values, None, 0, None) == ["solve", "--z=3", "--b=2", "--a=1"]
    aclib = Aclib2Command(("w",), {"z": "last", "x": "none", "b": "second"})
    assert aclib.words(values, None, 0, None)[-6:] == ["-last", "3", "-second", "2", "-a", "1"]
    irace = IraceCommand(("r",), {"z": "", "x": "-x=", "b": "-b=", "a": ""}, {})
    assert irace.words(values, "i", 0, None)[-3:] == ["3", "-b=2", "1"]


def test_the_arguments_of_irace_may_be_others() -> None:
    arguments = ("-s{seed}", "--on={instance}", "{targetRunnerArgs}", "{bound}", "-n{instanceID}")
    line = IraceCommand(
        ("py", "r"), {"a": "--a "}, {"i": 3}, extras={"i": ("--t", "1")}, arguments=arguments
    )
    words = line.words({"a": 2}, "i", 5, 8.0)
    assert words == ["py", "r", "-s5", "--on=i", "--t", "1", "--a", "2", "-n3"]
    words = replace(line, tells_cutoff=True).words({"a": 2}, "i", 5, 8.0)
    assert words[-3:] == ["2", "8", "-n3"]


def test_the_program_is_not_among_the_arguments() -> None:
    assert ProgramArguments(TemplateCommand(("solve", "-v")), None)({}, "i", 0, 1.0) == ["-v", "i"]


@given(st.text(st.characters(exclude_characters="\0", codec="utf-8")))
def test_a_shell_sees_arguments_as_data(text: str) -> None:
    line = TemplateCommand(("printf %s {parameters}",), parameter=("{value}",), shell=True)
    words = line.words({"a": text}, None, 0, None)
    done = subprocess.run(words, capture_output=True, check=True)
    assert done.stdout.decode() == text


@pytest.mark.parametrize(
    ("command", "quoted"),
    [
        ("solve {instance} | tail -1", []),
        ("solve 'a' {instance} \"b\"", []),
        ('solve "{instance}"', ["instance"]),
        ("sh -c 'solve {instance}'", ["instance"]),
        ('test "$(solve {instance})" = "(x)"', []),
        ('test "$(solve "{instance}")"', ["instance"]),
        ("echo `solve {instance}`", ["instance"]),
        ("solve \\{instance}", ["instance"]),
        ("solve \\'{instance} '\\' {seed}", []),
        ("cat <<END\n{instance}\nEND", ["instance"]),
        ("cat << END | solve\n{instance}\nEND", ["instance"]),
        ("cat <<- !\n{instance}\n!", ["instance"]),
        ('awk "{{print}}" {instance} "{seed}"', ["seed"]),
        ("# don't use -v\nsolve {instance}", []),
        ("solve {instance} # {parameters}", ["parameters"]),
        ('echo "a # b" {instance}#', []),
        ("solve -n $((1<<3)) {instance} <<<x", []),
        ("solve -n $(( (1 + 2) << 3 )) {instance}", []),
    ],
)
def test_fields_within_the_quotes_of_a_shell(command: str, quoted: list[str]) -> None:
    assert quoted_fields(command) == quoted
