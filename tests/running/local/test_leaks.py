"""Many races in a row leave no process, descriptor or memory behind.

300 races here; ``python -m acband_configspace.benchmark race`` runs 1,000.
"""

from __future__ import annotations

import psutil

from acband_configspace.running import CommandTarget, PythonTarget, RaceSpec, RaceTrack


def resources() -> tuple[int, int, float]:
    user = psutil.Process()
    processes = [user, *user.children(recursive=True)]
    descriptors = sum(process.num_fds() for process in processes)
    memory = sum(process.memory_full_info().uss for process in processes) / 2**20
    return len(processes), descriptors, memory


def run_races(track: RaceTrack, races: int) -> None:
    for number in range(races):
        track.start(RaceSpec(number, ({"x": number}, {"x": -number}, {"x": 0})))
        [report] = track.wait(10)
        assert report.winner is not None


def assert_no_leak(track: RaceTrack, races: int) -> None:
    run_races(track, races // 10)
    before = resources()
    run_races(track, races)
    after = resources()
    assert after[:2] == before[:2]
    assert after[2] - before[2] < 3


def test_functions() -> None:
    with RaceTrack(PythonTarget(lambda c: c["x"]), slots=3, memory_limit_mb=500) as track:
        assert_no_leak(track, races=300)


def test_commands() -> None:
    with RaceTrack(CommandTarget("true"), slots=2, cutoff=5) as track:
        assert_no_leak(track, races=150)


def test_tracks() -> None:
    def use_track() -> None:
        with RaceTrack(CommandTarget("true"), slots=2) as track:
            run_races(track, 1)

    use_track()
    before = resources()
    for _ in range(5):
        use_track()
    assert resources()[:2] == before[:2]
