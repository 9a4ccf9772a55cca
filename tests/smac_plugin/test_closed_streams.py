"""A facade in a daemon: the standard streams are closed."""

from __future__ import annotations

import io
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from targets import a_scenario, noisy, quiet

from acband_configspace import ProgressCallback

SCRIPT = """
from pathlib import Path
from targets import a_scenario, noisy
from acband_configspace import ACBandFacade
incumbent = ACBandFacade(a_scenario(Path("out"), n_trials=30), noisy).optimize()
Path("result").write_text(str(incumbent["x"]))
"""


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&- >&- 2>&-"])
def test_streams_may_be_closed(closed: str, tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    path = os.pathsep.join(entry for entry in sys.path if entry)
    command = f"exec {shlex.quote(sys.executable)} script.py {closed}"
    subprocess.run(
        ["sh", "-c", command],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": path},
        check=True,
        timeout=120,
        capture_output=True,
    )
    assert 0.0 <= float((tmp_path / "result").read_text()) <= 1.0


class Tee:
    """Writes to two files, as scripts do to keep a log; it has not all that a stream has."""

    def __init__(self, *streams: Any) -> None:
        self.streams = streams

    def write(self, text: str) -> None:
        for stream in self.streams:
            stream.write(text)

    def flush(self) -> None:
        for stream in self.streams:
            stream.flush()


@pytest.mark.parametrize("name", ["stdout", "stderr"])
@pytest.mark.parametrize("stream", [Tee(io.StringIO(), io.StringIO()), None])
def test_streams_may_be_of_the_users_own(
    name: str, stream: Tee | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, name, stream)
    display = ProgressCallback(console=Console(force_terminal=True, file=io.StringIO()))
    assert quiet(a_scenario(tmp_path), noisy).optimize() is not None
    overwriting = quiet(a_scenario(tmp_path), noisy, callbacks=[display], overwrite=True)
    assert overwriting.optimize() is not None
