"""Every test here runs real processes and must leave none of them behind."""

from __future__ import annotations

import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from race_helpers import MARK, marked_processes


@pytest.fixture(autouse=True)
def mark(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Mark all processes the test starts; fail if one survives it."""
    value = uuid.uuid4().hex
    monkeypatch.setenv(MARK, value)
    yield value
    deadline = time.monotonic() + 30
    while (left := marked_processes(value)) and time.monotonic() < deadline:
        time.sleep(0.01)
    described = [(process.pid, process.cmdline()) for process in left]
    for process in left:
        process.kill()
    assert not described, "processes have survived the test"


@pytest.fixture
def make_script(tmp_path: Path) -> Callable[..., str]:
    """Write an executable script and return its path."""

    def make(text: str, name: str = "script.sh") -> str:
        path = tmp_path / name
        path.write_text(text)
        path.chmod(0o755)
        return str(path)

    return make


@pytest.fixture
def make_python_script(make_script: Callable[..., str]) -> Callable[..., str]:
    """Write an executable Python script and return its path."""

    def make(text: str, name: str = "script.py") -> str:
        return make_script(f"#!{sys.executable} -SE\n{text}", name)

    return make
