"""``acband``: tune a solver without writing Python."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Callable, Sequence
from types import ModuleType

from acband_configspace._version import __version__
from acband_configspace.cli import exit_codes
from acband_configspace.cli.errors import InputError, suggestion

_COMMANDS = ("run", "check", "plan", "report", "validate", "show", "convert", "new", "recover")
_BENCHMARK = "benchmark"

_DESCRIPTION = """Tune a solver without writing Python.

  acband new                      write a scenario to start from
  acband check scenario.toml      is it right? runs one race
  acband run scenario.toml        tune; started again, it continues
  acband validate RUN             is it better than the default?
  acband show RUN --command       the tuned command line

Scenarios of AClib, SMAC, ParamILS and irace are read as they are: acband run scenario.txt
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    if words[:1] == [_BENCHMARK]:
        from acband_configspace.benchmark.__main__ import main as benchmark

        return benchmark(words[1:])
    return _guarded(lambda: _run(words))


def _run(words: list[str]) -> int:
    parser, modules = _parser()
    arguments, rest = parser.parse_known_args(words)
    if rest and not getattr(arguments, "takes_keys", False):
        known = [option for option in _options(parser, arguments.command) if option != "--help"]
        hint = suggestion(rest[0], known) or f"; see acband {arguments.command} --help"
        parser.error(f"unrecognised argument {rest[0]!r}{hint}")
    from acband_configspace.cli.commands.common import overrides_of

    arguments.keys = overrides_of(rest)
    arguments.words = words
    return int(modules[arguments.command].run(arguments))


def _parser() -> tuple[argparse.ArgumentParser, dict[str, ModuleType]]:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(
        prog="acband",
        description=_DESCRIPTION,
        epilog=exit_codes.EXPLAINED,
        formatter_class=raw,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    modules = {}
    for name in _COMMANDS:
        module = importlib.import_module(f"acband_configspace.cli.commands.{name}")
        text = (module.__doc__ or "").strip()
        summary = text.splitlines()[0]
        module.add_arguments(
            commands.add_parser(
                name,
                help=summary,
                description=text,
                epilog=exit_codes.EXPLAINED,
                formatter_class=raw,
                allow_abbrev=False,
            )
        )
        modules[name] = module
    commands.add_parser(
        _BENCHMARK, help="The benchmarks of this package.", add_help=False
    )  # for the list only
    return parser, modules


def _options(parser: argparse.ArgumentParser, command: str) -> list[str]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            chosen = action.choices[command]
            return [option for a in chosen._actions for option in a.option_strings]
    return []


def _guarded(command: Callable[[], int]) -> int:
    """Run a command; what goes wrong is said in one line, with an exit code of its own."""
    try:
        return command()
    except KeyboardInterrupt:
        print("\ninterrupted; started again, a run continues where it stopped", file=sys.stderr)
        return exit_codes.INTERRUPTED
    except BrokenPipeError:  # the reader of our output has gone: acband show RUN | head
        sys.stderr.close()
        return exit_codes.DONE
    except Exception as error:
        if sys.flags.dev_mode:  # python -X dev: show where
            raise
        code = _exit_code(error)
        if code is None:
            raise
        print(f"error: {_message(error)}", file=sys.stderr)
        return code


def _message(error: Exception) -> str:
    """Return what an error says, in the words of the command line."""
    from acband_configspace.errors import RunDiffersError

    if isinstance(error, RunDiffersError):
        listing = "".join(f"\n  {difference}" for difference in error.differences)
        return (
            f"the run recorded there differs from this one:{listing}\n"
            "Use --output for a run of its own, or --fresh to start anew."
        )
    if isinstance(error, ModuleNotFoundError):
        return f"this needs {error.name}: pip install {error.name}"
    return str(error)


def _exit_code(error: Exception) -> int | None:
    """Return the exit code of an error that a user can do something about."""
    from acband_configspace import errors
    from acband_configspace.cli.commands.run import NothingFoundError, TargetAborted
    from acband_configspace.runlog.replay import NoRunError

    codes: dict[type[Exception] | tuple[type[Exception], ...], int] = {
        (InputError, NoRunError): exit_codes.BAD_INPUT,
        (errors.RunDiffersError, errors.RunInUseError): exit_codes.RUN_IN_THE_WAY,
        (errors.FirstRaceCrashedError, NothingFoundError): exit_codes.TARGET_FAILS,
        (errors.NoWorkersError, errors.SchedulerLostError): exit_codes.CLUSTER_LOST,
        TargetAborted: exit_codes.ABORTED,
        OSError: exit_codes.BAD_INPUT,
    }
    if isinstance(error, ModuleNotFoundError):
        wanted = (error.name or "").split(".")[0]
        return exit_codes.BAD_INPUT if wanted in ("matplotlib", "yaml") else None
    return next((code for kind, code in codes.items() if isinstance(error, kind)), None)


if __name__ == "__main__":
    sys.exit(main())
