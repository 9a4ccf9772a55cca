"""Ask and tell: in any order, with a clear word where there is nothing to be asked for."""

from __future__ import annotations

import contextlib
import pickle
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from ConfigSpace import Configuration, ConfigurationSpace, Float, Integer, Normal
from hypothesis import given, settings
from hypothesis import strategies as st
from smac import RandomFacade, Scenario
from smac.callback.callback import Callback
from smac.facade.abstract_facade import AbstractFacade
from smac.main.smbo import SMBO
from smac.runhistory.dataclasses import TrialInfo, TrialValue
from smac.runhistory.enumerations import StatusType
from targets import PAPER, a_scenario, a_space, answer, ask_all, noisy

from acband_configspace import ACBandFacade, ACBandIntensifier
from acband_configspace.errors import OutcomesNeededError, RunFinishedError

FACADES = [ACBandFacade, RandomFacade]


def asking(facade: type[AbstractFacade], directory: Path, **options: Any) -> AbstractFacade:
    """Return a facade without a target."""
    space = options.pop("configspace", a_space())
    scenario = a_scenario(directory, n_trials=options.pop("n_trials", 40), configspace=space)
    intensifier = ACBandIntensifier(scenario, **options)
    return facade(scenario, None, intensifier=intensifier, logging_level=False)


def play(smac: AbstractFacade, answer: Callable[[AbstractFacade, TrialInfo], None]) -> str:
    """Answer each trial at once, to the end, and return the message that ends it."""
    with contextlib.suppress(RunFinishedError):
        while True:
            answer(smac, smac.ask())
    with pytest.raises(RunFinishedError) as finished:
        smac.ask()
    return str(finished.value)


@pytest.fixture(scope="module")
def optimized(tmp_path_factory: pytest.TempPathFactory) -> Configuration:
    scenario = a_scenario(tmp_path_factory.mktemp("optimized"), n_trials=40)
    return ACBandFacade(scenario, noisy, logging_level=False).optimize()


@pytest.mark.parametrize("facade", FACADES)
def test_the_racers_of_a_race_are_asked_for_before_any_is_told(
    facade: type[AbstractFacade], tmp_path: Path
) -> None:
    smac = asking(facade, tmp_path, n_trials=200, k=4)
    racers = [smac.ask() for _ in range(4)]
    assert len({racer.seed for racer in racers}) == 1
    assert len({racer.config for racer in racers}) == 4
    assert smac.runhistory.running == 4


@pytest.mark.parametrize("facade", FACADES)
def test_results_may_come_back_with_copies_of_the_configurations(
    facade: type[AbstractFacade], tmp_path: Path
) -> None:
    """As from another process: ConfigSpace does not hold these hyperparameters equal to copies."""
    space = ConfigurationSpace()
    space.add(Float("x", (0, 1), distribution=Normal(0.5, 0.2)))
    space.add(Integer("n", (1, 100), log=True))
    assert pickle.loads(pickle.dumps(space)) != space
    smac = asking(facade, tmp_path, configspace=space)
    play(smac, lambda smac, info: answer(smac, pickle.loads(pickle.dumps(info))))
    assert smac.runhistory.running == 0
    assert smac.runhistory.get_configs()
    assert all(config.config_space is space for config in smac.runhistory.get_configs())


@pytest.mark.parametrize("facade", FACADES)
def test_asking_past_a_round_says_what_to_do_and_goes_on_after_it(
    facade: type[AbstractFacade], tmp_path: Path
) -> None:
    smac = asking(facade, tmp_path)
    trials = ask_all(smac)
    assert trials
    for _ in range(3):
        with pytest.raises(OutcomesNeededError, match="tell the results .* then ask again"):
            smac.ask()
    for info in trials[:-1]:
        answer(smac, info)
    with pytest.raises(OutcomesNeededError):
        smac.ask()
    answer(smac, trials[-1])
    again = smac.ask()
    assert (again.config, again.seed) not in [(info.config, info.seed) for info in trials]


