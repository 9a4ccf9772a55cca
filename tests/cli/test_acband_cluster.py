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


def run_on_slurm(folder: Path, *words: str, **scripts: str) -> subprocess.Popen[str]:
    """Start ``acband run --slurm`` where SLURM's commands are these scripts."""
    (folder / "bin").mkdir()
    for name, text in scripts.items():
        write_script(folder / "bin" / name, f"#!/bin/sh\n{text}\n")
    (folder / "scenario.toml").write_text(QUEUED)
    return subprocess.Popen(
        [sys.executable, "-m", "acband_configspace", "run", ".", "--output", "run", *words],
        cwd=folder,
        env={**os.environ, "PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


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
        assert "no job is in SLURM's queue any more" in errors
    finally:
        process.kill()
        process.wait()
