"""Each format on real solvers: check, run, kill -9, run again, show, validate, report."""

from __future__ import annotations

import json
import shlex
import subprocess
from pathlib import Path

import pytest
from cli_helpers import (
    MINISAT_COST_TOML,
    MINISAT_TOML,
    kill_once_it_races,
    needs_clasp,
    needs_minisat,
    write_formulas,
)
from cli_helpers import write_script as script

from acband_configspace.cli.main import main

CLASP_TOML = """\
[target]
command = ["clasp", "-q", "{parameters}", "{instance}"]
success = [10, 20]
cutoff = "2s"
[space]
file = "params.pcs"
[instances]
train = "train"
test = "test"
[budget]
trials = 40
"""
CLASP_PCS = """\
heuristic {Vmtf,Vsids,Berkmin}[Vsids]
strengthen {no,local,recursive}[local]
sign-def {asp,pos,neg,rnd}[asp]
rand-freq [0.0,0.1][0.0]
del-on-restart [0,50][0]i
del-on-restart | heuristic in {Vsids,Vmtf}
{heuristic=Berkmin, strengthen=no}
"""

ACLIB = """\
algo = sh ./wrapper.sh
execdir = .
deterministic = 1
run_obj = {objective}
overall_obj = {overall}
cutoff_time = 2
runcount_limit = 40
paramfile = params.pcs
instance_file = train.txt
test_instance_file = test.txt
"""
MINISAT_PCS = """\
luby {luby,no-luby}[luby]
rinc [1.1,4.0][2.0]
rfirst [10,1000][100]il
elim {elim,no-elim}[elim]
grow [-10,30][0]i
grow | elim in {elim}
"""
#: Both call formats, switches by their values, the quality is the number of conflicts.
WRAPPER = r"""
if [ "$1" = --instance ]; then
    instance=$2; json=1; shift 7
else
    instance=$1; json=; shift 5
fi
arguments=
while [ $# -gt 1 ]; do
    case $1 in
        -luby|-elim) arguments="$arguments -$2";;
        *) arguments="$arguments DASH$1=$2";;
    esac
    shift 2
done
output=$(SOLVER $arguments "$instance" 2>/dev/null)
case $? in 10) status=SAT;; 20) status=UNSAT;; *) status=CRASHED;; esac
conflicts=$(printf %s "$output" | sed -n 's/^.*onflicts *: \([0-9]*\).*/\1/p')
seconds=$(printf %s "$output" | sed -n 's/^.*CPU [tT]ime *: \([0-9.]*\).*/\1/p')
if [ "$json" ]; then
    printf 'Result of this algorithm run: {"status": "%s", "cost": %s, "runtime": %s}\n' \
        "$status" "$conflicts" "$seconds"
else
    echo "Result for SMAC: $status, $seconds, 0, $conflicts, 0"
fi
"""

IRACE_PARAMETERS = """\
luby   ""        c     ("-luby", "-no-luby")
rinc   "-rinc="  r     (1.1, 4.0)
rfirst "-rfirst=" i,log (10, 1000)
elim   ""        c     ("-elim", "-no-elim")
grow   "-grow="  i     (-10, 30) | elim == "-elim"
"""
IRACE_SCENARIO = """\
trainInstancesDir = "./train"
testInstancesDir = "./test"
configurationsFile = "configurations.txt"
maxExperiments = 40
deterministic = 1
"""
RUNNER = r"""#!/bin/sh
instance=$4; shift 4
output=$(SOLVER "$@" "$instance" 2>/dev/null)
printf %s "$output" | sed -n 's/^.*onflicts *: \([0-9]*\).*/\1/p'
"""
CAPPED_RUNNER = r"""#!/bin/sh
instance=$4; shift 5
output=$(SOLVER "$@" "$instance" 2>/dev/null)
seconds=$(printf %s "$output" | sed -n 's/^.*CPU [tT]ime *: \([0-9.]*\).*/\1/p')
echo "$seconds $seconds"
"""
SOLVERS = {"minisat": "minisat", "clasp": "clasp -q --stats"}


def set_up(folder: Path, which: str, solver: str = "minisat") -> list[str]:
    """Write a scenario of this kind and return how to call it."""
    for name, number in (("train", 8), ("test", 5)):
        names = write_formulas(folder / name, number)
        listing = "\n".join(f'"{name}/{n}" specific' for n in names)
        (folder / f"{name}.txt").write_text(listing)
    clasp = solver == "clasp"
    (folder / "params.pcs").write_text(CLASP_PCS if clasp else MINISAT_PCS)
    if which.startswith("toml"):
        minisat = MINISAT_COST_TOML if which == "toml cost" else MINISAT_TOML
        (folder / "scenario.toml").write_text(CLASP_TOML if clasp else minisat)
    elif which.startswith("aclib"):
        objective = ("quality", "mean") if "quality" in which else ("runtime", "PAR10")
        text = ACLIB.format(objective=objective[0], overall=objective[1])
        (folder / "scenario.txt").write_text(text + ("tae = aclib\n" if "2" in which else ""))
        wrapper = WRAPPER.replace("DASH", "-" if clasp else "").replace("SOLVER", SOLVERS[solver])
        (folder / "wrapper.sh").write_text(wrapper)
    else:
        capped = "capping = 1\nboundMax = 2\n" if which == "irace capped" else ""
        text = IRACE_SCENARIO
        if clasp:
            assert main(["convert", "params.pcs", "parameters.txt"]) == 0
            text = text.replace("configurationsFile", "# configurationsFile")
        else:
            (folder / "parameters.txt").write_text(IRACE_PARAMETERS)
            table = 'luby rinc rfirst elim grow\n"-luby" 2.0 100 "-elim" 0\n'
            (folder / "configurations.txt").write_text(table)
        (folder / "scenario.txt").write_text(text + capped)
        runner = (CAPPED_RUNNER if capped else RUNNER).replace("SOLVER", SOLVERS[solver])
        script(folder / "target-runner", runner)
    return ["."]


