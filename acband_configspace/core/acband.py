"""AC-Band: the paper's Algorithm 3, and what may follow it. Sans-I/O, like ``elimination``."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from acband_configspace.core.elimination import Round, Rounds, eliminate
from acband_configspace.core.race_budget import RaceBudget
from acband_configspace.core.rounds import playoff_rounds, playoff_trials
from acband_configspace.core.schedule import EpochPlan, Schedule
from acband_configspace.core.statistics import Floats

SPENDINGS = ("nothing", "configurations")


def acband(
    schedule: Schedule,
    rng: np.random.Generator,
    *,
    given: Sequence[int] = (0,),
    first_new: int = 1,
    first_instance: int = 0,
    spend: str = "nothing",
) -> Rounds:
    """Play all epochs of a schedule and return the number of the winning configuration.

    The configurations given (θ_0, line 1) and the new ones, counted from ``first_new`` epoch by
    epoch, are numbers; so are the instances, from ``first_instance``. Whoever runs the races
    draws the next configuration, or instance, when a new number turns up.

    With ``spend="configurations"`` races that early decisions saved go to further epochs with new
    configurations. If the schedule has a playoff, it comes last.
    """
    if len(given) != schedule.supply.n_given:
        raise ValueError(f"given must be {schedule.supply.n_given} configurations but got {given}")
    if spend not in SPENDINGS:
        raise ValueError(f"spend must be one of {', '.join(map(repr, SPENDINGS))}, got {spend!r}")
    left = RaceBudget(schedule, first_instance=first_instance)
    return _acband(schedule, rng, list(given), first_new, left, spend)


def _acband(
    schedule: Schedule,
    rng: np.random.Generator,
    entering: list[int],
    first_new: int,
    left: RaceBudget,
    spend: str,
) -> Rounds:
    winners = entering[:1]  # line 1: θ_0
    n_new = 0

    def play(epoch: EpochPlan) -> Rounds:
        nonlocal n_new, entering
        first = first_new + n_new
        new = range(first, first + epoch.n_configs - len(entering))  # line 4
        n_new += len(new)
        winner = yield from eliminate(  # lines 5 and 6
            [*entering, *new], epoch.rounds, rng, epoch=epoch.index, left=left
        )
        entering = [winner]
        winners.append(winner)
        return winner

    for epoch in schedule.epochs:  # line 2
        yield from play(epoch)
    left.open()
    number = len(schedule.epochs) + 1
    while spend == "configurations":
        further = _further_epoch(schedule, left, number, n_new, len(set(winners)) + 1)
        if further is None:
            break
        yield from play(further)
        number += 1
    contestants = list(dict.fromkeys(reversed(winners)))  # the last winner first: it wins ties
    return (yield from _play_off(schedule, left, contestants, epoch=number))


def _further_epoch(
    schedule: Schedule, left: RaceBudget, number: int, n_new: int, n_contestants: int
) -> EpochPlan | None:
    """Plan another epoch with what is left, the playoff held back."""
    held = schedule.playoff_length(n_contestants, left.races_left, left.trials_left)
    return schedule.further_epoch(
        number,
        n_drawn=n_new,
        n_races=left.races_left - held,
        n_trials=left.trials_left - playoff_trials(n_contestants, held),
    )


def _play_off(
    schedule: Schedule, left: RaceBudget, contestants: Sequence[int], *, epoch: int
) -> Rounds:
    """Let the epoch winners meet on fresh instances, the better half going on to the next step."""
    length = schedule.playoff_length(len(contestants), left.races_left, left.trials_left)
    steps = playoff_rounds(len(contestants), length)
    instances = left.take(1, length, n_trials=sum(step.n_trials for step in steps))
    group = np.array([contestants], dtype=np.int64)
    costs: Floats = np.zeros(len(contestants))
    for number, plan in enumerate(steps, start=1):
        own, instances = np.split(instances, [plan.races_per_group], axis=1)
        verdict = yield Round(epoch, number, plan, group, own, costs_so_far=costs)
        assert verdict.costs is not None
        group, costs = verdict.survivors, verdict.costs
    return int(group[0, 0])
