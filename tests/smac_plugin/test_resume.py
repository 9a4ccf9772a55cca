"""Killed at any moment and started again: the run goes on, and nothing recorded is run again."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ConfigSpace import Categorical, Configuration, ConfigurationSpace
from dask.distributed import Client
from smac import AlgorithmConfigurationFacade, RandomFacade, Scenario
from smac.callback.callback import Callback
from smac.facade.abstract_facade import AbstractFacade
from smac.initial_design import DefaultInitialDesign
from smac.main.smbo import SMBO
from smac.runhistory import TrialInfo, TrialValue
from smac.runhistory.runhistory import RunHistory
from targets import (
    PAPER,
    Counted,
    Stop,
    a_scenario,
    a_space,
    answer,
    ask_all,
    be_refused,
    busy,
    exact,
    n_calls,
    noisy,
    noisy_and_killed,
    on_instance,
    quiet,
    races_of,
    result_of,
    run_and_be_killed,
    run_stock_and_be_killed,
    without_times,
)

import acband_configspace
from acband_configspace import ACBandFacade, ACBandIntensifier
from acband_configspace.core.search_plan import PassPlan
from acband_configspace.errors import (
    JournalError,
    RunDiffersError,
    RunDirectoryGoneError,
    RunInUseError,
)
from acband_configspace.runlog.journal import read_journal
from acband_configspace.runlog.played import playable
from acband_configspace.runlog.replay import Run
from acband_configspace.running.signals import interrupts_held


def start(
    directory: Path,
    *,
    target: Callable[..., Any] = noisy,
    callbacks: Any = (),
    settings: Any = None,
    **options: Any,
) -> ACBandFacade:
    scenario = a_scenario(directory, **(settings or {}))
    options = {**PAPER, "callbacks": list(callbacks), "logging_level": False, **options}
    return ACBandFacade(scenario, target, **options)


def unfinished(directory: Path, after: int = 21, **arguments: Any) -> ACBandFacade:
    facade = start(directory, callbacks=[Stop(after)], **arguments)
    facade.optimize()
    assert facade.intensifier.finished is None
    return facade


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> ACBandFacade:
    facade = start(tmp_path_factory.mktemp("uninterrupted"))
    facade.optimize()
    return facade


def assert_same_run(facade: ACBandFacade, other: ACBandFacade) -> None:
    assert facade.intensifier.get_incumbent() == other.intensifier.get_incumbent()
    assert without_times(races_of(facade.scenario)) == without_times(races_of(other.scenario))
    epoch_winners = [f.intensifier.get_state()["epoch_winners"] for f in (facade, other)]
    assert len(epoch_winners[0]) == len(epoch_winners[1])
    assert str(facade.schedule) == str(other.schedule)
    assert facade.runhistory.finished == facade.runhistory.submitted == other.runhistory.finished


# --- kill -9 ---------------------------------------------------------------------------------


@pytest.mark.parametrize("moment", [1, 2, 3, 24, 59])
def test_killed_at_a_moment_it_goes_on(
    moment: int, tmp_path: Path, in_process: Callable[..., int], uninterrupted: Any
) -> None:
    calls = tmp_path / "calls"
    assert in_process(run_and_be_killed, tmp_path, calls, moment) == -signal.SIGKILL
    n_recorded = sum(len(race.racers) for race in races_of(a_scenario(tmp_path)))
    assert n_recorded == (moment - 1) // 2 * 2
    facade = start(tmp_path, target=Counted(noisy, calls))
    facade.optimize()
    assert_same_run(facade, uninterrupted)
    assert n_calls(calls) - moment == uninterrupted.runhistory.finished - n_recorded


def first_of_many(config: Configuration, seed: int) -> float:
    return float(config["x0"])


@pytest.mark.parametrize("options", [{}, {"n_candidates": 5}])
def test_a_run_in_a_huge_discrete_space_can_be_read_back(
    options: dict[str, Any], tmp_path: Path
) -> None:
    space = ConfigurationSpace({f"x{i}": (0, 100) for i in range(16)})  # 101 to the power of 16
    scenario = a_scenario(tmp_path, configspace=space)
    facade = quiet(scenario, first_of_many, **options)
    incumbent = facade.optimize()
    assert Run.load(facade.scenario.output_directory).races
    assert quiet(scenario, first_of_many, **options).optimize() == incumbent


def test_killed_again_and_again_it_ends_all_the_same(
    tmp_path: Path, in_process: Callable[..., int], uninterrupted: Any
) -> None:
    calls = tmp_path / "calls"
    n_kills = 0
    while in_process(run_and_be_killed, tmp_path, calls, 8) == -signal.SIGKILL:
        n_kills += 1
    assert n_kills == 9  # each time three whole races more, of 29
    assert_same_run(start(tmp_path), uninterrupted)
    assert n_calls(calls) == uninterrupted.runhistory.finished + 2 * n_kills


def test_with_groups_that_end_early_and_a_playoff_it_goes_on_too(
    tmp_path: Path, in_process: Callable[..., int]
) -> None:
    options: dict[str, Any] = {"early_stopping": 0.1, "playoff": 30, "n_candidates": 6}
    (tmp_path / "broken").mkdir()
    whole = start(tmp_path / "whole", **options)
    whole.optimize()
    calls = tmp_path / "calls"
    arguments = (tmp_path / "broken", calls, 11, signal.SIGKILL, options)
    for _ in range(2):
        assert in_process(run_and_be_killed, *arguments) == -signal.SIGKILL
    facade = start(tmp_path / "broken", **options)
    facade.optimize()
    assert_same_run(facade, whole)


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_run_in_use_by_another_process_is_left_alone(
    overwrite: bool, tmp_path: Path, in_process: Callable[..., int], uninterrupted: Any
) -> None:
    exit_codes = []

    class Intruder(Callback):
        def on_tell_end(self, smbo: SMBO, info: TrialInfo, value: TrialValue) -> None:
            if smbo.runhistory.finished == 21:
                read_journal(smbo._scenario.output_directory / "journal.jsonl")  # no intrusion
                exit_codes.append(in_process(be_refused, tmp_path, overwrite))

    facade = start(tmp_path, callbacks=[Intruder()])
    facade.optimize()
    assert exit_codes == [7]
    assert_same_run(facade, uninterrupted)
    assert in_process(be_refused, tmp_path, overwrite) == 0  # now it is free


def test_a_second_facade_in_this_process_goes_on_or_is_refused(
    tmp_path: Path, uninterrupted: Any
) -> None:
    first, second = start(tmp_path), start(tmp_path)  # nobody has run anything yet

    class Intruder(Callback):
        def on_tell_end(self, smbo: SMBO, info: TrialInfo, value: TrialValue) -> bool:
            if smbo.runhistory.finished == 21:
                with pytest.raises(RunInUseError):
                    start(tmp_path)
            return smbo.runhistory.finished < 21

    first.optimizer.register_callback(Intruder())
    first.optimize()
    with pytest.raises(JournalError, match="changed by another process"):
        second.optimize()
    third = start(tmp_path)
    third.optimize()
    assert_same_run(third, uninterrupted)


@pytest.mark.parametrize("n_lost", [1, 30])
def test_a_torn_line_is_dropped(n_lost: int, tmp_path: Path, uninterrupted: Any) -> None:
    journal = unfinished(tmp_path).scenario.output_directory / "journal.jsonl"
    n_races = len(races_of(a_scenario(tmp_path)))
    os.truncate(journal, journal.stat().st_size - n_lost)
    calls = tmp_path / "calls"
    (journal.parent / "runhistory.json").unlink()  # it has the results of that race
    facade = start(tmp_path, target=Counted(noisy, calls))
    assert facade.intensifier.n_races == n_races - 1
    facade.optimize()
    assert_same_run(facade, uninterrupted)
    assert n_calls(calls) == uninterrupted.runhistory.finished - 2 * (n_races - 1)


def test_a_journal_torn_in_its_first_line_starts_anew(tmp_path: Path, uninterrupted: Any) -> None:
    journal = start(tmp_path).scenario.output_directory / "journal.jsonl"
    os.truncate(journal, 20)
    facade = start(tmp_path)
    facade.optimize()
    assert_same_run(facade, uninterrupted)


def test_interrupted_from_the_keyboard_it_goes_on(
    tmp_path: Path, in_process: Callable[..., int], uninterrupted: Any
) -> None:
    calls = tmp_path / "calls"
    assert in_process(run_and_be_killed, tmp_path, calls, 12, signal.SIGINT) == 130
    saved = json.loads((a_scenario(tmp_path).output_directory / "runhistory.json").read_text())
    assert saved["stats"]["finished"] == 11
    facade = start(tmp_path)
    assert facade.intensifier.n_races == 5
    facade.optimize()
    assert_same_run(facade, uninterrupted)


def test_few_instances_go_on_too(tmp_path: Path) -> None:
    settings = {"instances": ["a", "b", "c", "d"], "deterministic": True, "n_trials": 50}
    (tmp_path / "whole").mkdir()
    whole = start(tmp_path / "whole", target=on_instance, settings=settings)
    whole.optimize()
    for after in range(2, whole.runhistory.finished, 7):
        directory = tmp_path / str(after)
        unfinished(directory, after, target=on_instance, settings=settings)
        facade = start(directory, target=on_instance, settings=settings)
        facade.optimize()
        assert_same_run(facade, whole)


def test_a_run_under_dask_goes_on(tmp_path: Path, four_workers: Client, uninterrupted: Any) -> None:
    """Races are recorded as they end, which is in no particular order."""
    unfinished(tmp_path, dask_client=four_workers)
    facade = start(tmp_path, dask_client=four_workers)
    facade.optimize()
    assert_same_run(facade, uninterrupted)


def test_the_trajectory_goes_on(tmp_path: Path, uninterrupted: Any) -> None:
    unfinished(tmp_path, after=41)
    facade = start(tmp_path)
    facade.optimize()
    before, after = uninterrupted.intensifier, facade.intensifier
    assert after.incumbents_changed == before.incumbents_changed == len(after.trajectory)
    assert [item.trial for item in after.trajectory] == [item.trial for item in before.trajectory]
    walltimes = [item.walltime for item in after.trajectory]
    assert walltimes == sorted(walltimes)
    assert len({*after.trajectory[-1].config_ids}) == 1


# --- finished, raised, changed ---------------------------------------------------------------


def test_a_finished_run_answers_at_once(tmp_path: Path) -> None:
    incumbent = start(tmp_path).optimize()
    calls = tmp_path / "calls"
    again = start(tmp_path, target=Counted(noisy, calls))
    assert again.optimize() == incumbent
    assert n_calls(calls) == 0
    assert again.runhistory.running == 0


@pytest.mark.parametrize("limit", [{"walltime_limit": 0.3}, {"cputime_limit": 0.2}])
def test_a_run_whose_time_is_up_answers_at_once_until_it_gets_more(
    limit: dict[str, Any], tmp_path: Path
) -> None:
    settings = {"n_trials": 10_000, **limit}
    incumbent = start(tmp_path, target=busy, settings=settings).optimize()
    calls = tmp_path / "calls"
    again = start(tmp_path, target=Counted(busy, calls), settings=settings)
    assert again.optimize() == incumbent
    assert n_calls(calls) == 0
    more = {name: value + 0.1 for name, value in limit.items()}
    start(tmp_path, target=Counted(busy, calls), settings={**settings, **more}).optimize()
    assert n_calls(calls) > 0


def test_a_run_that_is_only_looked_at_loses_no_time(tmp_path: Path) -> None:
    settings = {"n_trials": 10_000, "walltime_limit": 0.3}
    start(tmp_path, target=busy, settings=settings).optimize()
    looked_at = start(tmp_path, target=busy, settings=settings)
    used = looked_at.optimizer.used_walltime
    time.sleep(0.2)
    looked_at.optimize()
    assert looked_at.optimizer.used_walltime == pytest.approx(used, abs=0.1)
    saved = looked_at.scenario.output_directory / "optimization.json"
    assert json.loads(saved.read_text())["used_walltime"] == pytest.approx(used, abs=0.1)


def test_raised_trials_go_to_further_passes_from_the_last_winner(tmp_path: Path) -> None:
    winner = start(tmp_path).optimize()
    scenario = a_scenario(tmp_path)
    for n_trials, n_passes in [(120, 2), (250, 3)]:
        calls = tmp_path / str(n_trials)
        n_before = sum(len(race.racers) for race in races_of(scenario))
        target = Counted(noisy, calls)
        facade = start(tmp_path, target=target, settings={"n_trials": n_trials})
        assert len(facade.intensifier.engine.plans) == n_passes
        number = facade.intensifier.configurations.number_of(winner)
        n_races = facade.intensifier.n_races
        winner = facade.optimize()
        assert number in {n for race in races_of(scenario)[n_races:] for n in race.racers}
        assert n_calls(calls) == facade.runhistory.finished - n_before
        assert n_trials - 15 < facade.runhistory.finished <= n_trials


@pytest.mark.parametrize("options", [PAPER, {}])
def test_a_run_with_raised_trials_can_be_played_to_its_end(
    options: dict[str, Any], tmp_path: Path
) -> None:
    quiet(a_scenario(tmp_path), noisy, **options).optimize()
    for _ in range(2):  # the same limit is noted once
        facade = quiet(a_scenario(tmp_path, n_trials=150), noisy, **options)
        facade.optimize()
    run = Run.load(facade.scenario.output_directory)
    assert [note.values for note in run.recorded.notes if note.kind == "limits"] == [
        {"n_trials": 150}
    ]
    assert run.problem is None
    assert len(run.trials) > 100
    assert playable(run.recorded) == run.races


def test_a_further_pass_is_planned_once_however_often_it_is_interrupted(tmp_path: Path) -> None:
    """It begins while the run is being restored, and must be in the journal all the same."""
    whole = tmp_path / "whole"
    start(whole).optimize()
    reference = start(whole, settings={"n_trials": 150})
    reference.optimize()

    broken = tmp_path / "broken"
    start(broken).optimize()
    for after in (75, 101, 130):
        unfinished(broken, after, settings={"n_trials": 150})
    facade = start(broken, settings={"n_trials": 150})
    facade.optimize()
    assert_same_run(facade, reference)


def test_trials_raised_in_the_middle_keep_the_plan(tmp_path: Path, uninterrupted: Any) -> None:
    unfinished(tmp_path)
    facade = start(tmp_path, settings={"n_trials": 120})
    assert str(facade.schedule) == str(uninterrupted.schedule)
    facade.optimize()
    assert len(facade.intensifier.engine.plans) == 2
    races = without_times(races_of(uninterrupted.scenario))
    assert without_times(races_of(facade.scenario))[: len(races)] == races


def test_too_few_raised_trials_are_left_alone(tmp_path: Path) -> None:
    incumbent = start(tmp_path).optimize()
    again = start(tmp_path, settings={"n_trials": 62})
    assert again.optimize() == incumbent
    assert "too few for another pass" in again.intensifier.finished


def test_lowered_trials_end_the_run(tmp_path: Path) -> None:
    unfinished(tmp_path)
    calls = tmp_path / "calls"
    again = start(tmp_path, target=Counted(noisy, calls), settings={"n_trials": 10})
    again.optimize()
    assert n_calls(calls) == 0


def test_lowered_trials_leave_the_default_search_where_it_was(tmp_path: Path) -> None:
    before = quiet(a_scenario(tmp_path, n_trials=300), noisy, callbacks=[Stop(200)])
    incumbent = before.optimize()
    again = quiet(a_scenario(tmp_path, n_trials=50), noisy)
    assert again.optimize() == incumbent
    assert again.intensifier.n_races == before.intensifier.n_races


def test_trials_that_were_lost_at_the_end_are_run_after_all(tmp_path: Path) -> None:
    """An interrupt took their results, but they count as submitted: n_trials has no room left."""
    whole = quiet(a_scenario(tmp_path / "whole"), noisy)
    facade = quiet(a_scenario(tmp_path), noisy)
    trials = ask_all(facade)
    while facade.runhistory.submitted < 60:
        for info in trials:
            answer(facade, info)
        trials = ask_all(facade)
    assert len(trials) > 1
    assert facade.optimize() == whole.optimize()
    assert (facade.runhistory.finished, facade.runhistory.running) == (60, 0)


def test_stopped_by_a_callback_it_goes_on_with_workers_too(
    tmp_path: Path, four_workers: Client
) -> None:
    stop = Stop(13)
    facade = quiet(a_scenario(tmp_path), noisy, callbacks=[stop], dask_client=four_workers)
    facade.optimize()
    assert facade.runhistory.finished < 60
    stop.after = 1000
    whole = quiet(a_scenario(tmp_path / "whole"), noisy)
    assert facade.optimize() == whole.optimize()
    assert facade.runhistory.finished == 60


def test_an_interrupt_waits_but_a_second_one_does_not() -> None:
    reached = []

    def interrupted(times: int) -> None:
        with interrupts_held():
            for _ in range(times):
                signal.raise_signal(signal.SIGINT)
            reached.append(times)

    for times in (1, 2):
        with pytest.raises(KeyboardInterrupt):
            interrupted(times)
    assert reached == [1]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


class InterruptedProposals:
    """Proposes nothing, and is interrupted once while it thinks about it."""

    def __init__(self, at: int) -> None:
        self.n_calls, self.at = 0, at

    def propose(self, configurations: Any, known: Any) -> None:
        self.n_calls += 1
        if self.n_calls == self.at:
            signal.raise_signal(signal.SIGINT)


def test_interrupted_while_a_race_is_judged_it_goes_on_in_the_same_process(tmp_path: Path) -> None:
    facade = quiet(a_scenario(tmp_path, n_trials=200), noisy, proposals=InterruptedProposals(50))
    with pytest.raises(KeyboardInterrupt):
        facade.optimize()
    assert facade.intensifier.n_races > 0
    never = quiet(a_scenario(tmp_path / "never", n_trials=200), noisy, proposals=NoProposals())
    assert facade.optimize() == never.optimize()
    assert facade.runhistory.finished == never.runhistory.finished


class NoProposals:
    def propose(self, configurations: Any, known: Any) -> None:
        return None


def test_what_is_told_again_leaves_a_finished_run_alone(tmp_path: Path) -> None:
    def facade_that_is_told() -> ACBandFacade:
        facade = quiet(a_scenario(tmp_path), noisy)
        config = facade.scenario.configspace.get_default_configuration()
        facade.tell(TrialInfo(config, seed=5), TrialValue(cost=0.5, time=0.5))
        return facade

    incumbent = facade_that_is_told().optimize()
    races = races_of(a_scenario(tmp_path))
    assert facade_that_is_told().optimize() == incumbent
    assert races_of(a_scenario(tmp_path)) == races


def test_what_is_told_late_does_not_wipe_what_another_facade_has_raced(tmp_path: Path) -> None:
    first, second = (quiet(a_scenario(tmp_path), noisy) for _ in range(2))
    second.optimize()
    races = races_of(a_scenario(tmp_path))
    default = first.scenario.configspace.get_default_configuration()
    with pytest.raises(JournalError, match="changed by another process; start the run again"):
        first.tell(TrialInfo(default, seed=5), TrialValue(cost=0.5))
    assert len(first.intensifier.told) == 0
    assert races_of(a_scenario(tmp_path)) == races


@pytest.mark.parametrize("options", [{"racing": True}, PAPER])
def test_who_leads_before_a_race_is_judged_leads_after_a_restart(
    options: dict[str, Any], tmp_path: Path
) -> None:
    """The second race is over, the first is not: nothing is judged yet."""

    def start() -> ACBandFacade:
        return quiet(a_scenario(tmp_path, instances=["a", "b", "c"]), on_instance, k=4, **options)

    facade = start()
    races: dict[str, list[TrialInfo]] = {}
    for info in ask_all(facade):
        races.setdefault(info.additional_info["race"], []).append(info)
    second = list(races.values())[1]
    for info in second:
        answer(facade, info)
    assert len(races_of(facade.scenario)) == 1
    leader = facade.intensifier.get_incumbent()
    assert leader in [info.config for info in second]
    assert start().intensifier.get_incumbent() == leader


@pytest.mark.parametrize("proposals", ["uniform", "learned"])
def test_a_racing_run_that_is_resumed_races_in_the_same_order(
    proposals: str, tmp_path: Path
) -> None:
    """Passes overlap: what an earlier one still has to do goes before the groups of later ones."""

    def start(name: str) -> ACBandFacade:
        instances = [str(number) for number in range(20)]
        scenario = a_scenario(tmp_path, name=name, n_trials=500, instances=instances)
        return quiet(scenario, on_instance, racing=True, k=4, proposals=proposals)

    for name, stops in (("usual", [400]), ("resumed", [80, 160, 240, 400])):
        for n_told in stops:
            facade = start(name)
            while facade.runhistory.finished < n_told:
                answer(facade, facade.ask())
    usual, resumed = (
        [(race.id, race.key, race.racers) for race in races_of(start(name).scenario)]
        for name in ("usual", "resumed")
    )
    n_both = min(len(usual), len(resumed))
    assert n_both > 80
    assert usual[:n_both] == resumed[:n_both]


def test_plans_say_how_often_the_limit_had_been_changed(tmp_path: Path) -> None:
    for n_trials, n_told in [(300, 60), (400, 150), (300, 260)]:
        names = [str(number) for number in range(20)]
        scenario = a_scenario(tmp_path, n_trials=n_trials, instances=names)
        facade = quiet(scenario, on_instance, racing=True, k=4)
        while facade.runhistory.finished < n_told:
            answer(facade, facade.ask())
    recorded = read_journal(scenario.output_directory / "journal.jsonl")
    numbers = [plan.n_changes for plan in recorded.plans if isinstance(plan, PassPlan)]
    assert recorded.n_changes == 2
    assert numbers == sorted(numbers)
    assert set(numbers) == {0, 1, 2}
    assert Run.load(scenario.output_directory).problem is None


def test_what_is_told_takes_part_though_the_run_was_looked_at_before(tmp_path: Path) -> None:
    for _ in range(2):
        quiet(a_scenario(tmp_path), noisy)
    facade = quiet(a_scenario(tmp_path), noisy)
    good = Configuration(facade.scenario.configspace, {"x": 0.3, "n": 7})
    for _ in range(2):
        facade.tell(TrialInfo(good, seed=5), TrialValue(cost=-1.0))
    assert len(facade.intensifier.told) == 1
    facade.optimize()
    id_ = facade.runhistory.get_config_id(good)
    assert sum(key.config_id == id_ for key in facade.runhistory) > 1


def test_who_is_refused_writes_no_files(tmp_path: Path) -> None:
    first, second = start(tmp_path), start(tmp_path)
    first.optimize()
    files = {path: path.read_bytes() for path in first.scenario.output_directory.glob("*.json*")}
    with pytest.raises(JournalError):
        second.optimize()
    assert {path: path.read_bytes() for path in files} == files


def test_other_success_codes_make_another_run(tmp_path: Path) -> None:
    scenario = Scenario(a_space(), n_trials=60, output_directory=tmp_path)
    directories = set()
    for codes in (None, (0,), (10, 20)):
        facade = ACBandFacade(
            scenario, sys.executable, racing=True, success_codes=codes, logging_level=False
        )
        directories.add(facade.scenario.output_directory)
    assert len(directories) == 3


def test_a_rehearsal_does_not_change_the_run(tmp_path: Path) -> None:
    scenario = a_scenario(tmp_path)
    given = scenario.configspace.sample_configuration(9)
    design = DefaultInitialDesign(scenario, additional_configs=given)
    facade = quiet(scenario, noisy, proposals="learned", initial_design=design)
    n_drawn = len(facade.intensifier.configurations)
    assert facade.check()
    assert len(facade.intensifier.configurations) == n_drawn


@pytest.mark.parametrize(
    ("changed", "line"),
    [
        ({"k": 3}, "k: 2 before, 3 now"),
        ({"alpha": 0.2}, "alpha: None before, 0.2 now"),
        ({"statistic": "mean"}, "statistic: .* before, .* now"),
        ({"first": "random"}, "first: 'default' before, 'random' now"),
        ({"settings": {"deterministic": True}}, "deterministic: False before, True now"),
        ({"settings": {"crash_cost": 7.0}}, "crash_cost: inf before, 7.0 now"),
        ({"settings": {"instances": ["a"]}}, "instances: None before, \\['a'\\] now"),
        (
            {"settings": {"configspace": ConfigurationSpace({"x": (0.0, 2.0), "n": (1, 100)})}},
            "configspace.hyperparameters: .* new: .*2.0",
        ),
    ],
)
def test_another_setting_is_refused_by_name(
    changed: dict[str, Any], line: str, tmp_path: Path
) -> None:
    unfinished(tmp_path)
    before = races_of(a_scenario(tmp_path))
    target = on_instance if "instances" in changed.get("settings", {}) else noisy
    with pytest.raises(RunDiffersError, match=line) as error:
        start(tmp_path, target=target, **changed)
    assert "overwrite=True" in str(error.value)
    assert len(error.value.differences) == 1
    assert races_of(a_scenario(tmp_path)) == before, "the refused run changed the recorded one"


def test_changed_instances_are_listed(tmp_path: Path) -> None:
    names = [f"i{n}" for n in range(30)]
    unfinished(tmp_path, target=on_instance, settings={"instances": names})
    now = [*names[:-1], "new one"]
    with pytest.raises(RunDiffersError, match="gone: 'i29'; new: 'new one'"):
        start(tmp_path, target=on_instance, settings={"instances": now})
    with pytest.raises(RunDiffersError, match="instances: 30 before, 30 now; in another order"):
        start(tmp_path, target=on_instance, settings={"instances": names[::-1]})


def test_changed_additional_configurations_are_listed(tmp_path: Path) -> None:
    unfinished(tmp_path)
    scenario = a_scenario(tmp_path)
    extra = scenario.configspace.sample_configuration()
    design = DefaultInitialDesign(scenario, additional_configs=[extra])
    with pytest.raises(RunDiffersError, match="given: 0 before, 1 now"):
        ACBandFacade(scenario, noisy, initial_design=design, logging_level=False, **PAPER)


def test_another_seed_of_the_intensifier_is_refused(tmp_path: Path) -> None:
    unfinished(tmp_path)
    scenario = a_scenario(tmp_path)
    intensifier = ACBandIntensifier(scenario, seed=8, **PAPER)
    with pytest.raises(RunDiffersError, match="intensifier_seed: 3 before, 8 now"):
        ACBandFacade(scenario, noisy, intensifier=intensifier, logging_level=False)


def test_the_seed_of_the_scenario_has_a_directory_of_its_own(tmp_path: Path) -> None:
    unfinished(tmp_path)
    assert start(tmp_path, settings={"seed": 4}).intensifier.n_races == 0


def test_overwrite_starts_anew(tmp_path: Path, uninterrupted: Any) -> None:
    unfinished(tmp_path, k=3)
    facade = start(tmp_path, overwrite=True)
    assert facade.runhistory.empty()
    facade.optimize()
    assert_same_run(facade, uninterrupted)
    assert start(tmp_path).intensifier.finished is not None


def test_choices_that_json_knows_otherwise_go_on(tmp_path: Path) -> None:
    space = ConfigurationSpace(
        space={"flag": [True, False], "x": (0.0, 1.0), "level": Categorical("level", [1, 2, 3])}
    )
    space.add(Categorical("lists", [[1, 2], [3]]), Categorical("pairs", [(1, 2), (3, 4)]))
    settings = {"configspace": space}
    unfinished(tmp_path, target=exact, settings=settings)
    facade = start(tmp_path, target=exact, settings=settings)
    assert facade.intensifier.n_races == 10
    facade.optimize()
    warm = start(tmp_path / "warm", target=exact, settings=settings, warm_start=tmp_path / "run/3")
    assert warm.intensifier.n_warm > 0


# --- SMAC's files ----------------------------------------------------------------------------


def test_smac_reads_what_was_saved(uninterrupted: Any) -> None:
    directory = uninterrupted.scenario.output_directory
    runhistory = RunHistory()
    runhistory.load(directory / "runhistory.json", a_space())
    assert runhistory == uninterrupted.runhistory
    assert runhistory.finished == uninterrupted.runhistory.finished
    scenario = Scenario.load(directory)
    assert scenario.n_trials == 60
    assert scenario.configspace == a_space()
    state = json.loads((directory / "intensifier.json").read_text())
    incumbent = uninterrupted.intensifier.get_incumbent()
    assert state["incumbent_ids"] == [runhistory.get_config_id(incumbent)]
    assert state["state"]["finished"] == "all planned races are judged"
    assert json.loads((directory / "optimization.json").read_text())["used_walltime"] > 0
    assert not list(directory.glob(".*.json")), "temporary files are left behind"


def test_files_are_written_whole(tmp_path: Path) -> None:
    """Whoever has a file open keeps what it held: it is replaced, not written over."""
    facade = unfinished(tmp_path)
    path = facade.scenario.output_directory / "runhistory.json"
    with path.open() as before:
        start(tmp_path).optimize()
        assert json.load(before)["stats"]["finished"] == 21
    assert json.loads(path.read_text())["stats"]["finished"] > 21


# --- stock facades resume by SMAC's own means ------------------------------------------------


@pytest.mark.parametrize("moment", [5, 30])
@pytest.mark.parametrize("facade", [RandomFacade, AlgorithmConfigurationFacade])
def test_a_stock_facade_goes_on(
    facade: type[AbstractFacade],
    moment: int,
    tmp_path: Path,
    in_process: Callable[..., int],
    uninterrupted: Any,
) -> None:
    arguments: tuple[Any, ...] = (facade, tmp_path, moment, {})
    assert in_process(run_stock_and_be_killed, *arguments) == -signal.SIGKILL
    scenario = a_scenario(tmp_path)
    smac = facade(
        scenario,
        noisy_and_killed,
        intensifier=ACBandIntensifier(scenario, **PAPER),
        logging_level=False,
    )
    assert smac.runhistory.finished == moment - 1
    incumbent = smac.optimize()
    assert incumbent == uninterrupted.intensifier.get_incumbent()
    assert smac.runhistory.finished == uninterrupted.runhistory.finished
    assert smac.runhistory.running == 0
    trajectories = [f.intensifier.trajectory for f in (smac, uninterrupted)]
    trials = [[item.trial for item in trajectory] for trajectory in trajectories]
    assert trials[0] == trials[1]
    assert smac.intensifier.incumbents_changed == len(trials[0])


def test_a_stock_facade_runs_again_what_was_running(tmp_path: Path, uninterrupted: Any) -> None:
    def facade() -> RandomFacade:
        scenario = a_scenario(tmp_path)
        intensifier = ACBandIntensifier(scenario, **PAPER)
        return RandomFacade(scenario, noisy, intensifier=intensifier, logging_level=False)

    first = facade()
    for info in [first.ask() for _ in range(6)][1:4]:
        first.tell(info, result_of(info.config, info.seed))
    again = facade()
    assert (again.runhistory.finished, again.runhistory.running) == (3, 3)
    assert again.optimize() == uninterrupted.intensifier.get_incumbent()
    assert again.runhistory.running == 0
    assert again.runhistory.finished == uninterrupted.runhistory.finished


def test_a_stock_facade_plans_further_passes_alike(
    tmp_path: Path, in_process: Callable[..., int]
) -> None:
    """Under a time limit the second pass is planned from how many trials the first one took."""
    settings = {"walltime_limit": 600, "n_trials": 220, "name": "passes"}
    scenario = a_scenario(tmp_path / "whole", **settings)
    intensifier = ACBandIntensifier(scenario, **PAPER)
    whole = RandomFacade(scenario, noisy, intensifier=intensifier, logging_level=False)
    whole.optimize()

    arguments = (RandomFacade, tmp_path, 30, settings)
    assert in_process(run_stock_and_be_killed, *arguments) == -signal.SIGKILL
    scenario = a_scenario(tmp_path, **settings)
    again = ACBandIntensifier(scenario, **PAPER)
    RandomFacade(scenario, noisy_and_killed, intensifier=again, logging_level=False).optimize()
    assert len(again.engine.plans) > 1
    assert again.engine.plans == intensifier.engine.plans
    assert again.get_incumbent() == intensifier.get_incumbent()


# --- the same script, started again ----------------------------------------------------------

SCRIPT = """
import functools, json, os, signal, sys
import logging
from ConfigSpace import ConfigurationSpace
from smac import Scenario
from acband_configspace import ACBandFacade

