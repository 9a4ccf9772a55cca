"""AC-Band: the paper's Algorithm 3. Sans-I/O, like ``elimination``."""

from __future__ import annotations

import numpy as np

from acband_configspace.elimination import Contests, eliminate
from acband_configspace.schedule import Schedule


def acband(schedule: Schedule, rng: np.random.Generator) -> Contests:
    """Play all epochs of a schedule and return the number of the winning configuration.

    Configuration 0 is θ_0; epoch by epoch the following numbers are the new configurations, so
    whoever runs the races draws the next configuration when a new number turns up.
    """
    winner = 0  # line 1: θ_0
    n_drawn = 1
    first_instance = 0
    for epoch in schedule.epochs:  # line 2
        new = range(n_drawn, n_drawn + epoch.n_configs - 1)  # line 4
        winner = yield from eliminate(  # line 6
            [winner, *new],
            epoch.rounds,
            rng,
            epoch=epoch.index,
            first_instance=first_instance,
        )
        n_drawn += len(new)
        first_instance += epoch.n_races  # line 5: no instance is used twice
    return winner
