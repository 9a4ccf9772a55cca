"""Which racer wins, when racers start and stop, and what is reported."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Mapping
from typing import Any

import psutil
import pytest
from race_helpers import race, statuses, watchers_of

from acband_configspace.running import PythonTarget, RaceSpec, RaceTrack, SupervisorDiedError


def sleeper() -> PythonTarget:
    def sleep(configuration: Mapping[str, Any]) -> Any:
        time.sleep(configuration["seconds"])
        return configuration["seconds"]

    return PythonTarget(sleep)


def burner() -> PythonTarget:
    """Sleeps, then uses CPU time."""

    def burn(configuration: Mapping[str, Any]) -> None:
        time.sleep(configuration.get("sleep", 0))
        end = time.process_time() + configuration["cpu"]
        while time.process_time() < end:
            pass

    return PythonTarget(burn)


def sleeps(*seconds: float) -> list[dict[str, object]]:
    return [{"seconds": value} for value in seconds]


def test_first_to_finish_wins_and_the_others_are_stopped() -> None:
    with RaceTrack(sleeper(), slots=3) as track:
        before = time.time()
        report = race(track, *sleeps(20, 0.2, 20))
        assert report.winner == 1
        assert statuses(report) == ["lost", "finished", "lost"]
        winner = report.racers[1]
        assert winner.returned == 0.2
        assert 0.2 <= winner.time < 20
        for racer in report.racers:
            assert before <= racer.started <= time.time()
            assert 0.2 <= racer.time < 20
        assert track.unfinished == 0


def test_nobody_finishes_nobody_wins() -> None:
    with RaceTrack(sleeper(), slots=2, cutoff=0.15) as track:
        report = race(track, *sleeps(20, 20))
    assert report.winner is None
    assert statuses(report) == ["cutoff", "cutoff"]
    assert all(0.15 <= racer.time < 20 for racer in report.racers)
    assert report.racers[0].error == "reached the cutoff of 0.15 s (wall clock)"


def test_stop_losers_can_be_switched_off() -> None:
    with RaceTrack(sleeper(), slots=3, cutoff=0.4) as track:
        report = race(track, *sleeps(0.2, 0.05, 20), stop_losers=False)
    assert report.winner == 1
    assert statuses(report) == ["finished", "finished", "cutoff"]


@pytest.mark.parametrize("slots", [1, 4])
@pytest.mark.parametrize("stop_losers", [True, False])
def test_each_racer_has_a_limit_of_its_own(slots: int, stop_losers: bool) -> None:
    limits = (0.2, None, 0, -1.0)
    with RaceTrack(sleeper(), slots=slots, cutoff=1.0) as track:
        report = race(track, *sleeps(60, 0.5, 0, 0), limits=limits, stop_losers=stop_losers)
    assert statuses(report) == ["lost", "finished", "lost", "lost"]
    assert report.winner == 1
    assert report.racers[0].time >= 0.2
    assert [racer.time for racer in report.racers[2:]] == [0, 0]


def test_a_limit_that_is_not_below_the_cutoff_changes_nothing() -> None:
    with RaceTrack(sleeper(), slots=3, cutoff=0.2) as track:
        report = race(track, *sleeps(60, 60, 60), limits=(0.2, 5, 0.1))
    assert statuses(report) == ["cutoff", "cutoff", "lost"]


def test_a_race_of_which_nobody_may_start_is_over() -> None:
    with RaceTrack(sleeper(), slots=2) as track:
        report = race(track, *sleeps(0, 0), limits=(0, 0))
        assert statuses(report) == ["lost", "lost"]
        assert report.winner is None
        assert race(track, *sleeps(0.01)).winner == 0


def test_who_finishes_beyond_its_limit_has_lost() -> None:
    """Though it was not stopped in time, as on a busy machine."""
    others = set(psutil.Process().children())  # of earlier tests
    with RaceTrack(sleeper(), slots=1) as track:
        _, (watcher,) = below(others)
        track.start(RaceSpec("only", tuple(sleeps(0.5)), limits=(0.4,)))
        time.sleep(0.2)
        watcher.suspend()
        time.sleep(0.6)
        watcher.resume()
        [report] = track.wait(30)
    assert statuses(report) == ["lost"]
    assert report.winner is None


def test_limits_of_cpu_time() -> None:
    with RaceTrack(burner(), slots=2, clock="cpu", cutoff=20) as track:
        report = race(track, {"cpu": 10}, {"cpu": 0.4}, limits=(0.1, None), stop_losers=False)
    assert statuses(report) == ["lost", "finished"]
    assert 0.1 <= report.racers[0].cpu_time < 0.4


@pytest.mark.parametrize("limit", [None, 0.1])
def test_who_sleeps_on_the_cpu_clock_does_not_cost_less_than_the_winner(
    limit: float | None,
) -> None:
    """It is given up in the end; what it used by then says nothing of what it would use."""
    with RaceTrack(burner(), slots=2, clock="cpu", cutoff=20) as track:
        report = race(track, {"cpu": 0.2}, {"cpu": 0, "sleep": 30}, limits=(None, limit))
    assert statuses(report) == ["finished", "lost"]
    winner, sleeping = report.racers
    assert sleeping.own_time == (limit or winner.cpu_time)


def test_nor_less_than_it_was_allowed() -> None:
    with RaceTrack(burner(), slots=1, clock="cpu", cutoff=20) as track:
        report = race(track, {"cpu": 0, "sleep": 30}, limits=(0.1,), stop_losers=False)
    assert statuses(report) == ["lost"]
    assert report.racers[0].own_time == 0.1


@pytest.mark.parametrize("slots", [1, 3, 4])
def test_slots_change_neither_the_winner_nor_the_limit(slots: int) -> None:
    with RaceTrack(sleeper(), slots=slots, cutoff=0.5) as track:
        report = race(track, *sleeps(20, 0.3, 0.1, 20))
    assert report.winner == 2
    assert statuses(report) == ["lost", "lost", "finished", "lost"]
    # Who starts after the winner has finished is limited to its time.
    assert 0.1 <= report.racers[3].time < 0.5


def test_races_that_fit_run_side_by_side() -> None:
    with RaceTrack(sleeper(), slots=4) as track:
        for key in range(4):
            track.start(RaceSpec(key, tuple(sleeps(0.25, 20))))
        assert track.unfinished == 4
        reports = []
        while track.unfinished:
            reports += track.wait()
    assert {report.key for report in reports} == set(range(4))
    runs = sorted((r.started, r.started + r.time) for report in reports for r in report.racers)
    assert runs[3][0] < runs[0][1], "four racers at a time"
    assert runs[4][0] >= runs[0][1] - 0.05, "and no more"  # time stamps are of two clocks


def test_a_race_begins_in_any_free_slot() -> None:
    with RaceTrack(sleeper(), slots=3) as track:
        track.start(RaceSpec("long", tuple(sleeps(20, 20)), stop_losers=False))
        track.start(RaceSpec("three", tuple(sleeps(0.4, 0.1, 0.6))))
        [report] = track.wait()
        assert (report.key, report.winner) == ("three", 1)


def test_races_begin_in_the_order_given() -> None:
    with RaceTrack(sleeper(), slots=3) as track:
        track.start(RaceSpec("first", tuple(sleeps(0.6, 0.6))))
        track.start(RaceSpec("second", tuple(sleeps(0.1, 20))))
        track.start(RaceSpec("third", tuple(sleeps(0.3))))
        reports = {}
        while track.unfinished:
            reports.update({report.key: report for report in track.wait()})
    second, third = (reports[key].racers for key in ("second", "third"))
    assert reports["second"].winner == 0
    assert third[0].started >= max(racer.started for racer in second) - 0.05


@pytest.mark.parametrize("slow", [0.3, 20])
def test_who_began_before_the_winner_has_lost_too(slow: float) -> None:
    """Also if it has finished, or was stopped, before another one took less time."""
    with RaceTrack(sleeper(), slots=2) as track:
        track.start(RaceSpec("other", tuple(sleeps(0.5))))
        track.start(RaceSpec("race", tuple(sleeps(slow, 0.1))))
        reports = {}
        while track.unfinished:
            reports.update({report.key: report for report in track.wait()})
    report = reports["race"]
    assert report.winner == 1
    assert statuses(report) == ["lost", "finished"]
    assert report.racers[0].started < report.racers[1].started - 0.1
    assert report.racers[0].time >= min(slow, 0.4)


def test_wait_returns_nothing_on_timeout_or_when_nothing_is_unfinished() -> None:
    with RaceTrack(sleeper(), slots=1) as track:
        assert track.wait() == []
        track.start(RaceSpec("slow", tuple(sleeps(20))))
        start = time.monotonic()
        assert track.wait(0.1) == []
        assert time.monotonic() - start >= 0.1
        assert track.wait(0) == []


def test_wait_without_patience_still_collects() -> None:
    with RaceTrack(sleeper(), slots=1) as track:
        track.start(RaceSpec("quick", tuple(sleeps(0.01))))
        time.sleep(0.4)
        assert [report.key for report in track.wait(0)] == ["quick"]


def test_cancel_running_and_queued_races() -> None:
    with RaceTrack(sleeper(), slots=1) as track:
        track.start(RaceSpec("running", tuple(sleeps(20, 20))))
        track.start(RaceSpec("queued", tuple(sleeps(20))))
        assert track.wait(0.2) == []
        track.cancel("queued")
        [queued] = track.wait(5)
        assert (queued.key, statuses(queued), queued.winner) == ("queued", ["cancelled"], None)
        assert queued.racers[0].time == 0
        track.cancel("running")
        [running] = track.wait(5)
        assert statuses(running) == ["cancelled", "cancelled"]
        assert running.racers[0].time > 0  # how long before depends on how busy the machine is
        assert running.racers[1].time == 0
        assert race(track, *sleeps(0.01)).winner == 0  # the slot is free again
        with pytest.raises(KeyError, match="key must be that of an unfinished race but got 'x'"):
            track.cancel("x")


def test_cpu_clock_decides_by_cpu_time() -> None:
    with RaceTrack(burner(), slots=2, clock="cpu") as track:
        report = race(track, {"cpu": 0.25}, {"cpu": 0.1, "sleep": 0.4})
    assert report.winner == 1
    assert statuses(report) == ["lost", "finished"]
    assert 0.1 <= report.racers[1].cpu_time < 0.25
    assert report.racers[1].time >= 0.5


def test_cpu_clock_stops_losers_at_the_winners_cpu_time() -> None:
    with RaceTrack(burner(), slots=2, clock="cpu") as track:
        report = race(track, {"cpu": 20}, {"cpu": 0.2})
    assert statuses(report) == ["lost", "finished"]
    assert 0.2 <= report.racers[0].cpu_time < 20


def test_cpu_clock_cutoff_is_cpu_time_with_a_net_for_sleepers() -> None:
    with RaceTrack(burner(), slots=2, clock="cpu", cutoff=0.15) as track:
        report = race(track, {"cpu": 20}, {"cpu": 20, "sleep": 60})
    assert statuses(report) == ["cutoff", "cutoff"]
    busy, asleep = report.racers
    assert 0.15 <= busy.cpu_time < 20
    assert 2.5 <= asleep.time < 60  # 1 + 10 × 0.15


def test_close_is_quick_final_and_may_be_repeated() -> None:
    track = RaceTrack(sleeper(), slots=2)
    track.start(RaceSpec("slow", tuple(sleeps(600, 600))))  # longer than a test may take
    assert track.wait(0.1) == []
    track.close()
    track.close()
    for use in (track.wait, lambda: track.start(RaceSpec(1, ({},))), lambda: track.cancel("slow")):
        with pytest.raises(RuntimeError, match="the race track is closed"):
            use()


def test_a_killed_supervisor_is_an_error_and_not_a_hang() -> None:
    others = set(psutil.Process().children())  # of earlier tests
    with RaceTrack(sleeper(), slots=2) as track:
        track.start(RaceSpec("slow", tuple(sleeps(20, 20))))
        assert track.wait(0.2) == []
        [supervisor] = set(psutil.Process().children()) - others
        supervisor.kill()
        with pytest.raises(SupervisorDiedError, match=r"has died \(exit code -9\)"):
            track.wait(5)


def below(others: set[psutil.Process]) -> tuple[psutil.Process, list[psutil.Process]]:
    """The supervisor that was started after the others, and its watchers in order."""
    [supervisor] = set(psutil.Process().children()) - others
    return supervisor, watchers_of(supervisor)


def test_a_killed_watcher_says_nothing_about_its_racer() -> None:
    others = set(psutil.Process().children())  # of earlier tests
    with RaceTrack(sleeper(), slots=2) as track:
        track.start(RaceSpec("race", tuple(sleeps(0.5, 20))))
        assert track.wait(0.2) == []
        supervisor, (watcher, _) = below(others)
        watcher.kill()
        [report] = track.wait(10)
        assert statuses(report) == ["finished", "lost"]
        assert report.racers[0].returned == 0.5
        assert [len(watcher.children()) for watcher in watchers_of(supervisor)] == [0, 0]
        assert race(track, *sleeps(20, 0.1)).winner == 1


def test_a_racer_that_kills_its_watchers_has_crashed() -> None:
    def murder(configuration: Mapping[str, Any]) -> None:
        if configuration["kills"]:
            os.kill(os.getppid(), signal.SIGKILL)
        time.sleep(0.3)

    with RaceTrack(PythonTarget(murder), slots=2) as track:
        report = race(track, {"kills": True}, {"kills": False}, stop_losers=False)
        assert statuses(report) == ["crashed", "finished"]
        assert "watched over it was killed 3 times" in report.racers[0].error
        assert race(track, {"kills": False}).winner == 0


@pytest.mark.skipif(sys.platform != "linux", reason="other processes have limits on Linux only")
def test_a_racer_that_cannot_be_started_at_the_moment_waits() -> None:
    others = set(psutil.Process().children())  # of earlier tests
    with RaceTrack(sleeper(), slots=1) as track:
        race(track, *sleeps(0))  # then the watcher has all that it needs
        _, (watcher,) = below(others)
        soft, hard = watcher.rlimit(psutil.RLIMIT_NOFILE)
        watcher.rlimit(psutil.RLIMIT_NOFILE, (0, hard))
        track.start(RaceSpec("only", tuple(sleeps(0.1))))
        assert track.wait(0.3) == []
        freed = time.time()
        watcher.rlimit(psutil.RLIMIT_NOFILE, (soft, hard))
        [report] = track.wait(30)
    assert statuses(report) == ["finished"]
    assert report.racers[0].started >= freed - 0.05, "the wait is not its time"


def test_the_racer_of_a_killed_watcher_can_be_cancelled() -> None:
    others = set(psutil.Process().children())  # of earlier tests
    with RaceTrack(sleeper(), slots=1) as track:
        track.start(RaceSpec("race", tuple(sleeps(60))))
        assert track.wait(0.2) == []
        _, (watcher,) = below(others)
        watcher.suspend()
        track.cancel("race")
        time.sleep(0.2)
        watcher.kill()
        [report] = track.wait(10)
        assert statuses(report) == ["cancelled"]


def test_a_watcher_that_stays_suspended_is_replaced() -> None:
    others = set(psutil.Process().children())  # of earlier tests
    with RaceTrack(sleeper(), slots=1, cutoff=2) as track:
        _, (watcher,) = below(others)
        watcher.suspend()
        report = race(track, *sleeps(0.1))
        assert statuses(report) == ["finished"]


def test_a_watcher_that_was_slow_obeys_what_came_meanwhile() -> None:
    others = set(psutil.Process().children())  # of earlier tests
    with RaceTrack(sleeper(), slots=2) as track:
        _, (watcher, _) = below(others)
        watcher.suspend()
        track.start(RaceSpec("only", tuple(sleeps(60, 0.1))))
        time.sleep(0.5)
        watcher.resume()
        [report] = track.wait(30)
        assert statuses(report) == ["lost", "finished"]
        watcher.suspend()
        track.start(RaceSpec("only", tuple(sleeps(60))))
        time.sleep(0.2)
        track.cancel("only")
        time.sleep(0.2)
        watcher.resume()
        [report] = track.wait(30)
        assert statuses(report) == ["cancelled"]


def test_limits_of_months_are_limits() -> None:
    with RaceTrack(PythonTarget(lambda c: None), slots=1, cutoff=1e7) as track:
        track.start(RaceSpec("only", ({},)))
        [report] = track.wait(1e7)
    assert statuses(report) == ["finished"]


def test_a_busy_caller_blocks_nothing() -> None:
    """Reports that nobody collects must not keep races from running."""

    def shout(configuration: Mapping[str, Any]) -> str:
        return "x" * 100_000

    with RaceTrack(PythonTarget(shout), slots=2) as track:
        for key in range(30):
            track.start(RaceSpec(key, ({},)))
        time.sleep(0.8)
        seen: list[float] = []
        while track.unfinished:
            seen += [report.racers[0].started for report in track.wait(5)]
    assert len(seen) == 30
    assert max(seen) < time.time() - 0.05


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"slots": 0}, "slots must be at least 1 but got 0"),
        ({"slots": 1.5}, "slots must be a whole number but got 1.5"),
        ({"cutoff": 0}, "cutoff must be a positive number of seconds but got 0"),
        ({"cutoff": float("nan")}, "cutoff must be a positive number of seconds but got nan"),
        ({"memory_limit_mb": 0}, "memory_limit_mb must be positive but got 0"),
        ({"cutoff": "x"}, "cutoff must be a number but got 'x'"),
        ({"memory_limit_mb": float("nan")}, "memory_limit_mb must be positive but got nan"),
        ({"grace": "x"}, "grace must be a number but got 'x'"),
        ({"clock": 5}, "clock must be 'wall' or 'cpu' but got 5"),
        ({"clock": "sun"}, "clock must be 'wall' or 'cpu' but got 'sun'"),
        ({"grace": -1}, "grace must be a number of seconds, not negative, but got -1"),
    ],
)
def test_options_are_checked(options: dict[str, Any], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        RaceTrack(sleeper(), **{"slots": 1, **options})


def test_specifications_are_checked() -> None:
    with pytest.raises(ValueError, match="at least one racer but got none"):
        RaceSpec("empty", ())
    with pytest.raises(ValueError, match="each of the 2 configurations but got 1"):
        RaceSpec("short", ({}, {}), limits=(1.0,))
    with pytest.raises(ValueError, match="limits must be numbers of seconds but got nan"):
        RaceSpec("nan", ({},), limits=(float("nan"),))
    with pytest.raises(TypeError, match="limits must be a number but got 'x'"):
        RaceSpec("text", ({},), limits=("x",))  # type: ignore[arg-type]
    with RaceTrack(sleeper(), slots=1) as track:
        track.start(RaceSpec("same", tuple(sleeps(20))))
        with pytest.raises(ValueError, match="key must differ from all unfinished races but got"):
            track.start(RaceSpec("same", tuple(sleeps(20))))