logging.basicConfig(level=logging.WARNING)
HANDLERS = list(logging.getLogger().handlers)
n_calls = 0

def cost(config, seed, *, offset=0.0):
    global n_calls
    n_calls += 1
    return abs(config["x"] - 0.3) + offset

class Solver:
    def __init__(self):
        self.helper = object()
    def run(self, config, seed):
        return cost(config, seed)
    def __call__(self, config, seed):
        return cost(config, seed)

targets = {
    "function": cost,
    "partial": functools.partial(cost, offset=1.0),
    "other partial": functools.partial(cost, offset=2.0),
    "lambda": lambda config, seed: cost(config, seed),
    "method": Solver().run,
    "object": Solver(),
}
report = {}
for name, target in targets.items():
    n_calls = 0
    scenario = Scenario(ConfigurationSpace({"x": (0.0, 1.0)}), n_trials=int(sys.argv[1]), seed=1)
    facade = ACBandFacade(scenario, target, early_stopping=None)
    incumbent = facade.optimize()
    report[name] = [n_calls, incumbent["x"], str(facade.scenario.output_directory)]
assert list(logging.getLogger().handlers) == HANDLERS, "the root logger was touched"
print("REPORT" + json.dumps(report))
"""


def test_all_kinds_of_targets_go_on_without_a_name_and_without_asking(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    package = Path(acband_configspace.__file__).parents[1]
    path = os.pathsep.join(filter(None, [str(package), os.environ.get("PYTHONPATH")]))

    def report(n_trials: int) -> dict[str, tuple[int, float, str]]:
        process = subprocess.run(
            [sys.executable, str(script), str(n_trials)],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": path},
            stdin=subprocess.DEVNULL,  # input() would raise an EOFError
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert process.returncode == 0, process.stderr
        assert "instance features" not in process.stderr + process.stdout
        (line,) = [li for li in process.stdout.splitlines() if li.startswith("REPORT")]
        return {name: tuple(value) for name, value in json.loads(line[6:]).items()}

    first, raised = report(40), report(80)
    assert len({directory for _, _, directory in first.values()}) == len(first)
    for name, (calls, _, directory) in first.items():
        assert 30 < calls <= 40, name
        assert 20 < raised[name][0] <= 80 - calls, name
        assert raised[name][2] == directory, name


FINISHED = """
import sys
from ConfigSpace import ConfigurationSpace
from smac import Scenario
from acband_configspace import ACBandFacade

