"""Write one HTML page about a run, finished or not; it needs no network to be read.

examples:
  acband report acband_output/my_run-0
  acband report my_run --output page.html --csv trials.csv
"""

from __future__ import annotations

import argparse
from pathlib import Path

from acband_configspace.cli import exit_codes


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what the command takes."""
    parser.add_argument("run", metavar="RUN", type=Path, help="the run's directory")
    parser.add_argument("--output", type=Path, help="the page (RUN/report.html)")
    parser.add_argument("--csv", type=Path, help="write all trials to this file as well")


def run(arguments: argparse.Namespace) -> int:
    """Write the page."""
    from acband_configspace.runlog.replay import Run

    run_ = Run.load(arguments.run)
    if arguments.csv is not None:
        from acband_configspace.runlog.csv import write_trials
        from acband_configspace.runlog.words import counted

        write_trials(run_, arguments.csv)
        print(f"{arguments.csv}: {counted(len(run_.trials), 'trial')}")
    from acband_configspace.runlog.report import html_report

    output = arguments.output or arguments.run / "report.html"
    output.write_text(html_report(run_), encoding="utf-8")
    print(output)
    return exit_codes.DONE
