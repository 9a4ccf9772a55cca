"""What the tests of the command line share: small formulas, wrappers, and a way to call it."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from acband_configspace.benchmark.recording.cnf import formula
from acband_configspace.cli.main import main

# Processes are forked from one that has imported SMAC, which takes seconds, once.
_SERVER = multiprocessing.get_context("forkserver")
_SERVER.set_forkserver_preload(["smac", "acband_configspace"])

needs_minisat = pytest.mark.skipif(shutil.which("minisat") is None, reason="needs minisat")
needs_clasp = pytest.mark.skipif(shutil.which("clasp") is None, reason="needs clasp")
IRACE = Path("/usr/lib/R/site-library/irace/bin/irace")
needs_irace = pytest.mark.skipif(
    shutil.which("Rscript") is None or not IRACE.exists(), reason="needs irace (r-cran-irace)"
)

MINISAT_SPACE = """\
luby = { values = ["on", "off"], default = "on" }
rinc = { range = [1.1, 4.0], default = 2.0 }
rfirst = { range = [10, 1000], default = 100, log = true }
elim = { values = ["on", "off"], default = "on" }
grow = { range = [-10, 30], default = 0, when = 'elim == "on"' }
"""

MINISAT_TOML = f"""\
[target]
command = ["minisat", "-verb=0", "{{parameters}}", "{{instance}}"]
parameter = "-{{name}}={{value}}"
on = "-{{name}}"
off = "-no-{{name}}"
success = [10, 20]
minimise = "wall time"
cutoff = 2
[space]
{MINISAT_SPACE}
[instances]
train = "train"
test = "test/*.cnf"
[budget]
trials = 40
"""

MINISAT_COST_TOML = MINISAT_TOML.replace('"-verb=0"', '"-verb=1"').replace(
    'minimise = "wall time"', "minimise = \"cost\"\npattern = '^conflicts *: ([0-9]+)'"
)


def write_formulas(folder: Path, number: int) -> list[str]:
    """Write so many formulas and return their names."""
    folder.mkdir(parents=True, exist_ok=True)
    names = [f"formula {index}.cnf" for index in range(number)]
    for index, name in enumerate(names):
        (folder / name).write_text(formula(3, index).as_dimacs(), encoding="ascii")
    return names


def write_script(path: Path, text: str) -> Path:
    """Write a script that can be executed."""
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)
    return path


def acband(*words: object, cwd: Path, check: bool = True) -> subprocess.CompletedProcess[str]:
    """Call the command line in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "acband_configspace", *map(str, words)],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=120,
    )
    if check:
        assert done.returncode == 0, done.stdout + done.stderr
    return done


def kill_once_it_races(*words: object, cwd: Path, journal: Path, n_lines: int = 6) -> None:
    """Start a run and kill it, with -9, when so many lines are in its journal."""
    process = _SERVER.Process(target=_call_main, args=(list(map(str, words)), cwd))
    process.start()
    deadline = time.monotonic() + 300
    while not journal.exists() or journal.read_bytes().count(b"\n") < n_lines:
        assert time.monotonic() < deadline, "no races within five minutes"
        assert process.exitcode is None, (cwd / "errors").read_text()
        time.sleep(0.01)
    process.kill()
    process.join()


def _call_main(words: list[str], cwd: Path) -> None:
    os.chdir(cwd)
    with open(os.devnull, "w") as nowhere, open(cwd / "errors", "w") as errors:
        sys.stdout, sys.stderr = nowhere, errors
        sys.exit(main(words))
