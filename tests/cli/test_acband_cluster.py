"""``--scheduler``: the same run on a Dask cluster."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_helpers import MINISAT_COST_TOML, MINISAT_TOML, needs_minisat, write_formulas
from dask.distributed import LocalCluster

from acband_configspace.cli.main import main


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
