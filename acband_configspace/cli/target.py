"""A command whose output is its result, as a Python function."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from acband_configspace.cli.command_lines import CommandLine
from acband_configspace.cli.results import ABORT, ResultReader

#: How much of what a target prints is kept, in bytes: the end, where results stand.
KEPT_OUTPUT = 1 << 20
KEPT_ERRORS = 2000


class TargetFailedError(RuntimeError):
    """A run of the target did not come to a result."""


@dataclass(frozen=True)
class CommandFunction:
    """Runs a command, never through a shell, and returns the cost that it printed.

    Its limits and the end of its children are the racer's business: this is called in a process of
    its own.
    """

    line: CommandLine
    reader: ResultReader
    success_codes: tuple[int, ...]
    directory: str
    cutoff: float | None

    def __call__(
        self, config: Mapping[str, Any], instance: str | None = None, seed: int = 0
    ) -> float:
        """Run one configuration on one instance.

        Raises
        ------
        TargetFailedError
            If it exits with a code that is no success, or says itself that it failed.
        MemoryError
            If it says that it ran out of memory or time.
        """
        words = self.line.words(dict(config), instance, seed, self.cutoff)
        try:
            code, output, errors = _executed(words, self.directory)
        except OSError as error:
            raise TargetFailedError(f"could not start {words[0]!r}: {error.strerror}") from error
        if code not in self.success_codes:
            raise TargetFailedError(f"exited with code {code}\n{errors}".strip())
        report = self.reader(output, code)
        if report is None:
            raise _failure(None, None, errors)
        if report.status != "SUCCESS" or not isinstance(report.cost, float):
            raise _failure(report.status, report.additional_info, errors)
        return report.cost


def _failure(status: str | None, reason: str | None, errors: str) -> Exception:
    if status in ("MEMORYOUT", "TIMEOUT"):
        # A function has no word of its own for "out of time"; to the cost it is the same.
        return MemoryError(f"the target said {status}")
    words = ["the target said ABORT" if status == ABORT else "", reason or ""]
    text = ": ".join(word for word in words if word) or "the target printed no result"
    return TargetFailedError("\n".join(filter(None, (text, errors.strip()))))


def _executed(words: list[str], directory: str) -> tuple[int, str, str]:
    """Run a command to its end; return its exit code and the ends of what it printed."""
    with (
        tempfile.TemporaryFile() as errors,
        subprocess.Popen(
            words, cwd=directory, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors
        ) as process,
    ):
        assert process.stdout is not None
        kept = bytearray()
        while data := os.read(process.stdout.fileno(), 1 << 16):
            kept += data
            if len(kept) > 2 * KEPT_OUTPUT:
                del kept[:-KEPT_OUTPUT]
        code = process.wait()
        errors.seek(max(0, errors.seek(0, os.SEEK_END) - KEPT_ERRORS))
        return code, kept.decode(errors="replace"), errors.read().decode(errors="replace")
