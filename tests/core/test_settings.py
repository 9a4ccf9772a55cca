"""The settings: each option checked by name, memory chosen, presets that are what they say."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest

from acband_configspace.benchmark import RuntimeTable, simulate
from acband_configspace.core.schedule import Schedule
from acband_configspace.core.settings import PAPER_OPTIONS, PRESETS, Settings, settings_from
from acband_configspace.core.statistics import MeanCost


@pytest.fixture(scope="module")
def table() -> RuntimeTable:
    rng = np.random.default_rng(0)
    return RuntimeTable(rng.lognormal(0, 1, (150, 1500)) * (1 + np.arange(150)[:, None]), 1e3)


# --- checks -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value", "error", "message"),
    [
        ("k", 1, ValueError, "k must be at least 2 but got 1"),
        ("k", 2.0, TypeError, "k must be a whole number but got 2.0"),
        ("k", True, TypeError, "k must be a whole number but got True"),
        ("first_pass", 1, ValueError, "first_pass must be at least 2 but got 1"),
        ("first_pass", 9.0, TypeError, "first_pass must be a whole number but got 9.0"),
        ("first", "worst", ValueError, "first must be 'default' or 'random' but got 'worst'"),
        ("proposals", "best", ValueError, "proposals must be one of 'uniform', 'learned'"),
        ("proposals", 3, TypeError, "proposals must be a name or have a method propose but got 3"),
        ("memory", 1, TypeError, "memory must be True or False but got 1"),
        ("alpha", 0, ValueError, "alpha must lie strictly between 0 and 1 but got 0"),
        ("alpha", "x", TypeError, "alpha must be a number but got 'x'"),
        ("delta", 1.0, ValueError, "delta must lie strictly between 0 and 1 but got 1.0"),
        ("delta", math.nan, ValueError, "delta must lie strictly between 0 and 1"),
        ("n_candidates", 0, ValueError, "n_candidates must be at least 1 but got 0"),
        ("n_epochs", 0, ValueError, "n_epochs must be at least 1 but got 0"),
        ("budget", 0, ValueError, "budget must be at least 1 but got 0"),
        ("playoff", -1, ValueError, "playoff must be at least 0 but got -1"),
        ("playoff", None, TypeError, "playoff must be a whole number but got None"),
        ("statistic", "best", ValueError, "statistic must be one of 'wins', .* but got 'best'"),
        ("statistic", 3, TypeError, "statistic must be a name or an object with scores"),
        ("early_stopping", 1, ValueError, r"early_stopping must be None or lie in \[0, 1\)"),
        ("spend", "all", ValueError, "spend must be one of 'nothing', 'configurations' but got"),
    ],
)
def test_bad_values_are_named(name: str, value: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        Settings(**{name: value})


def test_unknown_options_are_named() -> None:
    with pytest.raises(TypeError, match="'aplha' is not an option of AC-Band; these are: k,"):
        settings_from("default", aplha=0.1)


def test_numbers_of_numpy_are_numbers() -> None:
    settings = Settings(k=np.int64(3), first_pass=np.int32(9))  # type: ignore[arg-type]
    assert (settings.k, settings.first_pass) == (3, 9)
    assert type(settings.k) is int


def test_settings_are_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        Settings().k = 3  # type: ignore[misc]


# --- memory -------------------------------------------------------------------------------------

GIVEN: dict[str, Any] = {
    "alpha": 0.1, "delta": 0.1, "n_candidates": 5, "n_epochs": 1, "budget": 50, "statistic": "mean",
    "early_stopping": None, "playoff": 0, "spend": "configurations",
}  # fmt: skip


@pytest.mark.parametrize("name", PAPER_OPTIONS)
def test_an_option_of_the_papers_schedule_chooses_it(name: str) -> None:
    assert Settings(**{name: GIVEN[name]}).memory is False
    assert Settings(**{name: GIVEN[name]}, memory=False).memory is False
    with pytest.raises(ValueError, match=f"{name} must not be given with memory=True"):
        Settings(**{name: GIVEN[name]}, memory=True)


@pytest.mark.parametrize("option", [{}, {"k": 3}, {"first": "random"}])
def test_the_other_options_leave_it_to_memory(option: dict[str, Any]) -> None:
    assert Settings(**option).memory is True
    assert Settings(**option, memory=False).memory is False


def test_asking_for_the_default_of_a_paper_option_chooses_the_schedule_too() -> None:
    assert not settings_from(statistic="wins").memory
    assert not settings_from(Settings(k=3), delta=0.05).memory
    assert settings_from(Settings(alpha=0.1), k=3) == Settings(alpha=0.1, k=3)
    assert settings_from(budget=None, n_candidates=None).memory  # nothing was given
    assert not settings_from(early_stopping=None).memory  # but this means something
    assert not settings_from(memory=None, statistic="wins").memory  # None leaves it open


class Own:
    """Proposals of a user's own."""

    def propose(self, configurations: Any, known: Any) -> None:
        return None


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"proposals": "learned"}, "proposals must be 'uniform' with the paper's schedule"),
        ({"proposals": "selector"}, "proposals must be 'uniform' with the paper's schedule"),
        ({"proposals": Own()}, "proposals must be 'uniform' with the paper's schedule"),
        ({"first_pass": 9}, "first_pass must be None with the paper's schedule but got 9"),
    ],
)
def test_what_has_no_meaning_in_the_papers_schedule_is_refused(
    option: dict[str, Any], message: str
) -> None:
    assert Settings(**option).memory
    with pytest.raises(ValueError, match=message):
        Settings(**option, memory=False)
    with pytest.raises(ValueError, match=message):
        settings_from("paper", **option)


