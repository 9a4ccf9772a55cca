"""However the user's process ends, no racer outlives it."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from race_helpers import marked_processes, watchers_of

from acband_configspace.running.local import process_tree

PREAMBLE = """
import os, signal, sys, time
from acband_configspace.running import CommandTarget, PythonTarget, RaceSpec, RaceTrack

def target(configuration):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if os.fork() == 0:
        os.setsid()
    time.sleep(60)

if sys.argv[1] == "function":
    track = RaceTrack(PythonTarget(target), slots=4)
elif sys.argv[1] == "plain function":
    track = RaceTrack(PythonTarget(lambda configuration: time.sleep(60)), slots=4)
elif sys.argv[1] == "program":
    track = RaceTrack(CommandTarget("sleep", to_arguments=lambda *_: ["60"]), slots=4)
else:
    script = "trap '' TERM; setsid sleep 60 & (sleep 60 &) ; sleep 60; sleep 60"
    track = RaceTrack(CommandTarget(["sh", "-c", script]), slots=4)
for key in range(3):
    track.start(RaceSpec(key, ({}, {})))
track.wait(0.3)
"""


def start(body: str, kind: str) -> subprocess.Popen[str]:
    """Start a user's process, and return when it has printed a line."""
    process = subprocess.Popen(
        [sys.executable, "-c", PREAMBLE + body, kind],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path.cwd())},
        start_new_session=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "racing\n", process.communicate()[1]
    return process


def assert_nothing_is_left(mark: str) -> None:
    deadline = time.monotonic() + 30
    while left := marked_processes(mark):
        assert time.monotonic() < deadline, [process.cmdline() for process in left]
        time.sleep(0.01)


@pytest.mark.parametrize("kind", ["function", "command"])
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_killed(mark: str, kind: str, number: int) -> None:
    process = start("print('racing', flush=True); track.wait()", kind)
    assert len(marked_processes(mark)) >= 1 + 1 + 4 + 4
    process.send_signal(number)
    assert process.wait(30) == -number
    assert_nothing_is_left(mark)


def test_killed_while_a_fork_of_it_lives_on(mark: str) -> None:
    """The fork holds the channel open, so its end must be noticed in another way."""
    body = "pid = os.fork()\nif pid == 0: time.sleep(60)\nprint('racing', flush=True); track.wait()"
    process = start(body, "function")
    [fork] = [child for child in psutil.Process(process.pid).children() if not child.children()]
    process.kill()
    process.wait(30)
    deadline = time.monotonic() + 30
    while (left := marked_processes(mark)) != [fork] and time.monotonic() < deadline:
        time.sleep(0.01)
    fork.kill()
    assert left == [fork]


def test_a_fork_that_ends_does_not_end_the_races(mark: str) -> None:
    body = (
        "if os.fork() == 0: sys.exit()\n"
        "os.wait(); time.sleep(0.2); assert track.wait(0.2) == []; track.cancel(0)\n"
        "assert [report.key for report in track.wait(30)] == [0]; print('racing', flush=True)\n"
    )
    process = start(body, "function")
    assert process.wait(30) == 0, process.communicate()[1]
    assert_nothing_is_left(mark)


@pytest.mark.parametrize("kind", ["function", "command"])
def test_interrupted(mark: str, kind: str) -> None:
    """Ctrl-C reaches the user's process alone, which may go on or clean up."""
    body = (
        "try: print('racing', flush=True); track.wait()\n"
        "except KeyboardInterrupt: pass\n"
        "track.cancel(0)\n"
        "assert [racer.status.value for racer in track.wait(30)[0].racers] == ['cancelled'] * 2\n"
        "track.close(); print('closed', flush=True)\n"
        "time.sleep(60)\n"
    )
    process = start(body, kind)
    os.killpg(process.pid, signal.SIGINT)
    assert process.stdout is not None
    assert process.stdout.readline() == "closed\n"
    assert [other.pid for other in marked_processes(mark)] == [process.pid]
    process.kill()
    process.wait()


