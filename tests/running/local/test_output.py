"""What is read from a racer's output, however it is cut into pieces."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acband_configspace.running.local.racer import (
    KEPT_BYTES,
    OutputTail,
    ReportFinder,
    parse_report,
)
from acband_configspace.running.race import ScriptReport


@pytest.mark.parametrize(
    ("line", "report"),
    [
        ("cost=0.5", ScriptReport(cost=0.5)),
        ("cost = 0.5 ;status = SUCCESS", ScriptReport(status="SUCCESS", cost=0.5)),
        ("cost=1e-3, 2; runtime=7", ScriptReport(cost=(0.001, 2.0), runtime=7.0)),
        ("status=CRASHED; cost=None", ScriptReport(status="CRASHED")),
        (
            "cost=1; cpu_time=2; additional_info=a=b c",
            ScriptReport(cost=1.0, cpu_time=2.0, additional_info="a=b c"),
        ),
        ("", None),
        ("runtime=3", None),
        ("cost=high", None),
        ("the cost=1", None),
        ("solver: status=SUCCESS", None),
        ("cost 1; status=SUCCESS", None),
    ],
)
def test_lines(line: str, report: Any) -> None:
    assert parse_report(line) == report


@given(st.text())
def test_no_line_is_an_error(line: str) -> None:
    parse_report(line)


pieces = st.lists(st.binary(max_size=40) | st.just(b"\ncost=1;status=SUCCESS\n"), max_size=20)


@given(pieces, st.integers(1, 50))
def test_pieces_do_not_matter(parts: Any, size: Any) -> None:
    stream = b"".join(parts)
    whole, cut = ReportFinder(), ReportFinder()
    whole.feed(stream)
    for start in range(0, len(stream), size):
        cut.feed(stream[start : start + size])
    report = whole.report()
    assert report == cut.report()
    if b"\ncost=1;status=SUCCESS\n" in parts:
        assert report is not None


def test_a_report_follows_a_line_without_end() -> None:
    finder = ReportFinder()
    for _ in range(100):
        finder.feed(b"cost=1" * 10_000)
    finder.feed(b"\ncost=2\n")
    assert finder.report() == ScriptReport(cost=2.0)


@given(st.lists(st.binary(max_size=3 * KEPT_BYTES), max_size=5))
def test_the_end_is_kept(parts: Any) -> None:
    tail = OutputTail()
    for part in parts:
        tail.feed(part)
    assert tail.text == b"".join(parts)[-KEPT_BYTES:].decode(errors="replace")
