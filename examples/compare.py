"""AC-Band beside SMAC's facades, irace, RamParILS and Optuna on solvers, learners and functions.

On timed jobs every method has the same wall-clock time and workers, bookkeeping included; on the
others the same number of trials, one after the other. All see the same training instances, and
what they return (and would have returned earlier) is measured on the same test instances, in turn.
What comes out is what is shown, whoever wins. SMAC's facades run without capping, which is off by
default in SMAC 2.4: on timed jobs each run may take the whole cutoff. "random-capped" and
"ac-capped" have it on. irace takes a share of the time that is a little more or less than all.

    python examples/compare.py --jobs valley svc --seeds 3            # a quick look
    python examples/compare.py --seconds 120 --seeds 5 --keep runs --plots pictures   # hours

With ``--keep FOLDER`` a comparison that was stopped goes on where it was. Needs: pip install
".[examples,rivals]", and for some jobs and methods minisat, clasp, and R with its package irace:
anything missing is reported and skipped.
"""

from __future__ import annotations

import argparse
import functools
import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
import timeit
import traceback
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from compare_irace import run_irace
from compare_jobs import CUTOFF, JOBS, PAR, Job
from compare_methods import Run, Task, plain, run_acband, run_optuna, run_smac
from compare_ramparils import run_ramparils
from compare_tables import LOOKS, JobResult, MethodResult, draw, left_out, table, write_csv
from smac import (
    AlgorithmConfigurationFacade,
    HyperbandFacade,
    HyperparameterOptimizationFacade,
    RandomFacade,
)

#: The seed of the target in the test; in training nobody uses it.
TEST_SEED = 54321
#: What costs depend on, of what has a version.
SOLVERS = ("Python", "clasp", "highspy", "scikit-learn")


@functools.cache
def no_irace() -> str | None:
    """Return why there is no irace here."""
    if shutil.which("Rscript") is None:
        return "R is not installed"
    asked = subprocess.run(["Rscript", "-e", "library(irace)"], capture_output=True, check=False)
    return "R has no package irace" if asked.returncode else None


def no_package(name: str, title: str) -> str | None:
    """Return why a Python package cannot be used here."""
    return None if find_spec(name) else f"{title} is not installed"


@dataclass(frozen=True)
class Method:
    """Who takes part."""

    title: str
    run: Callable[[Task], Run]
    needs_instances: bool = False
    needs_features: bool = False
    needs_time: bool = False
    tells_at_end: bool = False
    """Whether it says what it has found in the end only: nothing is known of earlier looks."""
    missing: Callable[[], str | None] = lambda: None
    """Why it cannot be run here, though what is kept of it can be tested."""

    def cannot(self, job: Job) -> str | None:
        """Return why it does not take part in a job."""
        if self.needs_instances and not job.has_instances:
            return "needs instances"
        if self.needs_time and not job.timed:
            return "cannot be limited by trials"
        if self.needs_features and job.features is None:
            return "there are no features"
        return None


METHODS = {
    "acband": Method("AC-Band", run_acband),
    "acband-learned": Method(
        'AC-Band, proposals="learned"', partial(run_acband, proposals="learned")
    ),
    "random": Method("SMAC Random", partial(run_smac, facade_class=RandomFacade)),
    "random-capped": Method(
        "SMAC Random, capped",
        partial(run_smac, facade_class=RandomFacade, capped=True),
        needs_time=True,
    ),
    "hyperband": Method(
        "SMAC Hyperband", partial(run_smac, facade_class=HyperbandFacade), needs_instances=True
    ),
    "ac": Method(
        "SMAC AC, without features", partial(run_smac, facade_class=AlgorithmConfigurationFacade)
    ),
    "ac-features": Method(
        "SMAC AC, with features",
        partial(run_smac, facade_class=AlgorithmConfigurationFacade, features=True),
        needs_features=True,
    ),
    "ac-capped": Method(
        "SMAC AC, with features, capped",
        partial(run_smac, facade_class=AlgorithmConfigurationFacade, features=True, capped=True),
        needs_features=True,
        needs_time=True,
    ),
    "hpo": Method("SMAC HPO", partial(run_smac, facade_class=HyperparameterOptimizationFacade)),
    "irace": Method("irace", run_irace, needs_instances=True, missing=no_irace),
    "ramparils": Method(
        "RamParILS",
        run_ramparils,
        needs_instances=True,
        needs_time=True,
        tells_at_end=True,
        missing=partial(no_package, "ramparils", "RamParILS"),
    ),
    "optuna": Method(
        "Optuna, WilcoxonPruner", run_optuna, missing=partial(no_package, "optuna", "Optuna")
    ),
}


