"""AC-Band: the paper's Algorithm 3, and what may follow it. Sans-I/O, like ``elimination``."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from acband_configspace.elimination import Contest, Contests, eliminate
from acband_configspace.rounds import playoff_rounds, playoff_trials
from acband_configspace.schedule import Epoch, Schedule
from acband_configspace.statistics import Floats
from acband_configspace.supply import Supply

SPENDINGS = ("nothing", "configurations")


def acband(schedule: Schedule, rng: np.random.Generator, *, spend: str = "nothing") -> Contests:
    """Play all epochs of a schedule and return the number of the winning configuration.

    Configuration 0 is θ_0; epoch by epoch the following numbers are the new configurations, so
    whoever runs the races draws the next configuration when a new number turns up.

    With ``spend="configurations"`` races that early decisions saved go to further epochs with new
    configurations. If the schedule has a playoff, it comes last.
    """
    if spend not in SPENDINGS:
        raise ValueError(f"spend must be one of {', '.join(map(repr, SPENDINGS))}, got {spend!r}")
    return _acband(schedule, rng, spend)


def _acband(schedule: Schedule, rng: np.random.Generator, spend: str) -> Contests:
    supply = Supply(schedule)
    winners = [0]  # line 1: θ_0
    n_drawn = 1

    def play(epoch: Epoch) -> Contests:
        new = range(n_drawn, n_drawn + epoch.n_configs - 1)  # line 4
        members = [winners[-1], *new]
        return eliminate(members, epoch.rounds, rng, epoch=epoch.index, supply=supply)

    for epoch in schedule.epochs:  # line 2
        winners.append((yield from play(epoch)))  # lines 5 and 6
        n_drawn += epoch.n_configs - 1
    supply.open_reserve()
    number = len(schedule.epochs) + 1
    while spend == "configurations":
        further = _further_epoch(schedule, supply, number, n_drawn, len(set(winners)) + 1)
        if further is None:
            break
        winners.append((yield from play(further)))
        n_drawn += further.n_configs - 1
        number += 1
    contestants = list(dict.fromkeys(reversed(winners)))  # the last winner first: it wins ties
    return (yield from _play_off(schedule, supply, contestants, epoch=number))


def _further_epoch(
    schedule: Schedule, supply: Supply, number: int, n_drawn: int, n_contestants: int
) -> Epoch | None:
    """Plan another epoch with what is left, the playoff held back."""
    held = schedule.playoff_length(n_contestants, supply.races_left, supply.trials_left)
    return schedule.further_epoch(
        number,
        n_drawn=n_drawn - 1,
        n_races=supply.races_left - held,
        n_trials=supply.trials_left - playoff_trials(n_contestants, held),
    )


def _play_off(
    schedule: Schedule, supply: Supply, contestants: Sequence[int], *, epoch: int
) -> Contests:
    """Let the epoch winners meet on fresh instances, the better half going on to the next step."""
    length = schedule.playoff_length(len(contestants), supply.races_left, supply.trials_left)
    steps = playoff_rounds(len(contestants), length)
    instances = supply.take(1, length, n_trials=sum(step.n_trials for step in steps))
    group = np.array([contestants], dtype=np.int64)
    costs: Floats = np.zeros(len(contestants))
    for number, plan in enumerate(steps, start=1):
        own, instances = np.split(instances, [plan.races_per_group], axis=1)
        verdict = yield Contest(epoch, number, plan, group, own, costs_so_far=costs)
        assert verdict.costs is not None
        group, costs = verdict.survivors, verdict.costs
    return int(group[0, 0])
