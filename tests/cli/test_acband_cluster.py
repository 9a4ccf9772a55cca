"""``--scheduler`` and ``--slurm``: the same run on a Dask cluster, and waiting for its workers."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import pytest
from cli_helpers import (
    MINISAT_COST_TOML,
    MINISAT_TOML,
    needs_minisat,
    write_formulas,
    write_script,
)
from cluster_helpers import eventually
from dask.distributed import LocalCluster

from acband_configspace.cli.errors import ExitCode
from acband_configspace.cli.main import main

QUEUED = """\
[target]
command = ["echo", "1"]
minimise = "cost"
[space]
x = { range = [0.0, 1.0], default = 0.5 }
[budget]
wall_time = "1 s"
"""


@needs_minisat
@pytest.mark.parametrize("text", [MINISAT_TOML, MINISAT_COST_TOML], ids=["time", "cost"])
def test_a_run_on_a_cluster(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("train", "test"):
        write_formulas(tmp_path / name, 6)
    (tmp_path / "scenario.toml").write_text(text.replace("trials = 40", "trials = 24"))
    with LocalCluster(
        n_workers=1, threads_per_worker=2, processes=False, dashboard_address=None
    ) as cluster:
        words = ["run", ".", "--output", "run", "--quiet"]
        assert main([*words, "--scheduler", cluster.scheduler_address]) == 0
    assert "As a command line:" in capsys.readouterr().out


@pytest.mark.parametrize("more", [["--slurm"], ["--workers", "2"]], ids=["slurm", "workers"])
def test_what_does_not_go_with_a_scheduler_is_refused(
    more: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    text = MINISAT_COST_TOML[: MINISAT_COST_TOML.index("[instances]")] + "[budget]\ntrials = 9\n"
    (tmp_path / "scenario.toml").write_text(text)
    assert main(["run", ".", "--scheduler", "tcp://x:1", *more]) == 2
    assert f"--scheduler and {more[0]} must not be given together" in capsys.readouterr().err


needs_jobqueue = pytest.mark.skipif(
    find_spec("dask_jobqueue") is None, reason="needs dask-jobqueue"
)


def run_on_slurm(
    folder: Path, *words: str, scenario: str = QUEUED, **scripts: str
) -> subprocess.Popen[str]:
    """Start ``acband run --slurm`` where SLURM's commands are these scripts."""
    (folder / "bin").mkdir(exist_ok=True)
    for name, text in scripts.items():
        write_script(folder / "bin" / name, f"#!/bin/sh\n{text}\n")
    (folder / "scenario.toml").write_text(scenario)
    return subprocess.Popen(
        [sys.executable, "-m", "acband_configspace", "run", ".", "--output", "run", *words],
        cwd=folder,
        env={**os.environ, "PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,  # as a shell starts it at a terminal
    )


def errors_at_the_end(process: subprocess.Popen[str], code: int) -> str:
    """Return what a process has said when it ends, which it must do soon and with this code."""
    try:
        output, errors = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == code, output + errors
    return errors


@needs_jobqueue
def test_a_job_may_wait_in_slurms_queue_as_long_as_it_takes(tmp_path: Path) -> None:
    """A SLURM that takes jobs and starts none: the clock of the run does not go on.

    Nor does it say what is in the queue, as while its controller is being restarted.
    """
    process = run_on_slurm(
        tmp_path,
        "--slurm",
        sbatch="echo Submitted batch job 1",
        squeue="echo slurm_load_jobs error: Unable to contact slurm controller >&2; exit 1",
        scancel="",
    )
    assert process.stdout is not None
    try:
        for line in process.stdout:
            if line.startswith("Waiting for SLURM to start a job"):
                break
        time.sleep(2)  # it has had a look at the queue
        assert process.poll() is None
        process.send_signal(signal.SIGINT)  # dask-jobqueue would end Python, with status 0
        _, errors = process.communicate(timeout=60)
        assert process.returncode == ExitCode.INTERRUPTED
        assert "To continue: acband run . --output run --slurm" in errors
    finally:
        process.kill()
        process.wait()


@needs_jobqueue
def test_a_job_that_slurm_refuses_is_told_of_and_the_others_are_waited_for(tmp_path: Path) -> None:
    """A SLURM that takes one job only, which then leaves the queue without a worker."""
    process = run_on_slurm(
        tmp_path,
        *("--workers", "2", "--slurm"),
        sbatch="mkdir taken 2>/dev/null && echo Submitted batch job 1 && exit\n"
        "echo sbatch: error: QOSMaxSubmitJobPerUserLimit >&2; exit 1",
        squeue="",
        scancel="",
    )
    try:
        output, errors = process.communicate(timeout=60)
        assert process.returncode == ExitCode.CLUSTER_LOST
        assert "1 of 2 jobs could not be submitted to SLURM: sbatch: error: QOS" in output + errors
        assert "none of the jobs is in SLURM's queue any more" in errors
    finally:
        process.kill()
        process.wait()


@needs_jobqueue
def test_jobs_of_another_cluster_are_looked_up_and_cancelled_there(tmp_path: Path) -> None:
    """They are queued at the first look, and gone at the second."""
    process = run_on_slurm(
        tmp_path,
        "--slurm",
        sbatch="echo Submitted batch job 7 on cluster fast",
        squeue='echo "$@" >> asked; echo CLUSTER: fast; [ "$(wc -l < asked)" -gt 1 ] || echo 7',
        scancel='echo "$@" >> cancelled',
    )
    errors = errors_at_the_end(process, ExitCode.CLUSTER_LOST)
    assert "none of the jobs is in SLURM's queue any more" in errors
    asked = (tmp_path / "asked").read_text().splitlines()
    assert asked == ["--clusters=fast --jobs=7 --noheader --format=%i"] * 2
    assert (tmp_path / "cancelled").read_text() == "--clusters=fast 7\n"


@needs_jobqueue
def test_ctrl_c_at_a_terminal_loses_no_job_that_is_being_submitted(tmp_path: Path) -> None:
    """The signal goes to all of the process group: sbatch, too, if it is in it."""
    process = run_on_slurm(
        tmp_path,
        "--slurm",
        sbatch="touch asked; sleep 2; echo Submitted batch job 1",
        squeue="echo 1",
        scancel='echo "$@" >> cancelled',
    )
    eventually((tmp_path / "asked").exists, 60)
    os.killpg(process.pid, signal.SIGINT)
    errors_at_the_end(process, ExitCode.INTERRUPTED)
    assert (tmp_path / "cancelled").read_text() == "1\n"


@needs_jobqueue
@pytest.mark.skipif(
    signal.getsignal(signal.SIGHUP) is signal.SIG_IGN, reason="SIGHUP is ignored below nohup"
)
def test_a_terminal_that_is_closed_leaves_no_job_in_the_queue(tmp_path: Path) -> None:
    process = run_on_slurm(
        tmp_path,
        "--slurm",
        sbatch="echo Submitted batch job 1; touch taken",
        squeue="echo 1",
        scancel='echo "$@" >> cancelled',
    )
    eventually((tmp_path / "taken").exists, 60)
    process.send_signal(signal.SIGHUP)
    errors_at_the_end(process, 128 + signal.SIGHUP)
    assert (tmp_path / "cancelled").read_text() == "1\n"


@needs_jobqueue
def test_a_run_is_not_replaced_if_slurm_takes_no_job(tmp_path: Path) -> None:
    def run(*words: str) -> subprocess.Popen[str]:
        scenario = QUEUED.replace('wall_time = "1 s"', "trials = 10")
        sbatch = "echo no >&2; exit 1"
        return run_on_slurm(tmp_path, *words, scenario=scenario, sbatch=sbatch, scancel="")

    errors_at_the_end(run(), ExitCode.DONE)
    journal = tmp_path / "run" / "journal.jsonl"
    before = journal.read_bytes()
    errors = errors_at_the_end(run("--fresh", "--slurm"), ExitCode.CLUSTER_LOST)
    assert "no job could be submitted to SLURM: no" in errors
    assert journal.read_bytes() == before
    errors_at_the_end(run("--slurm"), ExitCode.DONE)  # it is over, and needs no job


@needs_jobqueue
def test_there_are_as_many_jobs_as_the_scenario_has_workers(tmp_path: Path) -> None:
    process = run_on_slurm(
        tmp_path,
        "--slurm",
        scenario=f"{QUEUED}[run]\nworkers = 3\n",
        sbatch="echo job >> asked; exit 1",
        scancel="",
    )
    errors_at_the_end(process, ExitCode.CLUSTER_LOST)
    assert (tmp_path / "asked").read_text() == "job\n" * 3


CTRL_C = """
import signal
from acband_configspace.cli.main import main

before = signal.getsignal(signal.SIGINT)
print(main(["run", ".", "--output", "run", "--slurm"]))
print(signal.getsignal(signal.SIGINT) is before)
"""


@needs_jobqueue
def test_ctrl_c_does_the_same_after_a_run_on_slurm(tmp_path: Path) -> None:
    """While the result is read and printed, that is; dask-jobqueue would have changed it."""
    (tmp_path / "scenario.toml").write_text(QUEUED)
    write_script(tmp_path / "sbatch", "#!/bin/sh\nexit 1\n")
    done = subprocess.run(
        [sys.executable, "-c", CTRL_C],
        cwd=tmp_path,
        env={**os.environ, "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    said = done.stdout.splitlines()
    assert said[-2:] == [str(int(ExitCode.CLUSTER_LOST)), "True"], done.stderr