def test_without_a_seed_a_result_is_taken_or_refused(tmp_path: Path) -> None:
    config = a_space().get_default_configuration()
    scenario = a_scenario(tmp_path / "seeds")
    with pytest.raises(ValueError, match="seed must be given"):
        ACBandFacade(scenario, noisy, logging_level=False).tell(TrialInfo(config), TrialValue(0.3))
    scenario = a_scenario(tmp_path, deterministic=True)
    smac = ACBandFacade(scenario, noisy, logging_level=False)
    smac.tell(TrialInfo(config), TrialValue(cost=-1.0))
    assert smac.optimize() == config
    assert smac.runhistory.finished == 60
    smac = ACBandFacade(
        a_scenario(tmp_path / "asked", deterministic=True), noisy, logging_level=False
    )
    smac.tell(TrialInfo(smac.ask().config), TrialValue(cost=0.3))
    assert (smac.runhistory.finished, smac.runhistory.running) == (1, 0)


def test_told_again_a_configuration_keeps_its_number(tmp_path: Path) -> None:
    smac = ACBandFacade(a_scenario(tmp_path), noisy, logging_level=False)
    first, second = smac.scenario.configspace.sample_configuration(2)
    for config, cost in ((first, 0.3), (second, 0.4), (first, 0.5)):
        smac.tell(TrialInfo(config, seed=5), TrialValue(cost=cost))
    numbers = [smac.intensifier.configurations.number_of(config) for config in (first, second)]
    assert numbers == [1, 2]
    assert [told.value.cost for told in smac.intensifier.told] == [0.5, 0.4]


@pytest.mark.parametrize("facade", FACADES)
def test_after_the_last_race_the_error_names_the_incumbent(
    facade: type[AbstractFacade], tmp_path: Path, optimized: Any
) -> None:
    smac = asking(facade, tmp_path)
    assert str(optimized["x"]) in play(smac, answer)
    assert smac.intensifier.get_incumbent() == optimized
    for _ in range(3):
        with pytest.raises(RunFinishedError):
            smac.ask()


