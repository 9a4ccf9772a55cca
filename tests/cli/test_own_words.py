"""What wrappers say of a run is what is recorded: their time, and their timeouts."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_helpers import write_script

from acband_configspace.cli.main import main
from acband_configspace.core.ends import End
from acband_configspace.runlog.replay import Run

#: By the instance: says that it took 2.5 s, ran out of time, or ran out of memory.
OLD = """#!/bin/sh
case $1 in
    *slow) echo "Result for ParamILS: TIMEOUT, 5, 0, 0, 1";;
    *big) echo "Result for SMAC: MEMOUT, 1, 0, 0, 1";;
    *) echo "Result of this algorithm run: SAT, 2.5, 0, 7, 1";;
esac
"""
NEW = """#!/bin/sh
case $2 in
    *slow) answer='"status": "TIMEOUT", "runtime": 5';;
    *big) answer='"status": "MEMOUT", "runtime": 1';;
    *) answer='"status": "SUCCESS", "runtime": 2.5, "cost": 7';;
esac
echo "Result of this algorithm run: {$answer}"
"""
IRACE = """#!/bin/sh
case $4 in *slow) echo 50 5;; *) echo 2.5 2.5;; esac
"""
ACLIB_SCENARIO = """\
algo = ./wrapper
cutoff_time = 5
runcount_limit = 30
paramfile = params.pcs
instance_file = instances.txt
"""
IRACE_SCENARIO = """\
targetRunner = "./wrapper"
trainInstancesFile = "instances.txt"
maxExperiments = 30
deterministic = 1
capping = 1
boundMax = 5
boundPar = 10
"""
TOML = """\
[target]
command = ["./wrapper", "{instance}"]
result = "aclib"
cutoff = 5
deterministic = true
[space]
file = "params.pcs"
[instances]
train = ["easy", "slow", "big"]
[budget]
trials = 30
"""


@pytest.mark.parametrize(
    ("wrapper", "scenario"),
    [
        (OLD, ACLIB_SCENARIO),
        (NEW, ACLIB_SCENARIO + "call_format = aclib\n"),
        (IRACE, IRACE_SCENARIO),
        (OLD, TOML),
    ],
    ids=["old", "aclib2", "irace", "toml"],
)
def test_what_a_wrapper_says_counts(
    wrapper: str, scenario: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_script(tmp_path / "wrapper", wrapper)
    (tmp_path / "params.pcs").write_text("a [0, 1] [0.5]\n")
    (tmp_path / "parameters.txt").write_text('a "--a=" r (0, 1)\n')
    (tmp_path / "instances.txt").write_text("easy\nslow\nbig\n")
    name = "scenario.toml" if "[target]" in scenario else "scenario.txt"
    (tmp_path / name).write_text(scenario)
    assert main(["run", name, "--output", "run", "--quiet"]) == 0
    seen: dict[str, set[End]] = {}
    for trial in Run.load(tmp_path / "run").trials:
        seen.setdefault(str(trial.race.key.instance), set()).add(trial.record.end)
        if trial.record.end is End.FINISHED:
            assert trial.record.cost == 2.5
        elif trial.record.end is End.CUTOFF:
            assert trial.record.cost == 50.0
    # Who does not finish when another one has, has lost; on these instances nobody has.
    assert End.FINISHED in seen["easy"]
    assert seen["slow"] == {End.CUTOFF}
    if wrapper != IRACE:  # it has no word for it
        assert seen["big"] == {End.MEMORY}
