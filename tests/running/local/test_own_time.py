"""Targets that tell their own time, and where commands run."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from race_helpers import race, statuses

from acband_configspace.running import CommandTarget, RaceTrack, ScriptReport
from acband_configspace.running.race import Clock


def read_seconds(output: str, code: int) -> ScriptReport:
    return ScriptReport(runtime=float(output))


def target_of(make_script: Callable[..., str]) -> CommandTarget:
    """Return a target that sleeps its first argument and says that it took its second."""
    return CommandTarget(
        make_script("#!/bin/sh\nsleep $1\necho $2\n"),
        to_arguments=lambda config, instance, seed, cutoff: [config["takes"], config["says"]],
        read_result=read_seconds,
    )


@pytest.mark.parametrize("clock", ["wall", "cpu"])
def test_the_targets_own_time_decides(make_script: Callable[..., str], clock: Clock) -> None:
    with RaceTrack(target_of(make_script), slots=2, clock=clock, cutoff=9.0) as track:
        report = race(track, {"takes": 0, "says": 5}, {"takes": 0.1, "says": 3}, stop_losers=False)
    assert report.winner == 1
    assert [racer.own_time for racer in report.racers] == [5.0, 3.0]


def test_one_after_the_other_the_later_may_still_win(make_script: Callable[..., str]) -> None:
    """The limit is the time measured of the first to finish, not what it says."""
    with RaceTrack(target_of(make_script), slots=1) as track:
        report = race(track, {"takes": 0.5, "says": 0.01}, {"takes": 0.1, "says": 0.005})
    assert report.winner == 1
    assert statuses(report) == ["lost", "finished"]


def test_too_long_by_its_own_clock_is_the_cutoff(make_script: Callable[..., str]) -> None:
    with RaceTrack(target_of(make_script), slots=1, cutoff=2.0) as track:
        report = race(track, {"takes": 0, "says": 2.5})
    assert statuses(report) == ["cutoff"]
    assert report.winner is None


def test_limits_leave_room_for_what_is_around_the_target(make_script: Callable[..., str]) -> None:
    """A wrapper takes longer to start than the limits allow its solver."""
    with RaceTrack(target_of(make_script), slots=1, cutoff=1.0) as track:
        first = race(track, {"takes": 0.3, "says": 0.1})
        second = race(track, {"takes": 0.3, "says": 0.1}, limits=(0.15,))
        started = time.monotonic()
        endless = race(track, {"takes": 30, "says": 30})
        taken = time.monotonic() - started
    assert statuses(first) == statuses(second) == ["finished"]
    assert statuses(endless) == ["cutoff"]
    assert taken < 5


def test_a_limit_waits_until_it_is_known_what_is_around_the_target(
    make_script: Callable[..., str],
) -> None:
    """As after a restart, when the first race has limits already."""
    with RaceTrack(target_of(make_script), slots=1, cutoff=5.0) as track:
        first = race(track, {"takes": 0.3, "says": 0.1}, limits=(0.15,))
        second = race(track, {"takes": 3.0, "says": 0.1}, limits=(0.15,))
    assert statuses(first) == ["finished"]
    assert statuses(second) == ["lost"]


def test_a_time_of_zero_is_a_time(make_script: Callable[..., str]) -> None:
    """A solver that has nothing to do says 0: what was measured is what is around it."""
    with RaceTrack(target_of(make_script), slots=1, cutoff=5.0) as track:
        first = race(track, {"takes": 0.3, "says": 0})
        second = race(track, {"takes": 0.3, "says": 0.1}, limits=(0.15,))
    assert statuses(first) == statuses(second) == ["finished"]


@pytest.mark.parametrize("told", [ScriptReport(status="SUCCESS"), ScriptReport(runtime=0.0), None])
def test_limits_hold_where_no_time_is_told(
    make_script: Callable[..., str], told: ScriptReport | None
) -> None:
    """What is read may be an answer or a cost. Some wrappers say 0 as the time then: all that they
    take counts as being around the target, and limits leave room for it, but hold."""
    target = CommandTarget(
        make_script("#!/bin/sh\nsleep $1\n"),
        to_arguments=lambda config, instance, seed, cutoff: [config["takes"]],
        read_result=lambda output, code: told,
    )
    with RaceTrack(target, slots=1, cutoff=5.0) as track:
        first = race(track, {"takes": 0.5})
        second = race(track, {"takes": 3.0}, limits=(0.4,))
    assert statuses(first) == ["finished"]
    assert statuses(second) == ["lost"]
    assert second.racers[0].time < 2.0


@pytest.mark.parametrize("says", ["-1", "inf", "nan"])
def test_a_time_that_is_none_is_a_crash(make_script: Callable[..., str], says: str) -> None:
    with RaceTrack(target_of(make_script), slots=1) as track:
        racer = race(track, {"takes": 0, "says": says}).racers[0]
    assert racer.status.value == "crashed"
    assert "runtime must be a number of seconds" in str(racer.error)


def test_a_command_runs_where_it_is_told(tmp_path: Path) -> None:
    (tmp_path / "here").write_text("7")
    target = CommandTarget(["cat", "here"], to_arguments=lambda *known: [], directory=tmp_path)
    with RaceTrack(target, slots=1) as track:
        racer = race(track, {}).racers[0]
    assert (racer.status.value, racer.output) == ("finished", "7")
    target = CommandTarget("true", directory=tmp_path / "gone")
    with RaceTrack(target, slots=1) as track:
        racer = race(track, {}).racers[0]
    assert racer.status.value == "crashed"
    assert f"in {tmp_path / 'gone'}: No such file or directory" in str(racer.error)


def test_a_crash_does_not_make_a_loser_cheaper_than_the_winner(
    make_script: Callable[..., str],
) -> None:
    """Who crashed later than the winner finished has lost, and takes at least as long."""

    def read_crash(output: str, code: int) -> ScriptReport:
        seconds, status = output.split()
        return ScriptReport(runtime=float(seconds), status=status)

    target = CommandTarget(
        make_script("#!/bin/sh\nsleep $1\necho $2 $3\n"),
        to_arguments=lambda config, instance, seed, cutoff: list(config.values()),
        read_result=read_crash,
    )
    crash = {"takes": 0.6, "says": 0.3, "status": "CRASHED"}
    with RaceTrack(target, slots=1) as track:
        report = race(track, crash, {"takes": 0, "says": 1.4, "status": "SUCCESS"})
    assert report.winner == 1
    assert statuses(report) == ["lost", "finished"]
    assert [racer.own_time for racer in report.racers] == [1.4, 1.4]


def test_who_was_stopped_takes_longer_than_the_winner_says(
    make_script: Callable[..., str],
) -> None:
    """By the time measured, which holds the wrapper's start, it would look worse than it is."""
    with RaceTrack(target_of(make_script), slots=2) as track:
        report = race(track, {"takes": 0.3, "says": 0.1}, {"takes": 30, "says": 30})
    assert statuses(report) == ["finished", "lost"]
    assert [racer.own_time for racer in report.racers] == [0.1, 0.1]
