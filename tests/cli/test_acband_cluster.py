"""``--scheduler`` and ``--slurm``: the same run on a Dask cluster, and waiting for its workers."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
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
from dask.distributed import Client, LocalCluster

from acband_configspace.cli.errors import ExitCode
from acband_configspace.cli.facade import make_facade
from acband_configspace.cli.main import main
from acband_configspace.cli.scenario.reading import read_scenario
from acband_configspace.errors import NoWorkersError
from acband_configspace.running.dask import cluster as race_cluster
from acband_configspace.smac_plugin.runners import DaskRaceRunner

SMALL = """\
[target]
command = ["echo", "1"]
minimise = "cost"
[space]
x = { range = [0.0, 1.0], default = 0.5 }
[budget]
trials = 20
"""


@pytest.fixture
def deserted() -> Iterator[Client]:
    """Return a client of a cluster without workers."""
    with (
        LocalCluster(n_workers=0, processes=False, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        yield client


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


@pytest.mark.parametrize(
    ("options", "given", "expected"),
    [
        ({}, math.inf, math.inf),
        ({"worker_timeout": "60"}, math.inf, 60.0),
        ({"worker-timeout": "inf"}, None, math.inf),
        ({}, None, 300.0),
    ],
)
def test_how_long_to_wait_for_workers(
    options: dict[str, str], given: float | None, expected: float, deserted: Client, tmp_path: Path
) -> None:
    (tmp_path / "scenario.toml").write_text(SMALL)
    facade = make_facade(
        read_scenario(tmp_path, options),
        tmp_path / "run",
        dask_client=deserted,
        worker_timeout=given,
    )
    runner = facade._runner
    assert isinstance(runner, DaskRaceRunner)
    assert runner._worker_timeout == expected


def test_a_wait_without_end_has_one_if_no_worker_can_come(
    deserted: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(race_cluster, "DESERTED_SECONDS", 1.0)
    (tmp_path / "scenario.toml").write_text(SMALL)
    facade = make_facade(
        read_scenario(tmp_path), tmp_path / "run", dask_client=deserted, worker_timeout=math.inf
    )
    with pytest.raises(NoWorkersError, match="for 1 seconds, and none is on its way.*continues"):
        facade.optimize()


@pytest.mark.skipif(find_spec("dask_jobqueue") is None, reason="needs dask-jobqueue")
def test_a_job_may_wait_in_slurms_queue_as_long_as_it_takes(tmp_path: Path) -> None:
    """A SLURM that takes jobs and starts none."""
    (tmp_path / "bin").mkdir()
    for name in ("sbatch", "scancel"):
        write_script(tmp_path / "bin" / name, "#!/bin/sh\necho Submitted batch job 1\n")
    (tmp_path / "scenario.toml").write_text(SMALL)
    process = subprocess.Popen(
        [sys.executable, "-m", "acband_configspace", "run", ".", "--output", "run", "--slurm"],
        cwd=tmp_path,
        env={**os.environ, "PATH": f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}"},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    try:
        told: list[str] = []
        for line in process.stdout:
            told.append(line)
            if "has no worker" in line:
                break
        assert "Waiting for SLURM to start a job.\n" in told
        assert "Waiting until there is one" in told[-1]
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
        assert process.returncode == ExitCode.INTERRUPTED
    finally:
        process.kill()
        process.wait()
