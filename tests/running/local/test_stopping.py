"""Whatever a racer starts, nothing of it is alive when its race is over."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import psutil
import pytest
from race_helpers import marked_processes, race, statuses, watchers_of

from acband_configspace.running import (
    CommandTarget,
    PythonTarget,
    RaceSpec,
    RaceTrack,
    SupervisorDiedError,
)
from acband_configspace.running.local import process_tree

IGNORE = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)"


def assert_only_watchers_are_left(mark: str, slots: int) -> None:
    """Besides the supervisor, its watchers and its guard no process is alive."""
    guards = 1 if process_tree.ADOPTS_ORPHANS else 0
    assert len(marked_processes(mark)) == 1 + slots + guards


def stubborn(configuration: Mapping[str, Any]) -> None:
    """Ignores SIGTERM, and so do its children."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    subprocess.Popen([sys.executable, "-SEc", IGNORE])
    time.sleep(configuration["seconds"])


def own_groups(configuration: Mapping[str, Any]) -> None:
    """Starts children in process groups and sessions of their own, one of which ignores TERM."""
    subprocess.Popen(["sleep", "60"], process_group=0) if sys.version_info >= (3, 11) else None
    subprocess.Popen(["sleep", "60"], start_new_session=True)
    subprocess.Popen([sys.executable, "-SEc", IGNORE], start_new_session=True)
    time.sleep(configuration["seconds"])


