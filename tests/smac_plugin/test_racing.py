"""Racing through the facade: real processes, their accounting, and every way to end a run."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

import psutil
import pytest
from ConfigSpace import ConfigurationSpace, Float
from smac import Scenario
from smac.runhistory.enumerations import StatusType

import acband_configspace
from acband_configspace import ACBandFacade
from acband_configspace.core.ends import End
from acband_configspace.errors import FirstRaceCrashedError
from acband_configspace.runlog.journal import read_journal
from acband_configspace.running import RaceReport, RacerReport
from acband_configspace.smac_plugin.trial_values import Accounting, judged


@pytest.mark.parametrize("status", [End.CRASHED, End.MEMORY])
@pytest.mark.parametrize(
    ("cutoff", "crash_cost", "expected"),
    [(None, math.inf, math.inf), (None, 99.0, 99.0), (5.0, math.inf, 50.0)],
)
def test_a_failure_is_never_cheap(
    status: End, cutoff: float | None, crash_cost: float, expected: float
) -> None:
    accounting = Accounting(
        racing=True, clock="wall", par=10.0, cutoff=cutoff, crash_cost=crash_cost
    )
    failed = RacerReport(status, started=0.0, time=0.004)
    finished = RacerReport(End.FINISHED, started=0.0, time=2.0)
    values = accounting.values(RaceReport("race", (failed, finished), 1), "race")
    assert [value.cost for value in values] == [expected, 2.0]


@pytest.mark.parametrize("status", [End.FINISHED, End.CRASHED])
def test_who_says_that_it_took_no_time_is_charged_what_it_took(status: End) -> None:
    """Else a limit on the CPU time would never be reached."""
    accounting = Accounting(racing=False, clock="wall", par=1.0, cutoff=None, crash_cost=9.0)
    racer = RacerReport(status, started=0.0, time=2.5, cpu_time=2.0, own_time=0.0)
    [value] = accounting.values(RaceReport("race", (racer,), 0), None)
    assert value.cpu_time == 2.0


def test_of_a_long_error_both_ends_are_kept() -> None:
    accounting = Accounting(racing=True, clock="wall", par=1.0, cutoff=None, crash_cost=9.0)
    error = f"raised in fail(): {'x' * 8000} at last"
    racer = RacerReport(End.CRASHED, started=0.0, time=2.5, error=error)
    [value] = accounting.values(RaceReport("race", (racer,), None), "race")
    assert value.additional_info["error"].startswith("raised in fail()")
    assert value.additional_info["error"].endswith("at last")


class Stubborn:
    def __array__(self, *arguments: Any, **options: Any) -> Any:
        raise RuntimeError("not an array")

    def __repr__(self) -> str:
        raise RuntimeError("nor a text")


@pytest.mark.parametrize("returned", [(0.5, [1, 2]), [[1], [2, 3]], Stubborn(), "1.5", None, 1j])
def test_a_cost_that_is_not_a_number_is_a_crash(returned: Any) -> None:
    status, cost, info = judged(returned)
    assert (status, cost) == (StatusType.CRASHED, math.inf)
    assert info["error"].startswith("the cost must be one real number: ")


def make_space() -> ConfigurationSpace:
    space = ConfigurationSpace(seed=0)
    space.add(Float("x", (0.0, 1.0), default=0.9))
    return space


def make_scenario(directory: Path, **options: Any) -> Scenario:
    settings = {
        "n_trials": 40,
        "instances": [f"i{number}" for number in range(60)],
        "deterministic": True,
        "n_workers": 2,
        "name": "race",
    }
    return Scenario(make_space(), output_directory=directory, **{**settings, **options})


def make_facade(
    directory: Path,
    target: Callable[..., Any] | str,
    *,
    racing: bool = True,
    overwrite: bool = False,
    **options: Any,
) -> ACBandFacade:
    # The paper's schedule, with all races: what is stopped as needless depends on the timing.
    options.setdefault("early_stopping", None)
    names = ("clock", "par", "to_arguments", "k", "n_candidates", "early_stopping", "callbacks")
    own = {name: options.pop(name) for name in names if name in options}
    scenario = make_scenario(directory, **options)
    return ACBandFacade(
        scenario, target, racing=racing, logging_level=False, overwrite=overwrite, **own
    )


def sleeper(config: Mapping[str, Any], instance: str, seed: int) -> Any:
    time.sleep(0.02 + 0.3 * config["x"])
    return {"slept": config["x"]}


def test_the_faster_configuration_wins_and_every_racer_is_accounted_for(tmp_path: Path) -> None:
    facade = make_facade(tmp_path, sleeper, n_trials=24)
    incumbent = facade.optimize()
    raced = [facade.runhistory.get_config(key.config_id)["x"] for key in facade.runhistory]
    assert incumbent["x"] == min(raced)
    by_race: dict[Any, list[Any]] = {}
    for key, value in facade.runhistory.items():
        x = facade.runhistory.get_config(key.config_id)["x"]
        by_race.setdefault(value.additional_info["race"], []).append((x, value))
    for racers in by_race.values():
        (fast, winner), (slow, loser) = sorted(racers, key=lambda racer: racer[0])
        assert winner.status == StatusType.SUCCESS
        assert winner.cost == winner.time == pytest.approx(0.02 + 0.3 * fast, abs=0.15)
        assert winner.additional_info["returned"] == {"slept": fast}
        assert loser.status == StatusType.TIMEOUT
        assert loser.additional_info["end"] == "lost"
        assert winner.cost <= loser.cost < 0.02 + 0.3 * slow + 0.15
        assert loser.additional_info["winner"] == winner.additional_info["winner"]


def test_one_worker_gives_the_same_winner_and_cap(tmp_path: Path) -> None:
    incumbents, losers = [], []
    for n_workers in (1, 2):
        facade = make_facade(tmp_path / str(n_workers), sleeper, n_workers=n_workers, n_trials=20)
        incumbents.append(facade.optimize()["x"])
        losers += [v for v in facade.runhistory.values() if v.additional_info.get("end") == "lost"]
        assert all(key.instance is not None for key in facade.runhistory)
    assert incumbents[0] == incumbents[1]
    assert losers


def test_a_cutoff_costs_par_times_the_cutoff_and_nobody_wins(tmp_path: Path) -> None:
    facade = make_facade(
        tmp_path,
        lambda config, instance, seed: time.sleep(30),
        trial_walltime_limit=0.15,
        par=5,
        n_trials=8,
    )
    facade.optimize()
    for value in facade.runhistory.values():
        assert value.status == StatusType.TIMEOUT
        assert value.cost == pytest.approx(5 * 0.15)
        assert value.additional_info["end"] == "cutoff"
        assert 0.15 <= value.time < 1.0
    assert facade.intensifier.get_incumbent() is None  # nothing succeeded, nothing is claimed


def test_crashes_and_memory_hogs_never_win(tmp_path: Path) -> None:
    def moody(config: Mapping[str, Any], instance: str, seed: int) -> Any:
        if config["x"] > 0.8:
            raise ValueError("too much")
        if config["x"] > 0.6:
            hog = bytearray(600_000_000)
            time.sleep(5)
            return len(hog)
        time.sleep(0.05)
        return 0

    facade = make_facade(tmp_path, moody, trial_memory_limit=300, trial_walltime_limit=8.0)
    incumbent = facade.optimize()
    assert incumbent["x"] <= 0.6
    statuses: dict[Any, Any] = {}
    for key, value in facade.runhistory.items():
        x = facade.runhistory.get_config(key.config_id)["x"]
        if value.additional_info.get("end") != "lost":
            kind = "crash" if x > 0.8 else "hog" if x > 0.6 else "fine"
            statuses.setdefault(kind, set()).add(value.status)
    assert statuses["crash"] == {StatusType.CRASHED}
    assert statuses["fine"] == {StatusType.SUCCESS}
    assert statuses.get("hog", {StatusType.MEMORYOUT}) == {StatusType.MEMORYOUT}


def test_the_cpu_clock_counts_work_not_sleep(tmp_path: Path) -> None:
    def lazy_or_busy(config: Mapping[str, Any], instance: str, seed: int) -> None:
        if config["x"] > 0.5:
            time.sleep(0.15)  # slow by the wall clock, cheap by the CPU's
        else:
            end = time.process_time() + 0.1
            while time.process_time() < end:
                pass

    facade = make_facade(tmp_path, lazy_or_busy, clock="cpu", n_trials=24)
    assert facade.optimize()["x"] > 0.5


def test_a_binary_with_a_command_line_of_its_own(tmp_path: Path) -> None:
    script = tmp_path / "a solver; with 'odd' name.sh"
    script.write_text('#!/bin/sh\necho "solving $1 of seed $3"\nsleep "$2"\n')
    script.chmod(0o755)

    def to_arguments(
        config: Mapping[str, Any], instance: str, seed: int, cutoff: float | None
    ) -> Any:
        assert cutoff == 5.0
        return [instance, 0.02 + 0.2 * config["x"], seed]

    facade = make_facade(
        tmp_path,
        str(script),
        to_arguments=to_arguments,
        trial_walltime_limit=5.0,
        n_trials=24,
        instances=["plain", 'with "quotes" and\nnewline'] + [f"i{n}" for n in range(40)],
    )
    incumbent = facade.optimize()
    raced = [facade.runhistory.get_config(key.config_id)["x"] for key in facade.runhistory]
    assert incumbent["x"] == min(raced)


def test_smacs_calling_convention_and_reported_costs(tmp_path: Path) -> None:
    script = tmp_path / "target.py"
    script.write_text(
        textwrap.dedent(
            f"""\
            #!{sys.executable} -S
            import sys
            given = dict(argument[2:].split("=", 1) for argument in sys.argv[1:])
            print("A banner; with = signs")
            print(f"cost={{float(given['x']) ** 2}}; status=SUCCESS; additional_info=fine")
            """
        )
    )
    script.chmod(0o755)
    facade = make_facade(tmp_path, str(script), racing=False, n_trials=24)
    incumbent = facade.optimize()
    for key, value in facade.runhistory.items():
        x = facade.runhistory.get_config(key.config_id)["x"]
        assert value.cost == pytest.approx(x**2)
        assert value.additional_info["additional_info"] == "fine"
        assert incumbent["x"] <= x


def test_without_racing_limits_hold_and_costs_are_what_is_returned(tmp_path: Path) -> None:
    def slow_when_large(config: Mapping[str, Any], instance: str, seed: int) -> Any:
        time.sleep(3 if config["x"] > 0.8 else 0)
        return config["x"], {"note": instance}

    facade = make_facade(
        tmp_path, slow_when_large, racing=False, trial_walltime_limit=0.3, n_trials=20
    )
    facade.optimize()
    for key, value in facade.runhistory.items():
        x = facade.runhistory.get_config(key.config_id)["x"]
        if x > 0.8:
            assert value.status == StatusType.TIMEOUT
            assert 0.3 <= value.time < 1.5
        else:
            assert (value.cost, value.additional_info["note"]) == (x, key.instance)


def test_check_says_what_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert make_facade(tmp_path / "a", sleeper).check() is True
    assert "it won" in capsys.readouterr().out
    missing = make_facade(tmp_path / "b", str(tmp_path / "missing"))
    assert missing.check() is False
    told = capsys.readouterr().out
    assert "Problem: a trial crashed" in told
    assert str(tmp_path / "missing") in told
    nobody = make_facade(
        tmp_path / "c",
        lambda config, instance, seed: time.sleep(9),
        trial_walltime_limit=0.2,
    )
    assert nobody.check() is False
    assert "nobody finished within the cutoff, 0.2 s" in capsys.readouterr().out
    assert len(nobody.runhistory) == 0


def test_validation_runs_to_the_end_and_leaves_the_history_alone(tmp_path: Path) -> None:
    facade = make_facade(tmp_path, sleeper, n_trials=10)
    facade.optimize()
    before = dict(facade.runhistory)
    slow = facade.scenario.configspace.get_default_configuration()
    validation = facade.validate(slow, instances=["a", "b", "c"])
    assert [trial.instance for trial in validation.trials] == ["a", "b", "c"]
    assert float(validation) == pytest.approx(0.29, abs=0.15)
    assert dict(facade.runhistory) == before


def test_who_has_finished_leads_after_a_restart_and_is_the_time_to_beat(tmp_path: Path) -> None:
    """Time ends the run when one of the first race has finished, and others have yet to run."""

    def target(config: Mapping[str, Any], instance: str, seed: int) -> None:
        time.sleep(2.4 if config["x"] == 0.9 else 60)

    def start(seconds: float) -> ACBandFacade:
        scenario = make_scenario(tmp_path, walltime_limit=seconds, n_trials=6)
        return ACBandFacade(scenario, target, racing=True, k=6, logging_level=False)

    facade = start(7.0)
    incumbent = facade.optimize()
    assert incumbent["x"] == 0.9
    assert facade.intensifier.n_races == 0
    again = start(60)
    assert again.intensifier.get_incumbent() == incumbent
    before = time.monotonic()
    assert again.optimize() == incumbent
    assert again.intensifier.n_races == 1
    assert time.monotonic() - before < 30  # nobody runs for a minute
    ends = [value.additional_info.get("end") for value in again.runhistory.values()]
    assert sorted(ends, key=str) == [None, *["lost"] * 5]


def test_the_wall_clock_limit_stops_running_races_at_once(tmp_path: Path) -> None:
    facade = make_facade(
        tmp_path, lambda config, instance, seed: time.sleep(60), walltime_limit=3.0
    )
    others = set(psutil.Process().children(recursive=True))  # of earlier tests
    facade.optimize()
    assert facade.runhistory.finished
    assert all(value.time < 60 for value in facade.runhistory.values())
    assert_no_children(set(psutil.Process().children(recursive=True)) - others)


SCRIPT = """
import sys, time
from pathlib import Path
from ConfigSpace import ConfigurationSpace, Float
from smac import Scenario
from acband_configspace import ACBandFacade