SCALE = 1.0
n_calls = 0

def helper(x):
    return SCALE * x

def target(config, seed=0):
    global n_calls
    n_calls += 1
    return helper(config["x"])

options = {"overwrite": True} if "anew" in sys.argv else {}
if "silent" in sys.argv:
    options["logging_level"] = False
if __name__ == "__main__":
    scenario = Scenario(ConfigurationSpace({"x": (0.0, 1.0)}), n_trials=20)
    facade = ACBandFacade(scenario, target, **options)
    facade.optimize()
    print("calls:", n_calls, "in", facade.scenario.output_directory)
"""


def test_a_finished_run_says_so_and_how_to_start_anew(tmp_path: Path) -> None:
    package = Path(acband_configspace.__file__).parents[1]

    def said(text: str, *words: str) -> tuple[int, str, str]:
        """Run a script; return how often its target was called, where, and what was said."""
        (tmp_path / "script.py").write_text(text)
        done = subprocess.run(
            [sys.executable, "script.py", *words],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(package)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        (line,) = [li for li in done.stdout.splitlines() if li.startswith("calls: ")]
        n, _, directory = line.removeprefix("calls: ").partition(" in ")
        return int(n), directory, " ".join((done.stdout + done.stderr).split())

    n, directory, text = said(FINISHED)
    assert n > 0
    assert "is finished: its result is returned" not in text
    words = (
        f"The run in {tmp_path / directory} is finished: its result is returned, no further race "
        "is run. Use overwrite=True, or another name or output_directory, to start anew."
    )
    for how in ([], ["silent"]):  # without SMAC's logging it is a warning like any other
        n_again, _, text = said(FINISHED, *how)
        assert n_again == 0
        assert words in text
    assert said(FINISHED, "anew")[:2] == (n, directory)  # what it says, does it
    n_changed, other, text = said(FINISHED.replace("SCALE = 1.0", "SCALE = 2.0"))
    assert n_changed > 0
    assert other != directory
    assert "is finished: its result is returned" not in text


def test_a_directory_that_is_deleted_in_mid_run_ends_it_with_a_named_error(tmp_path: Path) -> None:
    def deletes(config: Any, seed: int = 0) -> float:
        if len(history) == 20:
            shutil.rmtree(facade.scenario.output_directory)
        return noisy(config, seed)

    facade = quiet(a_scenario(tmp_path), deletes)
    history = facade.runhistory
    with pytest.raises(RunDirectoryGoneError, match="deleted, moved or replaced"):
        facade.optimize()
    assert len(history) < 60


FULL_DISK = """
import errno, json, resource, sys
from pathlib import Path
from targets import Counted, a_scenario, noisy, quiet

