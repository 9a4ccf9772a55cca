"""The configurations of a run: drawn uniformly, none twice, whatever the space is like."""

from __future__ import annotations

import json
import pickle
from collections import Counter
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import pytest
from ConfigSpace import (
    Beta,
    Categorical,
    Configuration,
    ConfigurationSpace,
    Constant,
    EqualsCondition,
    Float,
    ForbiddenAndConjunction,
    ForbiddenEqualsClause,
    Integer,
    Normal,
)
from smac import RandomFacade, Scenario
from smac.facade.abstract_facade import AbstractFacade
from smac.initial_design import AbstractInitialDesign, DefaultInitialDesign, SobolInitialDesign
from targets import PAPER, a_space, exact, races_of

from acband_configspace import ACBandFacade, ACBandIntensifier
from acband_configspace.smac_plugin.configurations import Configurations, compute_values


def conditional_space() -> ConfigurationSpace:
    """Three algorithms, of which one has a parameter of its own, and one ban."""
    space = ConfigurationSpace()
    algorithm = Categorical("algorithm", ["a", "b", "c"])
    depth = Integer("depth", (1, 4))
    eager = Categorical("eager", [True, False])
    space.add(algorithm, depth, eager)
    space.add(EqualsCondition(depth, algorithm, "b"))
    space.add(
        ForbiddenAndConjunction(
            ForbiddenEqualsClause(algorithm, "c"), ForbiddenEqualsClause(eager, True)
        )
    )
    return space


ALL_OF_IT = 2 + 4 * 2 + 1


def drawn(space: ConfigurationSpace, n: int, *, seed: int = 0) -> list[Configuration]:
    configurations = Configurations(space, [], seed=seed)
    return [configurations[i] for i in range(configurations.draw(n))][:n]


def test_they_are_uniform() -> None:
    values = [config["x"] for config in drawn(a_space(), 4000)]
    shares = np.histogram(values, bins=10, range=(0, 1))[0] / 4000
    assert shares == pytest.approx(0.1, abs=0.02)


def test_priors_hold() -> None:
    space = ConfigurationSpace({"x": Float("x", (0, 1), distribution=Normal(0.5, 0.1))})
    values = [config["x"] for config in drawn(space, 1000)]
    assert np.mean(values) == pytest.approx(0.5, abs=0.02)
    assert np.std(values) == pytest.approx(0.1, abs=0.02)


def test_none_comes_twice_and_a_finite_space_is_used_up() -> None:
    space = conditional_space()
    configs = drawn(space, 50)
    assert len(configs) == len(set(configs)) == ALL_OF_IT
    for config in configs:
        config.check_valid_configuration()
        assert ("depth" in config) == (config["algorithm"] == "b")
        assert (config["algorithm"], config["eager"]) != ("c", True)


def test_they_depend_on_the_seed_alone() -> None:
    space = a_space()
    reference = drawn(space, 200, seed=1)
    space.sample_configuration(17)
    assert drawn(space, 200, seed=1) == reference
    one_by_one = Configurations(space, [], seed=1)
    assert [one_by_one[i] for i in range(200)] == reference
    assert drawn(space, 200, seed=2) != reference


def test_the_users_own_random_stream_is_left_alone() -> None:
    space, untouched = a_space(), a_space()
    drawn(space, 300)
    assert space.sample_configuration(5) == untouched.sample_configuration(5)


def test_given_ones_come_first_and_are_not_drawn_again() -> None:
    space = conditional_space()
    given = space.sample_configuration(3)
    given = list(dict.fromkeys([*given, *given]))
    configurations = Configurations(space, [*given, *given], seed=0)
    assert [configurations[i] for i in range(len(given))] == given
    assert configurations.draw(100) == ALL_OF_IT
    counts = Counter(configurations[i] for i in range(ALL_OF_IT))
    assert set(counts.values()) == {1}
    with pytest.raises(IndexError, match=f"the space has only {ALL_OF_IT} configurations"):
        configurations[ALL_OF_IT]


def test_a_configuration_is_known_by_its_values() -> None:
    space = conditional_space()
    configurations = Configurations(space, [], seed=0)
    for number in range(ALL_OF_IT):
        copy = Configuration(space, dict(configurations[number]))
        assert configurations.number_of(copy) == number
    unseen = Configurations(space, [], seed=0)
    assert unseen.number_of(space.get_default_configuration()) is None


def test_it_is_known_by_its_values_also_where_its_vector_differs() -> None:
    space = ConfigurationSpace()
    space.add(Float("rate", (1e-6, 1.0), log=True), Categorical("shape", [(1, 2), (3,)]))
    configurations = Configurations(space, [], seed=0)
    for number in range(100):
        values = dict(configurations[number])
        values["rate"] = json.loads(json.dumps(values["rate"]))
        assert configurations.number_of(Configuration(space, values)) == number


