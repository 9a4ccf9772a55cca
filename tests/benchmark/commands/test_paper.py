"""The command that repeats the paper's experiments."""

from __future__ import annotations

import csv
import re
from pathlib import Path
from typing import Any

import pytest

from acband_configspace.benchmark.__main__ import main
from acband_configspace.benchmark.commands.paper import savings_by_spread
from acband_configspace.benchmark.commands.paper_grid import Grid, Row, fit_to
from acband_configspace.benchmark.commands.paper_space import SearchRow
from acband_configspace.benchmark.commands.paper_space import as_text as space_text
from acband_configspace.benchmark.commands.paper_summary import (
    as_table,
    claims,
    pareto_front,
    summarise,
)
from acband_configspace.benchmark.methods.acband import ACBand
from acband_configspace.benchmark.tables import (
    RuntimeTable,
    open_table,
    save_npz,
    synthetic_table,
)


def row(
    method: str,
    cpu_time: Any,
    gap: Any,
    *,
    alpha: float = 0.05,
    seed: int = 0,
    family: str = "acband",
    repeats: float = 1.0,
) -> Row:
    times = (cpu_time, repeats * cpu_time, cpu_time)
    return Row(method, family, alpha, seed, *times, gap, gap, 1.0, 9, 9, 0.1)


def without_computing(path: Path) -> Any:
    with path.open() as file:
        return [
            {k: v for k, v in line.items() if k != "computing"} for line in csv.DictReader(file)
        ]


def test_same_numbers_with_any_number_of_workers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["paper", "--table", "synthetic:60x300", "--alpha", "0.2", "0.1", "--seeds", "2"]
    options += ["--k", "2", "4", "--eta", "4", "--methods", "acband", "hyperband", "car++"]
    for workers in ("1", "2"):
        output = str(tmp_path / workers)
        assert main([*options, "--processes", workers, "--output", output]) == 0
    assert without_computing(tmp_path / "1/main.csv") == without_computing(tmp_path / "2/main.csv")
    text = capsys.readouterr().out
    for part in ("AC-Band k=4", "Hyperband η=4", "Gap to subset-best", "Pareto front", "s a run"):
        assert part in text
    pytest.importorskip("matplotlib")
    assert (tmp_path / "1/main.png").stat().st_size > 10_000


