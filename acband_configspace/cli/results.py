"""Readers of what targets print: from the standard output and the exit code to a report.

Each reader is a value that can be called, compared and sent to another machine, and reads only.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from typing import Protocol

from acband_configspace.running.race import ScriptReport

#: A status that ends the whole run: the wrapper says that no further run makes sense.
ABORT = "ABORT"
#: How the report of a run begins that said so.
SAID_ABORT = f"the target said {ABORT}"
#: The exit codes of a run that came to its end, if what it prints says how it went.
ANY_CODE = tuple(range(256))

_STATUSES = {
    **dict.fromkeys(("SAT", "SATISFIABLE", "UNSAT", "UNSATISFIABLE", "SUCCESS", "OK"), "SUCCESS"),
    "TIMEOUT": "TIMEOUT",
    **dict.fromkeys(("MEMOUT", "MEMORYOUT"), "MEMORYOUT"),
    **dict.fromkeys(("CRASHED", "KILLED"), "CRASHED"),
    ABORT: ABORT,
}
_RESULT_LINE = re.compile(
    r"^\s*(?:(?:final\s+)?result\s+(?:for|of)\s+"
    r"(?:paramils|smac|hal|this\s+wrapper|(?:this\s+)?algorithm\s+run)|"
    r"algorithm\s+run\s+result)\s*:\s*(.*)$",
    re.IGNORECASE,
)
#: A word is a number only as a value at the end of a line: others are in messages.
_NUMBER = re.compile(
    r"(?<![\w.])[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
    r"|(?<![^\s=:])[-+]?(?i:inf(?:inity)?|nan)(?=\s*$)",
    re.MULTILINE,
)


class ResultReader(Protocol):
    """Reads what a run printed."""

    def __call__(self, text: str, code: int) -> ScriptReport | None:
        """Return what the run says about itself, None if it says nothing."""


def _crash(reason: str) -> ScriptReport:
    return ScriptReport(status="CRASHED", additional_info=reason)


@dataclass(frozen=True)
class AclibResult:
    """The result lines of ParamILS, SMAC and AClib: fields with commas, or AClib2's JSON.

    The cost is the run time, or with ``quality`` the quality, even that of a run that met its
    cutoff. The last such line counts.
    """

    quality: bool = False

    def __call__(self, text: str, code: int) -> ScriptReport | None:
        """Return the report; without a result line the run has crashed."""
        found = [match[1] for line in text.splitlines() if (match := _RESULT_LINE.match(line))]
        if not found:
            return _crash(
                f"exited with code {code} and printed no line such as 'Result for SMAC: SUCCESS, "
                "RUNTIME, RUNLENGTH, QUALITY, SEED'"
            )
        last = found[-1].strip()
        return self._json(last) if last.startswith("{") else self._fields(last)

    def _fields(self, text: str) -> ScriptReport:
        fields = [field.strip() for field in text.split(",", 5)]
        if len(fields) < 4:
            return _crash(f"the result must have at least 4 fields but is {text!r}")
        extra = fields[5] if len(fields) > 5 else None
        return self._report(fields[0], _number(fields[1]), _number(fields[3]), extra, text)

    def _json(self, text: str) -> ScriptReport:
        try:
            answer = json.loads(text)
        except ValueError:
            return _crash(f"the result is not JSON: {text!r}")
        extra = answer.get("misc") or answer.get("additional_info")
        return self._report(
            str(answer.get("status")),
            _number(answer.get("runtime")),
            _number(answer.get("cost")),
            None if extra is None else str(extra),
            text,
        )

    def _report(
        self, word: str, runtime: float | None, quality: float | None, extra: str | None, text: str
    ) -> ScriptReport:
        status = _STATUSES.get(word.strip().upper())
        if status is None:
            return _crash(f"the status must be one of {', '.join(_STATUSES)} but is {word!r}")
        if status == ABORT:
            return _crash(SAID_ABORT if extra is None else f"{SAID_ABORT}: {extra}")
        if runtime is not None and not 0 <= runtime < math.inf:
            runtime = None  # a wrapper may not know it, if the quality is what counts
        cost = quality if self.quality else runtime
        if self.quality and status == "TIMEOUT" and cost is not None and math.isfinite(cost):
            status = "SUCCESS"  # it ran until it was told to stop, and this is what it has found
        if status == "SUCCESS" and (cost is None or not math.isfinite(cost)):
            which = "quality" if self.quality else "run time"
            return _crash(f"the {which} is not a number in {text!r}")
        return ScriptReport(status=status, cost=cost, runtime=runtime, additional_info=extra)


@dataclass(frozen=True)
class IraceResult:
    """What an irace target runner prints: the cost, or the cost and the time."""

    bound: float | None = None
    """With capping: the most seconds a run may take, and each must say how many it took."""

    def __call__(self, text: str, code: int) -> ScriptReport | None:
        """Return the report; irace's rejection, an infinite cost, is a crash here."""
        words = text.split()
        numbers = [_number(word) for word in words]
        wanted = 1 if self.bound is None else 2
        if code != 0 or None in numbers or not wanted <= len(numbers) <= 2:
            what = "a cost" if self.bound is None else "a cost and a time"
            return _crash(
                f"exited with code {code}; must print only {what} but printed {text[-200:]!r}"
            )
        cost = numbers[0]
        assert cost is not None
        if not math.isfinite(cost):
            return _crash(f"rejected the configuration with a cost of {cost}")
        seconds = numbers[1] if len(numbers) == 2 else None
        if seconds is not None and not 0 <= seconds < math.inf:
            return _crash(f"the time must be a number of seconds but is {seconds}")
        late = self.bound is not None and seconds is not None and seconds >= self.bound
        return ScriptReport("TIMEOUT" if late else "SUCCESS", cost, runtime=seconds)


@dataclass(frozen=True)
class PatternResult:
    """The last match of a regular expression: its group ``cost``, or its first one, or all."""

    pattern: str

    def __call__(self, text: str, code: int) -> ScriptReport | None:
        """Return the report; without a match the run has crashed."""
        matches = list(re.finditer(self.pattern, text, re.MULTILINE))
        if not matches:
            return _crash(f"exited with code {code}; nothing it printed matches {self.pattern!r}")
        last = matches[-1]
        groups = last.groupdict()
        found = groups["cost"] if "cost" in groups else last[1 if last.re.groups else 0]
        cost = _number(found)
        if cost is None or not math.isfinite(cost):
            return _crash(f"{found!r}, which {self.pattern!r} matches, is not a number")
        return ScriptReport("SUCCESS", cost)


@dataclass(frozen=True)
class LastNumber:
    """The last number of the output, wherever it is."""

    def __call__(self, text: str, code: int) -> ScriptReport | None:
        """Return the report; without a number, or if it is infinite or NaN, the run has crashed."""
        found = _NUMBER.findall(text)
        cost = _number(found[-1]) if found else None
        if cost is None or not math.isfinite(cost):
            last = f"; the last one is {found[-1]}" if found else ""
            return _crash(
                f"exited with code {code} and printed no number that could be its cost{last}"
            )
        return ScriptReport("SUCCESS", cost)


def _number(value: object) -> float | None:
    try:
        number = float(str(value).strip())
    except ValueError:
        return None
    return None if math.isnan(number) else number