@pytest.mark.parametrize("ending", ["", "raise RuntimeError('oops')", "sys.exit(3)", "del track"])
def test_forgotten(mark: str, ending: str) -> None:
    process = start(f"print('racing', flush=True)\n{ending}\n", "function")
    process.wait(30)
    assert_nothing_is_left(mark)


def test_killed_while_the_target_is_loading(mark: str, tmp_path: Path) -> None:
    (tmp_path / "slow_module.py").write_text(
        "import os, time\nif 'go' in os.environ: time.sleep(1)\ndef target(c): pass\n"
    )
    code = (
        f"import sys, os; sys.path.insert(0, {str(tmp_path)!r})\n"
        "import slow_module; os.environ['go'] = '1'\n"
        "from acband_configspace.running import PythonTarget, RaceTrack\n"
        "target = PythonTarget(slow_module.target); print('loading', flush=True)\n"
        "RaceTrack(target, slots=2)\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": str(Path.cwd())},
    )
    assert process.stdout is not None
    process.stdout.readline()
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    process.wait(30)
    assert_nothing_is_left(mark)


@pytest.mark.parametrize("kind", ["plain function", "program", "function", "command"])
def test_killed_with_all_that_watches(mark: str, kind: str) -> None:
    """The kernel kills the racers then, the guard what they have started."""
    process = start("print('racing', flush=True); track.wait()", kind)
    user = psutil.Process(process.pid)
    [supervisor] = user.children()
    for doomed in [user, supervisor, *watchers_of(supervisor)]:
        doomed.kill()
    process.wait(30)
    assert_nothing_is_left(mark)


@pytest.mark.skipif(sys.platform != "linux", reason="there are guards on Linux only")
def test_a_guard_that_does_not_start_is_done_without(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Here because the kernel takes no variable of that length."""
    monkeypatch.setenv(process_tree.MARK, "of this test")
    monkeypatch.setenv("TOO_LONG", "x" * 200_000)
    assert process_tree.start_guard() is None
    assert "so races run without it" in capfd.readouterr().err


@pytest.mark.skipif(sys.platform != "linux", reason="there are guards on Linux only")
def test_a_guard_is_found_like_all_others_and_ends_by_itself(
    mark: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(process_tree.MARK, f"track of {mark}")
    guard = process_tree.start_guard()
    victim = subprocess.Popen(["sleep", "60"])
    assert guard is not None
    assert guard.stdin is not None
    assert {guard.pid, victim.pid} <= {process.pid for process in marked_processes(mark)}
    guard.stdin.close()
    assert guard.wait(30) == 0, "it must not take itself for one of those to kill"
    assert victim.wait(30) == -signal.SIGKILL


@pytest.mark.parametrize("kind", ["function", "command"])
def test_killed_by_the_name_of_python(mark: str, kind: str) -> None:
    """Not with ``killall`` itself, which would end these tests: by its rule."""
    process = start("print('racing', flush=True); track.wait()", kind)
    named = [p for p in marked_processes(mark) if p.name().startswith("python")]
    assert process.pid in [p.pid for p in named]
    for doomed in named:
        doomed.kill()
    process.wait(30)
    assert_nothing_is_left(mark)


def run_script(
    tmp_path: Path, text: str, *, redirections: object = "", folder: Path | None = None
) -> tuple[int, str]:
    """Run a user's script in a shell, and return its exit code and what it has printed."""
    script = tmp_path / "script.py"
    script.write_text(text)
    command = f"exec {shlex.quote(sys.executable)} {shlex.quote(str(script))} {redirections}"
    environment = {**os.environ, "PYTHONPATH": str(Path.cwd())}
    done = subprocess.run(
        ["sh", "-c", command],
        capture_output=True, text=True, timeout=60, env=environment, cwd=folder,
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


STREAMS = """
import sys
from acband_configspace.running import CommandTarget, PythonTarget, RaceSpec, RaceTrack

def target(configuration):
    sys.stdout.write("printed")
    sys.stderr.write("complained")
    return 3

for target in (PythonTarget(target), CommandTarget(["echo", "printed"])):
    with RaceTrack(target, slots=1) as track:
        track.start(RaceSpec("only", ({},)))
        [report] = track.wait(20)
        [racer] = report.racers
        with open(sys.argv[1], "a") as result:
            print(racer.status.value, racer.output.strip(), racer.error, file=result)
"""


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&- >&- 2>&-"])
def test_streams_may_be_closed(tmp_path: Path, closed: str) -> None:
    """As by a daemon: neither is the target to blame, nor does anything else take their place."""
    result = tmp_path / "result"
    code, printed = run_script(tmp_path, STREAMS, redirections=f"{result} {closed}")
    assert (code, printed) == (0, "")
    lines = [line.split() for line in result.read_text().splitlines()]
    assert [line[0::2] for line in lines] == [["finished", "None"]] * 2
    assert all(line[1].startswith("printed") for line in lines)


def folder_with_traps(tmp_path: Path) -> Path:
    """Make a folder of modules that leave a file if anybody imports them."""
    (folder := tmp_path / "folder").mkdir()
    names = ("json", "sys", "pickle", "selectors", "socket", "psutil", "acband_configspace")
    for module in (*names, "sitecustomize", "usercustomize"):
        (folder / f"{module}.py").write_text(f"open({str(tmp_path / 'run')!r}, 'w').close()\n")
    return folder


def test_nothing_is_imported_from_the_working_directory(tmp_path: Path) -> None:
    folder = folder_with_traps(tmp_path)
    code, printed = run_script(tmp_path, STREAMS, redirections=tmp_path / "result", folder=folder)
    assert (code, printed) == (0, "")
    assert not (tmp_path / "run").exists()


def test_nor_from_one_that_a_prompt_was_moved_to(tmp_path: Path) -> None:
    """There the working directory, whichever it is, comes first on the path of the user."""
    folder = folder_with_traps(tmp_path)
    moving = (
        "import json, os, sys; from acband_configspace.running import RaceTrack; "
        f"assert sys.path[0] == ''; os.chdir({str(folder)!r})\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", moving + STREAMS, str(tmp_path / "result")],
        capture_output=True, text=True, timeout=60, cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path.cwd())},
    )  # fmt: skip
    assert (done.returncode, done.stdout + done.stderr) == (0, "")
    assert (tmp_path / "result").read_text().count("finished printed") == 2
    assert not (tmp_path / "run").exists()


