"""The command line itself: help, exit codes, what a user sees when something is wrong."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from cli_helpers import acband, write_script
from smac.runhistory.enumerations import StatusType

from acband_configspace.cli.commands import COMMANDS
from acband_configspace.cli.errors import ExitCode
from acband_configspace.cli.main import main
from acband_configspace.runlog.replay import Run

COST = """\
[target]
command = ["./target"]
minimise = "cost"
[space]
x = { range = [0.0, 1.0], default = 0.99 }
[budget]
trials = 40
"""


def write(folder: Path, target: str, text: str = COST) -> str:
    write_script(folder / "target", "#!/bin/sh\n" + target)
    (folder / "scenario.toml").write_text(text, encoding="utf-8")
    return str(folder / "scenario.toml")


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as leaving:
        main([command, "--help"])
    assert leaving.value.code == 0
    text = capsys.readouterr().out
    assert f"\n  acband {command}" in text
    assert "exit codes:" in text


def test_the_list_of_commands(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    text = capsys.readouterr().out
    assert all(f"    {command}" in text for command in (*COMMANDS, "benchmark"))


def test_benchmark_is_the_benchmarks(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as leaving:
        main(["benchmark", "--help"])
    assert leaving.value.code == 0
    assert "paper" in capsys.readouterr().out


def test_a_run_from_beginning_to_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    path = write(tmp_path, 'echo "${1#--x=}"\n')
    assert main(["plan", path]) == 0
    assert "AC-Band" in capsys.readouterr().out
    assert main(["check", path]) == 0
    assert "All is in order." in capsys.readouterr().out
    assert not (tmp_path / "acband_output").exists()
    assert main(["run", path]) == 0
    assert "As a command line:" in capsys.readouterr().out
    (run,) = (tmp_path / "acband_output").iterdir()
    assert (run / "journal.jsonl").exists()
    assert main(["validate", str(run)]) == 0
    assert re.search(r"The incumbent costs \d+ % less than the default", capsys.readouterr().out)


def test_a_scenario_that_has_moved_is_read_as_the_run_was_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "old").mkdir()
    text = COST.replace('["./target"]', '["./target", "{parameters}", "{cutoff}"]')
    path = write(tmp_path / "old", 'echo "${1#--x=}"\n', text)
    assert main(["run", path, "--output", "run", "--quiet", "--cutoff", "10"]) == 0
    (tmp_path / "old").rename("new")
    capsys.readouterr()
    assert main(["show", "run", "--command", "--scenario", "new"]) == 0
    words = capsys.readouterr().out.split()
    assert (words[0], words[-1]) == (str(tmp_path / "new" / "target"), "10")
    (tmp_path / "list.txt").write_text("i1\ni2\ni3\n")
    assert main(["validate", "run", "--scenario", "new", "--instances", "list.txt"]) == 0
    assert "3 unseen instances" in capsys.readouterr().out


def test_validate_calls_instances_unseen_only_if_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    text = COST + '[instances]\ntrain = ["a", "b"]\ntest = ["./b", "c", "d"]\n'
    path = write(tmp_path, 'echo "${1#--x=}"\n', text)
    assert main(["run", path, "--output", "run", "--quiet"]) == 0
    assert main(["validate", "run"]) == 0
    assert "3 test instances" in capsys.readouterr().out


def test_validate_runs_a_default_that_leads_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    text = COST.replace("0.99", "0.0") + '[instances]\ntrain = ["a", "b"]\n'
    path = write(tmp_path, 'echo >> count\necho "${1#--x=}"\n', text)
    assert main(["run", path, "--output", "run", "--quiet"]) == 0
    before = (tmp_path / "count").read_text().count("\n")
    assert main(["validate", "run"]) == 0
    assert "nothing better was found" in capsys.readouterr().out
    assert (tmp_path / "count").read_text().count("\n") == before + 2


def test_who_leads_before_a_race_is_over_is_shown_and_validated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    # The fourth trial of the first race takes longer than there is time.
    delay = "echo >> count\n[ $(wc -l < count) -le 3 ] || [ -e quick ] || sleep 60\n"
    text = COST.replace("trials = 40", "wall_time = 2")
    path = write(tmp_path, delay + 'echo "${1#--x=}"\n', text)
    assert main(["run", path, "--output", "run", "--quiet"]) == 0
    assert "\nIts race is not over yet: it has the lowest cost so far.\n" in capsys.readouterr().out
    assert Run.load(tmp_path / "run").incumbent is None
    saved = json.loads((tmp_path / "run" / "runhistory.json").read_text())
    finished = [trial for trial in saved["data"] if trial["status"] == StatusType.SUCCESS]
    best = min(finished, key=lambda trial: float(trial["cost"]))
    assert main(["show", "run", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown == saved["configs"][str(best["config_id"])] != {"x": 0.99}
    assert main(["show", "run", "--command"]) == 0
    assert capsys.readouterr().out.strip().endswith(f"--x={shown['x']}")
    (tmp_path / "quick").touch()
    assert main(["validate", "run"]) == 0
    assert re.search(r"The incumbent costs \d+ % less than the default", capsys.readouterr().out)


def test_nobody_leads_before_anything_has_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    path = write(tmp_path, "sleep 60\n", COST.replace("trials = 40", "wall_time = 1"))
    assert main(["run", path, "--output", "run", "--quiet"]) == ExitCode.TARGET_FAILS
    assert "no trial has finished" in capsys.readouterr().err
    for command in ("show", "validate"):
        assert main([command, "run"]) == ExitCode.BAD_INPUT
        assert "no result is on record yet in " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("exit 3\n", "exited with code 3"),
        ("echo nothing\n", "printed no number"),
    ],
)
def test_a_target_that_fails(
    target: str,
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    path = write(tmp_path, target)
    assert main(["check", path]) == ExitCode.TARGET_FAILS
    assert message in capsys.readouterr().out
    assert main(["run", path, "--quiet"]) == ExitCode.TARGET_FAILS
    assert message in capsys.readouterr().err


def test_a_program_that_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    path = write(tmp_path, "", COST.replace("./target", "no-such-program"))
    assert main(["check", path]) == ExitCode.TARGET_FAILS
    assert "no-such-program" in capsys.readouterr().out


def test_check_names_the_clock_of_the_cutoff(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path, 'echo "${1#--x=}"\n')
    assert main(["check", path, "--cutoff", "5"]) == 0
    told = capsys.readouterr().out
    assert "cost, cutoff 5 s of wall time" in told
    assert "--grace" not in told


def test_check_says_what_aclibs_wrappers_need_to_clean_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write_script(tmp_path / "wrapper", "#!/bin/sh\necho 'Result for SMAC: SUCCESS, 0, 0, 1, 0'\n")
    (tmp_path / "p.pcs").write_text("a [0,1][0.5]\n")
    (tmp_path / "scenario.txt").write_text(
        "algo = ./wrapper\nrun_obj = quality\nruncount_limit = 60\nparamfile = p.pcs\n"
        "deterministic = 0\n"
    )
    note = "--grace 1.5 gives AClib's wrappers time to remove their files"
    main(["check", "scenario.txt"])
    assert note in capsys.readouterr().out
    main(["check", "scenario.txt", "--grace", "1.5"])
    assert note not in capsys.readouterr().out


def test_abort_ends_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    count = tmp_path / "count"
    write_script(
        tmp_path / "wrapper",
        f"#!/bin/sh\necho >> {count}\n"
        f"[ $(wc -l < {count}) -gt 9 ] && echo 'Result for SMAC: ABORT, 0, 0, 0, 0' && exit\n"
        "echo 'Result for SMAC: SUCCESS, 0, 0, 1, 0'\n",
    )
    (tmp_path / "p.pcs").write_text("a [0,1][0.5]\n")
    (tmp_path / "scenario.txt").write_text(
        "algo = ./wrapper\nrun_obj = quality\nruncount_limit = 60\nparamfile = p.pcs\n"
        "deterministic = 0\n"
    )
    assert main(["run", "scenario.txt", "--quiet"]) == ExitCode.ABORTED
    assert "ABORT" in capsys.readouterr().err
    assert count.read_text().count("\n") < 20


def test_abort_in_the_first_race_is_no_crash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    says = "#!/bin/sh\necho 'Result for SMAC: ABORT, 0, 0, 0, 0, no licence'\n"
    write_script(tmp_path / "wrapper", says)
    (tmp_path / "p.pcs").write_text("a [0,1][0.5]\n")
    (tmp_path / "instances.txt").write_text("one\n")
    (tmp_path / "scenario.txt").write_text(
        "algo = ./wrapper\nrun_obj = runtime\ncutoff_time = 1\nruncount_limit = 60\n"
        "paramfile = p.pcs\ninstance_file = instances.txt\ndeterministic = 0\n"
    )
    assert main(["run", "scenario.txt", "--quiet", "--k", "8"]) == ExitCode.ABORTED
    assert "no licence" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["run", "nowhere.toml"], "nowhere.toml: cannot be read: No such file"),
        (["run", "scenario.toml", "--trails", "5"], "did you mean 'trials'?"),
        (["run", "scenario.toml", "--trials"], "--trials must have a value"),
        (["run", "--trials", "--workers", "2", "scenario.toml"], "--trials must have a value"),
        (["run", "scenario.toml", "more.toml"], "unexpected 'more.toml'"),
        (["run", "scenario.toml", "--trials", "x"], "command line: trials must be a number"),
        (["run", "scenario.toml", "--workers", "0"], "--workers must be at least 1 but got 0"),
        (["run", "scenario.toml", "--k", "1"], "k must be"),
        (["run", "."], "has neither scenario.toml nor scenario.txt"),
        (["show", "."], "holds no run"),
        (["report", "nowhere"], "nowhere is not a directory"),
        (["validate", "."], "holds no run"),
        (["convert", "nowhere.pcs", "x.json"], "nowhere.pcs: cannot be read"),
    ],
)
def test_bad_input_exits_with_2(
    words: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    write(tmp_path, "echo 1\n")
    monkeypatch.chdir(tmp_path)
    if words[-1] == ".":
        (tmp_path / "scenario.toml").unlink()
    assert main(words) == ExitCode.BAD_INPUT
    error = capsys.readouterr().err
    assert error.startswith("error: ")
    assert message in error
    assert not (tmp_path / "acband_output").exists()


def test_keys_may_come_before_the_scenario(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path, "echo 1\n")
    told = []
    for words in (["--trials", "60", "--k=3", path], [path, "--k=3", "--trials", "60"], [path]):
        assert main(["plan", *words]) == 0
        told.append(capsys.readouterr().out)
    assert told[0] == told[1] != told[2]


def test_an_unknown_argument_has_a_suggestion(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as leaving:
        main(["show", "run", "--jsn"])
    assert leaving.value.code == ExitCode.BAD_INPUT
    assert "did you mean '--json'?" in capsys.readouterr().err


def test_ctrl_c_exits_with_130_and_the_run_goes_on(tmp_path: Path) -> None:
    write(tmp_path, "sleep 0.05\necho 1\n")
    process = subprocess.Popen(
        [sys.executable, "-m", "acband_configspace", "run", ".", "--output", "run"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    journal = tmp_path / "run" / "journal.jsonl"
    while not journal.exists() or journal.read_bytes().count(b"\n") < 4:
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == ExitCode.INTERRUPTED
    where, how_good, directory, how_to_go_on = errors.strip().splitlines()
    assert where.startswith("Interrupted in pass 1")
    assert "default" in how_good
    assert directory.endswith(str(tmp_path / "run"))
    assert how_to_go_on == "To continue: acband run . --output run"
    acband("run", ".", "--output", "run", "--quiet", cwd=tmp_path)


def test_show_needs_no_smac(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = write(tmp_path, 'echo "${1#--x=}"\n')
    assert main(["run", path, "--output", "run", "--quiet"]) == 0
    code = (
        "import sys; from acband_configspace.cli.main import main; "
        "main(['show', 'run']); assert 'smac' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def test_a_hostile_scenario_runs_nothing_but_its_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    bait = f"touch {tmp_path}/caught"
    values = [f"$({bait})", f"; {bait}", f"`{bait}`", f"| {bait}", "a\nb", "' '", '"']
    listed = ", ".join("'''" + value + "'''" for value in values)
    (tmp_path / "scenario.toml").write_text(
        COST.replace("x = {", f"y = {{ values = [{listed}] }}\nx = {{")
        + f"[instances]\ntrain = ['$({bait})', '../../../etc/passwd', '-rf']\n"
    )
    write_script(tmp_path / "target", "#!/bin/sh\necho 1\n")
    assert main(["run", "scenario.toml", "--quiet", "--output", "run"]) == 0
    assert main(["show", "run", "--command"]) == 0
    assert not (tmp_path / "caught").exists()


def test_a_shell_only_where_the_scenario_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    text = COST.replace('["./target"]', '"echo {parameters} | cut -d= -f2"')
    (tmp_path / "scenario.toml").write_text(text)
    assert main(["check", "."]) == ExitCode.BAD_INPUT
    assert "command must be a list of words" in capsys.readouterr().err
    (tmp_path / "scenario.toml").write_text(text.replace("[space]", "shell = true\n[space]"))
    assert main(["check", "."]) == 0
    assert "All is in order." in capsys.readouterr().out