directory = Path(sys.argv[1])
with (directory / "imported").open("a") as file:
    file.write("x")

def target(config, instance, seed):
    with (directory / "calls").open("a") as file:
        file.write(f"{config['x']} {instance}\\n")
    # Far enough apart that a loaded machine does not turn them round.
    time.sleep(0.02 + 0.6 * config["x"] ** 4 if config["x"] < float(sys.argv[2]) else 60)

space = ConfigurationSpace(seed=0)
space.add(Float("x", (0.0, 1.0), default=0.9))
scenario = Scenario(
    space, name="run", output_directory=directory, n_trials=60, deterministic=True, n_workers=2,
    instances=[str(i) for i in range(100)],
)
facade = ACBandFacade(scenario, target, racing=True, logging_level=False)
print("ready", flush=True)
print("incumbent", facade.optimize()["x"], facade.runhistory.finished)
"""


def start_script(directory: Path, *, slow_from: int) -> Any:
    script = directory / "script.py"
    script.write_text(SCRIPT)
    package = str(Path(acband_configspace.__file__).parents[1])
    return subprocess.Popen(
        [sys.executable, str(script), str(directory), str(slow_from)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "PYTHONPATH": package},
    )


def wait_for(condition: Callable[[], object], seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.01)


def n_lines(path: Path) -> int:
    return len(path.read_text().splitlines()) if path.exists() else 0


def assert_no_children(children: Collection[psutil.Process]) -> None:
    _, alive = psutil.wait_procs(children, timeout=2.0)
    assert not alive


SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGKILL]
if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # as it is below nohup
    SIGNALS.append(signal.SIGHUP)


@pytest.mark.parametrize("number", SIGNALS)
def test_however_the_run_ends_no_racer_lives_on_and_it_can_be_continued(
    tmp_path: Path, number: int
) -> None:
    process = start_script(tmp_path, slow_from=2)
    journal = tmp_path / "run" / "0" / "journal.jsonl"
    wait_for(lambda: n_lines(journal) >= 8)
    family = psutil.Process(process.pid).children(recursive=True)
    assert family
    process.send_signal(number)
    process.wait(timeout=20)
    assert_no_children(family)
    recorded = journal.read_text().splitlines()

    again = start_script(tmp_path, slow_from=2)
    output, errors = again.communicate(timeout=60)
    assert again.returncode == 0, errors
    assert (tmp_path / "imported").read_text() == "xx"  # racers never run the script again
    finished = journal.read_text().splitlines()
    whole = [line for line in recorded if line.endswith("}")]
    assert finished[: len(whole)] == whole  # what was recorded stays
    races = [str(race.id) for race in read_journal(journal).races]
    assert len(set(races)) == len(races)

    undisturbed = tmp_path / "undisturbed"
    undisturbed.mkdir()
    expected, errors = start_script(undisturbed, slow_from=2).communicate(timeout=60)
    for said in (expected, output):  # whose run times differ by less than a clock can tell
        assert float(said.split()[2]) < 0.5, errors


def test_ctrl_c_does_not_wait_for_long_runs(tmp_path: Path) -> None:
    process = start_script(tmp_path, slow_from=0)
    wait_for(lambda: n_lines(tmp_path / "calls") >= 2)
    family = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(signal.SIGINT)
    process.wait(timeout=20)  # each of its runs takes a minute
    assert_no_children(family)
    assert process.returncode != 0


BROKEN = """#!/bin/sh
# Half of them fail at once and call that a success.
case "$*" in
    *--x=0.[0-4]*) echo "banner of $0"; echo "cost={cost}; status=SUCCESS"; exit 0;;
