"""The command that measures what goes beyond the paper."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from acband_configspace.benchmark.__main__ import main
from acband_configspace.benchmark.commands.beyond import SHARES, VARIANTS


def test_it_compares_on_a_recorded_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(0)
    path = tmp_path / "table.npz"
    np.savez(path, runtimes=rng.lognormal(0, 1, (12, 200)), cutoff=5.0)
    arguments = ["--table", str(path), "--seeds", "2", "--k", "2", "--alpha", "0.05"]
    assert main(["beyond", *arguments, "--processes", "1"]) == 0
    printed = capsys.readouterr().out
    assert "12 configurations, 200 instances" in printed
    assert "budget of 10 × the instances" in printed
    names = [f"default, {share:.0%} of its CPU" for share in SHARES]
    for name in [*VARIANTS, *names]:
        assert printed.count(f"\n  {name} ") >= 3
