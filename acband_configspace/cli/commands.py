"""The commands of ``acband``, each a function whose docstring is its help text."""

from __future__ import annotations

import argparse
import json
import logging
import os
import shlex
import signal
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any

from acband_configspace.cli.errors import (
    COMMAND_LINE,
    ExitCode,
    InputError,
    NothingFoundError,
    Place,
    TargetAborted,
)
from acband_configspace.cli.results import AclibResult
from acband_configspace.cli.run_directory import (
    incumbent_of,
    record_origin,
    refuse_other_target,
    scenario_of_run,
)
from acband_configspace.cli.scenario.description import ScenarioFile
from acband_configspace.cli.scenario.reading import read_scenario
from acband_configspace.cli.scenario.toml import TEMPLATE
from acband_configspace.cli.spaces.formats import (
    FORMATS,
    forbidden_beside,
    format_by_name,
    read_space,
    write_space,
)
from acband_configspace.errors import FirstRaceCrashedError
from acband_configspace.runlog.words import counted
from acband_configspace.running.race import TrackLimits

#: Megabytes for a cluster's worker itself, and for what watches over its runs.
WORKER_MB = 1024
#: Seconds of grace in which GenericWrapper4AC, which many of AClib's wrappers are made with, stops
#: its solver and removes its files.
WRAPPERS_GRACE = 1.5

Argument = Callable[[argparse.ArgumentParser], object]
Function = Callable[[argparse.Namespace], ExitCode | None]


@dataclass(frozen=True)
class Command:
    """What a command does and what it takes."""

    run: Function
    """Returns the exit code, None if all went well."""
    arguments: tuple[Argument, ...]

    @property
    def takes_keys(self) -> bool:
        """Whether it takes ``--key value`` for any key of a scenario."""
        return SCENARIO in self.arguments


#: In the order in which the help lists them.
COMMANDS: dict[str, Command] = {}


def command(*arguments: Argument) -> Callable[[Function], Function]:
    """Make a function the command of its name."""

    def register(function: Function) -> Function:
        COMMANDS[function.__name__] = Command(function, arguments)
        return function

    return register


def argument(*names: str, **options: Any) -> Argument:
    """Return an argument, as ``ArgumentParser.add_argument`` takes it."""
    return lambda parser: parser.add_argument(*names, **options)


SCENARIO = argument(
    "scenario",
    metavar="SCENARIO",
    type=Path,
    help="scenario.toml, a scenario of AClib, SMAC, ParamILS or irace, or its folder",
)
RUN = argument("run", metavar="RUN", type=Path, help="the run's directory")
WORKERS = argument(
    "--workers",
    type=int,
    metavar="N",
    help="runs at a time (the scenario's, or 1); at least 2 to race",
)
SEED = argument("--seed", metavar="N", help="the seed of the run (the scenario's, or 0)")
MOVED = argument(
    "--scenario", type=Path, metavar="FILE", help="the run's scenario, if it has moved"
)


