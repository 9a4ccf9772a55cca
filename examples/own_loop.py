"""Ask and tell: your own loop runs the target, AC-Band says what to run.

``ask`` names a trial, ``tell`` takes its result, in any order. After the races of a round have
been asked for, their results must be told before there are further ones: OutcomesNeededError says
so, and RunFinishedError that all is done. Trials here are collected in batches, as one would for
a queue, a laboratory or a cluster of one's own.

    python examples/own_loop.py
"""

from __future__ import annotations

import argparse
import math
import random
from collections.abc import Sequence
from pathlib import Path

from ConfigSpace import ConfigurationSpace, Float
from smac import Scenario
from smac.runhistory.dataclasses import TrialInfo, TrialValue

from acband_configspace import ACBandFacade
from acband_configspace.errors import OutcomesNeededError, RunFinishedError


def rastrigin(x: float, y: float, seed: int) -> float:
    """Return a function with many local minima, the lowest at (0, 0), measured with noise."""
    value = 20 + sum(v * v - 10 * math.cos(2 * math.pi * v) for v in (x, y))
    return value + random.Random(seed).gauss(0.0, 1.0)


def next_batch(facade: ACBandFacade, size: int) -> list[TrialInfo]:
    """Ask for up to ``size`` trials: fewer at the end of a round, none when all is done."""
    batch: list[TrialInfo] = []
    try:
        while len(batch) < size:
            batch.append(facade.ask())
    except (OutcomesNeededError, RunFinishedError):  # what is in the batch must be told first
        pass
    return batch


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--trials", type=int, default=1000, help="runs of the target (1000)")
    parser.add_argument("--batch", type=int, default=16, help="trials at a time (16)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, default=Path("acband_output"))
    arguments = parser.parse_args(argv)
    if arguments.trials < 2 or arguments.batch < 1:
        parser.error("--trials must be at least 2, and --batch at least 1")
    space = ConfigurationSpace(name="Rastrigin")
    space.add(Float("x", (-5.12, 5.12), default=4.0), Float("y", (-5.12, 5.12), default=4.0))
    scenario = Scenario(
        space,
        n_trials=arguments.trials,
        seed=arguments.seed,
        output_directory=arguments.output,
    )
    facade = ACBandFacade(scenario, overwrite=True, logging_level=30)  # no target: the loop is ours
    print(facade.schedule)
    n_batches = 0
    while batch := next_batch(facade, arguments.batch):
        n_batches += 1
        random.shuffle(batch)  # results may come in any order
        for info in batch:
            assert info.seed is not None
            cost = rastrigin(**info.config, seed=info.seed)
            facade.tell(info, TrialValue(cost=cost, time=0.0))
    incumbent = facade.intensifier.get_incumbent()
    assert incumbent is not None
    print(f"\n{facade.runhistory.finished} trials in {n_batches} batches")
    print(f"Found: x = {incumbent['x']:.3f}, y = {incumbent['y']:.3f}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
