"""AC-Band: the paper's Algorithm 3, and what may follow it. Sans-I/O, like ``elimination``."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from acband_configspace.core.elimination import Contest, Contests, eliminate
from acband_configspace.core.reserve import Reserve
from acband_configspace.core.rounds import playoff_rounds, playoff_trials
from acband_configspace.core.schedule import Epoch, Schedule
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
) -> Contests:
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
    reserve = Reserve(schedule, first_instance=first_instance)
    return _acband(schedule, rng, list(given), first_new, reserve, spend)


def _acband(
    schedule: Schedule,
    rng: np.random.Generator,
    entering: list[int],
    first_new: int,
    reserve: Reserve,
    spend: str,
) -> Contests:
    winners = entering[:1]  # line 1: θ_0
    n_new = 0

    def play(epoch: Epoch) -> Contests:
        nonlocal n_new, entering
        first = first_new + n_new
        new = range(first, first + epoch.n_configs - len(entering))  # line 4
        n_new += len(new)
        winner = yield from eliminate(  # lines 5 and 6
            [*entering, *new], epoch.rounds, rng, epoch=epoch.index, reserve=reserve
        )
        entering = [winner]
        winners.append(winner)
        return winner

    for epoch in schedule.epochs:  # line 2
        yield from play(epoch)
    reserve.open()
    number = len(schedule.epochs) + 1
    while spend == "configurations":
        further = _further_epoch(schedule, reserve, number, n_new, len(set(winners)) + 1)
        if further is None:
            break
        yield from play(further)
        number += 1
    contestants = list(dict.fromkeys(reversed(winners)))  # the last winner first: it wins ties
    return (yield from _play_off(schedule, reserve, contestants, epoch=number))


def _further_epoch(
    schedule: Schedule, reserve: Reserve, number: int, n_new: int, n_contestants: int
) -> Epoch | None:
    """Plan another epoch with what is left, the playoff held back."""
    held = schedule.playoff_length(n_contestants, reserve.races_left, reserve.trials_left)
    return schedule.further_epoch(
        number,
        n_drawn=n_new,
        n_races=reserve.races_left - held,
        n_trials=reserve.trials_left - playoff_trials(n_contestants, held),
    )


def _play_off(
    schedule: Schedule, reserve: Reserve, contestants: Sequence[int], *, epoch: int
) -> Contests:
    """Let the epoch winners meet on fresh instances, the better half going on to the next step."""
    length = schedule.playoff_length(len(contestants), reserve.races_left, reserve.trials_left)
    steps = playoff_rounds(len(contestants), length)
    instances = reserve.take(1, length, n_trials=sum(step.n_trials for step in steps))
    group = np.array([contestants], dtype=np.int64)
    costs: Floats = np.zeros(len(contestants))
    for number, plan in enumerate(steps, start=1):
        own, instances = np.split(instances, [plan.races_per_group], axis=1)
        verdict = yield Contest(epoch, number, plan, group, own, costs_so_far=costs)
        assert verdict.costs is not None
        group, costs = verdict.survivors, verdict.costs
    return int(group[0, 0])
