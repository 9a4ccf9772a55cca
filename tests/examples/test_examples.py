"""Every example runs as a newcomer starts it, in an even quicker setting."""

from __future__ import annotations

import csv
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"

needs_highs = pytest.mark.skipif(
    subprocess.run([sys.executable, "-c", "import highspy"], capture_output=True).returncode != 0,
    reason="highspy is not installed",
)


def run_example(name: str, *options: object, code: int = 0) -> str:
    """Run an example in a process of its own and return what it printed."""
    environment = {**os.environ, "PYTHONPATH": str(EXAMPLES.parent)}
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / f"{name}.py"), *map(str, options)],
        capture_output=True,
        text=True,
        timeout=600,
        env=environment,
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout if code == 0 else done.stderr


def run_directories(folder: Path) -> list[Path]:
    return [path.parent for path in folder.rglob("journal.jsonl")]


def test_help_says_what_it_is() -> None:
    names = ["compare", "on_a_cluster", "own_loop"]
    names += ["quickstart_svm", "tune_highs", "tune_minisat"]
    with ThreadPoolExecutor() as pool:  # most of it is importing
        for name, output in zip(names, pool.map(run_help, names), strict=True):
            assert f"python examples/{name}.py" in output


def run_help(name: str) -> str:
    return run_example(name, "--help")


@pytest.mark.parametrize(
    ("name", "options"),
    [
        pytest.param("compare", ("--seeds", 0), marks=needs_highs),
        ("on_a_cluster", ("--k", 1)),
        ("own_loop", ("--batch", 0)),
        ("quickstart_svm", ("--trials", 1)),
        pytest.param("tune_highs", ("--minutes", -1), marks=needs_highs),
        ("tune_minisat", ("--trials", 1)),
    ],
)
def test_a_wrong_argument_is_named(name: str, options: tuple[Any, ...]) -> None:
    errors = run_example(name, *options, code=2)
    assert re.search(rf"error: .*{options[0]}", errors)
    assert "must be" in errors
    assert "Traceback" not in errors


@needs_highs
def test_highs_is_tuned_and_tested(tmp_path: Path) -> None:
    # Trials are the limit: a busy machine gets fewer of them done in a given time.
    output = run_example(
        "tune_highs", "--minutes", 4, "--trials", 40, "--test", 4, "--output", tmp_path
    )
    assert "AC-Band with memory, k = 4" in output
    assert "mip_heuristic_effort" in output
    rows = re.findall(r"^(incumbent|default) +([\d.]+) s +([\d.]+) s +([\d.]+) s", output, re.M)
    assert [row[0] for row in rows] == ["incumbent", "default"]
    assert all(0 < float(value) < 50 for row in rows for value in row[1:])
    [speed_up] = re.findall(r"speed-up by PAR10: ([\d.]+)", output)
    assert float(speed_up) == pytest.approx(float(rows[1][3]) / float(rows[0][3]), rel=0.1)
    [run] = run_directories(tmp_path)
    assert f"python -m acband_configspace report {run}" in output


@needs_highs
def test_highs_can_be_checked_first(tmp_path: Path) -> None:
    run_example("tune_highs", "--check", "--output", tmp_path)


