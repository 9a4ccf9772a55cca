"""Scripts and binaries: their command lines, their output, and how they fail."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from race_helpers import race, statuses

from acband_configspace.running import CommandTarget, RaceTrack, ScriptReport
from acband_configspace.running.race import RacerReport

ECHO_ARGUMENTS = "import json, sys; print(json.dumps(sys.argv[1:]))"
AWKWARD = "a b  c'd\"e;f\ng$HOME`h`*&|é"


def run_command(
    command: str | list[str],
    configuration: Mapping[str, Any] | None = None,
    *,
    to_arguments: Any = None,
    cutoff: float | None = None,
    **options: Any,
) -> RacerReport:
    target = CommandTarget(command, to_arguments=to_arguments)
    with RaceTrack(target, slots=1, cutoff=cutoff) as track:
        return race(track, configuration or {}, **options).racers[0]


def test_smacs_calling_convention(make_python_script: Callable[..., str]) -> None:
    script = make_python_script(ECHO_ARGUMENTS)
    racer = run_command(script, {"x": 0.5, "name": "two words"}, instance="i 1", seed=3)
    expected = ["--instance=i 1", "--seed=3", "--x=0.5", "--name=two words"]
    assert json.loads(racer.output) == expected
    assert racer.command == (script, *expected)
    assert racer.status.value == "finished"


def test_awkward_characters_arrive_unchanged(make_python_script: Callable[..., str]) -> None:
    script = make_python_script(ECHO_ARGUMENTS, name=AWKWARD)
    racer = run_command([script, AWKWARD], {AWKWARD: AWKWARD}, instance=AWKWARD)
    assert json.loads(racer.output) == [
        AWKWARD,
        f"--instance={AWKWARD}",
        f"--{AWKWARD}={AWKWARD}",
    ]


def test_own_command_line() -> None:
    def to_arguments(
        configuration: Mapping[str, Any], instance: str, seed: int, cutoff: float | None
    ) -> Any:
        return ["-t", cutoff, f"-x{configuration['x']}", instance, seed]

    racer = run_command(
        [sys.executable, "-SEc", ECHO_ARGUMENTS],
        {"x": 1},
        to_arguments=to_arguments,
        instance="file",
        seed=9,
        cutoff=2.5,
    )
    assert json.loads(racer.output) == ["-t", "2.5", "-x1", "file", "9"]


@pytest.mark.parametrize(
    ("to_arguments", "error"),
    [
        (lambda *known: 1 / 0, "ZeroDivisionError"),
        (lambda *known: "-x 1", "to_arguments must return a list of arguments but got '-x 1'"),
        (lambda *known: ["a\0b"], "embedded null byte"),
    ],
    ids=["raises", "returns text", "null byte"],
)
def test_a_wrong_command_line_is_a_crash(to_arguments: Any, error: str) -> None:
    racer = run_command("true", to_arguments=to_arguments)
    assert racer.status.value == "crashed"
    assert error in racer.error


def test_a_hyperparameter_named_like_an_argument_is_a_crash() -> None:
    racer = run_command("true", {"seed": 1}, seed=2)
    assert "a hyperparameter must not be named 'seed'" in racer.error
    assert run_command("true", {"seed": 1}).status.value == "finished"


def test_commands_are_checked() -> None:
    with pytest.raises(ValueError, match=r"command must name a program but got \[\]"):
        CommandTarget([])
    with pytest.raises(ValueError, match="command must name a program but got ''"):
        CommandTarget("")
    with pytest.raises(TypeError, match="to_arguments must be callable but got 'x'"):
        CommandTarget("true", to_arguments="x")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="read_result must be callable but got 5"):
        CommandTarget("true", read_result=5)  # type: ignore[arg-type]


def test_files_that_cannot_be_started(
    tmp_path: Path, make_script: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    plain = tmp_path / "plain.txt"
    plain.write_text("echo hello\n")
    unreadable = make_script("#!/bin/sh\n", name="unreadable")
    os.chmod(unreadable, 0)
    cases = {
        str(tmp_path / "missing"): "there is no such file",
        "no-such-program": "it is not on the PATH",
        "plain.txt": "it is not on the PATH; if you mean the file here, write ./plain.txt",
        str(tmp_path): "it is a directory",
        str(plain): "it is not executable (try chmod +x)",
        unreadable: "it is not executable (try chmod +x)",
        make_script("", name="empty"): "the file is empty",
        make_script("echo hello\n", name="no first line"): "it is neither a binary for this "
        "machine nor a script whose first line names its interpreter (such as #!/bin/sh)",
        make_script("#!/no/such/interpreter\n", name="bad first line"): "the interpreter named in "
        "its first line (#!...) does not exist",
    }
    for program, reason in cases.items():
        racer = run_command(program)
        assert racer.status.value == "crashed"
        assert racer.error == f"could not start {program!r}: {reason}"
        assert racer.command == (program,)


def test_a_script_that_may_be_executed_but_not_read_is_a_crash(
    make_script: Callable[..., str],
) -> None:
    if os.geteuid() == 0:
        pytest.skip("the superuser may read everything")
    script = make_script("#!/bin/sh\n")
    os.chmod(script, 0o111)
    racer = run_command(script)
    assert racer.status.value == "crashed"
    assert "exited with code" in racer.error


@pytest.mark.parametrize(
    ("body", "status", "error"),
    [
        (":", "finished", None),
        ("exit 3", "crashed", "exited with code 3"),
        ("echo details >&2; exit 1", "crashed", "exited with code 1\ndetails"),
        ("kill -SEGV $$", "crashed", "was killed by SIGSEGV"),
        ("echo 'status=SUCCESS; cost=1'; exit 2", "crashed", "exited with code 2"),
        ("echo 'cost=nan'", "crashed", "reported cost=nan, which is not finite"),
        (
            "echo 'cost=1,-inf; status=SUCCESS'",
            "crashed",
            "reported cost=(1.0, -inf), which is not finite",
        ),
        ("echo 'status=TIMEOUT; cost=inf'", "cutoff", "reported status=TIMEOUT"),
        ("echo 'status=CRASHED; cost=1'", "crashed", "reported status=CRASHED"),
        ("echo 'status=CRASHED; cost=None'", "crashed", "reported status=CRASHED"),
        ("echo 'status=TIMEOUT; cost=1'", "cutoff", "reported status=TIMEOUT"),
        ("echo 'cost=1; status=MEMORYOUT'", "memory", "reported status=MEMORYOUT"),
        (
            "echo 'status=OOPS'",
            "crashed",
            "reported status=OOPS, which is none of SUCCESS, CRASHED, TIMEOUT, MEMORYOUT",
        ),
    ],
)
def test_exit_codes_and_reported_failures(
    make_script: Callable[..., str], body: str, status: str, error: str | None
) -> None:
    racer = run_command(make_script(f"#!/bin/sh\n{body}\n"))
    assert (racer.status.value, racer.error) == (status, error)


@pytest.mark.parametrize(("code", "status"), [(10, "finished"), (20, "finished"), (0, "crashed")])
def test_solvers_with_exit_codes_of_their_own(
    make_script: Callable[..., str], code: int, status: str
) -> None:
    target = CommandTarget(make_script(f"#!/bin/sh\nexit {code}\n"), success_codes=(10, 20))
    with RaceTrack(target, slots=1) as track:
        racer = race(track, {}).racers[0]
    assert racer.status.value == status
    assert racer.error == (None if status == "finished" else f"exited with code {code}")


def test_a_signal_is_a_crash_whatever_codes_are_success(make_script: Callable[..., str]) -> None:
    target = CommandTarget(make_script("#!/bin/sh\nkill -SEGV $$\n"), success_codes=range(256))
    with RaceTrack(target, slots=1) as track:
        assert race(track, {}).racers[0].error == "was killed by SIGSEGV"


def test_success_codes_are_checked() -> None:
    for wrong in ((), "10", 10):
        with pytest.raises(TypeError, match="success_codes must be a collection of exit codes"):
            CommandTarget("true", success_codes=wrong)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="success_codes must lie in 0..255 but got 256"):
        CommandTarget("true", success_codes=(0, 256))


def read_answer(output: str, code: int) -> Any:
    """As one writes it for a SAT solver."""
    if "s UNKNOWN" in output:
        return ScriptReport(status="TIMEOUT")
    if "garbage" in output:
        raise ValueError("what is this?")
    if "s SATISFIABLE" not in output:
        return None
    return ScriptReport(cost=float(output.split("cost ")[1].split()[0]), additional_info=str(code))


@pytest.mark.parametrize(
    ("text", "status", "error", "reported"),
    [
        ("s SATISFIABLE cost 3", "finished", None, ScriptReport(cost=3.0, additional_info="10")),
        ("s SATISFIABLE cost nan", "crashed", "reported cost=nan, which is not finite", ...),
        ("s UNKNOWN", "cutoff", "reported status=TIMEOUT", ScriptReport(status="TIMEOUT")),
        ("nothing", "finished", None, None),
        ("cost=2; status=CRASHED", "finished", None, None),
        ("garbage", "crashed", "ValueError: what is this?", None),
    ],
)
def test_a_result_in_the_programs_own_words(
    make_script: Callable[..., str], text: str, status: str, error: str | None, reported: Any
) -> None:
    script = make_script(f"#!/bin/sh\necho '{text}'\nexit 10\n")
    target = CommandTarget(script, success_codes=(10,), read_result=read_answer)
    with RaceTrack(target, slots=1) as track:
        racer = race(track, {}).racers[0]
    assert racer.status.value == status
    assert racer.error is None if error is None else error in racer.error
    assert racer.reported == reported or reported is ...


def test_who_has_no_answer_stops_nobody(make_script: Callable[..., str]) -> None:
    """The output is read before the race is judged."""
    script = make_script(
        "#!/bin/sh\n[ $1 = --how=quit ] && echo 's UNKNOWN' && exit\n"
        "sleep 0.3; echo 's SATISFIABLE cost 1'\n"
    )
    with RaceTrack(CommandTarget(script, read_result=read_answer), slots=2) as track:
        report = race(track, {"how": "quit"}, {"how": "work"})
    assert statuses(report) == ["cutoff", "finished"]
    assert report.winner == 1


def test_a_reader_gets_more_of_the_output_than_is_reported(
    make_python_script: Callable[..., str],
) -> None:
    script = make_python_script("print('x' * 100_000)")
    target = CommandTarget(script, read_result=lambda text, code: ScriptReport(cost=len(text)))
    with RaceTrack(target, slots=1) as track:
        racer = race(track, {}).racers[0]
    assert racer.reported.cost == 65536
    assert len(racer.output) == 8192


def test_a_reader_that_returns_something_else_is_a_crash() -> None:
    target = CommandTarget("true", read_result=lambda text, code: 3)  # type: ignore[arg-type, return-value]
    with RaceTrack(target, slots=1) as track:
        racer = race(track, {}).racers[0]
    assert racer.status.value == "crashed"
    assert "read_result must return a ScriptReport or None but got 3" in racer.error


def test_a_reader_that_exits_is_a_crash() -> None:
    target = CommandTarget("true", read_result=lambda text, code: sys.exit("no result"))
    with RaceTrack(target, slots=1) as track:
        racer = race(track, {}).racers[0]
    assert racer.status.value == "crashed"
    assert "read_result failed" in racer.error
    assert "SystemExit: no result" in racer.error


def test_a_reader_that_does_not_come_back_is_a_crash() -> None:
    target = CommandTarget("true", read_result=lambda text, code: time.sleep(600))
    with RaceTrack(target, slots=1) as track:
        racer = race(track, {}).racers[0]
    assert racer.status.value == "crashed"
    assert "TimeoutError: not done after 10 s" in racer.error


def test_the_limit_of_a_command(make_script: Callable[..., str]) -> None:
    script = make_script("#!/bin/sh\nsleep 60 & sleep 60\n")
    with RaceTrack(CommandTarget(script), slots=3, cutoff=0.4) as track:
        report = race(track, {}, {}, {}, limits=(0.1, 0, None))
    assert statuses(report) == ["lost", "lost", "cutoff"]


def test_a_report_among_banners_is_read(make_script: Callable[..., str]) -> None:
    script = make_script(
        "#!/bin/sh\n"
        "echo 'My Solver 1.0; level=3; status=starting'\n"
        "echo 'cost=1; status=SUCCESS'\n"
        "echo\n"
        "printf 'cost=0.5, 0.25; runtime=1.5; cpu_time=2; status=SUCCESS; additional_info=a b'\n"
    )
    racer = run_command(script)
    reported = racer.reported
    assert racer.status.value == "finished"
    assert (reported.cost, reported.runtime, reported.cpu_time) == ((0.5, 0.25), 1.5, 2.0)
    assert (reported.status, reported.additional_info) == ("SUCCESS", "a b")


def test_failures_never_win(make_script: Callable[..., str]) -> None:
    script = make_script(
        "#!/bin/sh\n"
        "case $1 in\n"
        "--how=exit) exit 1;;\n"
        "--how=report) echo 'status=CRASHED';;\n"
        "--how=nan) echo 'cost=nan; status=SUCCESS';;\n"
        "--how=work) sleep 0.2;;\n"
        "esac\n"
    )
    with RaceTrack(CommandTarget(script), slots=4) as track:
        report = race(track, *({"how": how} for how in ("exit", "report", "work", "nan")))
    assert report.winner == 2
    assert statuses(report) == ["crashed", "crashed", "finished", "crashed"]


def test_megabytes_of_output_neither_block_nor_pile_up(
    make_python_script: Callable[..., str],
) -> None:
    script = make_python_script(
        "import sys\n"
        "sys.stdout.write('status=SUCCESS; cost=3\\n' + 'x' * 1_000_000 + '\\n')\n"
        "sys.stderr.write('y' * 10_000_000 + 'end')\n"
        "sys.exit(1)\n"
    )
    racer = run_command(script)
    assert racer.reported.cost == 3
    assert len(racer.output) <= 8192
    assert len(str(racer.error)) < 10_000
    assert racer.error.endswith("yend")


def test_closing_its_output_does_not_end_a_racer(make_python_script: Callable[..., str]) -> None:
    script = make_python_script("import os, time\nos.closerange(0, 100)\ntime.sleep(0.3)\n")
    racer = run_command(script)
    assert racer.status.value == "finished"
    assert racer.time >= 0.3


def test_a_script_reads_nothing_and_sees_no_foreign_descriptors(
    make_python_script: Callable[..., str],
) -> None:
    script = make_python_script(
        "import os, sys\nprint(repr(sys.stdin.read()), len(os.listdir('/proc/self/fd')))\n"
    )
    assert run_command(script).output == "'' 4\n"  # the fourth is the folder being listed


def test_output_that_is_not_text_is_shown_as_far_as_possible(
    make_python_script: Callable[..., str],
) -> None:
    script = make_python_script("import os\nos.write(1, b'\\xff\\xfe ok')\n")
    assert run_command(script).output == "\N{REPLACEMENT CHARACTER}" * 2 + " ok"