def daemon(configuration: Mapping[str, Any]) -> None:
    """Forks twice and changes the session, as daemons do."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.closerange(0, 3)
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            time.sleep(60)
        os._exit(0)
    os.wait()
    time.sleep(configuration["seconds"])


def restless(configuration: Mapping[str, Any]) -> None:
    """A process that replaces itself by its child all the time."""
    if os.fork() == 0:
        os.setsid()
        end = time.monotonic() + 20
        while time.monotonic() < end:
            time.sleep(0.001)
            if os.fork() != 0:
                os._exit(0)
            os.setsid()
        os._exit(0)
    time.sleep(configuration["seconds"])


def forking_pool(configuration: Mapping[str, Any]) -> None:
    """Uses multiprocessing."""
    import multiprocessing

    context = multiprocessing.get_context("fork")
    workers = [context.Process(target=time.sleep, args=(60,)) for _ in range(3)]
    for worker in workers:
        worker.start()
    time.sleep(configuration["seconds"])


def stopped(configuration: Mapping[str, Any]) -> None:
    """Is not even running."""
    os.kill(os.getpid(), signal.SIGSTOP) if configuration["seconds"] > 1 else None
    time.sleep(configuration["seconds"])


@pytest.mark.parametrize(
    "function", [stubborn, own_groups, daemon, restless, forking_pool, stopped]
)
def test_trees_of_functions(function: Callable[..., Any], mark: str) -> None:
    """Of losers and of the winner, which leaves the same processes behind."""
    with RaceTrack(PythonTarget(function), slots=2) as track:
        report = race(track, {"seconds": 60}, {"seconds": 0.2})
        assert_only_watchers_are_left(mark, slots=2)
        assert statuses(report) == ["lost", "finished"]
        assert report.racers[0].time < 60


@pytest.mark.parametrize(
    "body",
    [
        "sleep 60",
        "trap '' TERM; sleep 60 & sleep 60 & wait",
        "(trap '' TERM; (trap '' TERM; sleep 60; sleep 60) & sleep 60)",
        "setsid sleep 60 & setsid sh -c 'trap \"\" TERM; sleep 60' & sleep 60",
        "nohup sleep 60 >/dev/null 2>&1 & sleep 60",
        "(setsid sh -c '(sleep 60 &) & sleep 60' &) ; sleep 60",
    ],
)
def test_trees_of_scripts(make_script: Callable[..., str], body: str, mark: str) -> None:
    script = make_script(f"#!/bin/sh\n[ $1 = --role=winner ] && sleep 0.2 && exit\n{body}\n")
    with RaceTrack(CommandTarget(script), slots=2) as track:
        report = race(track, {"role": "loser"}, {"role": "winner"})
        assert_only_watchers_are_left(mark, slots=2)
        assert statuses(report) == ["lost", "finished"]


def test_what_a_finisher_leaves_behind_is_stopped(
    make_script: Callable[..., str], mark: str
) -> None:
    script = make_script("#!/bin/sh\nsleep 60 &\nsetsid sleep 60 &\nsleep 0.1\n")
    with RaceTrack(CommandTarget(script), slots=1) as track:
        report = race(track, {})
        assert_only_watchers_are_left(mark, slots=1)
    assert report.winner == 0
    assert report.racers[0].time < 60


def test_leftovers_of_the_winner_do_not_delay_the_losers(make_script: Callable[..., str]) -> None:
    script = make_script(
        "#!/bin/sh\n[ $1 = --role=loser ] && exec sleep 60\n"
        "(trap '' TERM; sleep 60; sleep 60) & sleep 0.1\n"
    )
    with RaceTrack(CommandTarget(script), slots=2, grace=2.0) as track:
        report = race(track, {"role": "loser"}, {"role": "winner"})
    assert report.winner == 1
    assert report.racers[0].time < 2.0


def test_a_polite_racer_has_the_grace_to_clean_up(
    make_script: Callable[..., str], tmp_path: Path
) -> None:
    note = tmp_path / "note"
    script = make_script(
        f"#!/bin/sh\ntrap 'sleep 0.1; echo clean > {note}; exit' TERM\nsleep 60 & wait\n"
    )
    with RaceTrack(CommandTarget(script), slots=1, cutoff=0.2, grace=2.0) as track:
        report = race(track, {})
    assert note.read_text() == "clean\n"
    assert statuses(report) == ["cutoff"]
    assert report.racers[0].time < 2.2


def test_fractions_of_a_second_are_honoured(make_script: Callable[..., str]) -> None:
    with RaceTrack(
        CommandTarget("sleep", to_arguments=lambda *_: ["60"]), slots=1, cutoff=0.13
    ) as track:
        [racer] = race(track, {}).racers
    assert racer.status.value == "cutoff"
    assert 0.13 <= racer.time < 1


def burn(configuration: Mapping[str, Any]) -> None:
    """Uses CPU time in a child, and in a grandchild that is killed."""
    code = "import time\nwhile time.process_time() < {}: pass\n"
    subprocess.run([sys.executable, "-SEc", code.format(0.2)], check=True)
    subprocess.Popen([sys.executable, "-SEc", code.format(60)], start_new_session=True)
    time.sleep(configuration["seconds"])


@pytest.mark.skipif(
    not process_tree.HAS_CPU_CLOCKS, reason="only Linux has clocks of other processes"
)
def test_cpu_time_is_seen_long_before_it_makes_a_tick() -> None:
    """The kernel's list of processes counts in steps of 10 ms: as long as many a run takes."""
    clock = process_tree.TreeClock()
    before = clock.look()  # there may be others, of earlier tests
    n_threads = clock.n_threads or 0
    busy = (
        "import time\n"
        "while time.process_time() % 0.01 < 0.004: pass\n"
        "print(time.process_time(), flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", busy], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        used = float(process.stdout.readline())
        assert used <= clock.look() - before < used + 0.006
        assert (clock.n_threads or 0) - n_threads == 1
        process.kill()


def test_cpu_time_of_the_whole_tree_counts() -> None:
    with RaceTrack(PythonTarget(burn), slots=2) as track:
        report = race(track, {"seconds": 60}, {"seconds": 0.4})
    assert all(0.3 < racer.cpu_time < 2 for racer in report.racers)


