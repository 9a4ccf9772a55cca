"""Which Python callables race, and what becomes of what they do."""

from __future__ import annotations

import contextlib
import functools
import os
import pickle
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy
import pytest
from ConfigSpace import ConfigurationSpace
from race_helpers import race, statuses

from acband_configspace.running import PythonTarget, RaceTrack, TargetLoadError
from acband_configspace.running.race import RacerReport


class Adder:
    def __init__(self, offset: float) -> None:
        self.offset = offset

    def add(self, configuration: Mapping[str, Any]) -> Any:
        return configuration["x"] + self.offset

    def __call__(self, configuration: Mapping[str, Any], seed: int) -> Any:
        return configuration["x"] + self.offset + seed


def make_closure(offset: float) -> Any:
    def closure(configuration: Mapping[str, Any]) -> float:
        return configuration["x"] + offset

    return closure


def add_two(offset: float, configuration: Mapping[str, Any], other: int = 0) -> Any:
    return configuration["x"] + offset + other


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda configuration: configuration["x"] + 10, 11),
        (make_closure(20), 21),
        (functools.partial(add_two, 30), 31),
        (functools.partial(add_two, 30, other=1), 32),
        (Adder(40).add, 41),
        (Adder(50), 58),
        (len, 1),
    ],
    ids=["lambda", "closure", "partial", "partial with names", "method", "object", "builtin"],
)
def test_any_callable_races(function: Callable[..., Any], expected: int) -> None:
    with RaceTrack(PythonTarget(function), slots=1) as track:
        report = race(track, {"x": 1}, seed=7)
    assert report.racers[0].returned == expected
    assert report.racers[0].error is None


def run_function(
    function: Callable[..., Any], configuration: Mapping[str, Any] | None = None, **options: Any
) -> RacerReport:
    with RaceTrack(PythonTarget(function), slots=1, **options) as track:
        return race(track, configuration or {}).racers[0]


def test_arguments_are_passed_if_the_function_takes_them() -> None:
    with RaceTrack(PythonTarget(lambda c, seed, instance: (instance, seed)), slots=1) as track:
        assert race(track, {}, instance="i", seed=3).racers[0].returned == ("i", 3)
        assert race(track, {}).racers[0].returned == (None, None)
    target = PythonTarget(lambda c, cutoff=5, instance="default": (cutoff, instance))
    with RaceTrack(target, slots=1, cutoff=2.5) as track:
        assert race(track, {}, seed=3).racers[0].returned == (2.5, "default")
    assert PythonTarget(lambda c, **names: names).arguments == ("instance", "seed", "cutoff")


def test_configurations_keep_their_type_and_the_space_is_sent_once() -> None:
    from ConfigSpace import ConfigurationSpace  # here, or every supervisor would import it

    space = ConfigurationSpace({"x": (0.0, 1.0)}, seed=1)

    def describe(configuration: Any) -> object:
        return type(configuration).__name__, len(configuration.config_space), configuration["x"]

    target = PythonTarget(describe)
    sample = space.sample_configuration()
    alone = target.job(sample, instance=None, seed=None, cutoff=None, shared=None)
    shared = target.job(sample, instance=None, seed=None, cutoff=None, shared=space)
    assert len(shared.arguments) < len(alone.arguments) / 4
    with RaceTrack(target, slots=1, shared=space) as track:
        report = race(track, sample)
    assert report.racers[0].returned == ("Configuration", 1, sample["x"])
    assert report.racers[0].time < 0.3  # ConfigSpace is not imported by each racer


def test_an_exception_is_a_crash_with_its_traceback() -> None:
    def fail(configuration: Mapping[str, Any]) -> None:
        print("on the way")
        raise KeyError("missing thing")

    racer = run_function(fail)
    assert racer.status.value == "crashed"
    assert "in fail" in racer.error
    assert "KeyError: 'missing thing'" in racer.error
    assert racer.output == "on the way\n"


