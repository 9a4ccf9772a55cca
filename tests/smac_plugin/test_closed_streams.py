"""A facade in a daemon: the standard streams are closed."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

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
