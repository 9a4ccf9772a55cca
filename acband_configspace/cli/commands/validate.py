"""Run the incumbent and the default on the test instances, and say whether it is better.

Without test instances in the scenario, and without --instances, the training instances serve.

examples:
  acband validate acband_output/my_run-0
  acband validate my_run --instances other_instances.txt --workers 4
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from acband_configspace.cli import exit_codes
from acband_configspace.cli.commands.common import add_workers
from acband_configspace.cli.run_directory import incumbent_of, scenario_of_run
from acband_configspace.cli.scenario.description import ScenarioFile
from acband_configspace.runlog.verdict import Verdict


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what the command takes."""
    parser.add_argument("run", metavar="RUN", type=Path, help="the run's directory")
    parser.add_argument(
        "--instances", type=Path, metavar="FILE", help="a list of instances, one a line"
    )
    parser.add_argument(
        "--scenario", type=Path, metavar="FILE", help="the run's scenario, if it has moved"
    )
    add_workers(parser)


def run(arguments: argparse.Namespace) -> int:
    """Validate the incumbent of a run."""
    directory = arguments.run.resolve()
    incumbent = incumbent_of(directory)
    scenario_file = scenario_of_run(directory, arguments.scenario, arguments.instances)
    instances = scenario_file.test_instances or scenario_file.instances
    from acband_configspace.cli.facade import make_facade

    # In a directory of its own: the run may be going on.
    with TemporaryDirectory() as output:
        facade = make_facade(scenario_file, Path(output), workers=arguments.workers, progress=False)
        default = dict(scenario_file.space.get_default_configuration())
        costs = [_costs(facade.validate(values, instances)) for values in (incumbent, default)]
    verdict = Verdict.of(
        *costs,
        what=_what(scenario_file, instances),
        racing=scenario_file.racing,
        par=scenario_file.par,
        cutoff=scenario_file.cutoff,
        is_default=incumbent == default,
    )
    print(verdict)
    return exit_codes.DONE


def _what(scenario_file: ScenarioFile, instances: Sequence[str] | None) -> str:
    if instances is None:
        return "fresh seeds"
    return "unseen instances" if scenario_file.test_instances else "training instances"


def _costs(validation: Any) -> tuple[float, ...]:
    return tuple(float(np.max(trial.value.cost)) for trial in validation.trials)
