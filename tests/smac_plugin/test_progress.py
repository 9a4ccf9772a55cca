"""Progress is shown in a terminal, nowhere else, and leaves the terminal as it was."""

from __future__ import annotations

import io
import logging
import os
import pty
import random
import re
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from ConfigSpace import Configuration, ConfigurationSpace, Float
from dask.distributed import Client
from rich.console import Console
from smac import RandomFacade, Scenario
from smac.callback import Callback
from smac.main.smbo import SMBO
from smac.runhistory.dataclasses import TrialInfo, TrialValue
from smac.runhistory.enumerations import StatusType
from targets import only

from acband_configspace import ACBandFacade, ACBandIntensifier, ProgressCallback
from acband_configspace.errors import RunInterrupted
from acband_configspace.runlog.replay import Run
from acband_configspace.smac_plugin.progress import Progress, clock


def cost(config: Mapping[str, Any], seed: int = 0) -> float:
    return config["x"]


def scenario(folder: Path, **options: Any) -> Any:
    space = ConfigurationSpace()
    space.add(Float("x", (0.0, 1.0)))
    options = {"n_trials": 100, "seed": 1, "output_directory": folder, **options}
    return Scenario(space, **options)


def terminal() -> Console:
    return Console(file=io.StringIO(), force_terminal=True, width=140)


def shown(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def text_of(console: Console) -> str:
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown(console))


def test_it_shows_where_the_run_is(tmp_path: Path) -> None:
    console = terminal()
    facade = ACBandFacade(
        scenario(tmp_path), cost, callbacks=[ProgressCallback(console=console)], logging_level=False
    )
    facade.optimize()
    text = text_of(console)
    assert re.search(r"0% of 100 trials, \? left", text)
    assert "pass 1 · round 1 · 0 trials of" in text
    bar, leader, place = (line.strip() for line in text.strip().splitlines()[-3:])
    assert re.search(r"finished after \d:\d\d$", bar)
    number = facade.runhistory.get_config_id(only(facade.intensifier.get_incumbent()))
    assert re.fullmatch(rf"incumbent: #{number}, [\d.]+ % less than the default", leader)
    n_configs = len(facade.runhistory.get_configs())
    assert f"100 trials of {n_configs} configurations · 0 racers running" in place


def test_on_a_cluster_as_many_racers_run_as_it_has_threads(
    tmp_path: Path, four_workers: Client
) -> None:
    def slow(config: Mapping[str, Any], seed: int = 0) -> float:
        time.sleep(0.1)
        return float(config["x"])

    most = 0

    class Watching(Callback):
        def on_ask_end(self, smbo: SMBO, info: TrialInfo) -> None:
            nonlocal most
            most = max(most, Progress.of(smbo).n_running)

    facade = ACBandFacade(
        scenario(tmp_path, n_trials=40),
        slow,
        callbacks=[Watching()],
        dask_client=four_workers,
        logging_level=False,
    )
    assert Progress.of(facade.optimizer).n_running == 0
    facade.optimize()
    assert most == 4


def test_at_40_columns_what_matters_stays(tmp_path: Path) -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=40)
    callback = ProgressCallback(console=console)
    facade = ACBandFacade(scenario(tmp_path), cost, callbacks=[callback], logging_level=False)
    facade.optimize()
    text = text_of(console)
    assert all(len(line.rstrip()) <= 40 for line in text.splitlines())
    assert re.search(r"^AC-Band .*\d% of 100 trials, \S+ left *$", text, re.M)
    number = facade.runhistory.get_config_id(only(facade.intensifier.get_incumbent()))
    assert re.search(rf"^incumbent: #{number}, [\d.]+ % less than the", text, re.M)


def test_nothing_is_made_of_an_incumbent_that_was_stopped(tmp_path: Path) -> None:
    """It costs more than is known where it was, as the report says, too."""
    facade = ACBandFacade(
        scenario(tmp_path, n_trials=2000), None, racing=True, memory=False, logging_level=False
    )
    draw, was_stopped = random.Random(1), set()
    for _ in range(60):
        racers = [facade.ask()]
        racers += [facade.ask() for _ in range(racers[0].additional_info["n_racers"] - 1)]
        lost = TrialValue(1.0, status=StatusType.TIMEOUT, additional_info={"end": "lost"})
        winner = draw.choice(racers)
        for info in racers:
            facade.tell(info, TrialValue(1.0) if info is winner else lost)
        standing, told = Progress.of(facade.optimizer).standing, Run.of(facade).comparison
        if standing is not None and told is not None and told.n_common:
            was_stopped.add(told.own_at_least)
            assert standing.n_common == told.n_common
            assert (standing.gain is None) is (told.ratio is None)
    assert was_stopped == {False, True}