ESCAPE = """
import os, time
from acband_configspace.running import PythonTarget, RaceSpec, RaceTrack

def target(configuration):
    if configuration["escapes"]:
        os.setuid(65534)
        time.sleep(60)

with RaceTrack(PythonTarget(target), slots=1, cutoff=0.3) as track:
    for escapes in (True, False):
        track.start(RaceSpec("only", ({"escapes": escapes},)))
        [report] = track.wait(20)
        print(report.racers[0].status.value, report.racers[0].error)
"""


@pytest.mark.skipif(os.geteuid() != 0 or sys.platform != "linux", reason="needs the superuser")
def test_a_racer_that_cannot_be_killed_is_named_and_left(mark: str, tmp_path: Path) -> None:
    """Here by a user who may not kill the processes of others, and a racer that becomes one."""
    without_kill = (
        "import ctypes, os, sys; ctypes.CDLL(None).prctl(24, 5, 0, 0, 0); "
        "os.execv(sys.executable, [sys.executable, sys.argv[1]])"
    )
    script = tmp_path / "script.py"
    script.write_text(ESCAPE)
    done = subprocess.run(
        [sys.executable, "-c", without_kill, str(script)],
        capture_output=True, text=True, timeout=60,
        env={**os.environ, "PYTHONPATH": str(Path.cwd())},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    [left] = marked_processes(mark)
    left.kill()
    assert "\nprocesses of this racer could not be killed and are left running: " in done.stdout
    assert str(left.pid) in done.stdout
    assert done.stdout.startswith("cutoff ")
    assert done.stdout.endswith("finished None\n")
