"""Write a commented scenario to start from.

examples:
  acband new
  acband new my_solver/scenario.toml
"""

from __future__ import annotations

import argparse
from pathlib import Path

from acband_configspace.cli import exit_codes
from acband_configspace.cli.errors import InputError, Place

TEMPLATE = """\
# What to tune, on what, for how long. Try it with: acband check scenario.toml
# Files are named relative to this one, and the target runs in this one's folder.

[target]
# The program and its arguments, never through a shell. The places for {parameters}, {instance},
# {seed} and {cutoff} are yours to choose; parameters and instance come last if you do not.
command = ["minisat", "-verb=0", "{parameters}", "{instance}"]
parameter = "-{name}={value}"   # how a parameter is written; two words: ["--{name}", "{value}"]
on = "-{name}"                  # how one with the values on and off (or yes and no) is written
off = "-no-{name}"
success = [10, 20]              # exit codes of a run that came to its end (default: 0)
minimise = "cpu time"           # or "wall time", or "cost"
cutoff = 5                      # seconds for a run
# memory = 2000                 # MB for a run
# pattern = 'cost: (\\S+)'       # with "cost": where it stands in the output (default: last number)
# written."odd-one" = "+odd:{value}"  # a parameter that is written in its own way
# deterministic = true          # the seed does not matter

[space]                         # or a PCS, irace, JSON or YAML file: file = "params.pcs"
luby = { values = ["on", "off"], default = "on" }
rinc = { range = [1.1, 4.0], default = 2.0 }
rfirst = { range = [10, 1000], default = 100, log = true }   # whole numbers on a log scale
phase-saving = { values = [0, 1, 2], default = 2, ordered = true }
elim = { values = ["on", "off"], default = "on" }
grow = { range = [-10, 30], default = 0, when = 'elim == "on"' }
# forbidden = ['luby == "on" & rinc < 1.5']

[instances]                     # a folder, a pattern, a file with one on each line, or a list
train = "instances/*.cnf"
# test = "test_instances/*.cnf"

[budget]                        # any of these
wall_time = "30 min"
# cpu_time = "10 h"             # of all runs together
# trials = 1000

[options]                       # of the search, see the README
# k = 4
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what the command takes."""
    parser.add_argument(
        "output", metavar="FILE", type=Path, nargs="?", default=Path("scenario.toml")
    )


def run(arguments: argparse.Namespace) -> int:
    """Write the template, unless something is there."""
    try:
        with arguments.output.open("x", encoding="utf-8") as file:
            file.write(TEMPLATE)
    except FileExistsError:
        raise InputError(
            Place.of(arguments.output), "exists already; nothing was written"
        ) from None
    print(f"{arguments.output}: edit it, then: acband check {arguments.output}")
    return exit_codes.DONE
