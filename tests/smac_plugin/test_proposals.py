"""Proposals: near what is good, or from SMAC's own selector; always what the space allows."""

from __future__ import annotations

import math
import os
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ConfigSpace import (
    AndConjunction,
    Beta,
    Categorical,
    Configuration,
    ConfigurationSpace,
    EqualsCondition,
    Float,
    ForbiddenAndConjunction,
    ForbiddenEqualsClause,
    GreaterThanCondition,
    InCondition,
    Integer,
    LessThanCondition,
    Normal,
    NotEqualsCondition,
    OrConjunction,
)
from ConfigSpace.conditions import Condition, Conjunction
from ConfigSpace.hyperparameters import Hyperparameter
from hypothesis import given, settings
from hypothesis import strategies as st
from smac import (
    AlgorithmConfigurationFacade,
    HyperparameterOptimizationFacade,
    Scenario,
)
from smac.callback.callback import Callback
from targets import only, quiet

from acband_configspace import ACBandFacade, ACBandIntensifier
from acband_configspace.core.engine import KnownBest
from acband_configspace.smac_plugin.configurations import Configurations
from acband_configspace.smac_plugin.proposals import Learned, _looked_at


@st.composite
def spaces(draw: st.DrawFn) -> ConfigurationSpace:
    """Return a space of some parameters of all kinds, conditions and forbidden clauses."""
    space = ConfigurationSpace()
    kinds = draw(st.lists(st.integers(0, 9), min_size=1, max_size=8))
    for index, kind in enumerate(kinds):
        name = f"p{index}"
        parameters: list[Hyperparameter[Any, Any]] = [
            Float(name, (-2.0, 5.0)),
            Float(name, (1e-4, 10.0), log=True),
            Integer(name, (1, 9)),
            Integer(name, (1, 4000), log=True),
            Categorical(name, ["a", "b", "c"], weights=[1, 2, 3]),
            Categorical(name, [1, 2, 5, 9], ordered=True),
            Categorical(name, ["low", "high"], ordered=True),
            Categorical(name, ["only"], ordered=True),
            Categorical(name, ["only"]),
            Float(name, (0.0, 1.0), distribution=Normal(0.3, 0.1)),
        ]
        space.add(parameters[kind])
    choice = Categorical("choice", ["x", "y", "z"])
    shape = Float("shape", (0.0, 1.0), distribution=Beta(2, 5))
    space.add(choice, shape)
    for index in range(len(kinds)):
        value, child = draw(st.sampled_from("xyz")), space[f"p{index}"]
        conditions: list[Condition | Conjunction | None] = [
            None,
            EqualsCondition(child, choice, value),
            NotEqualsCondition(child, choice, value),
            InCondition(child, choice, ["x", value]),
            OrConjunction(
                EqualsCondition(child, choice, value), GreaterThanCondition(child, shape, 0.4)
            ),
            AndConjunction(
                NotEqualsCondition(child, choice, value), LessThanCondition(child, shape, 0.4)
            ),
        ]
        condition = conditions[draw(st.integers(0, 5))]
        if condition is not None:
            space.add(condition)
    if draw(st.booleans()):
        other = Categorical("other", [True, False])
        space.add(other)
        default = space.get_default_configuration()
        clauses = [
            ForbiddenEqualsClause(choice, "x" if default["choice"] != "x" else "y"),
            ForbiddenEqualsClause(other, True),
        ]
        space.add(ForbiddenAndConjunction(*clauses))
    return space


