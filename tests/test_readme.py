"""The README's code runs, and prints what it says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import acband_configspace

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(
    r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", README, re.DOTALL | re.MULTILINE
)


def test_there_is_code_with_output() -> None:
    assert sum(bool(output) for _, output in BLOCKS) >= 2


@pytest.mark.parametrize(("code", "output"), BLOCKS, ids=range(len(BLOCKS)))
def test_the_code_runs_and_prints_what_it_says(code: str, output: str, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(code, encoding="utf-8")
    package = str(Path(acband_configspace.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, str(script)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": package, "PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    if output:
        assert [line.rstrip() for line in done.stdout.strip().splitlines()] == [
            line.rstrip() for line in output.strip().splitlines()
        ]


def test_the_two_commands_are_there() -> None:
    commands = re.findall(r"^pip install .*$", README, re.MULTILINE)
    assert len(commands) == 2
    assert commands[1].endswith("python -m pytest")


def test_files_it_names_exist() -> None:
    for name in re.findall(r"\b(examples/\w+\.\w+)", README):
        assert (ROOT / name).exists(), name