def test_the_experiments_of_the_appendix(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = "paper --table synthetic:60x300 --alpha 0.2 --seeds 1 --k 2 --eta 4 --processes 1"
    assert (
        main([*options.split(), "--output", str(tmp_path), "--experiment", "car", "hyperband"]) == 0
    )
    assert {path.name for path in tmp_path.glob("*.csv")} == {"car.csv", "hyperband.csv"}


def test_savings_fall_as_configurations_differ_more() -> None:
    text = savings_by_spread([0.1], 0.05, range(2), 1, shape=(100, 3000), spreads=(0.6, 3.0))
    narrow, wide = ([float(x.rstrip("%")) for x in line.split()] for line in text.splitlines()[3:])
    assert (narrow[0], wide[0]) == (0.6, 3.0)
    assert wide[1] < narrow[1]  # against ICAR
    assert wide[4] > narrow[4]  # what ICAR saves by guessing


def test_what_could_not_be_run_is_not_averaged(small_table: RuntimeTable) -> None:
    rows = [
        SearchRow("irace", 100.0, 0, 0.25, 9.0, 30, 60),
        SearchRow("irace", 100.0, 1, float("nan"), 0.0, 0, 0, "irace failed: no more memory"),
        SearchRow("ParamILS", 100.0, 0, float("nan"), 0.0, 0, 0, "it is missing"),
    ]
    text = space_text(small_table, rows)
    assert re.search(r"^irace +0\.250 ± 0\.000 +30 +60$", text, re.M)
    assert re.search(r"^ParamILS +– +– +–$", text, re.M)
    assert "irace, 100 ×, seed 1: irace failed: no more memory" in text


def test_methods_that_search_the_space_of_a_recorded_table(
    tmp_path: Path, small_table: RuntimeTable, capsys: pytest.CaptureFixture[str]
) -> None:
    save_npz(tmp_path / "t.npz", small_table)
    options = f"paper --table {tmp_path / 't.npz'} --methods acband --alpha 0.2 --k 2 --seeds 2"
    options += f" --searches gga acband --limits 20 40 --processes 1 --output {tmp_path}"
    assert main(options.split()) == 0
    text = capsys.readouterr().out
    assert "rank correlation of 0.9" in text
    assert re.search(r"GGA +-?\d\.\d{3} ± \d\.\d{3} +-?\d\.\d{3} ±", text)
    with (tmp_path / "space.csv").open() as file:
        lines = list(csv.DictReader(file))
    found = [(line["method"], float(line["limit"]), int(line["seed"])) for line in lines]
    assert found[:3] == [("GGA", 20.0, 0), ("GGA", 20.0, 1), ("GGA", 40.0, 0)]
    assert {method for method, _, _ in found} == {"GGA", "AC-Band"}


def test_ac_band_gets_the_configurations_of_the_others() -> None:
    # Table 3: with N = 97 AC-Band draws 101; Table 4: with N = 618.
    table = synthetic_table(948, 6000)
    grid = Grid(table, alphas=[0.05], delta=0.05, ks=[2], etas=[8], seeds=range(1))
    [job] = [job for job in grid.car() if job.family == "acband"]
    assert job.method.run(table, 0).n_configs == 101
    [job] = [job for job in grid.hyperband() if job.family == "acband"]
    assert vars(job.method)["n_candidates"] == 618


def test_a_small_table_lowers_n() -> None:
    table = synthetic_table(50, 400)
    fitted = fit_to(table, ACBand(alpha=0.01))
    assert fitted.run(table, 0).n_configs <= 49
    assert fit_to(table, ACBand(alpha=0.1)) == ACBand(alpha=0.1)


def test_a_lowered_n_is_said_for_each_method(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = "--experiment main --methods acband --alpha 0.05 --k 2 8 --seeds 1 --times 1"
    table = ["paper", "--table", "synthetic:100x60", "--output", str(tmp_path)]
    assert main([*table, *options.split()]) == 0
    said = capsys.readouterr().out
    assert "too few configurations or races for N, which is lowered: N = " in said
    assert "for AC-Band k=2 with α = 0.05, N = " in said


def test_an_unknown_table_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["paper", "--table", str(tmp_path / "none.npz")]) == 2
    assert "there is no runtime table" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("paper --seeds 0", "seeds must be at least 1 but got 0"),
        ("paper --alpha 2", "alpha must lie strictly between 0 and 1 but got 2.0"),
        ("beyond --table none.npz", "there is no runtime table"),
        ("record --cutoff 0", "cutoff must be"),
    ],
)
def test_wrong_arguments_are_said(
    options: str,
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(options.split()) == 2
    assert message in capsys.readouterr().err


def test_a_shipped_table_may_be_cut() -> None:
    assert open_table("minisat", cutoff=0.1).cutoff == 0.1 < open_table("minisat").cutoff


def test_pareto_front_and_claims() -> None:
    rows = [row("AC-Band k=2", 25.0, 0.2), row("AC-Band k=4", 30.0, 0.3)]
    rows += [row("ICAR", 100.0, 0.1, family="icar"), row("CAR", 90.0, 0.2, family="car")]
    cells = summarise(rows)
    assert [cell.method for cell in pareto_front(cells)] == ["AC-Band k=2", "ICAR"]
    assert "75.0% less CPU time than ICAR" in claims(cells)
    assert "+10.0 points" in claims(cells)


def test_mean_deviation_and_layout() -> None:
    rows = [
        row("AC-Band k=2", seconds, 0.25, seed=i) for i, seconds in enumerate((86400, 3 * 86400))
    ]
    [cell] = summarise(rows)
    assert cell.metrics["cpu_time"].mean == 2 * 86400
    assert cell.metrics["cpu_time"].error == pytest.approx(86400)
    table = as_table([cell]).splitlines()
    assert "CPU time (days)" in table[0]
    numbers = [group.split() for group in table[-1].split("|")[1:]]
    assert numbers == [["2.00", "1.41"], ["0.25", "0.00"], ["0.25", "0.00"], ["1.0", "0.0"]]


def test_the_account_with_repeats_is_shown_where_it_differs() -> None:
    plain, dearer = row("SH", 2.0, 0.1), row("CAR", 20.0, 0.1, repeats=3.0)
    assert "repeats paid" not in as_table(summarise([plain]))
    table = as_table(summarise([plain, dearer])).splitlines()
    assert "repeats paid (s)" in table[0]
    last = [line.split("|")[-1].split() for line in table[-2:]]
    assert last == [["2.00", "0.00"], ["60.00", "0.00"]]