def test_given_ones_of_a_copied_space_become_ones_of_ours() -> None:
    space = ConfigurationSpace()
    space.add(Integer("n", (1, 100), log=True))  # which does not equal its copy
    given = Configuration(pickle.loads(pickle.dumps(space)), {"n": 7})
    configurations = Configurations(space, [given], seed=0)
    assert configurations[0].config_space is space
    assert dict(configurations[0]) == {"n": 7}
    other = ConfigurationSpace({"m": (1, 100)}).get_default_configuration()
    with pytest.raises(ValueError, match="additional_configs must be of the scenario's space"):
        Configurations(space, [other], seed=0)


# --- in a run --------------------------------------------------------------------------------


def rank(config: Configuration, seed: int) -> float:
    """Know the best configuration of the conditional space."""
    wanted = {"algorithm": "b", "depth": 3, "eager": False}
    return float(sum(config.get(name) != value for name, value in wanted.items()))


def test_a_finite_space_is_used_up(make_scenario: Callable[..., Scenario]) -> None:
    scenario = make_scenario(configspace=conditional_space(), n_trials=500)
    facade = ACBandFacade(scenario, rank, logging_level=False, **PAPER)
    assert facade.schedule.n_configs == ALL_OF_IT - 1
    assert dict(facade.optimize()) == {"algorithm": "b", "depth": 3, "eager": False}
    assert len(facade.runhistory.get_configs()) == ALL_OF_IT
    assert 400 < facade.runhistory.finished <= 500


def test_two_configurations_are_enough(make_scenario: Callable[..., Scenario]) -> None:
    scenario = make_scenario(configspace=ConfigurationSpace({"x": [0.0, 0.3]}), n_trials=20)
    facade = ACBandFacade(scenario, exact, logging_level=False, **PAPER)
    assert facade.optimize()["x"] == 0.3
    assert facade.runhistory.finished == 20


@pytest.mark.parametrize("facade", [ACBandFacade, RandomFacade])
@pytest.mark.parametrize("options", [PAPER, {}])
def test_a_single_configuration_leaves_nothing_to_choose(
    options: dict[str, Any], facade: type[AbstractFacade], make_scenario: Callable[..., Scenario]
) -> None:
    scenario = make_scenario(configspace=ConfigurationSpace({"x": ["only"]}))
    intensifier = ACBandIntensifier(scenario, **options)
    with pytest.raises(ValueError, match="must have at least two configurations to choose from"):
        facade(scenario, exact, intensifier=intensifier, logging_level=False).optimize()


def test_a_budget_in_races_does_not_outlast_the_space(
    make_scenario: Callable[..., Scenario],
) -> None:
    space = ConfigurationSpace({"x": [f"{n}" for n in range(8)]})
    for n_trials in (1000, 3000):  # with more there would be a further pass, but nothing is left
        scenario = make_scenario(configspace=space, n_trials=n_trials)
        facade = ACBandFacade(scenario, by_name, budget=200, logging_level=False)
        assert facade.optimize()["x"] == "0"
    assert facade.intensifier.finished == "all configurations of the space have been raced"


def test_saved_trials_do_not_ask_for_more_than_the_space_has(
    make_scenario: Callable[..., Scenario],
) -> None:
    space = ConfigurationSpace({"x": [f"{n}" for n in range(35)]})
    scenario = make_scenario(configspace=space, n_trials=1000)
    options: dict[str, Any] = {
        "early_stopping": 0.1,
        "spend": "configurations",
        "logging_level": False,
    }
    facade = ACBandFacade(scenario, by_name, **options)
    assert facade.schedule.n_configs < 34  # there are some for further epochs, but not many
    assert facade.optimize()["x"] == "0"
    assert len(facade.runhistory.get_configs()) == 35


def by_name(config: Configuration, seed: int) -> float:
    return float(config["x"])


def first_racers(facade: ACBandFacade) -> list[Configuration]:
    facade.optimize()
    numbers = {n for race in races_of(facade.scenario) for n in race.racers}
    return [facade.intensifier.configurations[n] for n in sorted(numbers)]


def test_the_default_is_the_first(make_scenario: Callable[..., Scenario]) -> None:
    scenario = make_scenario()
    default = scenario.configspace.get_default_configuration()
    assert first_racers(ACBandFacade(scenario, exact, logging_level=False, **PAPER))[0] == default


def test_the_first_may_be_random_as_in_the_paper(make_scenario: Callable[..., Scenario]) -> None:
    scenario = make_scenario()
    default = scenario.configspace.get_default_configuration()
    facade = ACBandFacade(scenario, exact, first="random", logging_level=False, **PAPER)
    racers = first_racers(facade)
    assert default not in racers
    assert len(racers) == facade.schedule.n_configs + 1


