"""Show the configuration that leads a run, finished or not.

examples:
  acband show acband_output/my_run-0
  acband show my_run --json > best.json
  acband show my_run --command
"""

from __future__ import annotations

import argparse
import json
import shlex
from pathlib import Path

from acband_configspace.cli import exit_codes
from acband_configspace.cli.commands.common import shown_values
from acband_configspace.cli.run_directory import incumbent_of, scenario_of_run


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what the command takes."""
    parser.add_argument("run", metavar="RUN", type=Path, help="the run's directory")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--json", action="store_true", help="its values as one JSON object")
    how.add_argument(
        "--command", dest="as_command", action="store_true", help="the command line it stands for"
    )
    parser.add_argument("--instance", default="INSTANCE", help="the instance in that command line")
    parser.add_argument(
        "--scenario", type=Path, metavar="FILE", help="the run's scenario, if it has moved"
    )


def run(arguments: argparse.Namespace) -> int:
    """Print the incumbent."""
    directory = arguments.run.resolve()
    values = incumbent_of(directory)
    if arguments.json:
        print(json.dumps(values))
    elif arguments.as_command:
        scenario_file = scenario_of_run(directory, arguments.scenario)
        ordered = {name: values[name] for name in scenario_file.space if name in values}
        instance = None if scenario_file.instances is None else arguments.instance
        cutoff, seed = scenario_file.cutoff, scenario_file.seed
        print(shlex.join(scenario_file.line.words(ordered, instance, seed, cutoff)))
    else:
        print(shown_values(values))
    return exit_codes.DONE
