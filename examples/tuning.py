"""What the examples that tune a solver share: their options, and the test beside the default."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from acband_configspace import ACBandFacade
from acband_configspace.runlog.verdict import Verdict

Config = Mapping[str, Any]


def make_parser(
    description: str | None, *, workers: int, instances: int, test: int
) -> argparse.ArgumentParser:
    """Return the options that all of them have."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--minutes", type=float, default=1.0, help="tune for this long (1)")
    add("--workers", type=int, default=workers, help=f"racers at a time ({workers})")
    add("--trials", type=int, default=100, help="run at most this many (100: no limit)")
    add("--seed", type=int, default=0)
    add("--instances", type=int, default=instances, help=f"to train on ({instances})")
    add("--test", type=int, default=test, help=f"instances to test on ({test})")
    add("--output", default="acband_output", help="where to keep the run")
    return parser


def parse(parser: argparse.ArgumentParser, argv: Sequence[str] | None) -> argparse.Namespace:
    """Return the arguments; refuse those that make no sense."""
    arguments = parser.parse_args(argv)
    if min(arguments.minutes, arguments.workers, arguments.instances, arguments.test) <= 0:
        parser.error("--minutes, --workers, --instances and --test must be positive")
    if arguments.trials < 2:
        parser.error(f"--trials must be at least 2 but got {arguments.trials}")
    return arguments


def print_found(found: Config, default: Config) -> None:
    """Print a configuration and what the default has in its place."""
    print("Found:")
    for name, value in sorted(found.items()):
        mark = "" if default.get(name) == value else f"   (default: {default.get(name)})"
        print(f"  {name} = {value}{mark}")


def print_tested(
    facade: ACBandFacade,
    found: Config,
    default: Config,
    instances: Sequence[str],
    *,
    cutoff: float,
    par: float,
) -> None:
    """Run both on test instances, and compare; a run that met the cutoff costs par × cutoff."""
    print(f"\nTesting it beside the default on {len(instances)} fresh instances ...", flush=True)
    tuned, plain = (
        np.array([trial.value.cost for trial in validation.trials]).tolist()
        for validation in facade.validate_all([found, default], instances)
    )
    print(Verdict.of(tuned, plain, racing=True, cutoff=cutoff, par=par))
