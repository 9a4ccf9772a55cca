"""AC-Band: the paper's Algorithm 3. Sans-I/O, like ``elimination``."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from acband_configspace.elimination import Contests, eliminate
from acband_configspace.schedule import Schedule


def acband(
    schedule: Schedule,
    rng: np.random.Generator,
    *,
    given: Sequence[int] = (0,),
    first_new: int = 1,
    first_instance: int = 0,
) -> Contests:
    """Play all epochs of a schedule and return the number of the winning configuration.

    The configurations given (θ_0, line 1) and the new ones, counted from ``first_new`` epoch by
    epoch, are numbers; so are the instances, from ``first_instance``. Whoever runs the races
    draws the next configuration, or instance, when a new number turns up.
    """
    if len(given) != schedule.supply.n_given:
        raise ValueError(f"given must be {schedule.supply.n_given} configurations but got {given}")
    entering = list(given)
    for epoch in schedule.epochs:  # line 2
        new = range(first_new, first_new + epoch.n_configs - len(entering))  # line 4
        winner = yield from eliminate(  # line 6
            [*entering, *new],
            epoch.rounds,
            rng,
            epoch=epoch.index,
            first_instance=first_instance,
        )
        entering = [winner]
        first_new = new.stop
        first_instance += epoch.n_races  # line 5: no instance is used twice
    return entering[0]
