"""Somebody sets the clock while a run goes on: neither limits nor results may depend on it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from acband_configspace.runlog.replay import Run

#: Loaded by every Python process first, those of the races as well.
STEPPING_CLOCK = """
import os, time
_real = time.time
def _stepped():
    return _real() + (float(os.environ["CLOCK_STEP"]) if os.path.exists("stepped") else 0.0)
time.time = _stepped
"""

SCRIPT = """
import os, sys, time
from pathlib import Path
from ConfigSpace import ConfigurationSpace
from smac import Scenario
from acband_configspace import ACBandFacade

def target(config, seed):
    with open("calls", "a") as calls:
        calls.write("x")
    if os.path.getsize("calls") >= 2:
        open("stepped", "w").close()
    time.sleep(0.01)
    return config["x"]

scenario = Scenario(
    ConfigurationSpace({"x": (0.0, 1.0)}, seed=1), name="run", n_trials=10_000,
    walltime_limit=float(sys.argv[2]), seed=2, output_directory=Path("out"),
)
ACBandFacade(scenario, target, racing=sys.argv[1] == "racing", k=2, logging_level=False).optimize()
"""


def run(kind: str, step: float, limit: float, folder: Path) -> tuple[Run, float]:
    """Run the script; return what it has recorded, and how long it took."""
    path = os.pathsep.join([str(folder / "clock"), *(entry for entry in sys.path if entry)])
    start = time.monotonic()
    done = subprocess.run(
        [sys.executable, "script.py", kind, str(limit)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path, "CLOCK_STEP": str(step)},
        capture_output=True,
        text=True,
        timeout=150,
    )
    assert done.returncode == 0, done.stderr
    [journal] = folder.rglob("journal.jsonl")
    return Run.load(journal.parent), time.monotonic() - start


@pytest.mark.parametrize(("kind", "step"), [("serial", 86_400.0), ("racing", -86_400.0)])
def test_a_step_of_a_day_changes_nothing(kind: str, step: float, tmp_path: Path) -> None:
    (tmp_path / "clock").mkdir()
    (tmp_path / "clock" / "sitecustomize.py").write_text(STEPPING_CLOCK)
    (tmp_path / "script.py").write_text(SCRIPT)
    limit = 2.0 if kind == "serial" else 8.0  # the processes of the races must start, too
    first, seconds = run(kind, step, limit, tmp_path)
    assert (tmp_path / "stepped").exists()
    assert len(first.races) >= 4  # it went on after the step
    assert seconds >= limit
    assert limit / 2 <= first.elapsed < 30.0  # no day is recorded, so none counts after a restart
    assert all(0.0 < trial.record.time < 10.0 for trial in first.trials)
    assert any(abs(trial.record.started - time.time()) > 80_000 for trial in first.trials)
    if kind == "racing":
        return
    (tmp_path / "stepped").unlink()  # the clock is right again
    again, _ = run(kind, step, first.elapsed + limit, tmp_path)
    assert len(again.races) > len(first.races)
    assert again.elapsed < 60.0
