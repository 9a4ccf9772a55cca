"""In the paper's schedule groups may end early, and there may be a playoff: what holds then.

Races that were running when their group was decided are needless. How many depends on the workers
and on when results come in; who wins must not.
"""

from __future__ import annotations

import signal
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ConfigSpace import Configuration
from dask.distributed import Client
from hypothesis import given, settings
from hypothesis import strategies as st
from smac import HyperbandFacade, RandomFacade
from smac.facade.abstract_facade import AbstractFacade
from smac.runhistory.dataclasses import TrialInfo, TrialValue
from smac.runhistory.enumerations import StatusType
from smac.runhistory.runhistory import RunHistory
from targets import (
    Counted,
    Stop,
    a_scenario,
    a_space,
    answer,
    ask_all,
    n_calls,
    noisy,
    noisy_and_killed,
    on_instance,
    races_of,
    run_and_be_killed,
    run_stock_and_be_killed,
    trials_of,
    without_times,
)

from acband_configspace import ACBandFacade, ACBandIntensifier, Schedule
from acband_configspace.core.acband import acband
from acband_configspace.core.instances import InstanceKey
from acband_configspace.core.paper_races import PaperRaces
from acband_configspace.core.race import Race
from acband_configspace.errors import OutcomesNeededError, RunFinishedError
from acband_configspace.smac_plugin.configurations import Configurations
from acband_configspace.smac_plugin.pending import PendingRaces
from acband_configspace.smac_plugin.trial_values import Ticket

N_TRIALS = 260
#: With few candidates groups have many races each: there is something to be saved.
EARLY: dict[str, Any] = {"n_candidates": 6}


def start(
    directory: Path,
    *,
    n_trials: int = N_TRIALS,
    target: Callable[..., Any] | None = noisy,
    **arguments: Any,
) -> ACBandFacade:
    n_workers = arguments.pop("n_workers", 1)
    scenario = a_scenario(directory, n_trials=n_trials, n_workers=n_workers)
    return ACBandFacade(scenario, target, logging_level=False, **EARLY, **arguments)


def in_stock(
    facade: type[AbstractFacade],
    directory: Path,
    target: Callable[..., Any] | None = noisy,
    **arguments: Any,
) -> AbstractFacade:
    scenario = a_scenario(directory, n_trials=N_TRIALS)
    intensifier = ACBandIntensifier(scenario, **EARLY)
    return facade(scenario, target, intensifier=intensifier, logging_level=False, **arguments)


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> ACBandFacade:
    """With one worker there is no needless race."""
    facade = start(tmp_path_factory.mktemp("reference"))
    facade.optimize()
    return facade


def winners(smac: AbstractFacade) -> list[list[Configuration]]:
    state = smac.intensifier.get_state()
    return [[smac.runhistory.get_config(i) for i in ids] for ids in state["epoch_winners"]]


def assert_same_result(smac: AbstractFacade, reference: ACBandFacade) -> None:
    assert isinstance(smac.intensifier, ACBandIntensifier)
    assert smac.intensifier.finished == reference.intensifier.finished
    assert smac.intensifier.get_incumbent() == reference.intensifier.get_incumbent()
    assert winners(smac) == winners(reference)
    assert trials_of(smac) >= trials_of(reference)
    assert smac.runhistory.submitted <= smac.scenario.n_trials
    if isinstance(smac, ACBandFacade):
        races, needed = (without_times(races_of(f.scenario)) for f in (smac, reference))
        assert all(race in races for race in needed)
        assert len({race[0] for race in races}) == len(races), "a race was run again"


def test_groups_end_early_and_there_is_a_playoff(reference: Any) -> None:
    schedule = reference.schedule
    assert schedule.set_aside >= 25
    assert reference.intensifier.engine.position.is_playoff
    assert reference.runhistory.running == 0
    assert 0.4 * schedule.n_trials < reference.runhistory.finished < 0.95 * schedule.n_trials
    playoff = [race for race in races_of(reference.scenario) if len(race.racers) > 2]
    assert playoff or len(set(winners(reference)[0])) <= 1


