"""CSE, combinatorial successive elimination: the paper's Algorithms 1 and 2.

Sans-I/O: a generator that yields the groups of a round and is sent their survivors. It has no
opinion on how a group is raced; ``streaming`` asks for races one by one, ``benchmark.simulate``
looks whole rounds up in a table, and both take the same decisions.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from acband_configspace.checks import whole_number
from acband_configspace.schedule import Round, cse_rounds, share_kept

Configurations = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Contest:
    """The groups of one round, waiting to be raced."""

    epoch: int
    round: int
    plan: Round
    groups: Configurations
    """One row of configurations per group, in random order."""
    first_instance: int
    """Group j races on the instances from first_instance + j · races_per_group."""

    @property
    def decides_epoch(self) -> bool:
        """Whether one configuration is left after this round."""
        return self.plan.n_groups == self.plan.survivors == 1 and self.plan.carried == 0

    def instances(self) -> npt.NDArray[np.int64]:
        """Return the instances of each group, a row per group."""
        shape = (self.plan.n_groups, self.plan.races_per_group)
        return self.first_instance + np.arange(self.plan.n_races, dtype=np.int64).reshape(shape)


Survivors = Configurations
"""One row of surviving configurations per group, best first."""

Contests = Generator[Contest, Survivors, int]
"""Yields contests, is sent their survivors, returns the configuration that is left."""


def cse(
    configurations: Sequence[int],
    *,
    k: int,
    budget: int,
    rho: float,
    rng: np.random.Generator,
) -> Contests:
    """Run CSE by itself (Algorithm 1) on any number of configurations.

    ``rho`` steers how many survive: 1 halves each group (CSH), log2(k) keeps its winner alone
    (CSWS), and 0 drops its worst alone (CSR).
    """
    share = share_kept(rho, k=k)
    budget = whole_number("budget", budget, at_least=0)
    if not len(configurations) or len(set(configurations)) != len(configurations):
        raise ValueError(f"configurations must be distinct, at least one, got {configurations!r}")
    rounds = cse_rounds(len(configurations), k=k, budget=budget, share=share)
    if any(round_.races_per_group == 0 for round_ in rounds):
        least = len(rounds) * max(round_.n_groups for round_ in rounds)
        raise ValueError(f"budget must be at least {least} races but got {budget}")
    return eliminate(configurations, rounds, rng)


def eliminate(
    configurations: Sequence[int],
    rounds: Sequence[Round],
    rng: np.random.Generator,
    *,
    epoch: int = 1,
    first_instance: int = 0,
) -> Contests:
    """Play the rounds of Algorithm 1, whose two loops ``cse_rounds`` has laid out."""
    active = np.asarray(configurations, dtype=np.int64)
    for number, plan in enumerate(rounds, start=1):
        shuffled = rng.permutation(active)  # line 3: a random partition
        carried = shuffled[plan.n_groups * plan.group_size :]  # lines 4 to 8
        groups = shuffled[: plan.n_groups * plan.group_size]
        contest = Contest(
            epoch=epoch,
            round=number,
            plan=plan,
            groups=groups.reshape(plan.n_groups, plan.group_size),
            first_instance=first_instance,
        )
        survivors = yield contest  # lines 9 to 14
        active = np.concatenate([carried, survivors.ravel()])
        first_instance += plan.n_races
    (winner,) = active.tolist()
    return int(winner)


def best_of(
    groups: Configurations, scores: npt.NDArray[np.floating], n_survivors: int
) -> Survivors:
    """ArmElimination, lines 3 and 4 of Algorithm 2: keep the best, ties in the group's order."""
    order = np.argsort(-scores, axis=-1, kind="stable")[..., :n_survivors]
    return np.take_along_axis(groups, order, axis=-1)