def main(argv: Sequence[str] | None = None) -> int:
    arguments = parse(argv)
    if arguments.one:
        job, method, seed, path = arguments.one
        run_here(job, method, int(seed), path, arguments)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        arguments.keep = Path(arguments.keep or folder).resolve()
        results, n_failed = [], 0
        for name in arguments.jobs:
            try:
                result = compare(name, arguments)
            except Exception as error:  # whatever it is, it must not cost the other jobs' hours
                traceback.print_exc()
                print(f"{JOBS[name].title}: failed: {type(error).__name__}: {error}", flush=True)
                n_failed += 1
                continue
            if result is not None:
                results.append(result)
        if arguments.csv:
            write_csv(arguments.csv, results)
        if arguments.plots:
            for result in results:
                draw(arguments.plots / f"compare_{result.name}.png", result)
    return 1 if n_failed else 0


def compare(job_name: str, arguments: argparse.Namespace) -> JobResult | None:
    """Run all methods on a job with all seeds, test what they found, and print a table."""
    job = JOBS[job_name]
    if job.program is not None and shutil.which(job.program) is None:
        print(f"{job.title}: left out, {job.program} is not installed")
        return None
    absent = {name: why for name in arguments.methods if (why := METHODS[name].cannot(job))}
    runs: dict[str, dict[int, Run]] = {name: {} for name in arguments.methods if name not in absent}
    failures: dict[str, list[str]] = {name: [] for name in runs}
    for seed in range(arguments.first_seed, arguments.first_seed + arguments.seeds):
        for name in runs:
            print(f"{job.title}: {METHODS[name].title}, seed {seed} …", file=sys.stderr, flush=True)
            run = run_apart(job_name, name, seed, arguments)
            if isinstance(run, Run):
                runs[name][seed] = run
            elif run is not None:
                failures[name].append(run)
    absent |= {n: in_short(failures[n]) or "not run yet" for n, some in runs.items() if not some}
    reasons = {METHODS[name].title: why for name, why in absent.items()}
    took_part = {name: some for name, some in runs.items() if some}
    if not took_part:
        said = [f"\n{job.title}: left out, no method has a result", *left_out(reasons)]
        print("\n".join(said), flush=True)
        return None
    result = tested(job_name, took_part, failures, arguments)
    print(table(result, reasons), flush=True)
    return result


def in_short(failures: Sequence[str]) -> str:
    """Return each reason once, with its seed, or with the number of seeds that share it."""
    alike: dict[str, list[str]] = {}
    for why in failures:
        alike.setdefault(re.sub(r"seed \d+", "", why, count=1), []).append(why)
    return "; ".join(
        some[0] if len(some) == 1 else re.sub(r"seed \d+", f"{len(some)} seeds", some[0], count=1)
        for some in alike.values()
    )


