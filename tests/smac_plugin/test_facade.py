"""ACBandFacade in place of one of SMAC's: budgets, incumbents, crashes, refusals, logs."""

from __future__ import annotations

import contextlib
import itertools
import logging
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ConfigSpace import Configuration
from dask.distributed import Client
from hypothesis import given, settings
from hypothesis import strategies as st
from smac import Scenario
from smac.callback.callback import Callback
from smac.facade.abstract_facade import AbstractFacade
from smac.main.smbo import SMBO
from smac.model.random_model import RandomModel
from smac.runhistory.dataclasses import TrialInfo, TrialValue
from smac.runhistory.enumerations import StatusType
from smac.runner.abstract_runner import AbstractRunner
from smac.runner.abstract_serial_runner import AbstractSerialRunner
from targets import (
    PAPER,
    a_scenario,
    always_crashing,
    busy,
    exact,
    noise,
    noisy,
    often_crashing,
    on_instance,
    only,
    races_of,
    without_times,
)

from acband_configspace import ACBandFacade, ACBandIntensifier, Schedule
from acband_configspace.benchmark.simulation import simulate
from acband_configspace.benchmark.tables import RuntimeTable
from acband_configspace.core.acband import acband
from acband_configspace.core.paper_races import PaperRaces
from acband_configspace.core.race import Outcome, Race
from acband_configspace.errors import FirstRaceCrashedError


def quiet(
    scenario: Scenario, target: Callable[..., Any] | str | AbstractRunner | None, **options: Any
) -> ACBandFacade:
    if "intensifier" not in options:
        options = {**PAPER, **options}
    return ACBandFacade(scenario, target, logging_level=False, **options)


# --- a facade of SMAC's ----------------------------------------------------------------------


def test_it_is_one_of_smacs_facades(make_scenario: Callable[..., Scenario]) -> None:
    facade = quiet(make_scenario(), noisy)
    assert isinstance(facade, AbstractFacade)
    assert isinstance(facade.optimizer, SMBO)
    assert isinstance(facade.optimize(), Configuration)
    assert isinstance(facade._model, RandomModel), "a surrogate was built"
    assert facade._config_selector._model is facade._model


def test_the_plan_is_there_before_anything_runs_and_is_what_is_done(
    make_scenario: Callable[..., Scenario], caplog: pytest.LogCaptureFixture
) -> None:
    calls = []

    def target(config: Configuration, seed: int) -> float:
        calls.append(seed)
        return noisy(config, seed)

    with caplog.at_level(logging.INFO, logger="acband_configspace"):
        facade = quiet(make_scenario(), target)
        plan = facade.schedule
        assert isinstance(plan, Schedule)
        assert not calls
        assert str(plan) in caplog.text
        facade.optimize()
    assert caplog.text.count("AC-Band is finished: all planned races are judged.") == 1
    races = races_of(facade.scenario)
    assert len(races) == plan.n_races == len({race.key for race in races})
    assert len(calls) == plan.n_trials == facade.runhistory.finished
    assert len(facade.runhistory.get_configs()) == plan.n_configs + 1


def test_options_reach_the_intensifier(make_scenario: Callable[..., Scenario]) -> None:
    scenario = make_scenario(n_trials=300)
    facade = quiet(scenario, noisy, k=3, n_candidates=9, delta=0.1)
    assert (facade.schedule.k, facade.schedule.n_candidates, facade.schedule.delta) == (3, 9, 0.1)
    intensifier = ACBandFacade.get_intensifier(scenario, k=4)
    assert quiet(scenario, noisy, intensifier=intensifier, overwrite=True).schedule.k == 4
    with pytest.raises(TypeError, match="k must be given to the intensifier"):
        quiet(scenario, noisy, intensifier=intensifier, k=3)
    with pytest.raises(TypeError, match="must be an ACBandIntensifier but got"):
        quiet(scenario, noisy, intensifier=object())


