"""The values that pass between the core and the runners."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acband_configspace.core.ends import End
from acband_configspace.core.race import Outcome, Race, RaceId

numbers = st.integers(0, 10**6)


@given(numbers, numbers, numbers, numbers, numbers)
def test_a_name_is_read_as_it_was_written(a: int, b: int, c: int, d: int, e: int) -> None:
    race = RaceId(a, b, c, d, e)
    assert RaceId.parse(str(race)) == race


def test_races_are_in_the_order_of_their_places() -> None:
    assert RaceId(1, 1, 1, 0, 2) < RaceId(1, 1, 1, 1, 0) < RaceId(1, 1, 2, 0, 0)
    assert RaceId(1, 9, 9, 9, 9) < RaceId(2, 1, 1, 0, 0)


@pytest.mark.parametrize("text", ["", "1.1.1.0", "1.1.1.0.0.0", "1.1.x.0.0", "1.1.-1.0.0"])
def test_other_names_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="a race must be named by five numbers, as 1.1.2.0.3"):
        RaceId.parse(text)


def test_who_says_nothing_has_finished() -> None:
    assert Outcome([1, 2]) == Outcome((1.0, 2.0), [End.FINISHED, End.FINISHED])
    assert Outcome([1.0], ["lost"]).ends == (End.LOST,)  # type: ignore[list-item]


def test_only_who_finished_or_lost_has_a_cost_in_a_race() -> None:
    outcome = Outcome([1.0, 2.0, 3.0, 4.0], [End.FINISHED, End.LOST, End.CRASHED, End.CUTOFF])
    assert outcome.censored == (False, True, False, False)
    assert outcome.finishing_costs == (1.0, 2.0, math.inf, math.inf)


def test_bad_outcomes_are_refused() -> None:
    with pytest.raises(ValueError, match="ends must have 2 entries, as costs, but got 1"):
        Outcome([1.0, 2.0], [End.LOST])
    with pytest.raises(ValueError, match="costs must be numbers"):
        Outcome([1.0, math.nan])
    with pytest.raises(ValueError, match="'asleep' is not a valid End"):
        Outcome([1.0], ["asleep"])  # type: ignore[list-item]


def test_values_are_frozen_and_hashable() -> None:
    race = Race(RaceId(1, 1, 1, 0, 0), 5, (0, 1))
    assert len({race, Race(RaceId(1, 1, 1, 0, 0), 5, (0, 1))}) == 1
    with pytest.raises(AttributeError):
        race.instance = 6  # type: ignore[misc]
    with pytest.raises(AttributeError):
        Outcome([1.0]).costs = ()  # type: ignore[misc]