def limits(job: Job, arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the options that make a run of a job what it is."""
    if job.timed:
        return {"seconds": arguments.seconds, "workers": arguments.workers}
    return {"trials": arguments.trials}


def run_apart(
    job_name: str, method: str, seed: int, arguments: argparse.Namespace
) -> Run | str | None:
    """Run a method in an interpreter of its own; return what it did, or why it failed.

    None if it would have to be run, and only what is kept is wanted. Why it failed is kept, too,
    but it may try again.
    """
    options = limits(JOBS[job_name], arguments)
    name = "-".join([job_name, method, f"seed_{seed}", *(f"{n}_{v:g}" for n, v in options.items())])
    path, why_failed = (arguments.keep / f"{name}.{kind}" for kind in ("json", "failed.txt"))
    if not path.exists():
        if arguments.kept_only:
            return why_failed.read_text(encoding="utf-8") if why_failed.exists() else None
        if why := METHODS[method].missing():
            return f"could not be run with seed {seed}: {why}"
        command = [sys.executable, __file__, "--one", job_name, method, str(seed), str(path)]
        for option, value in options.items():
            command += [f"--{option}", str(value)]
        command += ["--keep", str(arguments.keep)]
        # One core for each run: what is measured has threads of its own nowhere.
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        done = subprocess.run(
            command,
            env=environment,
            stdout=sys.stderr,  # SMAC's warnings are no part of the table
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
        if done.returncode:
            last = (done.stderr.strip().splitlines() or ["no message"])[-1]
            if done.returncode < 0:  # what it said last may be anything
                last = f"ended by signal {-done.returncode}"
            print(done.stderr, file=sys.stderr)
            why = f"failed with seed {seed}: {last}"
            why_failed.write_text(why, encoding="utf-8")
            return why
        why_failed.unlink(missing_ok=True)
    values = json.loads(path.read_text(encoding="utf-8"))
    return Run(**{**values, "trajectory": [tuple(item) for item in values["trajectory"]]})


def run_here(job: str, method: str, seed: int, path: str, arguments: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory() as folder:
        JOBS[job].train(instance_folder(job, arguments))  # written before the clock starts
        task = Task(
            job_name=job,
            seed=seed,
            seconds=arguments.seconds,
            n_trials=arguments.trials,
            workers=arguments.workers if JOBS[job].timed else 1,
            folder=Path(folder),
            instances=instance_folder(job, arguments),
        )
        before = yardstick()
        run = METHODS[method].run(task)
        run = replace(run, versions=versions(), yardstick=(before + yardstick()) / 2)
    part = Path(f"{path}.part")  # a result that is there is whole
    part.write_text(json.dumps(asdict(run)), encoding="utf-8")
    part.replace(path)


def versions() -> dict[str, str]:
    """Return which versions there are of what decides the figures."""
    found = {"Python": platform.python_version()}
    packages = ("smac", "ConfigSpace", "optuna", "ramparils", "highspy", "scikit-learn")
    for name in ("acband-configspace", *packages):
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    asked = {
        "clasp": ["clasp", "--version"],
        "irace": ["Rscript", "-e", "cat(format(packageVersion('irace')))"],
        "commit": ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty"],
    }
    for name, command in asked.items():
        with suppress(OSError, subprocess.CalledProcessError):
            said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
            found[name] = said.partition("\n")[0].removeprefix("clasp version ")
    return found


def yardstick() -> float:
    """Return how many milliseconds of CPU time this machine takes for a fixed piece of work."""
    took = timeit.repeat(
        lambda: sorted(range(500_000), key=lambda number: number * 7919 % 1_000_003),
        timer=time.process_time,
        number=1,
        repeat=5,
    )
    return 1000 * float(np.median(took))


def instance_folder(job_name: str, arguments: argparse.Namespace) -> Path:
    return Path(arguments.keep) / "instances" / job_name


# --- the test ---------------------------------------------------------------------------------


def incumbents(
    run: Run, default: Mapping[str, Any], limit: float, *, tells_at_end: bool
) -> list[dict[str, Any] | None]:
    """Return what a run would have returned at each look; the default until there is anything.

    None if nobody knows.
    """
    found: list[dict[str, Any] | None] = []
    for share in LOOKS:
        if tells_at_end and share < 1.0:
            found.append(None)
            continue
        config = dict(default)
        for spent, incumbent in run.trajectory:
            if spent <= share * limit:
                config = incumbent
        found.append(config)
    return found


def tested(
    job_name: str,
    runs: Mapping[str, Mapping[int, Run]],
    failures: Mapping[str, Sequence[str]],
    arguments: argparse.Namespace,
) -> JobResult:
    """Measure what was found on the test instances, and what was found earlier on some of them."""
    job = JOBS[job_name]
    limit = arguments.seconds if job.timed else arguments.trials
    default = plain(job.space().get_default_configuration())
    found = {
        name: [
            incumbents(run, default, limit, tells_at_end=METHODS[name].tells_at_end)
            for run in some.values()
        ]
        for name, some in runs.items()
    }
    all_looks = [looks for of_method in found.values() for looks in of_method]
    last = [looks[-1] for looks in all_looks if looks[-1] is not None]
    earlier = [config for looks in all_looks for config in looks[:-1] if config is not None]
    configs = list({json.dumps(c, sort_keys=True): c for c in [default, *last, *earlier]}.values())
    n_last = len({json.dumps(c, sort_keys=True) for c in [default, *last]})
    costs = test_costs(job_name, configs, n_last, arguments)
    column = {json.dumps(c, sort_keys=True): costs[:, i] for i, c in enumerate(configs)}
    column["null"] = np.full(len(costs), np.nan)  # what nobody knows
    methods = []
    for name, of_method in found.items():
        measured = [[column[json.dumps(c, sort_keys=True)] for c in seeds] for seeds in of_method]
        methods.append(
            MethodResult(
                name=name,
                title=METHODS[name].title,
                ours=name.startswith("acband"),
                costs=np.array(measured),
                runs=runs[name],
                failures=failures[name],
            )
        )
    workers = arguments.workers if job.timed else 1
    return JobResult(
        job_name,
        job.title,
        job.timed,
        limit,
        workers,
        costs[:, 0],
        methods,
        arguments.seeds,
        n_earlier=arguments.test_earlier,
    )


def test_costs(
    job_name: str, configs: Sequence[Mapping[str, Any]], n_last: int, arguments: argparse.Namespace
) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return the cost of each configuration on each test instance, a row for an instance.

    Instance by instance, so that a machine that becomes slower does so for everyone; what has been
    measured is kept. Beyond ``arguments.test_earlier`` instances only the first ``n_last``
    configurations are measured; the others are NaN there.
    """
    job = JOBS[job_name]
    names = job.test(instance_folder(job_name, arguments)) or [""]
    asked_of = {name: found for name, found in versions().items() if name in SOLVERS}
    part = [n_last, arguments.test_earlier, TEST_SEED, CUTOFF, PAR, asked_of]
    asked = json.dumps([configs, part, [Path(name).name for name in names]])
    digest = hashlib.sha256(asked.encode()).hexdigest()[:16]
    names = names[: arguments.test]
    path = arguments.keep / f"{job_name}-test-{digest}.jsonl"
    rows = kept_rows(path)
    workers = arguments.workers if job.timed else os.cpu_count() or 1
    print(
        f"{job.title}: testing {len(configs)} configurations on {len(names)} instances …",
        file=sys.stderr,
        flush=True,
    )
    with (
        ProcessPoolExecutor(workers, get_context("spawn")) as pool,
        path.open("a", encoding="utf-8") as file,
    ):
        for number, name in list(enumerate(names))[len(rows) :]:
            is_for_all = arguments.test_earlier is None or number < arguments.test_earlier
            measured = configs if is_for_all else configs[:n_last]
            row = list(pool.map(partial(test_cost, job_name, name), measured))
            row += [np.nan] * (len(configs) - len(row))
            rows.append(row)
            print(json.dumps(row), file=file, flush=True)
    return np.array(rows[: len(names)])


def kept_rows(path: Path) -> list[list[float]]:
    """Return what has been measured already; a last line that is not whole is dropped."""
    if not path.exists():
        return []
    text = path.read_text(encoding="utf-8")
    whole = text[: text.rfind("\n") + 1]
    if whole != text:  # by a kill, or a full disk
        path.write_text(whole, encoding="utf-8")
    return [json.loads(line) for line in whole.splitlines()]


def test_cost(job_name: str, instance: str, config: Mapping[str, Any]) -> float:
    return JOBS[job_name].cost(config, instance, TEST_SEED, CUTOFF)


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--jobs", nargs="+", choices=JOBS, default=list(JOBS), metavar="JOB",
        help=f"some of {', '.join(JOBS)}; by default all")  # fmt: skip
    add("--methods", nargs="+", choices=METHODS, default=list(METHODS), metavar="METHOD",
        help=f"some of {', '.join(METHODS)}; by default all")  # fmt: skip
    add("--seconds", type=float, default=120.0, help="for each run of a timed job (120)")
    add("--trials", type=int, default=300, help="for each run of the other jobs (300)")
    add("--seeds", type=int, default=1, help="how many runs of each method on each job (1)")
    add("--first-seed", type=int, default=0)
    add("--workers", type=int, default=2, help="for timed jobs (2)")
    add("--test", type=int, help="use at most this many test instances (default: all)")
    add("--test-earlier", type=int, metavar="TEST",
        help="use at most this many for earlier results (default: as --test)")  # fmt: skip
    add("--keep", metavar="FOLDER", help="keep each run there; do none twice")
    add("--kept-only", action="store_true", help="only make the tables of kept runs: run no others")
    add("--csv", metavar="FILE", help="write the figures of every run")
    add("--plots", metavar="FOLDER", type=Path, help="draw a picture of each job")
    add("--one", nargs=4, help=argparse.SUPPRESS)
    arguments = parser.parse_args(argv)
    for name in ("seconds", "seeds", "workers", "trials", "test", "test_earlier"):
        value = getattr(arguments, name)
        if value is not None and value <= 0:
            parser.error(f"--{name.replace('_', '-')} must be positive but got {value:g}")
    if arguments.kept_only and not arguments.keep:
        parser.error("--kept-only needs --keep FOLDER")
    if arguments.plots and find_spec("matplotlib") is None:
        parser.error('--plots needs matplotlib: pip install ".[plot]"')
    if arguments.csv and not Path(arguments.csv).absolute().parent.is_dir():
        parser.error(f"--csv must be in a folder that exists but got {arguments.csv}")
    for option in ("keep", "plots"):
        if folder := getattr(arguments, option):
            try:  # now, and not after hours
                Path(folder).mkdir(parents=True, exist_ok=True)
                tempfile.TemporaryFile(dir=folder).close()
            except OSError as error:
                parser.error(f"--{option}: cannot write to {folder}: {error.strerror}")
    return arguments


if __name__ == "__main__":
    sys.exit(main())
