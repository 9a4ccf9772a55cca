"""Convert a parameter file: PCS old and new, irace's parameters, ConfigSpace's JSON and YAML.

The formats are told apart by the names' endings (.pcs, new.pcs, .json, .yaml; .txt is irace's) and
by what is in the file. What a format cannot express is named, and nothing is written then.

examples:
  acband convert params.pcs parameters.txt
  acband convert parameters.txt space.json
  acband convert space.yaml params.pcs --to pcs-new
"""

from __future__ import annotations

import argparse
from pathlib import Path

from acband_configspace.cli import exit_codes
from acband_configspace.cli.errors import InputError, Place
from acband_configspace.cli.spaces.formats import (
    FORMATS,
    forbidden_beside,
    format_by_name,
    read_space,
    write_space,
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what the command takes."""
    parser.add_argument("input", metavar="IN", type=Path)
    parser.add_argument("output", metavar="OUT", type=Path)
    parser.add_argument("--from", dest="source", choices=FORMATS, help="the format of IN")
    parser.add_argument("--to", dest="target", choices=FORMATS, help="the format of OUT")


def run(arguments: argparse.Namespace) -> int:
    """Read one file and write the other."""
    target = arguments.target or format_by_name(arguments.output)
    if target is None:
        if arguments.output.suffix.lower() != ".txt":
            raise InputError(
                Place.of(arguments.output), f"say the format with --to: {', '.join(FORMATS)}"
            )
        target = "irace"
    space = read_space(arguments.input, format_name=arguments.source)
    written = write_space(space, arguments.output, format_name=target)
    arguments.output.write_text(written.text, encoding="utf-8")
    print(f"{arguments.output}: {len(space)} parameters as {target}")
    for text in written.beside.values():
        path = forbidden_beside(arguments.output)
        path.write_text(text, encoding="utf-8")
        print(f"{path}: what is forbidden, for irace's forbiddenFile")
    for note in written.notes:
        print(f"note: {note}")
    return exit_codes.DONE