def test_of_a_long_message_both_ends_are_kept() -> None:
    def fail(configuration: Mapping[str, Any]) -> None:
        raise ValueError("begin " + "x" * 5_000_000 + " end")

    racer = run_function(fail)
    assert racer.status.value == "crashed"
    assert len(racer.error or "") < 10_000
    assert all(text in racer.error for text in ("in fail", "ValueError: begin x", "x end"))


@pytest.mark.parametrize(
    ("function", "error"),
    [
        (lambda c: sys.exit(3), "the function called sys.exit(3)"),
        (lambda c: sys.exit("bye"), "the function called sys.exit('bye')"),
        (lambda c: os._exit(3), "the function exited with code 3 instead of returning"),
        (lambda c: os._exit(0), "the function exited with code 0 instead of returning"),
        (
            lambda c: os.kill(os.getpid(), signal.SIGSEGV),
            "the function was killed by SIGSEGV instead of returning",
        ),
        (
            lambda c: os.kill(os.getpid(), signal.SIGKILL),
            "the function was killed by SIGKILL (perhaps by the kernel, for lack of memory) "
            "instead of returning",
        ),
    ],
    ids=["exit 3", "exit text", "_exit 3", "_exit 0", "segfault", "killed"],
)
def test_leaving_without_returning_is_a_crash(function: Callable[..., Any], error: str) -> None:
    racer = run_function(function)
    assert (racer.status.value, racer.error) == ("crashed", error)


def test_a_crash_does_not_win_and_does_not_stop_others() -> None:
    def run(configuration: Mapping[str, Any]) -> Any:
        time.sleep(configuration["seconds"])
        return 1 / configuration["divisor"]

    with RaceTrack(PythonTarget(run), slots=2) as track:
        report = race(track, {"seconds": 0, "divisor": 0}, {"seconds": 0.2, "divisor": 1})
    assert statuses(report) == ["crashed", "finished"]
    assert report.winner == 1


def test_exit_without_a_code_is_a_normal_end() -> None:
    racer = run_function(lambda c: sys.exit())
    assert racer.status.value == "finished"


def test_values_that_cannot_be_pickled_are_kept_as_text() -> None:
    racer = run_function(lambda c: threading.Lock())
    assert racer.status.value == "finished"
    assert "lock object" in racer.returned

    class Local:
        def __repr__(self) -> str:
            return "Local()"

    assert run_function(lambda c: Local()).returned == "Local()"


def test_of_large_values_the_numbers_and_short_parts_are_kept() -> None:
    assert run_function(lambda c: list(range(1000))).returned == list(range(1000))
    text = run_function(lambda c: [0.0] * 300_000).returned
    assert text == repr([0.0] * 300_000)[:1000]
    large = run_function(lambda c: (0.5, {"steps": 3, "trace": [0.0] * 300_000})).returned
    assert large == (0.5, {"steps": 3, "trace": text})


class Unspeakable:
    """Can be pickled, but not shown."""

    def __repr__(self) -> str:
        raise RuntimeError("no words")


def test_objects_that_cannot_be_shown_arrive_as_text() -> None:
    for value in (Unspeakable(), [Unspeakable()], (1.0, {"x": Unspeakable()})):
        racer = run_function(lambda c, value=value: value)
        assert racer.status.value == "finished"
        assert isinstance(racer.returned, str)
    racer = run_function(lambda c: sys.exit(Unspeakable()))  # type: ignore[arg-type]
    assert "the function called sys.exit(<" in racer.error


@pytest.mark.parametrize("value", [float("nan"), float("inf"), numpy.float64("-inf")])
def test_a_number_that_is_not_finite_is_a_crash_and_stops_nobody(value: float) -> None:
    def run(configuration: Mapping[str, Any]) -> Any:
        time.sleep(configuration["seconds"])
        return value if configuration["seconds"] == 0 else 1.0

    with RaceTrack(PythonTarget(run), slots=2) as track:
        report = race(track, {"seconds": 0}, {"seconds": 0.3})
    assert statuses(report) == ["crashed", "finished"]
    assert report.racers[0].error == f"the function returned {float(value)}, which is not finite"


class SlowToPickle:
    def __reduce__(self) -> tuple[Any, ...]:
        time.sleep(1)
        return int, ()


