"""Runs on a real SLURM, whose jobs are refused, wait, fail or are cancelled meanwhile."""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import psutil
import pytest
from cluster_helpers import SEARCH_PATH, eventually
from slurm_helpers import Slurm, missing, slurm

from acband_configspace.cli.errors import ExitCode
from acband_configspace.core.ends import End
from acband_configspace.runlog.journal import JOURNAL
from acband_configspace.runlog.replay import Run

pytestmark = [
    pytest.mark.skipif(bool(missing()), reason=f"needs SLURM: no {', '.join(missing())}"),
    pytest.mark.skipif(find_spec("dask_jobqueue") is None, reason="needs dask-jobqueue"),
]

EXAMPLES = Path(__file__).parents[3] / "examples"

SCENARIO = """\
[target]
command = ["sh", "target.sh", "{parameters}", "{instance}"]
parameter = "{value}"
minimise = "cost"
pattern = 'cost ([0-9.]+)'
cutoff = 20
[space]
x = { range = [0.0, 1.0], default = 0.9 }
[instances]
train = ["one", "two", "three"]
[budget]
trials = 60
"""


@pytest.fixture(scope="module")
def service() -> Iterator[Slurm]:
    # Not pytest's own folder: sockets must have short paths.
    with tempfile.TemporaryDirectory() as folder, slurm(Path(folder), cpus=8) as running:
        yield running


@pytest.fixture
def held(service: Slurm) -> Iterator[None]:
    """Jobs wait in the queue until the end of the test, or until it releases them."""
    service.hold()
    yield
    service.release()


@contextmanager
def acband_run(
    service: Slurm, *words: str, cwd: Path, **environment: str
) -> Iterator[subprocess.Popen[str]]:
    """Start ``acband run`` in a folder; at the end it is killed if it still goes on."""
    (cwd / "scenario.toml").write_text(SCENARIO)
    (cwd / "target.sh").write_text('echo "cost $1"\n')
    with subprocess.Popen(
        [sys.executable, "-m", "acband_configspace", "run", ".", "--output", "run", *words],
        cwd=cwd,
        env={**service.environment, "PYTHONPATH": SEARCH_PATH, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def errors_of(process: subprocess.Popen[str], code: int) -> str:
    """Return what a run has said when it ends, which it must do within a minute with this code."""
    output, errors = process.communicate(timeout=60)
    assert process.returncode == code, output + errors
    return errors


def await_waiting(process: subprocess.Popen[str]) -> None:
    """Wait until a run waits for SLURM."""
    assert process.stdout is not None
    assert any(line.startswith("Waiting for SLURM") for line in process.stdout)


def run_and_cancel_a_job(service: Slurm, *command: str, cwd: Path) -> tuple[Run, str]:
    """Run a command, cancel a job with scancel in the midst of it; return the run and the output.

    The jobs that are left, or wait for their turn, must finish what it has begun.
    """
    environment = {**service.environment, "PYTHONPATH": SEARCH_PATH}
    with open(cwd / "output", "wb") as output:
        process = subprocess.Popen(
            command, cwd=cwd, env=environment, stdout=output, stderr=subprocess.STDOUT
        )
    try:

        def races() -> int:
            assert process.poll() is None, (cwd / "output").read_text()
            return sum(file.read_text().count('"race":') for file in cwd.rglob(JOURNAL))

        eventually(lambda: races() > 5, 100)
        job = service.running_jobs()[0]
        before = races()
        service.call("scancel", job)
        eventually(lambda: job not in service.running_jobs(), 30)
        assert process.wait(120) == 0, (cwd / "output").read_text()
    finally:
        process.kill()
        process.wait()
    [journal] = cwd.rglob(JOURNAL)
    run = Run.load(journal.parent)
    assert len(run.races) > before, "the run was over too soon for this test"
    assert run.finished is not None
    eventually(lambda: not service.jobs())
    return run, (cwd / "output").read_text()


def racers_below(folder: Path) -> list[int]:
    """Return the processes whose working directory is in the folder."""
    return [process.pid for process in psutil.process_iter() if is_in(process, folder)]


def is_in(process: psutil.Process, folder: Path) -> bool:
    try:
        return Path(process.cwd()).is_relative_to(folder)
    except (psutil.Error, OSError):  # gone, or not ours
        return False


def test_the_example_survives_scancel(service: Slurm, tmp_path: Path) -> None:
    script = str(EXAMPLES / "on_a_cluster.py")
    options = ("--slurm", "--trials", "150", "--output", "out")
    run, output = run_and_cancel_a_job(service, sys.executable, script, *options, cwd=tmp_path)
    assert "The winner after 150 trials" in output
    assert not [trial for trial in run.trials if trial.record.end is End.CRASHED]
    assert "has left; races run again" in output  # and no race is suspected of it
    eventually(lambda: not racers_below(tmp_path))


def test_the_command_line_survives_scancel(service: Slurm, tmp_path: Path) -> None:
    (tmp_path / "scenario.toml").write_text(SCENARIO)
    (tmp_path / "target.sh").write_text('sleep 0.3; echo "cost $1"\n')
    words = ("run", ".", "--output", "run", "--slurm", "normal", "--workers", "2")
    command = (sys.executable, "-m", "acband_configspace", *words)
    run, output = run_and_cancel_a_job(service, *command, cwd=tmp_path)
    assert "The incumbent after 60 trials" in output
    assert not [trial for trial in run.trials if trial.record.end is End.CRASHED]
    eventually(lambda: not racers_below(tmp_path))


def test_sbatch_says_why_it_takes_no_job(service: Slurm, tmp_path: Path) -> None:
    with acband_run(service, "--slurm", "nowhere", cwd=tmp_path) as process:
        errors = errors_of(process, ExitCode.CLUSTER_LOST)
    assert "error: no job could be submitted to SLURM: sbatch: error: " in errors
    assert "Invalid partition name specified" in errors


def test_a_job_that_ends_before_there_is_a_worker_ends_the_run(
    service: Slurm, tmp_path: Path
) -> None:
    prologue = {"DASK_JOBQUEUE__SLURM__JOB_SCRIPT_PROLOGUE": "['exit 1']"}
    with acband_run(service, "--slurm", cwd=tmp_path, **prologue) as process:
        errors = errors_of(process, ExitCode.CLUSTER_LOST)
    assert "none of the jobs is in SLURM's queue any more" in errors
    assert list(tmp_path.glob("slurm-*.out"))


@pytest.mark.usefixtures("held")
def test_sigterm_takes_the_jobs_out_of_the_queue(service: Slurm, tmp_path: Path) -> None:
    with acband_run(service, "--slurm", "normal", "--workers", "2", cwd=tmp_path) as process:
        await_waiting(process)
        assert len(service.jobs()) == 2
        process.terminate()
        errors_of(process, 128 + signal.SIGTERM)
    eventually(lambda: not service.jobs())


@pytest.mark.usefixtures("held")
def test_a_run_that_another_process_goes_on_with_meanwhile_is_left_alone(
    service: Slurm, tmp_path: Path
) -> None:
    with acband_run(service, "--slurm", cwd=tmp_path) as waiting:
        await_waiting(waiting)
        with acband_run(service, cwd=tmp_path) as other:
            errors_of(other, ExitCode.DONE)
        service.release()
        errors = errors_of(waiting, ExitCode.RUN_IN_THE_WAY)
    assert "changed by another process; start the run again" in errors
    assert Run.load(tmp_path / "run").finished is not None
    eventually(lambda: not service.jobs())