@pytest.mark.parametrize(
    ("option", "error"),
    [
        ({"k": 1}, "k must be at least 2 but got 1"),
        ({"alpha": 1.5}, "alpha must lie strictly between 0 and 1 but got 1.5"),
        ({"delta": 0}, "delta must lie strictly between 0 and 1 but got 0"),
        ({"n_candidates": 0}, "n_candidates must be at least 1 but got 0"),
        ({"budget": 0}, "budget must be at least 1 but got 0"),
        ({"statistic": "luck"}, "statistic must be .* but got 'luck'"),
        ({"first": "best"}, "first must be 'default' or 'random' but got 'best'"),
        ({"test_instances": []}, "test_instances must not be empty"),
        ({"test_instances": "abc"}, "test_instances must be a list of names but got 'abc'"),
        ({"par": "x"}, "par must be a .*number but got 'x'"),
        ({"par": np.nan}, "par must be .* but got nan"),
        ({"clock": "x"}, "clock must be 'wall' or 'cpu' but got 'x'"),
        ({"grace": -1}, "grace must be at least 0 but got -1"),
        ({"success_codes": 5}, "success_codes must be a collection of exit codes but got 5"),
        ({"to_arguments": 5}, "to_arguments must be a function but got 5"),
        ({"read_result": 5}, "read_result must be a function but got 5"),
        ({"worker_timeout": "x"}, "worker_timeout must be .* but got 'x'"),
        ({"dask_client": 5}, "dask_client must be a dask.distributed.Client but got 5"),
        ({"callbacks": [5]}, "callbacks must be a list of callbacks .* but got"),
        ({"racing": 1}, "racing must be True or False but got 1"),
        ({"overwrite": "x"}, "overwrite must be True or False but got 'x'"),
        ({"allow_crashes": 3}, "allow_crashes must be True or False but got 3"),
        ({"directory": 5}, "directory must be a path but got 5"),
    ],
)
def test_wrong_options_are_refused_at_the_door(
    option: dict[str, Any], error: str, tmp_path: Path
) -> None:
    for target in (noisy, "./a-script", None):
        for mode in ({}, {"racing": True}):
            with pytest.raises((ValueError, TypeError), match=error):
                quiet(a_scenario(tmp_path / "out"), target, **{**mode, **option})
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("n_trials", 1),
        ("n_trials", 10.5),
        ("n_workers", 1.5),
        ("n_workers", 0),
        ("n_workers", -3),
        ("trial_memory_limit", np.nan),
        ("trial_walltime_limit", 0),
        ("walltime_limit", np.nan),
        ("seed", "x"),
        ("seed", -2),
        ("crash_cost", "x"),
        ("crash_cost", np.nan),
        ("termination_cost_threshold", "x"),
        ("deterministic", "x"),
    ],
)
def test_wrong_settings_of_the_scenario_are_refused_at_the_door(
    setting: str, value: float | str, tmp_path: Path
) -> None:
    scenario = a_scenario(tmp_path / "out", **{setting: value})
    for racing in (False, True):
        with pytest.raises((ValueError, TypeError), match=f"{setting} must be .* but got"):
            quiet(scenario, noisy, racing=racing)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("objectives", ["cost", "quality"]),
        ("min_budget", 1),
        ("max_budget", 10),
        ("adaptive_capping", True),
        ("runtime_cutoff", 5),
    ],
)
def test_what_is_not_supported_is_refused_by_name(
    setting: str, value: bool | int | list[str], make_scenario: Callable[..., Scenario]
) -> None:
    scenario = make_scenario(**{setting: value})
    with pytest.raises(ValueError, match=f"{setting} must be .* for AC-Band"):
        ACBandIntensifier(scenario)
    with pytest.raises(ValueError, match=f"{setting} must be .* for AC-Band"):
        quiet(scenario, noisy)


def test_instances_that_come_twice_are_refused(make_scenario: Callable[..., Scenario]) -> None:
    with pytest.raises(ValueError, match="instances must be distinct but got \\['a'\\]"):
        quiet(make_scenario(instances=["a", "b", "a"]), on_instance)


# --- budgets ---------------------------------------------------------------------------------


class Instant(AbstractSerialRunner):
    """A runner of one's own: SMAC's copies the whole space for every trial."""

    def run(
        self,
        config: Mapping[str, Any],
        instance: str | None = None,
        budget: Any = None,
        seed: int | None = None,
        additional_info: dict[str, Any] | None = None,
    ) -> Any:
        return StatusType.SUCCESS, exact(config, seed), 0.0, 0.0, {}


