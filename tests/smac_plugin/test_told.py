"""Results that are told before the first race: on record, numbered, and the best of them race."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from ConfigSpace import Configuration, ConfigurationSpace, Integer
from smac.runhistory.dataclasses import TrialInfo, TrialValue
from targets import a_scenario, a_space, answer, noisy, on_instance, quiet

from acband_configspace import ACBandFacade
from acband_configspace.core.instances import InstanceKey
from acband_configspace.errors import FirstRaceCrashedError
from acband_configspace.runlog.recovery import recover
from acband_configspace.runlog.replay import Run
from acband_configspace.smac_plugin.runhistory import FIRST_FOREIGN
from acband_configspace.smac_plugin.told import Told
from acband_configspace.smac_plugin.trial_values import ToldTrial

SPACE = a_space()
CONFIGS = SPACE.sample_configuration(6)


def a_trial(number: int, cost: float, *, seed: int = 1, warm: bool = False) -> ToldTrial:
    return ToldTrial(CONFIGS[number], InstanceKey(None, seed), TrialValue(cost=cost), warm)


def strangers(n: int) -> list[Configuration]:
    """Return configurations that no run here draws, of a space that is equal to that of a run."""
    space = a_space()
    space.seed(99)
    return space.sample_configuration(max(n, 2))[:n]  # of one, ConfigSpace makes no list


def tell_all(facade: ACBandFacade, configs: list[Configuration], *, seed: int = 5) -> None:
    for config in configs:
        facade.tell(TrialInfo(config, seed=seed), TrialValue(cost=noisy(config, seed)))


def costs_of(facade: ACBandFacade) -> dict[tuple[Any, ...], object]:
    history = facade.runhistory
    return {(*history.get_config(k.config_id).values(), k.seed): v.cost for k, v in history.items()}


def assert_one_id_each(facade: ACBandFacade) -> None:
    """Each configuration has one id, which is its number unless it has none."""
    history = facade.runhistory
    assert len(costs_of(facade)) == len(history)
    assert len({tuple(config.items()) for config in history.get_configs()}) == len(
        history.ids_config
    )
    for config, id_ in history.config_ids.items():
        number = facade.intensifier.configurations.number_of(config)
        assert id_ == number or (number is None and id_ > FIRST_FOREIGN)


# --- what is counted --------------------------------------------------------------------------


def test_a_trial_counts_once_by_its_values_and_instance() -> None:
    told = Told([a_trial(0, 0.5, warm=True), a_trial(1, 0.4), a_trial(1, 0.6, seed=2)])
    copy = Configuration(a_space(), dict(CONFIGS[1]))
    told.add(ToldTrial(copy, InstanceKey(None, 1), TrialValue(cost=0.3)))
    assert (len(told), told.n_warm, told.n_counted) == (3, 1, 2)
    assert [trial.value.cost for trial in told] == [0.5, 0.3, 0.6]
    assert a_trial(1, 0.3) in told
    assert a_trial(1, 0.4) not in told
    told.add(a_trial(0, 0.1))
    assert (told.n_warm, told.n_counted) == (0, 3)


def test_all_of_a_warm_start_and_the_best_of_the_others_race() -> None:
    told = Told([a_trial(0, 9.0, warm=True), *(a_trial(n, 1.0 / n) for n in range(1, 6))])
    assert told.configs(most=2) == [CONFIGS[0], CONFIGS[4], CONFIGS[5]]
    assert told.configs(most=9) == list(CONFIGS)


# --- who takes part ---------------------------------------------------------------------------


def test_of_many_only_the_best_race_and_new_ones_are_drawn(tmp_path: Path) -> None:
    def start() -> ACBandFacade:
        return quiet(a_scenario(tmp_path, n_trials=200), noisy)

    facade = start()
    many = strangers(100)
    tell_all(facade, many)
    k = facade.intensifier.meta["k"]
    assert facade.intensifier.n_given == k + 1
    assert_one_id_each(facade)
    best = sorted(many, key=lambda config: noisy(config, 5))[:k]
    numbers = [facade.intensifier.configurations.number_of(config) for config in best]
    assert set(numbers) == set(range(1, k + 1))
    incumbent = facade.optimize()
    assert facade.runhistory.finished == 200
    assert len(facade.runhistory.get_configs()) > 100 + 20
    assert noisy(incumbent, 1) < 0.3
    assert Run.of(facade).problem is None
    again = start()
    for one in (facade, again):
        assert_one_id_each(one)
    assert costs_of(again) == costs_of(facade)
    assert again.intensifier.get_incumbent() == incumbent


def test_what_was_told_and_is_drawn_later_keeps_one_id(tmp_path: Path) -> None:
    def start() -> ACBandFacade:
        space = ConfigurationSpace()
        space.add(Integer("x", (0, 14)))
        return quiet(a_scenario(tmp_path, configspace=space, n_trials=90), noisy, k=2)

    facade = start()
    space = facade.scenario.configspace
    for x in range(12):
        tell_all(facade, [Configuration(space, {"x": x})], seed=100 + x)
    facade.optimize()
    history = facade.runhistory
    number_of, n_given = facade.intensifier.configurations.number_of, facade.intensifier.n_given
    raced = [c for c in history.get_configs() if len(history.get_trials(c)) > 1 and c["x"] < 12]
    assert any(number_of(config) >= n_given for config in raced)
    again = start()
    for one in (facade, again):
        configs = one.runhistory.get_configs()
        assert len({config["x"] for config in configs}) == len(one.runhistory.ids_config)
    assert costs_of(again) == costs_of(facade)


def test_what_was_told_and_is_drawn_later_takes_no_trial_twice(tmp_path: Path) -> None:
    """Of a grid that was told only the best race at once; the others are met as they are drawn."""

    def start() -> ACBandFacade:
        space = ConfigurationSpace()
        space.add(Integer("x", (0, 199)))
        scenario = a_scenario(tmp_path, configspace=space, n_trials=200, deterministic=True)
        return quiet(scenario, lambda config, seed=0: abs(config["x"] - 61.5))

    facade = start()
    space = facade.scenario.configspace
    for x in range(0, 200, 2):
        info = TrialInfo(Configuration(space, {"x": x}), seed=0)
        facade.tell(info, TrialValue(cost=abs(x - 61.5)))
    incumbent = facade.optimize()
    assert facade.runhistory.finished == 200
    assert len(facade.runhistory.get_configs()) == 200
    assert incumbent["x"] in (61, 62)
    again = start()
    assert again.optimize()["x"] == incumbent["x"]
    assert costs_of(again) == costs_of(facade)


# --- on record --------------------------------------------------------------------------------


def test_each_is_on_record_at_once_and_the_run_begins_once(tmp_path: Path) -> None:
    facade = quiet(a_scenario(tmp_path), noisy)
    journal = facade.scenario.output_directory / "journal.jsonl"
    first = journal.read_bytes()
    configs = strangers(12)
    tell_all(facade, configs)
    lines = journal.read_bytes()
    assert lines.startswith(first)
    assert lines.count(b"\n") == first.count(b"\n") + 12
    facade.ask()
    assert "told" not in [next(iter(json.loads(line))) for line in journal.open()]
    assert [dict(told.config) for told in facade.intensifier.told] == list(map(dict, configs))


def test_killed_before_the_first_trial_nothing_that_was_told_is_lost(tmp_path: Path) -> None:
    """Nobody says goodbye: what the next process reads is what is on disk after each result."""
    facade = quiet(a_scenario(tmp_path), noisy)
    configs = strangers(3)
    for n_told, config in enumerate(configs, 1):
        tell_all(facade, [config])
        copy = tmp_path / f"after {n_told}"
        journal = facade.scenario.output_directory / "journal.jsonl"
        target = quiet(a_scenario(copy), noisy).scenario.output_directory / "journal.jsonl"
        target.write_bytes(journal.read_bytes())
        again = quiet(a_scenario(copy), noisy)
        assert costs_of(again) == costs_of(facade)
        assert again.intensifier.n_given == n_told + 1
        assert_one_id_each(again)


def test_a_configuration_of_another_space_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    facade = quiet(a_scenario(tmp_path), noisy)
    other = ConfigurationSpace({"x": (0.0, 9.0), "n": (1, 100)})
    wrong = Configuration(other, {"x": 7.0, "n": 3})
    with pytest.raises(ValueError, match="config must be of the scenario's space but got"):
        facade.tell(TrialInfo(wrong, seed=5), TrialValue(cost=0.5))
    assert len(facade.intensifier.told) == len(facade.runhistory) == 0
    tell_all(facade, strangers(1))
    assert len(facade.intensifier.told) == len(facade.runhistory) == 1


def test_a_configuration_of_an_equal_space_with_another_name_takes_part(tmp_path: Path) -> None:
    facade = quiet(a_scenario(tmp_path, deterministic=True), noisy)
    other = ConfigurationSpace("theirs", space={"x": (0.0, 1.0), "n": (1, 100)})
    good = Configuration(other, {"x": 0.25, "n": 3})
    facade.tell(TrialInfo(good), TrialValue(cost=-1.0))
    assert dict(facade.optimize()) == dict(good)
    asked = quiet(a_scenario(tmp_path / "asked"), noisy)
    info = asked.ask()
    theirs = Configuration(other, dict(info.config))
    asked.tell(TrialInfo(theirs, seed=info.seed), TrialValue(cost=0.5))
    assert (asked.runhistory.finished, asked.runhistory.running) == (1, 0)


# --- restarts ---------------------------------------------------------------------------------


def test_after_a_restart_in_the_first_race_what_is_told_changes_no_numbers(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    facade = quiet(a_scenario(tmp_path), noisy)
    for info in [facade.ask() for _ in range(3)]:
        answer(facade, info)
    facade.optimizer.save()
    again = quiet(a_scenario(tmp_path), noisy)
    assert costs_of(again) == costs_of(facade)
    tell_all(again, strangers(1))
    assert "it takes no part" in caplog.text
    assert costs_of(facade).items() < costs_of(again).items()
    assert_one_id_each(again)


def test_a_script_that_tells_the_same_at_its_start_may_be_started_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def start(n_trials: int) -> ACBandFacade:
        facade = quiet(a_scenario(tmp_path, name="told", n_trials=n_trials), noisy)
        with caplog.at_level("WARNING", logger="acband_configspace"):
            for config in strangers(20):
                value = TrialValue(cost=noisy(config, 5), time=0.5)
                facade.tell(TrialInfo(config, seed=5), value)
        return facade

    first = start(40)
    first.optimize()
    before = costs_of(first)
    again = start(60)
    assert not [text for text in caplog.messages if "takes no part" in text]
    assert costs_of(again) == before
    again.optimize()
    assert len(costs_of(again)) > len(before)


def test_what_is_told_late_is_there_after_a_restart(tmp_path: Path) -> None:
    def start() -> ACBandFacade:
        return quiet(a_scenario(tmp_path, n_trials=40), noisy)

    facade = start()
    answer(facade, facade.ask())
    tell_all(facade, strangers(4))
    facade.optimize()
    for _ in range(2):
        again = start()
        assert costs_of(again) == costs_of(facade)
        assert again.runhistory.finished == facade.runhistory.finished
        assert_one_id_each(again)


class Repairable:
    """A target that crashes until it is repaired."""

    def __init__(self) -> None:
        self.is_broken = True

    def __call__(self, config: Mapping[str, Any], seed: int) -> float:
        if self.is_broken:
            raise RuntimeError("no licence found")
        return noisy(config, seed)


@pytest.mark.parametrize("restarted", [False, True])
def test_a_first_round_of_crashes_leaves_what_was_told(restarted: bool, tmp_path: Path) -> None:
    target = Repairable()
    facade = quiet(a_scenario(tmp_path), target)
    told = strangers(2)
    tell_all(facade, told)
    with pytest.raises(FirstRaceCrashedError, match="no licence found"):
        facade.optimize()
    if restarted:
        facade = quiet(a_scenario(tmp_path), target)
        assert len(facade.runhistory) == 2
    target.is_broken = False
    facade.optimize()
    assert [dict(one.config) for one in facade.intensifier.told] == list(map(dict, told))
    assert all((*config.values(), 5) in costs_of(facade) for config in told)
    assert facade.runhistory.finished == 60
    facade.optimizer.reset()
    assert len(facade.intensifier.told) == len(facade.runhistory) == 0


def test_one_crash_beside_known_results_does_not_end_a_run(tmp_path: Path) -> None:
    space = a_space()
    default = dict(space.get_default_configuration())

    def target(config: Configuration, instance: str, seed: int) -> float:
        if dict(config) == default:
            raise RuntimeError("the default breaks down")
        return on_instance(config, instance, seed)

    known = space.sample_configuration(8)
    facade = quiet(
        a_scenario(tmp_path, instances=["a", "b", "c"]),
        target,
        warm_start=[(dict(c), "a", 1, on_instance(c, "a", 1)) for c in known],
        proposals="learned",
    )
    assert facade.optimize() is not None
    assert facade.intensifier.n_finished > 50


def test_what_leaves_the_paper_no_plan_is_refused_and_not_on_record(tmp_path: Path) -> None:
    def start() -> ACBandFacade:
        return quiet(a_scenario(tmp_path, n_trials=20), noisy, n_candidates=3)

    facade = start()
    with pytest.raises(ValueError, match="n_trials must be at least"):
        tell_all(facade, strangers(19))
    n_told = len(facade.intensifier.told)
    assert 0 < n_told == len(facade.runhistory)
    assert len(start().intensifier.told) == n_told


def test_who_looks_at_what_was_told_leaves_the_journal_alone(tmp_path: Path) -> None:
    facade = quiet(a_scenario(tmp_path), noisy)
    first, second = strangers(2)
    tell_all(facade, [first])
    journal = facade.scenario.output_directory / "journal.jsonl"
    before = journal.read_bytes()
    looking = quiet(a_scenario(tmp_path), noisy)
    assert len(looking.intensifier.told) == 1
    assert str(looking.schedule)
    assert journal.read_bytes() == before
    tell_all(facade, [second])
    assert facade.optimize() is not None
    assert len(Run.load(facade.scenario.output_directory).races) > 0


def test_after_a_restart_before_the_first_ask_more_may_be_told(tmp_path: Path) -> None:
    """Also where all results of the first race are known."""
    default = SPACE.get_default_configuration()
    *some, last = strangers(8)
    tell_all(quiet(a_scenario(tmp_path), noisy), [default, *some])
    again = quiet(a_scenario(tmp_path), noisy)
    assert (again.intensifier.n_races, again.intensifier.started) == (0, False)
    tell_all(again, [last])
    assert len(again.intensifier.told) == 9
    assert again.optimize() is not None


def test_what_smac_cannot_hold_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    facade = quiet(a_scenario(tmp_path), noisy)
    value = TrialValue(cost=0.1, additional_info={"model": object()})
    with pytest.raises((TypeError, ValueError)):
        facade.tell(TrialInfo(strangers(1)[0], seed=5), value)
    assert len(facade.intensifier.told) == len(facade.runhistory) == 0


def test_what_smac_cannot_hold_is_refused_in_mid_run_as_well(tmp_path: Path) -> None:
    """At once: when the files are saved it may be another trial's turn."""
    facade = quiet(a_scenario(tmp_path), noisy)
    info = facade.ask()
    value = TrialValue(cost=0.1, additional_info={"model": object()})
    with pytest.raises((TypeError, ValueError)):
        facade.tell(info, value)
    assert facade.runhistory.finished == 0
    answer(facade, info)
    facade.optimizer.save()
    assert facade.runhistory.finished == 1


def test_a_damaged_line_costs_one_told_result(tmp_path: Path) -> None:
    facade = quiet(a_scenario(tmp_path), noisy)
    tell_all(facade, strangers(3))
    journal = facade.scenario.output_directory / "journal.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    told = [number for number, line in enumerate(lines) if line.startswith(b'{"told"')]
    lines[told[1]] = lines[told[1]][:30] + b"#" + lines[told[1]][31:]
    journal.write_bytes(b"".join(lines))
    recover(journal)
    assert len(quiet(a_scenario(tmp_path), noisy).intensifier.told) == 2


def test_the_trajectory_has_dates_after_a_restart(tmp_path: Path) -> None:
    def start() -> ACBandFacade:
        scenario = a_scenario(tmp_path, instances=["a", "b", "z"])
        warm = [(dict(c), name, 1, 5.0) for c in CONFIGS[:2] for name in "ab"]
        return quiet(scenario, on_instance, warm_start=warm)

    facade = start()
    facade.tell(TrialInfo(CONFIGS[0], instance="z", seed=1), TrialValue(cost=0.0))
    assert start().intensifier.trajectory[-1].trial >= 0
