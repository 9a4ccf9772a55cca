"""Print what a run would do, and run nothing.

example:
  acband plan scenario.toml --trials 5000 --k 4
"""

from __future__ import annotations

import argparse
from pathlib import Path
from tempfile import TemporaryDirectory

from acband_configspace.cli import exit_codes
from acband_configspace.cli.commands.common import add_scenario, add_seed, scenario_from


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what the command takes."""
    add_scenario(parser)
    add_seed(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print the schedule."""
    scenario_file, _ = scenario_from(arguments)
    from acband_configspace.cli.facade import make_facade

    with TemporaryDirectory() as output:  # a facade writes down what it is about to do
        print(make_facade(scenario_file, Path(output), progress=False).schedule)
    return exit_codes.DONE