@pytest.mark.parametrize(("n_trials", "k"), [(2, 2), (7, 2), (7, 5), (100, 2), (100, 5), (5000, 2)])
def test_n_trials_are_used_but_never_more_and_no_race_is_cut(
    n_trials: int, k: int, make_scenario: Callable[..., Scenario]
) -> None:
    scenario = make_scenario(n_trials=n_trials)
    facade = quiet(scenario, Instant(scenario), k=k)
    facade.optimize()
    history = facade.runhistory
    assert history.finished == history.submitted == facade.schedule.n_trials <= n_trials
    assert history.finished >= 0.9 * n_trials or n_trials < 100
    racers = {race.key.seed: len(race.racers) for race in races_of(facade.scenario)}
    assert Counter(key.seed for key in history) == racers


@given(n_trials=st.integers(2, 150), k=st.integers(2, 6), n=st.integers(0, 12), seed=st.integers(0))
@settings(max_examples=15)
def test_whatever_the_numbers_races_are_whole(
    n_trials: int, k: Any, n: Any, seed: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    names = [f"i{i}" for i in range(n)] or None
    scenario = a_scenario(
        tmp_path_factory.mktemp("whole"),
        n_trials=n_trials,
        instances=names,
        deterministic=seed % 2 == 0,
        seed=seed % 2**32,
    )
    target = exact if names is None else lambda config, instance, seed: exact(config, seed)
    facade = quiet(scenario, target, k=k)
    assert facade.optimize() is not None
    assert facade.runhistory.running == 0
    assert facade.runhistory.finished <= n_trials
    assert len(races_of(scenario)) == facade.intensifier.n_races == facade.schedule.n_races


def test_a_budget_of_races_is_kept(make_scenario: Callable[..., Scenario]) -> None:
    facade = quiet(make_scenario(n_trials=1000), noisy, budget=50, n_candidates=5)
    facade.optimize()
    assert facade.intensifier.n_races == facade.schedule.n_races <= 50
    assert facade.intensifier.n_races > 40


def test_what_n_trials_cannot_afford_is_refused_with_the_least(
    make_scenario: Callable[..., Scenario],
) -> None:
    with pytest.raises(ValueError, match="n_trials must be at least (\\d+)") as error:
        quiet(make_scenario(n_trials=100), noisy, alpha=0.05)
    least = int(str(error.value).split("at least ")[1].split()[0])
    assert quiet(make_scenario(n_trials=least), noisy, alpha=0.05).schedule.n_trials <= least
    with pytest.raises(ValueError, match="n_trials must be at least"):
        quiet(make_scenario(n_trials=least - 1), noisy, alpha=0.05, overwrite=True)
    with pytest.raises(ValueError, match="budget must fit into n_trials=60 but 100 races"):
        quiet(make_scenario(), noisy, budget=100, n_candidates=5)


def test_what_cannot_be_planned_leaves_no_files(make_scenario: Callable[..., Scenario]) -> None:
    scenario = make_scenario(n_trials=100)
    with pytest.raises(ValueError, match="n_trials must be at least"):
        quiet(scenario, noisy, alpha=0.05)
    assert not list(scenario.output_directory.glob("*.json*"))


@pytest.mark.parametrize(
    ("limit", "target"), [({"walltime_limit": 2.5}, exact), ({"cputime_limit": 0.7}, busy)]
)
def test_a_time_limit_means_passes_of_doubling_budget(
    limit: dict[str, Any], target: Callable[..., Any], make_scenario: Callable[..., Scenario]
) -> None:
    facade = quiet(make_scenario(n_trials=100_000, **limit), target)
    incumbent = facade.optimize()
    plans = facade.intensifier.engine.plans
    assert len(plans) >= 2
    sizes = [plan.schedule.n_trials for plan in plans]
    for before, after in itertools.pairwise(sizes):
        assert after == pytest.approx(2 * before, rel=0.1)
    assert sizes[0] < facade.runhistory.finished < sum(sizes)
    winners = itertools.chain(*facade.intensifier.get_state()["epoch_winners"])
    assert facade.runhistory.config_ids[incumbent] == list(winners)[-1]


@pytest.mark.parametrize("racing", [False, True])
def test_a_time_limit_ends_what_was_submitted_last(
    racing: bool, make_scenario: Callable[..., Scenario]
) -> None:
    settings = {"n_trials": 4, "walltime_limit": 0.5, "n_workers": 4, "trial_walltime_limit": 500}
    facade = quiet(make_scenario(**settings), sleepy, racing=racing)
    before = time.process_time()
    facade.optimize()
    assert time.process_time() - before < 5, "it waits, it does not spin"
    assert {value.status for value in facade.runhistory.values()} == {StatusType.TIMEOUT}


def sleepy(config: Mapping[str, Any], seed: int) -> None:
    time.sleep(100)


def test_under_a_time_limit_n_trials_holds_too(make_scenario: Callable[..., Scenario]) -> None:
    facade = quiet(make_scenario(n_trials=250, walltime_limit=600), exact)
    facade.optimize()
    assert len(facade.intensifier.engine.plans) == 2
    assert 230 < facade.runhistory.finished <= 250


def test_each_pass_starts_from_the_last_winner(make_scenario: Callable[..., Scenario]) -> None:
    facade = quiet(make_scenario(n_trials=720, walltime_limit=600), exact)
    facade.optimize()
    winners = facade.intensifier.get_state()["epoch_winners"]
    assert len(winners) >= 3
    races = races_of(facade.scenario)
    ids = facade.runhistory.config_ids
    plans = facade.intensifier.engine.plans
    for plan, winner in zip(plans, [w[-1] for w in winners[:-1]], strict=False):
        races = races[plan.schedule.n_races :]
        racers = {n for race in races for n in race.racers}
        assert winner in {ids[facade.intensifier.configurations[n]] for n in racers}


def test_the_termination_threshold_ends_the_run(make_scenario: Callable[..., Scenario]) -> None:
    facade = quiet(make_scenario(n_trials=500, termination_cost_threshold=0.1), noisy)
    facade.optimize()
    means = [facade.runhistory.average_cost(c) for c in facade.runhistory.get_configs()]
    assert min(means) < 0.1
    assert facade.runhistory.finished < 250


# --- instances -------------------------------------------------------------------------------


def test_instances_are_fresh_as_long_as_there_are_any(
    make_scenario: Callable[..., Scenario],
) -> None:
    names = [f"i{n}" for n in range(200)]
    facade = quiet(make_scenario(n_trials=300, instances=names, deterministic=True), on_instance)
    facade.optimize()
    keys = [race.key for race in races_of(facade.scenario)]
    assert len({key.instance for key in keys}) == len(keys) > 140


def test_instances_and_seeds_make_pairs(make_scenario: Callable[..., Scenario]) -> None:
    facade = quiet(make_scenario(n_trials=100, instances=["a", "b", "c"]), on_instance)
    facade.optimize()
    keys = [race.key for race in races_of(facade.scenario)]
    assert len(set(keys)) == len(keys) > 40
    counts = Counter(key.instance for key in keys).values()
    assert max(counts) - min(counts) <= 1


def test_few_instances_are_used_again_but_known_results_are_not_run_again(
    make_scenario: Callable[..., Scenario],
) -> None:
    calls: Counter[tuple[float, str]] = Counter()

    def target(config: Configuration, instance: str, seed: int) -> float:
        calls[config["x"], instance] += 1
        return on_instance(config, instance, seed)

    names = [f"i{n}" for n in range(8)]
    scenario = make_scenario(n_trials=200, instances=names, deterministic=True)
    facade = quiet(scenario, target)
    facade.optimize()
    assert set(calls.values()) == {1}
    races = races_of(scenario)
    assert sum(len(race.racers) for race in races) > sum(calls.values())
    costs = defaultdict(set)
    for race in races:
        for number, trial in zip(race.racers, race.trials, strict=True):
            costs[number, race.key].add(trial.cost)
    assert {len(values) for values in costs.values()} == {1}


def test_races_of_known_results_are_judged_also_after_the_last_trial(
    make_scenario: Callable[..., Scenario],
) -> None:
    """One epoch, in which all trials are those of the first round."""
    facade = quiet(make_scenario(deterministic=True, n_trials=100), exact, n_epochs=1)
    incumbent = facade.optimize()
    assert facade.runhistory.finished == 100
    assert facade.intensifier.finished is not None
    assert incumbent == min(facade.runhistory.get_configs(), key=lambda c: exact(c, 0))


def test_the_target_is_told_which_configuration_it_has(
    make_scenario: Callable[..., Scenario],
) -> None:
    seen = set()

    def target(config: Configuration, seed: int) -> float:
        seen.add((config.config_id, config.origin))
        return noisy(config, seed)

    facade = quiet(make_scenario(), target)
    facade.optimize()
    configs = facade.runhistory.get_configs()
    assert seen == {(facade.runhistory.get_config_id(c), c.origin) for c in configs}


def test_a_deterministic_target_without_instances_is_run_once_per_configuration(
    make_scenario: Callable[..., Scenario],
) -> None:
    calls: Counter[float] = Counter()

    def target(config: Configuration, seed: int) -> float:
        calls[config["x"]] += 1
        return exact(config, seed)

    facade = quiet(make_scenario(n_trials=80, deterministic=True), target)
    incumbent = facade.optimize()
    assert set(calls.values()) == {1}
    assert 70 < len(calls) <= 80
    assert abs(incumbent["x"] - 0.3) == min(abs(x - 0.3) for x in calls)


# --- the same whatever drives it -------------------------------------------------------------


EARLY = {"early_stopping": 0.0, "playoff": 30, "n_candidates": 8}


@pytest.mark.parametrize("options", [PAPER, EARLY])
def test_four_workers_do_the_same_as_one(
    options: dict[str, Any], tmp_path: Path, four_workers: Client
) -> None:
    results = {}
    for workers, client in {"one": None, "four": four_workers}.items():
        scenario = a_scenario(tmp_path / workers, n_trials=120)
        facade = quiet(scenario, noisy, dask_client=client, **options)
        incumbent = facade.optimize()
        results[workers] = (dict(incumbent), without_times(races_of(scenario)))
    assert results["one"][0] == results["four"][0]
    if options is PAPER:
        assert results["one"] == results["four"]
    else:  # some were running already when their group was decided
        assert all(race in results["four"][1] for race in results["one"][1])


@pytest.mark.parametrize("n_workers", [2, 4])
def test_with_workers_it_does_the_same_and_validates_alike(n_workers: int, tmp_path: Path) -> None:
    alone = quiet(a_scenario(tmp_path / "one"), noisy)
    incumbent = alone.optimize()
    together = quiet(a_scenario(tmp_path / "more", n_workers=n_workers), noisy)
    assert together.optimize() == incumbent
    races = [without_times(races_of(facade.scenario)) for facade in (alone, together)]
    assert races[0] == races[1]
    assert together.validate(incumbent) == alone.validate(incumbent)


@pytest.mark.parametrize("statistic", ["wins", "mean"])
@pytest.mark.parametrize("k", [2, 4])
def test_it_finds_what_the_core_and_the_simulation_find(
    statistic: str, k: int, make_scenario: Callable[..., Scenario]
) -> None:
    scenario = make_scenario(n_trials=400)
    facade = quiet(scenario, noisy, k=k, statistic=statistic)
    facade.optimize()
    races = {race.id: race for race in races_of(scenario)}
    plan = facade.schedule
    assert isinstance(plan, Schedule)
    configurations = facade.intensifier.configurations
    winner = configurations.number_of(only(facade.intensifier.get_incumbent()))
    assert winner is not None

    rounds_ = acband(plan, np.random.default_rng([scenario.seed, 2]))
    stream = PaperRaces(rounds_, statistic=statistic, early_stopping=None)
    numbers = {}
    while isinstance(race := stream.ask(), Race):
        numbers[race.id] = race.instance
        seed = races[race.id].key.seed
        stream.tell(race, Outcome([noisy(configurations[n], seed) for n in race.racers]))
    assert stream.winner == winner

    # A table in which the simulation finds just these costs.
    shape = (plan.n_configs + 1, plan.n_races)
    arguments = {
        "budget": plan.budget,
        "k": k,
        "n_candidates": plan.n_candidates,
        "statistic": statistic,
        "seed": scenario.seed,
        **PAPER,
    }
    drawn = simulate(RuntimeTable(np.ones(shape), cutoff=9.0), **arguments)
    times = np.ones(shape)
    for place, record in races.items():
        for racer, trial in zip(record.racers, record.trials, strict=True):
            times[drawn.configurations[racer], drawn.instances[numbers[place]]] = trial.cost
    result = simulate(RuntimeTable(times, cutoff=9.0), **arguments)
    assert result.incumbent == drawn.configurations[winner]


# --- incumbents ------------------------------------------------------------------------------


class Watching(Callback):
    """Notes what a callback sees."""

    def __init__(self) -> None:
        self.events: Counter[str] = Counter()
        self.incumbents: list[Configuration | None] = []

    def on_start(self, smbo: SMBO) -> None:
        self.events["start"] += 1

    def on_end(self, smbo: SMBO) -> None:
        self.events["end"] += 1

    def on_ask_end(self, smbo: SMBO, info: TrialInfo) -> None:
        self.events["asked"] += 1

    def on_tell_end(self, smbo: SMBO, info: TrialInfo, value: TrialValue) -> None:
        self.events["told"] += 1
        self.incumbents.append(smbo.intensifier.get_incumbent())


def test_the_incumbent_is_the_default_and_then_the_newest_epoch_winner(
    make_scenario: Callable[..., Scenario],
) -> None:
    watching = Watching()
    scenario = make_scenario(n_trials=300)
    facade = quiet(scenario, noisy, callbacks=[watching])
    incumbent = facade.optimize()
    n_trials = facade.runhistory.finished
    assert watching.events == {"start": 1, "end": 1, "asked": n_trials, "told": n_trials}

    seen = [c for c in watching.incumbents if c is not None]
    changes = [seen[0], *(b for a, b in itertools.pairwise(seen) if a != b)]
    default = scenario.configspace.get_default_configuration()
    ids = facade.runhistory.config_ids
    (winners,) = facade.intensifier.get_state()["epoch_winners"]
    distinct = [winners[0], *(b for a, b in itertools.pairwise(winners) if a != b)]
    assert default in changes
    after_default = changes[changes.index(default) + 1 :]
    assert [ids[c] for c in after_default] == distinct[ids[default] == distinct[0] :]
    assert ids[incumbent] == winners[-1]

    trajectory = facade.intensifier.trajectory
    assert facade.intensifier.incumbents_changed == len(trajectory) == len(changes)
    assert [item.config_ids for item in trajectory] == [[ids[c]] for c in changes]
    trials = [item.trial for item in trajectory]
    assert trials == sorted(trials)
    assert trials[-1] <= n_trials
    costs = [item.costs[0] for item in trajectory]
    assert costs == sorted(costs, reverse=True)


def test_print_stats_says_what_was_done(
    make_scenario: Callable[..., Scenario], caplog: pytest.LogCaptureFixture
) -> None:
    facade = quiet(make_scenario(), noisy)
    facade.optimize()
    with caplog.at_level(logging.INFO, logger="smac"):
        facade.optimizer.print_stats()
    n_trials, n_configs = facade.schedule.n_trials, facade.schedule.n_configs + 1
    assert f"Finished trials: {n_trials} / 60" in caplog.text
    assert f"Configurations: {n_configs}" in caplog.text
    assert f"Incumbent changed: {len(facade.intensifier.trajectory)}" in caplog.text


def test_a_callback_may_end_the_run(make_scenario: Callable[..., Scenario]) -> None:
    class Enough(Callback):
        def on_tell_end(self, smbo: SMBO, info: TrialInfo, value: TrialValue) -> bool:
            return smbo.runhistory.finished < 10

    facade = quiet(make_scenario(), noisy, callbacks=[Enough()])
    assert facade.optimize() is not None
    assert facade.runhistory.finished == 10


# --- crashes ---------------------------------------------------------------------------------


@pytest.mark.parametrize("crash_cost", [np.inf, 10.0])
@pytest.mark.parametrize("statistic", ["wins", "mean"])
def test_a_target_that_crashes_half_the_time(
    statistic: str, crash_cost: float, make_scenario: Callable[..., Scenario]
) -> None:
    scenario = make_scenario(n_trials=200, crash_cost=crash_cost)
    facade = quiet(scenario, often_crashing, statistic=statistic)
    incumbent = facade.optimize()
    statuses = Counter(value.status for value in facade.runhistory.values())
    assert set(statuses) == {StatusType.SUCCESS, StatusType.CRASHED}
    assert abs(statuses[StatusType.CRASHED] / statuses.total() - 0.5) < 0.1
    assert min(facade.runhistory.min_cost(incumbent), 5.0) < 5.0, "it only crashed"
    if statistic == "wins":  # the mean of what crashed once may be infinite
        assert abs(incumbent["x"] - 0.3) < 0.25


def test_those_that_always_crash_lose(make_scenario: Callable[..., Scenario]) -> None:
    def target(config: Configuration, seed: int) -> float:
        if config["x"] > 0.4:
            raise RuntimeError("too large")
        return 1.0 - config["x"]  # those that work better are nearer to those that crash

    seen = Watching()
    facade = quiet(make_scenario(n_trials=200, seed=6), target, callbacks=[seen])
    incumbent = facade.optimize()
    assert 0.2 < incumbent["x"] <= 0.4
    assert all(c["x"] <= 0.4 for c in seen.incumbents if c is not None)


def test_an_epoch_that_nobody_survives_keeps_the_proven_incumbent(
    make_scenario: Callable[..., Scenario],
) -> None:
    n_calls = 0

    def target(config: Configuration, seed: int) -> float:
        nonlocal n_calls
        n_calls += 1
        if n_calls > facade.schedule.epochs[0].n_trials:
            raise RuntimeError("the machine broke down")
        return noisy(config, seed)

    facade = quiet(make_scenario(n_trials=200), target)
    incumbent = facade.optimize()
    (winners,) = facade.intensifier.get_state()["epoch_winners"]
    assert len(winners) > 1
    assert facade.runhistory.config_ids[incumbent] == next(
        id_
        for id_ in reversed(winners)
        if facade.runhistory.min_cost(facade.runhistory.get_config(id_)) < np.inf
    )


@pytest.mark.parametrize("statistic", ["wins", "mean"])
@pytest.mark.parametrize("crash_cost", [np.inf, 10.0])
def test_if_all_crash_in_the_first_round_the_error_shows_why(
    crash_cost: float, statistic: str, make_scenario: Callable[..., Scenario]
) -> None:
    facade = quiet(make_scenario(crash_cost=crash_cost), always_crashing, statistic=statistic)
    with pytest.raises(FirstRaceCrashedError, match="no licence found") as error:
        facade.optimize()
    assert "always_crashing" in str(error.value), "where it happened"
    assert facade.runhistory.finished == facade.schedule.epochs[0].rounds[0].n_races * 2
    assert facade.intensifier.get_incumbent() is None


def test_if_all_trials_crash_the_error_shows_why_though_there_is_only_one_round(
    make_scenario: Callable[..., Scenario],
) -> None:
    facade = ACBandFacade(make_scenario(n_trials=3), always_crashing, logging_level=False)
    with pytest.raises(FirstRaceCrashedError, match="no licence found"):
        facade.optimize()


@pytest.mark.parametrize("seed", range(3))
def test_a_default_that_crashes_does_not_end_a_healthy_run(
    seed: int, make_scenario: Callable[..., Scenario]
) -> None:
    def target(config: Configuration, seed: int) -> float:
        if config["x"] > 0.4:
            raise RuntimeError("too large")
        return noisy(config, seed)

    facade = ACBandFacade(make_scenario(seed=seed), target, logging_level=False)
    assert facade.optimize()["x"] <= 0.4
    assert facade.runhistory.finished == 60


@pytest.mark.parametrize(("n_workers", "racing"), [(1, False), (2, False), (8, True)])
def test_a_target_that_was_repaired_meanwhile_goes_on(
    n_workers: int, racing: bool, make_scenario: Callable[..., Scenario], tmp_path: Path
) -> None:
    repaired = tmp_path / "repaired"

    def target(config: Mapping[str, Any], seed: int) -> float:
        return noisy(config, seed) if repaired.exists() else always_crashing(config, seed)

    facade = quiet(make_scenario(n_workers=n_workers), target, racing=racing)
    with pytest.raises(FirstRaceCrashedError):
        facade.optimize()
    assert not facade.check()  # nothing is left over from the run
    repaired.touch()
    incumbent = facade.optimize()
    assert facade.intensifier.finished is not None
    if not racing:
        assert incumbent == quiet(make_scenario(name="other"), noisy).optimize()
    races = races_of(facade.scenario)
    assert [trial.info.get("race") for race in races for trial in race.trials] == [
        str(race.id) if racing else None for race in races for _ in race.trials
    ]
    assert facade.runhistory.submitted == facade.runhistory.finished == facade.schedule.n_trials


def test_a_target_that_was_repaired_starts_anew(make_scenario: Callable[..., Scenario]) -> None:
    with pytest.raises(FirstRaceCrashedError):
        quiet(make_scenario(), always_crashing).optimize()
    assert quiet(make_scenario(), noisy).optimize() is not None


def test_the_first_race_is_the_first_whatever_finishes_first(tmp_path: Path) -> None:
    """Told in another order, a later race that crashes is no reason to stop."""
    facade = quiet(a_scenario(tmp_path), None)
    first, second, *others = [facade.ask() for _ in range(4)]
    for info in others:
        facade.tell(info, TrialValue(cost=np.inf, status=StatusType.CRASHED))
    for info in (first, second):
        facade.tell(info, TrialValue(cost=1.0))
    assert facade.intensifier.get_incumbent() in (first.config, second.config)


@pytest.mark.parametrize("cost", [np.nan, np.inf, -np.inf, None])
def test_costs_that_are_no_numbers_are_crashes(
    cost: float | None, make_scenario: Callable[..., Scenario]
) -> None:
    def target(config: Configuration, seed: int) -> float | None:
        return cost if config["x"] > 0.5 else 0.5

    facade = quiet(make_scenario(n_trials=100), target)
    incumbent = facade.optimize()
    assert incumbent["x"] <= 0.5
    for key, value in facade.runhistory.items():
        good = facade.runhistory.get_config(key.config_id)["x"] <= 0.5
        assert value.status == (StatusType.SUCCESS if good else StatusType.CRASHED)


def test_a_first_race_of_timeouts_is_no_crash(tmp_path: Path) -> None:
    """With SMAC's default crash_cost, infinity, it calls a limit that was met a crash."""
    facade = quiet(a_scenario(tmp_path, trial_walltime_limit=1), None)
    for info in [facade.ask(), facade.ask()]:
        facade.tell(info, TrialValue(cost=np.inf, time=0.0, status=StatusType.CRASHED))
    assert facade.intensifier.n_races == 1
    assert facade.ask() is not None


# --- logging ---------------------------------------------------------------------------------


@pytest.mark.parametrize("level", [None, logging.DEBUG, False])
def test_the_root_logger_is_left_alone(level: Any, make_scenario: Callable[..., Scenario]) -> None:
    root = logging.getLogger()
    handler = logging.NullHandler()
    root.addHandler(handler)
    try:
        before = (list(root.handlers), root.level)
        ACBandFacade(make_scenario(n_trials=10), noisy, logging_level=level).optimize()
        assert (list(root.handlers), root.level) == before
    finally:
        root.removeHandler(handler)
        for name in ("smac", "acband_configspace"):
            logging.getLogger(name).setLevel(logging.NOTSET)


def test_instances_without_features_are_nothing_to_warn_of(
    make_scenario: Callable[..., Scenario], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        quiet(make_scenario(instances=["a", "b"]), on_instance).optimize()
    assert not caplog.records


def test_the_directory_may_be_anywhere(tmp_path: Path) -> None:
    with contextlib.chdir(tmp_path):
        facade = quiet(a_scenario(Path("here")), noisy)
        facade.optimize()
    assert (tmp_path / "here" / "run" / "3" / "journal.jsonl").exists()


def test_noise_is_what_the_tests_take_it_for() -> None:
    assert noise("a", 1) == noise("a", 1) != noise("a", 2)


@pytest.mark.parametrize("n_workers", [1, 2])
def test_a_serial_runner_of_ones_own_is_said_to_have_no_workers(
    n_workers: int, make_scenario: Callable[..., Scenario], caplog: pytest.LogCaptureFixture
) -> None:
    scenario = make_scenario(n_workers=n_workers)
    quiet(scenario, Instant(scenario))
    said = "n_workers=2 has no effect on a runner of your own: Instant runs one trial after the"
    assert (said in caplog.text) == (n_workers == 2)