@command(
    SCENARIO,
    argument(
        "--output",
        type=Path,
        metavar="DIR",
        help="the run's own directory (by default one in acband_output)",
    ),
    argument(
        "--fresh",
        action="store_true",
        help="start over, and replace the files of an earlier run",
    ),
    WORKERS,
    SEED,
    argument("--scheduler", metavar="ADDRESS", help="run on this Dask cluster"),
    argument(
        "--slurm",
        nargs="?",
        const="normal",
        metavar="PARTITION",
        help="start --workers Dask workers as SLURM jobs in this partition (normal), and wait "
        "while all of them are queued; once one has started, five minutes without a worker end the "
        "run (start it again to continue); the jobs' time limit comes from dask-jobqueue's "
        "configuration",
    ),
    argument("--quiet", action="store_true", help="print the result only"),
)
def run(arguments: argparse.Namespace) -> ExitCode | None:
    """Tune the target of a scenario; a run that was begun earlier continues.

    Every key of a scenario can be given here as well, as --key value, and then takes precedence;
    so can the options of the search, such as --k 4.

    examples:
      acband run scenario.toml
      acband run scenario.toml --trials 500 --workers 4 --output my_run
      acband run aclib/scenario.txt --cutoff_time 10 --fresh
      acband run irace_folder --maxExperiments 2000 --scheduler tcp://node1:8786
    """
    scenario_file, overrides = _scenario_from(arguments)
    output = (arguments.output or scenario_file.default_output).resolve()
    from acband_configspace.cli import facade as facades

    facades.check_options(scenario_file)
    if not arguments.fresh:
        refuse_other_target(output, scenario_file)
    here = Path.cwd()
    if not arguments.quiet:
        _print_notes(scenario_file)
        print(f"The run is in {output}", flush=True)
    abort = facades.AbortCallback()
    cores, limit_mb = facades.runs_at_a_time(scenario_file), scenario_file.memory_limit
    jobs = arguments.workers or scenario_file.workers
    with _cluster(arguments, jobs=jobs, cores=cores, limit_mb=limit_mb) as client:
        if arguments.slurm and arguments.fresh:
            _slurm().check_taken(client.cluster)  # before anything is replaced
        facade = facades.make_facade(
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
            if arguments.slurm and not _is_over(facade):
                _await_slurm(client.cluster, quiet=arguments.quiet)
            incumbent = facade.optimize()
        except KeyboardInterrupt:
            again = ["acband", *(word for word in arguments.words if word != "--fresh")]
            print(f"To continue: {shlex.join(again)}", file=sys.stderr)
            return ExitCode.INTERRUPTED
        except FirstRaceCrashedError:  # a target that aborts at once has finished no trial, either
            if abort.reason is None:
                raise
            raise TargetAborted(abort.reason) from None
    if abort.reason is not None:
        raise TargetAborted(abort.reason)
    if incumbent is None:
        raise NothingFoundError("no trial has finished: give it more time, or run 'acband check'")
    print(f"The incumbent after {facade.runhistory.finished} trials:")
    _print_result(scenario_file, dict(incumbent), output)
    return None


def _is_over(facade: Any) -> bool:
    """Return whether nothing is left to be run."""
    return facade.intensifier.finished is not None or facade.optimizer.budget_exhausted


def _await_slurm(cluster: Any, *, quiet: bool) -> None:
    """Wait for the first of SLURM's jobs; the run's own clock does not go on meanwhile."""
    if not quiet:
        print("Waiting for SLURM to start a job (see squeue) …", flush=True)
    _slurm().await_worker(cluster)


def _slurm() -> ModuleType:
    """Import what knows SLURM, and leave Ctrl-C as it is: dask-jobqueue would change that."""
    before = signal.getsignal(signal.SIGINT)
    from acband_configspace.cli import slurm

    signal.signal(signal.SIGINT, before)
    return slurm


def _print_result(scenario_file: ScenarioFile, values: Mapping[str, Any], output: Path) -> None:
    from acband_configspace.runlog.replay import Run
    from acband_configspace.smac_plugin.identity import plain

    loaded = Run.load(output)
    leader = None if loaded.incumbent is None else dict(loaded.values(loaded.incumbent))
    is_judged = loaded.problem is not None or leader == plain(values)
    unjudged = "Its race is not over yet: it has the lowest cost so far."
    print(_shown(values))
    print(loaded.verdict if is_judged else unjudged)
    print(f"As a command line:\n  {shlex.join(scenario_file.command(values))}")
    if scenario_file.test_instances is not None:
        print(f"Test it beside the default: acband validate {shlex.quote(str(output))}")


def job_memory(cores: int, *, limit_mb: int | None, configured: str | None) -> str:
    """Return the memory that a job on a cluster asks for: enough for a run on each of its cores.

    Where runs have no limit, what dask-jobqueue's configuration says, or else 2 GB for each.
    """
    if limit_mb is not None:
        return f"{cores * limit_mb + WORKER_MB} MiB"
    return configured or f"{2 * cores} GB"


@contextmanager
def _cluster(
    arguments: argparse.Namespace, *, jobs: int, cores: int, limit_mb: int | None
) -> Iterator[Any]:
    """Connect to the cluster that was asked for, if any.

    Each of SLURM's ``jobs`` gets ``cores``, and memory for a run of up to ``limit_mb`` on each.
    """
    if arguments.scheduler and arguments.slurm:
        raise InputError(COMMAND_LINE, "--scheduler and --slurm must not be given together")
    if arguments.scheduler and arguments.workers is not None:
        raise InputError(
            COMMAND_LINE,
            "--scheduler and --workers must not be given together: the cluster has its workers",
        )
    if not arguments.scheduler and not arguments.slurm:
        yield None
        return
    from distributed import Client

    if arguments.scheduler:
        try:
            client = Client(arguments.scheduler, timeout=30)
        except (OSError, ValueError) as error:
            raise InputError(COMMAND_LINE, f"--scheduler {arguments.scheduler}: {error}") from None
        with client:
            yield client
        return
    if find_spec("dask_jobqueue") is None:
        raise InputError(COMMAND_LINE, "--slurm needs dask-jobqueue: pip install dask-jobqueue")
    import dask

    configured = dask.config.get("jobqueue.slurm.memory", default=None)
    memory = job_memory(cores, limit_mb=limit_mb, configured=configured)
    # Each job is one worker with room for one race, or one trial.
    with (
        _slurm().slurm_cluster(arguments.slurm, jobs=jobs, cores=cores, memory=memory) as cluster,
        Client(cluster) as client,
    ):
        yield client


@command(SCENARIO, WORKERS, SEED)
def check(arguments: argparse.Namespace) -> ExitCode | None:
    """Read everything, show what was understood, and run one race to see whether it works.

    Prints the space, the number of instances, the plan and the exact command line of one run.
    Nothing is recorded.

    examples:
      acband check scenario.toml
      acband check aclib/scenario.txt --cutoff_time 2
    """
    scenario_file, _ = _scenario_from(arguments)
    _print_notes(scenario_file)
    print(_summary(scenario_file))
    _note_missing_files(scenario_file)
    _note_short_grace(scenario_file)
    with _apart(scenario_file, workers=arguments.workers) as facade:
        print(f"\n{facade.schedule}\n", flush=True)
        return None if facade.check() else ExitCode.TARGET_FAILS


def _note_missing_files(scenario_file: ScenarioFile) -> None:
    """Say if instances look like files but are not: a wrong folder shows here first."""
    folders = (scenario_file.path.resolve().parent, scenario_file.directory)
    for which, names in (
        ("instances", scenario_file.instances or ()),
        ("test instances", scenario_file.test_instances or ()),
    ):
        paths = [name for name in names if "/" in name]
        missing = [name for name in paths if not any((f / name).exists() for f in folders)]
        if missing:
            print(f"note: {len(missing):,} {which} are not files; the first is {missing[0]}")


def _note_short_grace(scenario_file: ScenarioFile) -> None:
    """Say how AClib's wrappers get the time that many of them need when they are stopped."""
    if isinstance(scenario_file.reader, AclibResult) and "grace" not in scenario_file.options:
        print(
            f"note: a run that is stopped is killed {TrackLimits.grace:g} s after SIGTERM; "
            f"--grace {WRAPPERS_GRACE:g} gives AClib's wrappers time to remove their files"
        )


def _summary(scenario_file: ScenarioFile) -> str:
    """Return what was read, in a few lines."""
    space, cutoff, clock = scenario_file.space, scenario_file.cutoff, scenario_file.clock
    default = dict(space.get_default_configuration())
    goal = f"{clock} time" if scenario_file.racing else "cost"
    budget = {
        "trials": scenario_file.n_trials,
        "s of wall time": scenario_file.walltime_limit,
        "s of the targets' CPU time": scenario_file.cputime_limit,
    }
    lines = {
        "scenario": f"{scenario_file.path} ({scenario_file.format})",
        "minimised": goal if cutoff is None else f"{goal}, cutoff {cutoff:g} s of {clock} time",
        "space": f"parameters: {len(space)}, conditions: {len(space.conditions)}, "
        f"forbidden: {len(space.forbidden_clauses)}",
        "instances": _first_of(scenario_file.instances),
        "test": _first_of(scenario_file.test_instances),
        "budget": ", ".join(f"{n:,g} {what}" for what, n in budget.items() if n is not None),
        "runs in": str(scenario_file.directory),
        "command": shlex.join(scenario_file.command(default, *(scenario_file.instances or ())[:1])),
    }
    return "\n".join(f"{name:10} {text}" for name, text in lines.items())


def _first_of(instances: tuple[str, ...] | None) -> str:
    return "none" if instances is None else f"{len(instances):,}, the first is {instances[0]}"


@command(SCENARIO, SEED)
def plan(arguments: argparse.Namespace) -> None:
    """Print what a run would do, and run nothing.

    example:
      acband plan scenario.toml --trials 5000 --k 4
    """
    scenario_file, _ = _scenario_from(arguments)
    with _apart(scenario_file) as facade:
        print(facade.schedule)


@command(
    RUN,
    argument("--output", type=Path, help="the page (RUN/report.html)"),
    argument("--csv", type=Path, help="write all trials to this file as well"),
)
def report(arguments: argparse.Namespace) -> None:
    """Write one HTML page about a run, finished or not; it needs no network to be read.

    examples:
      acband report acband_output/my_run-0
      acband report my_run --output page.html --csv trials.csv
    """
    from acband_configspace.runlog.csv import write_trials
    from acband_configspace.runlog.replay import Run
    from acband_configspace.runlog.report import html_report

    loaded = Run.load(arguments.run)
    if arguments.csv is not None:
        write_trials(loaded, arguments.csv)
        print(f"{arguments.csv}: {counted(len(loaded.trials), 'trial')}")
    output = arguments.output or arguments.run / "report.html"
    output.write_text(html_report(loaded), encoding="utf-8")
    print(output)


@command(
    RUN,
    argument("--instances", type=Path, metavar="FILE", help="a list of instances, one a line"),
    MOVED,
    WORKERS,
)
def validate(arguments: argparse.Namespace) -> None:
    """Run the incumbent and the default on the test instances, and say which is better.

    Without test instances, in the scenario or as --instances, the training instances are used.

    examples:
      acband validate acband_output/my_run-0
      acband validate my_run --instances other_instances.txt --workers 4
    """
    directory = arguments.run.resolve()
    incumbent = incumbent_of(directory)
    scenario_file = scenario_of_run(directory, arguments.scenario, arguments.instances)
    instances = scenario_file.test_instances or scenario_file.instances
    default = dict(scenario_file.space.get_default_configuration())
    with _apart(scenario_file, workers=arguments.workers) as facade:
        own, other = facade.validate_all([incumbent, default], instances)
    from acband_configspace.smac_plugin.validation import TestResults

    compared = TestResults.of(
        own,
        other,
        what=_what_is_tested_on(scenario_file),
        racing=scenario_file.racing,
        par=scenario_file.par,
        cutoff=scenario_file.cutoff,
        is_default=incumbent == default,
    )
    print(compared)


def _what_is_tested_on(scenario_file: ScenarioFile) -> str:
    """Return what a validation runs on, in words."""
    train, test = scenario_file.instances, scenario_file.test_instances
    if test is None:
        return "fresh seeds" if train is None else "training instances"
    folder = scenario_file.path.resolve().parent
    # The same file may be named in two ways.
    known, tested = ({os.path.normpath(folder / n) for n in names} for names in (train or (), test))
    return "unseen instances" if known.isdisjoint(tested) else "test instances"


def _how_to_show(parser: argparse.ArgumentParser) -> None:
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--json", action="store_true", help="print its values as one JSON object")
    group.add_argument(
        "--command", dest="as_command", action="store_true", help="print it as a command line"
    )


@command(
    RUN,
    _how_to_show,
    argument("--instance", default="INSTANCE", help="the instance that --command shows"),
    MOVED,
)
def show(arguments: argparse.Namespace) -> None:
    """Show the configuration that leads a run, finished or not.

    examples:
      acband show acband_output/my_run-0
      acband show my_run --json > best.json
      acband show my_run --command
    """
    directory = arguments.run.resolve()
    values = incumbent_of(directory)
    if arguments.json:
        print(json.dumps(values))
    elif arguments.as_command:
        scenario_file = scenario_of_run(directory, arguments.scenario)
        ordered = {name: values[name] for name in scenario_file.space if name in values}
        print(shlex.join(scenario_file.command(ordered, arguments.instance)))
    else:
        print(_shown(values))


@command(
    argument("input", metavar="IN", type=Path),
    argument("output", metavar="OUT", type=Path),
    argument("--from", dest="source", choices=FORMATS, help="the format of IN"),
    argument("--to", dest="target", choices=FORMATS, help="the format of OUT"),
)
def convert(arguments: argparse.Namespace) -> None:
    """Convert a parameter file: PCS old and new, irace's parameters, ConfigSpace's JSON and YAML.

    The formats are told apart by the files' names (.pcs, new.pcs, .json, .yaml; .txt is irace's)
    and contents. What a format cannot express is listed, and then nothing is written.

    examples:
      acband convert params.pcs parameters.txt
      acband convert parameters.txt space.json
      acband convert space.yaml params.pcs --to pcs-new
    """
    path = arguments.output
    target = arguments.target or format_by_name(path)
    if target is None and path.suffix.lower() == ".txt":
        target = "irace"
    if target is None:
        raise InputError(Place(path), f"give the format with --to: {', '.join(FORMATS)}")
    space = read_space(arguments.input, format_name=arguments.source)
    written = write_space(space, path, format_name=target)
    path.write_text(written.text, encoding="utf-8")
    print(f"{path}: {counted(len(space), 'parameter')} as {target}")
    beside = forbidden_beside(path)
    if written.forbidden:
        beside.write_text(written.forbidden, encoding="utf-8")
        print(f"{beside}: what is forbidden, for irace's forbiddenFile")
    elif target == "irace" and beside.exists():
        beside.unlink()  # of an earlier conversion: it would be read with this one
        print(f"{beside}: removed, since nothing is forbidden now")
    for note in written.notes:
        print(f"note: {note}")


@command(argument("output", metavar="FILE", type=Path, nargs="?", default=Path("scenario.toml")))
def new(arguments: argparse.Namespace) -> None:
    """Write a commented scenario to start from.

    examples:
      acband new
      acband new my_solver/scenario.toml
    """
    try:
        with arguments.output.open("x", encoding="utf-8") as file:
            file.write(TEMPLATE.read_text(encoding="utf-8"))
    except FileExistsError:
        place = Place(arguments.output)
        raise InputError(place, "exists already; nothing was written") from None
    print(f"{arguments.output}: edit it, then: acband check {arguments.output}")


@command(RUN)
def recover(arguments: argparse.Namespace) -> None:
    """Mend a run whose journal is damaged; a copy of it is kept, and the run can then continue.

    Lines that match their checksums are kept, unless they depend on one that does not; everything
    after damage that may hide a plan is cut. What is missing is run again when the run is next
    started.

    example:
      acband recover acband_output/my_run-0
    """
    from acband_configspace.errors import JournalError
    from acband_configspace.runlog.recovery import recover as mended
    from acband_configspace.runlog.replay import NoRunError, journal_in

    path = journal_in(arguments.run)
    try:
        recovery = mended(path)
    except JournalError as error:
        raise NoRunError(str(error)) from None
    races = counted(recovery.n_races, "race")
    if recovery.copy is None:
        print(f"No damage found ({races}).")
        return
    lines = ", ".join(map(str, recovery.damaged))
    print(f"Damaged: {'lines' if len(recovery.damaged) > 1 else 'line'} {lines} of {path}")
    print(f"Kept: {races}")
    if recovery.n_dependent:
        dependent = counted(recovery.n_dependent, "intact race")
        print(f"{dependent} depended on damaged ones and will be run again")
    print(f"As it was: {recovery.copy}")
    print("Start the run again, and it continues from there.")


# --- what several of them do ------------------------------------------------------------------


def split_overrides(
    words: Sequence[str], options: Collection[str]
) -> tuple[dict[str, str], list[str]]:
    """Return the pairs ``--key value`` and ``--key=value`` that are no options, and the rest.

    To be called before argparse, which would take the value of such a key for the scenario.
    """
    overrides: dict[str, str] = {}
    rest: list[str] = []
    pending = list(words)
    while pending:
        word = pending.pop(0)
        key, equals, value = word[2:].partition("=")
        if not word.startswith("--") or not key or f"--{key}" in options:
            rest.append(word)
            continue
        if not equals:
            if not pending or pending[0] in options:
                raise InputError(COMMAND_LINE, f"--{key} must have a value")
            value = pending.pop(0)
        overrides[key] = value
    return overrides, rest


def _scenario_from(arguments: argparse.Namespace) -> tuple[ScenarioFile, Mapping[str, str]]:
    """Return the scenario of the command line, and what overrides its file."""
    overrides = dict(arguments.keys)
    if arguments.seed is not None:
        overrides["seed"] = arguments.seed
    if (workers := getattr(arguments, "workers", None)) is not None and workers < 1:
        raise InputError(COMMAND_LINE, f"--workers must be at least 1 but got {workers}")
    return read_scenario(arguments.scenario, overrides), overrides


@contextmanager
def _apart(scenario_file: ScenarioFile, *, workers: int | None = None) -> Iterator[Any]:
    """Make a facade in a directory of its own: nothing is recorded, and the run may be going on."""
    from acband_configspace.cli.facade import make_facade

    with TemporaryDirectory() as output:
        yield make_facade(scenario_file, Path(output), workers=workers, progress=False)


def _print_notes(scenario_file: ScenarioFile) -> None:
    """Say what was read and is not used."""
    for note in scenario_file.notes:
        print(f"note: {note}")


def _shown(values: Mapping[str, Any]) -> str:
    """Return a configuration for a person to read."""
    width = max(map(len, values), default=0)
    return "\n".join(f"  {name:{width}}  {values[name]}" for name in sorted(values))
