"""AC-Band beside SMAC's own facades on a real job: HiGHS on auctions, all for the same time.

Every method gets the same wall-clock time, workers, training auctions and seeds. What it returns
is measured on the same test auctions, as is what it would have returned earlier. All have their
defaults, but for what a job with instances needs: AC-Band races; for SMAC the target measures the
CPU time itself, up to the same cutoff, and random search may try a configuration on all auctions,
not on three. The model-based facade comes with features of the auctions, as SMAC advises, and
without, which makes its model faster. SMAC's adaptive capping is not used.

    python examples/compare_with_smac.py --seconds 20 --seeds 1      # a quick look
    python examples/compare_with_smac.py --seconds 600 --seeds 10 --workers 8 --plot compare.png

A long comparison is best started with ``--keep FOLDER``: stopped and started again, it goes on.
What comes out is what is shown, whoever wins. Needs: pip install ".[examples]"
"""

from __future__ import annotations

import argparse
import csv
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import dask
import numpy as np
from dask.distributed import Client, LocalCluster
from highs_auctions import CUTOFF, PAR, features, make_space, solve, timed_solve
from smac import AlgorithmConfigurationFacade, Callback, HyperbandFacade, RandomFacade, Scenario
from smac.facade.abstract_facade import AbstractFacade
from smac.main.smbo import SMBO
from smac.runhistory import TrialInfo, TrialValue

from acband_configspace import ACBandFacade

METHODS = {
    "acband": "AC-Band, racing",
    "ac": "SMAC AC, with features",
    "ac-plain": "SMAC AC, without features",
    "hyperband": "SMAC Hyperband",
    "random": "SMAC Random",
}
#: At these shares of the time it is asked what would have been returned.
LOOKS = (0.0625, 0.125, 0.25, 0.5, 1.0)


@dataclass(frozen=True)
class Result:
    """What one method did with one seed."""

    method: str
    seed: int
    configs: list[dict[str, Any]]
    """The incumbent at each look."""
    elapsed: float
    cpu_time: float
    """CPU seconds of all trials."""
    n_trials: int
    n_configs: int
    bookkeeping: float
    """Seconds in which the workers had nothing to do; more than the limit if one was missed."""
    test_costs: list[float] = field(default_factory=list)
    """Mean cost on the test auctions, at each look."""


def main(argv: Sequence[str] | None = None) -> int:
    arguments = parse(argv)
    if arguments.one:
        result = run_one(arguments.one, arguments.first_seed, arguments)
        part = Path(f"{arguments.json}.part")  # a result that is there is whole
        part.write_text(json.dumps(asdict(result)), encoding="utf-8")
        part.replace(arguments.json)
        return 0
    seeds = range(arguments.first_seed, arguments.first_seed + arguments.seeds)
    results = []
    for seed in seeds:
        for method in arguments.methods:
            print(f"{METHODS[method]}, seed {seed}: {arguments.seconds:g} s ...", flush=True)
            results.append(run_apart(method, seed, arguments))
    print(f"Measuring what was found on {arguments.test} test auctions ...", flush=True)
    default_cost, results = tested(results, arguments)
    print(table(default_cost, results, arguments))
    if arguments.csv:
        write_csv(arguments.csv, default_cost, results)
    if arguments.plot:
        plot(arguments.plot, default_cost, results, arguments.seconds)
    return 0


def run_apart(method: str, seed: int, arguments: argparse.Namespace) -> Result:
    """Run a method in an interpreter of its own: nothing is left over for the next one."""
    settings = {name: getattr(arguments, name) for name in ("seconds", "workers", "instances")}
    with tempfile.TemporaryDirectory() as folder:
        name = "-".join([method, f"seed_{seed}", *(f"{n}_{v:g}" for n, v in settings.items())])
        path = Path(arguments.keep or folder) / f"{name}.json"
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            command = [sys.executable, __file__, "--one", method, "--json", str(path)]
            for option, value in {**settings, "first-seed": seed}.items():
                command += [f"--{option}", str(value)]
            subprocess.run(command, check=True, timeout=10 * arguments.seconds + 600)
        return Result(**json.loads(path.read_text(encoding="utf-8")))