# --- whoever runs it -------------------------------------------------------------------------


@pytest.mark.parametrize("n_workers", [2, 4])
def test_with_workers_of_its_own(n_workers: int, tmp_path: Path, reference: Any) -> None:
    facade = start(tmp_path, n_workers=n_workers)
    facade.optimize()
    assert_same_result(facade, reference)


def test_on_a_cluster(tmp_path: Path, reference: Any, four_workers: Client) -> None:
    facade = start(tmp_path, dask_client=four_workers)
    facade.optimize()
    assert_same_result(facade, reference)


@pytest.mark.parametrize("facade", [RandomFacade, HyperbandFacade])
def test_in_stock_facades(facade: type[AbstractFacade], tmp_path: Path, reference: Any) -> None:
    smac = in_stock(facade, tmp_path)
    smac.optimize()
    assert_same_result(smac, reference)
    assert trials_of(smac) == trials_of(reference)


def test_in_a_stock_facade_under_dask(tmp_path: Path, reference: Any, four_workers: Client) -> None:
    smac = in_stock(RandomFacade, tmp_path, dask_client=four_workers)
    smac.optimize()
    assert_same_result(smac, reference)
    assert smac.runhistory.running == 0, "what was needless in the end was not waited for"


# --- ask and tell ----------------------------------------------------------------------------


def play(smac: AbstractFacade, data: st.DataObject) -> list[TrialInfo]:
    """Ask and tell in any order up to the end; return what was asked for."""
    asked: list[TrialInfo] = []
    waiting: list[TrialInfo] = []
    while True:
        try:
            waiting.append(smac.ask())
            asked.append(waiting[-1])
            n_told = data.draw(st.sampled_from([0, 0, 0, 1, 1, 3]))
        except OutcomesNeededError:
            n_told = data.draw(st.integers(1, len(waiting)))
        except RunFinishedError:
            break
        for _ in range(min(n_told, len(waiting))):
            answer(smac, waiting.pop(data.draw(st.integers(0, len(waiting) - 1))))
    incumbent = smac.intensifier.get_incumbent()
    for info in waiting:  # needless ones
        answer(smac, info)
    assert smac.intensifier.get_incumbent() == incumbent
    assert smac.runhistory.running == 0
    return asked


