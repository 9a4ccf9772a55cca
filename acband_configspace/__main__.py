"""The command line: ``python -m acband_configspace report RUN_DIR``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from acband_configspace._version import __version__
from acband_configspace.runlog.replay import NoRunError, Run


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code."""
    arguments = _parser().parse_args(argv)
    try:
        return _report(arguments)
    except NoRunError as error:
        print(f"error: {error}", file=sys.stderr)
    except OSError as error:
        print(f"error: cannot write: {error}", file=sys.stderr)
    return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m acband_configspace")
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(dest="command", required=True)
    text = "Write one HTML page about a run, finished or not; it needs no network to be read."
    report = commands.add_parser("report", help=text, description=text)
    report.add_argument("run", metavar="RUN_DIR", type=Path, help="the scenario's output directory")
    report.add_argument("--output", type=Path, help="the page (RUN_DIR/report.html)")
    report.add_argument("--csv", type=Path, help="write all trials to this file as well")
    return parser


def _report(arguments: argparse.Namespace) -> int:
    run = Run.load(arguments.run)
    if arguments.csv is not None:
        from acband_configspace.runlog.csv import write_trials

        write_trials(run, arguments.csv)
        print(f"{arguments.csv}: {len(run.trials)} trials")
    from acband_configspace.runlog.report import html_report

    output = arguments.output or arguments.run / "report.html"
    output.write_text(html_report(run), encoding="utf-8")
    print(output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