def test_it_works_with_a_stock_facade(tmp_path: Path) -> None:
    console = terminal()
    own = scenario(tmp_path)
    facade = RandomFacade(
        own,
        cost,
        intensifier=ACBandIntensifier(own, playoff=0),
        callbacks=[ProgressCallback(console=console)],
        logging_level=False,
    )
    facade.optimize()
    assert "epoch 3 of 3" in text_of(console)


def test_it_needs_our_intensifier(tmp_path: Path) -> None:
    callbacks: list[Callback] = [ProgressCallback(console=terminal())]
    facade = RandomFacade(scenario(tmp_path), cost, callbacks=callbacks, logging_level=False)
    with pytest.raises(TypeError, match="needs an ACBandIntensifier"):
        facade.optimize()


def test_it_is_silent_where_there_is_no_terminal(tmp_path: Path) -> None:
    console = Console(file=io.StringIO())
    callbacks: list[Callback] = [ProgressCallback(console=console)]
    ACBandFacade(scenario(tmp_path), cost, callbacks=callbacks, logging_level=False).optimize()
    assert shown(console) == ""


def test_it_is_silent_in_ask_and_tell(tmp_path: Path) -> None:
    console = terminal()
    facade = ACBandFacade(
        scenario(tmp_path), callbacks=[ProgressCallback(console=console)], logging_level=False
    )
    for _ in range(4):
        facade.tell(facade.ask(), TrialValue(cost=1.0))
    assert shown(console) == ""


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_gives_the_terminal_back(tmp_path: Path, error: type[BaseException]) -> None:
    calls = []

    def interrupted(config: Mapping[str, Any], seed: int = 0) -> float:
        calls.append(seed)
        if len(calls) == 5:
            raise error
        return config["x"]

    console = terminal()
    streams = (sys.stdout, sys.stderr)
    callbacks: list[Callback] = [ProgressCallback(console=console)]
    facade = ACBandFacade(scenario(tmp_path), interrupted, callbacks=callbacks, logging_level=False)
    with pytest.raises(error):
        facade.optimize()
    assert (sys.stdout, sys.stderr) == streams
    assert shown(console).endswith("\x1b[?25h")  # the cursor is shown again


def test_log_handlers_get_their_streams_back(tmp_path: Path) -> None:
    handler = logging.StreamHandler(sys.stderr)
    logger = logging.getLogger("acband_configspace")
    logger.addHandler(handler)
    try:
        callbacks: list[Callback] = [ProgressCallback(console=terminal())]
        ACBandFacade(scenario(tmp_path), cost, callbacks=callbacks, logging_level=False).optimize()
        assert handler.stream is sys.stderr
    finally:
        logger.removeHandler(handler)


def test_the_facade_adds_one_only_if_wanted(tmp_path: Path) -> None:
    def n_shown(**options: Any) -> int:
        facade = ACBandFacade(scenario(tmp_path), cost, logging_level=False, **options)
        return sum(isinstance(callback, ProgressCallback) for callback in facade._callbacks)

    assert n_shown() == 0  # no terminal here
    assert n_shown(progress=True) == 1
    assert n_shown(progress=False) == 0
    assert n_shown(progress=True, callbacks=[ProgressCallback()]) == 1


SCRIPT = """
    import sys, time
    from ConfigSpace import ConfigurationSpace, Float
    from smac import Scenario
    from acband_configspace import ACBandFacade

    def target(config, seed=0):
        time.sleep(0.01)
        return config["x"]

    if __name__ == "__main__":
        space = ConfigurationSpace()
        space.add(Float("x", (0.0, 1.0)))
        scenario = Scenario(space, n_trials=int(sys.argv[2]), seed=1, output_directory=sys.argv[1])
        ACBandFacade(scenario, target).optimize()
        print("the end")
"""


def in_terminal(tmp_path: Path, n_trials: int, *, interrupt: bool = False) -> Any:
    """Run the script in a terminal of its own; return its exit code and what was shown."""
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(SCRIPT))
    ours, theirs = pty.openpty()
    command = [sys.executable, str(script), str(tmp_path / "out"), str(n_trials)]
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "140"}
    process = subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment, start_new_session=True
    )
    os.close(theirs)
    shown = b""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        try:
            piece = os.read(ours, 65536)
        except OSError:  # the other end is closed
            break
        shown += piece
        if interrupt and b"round 1" in shown:
            interrupt = False
            process.send_signal(signal.SIGINT)
    os.close(ours)
    return process.wait(30), shown.decode()


