"""Read everything, say what was understood, and run one race: is everything in order?

Prints the space, the number of instances, the plan and the exact command line of one run. Nothing
is recorded.

examples:
  acband check scenario.toml
  acband check aclib/scenario.txt --cutoff_time 2
"""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path
from tempfile import TemporaryDirectory

from acband_configspace.cli import exit_codes
from acband_configspace.cli.commands.common import (
    add_scenario,
    add_seed,
    add_workers,
    print_notes,
    scenario_from,
)
from acband_configspace.cli.run_directory import example_command
from acband_configspace.cli.scenario.description import ScenarioFile


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what the command takes."""
    add_scenario(parser)
    add_workers(parser)
    add_seed(parser)


def run(arguments: argparse.Namespace) -> int:
    """Check a scenario."""
    scenario_file, _ = scenario_from(arguments)
    from acband_configspace.cli.facade import make_facade

    print_notes(scenario_file)
    print(summary(scenario_file))
    _note_missing_files(scenario_file)
    with TemporaryDirectory() as output:
        facade = make_facade(scenario_file, Path(output), workers=arguments.workers, progress=False)
        print(f"\n{facade.schedule}\n", flush=True)
        in_order = facade.check()
    return exit_codes.DONE if in_order else exit_codes.TARGET_FAILS


def _note_missing_files(scenario_file: ScenarioFile) -> None:
    """Say if instances look like files but are not: a wrong folder shows here first."""
    for which, names in (
        ("instances", scenario_file.instances),
        ("test instances", scenario_file.test_instances),
    ):
        folders = (scenario_file.path.resolve().parent, scenario_file.directory)
        missing = [
            name
            for name in names or ()
            if "/" in name and not any((folder / name).exists() for folder in folders)
        ]
        if missing:
            print(f"note: {len(missing):,} {which} are not files; the first is {missing[0]}")


def summary(scenario_file: ScenarioFile) -> str:
    """Return what was read, in a few lines."""
    space, cutoff = scenario_file.space, scenario_file.cutoff
    n_conditions, n_forbidden = len(space.conditions), len(space.forbidden_clauses)
    goal = f"{scenario_file.clock} time" if scenario_file.racing else "cost"
    limit = "" if cutoff is None else f", cutoff {cutoff:g} s"
    lines = {
        "scenario": f"{scenario_file.path} ({scenario_file.format})",
        "minimised": f"{goal}{limit}",
        "space": f"parameters: {len(space)}, conditions: {n_conditions}, forbidden: {n_forbidden}",
        "instances": _counted(scenario_file.instances),
        "test": _counted(scenario_file.test_instances),
        "budget": _budget(scenario_file),
        "runs in": str(scenario_file.directory),
        "command": shlex.join(example_command(scenario_file)),
    }
    return "\n".join(f"{name:10} {text}" for name, text in lines.items())


def _counted(instances: tuple[str, ...] | None) -> str:
    if instances is None:
        return "none"
    return f"{len(instances):,}, the first is {instances[0]}"


def _budget(scenario_file: ScenarioFile) -> str:
    parts = {
        "trials": scenario_file.n_trials,
        "s of wall time": scenario_file.walltime_limit,
        "s of the targets' CPU time": scenario_file.cputime_limit,
    }
    return ", ".join(f"{value:,g} {name}" for name, value in parts.items() if value is not None)
