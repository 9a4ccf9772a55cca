"""The errors a user of the plugin may want to catch."""

from __future__ import annotations


class OutcomesNeededError(RuntimeError):
    """A trial was asked for before AC-Band was told the outcomes that it needs: tell them first."""


class RunFinishedError(RuntimeError):
    """A trial was asked for after the last race was judged."""


class RunDiffersError(ValueError):
    """The output directory holds a run with other settings; ``differences`` lists them."""

    def __init__(self, directory: str, differences: list[str]) -> None:
        self.differences = differences
        listing = "\n".join(f"  {difference}" for difference in differences)
        super().__init__(
            f"the run recorded in {directory} differs from this one:\n{listing}\n"
            "Use other settings, another name or output_directory, or overwrite=True to start anew."
        )


class RunInUseError(RuntimeError):
    """Somebody else has this run open: two of them would write into one journal."""

    def __init__(self, directory: str) -> None:
        self.directory = directory
        super().__init__(
            f"the run in {directory} is open in another process, or a second time in this one. "
            "End it first, or use another seed, name or output_directory."
        )


class RunDirectoryGoneError(RuntimeError):
    """The directory of a run was deleted or moved while the run was going on."""

    def __init__(self, path: str) -> None:
        self.path = path
        super().__init__(
            f"{path} was deleted, moved or replaced while the run was going on, so nothing more "
            "can be recorded in it. Start the run again, in a directory that stays."
        )


class JournalError(ValueError):
    """A journal cannot be read: ``path`` and ``line`` (from 1) say where, ``problem`` why."""

    def __init__(self, path: str, line: int, problem: str) -> None:
        self.path = path
        self.line = line
        self.problem = problem
        super().__init__(f"line {line} of {path} {problem}")


class RunInterrupted(KeyboardInterrupt, SystemExit):  # it is no error
    """Ctrl-C ended ``optimize``; three lines have said where the run is and how to continue it.

    Catch it as the ``KeyboardInterrupt`` that it is. If nobody does, it ends the script as
    ``SystemExit`` would: with exit status 130, as shells have it, and without a traceback.
    """

    def __init__(self, summary: str) -> None:
        super().__init__(summary)
        self.summary = summary
        self.code = 130


class FirstRaceCrashedError(RuntimeError):
    """Every trial of the first round crashed, so something is wrong with the target."""


class NoWorkersError(RuntimeError):
    """The cluster had no worker for too long; started again, the run continues."""


class SchedulerLostError(RuntimeError):
    """The cluster's scheduler is gone; started again with a new one, the run continues."""
