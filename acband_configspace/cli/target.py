"""A command whose output is its result, as a Python function."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from acband_configspace.cli.command_lines import CommandLine
from acband_configspace.cli.results import ABORT, ResultReader


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
            If it says that it ran out of memory.
        """
        words = self.line.words(dict(config), instance, seed, self.cutoff)
        try:
            done = subprocess.run(
                words,
                cwd=self.directory,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                check=False,
                text=True,
                errors="replace",
                env=os.environ,
            )
        except OSError as error:
            raise TargetFailedError(f"could not start {words[0]!r}: {error.strerror}") from error
        code = done.returncode
        if code not in self.success_codes:
            raise TargetFailedError(f"exited with code {code}\n{done.stderr[-2000:]}".strip())
        report = self.reader(done.stdout, code)
        if report is None:
            raise _failure(None, None, done.stderr)
        if report.status != "SUCCESS" or not isinstance(report.cost, float):
            raise _failure(report.status, report.additional_info, done.stderr)
        return report.cost


def _failure(status: str | None, reason: str | None, errors: str) -> Exception:
    if status == "MEMORYOUT":
        return MemoryError("the target says that it ran out of memory")
    words = [f"the target said {status}" if status in (ABORT, "TIMEOUT") else "", reason or ""]
    text = ": ".join(word for word in words if word) or "the target printed no result"
    return TargetFailedError("\n".join(filter(None, (text, errors[-2000:].strip()))))