def burn_ignoring_children(configuration: Mapping[str, Any]) -> None:
    """Its children are reaped by nobody, so that the kernel forgets what they have used."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    code = f"import time\nwhile time.process_time() < {configuration['cpu']}: pass\n"
    with contextlib.suppress(ChildProcessError):
        subprocess.Popen([sys.executable, "-SEc", code]).wait()
    time.sleep(configuration.get("sleep", 0))


def test_cpu_time_of_children_that_nobody_reaps_counts() -> None:
    with RaceTrack(PythonTarget(burn_ignoring_children), slots=2, clock="cpu", cutoff=5) as track:
        report = race(track, {"cpu": 0.5}, {"cpu": 0.5, "sleep": 0.2}, stop_losers=False)
        assert statuses(report) == ["finished", "finished"]
        assert all(0.35 < racer.cpu_time < 1 for racer in report.racers)
        report = race(track, {"cpu": 0.3}, {"cpu": 60})
        assert statuses(report) == ["finished", "lost"]
        report = race(track, {"cpu": 60}, limits=(0.2,))
        assert statuses(report) == ["lost"]
        assert 0.1 < report.racers[0].cpu_time < 1, "counted once"


def grow(configuration: Mapping[str, Any]) -> None:
    """Takes 10 MB every millisecond or so."""
    hoard = []
    while True:
        hoard.append(b"x" * 10_000_000)
        time.sleep(0.001)


def grow_in_children(configuration: Mapping[str, Any]) -> None:
    """Four children of which each stays below the limit."""
    code = "import time; x = b'x' * 60_000_000; time.sleep(60)"
    for _ in range(4):
        subprocess.Popen([sys.executable, "-SEc", code], start_new_session=True)
    time.sleep(60)


@pytest.mark.parametrize("function", [grow, grow_in_children])
def test_memory_limit_of_functions(function: Callable[..., Any]) -> None:
    with RaceTrack(PythonTarget(function), slots=1, memory_limit_mb=150, cutoff=20) as track:
        [racer] = race(track, {}).racers
    assert racer.status.value == "memory"
    assert racer.error == "used more than the memory limit of 150 MB"


def test_memory_limit_of_scripts(make_python_script: Callable[..., str]) -> None:
    script = make_python_script(
        "import time\nhoard = []\n"
        "while True:\n    hoard.append(b'x' * 10_000_000)\n    time.sleep(0.001)\n"
    )
    with RaceTrack(CommandTarget(script), slots=1, memory_limit_mb=150, cutoff=20) as track:
        [racer] = race(track, {}).racers
    assert racer.status.value == "memory"


@pytest.mark.parametrize("slots", [1, 4])
def test_memory_limit_does_not_count_what_was_inherited(
    slots: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "large_module.py").write_text(
        "import time\nDATA = b'x' * 300_000_000\n"
        "def look(c):\n    time.sleep(0.3)\n    return len(DATA)\n"
        "def copy(c):\n    own = bytearray(DATA)\n    time.sleep(20)\n    return len(own)\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    import large_module  # type: ignore[import-not-found]

    for function, status in ((large_module.look, "finished"), (large_module.copy, "memory")):
        with RaceTrack(PythonTarget(function), slots=slots, memory_limit_mb=80) as track:
            assert statuses(race(track, {})) == [status]
    monkeypatch.delitem(sys.modules, "large_module")


def test_memory_limit_leaves_modest_racers_alone() -> None:
    """Memory that is shared with the supervisor, or only reserved, does not count."""

    def reserve(configuration: Mapping[str, Any]) -> None:
        import mmap

        mmap.mmap(-1, 2 * 2**30)
        time.sleep(0.2)

    with RaceTrack(PythonTarget(reserve), slots=1, memory_limit_mb=100) as track:
        assert statuses(race(track, {})) == ["finished"]


def test_memory_counts_where_only_resident_sizes_can_be_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As on macOS; on Linux those of programs that may be executed but not read."""

    def deny(process: psutil.Process) -> None:
        raise psutil.AccessDenied(process.pid)

    monkeypatch.setattr(psutil.Process, "memory_full_info", deny)
    resident = psutil.Process().memory_info().rss / 2**20
    used = process_tree.used_memory_mb([os.getpid()], limit_mb=1.0)
    assert used == pytest.approx(resident, rel=0.2)


def test_a_racer_that_is_stopped_as_it_starts_does_not_use_up_the_grace() -> None:
    """It can be told to end only once it has left the process group of its watcher."""
    target = CommandTarget("sleep", to_arguments=lambda *_: ["60"])
    others = set(psutil.Process().children())  # of earlier tests
    with RaceTrack(target, slots=1, grace=5.0) as track:
        [supervisor] = set(psutil.Process().children()) - others
        [watcher] = watchers_of(supervisor)
        for key in range(5):
            watcher.suspend()
            track.start(RaceSpec(key, ({},)))
            time.sleep(0.1)
            track.cancel(key)
            time.sleep(0.1)  # it finds both orders when it goes on
            watcher.resume()
            [report] = track.wait(30)
            assert statuses(report) == ["cancelled"]
            assert report.racers[0].time < 4