@given(data=st.data())
@settings(max_examples=4)
@pytest.mark.parametrize("facade", [ACBandFacade, RandomFacade])
def test_told_in_any_order_the_result_is_the_same(
    facade: type[AbstractFacade], reference: Any, data: st.DataObject
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        smac = in_stock(facade, Path(directory), None)
        play(smac, data)
        assert_same_result(smac, reference)


@given(data=st.data())
@settings(max_examples=8)
def test_no_trial_is_asked_for_twice_though_instances_come_again(data: st.DataObject) -> None:
    """A trial that a needless race asked for may be one that a later race needs."""
    with tempfile.TemporaryDirectory() as directory:
        given = {"n_trials": 60, "instances": ["a", "b", "c", "d"], "deterministic": True}
        options: dict[str, Any] = {"memory": False, "logging_level": False}
        smac = ACBandFacade(a_scenario(Path(directory), **given), None, **options)
        whole = ACBandFacade(
            a_scenario(Path(directory), name="whole", **given), on_instance, **options
        )
        asked = [(info.config["x"], info.instance) for info in play(smac, data)]
        assert len(set(asked)) == len(asked)
        whole.optimize()
        assert_same_result(smac, whole)


def test_optimize_does_not_run_what_is_needless(tmp_path: Path, reference: Any) -> None:
    """It was asked for and never told, and its group is decided: nobody needs to know."""
    calls: list[tuple[float, int]] = []

    def target(config: Configuration, seed: int) -> float:
        calls.append((config["x"], seed))
        return noisy(config, seed)

    facade = start(tmp_path, target=target)
    asked = ask_all(facade)
    needed = {(x, seed) for x, _, seed in trials_of(reference)}
    told = [info for info in asked if (info.config["x"], info.seed) in needed]
    assert 0 < len(told) < len(asked)
    for info in told:
        answer(facade, info)
    facade.optimize()
    assert_same_result(facade, reference)
    assert not {(info.config["x"], info.seed) for info in asked} & set(calls)
    assert facade.runhistory.running == len(asked) - len(told)


def test_a_needless_race_is_stopped_once_it_is_whole(tmp_path: Path) -> None:
    """Runners know a race when they have all its racers."""
    scenario = a_scenario(tmp_path, n_trials=40)
    intensifier = ACBandIntensifier(scenario, n_candidates=1, n_epochs=1)
    smac = ACBandFacade(scenario, None, intensifier=intensifier, logging_level=False)
    (length,) = (round_.races_per_group for round_ in smac.schedule.epochs[0].rounds)
    races = [(smac.ask(), smac.ask()) for _ in range(length // 2 + 1)]
    cut = smac.ask()
    for first, second in races:
        best = min(first.config["x"], second.config["x"])
        for info in (first, second):
            smac.tell(info, TrialValue(cost=float(info.config["x"] > best)))
    assert intensifier.finished is not None
    name = cut.additional_info["race"]
    assert name not in intensifier.pending.pop_needless()
    assert next(iter(intensifier)).additional_info["race"] == name
    assert intensifier.pending.pop_needless() == [name]
    assert intensifier.pending.pop_needless() == []


def test_who_lost_a_needless_race_has_not_lost_another() -> None:
    """The result may come in when another race already waits for the same trial."""
    configurations = Configurations(a_space(), [], seed=0)
    configurations.draw(2)
    stream = PaperRaces(acband(Schedule.plan(20, n_candidates=1), np.random.default_rng(0)))
    races = PendingRaces(configurations, RunHistory(), stream.is_open, {}, racing=True)
    race = stream.ask()
    assert isinstance(race, Race)
    playoff = races.look_up(race, InstanceKey(None, 5))
    assert playoff.n_new == 2
    races.add(playoff)
    needless, own = (Ticket(name, 2).as_info() for name in ("needless", playoff.name))
    first, second = (TrialInfo(c, None, 5, additional_info=needless) for c in playoff.configs)
    lost = TrialValue(cost=1.0, status=StatusType.TIMEOUT, additional_info={"end": "lost"})
    assert races.take(first, lost) == []
    assert races.take(second, TrialValue(cost=2.0)) == []
    again = replace(first, additional_info=own)
    assert races.take(again, TrialValue(cost=3.0)) == [playoff]
    assert [value.cost for value in playoff.values] == [3.0, 2.0]


# --- killed and started again ----------------------------------------------------------------


@pytest.mark.parametrize("moment", [2, 75])
def test_killed_it_goes_on(
    moment: int, tmp_path: Path, in_process: Callable[..., int], reference: Any
) -> None:
    calls = tmp_path / "calls"
    n_needed = reference.runhistory.finished
    moments = [moment, n_needed - 2 * moment - 3 if moment == 75 else 5]  # then in the playoff
    for at in moments:
        arguments = (tmp_path, calls, at, signal.SIGKILL, EARLY, {"n_trials": N_TRIALS})
        assert in_process(run_and_be_killed, *arguments) == -signal.SIGKILL
    facade = start(tmp_path, target=Counted(noisy, calls))
    n_recorded = sum(len(race.racers) for race in races_of(facade.scenario))
    assert facade.runhistory.finished == n_recorded
    facade.optimize()
    assert_same_result(facade, reference)
    assert facade.runhistory.finished == n_needed
    assert n_calls(calls) == sum(moments) + n_needed - n_recorded


def test_needless_races_stay_counted(tmp_path: Path, reference: Any) -> None:
    """They are recorded, but nobody asks for them when the run is gone through again."""
    first = start(tmp_path, target=None)
    for info in ask_all(first):
        answer(first, info)
    n_done = first.runhistory.finished
    calls = tmp_path / "calls"
    again = start(tmp_path, target=Counted(noisy, calls))
    assert again.runhistory.finished == again.runhistory.submitted == n_done
    assert again.intensifier.n_races < len(races_of(again.scenario))
    again.optimize()
    assert_same_result(again, reference)
    assert n_calls(calls) == again.runhistory.finished - n_done


def test_results_of_needless_races_are_used_again(tmp_path: Path) -> None:
    given = {"n_trials": 60, "instances": ["a", "b", "c", "d"], "deterministic": True}
    scenario = a_scenario(tmp_path, **given)
    options: dict[str, Any] = {"memory": False, "logging_level": False}
    first = ACBandFacade(scenario, None, **options)
    for _ in range(3):
        for info in ask_all(first):
            answer(first, info)
    known = {(x, instance) for x, instance, _ in trials_of(first)}
    calls = []

    def target(config: Configuration, instance: str, seed: int) -> float:
        calls.append((config["x"], instance))
        return on_instance(config, instance, seed)

    again = ACBandFacade(a_scenario(tmp_path, **given), target, **options)
    again.optimize()
    assert len(set(calls)) == len(calls)
    assert not set(calls) & known
    whole = a_scenario(tmp_path, name="whole", **given)
    alone = ACBandFacade(whole, on_instance, **options)
    alone.optimize()
    assert_same_result(again, alone)


def test_begun_on_a_cluster_and_ended_by_one_worker(
    tmp_path: Path, reference: Any, four_workers: Client
) -> None:
    start(tmp_path, dask_client=four_workers, callbacks=[Stop(60)]).optimize()
    facade = start(tmp_path)
    n_recorded = sum(len(race.racers) for race in races_of(facade.scenario))
    assert facade.runhistory.finished >= n_recorded  # and results of races that were not over
    facade.optimize()
    assert_same_result(facade, reference)


def test_raised_trials_are_planned_alike_whatever_the_workers(
    tmp_path: Path, four_workers: Client
) -> None:
    results = []
    for directory, client in {"one": None, "four": four_workers}.items():
        start(tmp_path / directory, dask_client=client).optimize()
        facade = start(tmp_path / directory, n_trials=450, dask_client=client)
        plans = list(facade.intensifier.engine.plans)
        assert len(plans) == 2
        results.append((dict(facade.optimize()), winners(facade), plans))
        assert facade.runhistory.submitted <= 450
    assert results[0] == results[1]


@pytest.mark.parametrize("moment", [31, 150])
def test_a_stock_facade_goes_on(
    moment: int, tmp_path: Path, in_process: Callable[..., int], reference: Any
) -> None:
    given = {"n_trials": N_TRIALS}
    arguments = (RandomFacade, tmp_path, moment, given, EARLY)
    assert in_process(run_stock_and_be_killed, *arguments) == -signal.SIGKILL
    smac = in_stock(RandomFacade, tmp_path, noisy_and_killed)
    assert smac.runhistory.finished == moment - 1
    smac.optimize()
    assert_same_result(smac, reference)
    assert trials_of(smac) == trials_of(reference)


def test_a_stock_facade_leaves_needless_trials_that_were_running(
    tmp_path: Path, reference: Any
) -> None:
    first = in_stock(RandomFacade, tmp_path)
    asked = ask_all(first)
    needed = {(x, seed) for x, _, seed in trials_of(reference)}
    told = [info for info in asked if (info.config["x"], info.seed) in needed]
    for info in told:
        answer(first, info)
    first.optimizer.save()
    again = in_stock(RandomFacade, tmp_path)
    n_running = len(asked) - len(told)
    assert (again.runhistory.finished, again.runhistory.running) == (len(told), n_running)
    again.optimize()
    assert_same_result(again, reference)
    assert again.runhistory.running == n_running
