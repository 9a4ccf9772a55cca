"""Tune the target of a scenario; a run that is there already continues.

Every key of a scenario can be given here as well, as --key value, and then takes precedence; so
can the options of the search, such as --k 4.

examples:
  acband run scenario.toml
  acband run scenario.toml --trials 500 --workers 4 --output my_run
  acband run aclib/scenario.txt --cutoff_time 10 --fresh
  acband run irace_folder --maxExperiments 2000 --scheduler tcp://node1:8786
"""

from __future__ import annotations

import argparse
import importlib
import logging
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from acband_configspace.cli import exit_codes
from acband_configspace.cli.commands.common import (
    add_scenario,
    add_seed,
    add_workers,
    print_notes,
    scenario_from,
    shown_values,
)
from acband_configspace.cli.errors import COMMAND_LINE, InputError
from acband_configspace.cli.run_directory import record_origin, refuse_other_target


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what the command takes."""
    add_scenario(parser)
    parser.add_argument("--output", type=Path, metavar="DIR", help="the run's own directory")
    parser.add_argument("--fresh", action="store_true", help="start anew, even if a run is there")
    add_workers(parser)
    add_seed(parser)
    parser.add_argument("--scheduler", metavar="ADDRESS", help="run on this Dask cluster")
    parser.add_argument(
        "--slurm",
        nargs="?",
        const="normal",
        metavar="PARTITION",
        help="start --workers Dask workers as SLURM jobs in this partition (normal); their time "
        "limit is that of dask-jobqueue's configuration",
    )
    parser.add_argument("--quiet", action="store_true", help="print the result only")


def run(arguments: argparse.Namespace) -> int:
    """Run, say who won, and test it if there are test instances."""
    scenario_file, overrides = scenario_from(arguments)
    output = (arguments.output or scenario_file.default_output).resolve()
    from acband_configspace.cli.facade import (
        AbortCallback,
        check_options,
        make_facade,
        runs_at_a_time,
    )

    check_options(scenario_file)
    if not arguments.fresh:
        refuse_other_target(output, scenario_file)
    here = Path.cwd()
    if not arguments.quiet:
        print_notes(scenario_file)
        print(f"The run is in {output}", flush=True)
    abort = AbortCallback()
    with _cluster(arguments, cores=runs_at_a_time(scenario_file)) as client:
        facade = make_facade(
            scenario_file,
            output,
            fresh=arguments.fresh,
            workers=arguments.workers,
            dask_client=client,
            callbacks=[abort],
            progress=False if arguments.quiet else None,
            logging_level=logging.WARNING,
        )
        record_origin(output, scenario_file, overrides, here)
        if not arguments.quiet:
            print(str(facade.schedule).splitlines()[0], flush=True)
        try:
            incumbent = facade.optimize()
        except KeyboardInterrupt:
            again = ["acband", *(word for word in arguments.words if word != "--fresh")]
            print(f"To continue: {shlex.join(again)}", file=sys.stderr)
            return exit_codes.INTERRUPTED
    if abort.reason is not None:
        raise TargetAborted(abort.reason)
    if incumbent is None:
        raise NothingFoundError("no race was finished: give it more time, or run 'acband check'")
    values = dict(incumbent)
    print(f"The incumbent after {facade.runhistory.finished} trials:")
    print(shown_values(values))
    print(_how_good(output))
    instance = None if scenario_file.instances is None else "INSTANCE"
    line = scenario_file.line.words(values, instance, scenario_file.seed, scenario_file.cutoff)
    print(f"As a command line:\n  {shlex.join(line)}")
    if scenario_file.test_instances is not None:
        print(f"Test it beside the default: acband validate {shlex.quote(str(output))}")
    return exit_codes.DONE


def _how_good(directory: Path) -> str:
    from acband_configspace.runlog.replay import Run
    from acband_configspace.runlog.words import verdict

    return verdict(Run.load(directory))


class TargetAborted(RuntimeError):  # noqa: N818  # an order, not an error
    """The target said ABORT."""


class NothingFoundError(RuntimeError):
    """The run ended without an incumbent."""


@contextmanager
def _cluster(arguments: argparse.Namespace, *, cores: int) -> Iterator[Any]:
    """Connect to the cluster that was asked for, if one was; SLURM's jobs get so many cores."""
    if arguments.scheduler and arguments.slurm:
        raise InputError(COMMAND_LINE, "--scheduler and --slurm must not be given together")
    if arguments.scheduler:
        distributed: Any = importlib.import_module("dask.distributed")
        try:
            client = distributed.Client(arguments.scheduler, timeout=30)
        except (OSError, ValueError) as error:
            raise InputError(COMMAND_LINE, f"--scheduler {arguments.scheduler}: {error}") from None
        with client:
            yield client
    elif arguments.slurm:
        if find_spec("dask_jobqueue") is None:
            raise InputError(COMMAND_LINE, "--slurm needs dask-jobqueue: pip install dask-jobqueue")
        distributed = importlib.import_module("dask.distributed")
        jobqueue: Any = importlib.import_module("dask_jobqueue")
        # Each job is one worker with room for one race, or one trial.
        cluster = jobqueue.SLURMCluster(
            queue=arguments.slurm, cores=cores, processes=1, memory=f"{2 * cores} GB"
        )
        with cluster:
            cluster.scale(jobs=arguments.workers or 1)
            with distributed.Client(cluster) as client:
                yield client
    else:
        yield None