def test_a_racer_that_prints_all_the_time_is_held_to_its_cpu_time(
    make_python_script: Callable[..., str],
) -> None:
    script = make_python_script("while True: print('more', flush=True)\n")
    with RaceTrack(CommandTarget(script), slots=1, clock="cpu", cutoff=0.2) as track:
        [racer] = race(track, {}).racers
    assert racer.status.value == "cutoff"
    assert 0.2 <= racer.cpu_time < 0.3


def test_a_supervisor_that_is_told_to_end_ends_after_its_racers() -> None:
    """As all are that have the script's name: by ``pkill``, or a batch system."""
    target = CommandTarget("sleep", to_arguments=lambda *_: ["300"])
    others = set(psutil.Process().children())  # of earlier tests
    with RaceTrack(target, slots=2) as track:
        track.start(RaceSpec("only", ({}, {})))
        assert not track.wait(0.3)
        [supervisor] = set(psutil.Process().children()) - others
        watchers = watchers_of(supervisor)
        racers = [racer for watcher in watchers for racer in watcher.children()]
        assert len(racers) == 2
        assert sys.argv[0] not in " ".join(supervisor.cmdline())
        for process in (supervisor, *watchers, *racers):
            with contextlib.suppress(psutil.NoSuchProcess):  # the first may have seen to the last
                process.terminate()
        with pytest.raises(SupervisorDiedError):  # that racers were killed tells nothing about them
            track.wait(10)
    assert not any(process.is_running() for process in (*watchers, *racers))


@pytest.mark.parametrize("kind", ["function", "command"])
def test_a_supervisor_killed_with_its_watchers_leaves_nobody(mark: str, kind: str) -> None:
    script = "trap '' TERM; setsid sleep 60 & (sleep 60 &) ; sleep 60; sleep 60"
    target = (
        CommandTarget(["sh", "-c", script]) if kind == "command" else PythonTarget(forking_pool)
    )
    others = set(psutil.Process().children())  # of earlier tests
    with RaceTrack(target, slots=2) as track:
        track.start(RaceSpec("only", ({"seconds": 60}, {"seconds": 60})))
        assert not track.wait(0.5)
        [supervisor] = set(psutil.Process().children()) - others
        watchers = watchers_of(supervisor)
        racers = [racer for watcher in watchers for racer in watcher.children(recursive=True)]
        assert len(racers) > 4
        for process in (supervisor, *watchers):
            process.kill()
        with pytest.raises(SupervisorDiedError, match="what was found of its racers was killed"):
            track.wait(10)
        left = {process.pid for process in marked_processes(mark)}  # the guard may be
        assert not left & {racer.pid for racer in racers}


def test_watchers_survive_the_group_of_their_supervisor() -> None:
    """As when a batch system kills a group: they stop the racers then."""
    others = set(psutil.Process().children())  # of earlier tests
    with RaceTrack(PythonTarget(daemon), slots=2) as track:
        track.start(RaceSpec("only", ({"seconds": 60}, {"seconds": 60})))
        assert not track.wait(0.3)
        [supervisor] = set(psutil.Process().children()) - others
        groups = {os.getpgid(process.pid) for process in watchers_of(supervisor)}
        assert len(groups | {os.getpgid(supervisor.pid)}) == 3
        os.killpg(supervisor.pid, signal.SIGKILL)
        with pytest.raises(SupervisorDiedError):
            track.wait(10)


def test_a_memory_error_is_a_memory_failure() -> None:
    def run_out(configuration: Mapping[str, Any]) -> None:
        raise MemoryError("too much")

    with RaceTrack(PythonTarget(run_out), slots=1) as track:
        [racer] = race(track, {}).racers
    assert racer.status.value == "memory"
    assert "MemoryError: too much" in racer.error


def test_the_user_process_sleeps_while_racers_run() -> None:
    others = set(psutil.Process().children())  # of earlier tests
    with RaceTrack(PythonTarget(lambda c: time.sleep(0.5)), slots=2, memory_limit_mb=500) as track:
        own_before = time.process_time()
        [supervisor] = set(psutil.Process().children()) - others
        processes = [supervisor, *watchers_of(supervisor)]
        before = sum(sum(process.cpu_times()[:2]) for process in processes)
        race(track, {}, {})
        assert time.process_time() - own_before < 0.05 * 0.5
        after = sum(sum(process.cpu_times()[:2]) for process in processes)
    assert after - before < 0.15