def test_what_is_returned_is_not_part_of_the_time() -> None:
    def target(configuration: Mapping[str, Any]) -> object:
        time.sleep(configuration["seconds"])
        return SlowToPickle() if configuration["slow"] else 0

    racers = ({"seconds": 0.1, "slow": True}, {"seconds": 0.5, "slow": False})
    with RaceTrack(PythonTarget(target), slots=2, cutoff=0.8) as track:
        report = race(track, *racers)
    assert report.winner == 0
    assert statuses(report) == ["finished", "lost"]


def test_racers_draw_their_own_random_numbers() -> None:
    def target(configuration: Mapping[str, Any]) -> object:
        return random.random(), numpy.random.random()

    with RaceTrack(PythonTarget(target), slots=2) as track:
        drawn = [
            r.returned for r in race(track, *({"n": n} for n in range(3)), stop_losers=False).racers
        ]
        again = [
            r.returned for r in race(track, *({"n": n} for n in range(3)), stop_losers=False).racers
        ]
    assert len({x for x, _ in drawn}) == len({y for _, y in drawn}) == 3
    assert [y for _, y in again] == [y for _, y in drawn], "a trial that is run again"


def test_who_has_looked_at_a_configuration_does_not_change_what_is_drawn() -> None:
    """ConfigSpace keeps what was looked at, so that it is another pickle."""
    config = ConfigurationSpace({"x": (0.0, 1.0)}, seed=1).sample_configuration()

    def target(configuration: Mapping[str, Any], seed: int) -> object:
        return numpy.random.random()

    with RaceTrack(PythonTarget(target), slots=1) as track:
        first = race(track, config, seed=1).racers[0].returned
        looked_at = dict(config)
        assert race(track, config, seed=1).racers[0].returned == first
        assert race(track, looked_at, seed=1).racers[0].returned == first
        assert race(track, config, seed=2).racers[0].returned != first


def test_where_a_choice_is_in_memory_does_not_change_what_is_drawn() -> None:
    class Choice:
        """Shown by its address."""

    def target(configuration: Mapping[str, Any]) -> object:
        return numpy.random.random()

    drawn = set()
    for _ in range(2):  # in two processes, where it is at different addresses
        with RaceTrack(PythonTarget(target), slots=1) as track:
            drawn.add(race(track, {"choice": Choice()}).racers[0].returned)
    assert len(drawn) == 1


def test_the_arguments_of_the_script_may_be_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["script", *["instance" * 10] * 3000])
    with RaceTrack(PythonTarget(lambda c: len(sys.argv)), slots=1) as track:
        assert race(track, {}).racers[0].returned == 3001


def test_streams_may_be_taken_away() -> None:
    def target(configuration: Mapping[str, Any]) -> float:
        sys.stdout = None
        return 3

    with RaceTrack(PythonTarget(target), slots=1) as track:
        assert race(track, {}).racers[0].returned == 3


def test_a_fork_that_returns_from_the_function_is_not_the_racer() -> None:
    def fork(configuration: Mapping[str, Any]) -> str:
        if os.fork() == 0:
            return "child"
        time.sleep(0.2)
        return "parent"

    assert run_function(fork).returned == "parent"


def test_half_a_result_is_a_crash() -> None:
    def interrupted(configuration: Mapping[str, Any]) -> None:
        for descriptor in os.listdir("/proc/self/fd"):
            if int(descriptor) > 2:
                with contextlib.suppress(OSError):
                    os.write(int(descriptor), pickle.dumps("x" * 1000)[:500])
        os._exit(0)

    racer = run_function(interrupted)
    assert racer.error == "something other than the racer wrote into the pipe for its result"


