"""Reads what a racer prints: keeps the end of it, and finds the line SMAC's scripts report with."""

from __future__ import annotations

import os
import re
from collections.abc import Callable

from acband_configspace.running.race import ScriptReport

#: How much of a racer's output is kept. Enough for a long traceback, too little to fill memory.
KEPT_BYTES = 8192
#: How much of the standard output is kept for a function that reads it.
KEPT_FOR_READER = 65536
#: A longer line cannot be a report; it is not kept while its end is awaited.
LONGEST_LINE = 65536
#: The most a pipe can hold unless an administrator allows more.
LARGEST_PIPE = 1 << 20

_KEYS = ("status", "cost", "runtime", "cpu_time", "additional_info")
_FIRST_KEY = re.compile(rf"\s*({'|'.join(_KEYS)})\s*=")


class OutputTail:
    """The last bytes of a stream."""

    def __init__(self, most: int = KEPT_BYTES) -> None:
        self._most = most
        self._kept = b""

    def feed(self, data: bytes) -> None:
        """Take in what was read."""
        self._kept = (self._kept + data)[-self._most :]

    @property
    def text(self) -> str:
        """The end of the stream as text; bytes that are none show as the replacement sign."""
        return self._kept.decode(errors="replace")


class ReportFinder:
    """Finds the last report among the lines of a stream of any length."""

    def __init__(self) -> None:
        self._unfinished_line = b""
        self._report: ScriptReport | None = None

    def feed(self, data: bytes) -> None:
        """Take in what was read."""
        *lines, rest = (self._unfinished_line + data).split(b"\n")
        self._unfinished_line = rest[: LONGEST_LINE + 1]
        for line in lines:
            self._look_at(line)

    def report(self) -> ScriptReport | None:
        """Return the last report; call it at the end of the stream."""
        self._look_at(self._unfinished_line)
        self._unfinished_line = b""
        return self._report

    def _look_at(self, line: bytes) -> None:
        if b"=" in line and len(line) <= LONGEST_LINE:
            self._report = parse_report(line.decode(errors="replace")) or self._report


class RacerStreams:
    """The pipes from a racer, read as fast as it writes so that it never waits for a reader."""

    def __init__(self, *, output: int, errors: int, result: int, keeps_more: bool) -> None:
        self.output = OutputTail(KEPT_FOR_READER if keeps_more else KEPT_BYTES)
        self.errors = OutputTail()
        self.reports = ReportFinder()
        self.result = bytearray()
        self.open_pipes: dict[int, tuple[Callable[[bytes], None], ...]] = {
            output: (self.output.feed, self.reports.feed),
            errors: (self.errors.feed,),
            result: (self.result.extend,),
        }
        for pipe in self.open_pipes:
            os.set_blocking(pipe, False)

    def read(self, pipe: int) -> int:
        """Take in what has arrived; return how many bytes, 0 at the end of the stream.

        Returns -1 if nothing has arrived yet.
        """
        try:
            data = os.read(pipe, 1 << 16)
        except BlockingIOError:
            return -1
        for take in self.open_pipes[pipe]:
            take(data)
        return len(data)

    def read_rest(self) -> None:
        """Take in what a racer that has ended left in its pipes.

        Not to the end of the stream: a process it left behind may hold the pipe, even write on.
        """
        for pipe in self.open_pipes:
            total = 0
            while total < LARGEST_PIPE and (count := self.read(pipe)) > 0:
                total += count

    def close(self, pipe: int) -> None:
        """Close a pipe."""
        del self.open_pipes[pipe]
        os.close(pipe)


def parse_report(line: str) -> ScriptReport | None:
    """Read a line such as ``status=SUCCESS; cost=0.5; runtime=1.2; additional_info=a=b``.

    Returns None for any other line: a report starts with one of the known names and says at least
    the status or a cost that is a number (``status=CRASHED; cost=None`` is still a report).
    """
    if not _FIRST_KEY.match(line):
        return None
    values: dict[str, str] = {}
    for part in line.split(";"):
        key, equals, value = part.partition("=")
        if equals and key.strip() in _KEYS:
            values[key.strip()] = value.strip()
    report = ScriptReport(
        status=values.get("status"),
        cost=_costs(values.get("cost")),
        runtime=_number(values.get("runtime")),
        cpu_time=_number(values.get("cpu_time")),
        additional_info=values.get("additional_info"),
    )
    return None if report.status is None and report.cost is None else report


def _number(text: str | None) -> float | None:
    try:
        return None if text is None else float(text)
    except ValueError:
        return None


def _costs(text: str | None) -> float | tuple[float, ...] | None:
    costs = [_number(part) for part in (text or "").split(",")]
    numbers = tuple(cost for cost in costs if cost is not None)
    if len(numbers) < len(costs):
        return None
    return numbers[0] if len(numbers) == 1 else numbers
