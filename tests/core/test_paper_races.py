"""The streaming driver: order does not matter, waiting is said, wrong outcomes change nothing."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from acband_configspace import Schedule
from acband_configspace.core.acband import acband
from acband_configspace.core.ends import End
from acband_configspace.core.paper_races import PaperRaces, Signal
from acband_configspace.core.race import Outcome, Race, RaceId
from acband_configspace.core.statistics import Flags, Floats, Statistic


def stream(
    seed: int = 0,
    *,
    k: int = 3,
    n_candidates: int = 12,
    budget: int = 300,
    statistic: str | Statistic = "wins",
) -> PaperRaces:
    schedule = Schedule.plan(budget, k=k, n_candidates=n_candidates)
    rounds_ = acband(schedule, np.random.default_rng([seed, 2]))
    return PaperRaces(rounds_, statistic=statistic)


def noisy_outcome(race: Race, seed: int) -> Outcome:
    rng = np.random.default_rng([seed, race.instance])
    noise = rng.normal(size=100)
    return Outcome([racer * 0.05 + noise[racer] for racer in race.racers])


def finish(
    races: PaperRaces, seed: int, rng: np.random.Generator | None = None, at_once: int = 1
) -> tuple[int | None, tuple[int, ...]]:
    """Run ``at_once`` races in parallel, their outcomes arriving in random order."""
    running: list[Race] = []
    while True:
        while len(running) < at_once and isinstance(race := races.ask(), Race):
            running.append(race)
        if not running:
            assert races.ask() is Signal.DONE
            return races.winner, races.epoch_winners
        race = running.pop(int(rng.integers(len(running))) if rng else 0)
        races.tell(race, noisy_outcome(race, seed))


@given(st.integers(0, 1000), st.sampled_from([2, 3, 16, 1000]))
def test_the_order_of_arrival_changes_nothing(seed: int, at_once: int) -> None:
    alone = finish(stream(seed), seed)
    assert finish(stream(seed), seed, np.random.default_rng(seed), at_once) == alone


def test_it_says_when_it_waits_and_when_it_is_done() -> None:
    races = stream()
    handed_out = []
    while isinstance(race := races.ask(), Race):
        handed_out.append(race)
    assert race is Signal.WAIT
    assert races.ask() is Signal.WAIT
    assert {race.id[:3] for race in handed_out} == {(1, 1, 1)}
    assert races.winner is None
    for race in handed_out:
        races.tell(race, noisy_outcome(race, 0))
    race = races.ask()
    assert isinstance(race, Race)
    races.tell(race, noisy_outcome(race, 0))
    finish(races, 0)
    assert races.winner == races.epoch_winners[-1]
    with pytest.raises(ValueError, match="must be told once"):
        races.tell(handed_out[0], noisy_outcome(handed_out[0], 0))


def test_every_group_keeps_instances_of_its_own() -> None:
    races = stream()
    owners: dict[int, Race] = {}
    while isinstance(race := races.ask(), Race):
        assert race.instance not in owners
        owners[race.instance] = race
        races.tell(race, noisy_outcome(race, 0))
    assert sorted(owners) == list(range(len(owners)))


def test_refused_outcomes_change_nothing() -> None:
    races = stream()
    race = races.ask()
    assert isinstance(race, Race)
    with pytest.raises(ValueError, match="must have 3 costs"):
        races.tell(race, Outcome([1.0]))
    with pytest.raises(ValueError, match="costs must be numbers"):
        Outcome([1.0, float("nan")])
    with pytest.raises(ValueError, match="ends must have 2 entries, as costs, but got 1"):
        Outcome([1.0, 2.0], [End.LOST])
    later = Race(RaceId(1, 2, 1, 0, 0), 99, race.racers)
    with pytest.raises(ValueError, match="must be told once"):
        races.tell(later, Outcome([1.0, 2.0, 3.0]))
    races.tell(race, noisy_outcome(race, 0))
    with pytest.raises(ValueError, match="must be told once"):
        races.tell(race, noisy_outcome(race, 0))
    assert finish(races, 0) == finish(stream(), 0)


def test_a_statistic_of_means_refuses_censored_costs_at_once() -> None:
    races = stream(statistic="mean")
    race = races.ask()
    assert isinstance(race, Race)
    with pytest.raises(ValueError, match="must know every cost but got a censored one"):
        races.tell(race, Outcome([1.0, 1.0, 1.0], [End.FINISHED, End.LOST, End.LOST]))
    races.tell(race, noisy_outcome(race, 0))
    finish(races, 0)


def test_a_statistic_of_ones_own() -> None:
    class Fewest:
        needs_all_costs = True

        def scores(self, costs: Floats, censored: Flags) -> Floats:
            return np.asarray(-costs.max(axis=-2))

    races = stream(statistic=Fewest())
    while isinstance(race := races.ask(), Race):
        races.tell(race, Outcome([float(racer) for racer in race.racers]))
    assert races.winner == 0
