"""Time ``simulate`` on a made-up table of the size of the paper's SAT data.

Prints the seconds of a run for each k and α, and how they grow with ten times the instances.
"""

from __future__ import annotations

import argparse
import time

from acband_configspace.benchmark.simulation import simulate
from acband_configspace.benchmark.tables import RuntimeTable, synthetic_table

AIM_SECONDS = 0.1
AIM_GROWTH = 12.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument("--configurations", type=int, default=948)
    parser.add_argument("--instances", type=int, default=20118)
    parser.add_argument("--repeats", type=int, default=5, help="runs per setting, best counts")


def run(arguments: argparse.Namespace) -> int:
    """Print the table of times; the exit code says whether the aims were met."""
    table = synthetic_table(arguments.configurations, arguments.instances)
    print(f"simulate on a table of {table.n_configs} × {table.n_instances}, seconds a run\n")
    alphas = (0.05, 0.02, 0.01)
    print("    k" + "".join(f"   α = {alpha:<4}" for alpha in alphas))
    slowest = 0.0
    for k in (2, 4, 8, 16):
        times = [_seconds(table, k, alpha, arguments.repeats) for alpha in alphas]
        slowest = max(slowest, *times)
        print(f"{k:5}" + "".join(f"  {seconds:9.4f}" for seconds in times))
    growth = _growth(table, arguments.repeats)
    print(f"\nslowest run: {slowest:.4f} s (aim: at most {AIM_SECONDS})")
    print(f"ten times the instances: {growth:.1f} × the time (aim: at most {AIM_GROWTH:.0f})")
    return 0 if slowest <= AIM_SECONDS and growth <= AIM_GROWTH else 1


def _seconds(table: RuntimeTable, k: int, alpha: float, repeats: int) -> float:
    best = float("inf")
    for seed in range(repeats):
        start = time.perf_counter()
        simulate(table, k=k, alpha=alpha, delta=0.05, seed=seed)
        best = min(best, time.perf_counter() - start)
    return best


def _growth(table: RuntimeTable, repeats: int) -> float:
    tenth = RuntimeTable(table.runtimes[:, : table.n_instances // 10], table.cutoff)
    return _seconds(table, 8, 0.05, repeats) / _seconds(tenth, 8, 0.05, repeats)
