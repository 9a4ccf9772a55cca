"""Measure the bookkeeping per trial of ACBandFacade beside SMAC's RandomFacade.

The target returns at once, so all the time that passes is the configurator's own: drawing, asking,
telling, journal and saving included. Memory is the growth of the process over the run. With
``--resume`` it measures what it takes to resume a run, too.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from acband_configspace.benchmark.commands.overhead_resuming import print_resuming

AIM_MILLISECONDS = 1.0
AIM_GROWTH = 1.3
AIM_KILOBYTES = 2.0


@dataclass(frozen=True)
class Overhead:
    """What one run took per trial."""

    n_trials: int
    milliseconds: float
    kilobytes: float


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument(
        "--trials", type=int, nargs="*", default=[1_000, 10_000, 100_000], help="for ACBandFacade"
    )
    parser.add_argument(
        "--smac-trials", type=int, nargs="*", default=[500, 1_000], help="for RandomFacade"
    )
    parser.add_argument("--resume", type=int, metavar="RACES", help="resume runs of so many races")


def run(arguments: argparse.Namespace) -> int:
    """Print the overhead of both; the exit code says whether the aims were met."""
    print("facade        trials  ms a trial  KB a trial")
    for n_trials in arguments.smac_trials:
        _print("RandomFacade", _in_process("RandomFacade", n_trials))
    ours = []
    for n_trials in arguments.trials:
        ours.append(_in_process("ACBandFacade", n_trials))
        _print("ACBandFacade", ours[-1])
    by_length = {overhead.n_trials: overhead for overhead in ours}
    met = []
    if middle := by_length.get(10_000):
        met.append(middle.milliseconds <= AIM_MILLISECONDS)
        print(f"\n10,000 trials: {middle.milliseconds:.2f} ms (aim: at most {AIM_MILLISECONDS})")
        if long := by_length.get(100_000):
            growth = long.milliseconds / middle.milliseconds
            met += [growth <= AIM_GROWTH, long.kilobytes <= AIM_KILOBYTES]
            print(f"100,000 over 10,000: {growth:.2f} × (aim: at most {AIM_GROWTH})")
            print(f"memory: {long.kilobytes:.2f} KB a trial (aim: at most {AIM_KILOBYTES})")
    if arguments.resume is not None:
        met.append(print_resuming(arguments.resume))
    return 0 if all(met) else 1


def _print(name: str, overhead: Overhead) -> None:
    print(
        f"{name:12}  {overhead.n_trials:7,}  {overhead.milliseconds:10.2f}  "
        f"{overhead.kilobytes:10.2f}",
        flush=True,
    )


def _in_process(facade: str, n_trials: int) -> Overhead:
    # A process of its own for each, so that none finds the memory of another.
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_measure, (facade, n_trials))


def _measure(facade_name: str, n_trials: int) -> Overhead:
    from ConfigSpace import ConfigurationSpace, Float
    from smac import RandomFacade, Scenario

    from acband_configspace import ACBandFacade

    facades: dict[str, Any] = {"RandomFacade": RandomFacade, "ACBandFacade": ACBandFacade}
    space = ConfigurationSpace(seed=0)
    space.add(Float("x", (0.0, 1.0)), Float("y", (0.0, 1.0)))
    with tempfile.TemporaryDirectory() as directory:
        scenario = Scenario(space, n_trials=n_trials, output_directory=Path(directory))
        facade = facades[facade_name](scenario, _target, logging_level=False)
        process = psutil.Process(os.getpid())
        memory = process.memory_info().rss
        start = time.perf_counter()
        facade.optimize()
        seconds = time.perf_counter() - start
        grown = process.memory_info().rss - memory
        n_done = facade.runhistory.finished
    return Overhead(n_trials, 1e3 * seconds / n_done, grown / 1024 / n_done)


def _target(config: Any, seed: int = 0) -> float:
    return float(config["x"]) + (seed % 1000) / 1e4
