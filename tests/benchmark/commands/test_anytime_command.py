"""The command that compares what methods have found over CPU time and trials."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from acband_configspace.benchmark.__main__ import main
from acband_configspace.benchmark.commands.anytime import MODES, average, measure

RIVALS = ["roar", "roar-capped", "sh", "hyperband", "random-racing"]


def test_both_modes_are_printed_and_drawn(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("matplotlib")
    figure = tmp_path / "curves.png"
    options = ["--table", "synthetic:60x30:spread=2", "--table", "families:60x30"]
    options += ["--table", "noisy:80x20:noise=2", "--seeds", "2", "--processes", "1"]
    assert main(["anytime", "--methods", *RIVALS, *options, "--plot", str(figure)]) == 0
    racing, trials = capsys.readouterr().out.split("rank, % from the top")
    for part in ("synthetic:60x30:spread=2", "geometric mean over 2 tables", "1600"):
        assert part in racing
    assert "… relative to ROAR, capped" in racing
    assert "ROAR, capped" not in trials  # costs cannot be capped
    assert "noisy:80x20:noise=2" in trials
    assert figure.stat().st_size > 10_000


def test_processes_do_not_change_the_figures() -> None:
    jobs = ("racing", ["synthetic:60x30"], ["roar", "sh"], range(2))
    one, two = (measure(*jobs, processes=n) for n in (1, 2))
    assert all(np.array_equal(one[method], two[method]) for method in one)
    assert one["roar"].shape == (1, len(MODES["racing"].limits))


def test_the_built_in_tables_come_with_any_seed(capsys: pytest.CaptureFixture[str]) -> None:
    options = "--mode trials --methods sh --seeds 1 --processes 1 --table-seed 7"
    assert main(["anytime", *options.split()]) == 0
    assert "noisy:10000x100:noise=4:seed=7" in capsys.readouterr().out


def test_zero_does_not_spoil_a_geometric_mean() -> None:
    values = average({"roar": np.array([[0.0, 4.0, np.nan], [10.0, 9.0, 1.0]])})["roar"]
    assert values[:2] == pytest.approx([10**-0.5, 6.0])  # √(0.01 · 10), √(4 · 9)
    assert np.isnan(values[2])