def drawn(space: ConfigurationSpace, seed: int, *, racing: bool = False) -> Configurations:
    """Return configurations drawn in three batches, near others each time."""
    given_ones = [space.get_default_configuration()]
    proposals = Learned(space, seed=seed, racing=racing)
    configurations = Configurations(space, given_ones, seed=seed, proposals=proposals)
    configurations.draw(12)
    for number in (2, 3):
        n_before = len(configurations)
        best = (n_before - 1, 0, n_before // 2)
        behind = {n: abs(n - best[0]) / n_before for n in range(n_before)}
        configurations.draw(12 * number, partial(KnownBest, number, best, behind))
    return configurations


@settings(max_examples=25, deadline=None)
@given(spaces(), st.integers(0, 3))
def test_whatever_is_proposed_is_valid_and_repeatable(space: ConfigurationSpace, seed: int) -> None:
    first, again = drawn(space, seed), drawn(space, seed)
    assert len(first) == len(again)
    for number in range(len(first)):
        configuration = first[number]
        configuration.check_valid_configuration()
        # As the values alone say it: nothing lies between what a parameter can be.
        assert dict(Configuration(space, values=dict(configuration))) == dict(configuration)
        assert dict(configuration) == dict(again[number])
    n_uniform = sum("uniform" in str(first[number].origin) for number in range(len(first)))
    # All kinds of conditions and forbidden clauses leave room for changes of the best.
    finite = all(parameter.size < 100 for parameter in space.values())
    assert finite or n_uniform < 0.5 * len(first)


def test_children_of_children_are_what_the_space_makes_of_them() -> None:
    space = ConfigurationSpace()
    top, middle = Categorical("top", ["on", "off"]), Categorical("middle", ["on", "off"])
    low = Float("low", (0.0, 1.0))
    space.add(top, middle, low)
    space.add(EqualsCondition(middle, top, "on"), EqualsCondition(low, middle, "on"))
    configurations = drawn(space, 2)
    kinds = {tuple(configurations[number]) for number in range(1, len(configurations))}
    assert kinds == {("top",), ("top", "middle"), ("top", "middle", "low")}
    for number in range(len(configurations)):
        configurations[number].check_valid_configuration()


@pytest.mark.parametrize(("racing", "one_in"), [(False, 4), (True, 2)])
def test_a_quarter_stays_uniform_or_half_where_losers_are_stopped(
    racing: bool, one_in: int
) -> None:
    configurations = drawn(a_space(), 1, racing=racing)
    origins = [str(configurations[number].origin) for number in range(len(configurations))]
    uniform = [number for number, origin in enumerate(origins) if "uniform" in origin]
    assert uniform == [*range(one_in, 36, one_in)]  # the first is given


def test_the_best_of_a_space_with_conditions_is_found() -> None:
    """Learning goes on where parameters come and go."""
    space = ConfigurationSpace()
    kind = Categorical("kind", ["a", "b", "c"], default="a")
    x, y = Float("x", (0.0, 1.0), default=0.1), Float("y", (1e-4, 1.0), default=1.0, log=True)
    space.add(kind, x, y)
    space.add(EqualsCondition(y, kind, "b"))

    def cost(number: int) -> float:
        config = configurations[number]
        away = abs(math.log10(config["y"]) + 3.0) / 4.0 if "y" in config else 0.5
        return float(away + (config["x"] - 0.6) ** 2)

    configurations = Configurations(
        space, [space.get_default_configuration()], seed=0, proposals=Learned(space, seed=0)
    )
    n = configurations.draw(10)
    for number in range(2, 8):
        costs = {i: cost(i) for i in range(n)}
        best = min(costs, key=costs.__getitem__)
        n = configurations.draw(n + 10, partial(KnownBest, number, (best,), costs))
    assert min(map(cost, range(n))) < 0.01  # a uniform one is as good in one of 200 cases


def test_orders_of_two_values_are_changed_too() -> None:
    space = ConfigurationSpace({"x": (0.0, 1.0)})
    space.add(Categorical("level", ["low", "high"], ordered=True, default="low"))
    space.add(Categorical("fixed", ["only"], ordered=True))
    configurations = drawn(space, 1)
    near = [
        configurations[number]
        for number in range(len(configurations))
        if str(configurations[number].origin).startswith("AC-Band: near")
    ]
    assert {config["level"] for config in near} == {"low", "high"}


@pytest.mark.parametrize(
    "parameter",
    [
        # A change of all numbers leaves orders where they are, as it does categories: else an order
        # of three values would leave the middle each time, and come to it from both ends.
        Categorical("level", ["low", "middle", "high"], ordered=True, default="high"),
        Categorical("level", ["low", "middle", "high"], ordered=True, default="middle"),
        # However small steps have become, an integer that is to change does so.
        Integer("level", (0, 2), default=0),
        Integer("level", (0, 2), default=1),
        Integer("level", (0, 1), default=0),
        Integer("level", (0, 1), default=1),
        Integer("level", (1, 2), default=2, log=True),
        # Its neighbour is a tenth of the range away.
        Integer("level", (1, 2000), default=1, log=True),
        # Whatever a prior makes rare: uniform ones never have it.
        Integer("level", (0, 4), default=2, distribution=Beta(200, 200)),
        Integer("level", (0, 1), default=0, distribution=Normal(0, 0.1)),
    ],
)
@pytest.mark.parametrize("racing", [True, False])
def test_what_has_few_values_keeps_them_mostly_but_not_always(
    racing: bool, parameter: Hyperparameter[Any, Any]
) -> None:
    space = ConfigurationSpace()
    space.add(parameter, *[Float(f"x{i}", (0.0, 1.0)) for i in range(9)])
    default = space.get_default_configuration()
    configurations = Configurations(
        space, [default], seed=3, proposals=Learned(space, seed=3, racing=racing)
    )
    n = configurations.draw(400, partial(KnownBest, 40, (0,)))
    near = [c for c in map(configurations.__getitem__, range(n)) if "near" in str(c.origin)]
    assert {c.origin for c in near} == {"AC-Band: near the default"}
    assert len(near) > 150
    assert 0.06 < sum(c["level"] != default["level"] for c in near) / len(near) < 0.6


def test_what_was_drawn_before_is_not_proposed_again() -> None:
    """One in four changes of ten switches changes none of them."""
    space = ConfigurationSpace()
    space.add([Categorical(f"switch{i}", ["on", "off"]) for i in range(10)])
    configurations = Configurations(
        space, [space.get_default_configuration()], seed=0, proposals=Learned(space, seed=0)
    )
    assert configurations.draw(200, partial(KnownBest, 2, (0,))) == 200
    is_uniform = ["uniform" in str(configurations[number].origin) for number in range(200)]
    assert [number for number in range(1, 200) if is_uniform[number]] == [*range(4, 200, 4)]


def test_what_a_prior_makes_rare_is_reached_by_small_changes() -> None:
    """Uniform ones, by this prior, are all 5; what is proposed is near what is best."""
    space = ConfigurationSpace()
    space.add(Integer("n", (0, 10), distribution=Normal(5, 0.1), default=5))
    default = space.get_default_configuration()
    configurations = Configurations(space, [default], seed=0, proposals=Learned(space, seed=0))
    n = 1
    for sign in (1, -1):
        for _ in range(30):
            best = max(range(n), key=lambda i: sign * configurations[i]["n"])
            n = configurations.draw(n + 1, partial(KnownBest, 1, (best,)))
    assert sorted(configurations[i]["n"] for i in range(n)) == list(range(11))


def test_where_the_space_is_used_up_nothing_is_proposed() -> None:
    answering = Answering(uniform_share=0)
    configurations = Configurations(
        ConfigurationSpace({"x": ["a", "b"]}), [], seed=0, proposals=answering
    )
    assert configurations.draw(10) == 2
    n_asked = len(answering.asked)
    assert configurations.draw(10) == 2
    assert len(answering.asked) == n_asked


def test_what_only_others_propose_is_asked_for_on_and_on() -> None:
    space = ConfigurationSpace()
    space.add(Categorical("letter", list("abcdef"), weights=[1, 0, 0, 0, 0, 0], default="a"))

    class Next:
        def propose(self, configurations: Any, known: KnownBest) -> Configuration:
            return Configuration(space, values={"letter": "abcdef"[len(configurations)]})

    configurations = Configurations(space, [], seed=0, proposals=Next())
    assert configurations.draw(10) == 6
    origins = [str(configurations[number].origin) for number in range(6)]
    assert origins == ["AC-Band: uniform random", *["AC-Band: proposed"] * 5]


def test_the_best_are_remembered_where_one_cost_tells_all() -> None:
    """Also in a run of more results than the model looks at."""
    behind = {number: float(abs(number - 7)) for number in range(1000)}
    assert set(range(20)) <= {*_looked_at(KnownBest(1, (7,), behind, one_instance=True), 1000)}


def test_steps_are_as_wide_as_the_prior_of_a_number() -> None:
    space = ConfigurationSpace()
    space.add(Float("x", (0.0, 1.0), distribution=Normal(0.3, 0.02), default=0.3))
    space.add(Integer("n", (0, 10_000), distribution=Beta(200, 200), default=5000))
    space.add([Float(f"y{i}", (0.0, 1.0), default=0.5) for i in range(3)])
    configurations = Configurations(
        space, [space.get_default_configuration()], seed=0, proposals=Learned(space, seed=0)
    )
    n = configurations.draw(100, partial(KnownBest, 1, (0,)))
    near = [c for c in map(configurations.__getitem__, range(1, n)) if "near" in str(c.origin)]
    assert {0.2 < c["x"] < 0.4 for c in near} == {True}
    assert {4000 < c["n"] < 6000 for c in near} == {True}
    for name, least in (("x", 30), ("n", 30), ("y0", 30)):
        assert len({c[name] for c in near}) > least
    assert np.std([c["y0"] for c in near]) > 0.05


def test_bad_regions_are_not_forgotten_in_a_long_run() -> None:
    """The best alone would leave no more than noise, and everything else would look new."""
    space = a_space()
    configurations = Configurations(
        space,
        [space.get_default_configuration()],
        seed=0,
        proposals=Learned(space, seed=0, racing=True),
    )

    def behind(number: int) -> float:
        """Return what a race tells: who is far away is stopped, who is near has some luck."""
        away = bowl(configurations[number])
        return math.log(2.0) if away > 0.05 else math.sin(number)

    n = configurations.draw(40)
    for number in range(2, 14):
        known = {i: behind(i) for i in range(n)}
        best = min(range(n), key=lambda i: bowl(configurations[i]))
        n = configurations.draw(n + 50, partial(KnownBest, number, (best,), known))
    last = [configurations[i] for i in range(n - 200, n)]
    chosen = [c for c in last if "uniform" not in str(c.origin)]
    uniform = [c for c in last if "uniform" in str(c.origin)]
    assert np.mean([bowl(c) > 0.05 for c in uniform]) > 0.8
    assert np.mean([bowl(c) > 0.05 for c in chosen]) < 0.4


def test_a_learned_configuration_keeps_its_own_values_only() -> None:
    space = a_space()
    learned = Learned(space, seed=0)
    child = learned.propose([space.get_default_configuration()], KnownBest(1, (0,)))
    assert child is not None
    assert child.get_array().base is None  # a view keeps all candidates in memory


def test_where_conditions_contradict_each_other_something_else_is_proposed() -> None:
    """ConfigSpace takes "and" and "or" of the same two conditions for one and the same."""
    space = ConfigurationSpace()
    one, other = (Categorical(name, [0, 1], default=0) for name in ("one", "other"))
    both, either = Float("both", (0.0, 1.0)), Float("either", (0.0, 1.0))
    space.add(one, other, both, either)
    space.add(AndConjunction(EqualsCondition(both, one, 1), EqualsCondition(both, other, 1)))
    space.add(OrConjunction(EqualsCondition(either, one, 1), EqualsCondition(either, other, 1)))
    configurations = Configurations(
        space, [space.get_default_configuration()], seed=0, proposals=Learned(space, seed=0)
    )
    assert configurations.draw(30) == 30


class Answering:
    """Proposes what it is made with, and keeps what it is asked."""

    def __init__(self, answer: Any = None, **attributes: Any) -> None:
        self.answer = answer
        self.asked: list[tuple[int, KnownBest]] = []
        self.__dict__.update(attributes)

    def propose(self, configurations: Any, known: KnownBest) -> Any:
        self.asked.append((len(configurations), known))
        return self.answer


@pytest.mark.parametrize(
    ("vector", "message"),
    [
        ([0.5, 0.5, 1.5], "what the space allows but got the vector .*1.5.*z"),
        ([0.9, 0.5, 0.5], "what the space allows but got the vector .*forbidden"),
        ([0.5, math.nan, 0.5], "what the space allows but got the vector .*y"),
    ],
)
def test_what_the_space_does_not_allow_is_refused(vector: list[float], message: str) -> None:
    space = a_space()
    space.add(ForbiddenEqualsClause(space["x"], 0.9))
    answer = Configuration(space, vector=np.array(vector))
    configurations = Configurations(space, [], seed=0, proposals=Answering(answer))
    with pytest.raises(ValueError, match=f"(?is)^proposals must propose {message}"):
        configurations.draw(2)


def test_what_is_no_configuration_is_refused() -> None:
    configurations = Configurations(a_space(), [], seed=0, proposals=Answering({"x": 0.5}))
    with pytest.raises(TypeError, match="proposals must propose a Configuration but got {'x': 0.5"):
        configurations.draw(2)


@pytest.mark.parametrize(
    ("share", "error"),
    [(25, ValueError), (-0.1, ValueError), (math.nan, ValueError), ("half", TypeError)],
)
def test_a_share_that_is_none_is_refused(share: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match=f"uniform_share of proposals must be .* but got {share!r}"):
        Configurations(a_space(), [], seed=0, proposals=Answering(uniform_share=share))


def test_nobody_is_known_before_the_first_is_drawn() -> None:
    answering = Answering(uniform_share=0)
    Configurations(a_space(), [], seed=0, proposals=answering).draw(2)
    assert [(n, known.best) for n, known in answering.asked] == [(0, ()), (1, (0,))]


def a_space() -> ConfigurationSpace:
    space = ConfigurationSpace()
    space.add([Float(name, (0.0, 1.0), default=0.5) for name in ("x", "y", "z")])
    return space


def bowl(config: Configuration, instance: str = "0.1", seed: int = 0) -> float:
    shift = float(instance)
    return float(sum((config[name] - 0.7 - shift / 20) ** 2 for name in ("x", "y", "z")))


def a_scenario(folder: Path, **options: Any) -> Scenario:
    names = ["-0.5", "0", "0.3", "1"]
    return Scenario(
        a_space(),
        instances=names,
        instance_features={name: [float(name)] for name in names},
        deterministic=True,
        n_trials=60,
        seed=1,
        output_directory=folder,
        **options,
    )


@pytest.mark.parametrize(
    "facade_class", [HyperparameterOptimizationFacade, AlgorithmConfigurationFacade]
)
def test_smacs_model_has_a_say(facade_class: Any, tmp_path: Path) -> None:
    scenario = a_scenario(tmp_path)
    intensifier = ACBandIntensifier(scenario, proposals="selector")
    few = {"n_configs": 3} if facade_class is HyperparameterOptimizationFacade else {}
    design = facade_class.get_initial_design(scenario, **few)
    facade = facade_class(
        scenario,
        bowl,
        intensifier=intensifier,
        initial_design=design,
        logging_level=False,
        overwrite=True,
    )
    incumbent = facade.optimize()
    origins = [str(config.origin) for config in facade.runhistory.get_configs()]
    assert any("Acquisition Function Maximizer" in origin for origin in origins), origins
    assert "AC-Band: uniform random" in origins
    assert facade.runhistory.finished == 60
    assert bowl(incumbent) < 0.06  # the default has 0.12


class Stopping(Callback):
    """Stops a run after some trials."""

    def on_tell_end(self, smbo: Any, info: Any, value: Any) -> bool | None:
        return False if smbo.runhistory.finished == 20 else None


def selecting_facade(
    folder: Path, *callbacks: Callback, overwrite: bool = False
) -> HyperparameterOptimizationFacade:
    scenario = a_scenario(folder, name="selector")
    return HyperparameterOptimizationFacade(
        scenario,
        bowl,
        intensifier=ACBandIntensifier(scenario, proposals="selector"),
        initial_design=HyperparameterOptimizationFacade.get_initial_design(scenario, n_configs=3),
        callbacks=list(callbacks),
        logging_level=False,
        overwrite=overwrite,
    )


def test_a_run_that_smacs_selector_has_a_say_in_is_not_continued(tmp_path: Path) -> None:
    first = selecting_facade(tmp_path, Stopping())
    first.optimize()
    assert 20 <= first.runhistory.finished < 60
    kept = (first.scenario.output_directory / "runhistory.json").read_bytes()
    with pytest.raises(RuntimeError, match="'selector' cannot be continued.*overwrite=True"):
        selecting_facade(tmp_path)
    assert (first.scenario.output_directory / "runhistory.json").read_bytes() == kept
    again = selecting_facade(tmp_path, overwrite=True)
    again.optimize()
    assert again.runhistory.finished == 60
    finished = selecting_facade(tmp_path)  # there is nothing to continue
    incumbent, found = only(again.intensifier.get_incumbent()), only(finished.optimize())
    assert dict(found) == pytest.approx(dict(incumbent))


def test_callbacks_are_told_once_of_what_the_selector_chooses(tmp_path: Path) -> None:
    class Following(Callback):
        def __init__(self) -> None:
            self.told: list[Configuration] = []

        def on_next_configurations_end(self, selector: Any, config: Configuration) -> None:
            self.told.append(config)

    following = Following()
    facade = selecting_facade(tmp_path, following, overwrite=True)
    facade.optimize()
    told = [tuple(config.items()) for config in following.told]
    assert len(told) == len(set(told))
    assert {tuple(config.items()) for config in facade.runhistory.get_configs()} <= set(told)


def test_a_facade_without_a_model_refuses_it(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="proposals must not be 'selector' in ACBandFacade"):
        ACBandFacade(a_scenario(tmp_path), bowl, proposals="selector", logging_level=False)


class Mine:
    """Draws from a stream, which cannot be copied."""

    def __init__(self, step: float) -> None:
        self.step = step
        self.n_calls = 0
        self.stream = (0.3 + step * number for number in range(1000))

    def propose(self, configurations: Any, known: KnownBest) -> None:
        self.n_calls += 1
        next(self.stream)


def test_objects_of_ones_own_are_not_copied_and_told_apart_by_their_values(tmp_path: Path) -> None:
    def facade_with(proposals: Mine) -> ACBandFacade:
        return ACBandFacade(a_scenario(tmp_path), bowl, proposals=proposals, logging_level=False)

    mine = Mine(0.1)
    first, second = facade_with(mine), facade_with(Mine(0.5))
    assert first.scenario.output_directory != second.scenario.output_directory
    first.optimize()
    assert mine.n_calls > 0
    again = facade_with(mine)  # what it has become meanwhile makes no other run of it
    assert again.scenario.output_directory == first.scenario.output_directory


class Drifting:
    """Differs in the last digits from machine to machine, as what is learned does."""

    def propose(self, configurations: Any, known: KnownBest) -> Configuration:
        drift = float(os.environ.get("DRIFT", "0"))
        near = configurations[known.best[0]]
        x = (near["x"] + 0.1 * len(configurations)) % 0.9 + drift
        return Configuration(near.config_space, values={**near, "x": x})


def test_a_run_goes_on_where_proposals_differ_in_the_last_digits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    calls = []

    def target(config: Configuration, instance: str, seed: int = 0) -> float:
        calls.append((tuple(config.values()), instance))
        return bowl(config, instance)

    def start(*callbacks: Callback) -> ACBandFacade:
        scenario = a_scenario(tmp_path, name="run")
        return quiet(scenario, target, proposals=Drifting(), callbacks=list(callbacks))

    start(Stopping()).optimize()
    n_before = len(calls)
    assert "proposed now than in the earlier process" not in caplog.text
    monkeypatch.setenv("DRIFT", "1e-9")
    second = start()
    incumbent = second.optimize()
    assert second.intensifier.finished is not None
    assert caplog.text.count("proposed now than in the earlier process") == 1
    n_calls = len(calls)
    assert n_calls > n_before
    assert set(calls[:n_before]).isdisjoint(calls[n_before:])
    monkeypatch.delenv("DRIFT")
    assert dict(only(start().optimize())) == dict(only(incumbent))
    assert len(calls) == n_calls


class Asking:
    """Asks a server that may be down."""

    def propose(self, configurations: Any, known: KnownBest) -> None:
        if known.pass_number == 2 and "SERVER_IS_DOWN" in os.environ:
            raise ConnectionError("the server is down")


def test_an_error_of_a_proposal_ends_the_run_and_a_restart_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def facade() -> ACBandFacade:
        return ACBandFacade(a_scenario(tmp_path), bowl, proposals=Asking(), logging_level=False)

    monkeypatch.setenv("SERVER_IS_DOWN", "1")
    first = facade()
    with pytest.raises(ConnectionError, match="the server is down"):
        first.optimize()
    monkeypatch.delenv("SERVER_IS_DOWN")
    with pytest.raises(RuntimeError, match="ConnectionError.*start the script again"):
        first.optimize()
    again = facade()
    assert again.intensifier.n_races > 0
    again.optimize()
    assert again.runhistory.finished == again.scenario.n_trials


def test_a_proposal_is_asked_in_view_of_what_raced(tmp_path: Path) -> None:
    told: list[tuple[int, KnownBest]] = []

    class Watching:
        def propose(self, configurations: Any, known: KnownBest) -> None:
            told.append((len(configurations), known))

    proposals = Watching()
    ACBandFacade(a_scenario(tmp_path), bowl, proposals=proposals, logging_level=False).optimize()
    number, last = told[-1]
    assert last.behind[last.best[0]] == 0.0  # the champion
    assert len(last.behind) > number / 2
    assert max(last.behind.values()) > 0.0


@pytest.mark.parametrize("instances", [None, ["0", "1"]])
def test_a_proposal_is_told_whether_one_cost_tells_all(
    instances: list[str] | None, tmp_path: Path
) -> None:
    told: list[KnownBest] = []

    class Watching:
        def propose(self, configurations: Any, known: KnownBest) -> None:
            told.append(known)

    def cost(config: Configuration, instance: str = "0", seed: int = 0) -> float:
        return bowl(config, instance)

    scenario = Scenario(
        a_space(), instances=instances, deterministic=True, n_trials=40, output_directory=tmp_path
    )
    quiet(scenario, cost, proposals=Watching()).optimize()
    raced = [known for known in told if known.behind]
    assert {known.one_instance for known in raced} == {instances is None}


def test_a_run_that_is_resumed_says_the_same_of_where_configurations_come_from(
    tmp_path: Path,
) -> None:
    def start() -> ACBandFacade:
        return quiet(a_scenario(tmp_path), bowl, proposals="learned")

    facade = start()
    facade.optimize()
    origins = {number: config.origin for config, number in facade.runhistory.config_ids.items()}
    assert len({origin for origin in origins.values() if "near" in str(origin)}) > 2
    again = start().runhistory
    assert origins == {number: config.origin for config, number in again.config_ids.items()}