@pytest.mark.parametrize("first", ["default", "random"])
@pytest.mark.parametrize("design", [DefaultInitialDesign, SobolInitialDesign])
@pytest.mark.parametrize("origin", [None, "mine", "Initial Design: Sobol"])
def test_what_the_user_adds_takes_part(
    origin: str | None,
    design: type[AbstractInitialDesign],
    first: Literal["default", "random"],
    make_scenario: Callable[..., Scenario],
) -> None:
    """So does what a design of the user's choice samples."""
    scenario = make_scenario(n_trials=300)
    space = scenario.configspace
    added = [Configuration(space, {"x": x, "n": 7}, origin=origin) for x in (0.3, 0.9)]
    initial_design = design(scenario, n_configs=4, additional_configs=added)
    sampled = design(scenario, n_configs=4).select_configurations()
    if design is DefaultInitialDesign:
        sampled = []
    facade = ACBandFacade(
        scenario,
        exact,
        initial_design=initial_design,
        first=first,
        logging_level=False,
        **PAPER,
    )
    given = [*sampled, *added]
    if first == "default":
        given.insert(0, space.get_default_configuration())
    assert facade.schedule.supply.n_given == len(given)
    racers = first_racers(facade)
    assert racers[: len(given)] == given
    assert len(racers) == facade.schedule.n_configs + len(given)
    assert facade.optimize() == added[0]


def test_a_stock_facade_races_what_the_user_adds(make_scenario: Callable[..., Scenario]) -> None:
    """Also where the schedule was looked at before."""
    scenario = make_scenario(n_trials=60)
    intensifier = ACBandIntensifier(scenario, **PAPER)
    assert intensifier.schedule.supply.n_given == 1
    added = Configuration(scenario.configspace, {"x": 0.3, "n": 7})
    design = SobolInitialDesign(scenario, n_configs=5, additional_configs=[added])
    facade = RandomFacade(
        scenario, exact, intensifier=intensifier, initial_design=design, logging_level=False
    )
    assert intensifier.schedule.supply.n_given == 2
    assert facade.optimize() == added


def test_too_few_trials_for_what_the_user_adds_is_refused(
    make_scenario: Callable[..., Scenario],
) -> None:
    scenario = make_scenario(n_trials=12)
    added = scenario.configspace.sample_configuration(10)
    design = DefaultInitialDesign(scenario, n_configs=1, additional_configs=added)
    with pytest.raises(ValueError, match="n_trials must be at least 48 .* but got 12"):
        ACBandFacade(scenario, exact, initial_design=design, logging_level=False, **PAPER)


def test_values_computed_together_are_those_computed_one_by_one() -> None:
    space = ConfigurationSpace(seed=1)
    mode = Categorical("mode", ["plain", "fancy", "no, 'really'"], default="plain")
    space.add(
        mode,
        Float("x", (-1.0, 7.3)),
        Float("log", (1e-7, 3e5), log=True),
        Float("normal", (-3.0, 3.0), distribution=Normal(0.0, 1.0)),
        Float("beta", (0.0, 2.0), distribution=Beta(2.0, 3.0)),
        Integer("n", (-5, 10**12)),
        Integer("n_log", (1, 10**6), log=True),
        Integer("n_normal", (0, 100), distribution=Normal(50.0, 9.0)),
        Integer("n_beta", (0, 100), distribution=Beta(2.0, 3.0)),
        Categorical("numbers", [0.5, 3, True], default=3),
        Categorical("lists", [[1, 2], [3]], default=[3]),
        Categorical("order", ["small", "large"], ordered=True),
        Constant("same", "always"),
        (extra := Float("extra", (0.0, 1.0))),
    )
    space.add(EqualsCondition(extra, mode, "fancy"))
    sampled = space.sample_configuration(500)
    alone = [dict(Configuration(space, vector=one.get_array().copy())) for one in sampled]
    assert compute_values(space, sampled) == alone
    assert [dict(one) for one in sampled] == alone
    kinds = [[type(value) for value in one.values()] for one in alone]
    assert [[type(value) for value in dict(one).values()] for one in sampled] == kinds
    assert len({"extra" in one for one in alone}) == 2


def test_a_uniform_configuration_keeps_its_own_values_only() -> None:
    """ConfigSpace samples many more where clauses forbid some: a view would keep all of them."""
    space = ConfigurationSpace({f"x{i}": ["a", "b", "c"] for i in range(4)})
    space.add([ForbiddenEqualsClause(space[f"x{i}"], "c") for i in range(4)])
    drawn = Configurations(space, [], seed=0)
    assert {drawn[number].get_array().base is None for number in range(5)} == {True}