esac
{otherwise}
"""


@pytest.mark.parametrize("cost", ["nan", "inf"])
def test_a_racer_without_a_cost_stops_no_good_one(cost: str, tmp_path: Path) -> None:
    (script := tmp_path / "script.sh").write_text(BROKEN.format(cost=cost, otherwise="sleep 0.1"))
    script.chmod(0o755)
    facade = make_facade(tmp_path, str(script), n_trials=16, trial_walltime_limit=10)
    incumbent = facade.optimize()
    assert incumbent["x"] >= 0.5
    journal = facade.scenario.output_directory / "journal.jsonl"
    recorded = read_journal(journal)
    for race in recorded.races:
        xs = [recorded.configurations[number]["x"] for number in race.racers]
        broken = [trial.end for trial, x in zip(race.trials, xs, strict=True) if x < 0.5]
        assert set(broken) <= {End.CRASHED}
        if max(xs) >= 0.5:
            assert End.FINISHED in [trial.end for trial in race.trials]


def test_races_that_nobody_wins_end_in_an_error_with_what_was_printed(tmp_path: Path) -> None:
    text = BROKEN.format(cost="nan", otherwise="echo 'no licence found' >&2; exit 3")
    (script := tmp_path / "script.sh").write_text(text)
    script.chmod(0o755)
    with pytest.raises(FirstRaceCrashedError, match="every trial .* crashed") as caught:
        make_facade(tmp_path, str(script), n_trials=16, trial_walltime_limit=10).optimize()
    assert "no licence found" in str(caught.value) or "cost=nan" in str(caught.value)


def test_bad_options_are_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="par must be at least 1 but got 0.5"):
        make_facade(tmp_path, sleeper, par=0.5)
    with pytest.raises(TypeError, match="must take the argument 'instance'"):
        make_facade(tmp_path, lambda config, seed: 0)
    with pytest.raises(TypeError, match="to_arguments must be None for a Python function"):
        make_facade(tmp_path, sleeper, to_arguments=lambda *known: [])