def test_how_many_race() -> None:
    assert [Settings().racers(racing=racing) for racing in (True, False)] == [4, 8]
    assert [Settings(memory=False).racers(racing=racing) for racing in (True, False)] == [2, 2]
    assert [Settings(k=5).racers(racing=racing) for racing in (True, False)] == [5, 5]


def test_the_statistic_says_whether_groups_can_be_decided_early() -> None:
    assert Settings(alpha=0.1).early_stopping == 0.0
    by_mean = Settings(statistic="mean")
    assert by_mean.early_stopping is None
    assert by_mean.judge_by == Settings(statistic=MeanCost()).judge_by
    with pytest.raises(ValueError, match="the test counts wins"):
        Settings(statistic="mean", early_stopping=0.1)


# --- presets ------------------------------------------------------------------------------------


def test_the_papers_preset_is_the_default_of_simulate(table: RuntimeTable) -> None:
    assert simulate(table, **PRESETS["paper"].settings()) == simulate(table)


@pytest.mark.parametrize("name", PRESETS)
def test_presets_are_settings(name: str) -> None:
    assert settings_from(name) == PRESETS[name] == settings_from(PRESETS[name])
    assert settings_from(name, k=7) == dataclasses.replace(
        PRESETS[name], k=7, memory=PRESETS[name].memory
    )


def test_presets_can_be_changed() -> None:
    changed = settings_from("paper", alpha=0.01)
    assert (changed.alpha, changed.k, changed.playoff, changed.memory) == (0.01, 2, 0, False)
    assert settings_from("default", alpha=0.01).memory is False
    with pytest.raises(ValueError, match="must not be given with memory=True"):
        settings_from("paper", memory=True)


@pytest.mark.parametrize(
    "settings",
    [Settings(memory=False), Settings(k=3, memory=False), Settings(spend="configurations")],
)
def test_settings_serve_as_a_preset(settings: Settings) -> None:
    assert settings_from(settings) == settings
    assert Settings(**settings.settings()) == settings


def test_unknown_presets() -> None:
    with pytest.raises(ValueError, match="preset must be one of 'default', 'paper' but got 'best'"):
        settings_from("best")


# --- what they mean to a schedule ---------------------------------------------------------------


def test_alpha_of_none_lets_the_budget_say() -> None:
    few, many = (Schedule.plan(budget, k=4, alpha=None, n_epochs=1) for budget in (100, 5029))
    assert few.n_configs < many.n_configs
    for schedule in (few, many):
        assert min(r.races_per_group for e in schedule.epochs for r in e.rounds) >= 5
    with pytest.raises(ValueError, match="n0 needs alpha or n_candidates"):
        Schedule.plan(100, alpha=None, n0=50)


@pytest.mark.parametrize("n_epochs", [1, 2, 3, 20])
def test_at_most_so_many_epochs(n_epochs: int) -> None:
    schedule = Schedule.plan(20118, n_epochs=n_epochs)
    assert len(schedule.epochs) <= n_epochs
    assert schedule.n_candidates < schedule.n0 <= 2 * schedule.n_candidates
    assert schedule.n_configs >= schedule.n_candidates
    with pytest.raises(ValueError, match="n0 must be None with n_epochs"):
        Schedule.plan(20118, n_epochs=n_epochs, n0=80)
