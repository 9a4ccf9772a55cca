"""Through how many modules a result goes, from the target to the journal, SMAC and the engine."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

HELPERS = Path(__file__).parents[1] / "helpers"


def modules_entered(folder: Path) -> set[str]:
    """Return the modules at work, in all processes, on the way of the last result."""
    start, end = (
        max(map(float, (folder / name).read_text().split())) for name in ("returned", "told")
    )
    lines = [line.split() for file in folder.glob("*.trace") for line in file.open()]
    return {module for moment, module in lines if start <= float(moment) <= end}


@pytest.mark.parametrize(("mode", "most"), [("serial", 9), ("racing", 16), ("dask", 20)])
def test_a_result_enters_few_modules(mode: str, most: int, tmp_path: Path) -> None:
    """Whoever adds to its way should know: a newcomer has to follow it.

    What the engine makes of it is left out: that depends on whether a round, or a pass, is over.
    So is what lets interrupts wait meanwhile, which sees no result.
    """
    path = os.pathsep.join([str(HELPERS / "tracing"), *filter(None, sys.path)])
    environment = {**os.environ, "PYTHONPATH": path, "TRACE": str(tmp_path)}
    program = [sys.executable, str(HELPERS / "traced_run.py"), mode, str(tmp_path)]
    subprocess.run(program, env=environment, check=True, timeout=120)
    entered = modules_entered(tmp_path)
    assert {"core.engine", "runlog.journal", "smac_plugin.runhistory"} <= entered
    entered -= {module for module in entered if module.startswith("core.")} | {"running.signals"}
    outside = sorted(entered)
    assert len(outside) <= most, " ".join(outside)
