"""The command line of the benchmarks: ``python -m acband_configspace.benchmark COMMAND``.

Each command is a module of this package with a docstring (its help text), a function
``add_arguments(parser)`` and a function ``run(arguments)`` that returns the exit code.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence

#: command -> the module that implements it; imported only when asked for.
COMMANDS = {
    "beyond": "beyond",
    "cluster": "cluster",
    "overhead": "overhead",
    "paper": "paper",
    "record": "record",
    "race": "race_speed",
    "tables": "tables_speed",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one benchmark command."""
    parser = argparse.ArgumentParser(prog="python -m acband_configspace.benchmark")
    commands = parser.add_subparsers(dest="command", required=True)
    modules = {}
    for name, module_name in COMMANDS.items():
        module = importlib.import_module(f"acband_configspace.benchmark.{module_name}")
        summary = (module.__doc__ or "").strip().splitlines()[0]
        module.add_arguments(commands.add_parser(name, help=summary, description=module.__doc__))
        modules[name] = module
    arguments = parser.parse_args(argv)
    try:
        return int(modules[arguments.command].run(arguments))
    except (OSError, ValueError) as error:  # a file, or an argument, that is not what it must be
        if sys.flags.dev_mode:  # python -X dev: show where
            raise
        print(f"error: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
