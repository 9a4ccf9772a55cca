"""Who gets the next race."""

from __future__ import annotations

import pytest

from acband_configspace.running.dask.placement import Placement


def _placement(racers: int = 2, **threads: int) -> Placement:
    placement = Placement(racers)
    placement.update(threads, threads, now=0.0)
    return placement


def _sent(placement: Placement, *races: int, look_ahead: bool = False) -> list[str | None]:
    """Send races of so many racers; return which worker each goes to."""
    addresses: list[str | None] = []
    for n_racers in races:
        worker = placement.choose(n_racers, look_ahead=look_ahead)
        addresses.append(None if worker is None else worker.address)
        if worker is not None:
            worker.races[len(addresses)] = n_racers
    return addresses


def test_the_emptiest_worker_is_chosen_and_none_is_overfilled() -> None:
    placement = _placement(small=1, large=6)
    assert placement.slots == 7
    chosen = _sent(placement, 2, 2, 2, 2, 2)
    assert chosen[:2] == ["large", "large"]
    # The last one of those that find a thread begins on the single one of the small worker.
    assert sorted(chosen, key=str) == [None, "large", "large", "large", "small"]


def test_racers_count_and_not_races() -> None:
    """As long as challengers run alone, each needs one thread and not those of a whole race."""
    placement = _placement(4, one=4, other=4)
    assert _sent(placement, *[1] * 9) == [*["one"] * 4, *["other"] * 4, None]


def test_single_racers_leave_room_for_whole_races() -> None:
    placement = _placement(4, one=8, other=8)
    chosen = _sent(placement, 1, 1, 1, 4, 4, 4)
    assert chosen[:3] == ["one"] * 3
    assert sorted(chosen[3:], key=str) == ["one", "other", "other"]


def test_where_every_racer_is_a_race_the_load_is_spread() -> None:
    assert _sent(_placement(1, one=4, other=4), 1, 1, 1, 1) == ["one", "other", "one", "other"]


def test_a_race_begins_where_most_threads_are_free_if_it_fits_nowhere() -> None:
    placement = _placement(4, one=4, other=5)
    assert _sent(placement, 3, 4, 4) == ["other", "one", "other"]
    assert placement.choose(1, look_ahead=False) is None


@pytest.mark.parametrize("threads", [1, 3])
def test_a_worker_with_fewer_threads_than_racers_takes_one_race(threads: int) -> None:
    assert _sent(_placement(4, small=threads), 4, 4) == ["small", None]


def test_looking_ahead_is_for_full_workers() -> None:
    chosen = _sent(_placement(one=2, other=2), 2, 2, 2, 2, 2, look_ahead=True)
    assert set(chosen[:2]) == set(chosen[2:4]) == {"one", "other"}
    assert chosen[4] is None


def test_who_must_wait_waits_where_fewest_do() -> None:
    placement = _placement(4, one=4, other=4)
    chosen = _sent(placement, 4, 4, 1, 1, 1, 1, look_ahead=True)
    assert sorted(chosen[2:], key=str) == ["one", "one", "other", "other"]


def test_a_suspect_waits_for_a_worker_of_its_own() -> None:
    placement = _placement(one=2)
    worker = placement.choose(2, look_ahead=False)
    assert worker is not None
    worker.races[1] = 2
    assert placement.reserve(2) is None
    assert placement.choose(2, look_ahead=True) is None, "the worker is kept for it"
    placement.release(1)
    assert placement.reserve(2) is worker
    worker.races[2] = 2
    assert placement.choose(2, look_ahead=True) is None, "nor does any other race join it"
    placement.release(2)
    assert placement.choose(2, look_ahead=False) is worker


def test_workers_that_cannot_are_not_asked() -> None:
    placement = Placement(1)
    placement.update({"paused": 1, "fit": 1, "unfit": 1}, {"fit": 1, "unfit": 1}, now=0.0)
    placement.exclude("unfit", "no package", now=0.0)
    assert placement.slots == 1
    lost = placement.update({"paused": 1}, {"paused": 1}, now=1.0)
    assert [worker.address for worker in lost] == ["fit", "unfit"]
    assert placement.slots == 1


def test_a_worker_that_could_not_is_asked_again_after_longer_and_longer() -> None:
    """It may have lacked processes for a moment; or a package, which it lacks the next time."""
    placement, there, now = _placement(1, worker=1), {"worker": 1}, 0.0
    for seconds in (60.0, 120.0, 240.0):
        assert placement.exclude("worker", "no more processes", now=now) == seconds
        assert placement.exclude("worker", "nor for the next", now=now + 1) == seconds - 1
        placement.update(there, there, now=now + seconds - 1)
        assert placement.slots == 0
        assert placement.unfit == {"worker": "no more processes"}
        now += seconds
        placement.update(there, there, now=now)
        assert placement.slots == 1
        assert not placement.unfit
        assert not placement.has_trusted
    placement.trust("worker")
    assert placement.has_trusted
    assert placement.exclude("worker", "once more", now=now) == 60.0
    placement.forgive()
    placement.update(there, there, now=now)
    assert placement.slots == 1
