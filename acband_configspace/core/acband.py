"""AC-Band, the paper's pseudocode: Algorithm 3 on top of 1 (CSE) and 2 (ArmElimination).

====================  ==========================================================================
:func:`acband`        Algorithm 3: epochs, each a CSE of the winner so far and new configurations
:func:`eliminate`     Algorithm 1: combinatorial successive elimination, on rounds that
                      ``rounds.cse_rounds`` has laid out; :func:`cse` runs it by itself
:func:`judge`         Algorithm 2: who of a group survives
====================  ==========================================================================

Sans-I/O: generators that yield the groups of a round and are sent the verdicts. They have no
opinion on how a group is raced: ``paper_races`` asks for races one by one, the simulation looks
whole rounds up in a table, and both take the same decisions.

Theorem 1: with a budget of ``sufficient_budget`` times γ̄⁻¹ an ε-best configuration is returned with
probability at least min{1 - δ, 1 - ψ(1/R^E)}, R^E the rounds of the last epoch. It assumes that

- (A1) each configuration's statistic in a group converges as the group races on more instances;
- (A2) a share α of all configurations is ε-best: within ε of the best in every group;
- (A3) who is within ε of the best in M random groups is so in all of them, but for a probability of
  at most ψ(M), which falls as M grows.

Of a real problem nobody knows γ̄⁻¹ (how soon the statistic tells configurations apart), ε or ψ.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from acband_configspace.core.checks import whole_number
from acband_configspace.core.race_budget import Instances, RaceBudget
from acband_configspace.core.rounds import (
    RoundPlan,
    cse_rounds,
    playoff_rounds,
    playoff_trials,
    share_kept,
)
from acband_configspace.core.schedule import EpochPlan, Schedule
from acband_configspace.core.settings import SPENDINGS
from acband_configspace.core.statistics import Floats
from acband_configspace.core.stopping import Counts

Configurations = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Round:
    """The groups of one round, waiting to be raced."""

    epoch: int
    round: int
    plan: RoundPlan
    groups: Configurations
    """One row of configurations per group, in random order."""
    instances: Instances
    """The instances each group races on, a row per group."""
    costs_so_far: Floats | None = None
    """In a playoff, two rows: how often each contestant failed in earlier steps, and the sum of its
    other costs. None in a round of CSE."""

    @property
    def is_playoff(self) -> bool:
        """Whether the mean cost decides: all racers then run to their end, or the cutoff."""
        return self.costs_so_far is not None

    @property
    def decides_epoch(self) -> bool:
        """Whether one configuration is left of the epoch after this round."""
        one_left = self.plan.n_groups == self.plan.survivors == 1 and self.plan.carried == 0
        return one_left and not self.is_playoff


@dataclass(frozen=True)
class Verdict:
    """How a round ended."""

    survivors: Configurations
    """One row of surviving configurations per group, in the group's order.

    Not best first: the next random partition must depend on *who* survived only, and a group
    that is decided early does not know the order it would have ended in.
    """
    n_raced: Instances
    """How many races each group needed."""
    costs: Floats | None = None
    """In a playoff, the failures and costs of the survivors so far, as in ``costs_so_far``."""


Rounds = Generator[Round, Verdict, int]
"""Yields rounds, is sent their verdicts, returns the configuration that is left."""


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
        names = ", ".join(map(repr, SPENDINGS))
        raise ValueError(f"spend must be one of {names} but got {spend!r}")
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
    held = schedule.playoff_length(n_contestants, left.races_left, left.racers_left)
    # New configurations must be run for: what was planned for known results buys none.
    n_known = schedule.n_racers - schedule.n_trials
    return schedule.further_epoch(
        number,
        n_drawn=n_new,
        n_races=left.races_left - held,
        n_trials=left.racers_left - n_known - playoff_trials(n_contestants, held),
    )


def _play_off(
    schedule: Schedule, left: RaceBudget, contestants: Sequence[int], *, epoch: int
) -> Rounds:
    """Let the epoch winners meet on fresh instances, the better half going on to the next step."""
    length = schedule.playoff_length(len(contestants), left.races_left, left.racers_left)
    steps = playoff_rounds(len(contestants), length)
    instances = left.take(1, length, n_racers=sum(step.n_trials for step in steps))
    group = np.array([contestants], dtype=np.int64)
    costs: Floats = np.zeros((2, len(contestants)))
    for number, plan in enumerate(steps, start=1):
        own, instances = np.split(instances, [plan.races_per_group], axis=1)
        verdict = yield Round(epoch, number, plan, group, own, costs_so_far=costs)
        assert verdict.costs is not None
        group, costs = verdict.survivors, verdict.costs
    return int(group[0, 0])


def cse(
    configurations: Sequence[int],
    *,
    k: int,
    budget: int,
    rho: float,
    rng: np.random.Generator,
) -> Rounds:
    """Run CSE by itself (Algorithm 1) on any number of configurations.

    ``rho`` steers how many survive: 1 halves each group (CSH), log2(k) keeps its winner alone
    (CSWS), and 0 drops its worst alone (CSR).
    """
    share = share_kept(rho, k=k)
    budget = whole_number("budget", budget, at_least=0)
    if not len(configurations) or len(set(configurations)) != len(configurations):
        raise ValueError(
            f"configurations must be distinct and not empty but got {configurations!r}"
        )
    rounds = cse_rounds(len(configurations), k=k, budget=budget, share=share)
    if any(round_.races_per_group == 0 for round_ in rounds):
        least = len(rounds) * max(round_.n_groups for round_ in rounds)
        raise ValueError(f"budget must be at least {least} races but got {budget}")
    return eliminate(configurations, rounds, rng)


def eliminate(
    configurations: Sequence[int],
    rounds: Sequence[RoundPlan],
    rng: np.random.Generator,
    *,
    epoch: int = 1,
    left: RaceBudget | None = None,
) -> Rounds:
    """Play the rounds of Algorithm 1, whose two loops ``cse_rounds`` has laid out."""
    left = RaceBudget() if left is None else left
    active = np.asarray(configurations, dtype=np.int64)
    for number, plan in enumerate(rounds, start=1):
        shuffled = rng.permutation(active)  # line 3: a random partition
        carried = shuffled[plan.n_groups * plan.group_size :]  # lines 4 to 8
        groups = shuffled[: plan.n_groups * plan.group_size]
        round_ = Round(
            epoch=epoch,
            round=number,
            plan=plan,
            groups=groups.reshape(plan.n_groups, plan.group_size),
            instances=left.take(plan.n_groups, plan.races_per_group, n_racers=plan.n_trials),
        )
        verdict = yield round_  # lines 9 to 14
        left.give_back(round_.instances, verdict.n_raced, plan.group_size)
        active = np.concatenate([carried, verdict.survivors.ravel()])
    (winner,) = active.tolist()
    return int(winner)


def judge(round_: Round, scores: Floats | Counts, n_raced: Instances) -> Verdict:
    """ArmElimination, lines 3 and 4 of Algorithm 2: keep the best, ties in the group's order."""
    best = np.argsort(-scores, axis=-1, kind="stable")[..., : round_.plan.survivors]
    best.sort(axis=-1)
    return Verdict(np.take_along_axis(round_.groups, best, axis=-1), n_raced)


def judge_playoff(round_: Round, costs: Floats) -> Verdict:
    """Keep the contestants with the fewest failures, then the lowest mean cost, over all steps.

    ``costs`` are (1, races, racers), infinite where a racer failed and no cost is set for that. All
    have met on the same instances: sums rank as means do.
    """
    assert round_.costs_so_far is not None
    failed = np.isinf(costs[0])
    n_failed = round_.costs_so_far[0] + failed.sum(axis=0)
    sums = round_.costs_so_far[1] + costs[0].sum(axis=0, where=~failed, dtype=float)
    best = np.lexsort((sums, n_failed))[: round_.plan.survivors]  # it keeps the order of ties
    best.sort()
    totals = np.array([n_failed[best], sums[best]])
    return Verdict(round_.groups[:, best], np.array([costs.shape[1]]), totals)
