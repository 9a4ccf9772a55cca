"""What targets print, and what it means."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acband_configspace.cli.results import AclibResult, IraceResult, LastNumber, PatternResult


@pytest.mark.parametrize(
    ("line", "status", "runtime", "quality"),
    [
        ("Result for ParamILS: SAT, 1.5, 10, 3, 42", "SUCCESS", 1.5, 3.0),
        ("Result for SMAC: UNSAT, 0.25, 0, 0, 7, more, of, it", "SUCCESS", 0.25, 0.0),
        ("  result for smac : success,2,-1,8.5,1", "SUCCESS", 2.0, 8.5),
        ("Result of this algorithm run: TIMEOUT, 5.0, 0, 42.5, 1", "TIMEOUT", 5.0, 42.5),
        ("Result for SMAC: CRASHED, 0.1, 0, 0, 1", "CRASHED", 0.1, 0.0),
        ("Result for SMAC: MEMOUT, 0.1, 0, 0, 1", "MEMORYOUT", 0.1, 0.0),
        (
            'Result of this algorithm run: {"status": "SUCCESS", "cost": 3, "runtime": 2.5, '
            '"misc": "x"}',
            "SUCCESS",
            2.5,
            3.0,
        ),
        ('Result of this algorithm run: {"status": "TIMEOUT", "runtime": 9}', "TIMEOUT", 9.0, None),
    ],
)
def test_aclib(line: str, status: str, runtime: float, quality: float | None) -> None:
    text = f"banner\nResult for SMAC: SAT, 9, 9, 9, 9\n{line}\nlast words\n"
    by_time, by_quality = AclibResult()(text, 0), AclibResult(quality=True)(text, 0)
    assert (by_time.status, by_time.runtime, by_time.cost) == (status, runtime, runtime)
    found = status == "TIMEOUT" and quality is not None  # by the cutoff, which is what counts then
    assert (by_quality.status, by_quality.cost) == ("SUCCESS" if found else status, quality)


@pytest.mark.parametrize(
    "beginning",
    [
        "Final Result for ParamILS",
        "Final  result of HAL",
        "Result for this wrapper",
        "Result of this Algorithm Run",
        "Result of algorithm run",
        "  Result   for SMAC ",
        "Algorithm run result",
    ],
)
def test_result_lines_begin_in_all_ways_that_smac_accepts(beginning: str) -> None:
    assert AclibResult()(f"{beginning}: SAT, 1.5, 10, 3, 42\n", 0).cost == 1.5


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("nothing", "printed no line"),
        ("Partial result for SMAC: SAT, 1, 1, 1, 1", "printed no line"),
        ("Result for this solver: SAT, 1, 1, 1, 1", "printed no line"),
        ("Result for SMAC: FINE, 1, 1, 1, 1", "but is 'FINE'"),
        ("Result for SMAC: SAT, 1", "at least 4 fields"),
        ("Result for SMAC: SAT, nan, 1, 1, 1", "run time is not a number"),
        ("Result of this algorithm run: {oops", "is not JSON"),
    ],
)
def test_what_is_no_result_is_a_crash_that_says_why(text: str, words: str) -> None:
    report = AclibResult()(text, 3)
    assert report.status == "CRASHED"
    assert words in report.additional_info


@pytest.mark.parametrize(
    ("text", "cost", "time"),
    [("3.5\n", 3.5, None), (" -2e3 0.7 \n", -2000.0, 0.7), ("1\n2\n", 1.0, 2.0)],
)
def test_irace(text: str, cost: float, time: float | None) -> None:
    report = IraceResult()(text, 0)
    assert (report.status, report.cost, report.runtime) == ("SUCCESS", cost, time)


@pytest.mark.parametrize(
    ("text", "code"), [("", 0), ("a 1", 0), ("1 2 3", 0), ("1", 1), ("Inf", 0), ("nan", 0)]
)
def test_what_irace_would_refuse_is_a_crash(text: str, code: int) -> None:
    assert IraceResult()(text, code).status == "CRASHED"


def test_abort_is_a_crash_that_says_so() -> None:
    report = AclibResult()("Result for SMAC: ABORT, 0.1, 0, 0, 1, no licence", 0)
    assert report is not None
    assert report.status == "CRASHED"
    assert report.additional_info == "the target said ABORT: no licence"


def test_irace_with_capping_needs_the_time() -> None:
    assert IraceResult(bound=5.0)("1", 0).status == "CRASHED"
    assert IraceResult(bound=5.0)("1 2", 0).status == "SUCCESS"
    assert IraceResult(bound=5.0)("50 5", 0).status == "TIMEOUT"
    assert IraceResult()("1 -2", 0).status == "CRASHED"


def test_a_pattern_takes_the_last_match() -> None:
    text = "cost: 5\ncost: 4.5\n"
    assert PatternResult(r"cost: (\S+)")(text, 0).cost == 4.5
    assert PatternResult(r"(?P<other>cost): (?P<cost>\S+)")(text, 0).cost == 4.5
    assert PatternResult(r"\d$")(text, 0).cost == 5.0
    assert PatternResult(r"quality: (\S+)")(text, 0).status == "CRASHED"
    assert PatternResult(r"(cost)")(text, 0).status == "CRASHED"


@pytest.mark.parametrize(
    ("text", "cost"),
    [
        ("o 12\ns OPTIMUM\n", 12.0),
        ("x1 gap=3.5e-2%", 0.035),
        ("-7", -7.0),
        ("a1b2", None),
        ("epoch 10\nloss nan\n", None),
        ("epoch 10\nloss: -NaN", None),
        ("epoch 10\nloss=Infinity", None),
        ("cost 3, infeasible after 7 nanoseconds", 7.0),
        ("cost 3.5\n[INF] done\nno NaN found\n", 3.5),
    ],
)
def test_the_last_number(text: str, cost: float | None) -> None:
    report = LastNumber()(text, 0)
    assert report.cost == cost
    assert report.status == ("CRASHED" if cost is None else "SUCCESS")


@given(st.text(), st.integers(0, 255))
def test_no_output_breaks_a_reader(text: str, code: int) -> None:
    for reader in (AclibResult(), IraceResult(), PatternResult(r"(\d+)"), LastNumber()):
        report = reader(text, code)
        assert report.status in ("SUCCESS", "CRASHED")
        assert reader == pickle.loads(pickle.dumps(reader))
