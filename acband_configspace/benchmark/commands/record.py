"""Record a runtime table: run a real solver for sampled configurations on generated instances.

Every run is written down at once, in OUTPUT.journal: interrupt it, start it again with the same
options, and it continues. The table is written when all runs are done, or with ``--minutes`` when
the time is up: then it has the instances that all configurations have run on.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from acband_configspace.benchmark.recording.recorder import Plan, record
from acband_configspace.benchmark.recording.solvers import get_solver
from acband_configspace.benchmark.tables import save_npz


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument(
        "--target",
        default="minisat",
        help="minisat, clasp, or a Python file such as examples/highs_auctions.py that defines "
        "make_space(), solve(config, instance, seed), instances_to_record(count, seed), version()",
    )
    parser.add_argument("--configurations", type=int, default=200)
    parser.add_argument("--instances", type=int, default=400)
    parser.add_argument("--cutoff", type=float, default=1.0, help="CPU seconds of a run")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=1, help="runs at a time")
    parser.add_argument("--minutes", type=float, default=None, help="stop after this time")
    parser.add_argument("--output", type=Path, default=Path("recorded.npz"))


def run(arguments: argparse.Namespace) -> int:
    """Record, and write the table."""
    plan = Plan(arguments.configurations, arguments.instances, arguments.cutoff, arguments.seed)
    journal = arguments.output.with_suffix(".journal")
    folder = arguments.output.with_suffix(".instances")
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    started = time.monotonic()
    deadline = started + 60 * arguments.minutes if arguments.minutes is not None else None

    def show(done: int, total: int) -> None:
        if done % 100 == 0 or done == total:
            print(f"\r{done:,} of {total:,} runs", end="", file=sys.stderr, flush=True)

    table = record(
        get_solver(arguments.target),
        plan,
        journal,
        folder,
        workers=arguments.workers,
        deadline=deadline,
        on_progress=show,
    )
    print(file=sys.stderr)
    if table is None:
        print("no instance is done yet: go on with the same options", file=sys.stderr)
        return 1
    save_npz(arguments.output, table)
    solved = float((table.runtimes < table.cutoff).mean())
    print(
        f"{arguments.output}: {table.n_configs} × {table.n_instances}, {solved:.1%} solved, mean "
        f"{table.mean_runtimes().mean():.4g} s"
    )
    return 0
