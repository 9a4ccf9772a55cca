"""A command as a function: what it returns, and how it fails."""

from __future__ import annotations

from pathlib import Path

import pytest

from acband_configspace.cli.command_lines import TemplateCommand
from acband_configspace.cli.results import AclibResult, ExitCode, LastNumber, ResultReader
from acband_configspace.cli.target import CommandFunction, TargetFailedError


def function(
    script: str, tmp_path: Path, reader: ResultReader | None = None, codes: tuple[int, ...] = (0,)
) -> CommandFunction:
    line = TemplateCommand(("/bin/sh", "-c", script.replace("{", "{{").replace("}", "}}"), "sh"))
    reader = LastNumber() if reader is None else reader
    return CommandFunction(line, reader, codes, str(tmp_path), None)


def test_the_cost_is_what_it_prints(tmp_path: Path) -> None:
    assert function('echo "${1#--x=}"', tmp_path)({"x": 2.5}, seed=1) == 2.5


def test_it_runs_in_its_directory(tmp_path: Path) -> None:
    (tmp_path / "seven").write_text("7")
    assert function("cat seven", tmp_path)({}) == 7


def test_much_output_is_no_problem(tmp_path: Path) -> None:
    script = "head -c 5000000 /dev/zero | tr '\\0' x; head -c 300000 /dev/zero >&2; echo; echo 3"
    assert function(script, tmp_path)({}) == 3


def test_other_exit_codes_may_be_successes(tmp_path: Path) -> None:
    assert function("exit 10", tmp_path, ExitCode(), (10, 20))({}) == 0
    with pytest.raises(TargetFailedError, match="exited with code 1\nno such thing"):
        function("echo no such thing >&2; exit 1", tmp_path)({})


def test_what_it_says_itself(tmp_path: Path) -> None:
    def says(status: str) -> object:
        text = f"echo Result for SMAC: {status}, 1, 1, 1, 1"
        return function(text, tmp_path, AclibResult())({})

    assert says("SAT") == 1
    for status in ("TIMEOUT", "MEMOUT"):
        with pytest.raises(MemoryError):
            says(status)
    with pytest.raises(TargetFailedError, match="the target said ABORT"):
        says("ABORT")


def test_a_program_that_is_not_there(tmp_path: Path) -> None:
    missing = CommandFunction(TemplateCommand(("./none",)), LastNumber(), (0,), str(tmp_path), None)
    with pytest.raises(TargetFailedError, match="could not start './none'"):
        missing({})