@needs_highs
def test_auctions_are_what_they_are_called(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    import highs_auctions

    first, again = (highs_auctions.make_auction("train-1") for _ in range(2))
    assert first == again
    assert first != highs_auctions.make_auction("test-1")
    space = highs_auctions.make_space()
    assert len(space) >= 12
    assert space.conditions
    # What is optimal does not depend on the options.
    configs = [space.get_default_configuration(), *space.sample_configuration(3)]
    revenues = [highs_auctions.solve(config, "train-1") for config in configs]
    assert revenues == pytest.approx([revenues[0]] * 4, rel=2e-4)  # the default gap is 1e-4
    assert 0 < highs_auctions.timed_solve(configs[0], "train-1") <= 50


@needs_highs
@pytest.mark.timeout(600)  # an interpreter for each run
def test_the_comparison_measures_all_methods(tmp_path: Path) -> None:
    table, pictures, runs = (tmp_path / name for name in ("table.csv", "pictures", "runs"))
    options = (
        *("--jobs", "valley", "hartmann", "--trials", 40, "--test", 5),
        *("--methods", "acband", "hyperband", "--seeds", 1),
        *("--keep", runs, "--csv", table, "--plots", pictures),
    )
    output = run_example("compare", *options)
    assert re.search(r"^AC-Band +1 +[\d.]+ .* s$", output, re.M)
    assert re.search(r"^SMAC Hyperband +\d\.\d{3}$", output, re.M)  # one seed, no interval
    looks = re.search(r"^test cost on 5 instances, after +5 +10 +20 +40$", output, re.M)
    assert looks is not None
    curves = re.findall(r"^AC-Band((?: +\d\.\d{4}){4})$", output[looks.end() :], re.M)
    assert len(curves) == 2  # each job has a table
    assert re.search(r"^SMAC Hyperband +left out: needs instances$", output, re.M)
    rows = list(csv.DictReader(table.open()))
    took_part = [(row["job"], row["method"]) for row in rows]
    assert took_part == [("valley", "acband"), ("valley", "hyperband"), ("hartmann", "acband")]
    for row in rows:
        assert 0 < int(row["n_trials"]) <= 40
        assert 0 < float(row["test_cost_at_1"]) <= 1.2 * float(row["default_test_cost"])
    names = {path.name for path in pictures.iterdir()}
    assert names == {"compare_valley.png", "compare_hartmann.png"}
    before = {path: path.stat().st_mtime_ns for path in runs.glob("*.json")}
    assert len(before) == 3
    assert run_example("compare", *options) == output  # what is kept is not run again
    why = "failed with seed 1: it was too late"
    (runs / "valley-hyperband-seed_1-trials_40.failed.txt").write_text(why)
    more = run_example("compare", *options, "--kept-only", "--seeds", 2)
    assert re.search(r"^AC-Band +1 +[\d.]+ ", more, re.M)
    assert f"SMAC Hyperband {why}." in more
    assert {path: path.stat().st_mtime_ns for path in runs.glob("*.json")} == before


@needs_highs
@pytest.mark.timeout(600)  # an interpreter for each run
def test_a_failure_is_kept_and_the_run_tried_again(tmp_path: Path) -> None:
    options = (
        *("--jobs", "hartmann", "--methods", "acband", "hyperband"),
        *("--trials", 40, "--keep", tmp_path),
    )
    in_the_way = tmp_path / "hartmann-acband-seed_0-trials_40.json.part"
    in_the_way.mkdir()  # where the result is to be written
    output = run_example("compare", *options)
    [failed] = tmp_path.glob("*.failed.txt")
    why = failed.read_text()
    assert re.match(r"failed with seed 0: .*Is a directory", why)
    assert "left out, no method has a result" in output
    assert re.search(rf"^AC-Band +left out: {re.escape(why)}$", output, re.M)
    assert re.search(r"^SMAC Hyperband +left out: needs instances$", output, re.M)
    in_the_way.rmdir()
    assert run_example("compare", *options, "--kept-only") == output
    output = run_example("compare", *options)
    assert re.search(r"^AC-Band +1 +[\d.]+ ", output, re.M)
    assert not failed.exists()


@needs_highs
def test_each_reason_is_given_where_no_run_succeeded(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    import compare

    for seed, why in enumerate(["no seed 7 left", "it was too late", "no seed 7 left"]):
        path = tmp_path / f"valley-acband-seed_{seed}-trials_40.failed.txt"
        path.write_text(f"failed with seed {seed}: {why}")
    kept = ["--trials", "40", "--seeds", "3", "--keep", str(tmp_path), "--kept-only"]
    methods = ["--methods", "acband", "random", "ramparils"]
    assert compare.main(["--jobs", "valley", *methods, *kept]) == 0
    reasons = {
        "AC-Band": "failed with 2 seeds: no seed 7 left; failed with seed 1: it was too late",
        "SMAC Random": "not run yet",
        "RamParILS": "cannot be limited by trials",
    }
    output = capsys.readouterr().out
    for title, why in reasons.items():
        assert re.search(rf"^{title} +left out: {why}$", output, re.M), output


@needs_highs
def test_an_error_in_a_job_does_not_end_the_others(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    import compare
    from compare_methods import Run

    run = Run([(3.0, {f"x{i}": 0.4 for i in range(6)})], 9.0, 8.0, 40, 2)
    (tmp_path / "hartmann-acband-seed_0-trials_40.json").write_text(json.dumps(asdict(run)))
    (tmp_path / "valley-acband-seed_0-trials_40.json").write_text('{"trajectory": [[3.0, {"x')
    jobs = ["--jobs", "valley", "hartmann", "--methods", "acband", "--trials", "40"]
    table = tmp_path / "table.csv"
    assert compare.main([*jobs, "--keep", str(tmp_path), "--csv", str(table)]) == 1
    output = capsys.readouterr().out
    assert re.search(r"^a function of eight numbers .*: failed: JSONDecodeError: ", output, re.M)
    assert re.search(r"^AC-Band +1 +[\d.]+ ", output, re.M)
    assert [row["job"] for row in csv.DictReader(table.open())] == ["hartmann"]


@needs_highs
def test_a_run_without_time_left_is_not_made_and_counts_as_more_than_the_incumbents(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    from compare_jobs import JOBS
    from compare_methods import NoRunWithoutTime, Task, make_capped_target, make_scenario
    from smac import RandomFacade
    from smac.runhistory import TrialInfo, TrialValue

    job = JOBS["valley"]
    task = Task("valley", 0, 60.0, 40, 1, tmp_path, tmp_path)
    scenario = make_scenario(task, adaptive_capping=True)
    target = make_capped_target(job)
    facade = RandomFacade(scenario, target, logging_level=False)
    trial = facade.ask()
    facade.tell(trial, TrialValue(cost=0.25))
    other = job.space().sample_configuration()
    for limit in (0.0, -3.0):
        info = TrialInfo(other, trial.instance, trial.seed, additional_info={"cutoff": limit})
        NoRunWithoutTime().on_ask_end(facade.optimizer, info)
        cost = target(other, "no instance: it would fail", info.additional_info["cutoff"])
        assert cost == pytest.approx(1.01 * 0.25)
    info = TrialInfo(other, trial.instance, trial.seed, additional_info={"cutoff": 0.1})
    NoRunWithoutTime().on_ask_end(facade.optimizer, info)
    assert info.additional_info["cutoff"] == 0.1


@needs_highs
@pytest.mark.skipif(shutil.which("clasp") is None, reason="clasp is not installed")
def test_clasp_takes_every_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    import clasp_covers

    [path] = clasp_covers.write_covers(tmp_path, "test", 1)
    tiny = tmp_path / "tiny.opb"
    tiny.write_text("* #variable= 2 #constraint= 1\nmin: +1 x1 +2 x2 ;\n+1 x1 +1 x2 >= 1 ;\n")
    space = clasp_covers.make_space()
    space.seed(1)
    for config in [space.get_default_configuration(), *space.sample_configuration(50)]:
        arguments = clasp_covers.to_arguments(config, str(tiny), 0, None)
        done = subprocess.run([*clasp_covers.COMMAND, *arguments], capture_output=True, text=True)
        assert done.returncode == clasp_covers.OPTIMUM, (arguments, done.stderr)
    assert clasp_covers.features(path)[0] >= 58


@needs_highs
def test_ramparils_is_told_categories_by_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """The names of some of clasp's have commas, which its file format has between values."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    import clasp_covers
    import compare_ramparils

    space = clasp_covers.make_space()
    lines = compare_ramparils.parameter_file(space).splitlines()
    assert len(lines) == len(space)
    assert "opt-heuristic {0, 1, 2, 3} [0]" in lines
    for line in lines:
        name, _, rest = line.partition(" {")
        values, _, rest = rest.partition("} [")
        assert rest.partition("]")[0] in values.split(", "), name
    both = space["opt-heuristic"]
    assert compare_ramparils._text(both, "3") == "sign,model"
    assert compare_ramparils._text(both, "NA") == "NA"


@needs_highs
def test_nothing_is_made_up_of_earlier_looks(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    import compare
    import compare_tables
    import numpy as np
    from compare_methods import Run

    run = Run([(9.0, {"x": 1})], 9.0, 8.0, 4, 2)
    assert compare.incumbents(run, {"x": 0}, 10.0, tells_at_end=False) == [{"x": 0}] * 3 + [
        {"x": 1}
    ]
    assert compare.incumbents(run, {"x": 0}, 10.0, tells_at_end=True) == [None] * 3 + [{"x": 1}]
    costs = np.full((1, 4, 5), np.nan)
    costs[:, -1] = 2.0
    methods = [compare_tables.MethodResult("ac", "one", False, costs, {0: run})]
    known = np.full((1, 4, 5), 3.0)
    why = "failed with seed 0: no time"
    methods.append(
        compare_tables.MethodResult("irace", "other", False, known, {1: run}, failures=[why])
    )
    result = compare_tables.JobResult("job", "job", True, 10.0, 1, np.ones(5), methods, 1)
    compare_tables.write_csv(str(tmp_path / "table.csv"), [result])
    rows = list(csv.DictReader((tmp_path / "table.csv").open()))
    looks = [rows[0][f"test_cost_at_{share:g}"] for share in compare_tables.LOOKS]
    assert looks == ["", "", "", "2.0"]
    assert [row["seed"] for row in rows] == ["0", "1"]
    text = compare_tables.table(result, {})
    assert "other used only 90 % of its time." in text
    assert "other failed with seed 0: no time." in text
    if importlib.util.find_spec("matplotlib"):
        compare_tables.draw(tmp_path / "job.png", result)
        assert (tmp_path / "job.png").stat().st_size > 0


@needs_highs
def test_what_was_found_earlier_may_be_tested_on_fewer_instances(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    import compare
    import compare_tables
    import numpy as np
    from compare_methods import Run

    options = ["--test", "5", "--test-earlier", "2", "--keep", str(tmp_path)]
    arguments = compare.parse(options)
    arguments.keep = tmp_path
    configs = [{f"x{i}": x for i in range(6)} | {"y0": x, "y1": x} for x in (0.1, 0.5, 0.9)]
    costs = compare.test_costs("valley", configs, 2, arguments)
    assert np.isnan(costs[2:, 2]).all()
    assert np.isfinite(costs).sum() == 3 * 5 - 3
    again = compare.test_costs("valley", configs, 2, arguments)  # it is kept
    np.testing.assert_array_equal(costs, again)
    [kept] = tmp_path.glob("valley-test-*.jsonl")
    text = kept.read_text()
    kept.write_text(text[:-20])  # a kill in the last line
    again = compare.test_costs("valley", configs, 2, arguments)
    np.testing.assert_array_equal(costs, again)
    assert kept.read_text() == text

    of_looks = np.array([[costs[:, 2], costs[:, 2], costs[:, 1], costs[:, 1]]])
    run = Run([], 9, 8, 4, 2)
    method = compare_tables.MethodResult("ac", "one", False, of_looks, {0: run})
    result = compare_tables.JobResult(
        "job", "job", False, 10.0, 1, costs[:, 0], [method], 1, n_earlier=2
    )
    compare_tables.write_csv(str(tmp_path / "table.csv"), [result])
    [row] = csv.DictReader((tmp_path / "table.csv").open())
    looks = [float(row[f"test_cost_at_{share:g}"]) for share in compare_tables.LOOKS]
    expected = [costs[:2, 2].mean()] * 2 + [costs[:2, 1].mean(), costs[:, 1].mean()]
    assert looks == pytest.approx(expected)
    assert (row["n_tested"], row["n_tested_earlier"]) == ("5", "2")
    assert float(row["default_test_cost"]) == pytest.approx(costs[:, 0].mean())
    assert float(row["default_test_cost_as_earlier"]) == pytest.approx(costs[:2, 0].mean())
    assert float(row["test_cost_at_1_as_earlier"]) == pytest.approx(costs[:2, 1].mean())
    assert "on the first 2 test instances" in compare_tables.picture_title(result)
    on_all = replace(result, n_earlier=7)  # more than there are
    assert "instances" not in compare_tables.picture_title(on_all)
    assert f"{costs[:, 1].mean():.4f}" in compare_tables.table(result, {})


@needs_highs
def test_kept_runs_count_also_where_nobody_could_make_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    import compare
    from compare_methods import Run

    config = {f"x{i}": 0.6 for i in range(6)} | {"y0": 0.1, "y1": 0.1}
    run = Run([(3.0, config)], 9.0, 8.0, 40, 2)
    path = tmp_path / "valley-irace-seed_0-trials_40.json"
    path.write_text(json.dumps(asdict(run)))
    monkeypatch.setenv("PATH", str(tmp_path))  # where there is no R
    compare.no_irace.cache_clear()
    jobs = ["--jobs", "valley", "--methods", "irace", "--trials", "40", "--test", "2"]
    assert compare.main([*jobs, "--seeds", "2", "--keep", str(tmp_path)]) == 0
    output = capsys.readouterr().out
    assert re.search(r"^irace +1 +[\d.]+ +[\d.]+ +2 +40 ", output, re.M), output
    assert "irace could not be run with seed 1: R is not installed." in output


@needs_highs
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--csv", "{}/nowhere/table.csv"], "--csv must be in a folder that exists"),
        (["--keep", "{}/file"], "--keep: cannot write to .*file: File exists"),
        (["--keep", "{}/file/runs"], "--keep: cannot write to .*runs: Not a directory"),
    ],
)
def test_where_nothing_can_be_written_is_said_before_hours_of_runs(
    options: list[str],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    import compare

    (tmp_path / "file").touch()
    with pytest.raises(SystemExit):
        compare.parse([option.format(tmp_path) for option in options])
    assert re.search(message, capsys.readouterr().err)


@needs_highs
def test_the_first_test_instances_are_of_all_kinds(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """What was found earlier may be tested on those only."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    from compare_jobs import BOOSTED, JOBS

    first = JOBS["boosting"].test(tmp_path)[: len(BOOSTED)]
    assert {name.partition("-")[0] for name in first} == {*BOOSTED}


@needs_highs
def test_runs_of_a_slower_machine_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same seconds are less there."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    import compare
    import compare_tables
    import numpy as np
    from compare_methods import Run

    assert 0 < compare.yardstick() < 60_000
    yardsticks = {"one": 100.0, "two": 102.0, "three": 98.0, "slow": 150.0, "fast": 80.0}
    runs = {name: Run([], 9, 8, 4, 2, yardstick=mark) for name, mark in yardsticks.items()}
    runs["old"] = Run([], 9, 8, 4, 2)
    methods = [
        compare_tables.MethodResult(name, name, False, np.ones((1, 4, 5)), {0: run})
        for name, run in runs.items()
    ]
    result = compare_tables.JobResult("job", "job", True, 10.0, 1, np.ones(5), methods, 1)
    text = compare_tables.table(result, {})
    assert "slow was run on a machine that is slower by a factor of 1.50." in text
    assert "fast was run on a machine that is faster by a factor of 1.25." in text
    assert "Not known: how fast the machine was that ran old." in text
    assert text.count("machine") == 3


def test_an_interval_of_a_ratio_contains_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    pytest.importorskip("highspy")
    import compare_tables
    import numpy as np

    rng = np.random.default_rng(0)
    a, b = rng.normal(2.0, 0.1, (5, 40)), rng.normal(1.0, 0.1, (5, 40))
    ratio, low, high = compare_tables.ratio_interval(a, b)
    assert low < ratio < high
    assert 1.9 < low < high < 2.1
    assert compare_tables.ratio_interval(a, a)[0] == 1.0
    ratio, low, _ = compare_tables.ratio_interval(a[:1], b)
    assert 1.9 < ratio < 2.1
    assert np.isnan(low)  # one seed says nothing of others
    a[0] = 100.0  # nor do five if one of them makes up the mean
    ratio, low, _ = compare_tables.ratio_interval(a, b)
    assert ratio > 20
    assert np.isnan(low)
    same = np.full((3, 4), 2.0)
    assert compare_tables.ratio_interval(same, same / 2) == (2.0, 2.0, 2.0)
    hard = same * np.array([13.0, 1.0, 1.0, 1.0])  # all runs agree, but one instance decides
    ratio, low, _ = compare_tables.ratio_interval(hard, same)
    assert ratio == 4.0
    assert np.isnan(low)


def test_the_interval_of_runs_has_what_mann_and_whitney_do_not_reject(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    pytest.importorskip("highspy")
    import compare_tables
    import numpy as np
    from scipy import stats

    rng = np.random.default_rng(0)
    for _ in range(50):
        a, b = (rng.lognormal(rng.normal(), 1.0, (rng.integers(4, 14), 1)) for _ in range(2))
        ratio, low, high = compare_tables.ratio_of_runs(a, b)
        assert low <= ratio <= high
        for times in (low * 0.999, low * 1.001, high * 0.999, high * 1.001):
            p = stats.mannwhitneyu(a[:, 0], times * b[:, 0], method="exact").pvalue
            assert (p > 0.05) == (low < times < high)
    few = compare_tables.ratio_of_runs(a[:3], b[:3])
    assert np.isnan(few[1:]).all()  # one order in ten is no evidence


def test_intervals_cover_the_truth_with_few_seeds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    pytest.importorskip("highspy")
    import compare_tables
    import numpy as np

    rng = np.random.default_rng(0)
    n_given = n_covered = 0
    for _ in range(400):
        instances = rng.lognormal(0.0, 0.3, 40)
        a, b = (rng.lognormal(0.0, 0.3, (5, 1)) * instances for _ in range(2))
        _, low, high = compare_tables.ratio_interval(a, b)
        n_given += not np.isnan(low)  # there is none where a few runs make up a mean
        n_covered += low < 1.0 < high
    assert n_given > 300
    assert n_covered / n_given > 0.92


@pytest.mark.skipif(shutil.which("minisat") is None, reason="minisat is not installed")
def test_minisat_is_tuned_and_tested(tmp_path: Path) -> None:
    output = run_example(
        "tune_minisat",
        *("--minutes", 4, "--trials", 40, "--test", 3, "--instances", 30, "--output", tmp_path),
    )
    assert re.search(r"On the command line: minisat .*FILE.cnf", output)
    assert re.search(r"^incumbent +[\d.]+ s", output, re.M)
    [run] = run_directories(tmp_path)
    journal = (run / "journal.jsonl").read_text()
    assert '"crash"' not in journal  # 10 and 20 are answers
    assert '"lost"' in journal


def test_without_minisat_it_says_how_to_get_it(tmp_path: Path) -> None:
    errors = run_example(
        "tune_minisat", "--minisat", "no-such-solver", "--output", tmp_path, code=3
    )
    assert "There is no 'no-such-solver' here" in errors
    assert "apt install minisat" in errors
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(shutil.which("minisat") is None, reason="minisat is not installed")
def test_the_formulas_are_of_both_kinds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    import tune_minisat

    paths = tune_minisat.write_formulas(tmp_path, "test", 12)
    assert paths == tune_minisat.write_formulas(tmp_path, "test", 12)
    codes = {subprocess.run(["minisat", "-verb=0", path]).returncode for path in paths}
    assert codes == {10, 20}


def test_the_svm_gets_no_worse(tmp_path: Path) -> None:
    output = run_example("quickstart_svm", "--trials", 80, "--output", tmp_path)
    [default] = re.findall(r"Error of the default: +([\d.]+)", output)
    [found] = re.findall(r"Error of the incumbent: +([\d.]+)", output)
    assert float(found) <= float(default) + 0.01


def test_on_a_local_cluster_a_winner_is_found(tmp_path: Path) -> None:
    output = run_example("on_a_cluster", "--trials", 12, "--output", tmp_path)
    assert re.search(r"The winner after \d+ trials: {.*'noise'", output)


def test_the_own_loop_finds_the_valley(tmp_path: Path) -> None:
    output = run_example("own_loop", "--trials", 600, "--output", tmp_path)
    [(x, y)] = re.findall(r"Found: x = (-?[\d.]+), y = (-?[\d.]+)", output)
    assert abs(float(x)) < 3  # the default is at (4, 4)
    assert abs(float(y)) < 3
