"""Configure a solver on a Dask cluster: AC-Band's races travel to the workers.

Without options this starts two workers on this machine and takes less than a minute:

    python examples/on_a_cluster.py

On a cluster of your own, start `dask scheduler` on HOST and elsewhere some
`dask worker tcp://HOST:8786 --nthreads 4`, and

    python examples/on_a_cluster.py --scheduler tcp://HOST:8786

With SLURM, `--slurm` starts the workers as jobs (needs `pip install dask-jobqueue`): say in
`connect` first how many, in which partition, with how much memory. Workers may come and go
meanwhile, and if this script is stopped it goes on where it was when started again.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from random import Random
from typing import Any

from ConfigSpace import Categorical, ConfigurationSpace, Float
from dask.distributed import Client, LocalCluster
from smac import Scenario

from acband_configspace import ACBandFacade


def solve(config: Mapping[str, Any], instance: str, seed: int = 0) -> None:
    """Solve a random satisfiability problem by local search; how long it takes is what counts."""
    random = Random(instance)
    n_variables = 60
    clauses = [
        [variable * random.choice((1, -1)) for variable in random.sample(range(1, 61), 3)]
        for _ in range(int(3.6 * n_variables))
    ]
    random = Random(seed)
    while True:
        truth = [random.random() < config["first_guess"] for _ in range(n_variables + 1)]
        for _ in range(20 * n_variables):
            broken = [c for c in clauses if not any(truth[abs(x)] == (x > 0) for x in c)]
            if not broken:
                return
            clause = broken[0] if config["clause"] == "first" else random.choice(broken)
            variable = abs(random.choice(clause))
            if random.random() > config["noise"]:
                variable = min((abs(x) for x in clause), key=lambda v: _breaks(clauses, truth, v))
            truth[variable] = not truth[variable]


def _breaks(clauses: Any, truth: Any, variable: Any) -> Any:
    """Count the clauses that only this variable keeps true."""
    return sum(
        [abs(x) for x in clause if truth[abs(x)] == (x > 0)] == [variable] for clause in clauses
    )


def space() -> Any:
    space = ConfigurationSpace(seed=0)
    space.add(
        Float("noise", (0.0, 1.0), default=0.9),
        Float("first_guess", (0.0, 1.0), default=1.0),
        Categorical("clause", ["first", "any"], default="first"),
    )
    return space


@contextmanager
def connect(arguments: Any) -> Iterator[Any]:
    """Connect to the scheduler that was asked for."""
    if arguments.scheduler:
        with Client(arguments.scheduler) as client:
            yield client
    elif arguments.slurm:
        from dask_jobqueue import SLURMCluster  # type: ignore[attr-defined]

        cluster = SLURMCluster(
            queue="normal",  # the partition
            cores=8,  # of each job, shared by its worker processes
            processes=2,  # so each worker has 4 threads, and runs 4 racers at a time
            memory="8 GB",
            walltime="01:00:00",
            worker_extra_args=["--lifetime", "55m", "--lifetime-stagger", "4m"],
        )
        cluster.scale(jobs=2)
        with cluster, Client(cluster) as client:
            yield client
    else:
        with (
            LocalCluster(n_workers=2, threads_per_worker=2, dashboard_address=None) as cluster,
            Client(cluster) as client,
        ):
            yield client


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--scheduler", metavar="ADDRESS", help="of a cluster that is running")
    parser.add_argument("--slurm", action="store_true", help="start the workers as SLURM jobs")
    parser.add_argument("--trials", type=int, default=60, help="the budget (default: 60)")
    parser.add_argument("--k", type=int, default=2, help="racers in a race (default: 2)")
    parser.add_argument("--output", type=Path, default=Path("acband_output"))
    arguments = parser.parse_args()
    if arguments.k < 2 or arguments.trials < 2:
        parser.error("--k and --trials must be at least 2")
    if arguments.slurm and find_spec("dask_jobqueue") is None:
        parser.error("--slurm needs dask-jobqueue: pip install dask-jobqueue")

    scenario = Scenario(
        space(),
        n_trials=arguments.trials,
        instances=[f"problem {number}" for number in range(200)],
        trial_walltime_limit=5,
        output_directory=arguments.output,
    )
    with connect(arguments) as client:
        facade = ACBandFacade(
            scenario, solve, racing=True, k=arguments.k, dask_client=client, worker_timeout=600
        )
        print(facade.schedule)
        incumbent = facade.optimize()
    print(f"The winner after {facade.runhistory.finished} trials: {dict(incumbent)}")


if __name__ == "__main__":  # workers import this script
    main()
