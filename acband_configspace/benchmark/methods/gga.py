"""GGA, the gender-based genetic algorithm (Ansótegui, Sellmann and Tierney, 2009)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from ConfigSpace import Configuration

from acband_configspace.benchmark.methods.space import Found, Runs, active, listed
from acband_configspace.benchmark.tables.surrogate import Surrogate

# The parameters of its experiments.
POPULATION, TOURNAMENT = 100, 8
N_GENERATIONS, MAX_AGE = 100, 3
#: How likely a value mutates; numbers by a normal step of a tenth of their range.
MUTATION = 0.1


@dataclass(frozen=True)
class GGA:
    """GGA as its paper describes it, with the parameters of its experiments.

    The competitive half of a population runs in tournaments of eight, side by side on the same
    instances: a tournament ends when its winner has solved them all. Winners mate with members of
    the other half at random. A child takes each value from either parent, then some mutate. Who
    is three generations old leaves. The number of instances grows evenly until, after three
    quarters of a hundred generations, it is all of them.

    It differs from the paper in one thing: there is no tree of variables that belong together
    (none is known for these spaces), so that each value is inherited on its own.
    """

    name: ClassVar[str] = "GGA"

    def run(self, surrogate: Surrogate, *, cpu_limit: float, seed: int) -> Found:
        """Breed until the CPU time is used up."""
        runs = Runs(surrogate, cpu_limit=cpu_limit, seed=seed)
        rng = np.random.default_rng([seed, 6])
        space = surrogate.space
        space.seed(seed)
        half = POPULATION // 2
        drawn = space.sample_configuration(2 * half)
        competitive = [space.get_default_configuration(), *drawn[1:half]]
        others = drawn[half:]
        # Born evenly over the last generations: each of them sees as many leave.
        ages = [np.arange(half) % MAX_AGE for _ in range(2)]
        best = competitive[0]
        for generation in range(N_GENERATIONS):
            share = min(1.0, (generation + 1) / (0.75 * N_GENERATIONS))
            instances = range(max(1, round(share * runs.n_instances)))
            winners = _winners(competitive, instances, runs, rng)
            if runs.is_over:
                break
            best = winners[0]
            for gender, members in enumerate((competitive, others)):
                ages[gender] += 1
                for place in np.flatnonzero(ages[gender] >= MAX_AGE):
                    mother = winners[rng.integers(len(winners))]
                    father = others[rng.integers(half)]
                    members[place] = _child(mother, father, surrogate, rng)
                    ages[gender][place] = 0
        return runs.found(best)


def _winners(
    members: list[Configuration], instances: range, runs: Runs, rng: np.random.Generator
) -> list[Configuration]:
    """Return the winners of all tournaments that came to an end in time, the fastest first."""
    order = rng.permutation(len(members))
    winners: list[tuple[float, int]] = []
    for start in range(0, len(order), TOURNAMENT):
        totals = {
            int(i): float(sum(runs.surrogate.runtimes(members[i])[runs.columns(instances)]))
            for i in order[start : start + TOURNAMENT]
        }
        winner = min(totals, key=lambda i: totals[i])
        for i in totals:  # all stop when the first has solved them all
            left = totals[winner]
            for instance in instances:
                if left > 0:
                    left -= runs.run(members[i], instance, limit=left)[0]
        if runs.is_over:
            break
        winners.append((totals[winner], winner))
    return [members[i] for _, i in sorted(winners)]


def _child(
    mother: Configuration, father: Configuration, surrogate: Surrogate, rng: np.random.Generator
) -> Configuration:
    """Return one that takes each value from either parent, or one that has mutated."""
    values: dict[str, Any] = {}
    for name, parameter in surrogate.space.items():
        parents = [parent[name] for parent in (mother, father) if name in parent]
        value = parents[rng.integers(len(parents))] if parents else parameter.default_value
        if rng.random() < MUTATION:
            value = _mutated(parameter, value, rng)
        values[name] = value
    return active(surrogate, values)


def _mutated(parameter: Any, value: Any, rng: np.random.Generator) -> Any:
    if (values := listed(parameter)) is not None:
        return values[int(rng.integers(len(values)))]
    place = np.clip(parameter.to_vector(value) + rng.normal(0.0, 0.1), 0.0, 1.0)
    return parameter.to_value(place)