def test_it_is_on_by_default_in_a_terminal_with_logs_above_it(tmp_path: Path) -> None:
    code, shown = in_terminal(tmp_path, 60)
    assert code == 0
    assert "pass 1 · round 1" in shown
    assert "[INFO]" in shown
    assert shown.rstrip().endswith("the end")
    # Every line of the log starts at the left, where the picture was erased before.
    assert re.search(r"(\x1b\[2K|\n|\r)\[INFO\]\[\w+\.py:\d+\] AC-Band is finished", shown)


def test_ctrl_c_ends_it_and_shows_the_cursor(tmp_path: Path) -> None:
    code, shown = in_terminal(tmp_path, 100_000, interrupt=True)
    assert code == 130
    assert "Traceback" not in shown
    where, leader, further = shown.strip().splitlines()[-3:]
    assert re.search(r"Interrupted in pass \d, round \d, after \d+ trials? of \d+ conf", where)
    assert re.match(r"The incumbent is #\d+.*: x=0\.\d+|No trial has finished yet", leader)
    assert str(tmp_path / "out") in further
    assert shown.rindex("\x1b[?25h") > shown.rindex("\x1b[?25l")


def test_ctrl_c_reaches_the_script_as_a_keyboard_interrupt(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    interrupts = iter([False] * 40 + [True])

    def target(config: Configuration, seed: int = 0) -> float:
        if next(interrupts, False):
            raise KeyboardInterrupt
        return float(config["x"])

    facade = ACBandFacade(scenario(tmp_path), target, logging_level=False)
    with pytest.raises(KeyboardInterrupt) as caught:
        facade.optimize()
    assert isinstance(caught.value, RunInterrupted)
    assert caught.value.code == 130
    assert capsys.readouterr().err.strip() == caught.value.summary
    n_lines = len(caught.value.summary.splitlines())
    assert n_lines == 3
    assert "after 40 trials" in caught.value.summary
    facade.optimize()
    assert facade.runhistory.finished == 100


@pytest.mark.parametrize("overwrite", [False, True])
def test_how_a_run_that_was_interrupted_goes_on_is_told_as_it_is(
    tmp_path: Path, overwrite: bool
) -> None:
    def target(config: Configuration, seed: int = 0) -> float:
        raise KeyboardInterrupt

    facade = ACBandFacade(scenario(tmp_path), target, overwrite=overwrite, logging_level=False)
    with pytest.raises(RunInterrupted) as caught:
        facade.optimize()
    how = "again without overwrite=True to" if overwrite else "again to"
    assert f"Start it {how} continue; its files are in" in caught.value.summary
    assert ("overwrite" in caught.value.summary) == overwrite


def test_at_a_prompt_ctrl_c_is_a_plain_keyboard_interrupt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def target(config: Configuration, seed: int = 0) -> float:
        raise KeyboardInterrupt

    monkeypatch.setattr(sys, "ps1", ">>> ", raising=False)
    with pytest.raises(KeyboardInterrupt) as caught:
        ACBandFacade(scenario(tmp_path), target, logging_level=False).optimize()
    assert type(caught.value) is KeyboardInterrupt


def test_ctrl_c_while_the_incumbent_is_tested_is_told_as_well(tmp_path: Path) -> None:
    def target(config: Configuration, instance: str, seed: int = 0) -> float:
        if instance == "new":
            raise KeyboardInterrupt
        return float(config["x"])

    given = scenario(tmp_path, instances=["a", "b"])
    facade = ACBandFacade(given, target, test_instances=["new"], logging_level=False)
    with pytest.raises(RunInterrupted) as caught:
        facade.optimize()
    assert caught.value.summary.startswith("Interrupted after 100 trials of")


def test_a_notebook_shows_whether_a_run_has_started_or_finished(tmp_path: Path) -> None:
    facade = ACBandFacade(scenario(tmp_path), cost, logging_level=False)
    assert "The run has not started." in facade._repr_html_()
    facade.optimize()
    assert "The run is finished after 100 trials of" in facade._repr_html_()


def test_the_clock() -> None:
    assert clock(5) == "0:05"
    assert clock(3725.4) == "1:02:05"
    assert clock(float("inf")) == "?"
