"""``acband``: tune a solver without writing Python."""

from __future__ import annotations

import argparse
import inspect
import sys
from collections.abc import Sequence
from typing import Any

from acband_configspace._version import __version__
from acband_configspace.cli.commands import COMMANDS, split_overrides
from acband_configspace.cli.errors import (
    COMMAND_LINE,
    EXIT_CODES,
    ExitCode,
    InputError,
    NothingFoundError,
    TargetAborted,
    suggestion,
)

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
    try:
        return _run(words)
    except KeyboardInterrupt:
        print("\ninterrupted; start a run again to continue where it stopped", file=sys.stderr)
        return ExitCode.INTERRUPTED
    except BrokenPipeError:  # the reader of our output has gone: acband show RUN | head
        sys.stderr.close()
        return ExitCode.DONE
    except Exception as error:  # said in one line, with an exit code of its own
        code = None if sys.flags.dev_mode else _exit_code(error)  # python -X dev: show where
        if code is None:
            raise
        print(f"error: {_message(error)}", file=sys.stderr)
        return code


def _run(words: list[str]) -> int:
    parser, parsers = _parser()
    keys: dict[str, str] = {}
    known = words
    if words and words[0] in COMMANDS and COMMANDS[words[0]].takes_keys:
        keys, known = split_overrides(words, parsers[words[0]]._option_string_actions)
    arguments, rest = parser.parse_known_args(known)
    command = COMMANDS[arguments.command]
    if rest and command.takes_keys:
        raise InputError(COMMAND_LINE, f"unexpected {rest[0]!r}; keys are written --key value")
    if rest:
        options = [o for o in parsers[arguments.command]._option_string_actions if o != "--help"]
        hint = suggestion(rest[0], options) or f"; see acband {arguments.command} --help"
        parser.error(f"unrecognised argument {rest[0]!r}{hint}")
    arguments.keys = keys
    arguments.words = words
    return int(command.run(arguments) or ExitCode.DONE)


def _parser() -> tuple[argparse.ArgumentParser, dict[str, argparse.ArgumentParser]]:
    """Return the parser, and those of the commands."""
    common: dict[str, Any] = {
        "epilog": EXIT_CODES,
        "formatter_class": argparse.RawDescriptionHelpFormatter,
        "allow_abbrev": False,
    }
    parser = argparse.ArgumentParser(prog="acband", description=_DESCRIPTION, **common)
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    parsers = {}
    for name, command in COMMANDS.items():
        text = inspect.getdoc(command.run) or ""
        summary = text.partition("\n")[0]
        parsers[name] = commands.add_parser(name, help=summary, description=text, **common)
        for add_argument in command.arguments:
            add_argument(parsers[name])
    # For the list only: its arguments are its own.
    commands.add_parser(_BENCHMARK, help="The benchmarks of this package.", add_help=False)
    return parser, parsers


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


def _exit_code(error: Exception) -> ExitCode | None:
    """Return the exit code of an error that a user can do something about."""
    from acband_configspace import errors
    from acband_configspace.runlog.replay import NoRunError

    codes: dict[type[Exception] | tuple[type[Exception], ...], ExitCode] = {
        (InputError, NoRunError): ExitCode.BAD_INPUT,
        (
            errors.RunDiffersError,
            errors.RunInUseError,
            errors.JournalError,  # another process has gone on with it meanwhile, …
            errors.RunDirectoryGoneError,  # … or removed it
        ): ExitCode.RUN_IN_THE_WAY,
        (errors.FirstRaceCrashedError, NothingFoundError): ExitCode.TARGET_FAILS,
        (errors.NoWorkersError, errors.SchedulerLostError): ExitCode.CLUSTER_LOST,
        TargetAborted: ExitCode.ABORTED,
        OSError: ExitCode.BAD_INPUT,
    }
    if isinstance(error, ModuleNotFoundError):
        wanted = (error.name or "").split(".")[0]
        return ExitCode.BAD_INPUT if wanted in ("matplotlib", "yaml") else None
    return next((code for kind, code in codes.items() if isinstance(error, kind)), None)


if __name__ == "__main__":
    sys.exit(main())
