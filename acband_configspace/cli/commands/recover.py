"""Mend a run whose journal is damaged; a copy of it is kept, and the run can then continue.

Lines that agree with their checksums are kept, unless they follow from one that does not; but
everything after damage that may hide a plan is cut. What is missing then is run again when the run
is started the next time.

examples:
  acband recover acband_output/my_run-0
"""

from __future__ import annotations

import argparse
from pathlib import Path

from acband_configspace.cli import exit_codes


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what the command takes."""
    parser.add_argument("run", metavar="RUN", type=Path, help="the run's directory")


def run(arguments: argparse.Namespace) -> int:
    """Mend the journal and say what was salvaged."""
    from acband_configspace.errors import JournalError
    from acband_configspace.runlog.recovery import recover
    from acband_configspace.runlog.replay import NoRunError, journal_in
    from acband_configspace.runlog.words import counted

    path = journal_in(arguments.run)
    try:
        recovery = recover(path)
    except JournalError as error:
        raise NoRunError(str(error)) from None
    races = counted(recovery.n_races, "race")
    if recovery.copy is None:
        print(f"No damage found ({races}).")
        return exit_codes.DONE
    lines = ", ".join(map(str, recovery.damaged))
    print(f"Damaged: {'lines' if len(recovery.damaged) > 1 else 'line'} {lines} of {path}")
    print(f"Kept: {races}")
    if recovery.n_dependent:
        dependent = counted(recovery.n_dependent, "intact race")
        print(f"{dependent} depended on damaged ones and will be run again")
    print(f"As it was: {recovery.copy}")
    print("Start the run again, and it continues from there.")
    return exit_codes.DONE