@needs_minisat
@needs_clasp
@pytest.mark.parametrize(
    ("which", "solver"),
    [
        ("toml", "minisat"),
        ("toml", "clasp"),
        ("toml cost", "minisat"),
        ("aclib", "minisat"),
        ("aclib", "clasp"),
        ("aclib2", "minisat"),
        ("aclib2 quality", "clasp"),
        ("irace", "minisat"),
        ("irace capped", "clasp"),
    ],
)
def test_from_check_to_report(
    which: str,
    solver: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = tmp_path / "my folder"
    folder.mkdir()
    monkeypatch.chdir(folder)
    scenario = set_up(folder, which, solver)
    checked = main(["check", *scenario])
    told = capsys.readouterr().out
    # Small formulas take milliseconds, which a race by run time rightly warns of.
    assert checked == 0 or "use larger instances" in told, told
    assert "instances  8, the first is " in told

    run = folder / "run"
    journal = run / "journal.jsonl"
    command = ["run", *scenario, "--output", "run", "--workers", "2"]
    kill_once_it_races(*command, cwd=folder, journal=journal)
    before = journal.read_bytes()
    assert main([*command, "--quiet"]) == 0
    after = journal.read_bytes()
    assert after.startswith(before[: before.rindex(b"\n")])  # nothing was run again
    assert len(after) > len(before)
    lines = capsys.readouterr().out.splitlines()
    tuned = lines[lines.index("As a command line:") + 1].strip()
    assert main(["show", "run", "--command"]) == 0
    assert capsys.readouterr().out.strip() == tuned

    assert main(["show", "run", "--json"]) == 0
    values = json.loads(capsys.readouterr().out)
    assert set(values) <= set(_names(folder))
    instance = str(next((folder / "train").glob("*.cnf")))
    assert main(["show", "run", "--command", "--instance", instance]) == 0
    line = shlex.split(capsys.readouterr().out)
    done = subprocess.run(line, cwd=folder, capture_output=True, timeout=30)
    assert done.returncode in (0, 10, 20), done

    assert main(["validate", "run", "--workers", "2"]) == 0
    told = capsys.readouterr().out
    assert "5 unseen instances" in told or "nothing better was found" in told
    assert main(["report", "run", "--csv", "trials.csv"]) == 0
    assert (run / "report.html").stat().st_size > 10_000


def _names(folder: Path) -> list[str]:
    parameters = json.loads((folder / "run" / "configspace.json").read_text())["hyperparameters"]
    return [parameter["name"] for parameter in parameters]


@needs_minisat
def test_the_same_run_with_and_without_a_kill(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With a cost that can be repeated, the winner is that of an undisturbed run."""
    monkeypatch.chdir(tmp_path)
    set_up(tmp_path, "aclib quality")
    killed = ["run", ".", "--output", "killed", "--quiet"]
    kill_once_it_races(*killed, cwd=tmp_path, journal=tmp_path / "killed" / "journal.jsonl")
    assert main(killed) == 0
    assert main(["run", ".", "--output", "whole", "--quiet"]) == 0
    capsys.readouterr()
    shown = []
    for name in ("whole", "killed"):
        assert main(["show", name, "--json"]) == 0
        shown.append(capsys.readouterr().out)
    assert shown[0] == shown[1]


@needs_minisat
def test_another_target_in_the_same_directory_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    set_up(tmp_path, "toml cost")
    command = ["run", ".", "--output", "run", "--quiet", "--trials", "20"]
    assert main(command) == 0
    path = tmp_path / "scenario.toml"
    path.write_text(path.read_text().replace('"-verb=1"', '"-verb=1", "-pre"'))
    assert main(command) == 2
    assert "another target" in capsys.readouterr().err
    path.write_text(path.read_text().replace("rinc = { range = [1.1", "rinc = { range = [1.2"))
    assert main([*command, "--fresh"]) == 0
    path.write_text(path.read_text().replace("rinc = { range = [1.2", "rinc = { range = [1.3"))
    assert main(command) == 3
    assert "differs from this one" in capsys.readouterr().err
