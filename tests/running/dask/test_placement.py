"""Who gets the next race."""

from __future__ import annotations

import pytest

from acband_configspace.running.dask.placement import Placement, races_at_once, slots_of


def _placement(racers: int = 2, **threads: int) -> Placement:
    placement = Placement(racers)
    placement.update(threads, threads)
    return placement


@pytest.mark.parametrize(
    ("threads", "racers", "races", "slots"),
    [(1, 1, 1, 1), (4, 1, 4, 4), (8, 4, 2, 8), (7, 4, 1, 4), (3, 4, 1, 3), (1, 16, 1, 1)],
)
def test_a_thread_for_each_racer(threads: int, racers: int, races: int, slots: int) -> None:
    assert races_at_once(threads, racers) == races
    assert slots_of(threads, racers) == slots
    assert slots <= threads


def test_the_emptiest_worker_is_chosen_and_none_is_overfilled() -> None:
    placement = _placement(small=1, large=6)
    chosen = []
    for race in range(10):
        worker = placement.choose(look_ahead=0)
        if worker is not None:
            worker.races.add(race)
            chosen.append(worker.address)
    assert sorted(chosen) == ["large", "large", "large", "small"]
    assert chosen[:2] == ["large", "large"]


def test_looking_ahead_is_for_full_workers() -> None:
    placement = _placement(one=2, other=2)
    chosen = []
    for race in range(4):
        worker = placement.choose(look_ahead=1)
        assert worker is not None
        worker.races.add(race)
        chosen.append(worker.address)
    assert set(chosen[:2]) == set(chosen[2:]) == {"one", "other"}
    assert placement.choose(look_ahead=1) is None


def test_a_suspect_waits_for_a_worker_of_its_own() -> None:
    placement = _placement(one=2)
    worker = placement.choose(look_ahead=0)
    assert worker is not None
    worker.races.add(1)
    assert placement.reserve(2) is None
    assert placement.choose(look_ahead=1) is None, "the worker is kept for it"
    placement.release(1)
    assert placement.reserve(2) is worker
    worker.races.add(2)
    assert placement.choose(look_ahead=1) is None, "nor does any other race join it"
    placement.release(2)
    assert placement.choose(look_ahead=0) is worker


def test_workers_that_cannot_are_not_asked() -> None:
    placement = Placement(1)
    placement.update({"paused": 1, "fit": 1, "unfit": 1}, {"fit": 1, "unfit": 1})
    placement.exclude("unfit", "no package")
    assert placement.capacity == 1
    assert [worker.address for worker in placement.update({"paused": 1}, {"paused": 1})] == [
        "fit",
        "unfit",
    ]
    assert placement.capacity == 1
