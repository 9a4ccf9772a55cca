"""SMAC's files hold all results when a script ends, and nobody else's are written over."""

from __future__ import annotations

import contextlib
import gc
import json
import os
import resource
import shutil
import subprocess
import sys
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from smac.runhistory.dataclasses import TrialInfo
from targets import PAPER, a_scenario, a_space, answer, noisy, on_instance, quiet, result_of

import acband_configspace
from acband_configspace import ACBandFacade
from acband_configspace.errors import JournalError, RunDirectoryGoneError, RunFinishedError
from acband_configspace.smac_plugin import optimizer
from acband_configspace.smac_plugin.optimizer import ACBandOptimizer

ASK_AND_TELL = """
import sys
from pathlib import Path
from targets import a_scenario, answer, quiet

facade = quiet(a_scenario(Path(sys.argv[1])), None)
for _ in range(5):
    answer(facade, facade.ask())
"""


def saved(facade: ACBandFacade) -> Any:
    path = facade.scenario.output_directory / "runhistory.json"
    return json.loads(path.read_text(encoding="utf-8"))["stats"]["finished"]


def optimizer_of(facade: ACBandFacade) -> ACBandOptimizer:
    assert isinstance(facade.optimizer, ACBandOptimizer)
    return facade.optimizer


def told(directory: Path, n: int = 5) -> ACBandFacade:
    """Return a run in which so many trials were asked for and told."""
    facade = quiet(a_scenario(directory), noisy)
    for _ in range(n):
        answer(facade, facade.ask())
    return facade


def ask_to_the_end(facade: ACBandFacade) -> None:
    while True:
        answer(facade, facade.ask())