def run_one(method: str, seed: int, arguments: argparse.Namespace) -> Result:
    with tempfile.TemporaryDirectory() as folder, dask_client(method, arguments.workers) as client:
        facade = make_facade(method, seed, arguments, folder, client)
        facade.optimize()
        optimizer = facade._optimizer
        in_target = optimizer.used_target_function_walltime
        elapsed = optimizer.used_walltime
        return Result(
            method=method,
            seed=seed,
            configs=[incumbent_at(facade, share * arguments.seconds) for share in LOOKS],
            elapsed=elapsed,
            cpu_time=sum(value.cpu_time for value in facade.runhistory.values()),
            n_trials=facade.runhistory.finished,
            # SMAC notes configurations before they run; only what came to an end was tried.
            n_configs=len(
                {k.config_id for k, v in facade.runhistory.items() if v.status.name != "RUNNING"}
            ),
            bookkeeping=max(0.0, elapsed - in_target / arguments.workers),
        )


@contextmanager
def dask_client(method: str, workers: int) -> Iterator[Client | None]:
    """Start SMAC's workers before its clock, and end them in order, which SMAC's own does not."""
    if method == "acband" or workers == 1:
        yield None
        return
    # Workers must be allowed to have children, as SMAC has them.
    dask.config.set({"distributed.worker.daemon": False})
    with (
        LocalCluster(workers, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        yield client


class SameSpace(Callback):
    """Lets SMAC know its configurations again when they come back from a Dask worker.

    ConfigSpace 1.2 does not hold an integer on a log scale equal to its own copy, so that SMAC
    would take each result for that of a new configuration, and wait for the one it asked for.
    """

    def on_tell_start(self, smbo: SMBO, info: TrialInfo, value: TrialValue) -> None:  # noqa: D102
        info.config.config_space = smbo._scenario.configspace


def make_facade(
    method: str, seed: int, arguments: argparse.Namespace, folder: str, client: Client | None
) -> AbstractFacade:
    names = [f"train-{number}" for number in range(arguments.instances)]
    common: dict[str, Any] = {
        "instances": names,
        "deterministic": True,
        "walltime_limit": arguments.seconds,
        "n_trials": 100_000,
        "n_workers": arguments.workers,
        "seed": seed,
        "output_directory": Path(folder),
    }
    space = make_space()
    if method == "acband":
        scenario = Scenario(space, trial_walltime_limit=CUTOFF, **common)
        return ACBandFacade(
            scenario,
            solve,
            racing=True,
            clock="cpu",
            par=PAR,
            logging_level=30,
            progress=False,
        )
    options: dict[str, Any] = {
        "logging_level": 30,
        "overwrite": True,
        "dask_client": client,
        "callbacks": [SameSpace()],
    }
    if method == "ac":
        common["instance_features"] = {name: features(name) for name in names}
    scenario = Scenario(space, **common)
    if method == "hyperband":  # its fidelity is the number of auctions, up to all of them
        return HyperbandFacade(scenario, timed_solve, **options)
    if method == "random":
        intensifier = RandomFacade.get_intensifier(scenario, max_config_calls=len(names))
        return RandomFacade(scenario, timed_solve, intensifier=intensifier, **options)
    return AlgorithmConfigurationFacade(scenario, timed_solve, **options)


def incumbent_at(facade: AbstractFacade, seconds: float) -> dict[str, Any]:
    """Return the incumbent after so many seconds; the default until there is one."""
    config = facade.scenario.configspace.get_default_configuration()
    for item in facade.intensifier.trajectory:
        if item.walltime <= seconds:
            config = facade.runhistory.get_config(item.config_ids[0])
    return plain(config)


def plain(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values in Python's own types, which JSON can write."""
    values = {name: config[name] for name in sorted(config)}
    return {n: v.item() if isinstance(v, np.generic) else v for n, v in values.items()}


def tested(results: Sequence[Result], arguments: argparse.Namespace) -> tuple[float, list[Result]]:
    """Return the default's mean cost on the test auctions, and the results with theirs."""
    default = plain(make_space().get_default_configuration())
    configs = {repr(c): c for c in [default, *(c for r in results for c in r.configs)]}
    names = [f"test-{number}" for number in range(arguments.test)]
    # Auction by auction, so that a machine that becomes slower does so for everyone.
    jobs = [(config, name) for name in names for config in configs.values()]
    with ProcessPoolExecutor(arguments.workers) as pool:
        costs = list(pool.map(timed_solve, *zip(*jobs, strict=True)))
    means = dict(zip(configs, np.reshape(costs, (len(names), -1)).mean(axis=0), strict=True))
    measured = [
        replace(result, test_costs=[float(means[repr(c)]) for c in result.configs])
        for result in results
    ]
    return float(means[repr(default)]), measured


def table(default_cost: float, results: Sequence[Result], arguments: argparse.Namespace) -> str:
    head = (
        f"{'method':28}{'test cost':>18}{'speed-up':>10}{'CPU time':>10}{'trials':>8}"
        f"{'configs':>9}{'bookkeeping':>13}{'took':>9}"
    )
    lines = [head, f"{'HiGHS default':28}{default_cost:10.4f} s{'':6}{1:10.2f}"]
    for method in arguments.methods:
        own = [result for result in results if result.method == method]
        costs = np.array([result.test_costs[-1] for result in own])
        spread = f"± {costs.std(ddof=1):.3f}" if len(costs) > 1 else ""

        def mean(name: str, own: Sequence[Result] = own) -> float:
            return float(np.mean([getattr(result, name) for result in own]))

        speed_up = default_cost / costs.mean()
        lines.append(
            f"{METHODS[method]:28}{costs.mean():8.4f} {spread:7} s{speed_up:10.2f}"
            f"{mean('cpu_time'):8.1f} s{mean('n_trials'):8.0f}{mean('n_configs'):9.0f}"
            f"{mean('bookkeeping'):11.1f} s{mean('elapsed'):7.0f} s"
        )
    lines.append(
        f"Means over {arguments.seeds} seeds, {arguments.seconds:g} s and {arguments.workers} "
        f"workers each; cost is PAR{PAR:g} of the CPU time with a cutoff of {CUTOFF:g} s on "
        f"{arguments.test} test auctions, ± its standard deviation over the seeds. AC-Band's "
        "trials include losers that were stopped. Who took longer is judged by what it had by then."
    )
    return "\n".join(lines)


def write_csv(path: str, default_cost: float, results: Sequence[Result]) -> None:
    columns = [f.name for f in fields(Result) if f.name not in ("configs", "test_costs")]
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        looks = [f"test_cost_at_{share:g}" for share in LOOKS]
        writer.writerow([*columns, *looks, "default_test_cost"])
        for result in results:
            values = [getattr(result, name) for name in columns]
            writer.writerow([*values, *result.test_costs, default_cost])


def plot(path: str, default_cost: float, results: Sequence[Result], seconds: float) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
    times = [share * seconds for share in LOOKS]
    for method, name in METHODS.items():
        costs = np.array([r.test_costs for r in results if r.method == method])
        if len(costs):
            [line] = ax.plot(times, costs.mean(axis=0), marker="o", label=name)
            ax.fill_between(times, costs.min(0), costs.max(0), color=line.get_color(), alpha=0.15)
    ax.axhline(default_cost, color="0.4", linestyle="--", label="HiGHS default")
    ax.set_xscale("log", base=2)
    ax.set_xticks(times, [f"{t:g}" for t in times])
    ax.set_xlabel("seconds of configuration")
    ax.set_ylabel("mean cost on test auctions (s)")
    ax.set_ylim(bottom=0)
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False, fontsize="small")
    figure.savefig(path, dpi=130)


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=20.0, help="for each run (20)")
    parser.add_argument("--seeds", type=int, default=1, help="how many runs of each method (1)")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--instances", type=int, default=100, help="to train on (100)")
    parser.add_argument("--test", type=int, default=50, help="auctions to test on (50)")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--keep", metavar="FOLDER", help="keep each run there; do none twice")
    parser.add_argument("--csv", metavar="FILE", help="write the figures of every run")
    parser.add_argument("--plot", metavar="FILE", help="draw the test cost over time")
    parser.add_argument("--one", choices=METHODS, help=argparse.SUPPRESS)
    parser.add_argument("--json", help=argparse.SUPPRESS)
    arguments = parser.parse_args(argv)
    for name in ("seconds", "seeds", "workers", "instances", "test"):
        if getattr(arguments, name) <= 0:
            parser.error(f"--{name} must be positive but got {getattr(arguments, name):g}")
    if arguments.plot and find_spec("matplotlib") is None:
        parser.error('--plot needs matplotlib: pip install ".[plot]"')
    return arguments


if __name__ == "__main__":
    sys.exit(main())