@given(data=st.data())
@settings(max_examples=6)
@pytest.mark.parametrize("facade", FACADES)
def test_told_in_any_order_the_result_is_that_of_optimize(
    facade: type[AbstractFacade], optimized: Any, data: st.DataObject
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        smac = asking(facade, Path(directory))
        waiting: list[TrialInfo] = []
        while True:
            try:
                waiting.append(smac.ask())
                n_told = data.draw(st.integers(0, len(waiting)))
            except OutcomesNeededError:
                n_told = data.draw(st.integers(1, len(waiting)))
            except RunFinishedError:
                break
            for _ in range(n_told):
                answer(smac, waiting.pop(data.draw(st.integers(0, len(waiting) - 1))))
        assert not waiting
        assert smac.intensifier.get_incumbent() == optimized
        assert smac.runhistory.finished == smac.runhistory.submitted <= 40


def test_optimize_goes_on_from_what_was_asked_and_told(
    make_scenario: Callable[..., Scenario], optimized: Any
) -> None:
    smac = ACBandFacade(make_scenario(n_trials=40), noisy, logging_level=False)
    for info in [smac.ask() for _ in range(5)]:
        answer(smac, info)
    assert smac.optimize() == optimized


def test_optimize_runs_what_was_asked_for_and_never_told(
    make_scenario: Callable[..., Scenario], optimized: Any
) -> None:
    smac = ACBandFacade(make_scenario(n_trials=40), noisy, logging_level=False)
    smac.ask()
    assert smac.optimize() == optimized
    assert smac.runhistory.running == 0


def test_optimize_goes_on_in_the_same_process_after_an_interruption(
    make_scenario: Callable[..., Scenario], optimized: Any
) -> None:
    interruptions = iter([KeyboardInterrupt])

    def target(config: Configuration, seed: int) -> float:
        if smac.runhistory.finished == 13:
            for interruption in interruptions:
                raise interruption
        return noisy(config, seed)

    smac = ACBandFacade(make_scenario(n_trials=40), target, logging_level=False)
    with pytest.raises(KeyboardInterrupt):
        smac.optimize()
    assert smac.runhistory.finished == 13
    assert smac.optimize() == optimized
    assert smac.runhistory.finished <= 40


class Interrupting(Callback):
    """Presses Ctrl-C after some trials."""

    def __init__(self, after: int = 13) -> None:
        self.after = after

    def on_tell_end(self, smbo: SMBO, info: TrialInfo, value: TrialValue) -> None:
        if smbo.runhistory.finished == self.after:
            raise KeyboardInterrupt


@pytest.mark.parametrize("n_workers", [1, 2])
def test_after_an_interruption_ask_hands_out_each_trial_once_and_then_says_so(
    n_workers: int, make_scenario: Callable[..., Scenario], optimized: Any
) -> None:
    scenario = make_scenario(n_trials=40, n_workers=n_workers)
    smac = ACBandFacade(scenario, noisy, callbacks=[Interrupting()], logging_level=False)
    with pytest.raises(KeyboardInterrupt):
        smac.optimize()
    while True:
        trials = ask_all(smac)  # the rest of the round, the trial that was interrupted, too
        assert len({(tuple(info.config.items()), info.seed) for info in trials}) == len(trials)
        if not trials:
            break
        for info in trials:
            answer(smac, info)
    with pytest.raises(RunFinishedError):
        smac.ask()
    assert smac.intensifier.get_incumbent() == optimized


def test_an_interruption_loses_no_trial_though_the_next_race_would_not_fit(
    make_scenario: Callable[..., Scenario],
) -> None:
    """What strangers took leaves no room for one more race, while the last ones still run."""
    interrupting = Interrupting(after=37)
    smac = ACBandFacade(
        make_scenario(n_trials=40, n_workers=2),
        noisy,
        callbacks=[interrupting],
        logging_level=False,
        **PAPER,
    )
    for _ in range(8):
        answer(smac, smac.ask())
    seed = smac.intensifier.engine.key(0).seed
    for config in strangers(smac, 3):
        smac.tell(TrialInfo(config, seed=seed), TrialValue(cost=99.0))
    with pytest.raises(KeyboardInterrupt):
        smac.optimize()
    assert smac.intensifier.finished is not None
    assert smac.runhistory.running > 0
    smac.optimize()
    assert (smac.runhistory.running, smac.runhistory.finished) == (0, 39)


def costs_of(smac: AbstractFacade) -> dict[tuple[float, int | None], object]:
    history = smac.runhistory
    return {(history.get_config(k.config_id)["x"], k.seed): v.cost for k, v in history.items()}


def strangers(smac: AbstractFacade, n: int) -> list[Configuration]:
    other = a_space()
    other.seed(99)
    space = smac.scenario.configspace
    return [Configuration(space, dict(config)) for config in other.sample_configuration(n)]


def test_what_is_told_too_late_counts_towards_n_trials_and_cuts_no_race(
    make_scenario: Callable[..., Scenario], caplog: pytest.LogCaptureFixture
) -> None:
    smac = ACBandFacade(make_scenario(n_trials=40), noisy, logging_level=False, **PAPER)
    answer(smac, smac.ask())
    others = strangers(smac, 5)
    for other in others:
        smac.tell(TrialInfo(other, seed=1), TrialValue(cost=0.0))
    assert "it takes no part" in caplog.text
    assert smac.optimize() not in others
    assert smac.runhistory.running == 0
    assert 35 < smac.runhistory.finished <= 40
    assert "leaves no room for another race" in smac.intensifier.finished


def test_who_takes_no_part_does_not_lead(make_scenario: Callable[..., Scenario]) -> None:
    """Nor does who is told again, with another cost; also where one cost says all."""
    scenario = make_scenario(n_trials=40, deterministic=True)
    smac = ACBandFacade(scenario, noisy, logging_level=False)
    asked = [smac.ask() for _ in range(8)]
    for cost, info in enumerate(asked):
        smac.tell(info, TrialValue(cost=float(cost)))
    assert smac.intensifier.n_races == 1
    other = strangers(smac, 2)[0]
    smac.tell(TrialInfo(other, seed=1), TrialValue(cost=-1.0))
    smac.tell(asked[5], TrialValue(cost=-2.0))
    assert smac.intensifier.get_incumbent() == asked[0].config
    assert smac.optimize() not in (other, asked[5].config)


def test_a_result_counts_for_its_configuration_whoever_was_asked_for(
    make_scenario: Callable[..., Scenario], caplog: pytest.LogCaptureFixture
) -> None:
    """Somebody may repair a configuration, and tell what came of it with all that ask returned."""
    smac = ACBandFacade(make_scenario(n_trials=40), noisy, logging_level=False, **PAPER)
    first, second = smac.ask(), smac.ask()
    other = strangers(smac, 2)[0]
    smac.tell(replace(first, config=other), TrialValue(cost=0.0))
    assert "it takes no part" in caplog.text
    smac.tell(second, TrialValue(cost=1.0))
    assert smac.intensifier.n_races == 0
    smac.tell(replace(first, config=pickle.loads(pickle.dumps(first.config))), TrialValue(cost=2.0))
    assert smac.intensifier.n_races == 1


@pytest.mark.parametrize("deterministic", [True, False])
@pytest.mark.parametrize("options", [{}, {"memory": False}])
def test_what_is_told_beforehand_takes_part(
    deterministic: bool, options: dict[str, Any], tmp_path: Path
) -> None:
    def start(target: Callable[..., Any]) -> ACBandFacade:
        scenario = a_scenario(tmp_path, n_trials=100, deterministic=deterministic)
        return ACBandFacade(scenario, target, logging_level=False, **options)

    calls = []

    def target(config: Mapping[str, Any], seed: int) -> float:
        calls.append(config["x"])
        return abs(config["x"] - best["x"])

    smac = start(target)
    best, *others = strangers(smac, 3)
    default = smac.scenario.configspace.get_default_configuration()
    for config, seed in [(best, 11), (others[0], 12), (others[1], 13), (default, 14)]:
        smac.tell(TrialInfo(config, seed=seed), TrialValue(cost=abs(config["x"] - best["x"])))
    assert smac.intensifier.get_incumbent() == best
    n_given = smac.intensifier.n_given
    assert n_given == 4 or options  # the paper's k is 2: the best two of them, and the default
    again = start(target)  # what was told is known to the next process
    assert again.runhistory.finished == 4
    assert again.intensifier.n_given == n_given
    assert again.intensifier.get_incumbent() == best
    assert again.optimize() == best
    assert again.runhistory.finished == 100 or options
    if deterministic:  # known results are not run again, whatever the seed
        assert not {best["x"], others[0]["x"], others[1]["x"], 0.5} & set(calls)
    resumed = start(target)
    assert costs_of(resumed) == costs_of(again)
    assert resumed.intensifier.get_incumbent() == best


def test_what_is_told_with_much_information_is_known_to_the_next_process(tmp_path: Path) -> None:
    smac = ACBandFacade(a_scenario(tmp_path), noisy, logging_level=False)
    default = smac.scenario.configspace.get_default_configuration()
    info = {f"value {number}": "x" * 90 for number in range(40)}
    smac.tell(TrialInfo(default, seed=7), TrialValue(cost=0.5, additional_info=info))
    again = ACBandFacade(a_scenario(tmp_path), noisy, logging_level=False)
    (value,) = again.runhistory.values()
    assert value.cost == 0.5
    assert value.additional_info == info


def test_results_of_the_default_told_beforehand_change_nothing_else(
    make_scenario: Callable[..., Scenario], optimized: Any
) -> None:
    smac = ACBandFacade(make_scenario(n_trials=41), noisy, logging_level=False)
    default = smac.scenario.configspace.get_default_configuration()
    smac.tell(TrialInfo(default, seed=7), TrialValue(cost=noisy(default, 7)))
    assert smac.intensifier.n_given == 1
    smac.optimize()
    assert smac.runhistory.finished == 41


def test_a_result_told_twice_is_taken_once(tmp_path: Path, optimized: Any) -> None:
    def answer_twice(smac: AbstractFacade, info: TrialInfo) -> None:
        answer(smac, info)
        smac.tell(info, TrialValue(cost=-1.0))

    smac = asking(ACBandFacade, tmp_path)
    play(smac, answer_twice)
    assert smac.intensifier.get_incumbent() == optimized


@pytest.mark.parametrize("cost", [float("nan"), float("inf")])
@pytest.mark.parametrize("facade", FACADES)
def test_told_costs_that_are_no_numbers_lose(
    facade: type[AbstractFacade], cost: float, tmp_path: Path
) -> None:
    smac = asking(facade, tmp_path)
    default = smac.scenario.configspace.get_default_configuration()

    def answer_badly(smac: AbstractFacade, info: TrialInfo) -> None:
        good = info.config == default
        smac.tell(info, TrialValue(cost=0.5 if good else cost), save=False)

    play(smac, answer_badly)
    assert smac.intensifier.get_incumbent() == default
    if facade is ACBandFacade:
        statuses = {value.status for value in smac.runhistory.values()}
        assert statuses == {StatusType.SUCCESS, StatusType.CRASHED}


def test_without_a_target_optimize_and_validate_say_so(tmp_path: Path) -> None:
    smac = asking(ACBandFacade, tmp_path)
    with pytest.raises(ValueError, match="target_function"):
        smac.optimize()
    with pytest.raises(ValueError, match="target_function must be given to validate"):
        smac.validate(smac.scenario.configspace.get_default_configuration())


def test_results_that_are_none_are_refused(tmp_path: Path) -> None:
    smac = asking(ACBandFacade, tmp_path)
    info = smac.ask()
    with pytest.raises(ValueError, match="status must be that of a trial that is over"):
        smac.tell(info, TrialValue(cost=1.0, status=StatusType.RUNNING))
    for cost in (None, (0.1, 0.9), 1j, "3"):
        with pytest.raises(TypeError, match="cost must be one real number but got"):
            smac.tell(info, TrialValue(cost=cost))  # type: ignore[arg-type]
    assert smac.runhistory.finished == 0
    answer(smac, info)
    assert smac.runhistory.finished == 1


@pytest.mark.parametrize("wrong", [None, "misspelt"])
def test_a_result_of_another_instance_is_refused_and_leaves_nothing(
    wrong: str | None, tmp_path: Path
) -> None:
    smac = ACBandFacade(a_scenario(tmp_path, instances=["a", "b"]), None, logging_level=False)
    config = smac.scenario.configspace.get_default_configuration()
    with pytest.raises(
        ValueError, match=f"instance must be one of those to train on but got {wrong!r}"
    ):
        smac.tell(TrialInfo(config, instance=wrong, seed=1), TrialValue(cost=0.5))
    assert len(smac.intensifier.told) == 0
    assert len(smac.runhistory) == 0
    without = ACBandFacade(a_scenario(tmp_path / "2"), None, logging_level=False)
    with pytest.raises(
        ValueError, match="instance must be None, as the scenario has none, but got"
    ):
        without.tell(TrialInfo(config, instance="a", seed=1), TrialValue(cost=0.5))


def test_a_result_may_have_no_information(tmp_path: Path) -> None:
    """As one that was read from JSON."""
    smac = asking(ACBandFacade, tmp_path)

    def answer_without(smac: AbstractFacade, info: TrialInfo) -> None:
        value = TrialValue(cost=noisy(info.config, info.seed), additional_info=None)  # type: ignore[arg-type]
        smac.tell(info, value)

    play(smac, answer_without)
    assert smac.runhistory.finished > 8