def test_a_script_that_asks_and_tells_saves_when_it_ends(tmp_path: Path) -> None:
    helpers = Path(__file__).parents[1] / "helpers"
    package = Path(acband_configspace.__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-c", ASK_AND_TELL, str(tmp_path)],
        env={**os.environ, "PYTHONPATH": f"{package}{os.pathsep}{helpers}"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.returncode, "Traceback" in done.stderr) == (0, False), done.stderr
    assert len(quiet(a_scenario(tmp_path), noisy).runhistory) == 5


def test_a_run_that_is_asked_for_more_than_there_is_is_saved(tmp_path: Path) -> None:
    facade = quiet(a_scenario(tmp_path), None)
    with pytest.raises(RunFinishedError):
        ask_to_the_end(facade)
    assert saved(facade) == facade.runhistory.finished > 50


def test_at_the_end_nothing_is_saved_twice(tmp_path: Path) -> None:
    facade = told(tmp_path)
    optimizer_of(facade).save_at_exit()
    assert saved(facade) == 5
    path = facade.scenario.output_directory / "runhistory.json"
    path.write_text("theirs")
    optimizer_of(facade).save_at_exit()
    assert path.read_text() == "theirs"


def test_at_the_end_what_somebody_else_has_raced_is_left_alone(tmp_path: Path) -> None:
    facade, other = told(tmp_path), quiet(a_scenario(tmp_path), noisy)
    other.optimize()
    n_saved = saved(other)
    optimizer_of(facade).save_at_exit()
    assert saved(facade) == n_saved == other.runhistory.finished
    path = facade.scenario.output_directory / "runhistory.json"
    optimizer_of(facade)._saved_as = optimizer_of(other)._saved_as
    with pytest.raises(JournalError, match="changed by another process"):
        optimizer_of(facade).save_at_exit()
    assert json.loads(path.read_text())["stats"]["finished"] == n_saved


def test_at_the_end_what_somebody_else_was_told_is_left_alone(tmp_path: Path) -> None:
    """Three results of the first race: the journal has none of them yet."""
    facade = told(tmp_path, 2)
    other = told(tmp_path, 3)
    other.optimizer.save()
    optimizer_of(facade).save_at_exit()
    assert saved(facade) == 3


def test_at_the_end_who_only_looked_is_no_reason_not_to_save(tmp_path: Path) -> None:
    facade = told(tmp_path)
    quiet(a_scenario(tmp_path), noisy)
    optimizer_of(facade).save_at_exit()
    assert saved(facade) == 5


def test_who_only_looks_at_what_was_told_is_no_reason_not_to_save(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    facade = quiet(a_scenario(tmp_path), noisy)
    for config in a_space().sample_configuration(3):
        answer(facade, TrialInfo(config, seed=5))
    quiet(a_scenario(tmp_path), noisy)
    for _ in range(5):
        answer(facade, facade.ask())
    facade.optimizer.save()
    assert saved(facade) == 8
    assert "could not be saved" not in caplog.text
    assert len(quiet(a_scenario(tmp_path), noisy).runhistory) == 8


def test_saving_goes_on_after_it_was_cut_short(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    facade = told(tmp_path, 2)
    blocked = facade.scenario.output_directory / "intensifier.json"
    blocked.unlink()
    blocked.mkdir()
    facade.optimizer.save()
    assert "could not be saved" in caplog.text
    blocked.rmdir()
    answer(facade, facade.ask())
    facade.optimizer.save()
    assert saved(facade) == 3


def test_that_somebody_else_has_saved_a_run_is_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    facade = told(tmp_path, 2)
    told(tmp_path, 3).optimizer.save()
    facade.optimizer.save()
    assert saved(facade) == 3
    assert "could not be saved: another process has saved this run." in caplog.text


def test_a_history_that_was_deleted_is_saved_again(tmp_path: Path) -> None:
    facade = told(tmp_path, 2)
    (facade.scenario.output_directory / "runhistory.json").unlink()
    facade.optimizer.save()
    assert saved(facade) == 2


def test_that_the_directory_is_gone_is_said_where_results_are_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    facade = told(tmp_path, 2)
    shutil.rmtree(facade.scenario.output_directory)
    facade.optimizer.save()
    assert "was deleted, moved or replaced while the run was going on" in caplog.text
    assert not facade.scenario.output_directory.exists()


def test_a_run_that_is_reset_is_saved_whoever_has_saved_it_before(tmp_path: Path) -> None:
    facade = told(tmp_path, 2)
    told(tmp_path, 3).optimizer.save()
    facade.optimizer.reset()
    assert saved(facade) == 0
    assert len(quiet(a_scenario(tmp_path), noisy).runhistory) == 0


def test_a_finished_run_that_is_optimized_again_writes_nothing(tmp_path: Path) -> None:
    """Who has gone on with it meanwhile would think that somebody else has raced."""
    facade = quiet(a_scenario(tmp_path), noisy)
    facade.optimize()
    path = facade.scenario.output_directory / "runhistory.json"
    before = path.stat()
    facade.optimize()
    after = path.stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_a_finished_run_that_is_optimized_again_leaves_alone_what_somebody_else_has_raced(
    tmp_path: Path,
) -> None:
    facade = quiet(a_scenario(tmp_path), noisy)
    incumbent = facade.optimize()
    assert facade.runhistory.finished == 60
    other = quiet(a_scenario(tmp_path, n_trials=90), noisy)
    other.optimize()
    assert facade.optimize() == incumbent
    assert saved(facade) == other.runhistory.finished > 60


def test_a_finished_run_saves_what_a_process_that_was_killed_did_not(tmp_path: Path) -> None:
    facade = quiet(a_scenario(tmp_path), noisy)
    path = facade.scenario.output_directory / "runhistory.json"
    before = path.read_bytes()
    incumbent = facade.optimize()
    path.write_bytes(before)
    again = quiet(a_scenario(tmp_path), noisy)
    assert again.optimize() == incumbent
    assert saved(again) == 60


@pytest.fixture(params=["seldom", "after each trial"])
def saves(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let SMAC's files be saved as in a long run, or as in one of long trials."""
    if request.param != "seldom":
        monkeypatch.setattr(optimizer, "SAVE_INTERVAL", 0.0)
        monkeypatch.setattr(optimizer, "SAVE_SHARE", 1e9)


@pytest.mark.usefixtures("saves")
def test_what_is_told_leaves_alone_what_somebody_else_has_raced(tmp_path: Path) -> None:
    facade, other = told(tmp_path, 2), quiet(a_scenario(tmp_path), noisy)
    other.optimize()
    n_saved = saved(other)
    info = facade.ask()
    facade.tell(info, result_of(info.config, info.seed))  # the first race is not over yet
    assert facade.intensifier.n_races == 0
    assert saved(facade) == n_saved == other.runhistory.finished


def test_a_finished_run_with_trials_to_spare_leaves_alone_what_somebody_else_has_raced(
    tmp_path: Path,
) -> None:
    facade = quiet(a_scenario(tmp_path, n_trials=61), noisy, **PAPER)  # of two at a time
    incumbent = facade.optimize()
    assert facade.runhistory.finished < 61
    other = quiet(a_scenario(tmp_path, n_trials=200), noisy, **PAPER)
    other.optimize()
    assert facade.optimize() == incumbent
    assert saved(facade) == other.runhistory.finished > 60


def test_a_finished_run_is_tested_again_though_somebody_else_has_gone_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def start(n_trials: int) -> ACBandFacade:
        scenario = a_scenario(tmp_path, n_trials=n_trials, instances=["a", "b", "c"])
        return quiet(scenario, on_instance, test_instances=["d", "e"])

    facade = start(60)
    incumbent = facade.optimize()
    verdict = str(facade.test_results)
    start(90).optimize()
    assert facade.optimize() == incumbent
    assert str(facade.test_results) == verdict
    assert "The result of the test is not recorded" in caplog.text


def test_a_disk_that_is_full_at_the_end_does_not_cost_the_result(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    scenario = a_scenario(tmp_path, instances=["a", "b", "c"])
    facade = quiet(scenario, on_instance, test_instances=["d", "e"])
    incumbent = facade.optimize()
    with no_room_in(facade.scenario.output_directory / "journal.jsonl"):
        assert facade.optimize() == incumbent
    assert "The result of the test is not recorded" in caplog.text


@pytest.mark.usefixtures("saves")
def test_a_directory_that_is_deleted_is_not_made_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def deletes(config: Any, seed: int) -> float:
        if len(facade.runhistory) == 20:
            shutil.rmtree(directory)
        return noisy(config, seed)

    facade = quiet(a_scenario(tmp_path), deletes)
    directory = facade.scenario.output_directory
    with pytest.raises(RunDirectoryGoneError):
        facade.optimize()
    assert not directory.exists()
    assert "holds all its races" not in caplog.text


def test_a_run_is_not_kept_in_memory_to_be_saved(tmp_path: Path) -> None:
    facade = told(tmp_path)
    reference = weakref.ref(facade.optimizer)
    path = facade.scenario.output_directory / "runhistory.json"
    del facade
    gc.collect()
    assert reference() is None
    assert json.loads(path.read_text(encoding="utf-8"))["stats"]["finished"] == 5


def test_a_run_is_not_loaded_by_hand(tmp_path: Path) -> None:
    facade = told(tmp_path)
    with pytest.raises(RuntimeError, match="a run continues from its journal"):
        facade.optimizer.load()
    for _ in range(3):
        answer(facade, facade.ask())
    assert facade.intensifier.n_races == 1


@contextlib.contextmanager
def no_room_in(path: Path) -> Iterator[None]:
    """Let no file grow beyond the size of this one, as on a full disk."""
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size, limit[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)


@pytest.mark.parametrize("by", ["telling again", "asking", "optimizing"])
def test_a_race_that_could_not_be_recorded_is_completed_once_there_is_room(
    by: str, tmp_path: Path
) -> None:
    calls = []

    def target(config: Any, seed: int) -> float:
        calls.append((config["x"], seed))
        return noisy(config, seed)

    facade = quiet(a_scenario(tmp_path), target)
    racers = [facade.ask() for _ in range(8)]
    for info in racers[:-1]:
        answer(facade, info)
    with (
        no_room_in(facade.scenario.output_directory / "journal.jsonl"),
        pytest.raises(OSError, match="too large"),
    ):
        answer(facade, racers[-1])
    assert facade.intensifier.n_races == 0
    if by == "telling again":
        answer(facade, racers[-1])
    elif by == "asking":
        facade.ask()
    else:
        facade.optimize()
        assert not {(info.config["x"], info.seed) for info in racers} & set(calls)
    assert facade.intensifier.n_races >= 1