folder = Path(sys.argv[1])
facade = quiet(a_scenario(folder), Counted(noisy, folder / "calls"))
journal = facade.scenario.output_directory / "journal.jsonl"
errors = []
for room in (1000, 1500, 4000):  # from here on; a part of a line still fits
    resource.setrlimit(
        resource.RLIMIT_FSIZE, (journal.stat().st_size + room, resource.RLIM_INFINITY)
    )
    try:
        facade.optimize()
    except OSError as error:
        errors.append(error.errno == errno.EFBIG)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
print(json.dumps({"errors": errors, "x": facade.optimize()["x"]}))
"""


def test_where_the_kernel_refuses_to_write_more_a_race_is_recorded_once(tmp_path: Path) -> None:
    """As on a full disk, but without one: a limit on the size of files, lifted later."""
    (tmp_path / "full").mkdir()
    helpers = Path(__file__).parents[1] / "helpers"
    package = Path(acband_configspace.__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-c", FULL_DISK, str(tmp_path / "full")],
        env={**os.environ, "PYTHONPATH": f"{package}{os.pathsep}{helpers}"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout.splitlines()[-1])
    assert said["errors"] == [True] * 3, done.stderr
    undisturbed = quiet(a_scenario(tmp_path / "whole"), noisy)
    assert undisturbed.optimize()["x"] == said["x"]
    races = races_of(a_scenario(tmp_path / "full"))
    assert without_times(races) == without_times(races_of(undisturbed.scenario))
    n_recorded = sum(len(race.racers) for race in races)
    assert n_calls(tmp_path / "full" / "calls") <= n_recorded + 3 * 8  # those of the last races
