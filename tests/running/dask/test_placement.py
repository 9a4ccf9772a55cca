"""Who gets the next race."""

from __future__ import annotations

import pytest

from acband_configspace.running.dask.placement import Roster
from acband_configspace.running.dask.worker import races_at_once, slots_of


def _roster(racers: int = 2, **threads: int) -> Roster:
    roster = Roster(racers)
    roster.update(threads, threads)
    return roster


@pytest.mark.parametrize(
    ("threads", "racers", "races", "slots"),
    [(1, 1, 1, 1), (4, 1, 4, 4), (8, 4, 2, 8), (7, 4, 1, 4), (3, 4, 1, 3), (1, 16, 1, 1)],
)
def test_a_thread_for_each_racer(threads: int, racers: int, races: int, slots: int) -> None:
    assert races_at_once(threads, racers) == races
    assert slots_of(threads, racers) == slots
    assert slots <= threads


def test_the_emptiest_worker_is_chosen_and_none_is_overfilled() -> None:
    roster = _roster(small=1, large=6)
    chosen = []
    for race in range(10):
        member = roster.choose(look_ahead=0)
        if member is not None:
            member.races.add(race)
            chosen.append(member.address)
    assert sorted(chosen) == ["large", "large", "large", "small"]
    assert chosen[:2] == ["large", "large"]


def test_looking_ahead_is_for_full_workers() -> None:
    roster = _roster(one=2, other=2)
    chosen = []
    for race in range(4):
        member = roster.choose(look_ahead=1)
        assert member is not None
        member.races.add(race)
        chosen.append(member.address)
    assert set(chosen[:2]) == set(chosen[2:]) == {"one", "other"}
    assert roster.choose(look_ahead=1) is None


def test_a_suspect_waits_for_a_worker_of_its_own() -> None:
    roster = _roster(one=2)
    member = roster.choose(look_ahead=0)
    assert member is not None
    member.races.add(1)
    assert roster.reserve(2) is None
    assert roster.choose(look_ahead=1) is None, "the worker is kept for it"
    roster.release(1)
    assert roster.reserve(2) is member
    member.races.add(2)
    assert roster.choose(look_ahead=1) is None, "nor does any other race join it"
    roster.release(2)
    assert roster.choose(look_ahead=0) is member


def test_workers_that_cannot_are_not_asked() -> None:
    roster = Roster(1)
    roster.update({"paused": 1, "fit": 1, "unfit": 1}, {"fit": 1, "unfit": 1})
    roster.exclude("unfit")
    assert roster.capacity == 1
    assert [member.address for member in roster.update({"paused": 1}, {"paused": 1})] == [
        "fit",
        "unfit",
    ]
    assert roster.capacity == 1