def test_a_result_written_by_something_else_does_not_count() -> None:
    """Neither is it unpickled, which could run anything in the process that watches."""

    def forge(configuration: Mapping[str, Any]) -> float:
        from acband_configspace.core.ends import End
        from acband_configspace.running.local.messages import ENDED, PickledValue, RacerEnd

        now = time.monotonic()
        forged = RacerEnd(now, End.FINISHED, None, PickledValue.of(0.0))
        for descriptor in os.listdir("/proc/self/fd"):
            if int(descriptor) > 2:
                with contextlib.suppress(OSError):
                    os.write(int(descriptor), ENDED.pack(now) + pickle.dumps(forged))
        return 0.0

    racer = run_function(forge)
    assert racer.status.value == "crashed"
    assert racer.error == "something other than the racer wrote into the pipe for its result"


def test_signals_and_streams_are_as_in_a_fresh_process() -> None:
    def look(configuration: Mapping[str, Any]) -> Any:
        print("x" * 100)
        return (
            signal.getsignal(signal.SIGTERM) == signal.SIG_DFL,
            signal.getsignal(signal.SIGINT) == signal.default_int_handler,
            signal.getsignal(signal.SIGCHLD) == signal.SIG_DFL,
            sys.stdin.read(),
            os.getsid(0) == os.getpid(),
            len(os.listdir("/proc/self/fd")),
        )

    racer = run_function(look)
    # Three streams, the pipe for the result, the folder being listed.
    assert racer.returned == (True, True, True, "", True, 5)
    assert racer.output == "x" * 100 + "\n"


def test_what_cannot_be_pickled_is_named_at_once() -> None:
    lock = threading.Lock()

    def use_lock(configuration: Mapping[str, Any]) -> Any:
        return lock

    with pytest.raises(TypeError, match=r"use_lock must be picklable.*lock.*inside the function"):
        PythonTarget(use_lock)
    with pytest.raises(TypeError, match="function must be callable but got 3"):
        PythonTarget(3)  # type: ignore[arg-type]


def test_a_module_that_cannot_be_imported_is_an_error_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "vanishing.py").write_text("def target(configuration): return 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    import vanishing  # type: ignore[import-not-found]

    target = PythonTarget(vanishing.target)
    (tmp_path / "vanishing.py").unlink()
    with pytest.raises(TargetLoadError, match="No module named 'vanishing'"):
        RaceTrack(target, slots=2)


def test_heavy_imports_are_paid_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = tmp_path / "imports.log"
    (tmp_path / "heavy.py").write_text(
        f"import time\ntime.sleep(0.3)\nopen({str(log)!r}, 'a').write('x')\n"
        "def target(configuration): return 1\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    import heavy  # type: ignore[import-not-found]

    with RaceTrack(PythonTarget(heavy.target), slots=2) as track:
        for _ in range(5):
            assert race(track, {}, {}).winner is not None
    assert log.read_text() == "xx"  # here and in the supervisor


SCRIPT = """
import sys
from pathlib import Path
with Path(sys.argv[1]).open("a") as log:
    log.write("ran ")
import multiprocessing
import numpy
from acband_configspace.running import PythonTarget, RaceSpec, RaceTrack

class Doubler:
    def double(self, value):
        return numpy.float64(2 * value)

def helper(value):
    return Doubler().double(value)

def target(configuration, seed):
    with multiprocessing.get_context("fork").Pool(1) as pool:  # which finds them by name
        return pool.apply(helper, [configuration["x"]]) + seed

track = RaceTrack(PythonTarget(target), slots=2)
for number in range(3):
    track.start(RaceSpec(number, ({"x": 1}, {"x": 1}), seed=number))
    [report] = track.wait(20)
    print(report.racers[report.winner].returned)
"""


def test_functions_of_a_script_without_main_guard(tmp_path: Path) -> None:
    """The script runs once, although it neither guards itself nor closes the track."""
    script = tmp_path / "my script.py"
    script.write_text(SCRIPT)
    environment = {**os.environ, "PYTHONPATH": str(Path.cwd())}
    done = subprocess.run(
        [sys.executable, script, tmp_path / "log"],
        capture_output=True, text=True, timeout=30, env=environment, cwd=tmp_path,
    )  # fmt: skip
    assert (done.stdout.split(), done.stderr) == (["2.0", "3.0", "4.0"], "")
    assert (tmp_path / "log").read_text() == "ran "
