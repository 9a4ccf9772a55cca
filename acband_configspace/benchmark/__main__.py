"""The command line of the benchmarks: ``python -m acband_configspace.benchmark COMMAND``.

Each command is a module of ``commands`` with a docstring (its help text), a function
``add_arguments(parser)`` and a function ``run(arguments)`` that returns the exit code.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence

#: The order in which ``--help`` lists them.
COMMANDS = (
    "anytime",
    "paper",
    "beyond",
    "workers",
    "tables",
    "race",
    "cluster",
    "overhead",
    "record",
    "faults",
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one benchmark command."""
    parser = argparse.ArgumentParser(prog="python -m acband_configspace.benchmark")
    commands = parser.add_subparsers(dest="command", required=True)
    modules = {}
    for name in COMMANDS:
        module = importlib.import_module(f"acband_configspace.benchmark.commands.{name}")
        summary = (module.__doc__ or "").strip().splitlines()[0]
        module.add_arguments(commands.add_parser(name, help=summary, description=module.__doc__))
        modules[name] = module
    arguments = parser.parse_args(argv)
    try:
        return int(modules[arguments.command].run(arguments))
    except (OSError, ValueError, RuntimeError) as error:  # a wrong file or argument, or R
        if sys.flags.dev_mode:  # python -X dev: show where
            raise
        print(f"error: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
