"""Proposals near what is good: small changes of the best configurations, as irace makes them.

Half of the new configurations stay uniform, so that the paper's N counts them, and no part of the
space is given up. The others are one of the best with some parameters changed: numbers by a
normal step on their own (perhaps logarithmic) scale that shrinks from pass to pass, categories
drawn anew. Conditions, forbidden clauses, log scales and orders of the space hold.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from ConfigSpace import Configuration, ConfigurationSpace
from ConfigSpace.exceptions import ForbiddenValueError, IllegalValueError
from ConfigSpace.hyperparameters import (
    CategoricalHyperparameter,
    Constant,
    Hyperparameter,
    OrdinalHyperparameter,
)
from ConfigSpace.util import deactivate_inactive_hyperparameters
from smac.main.config_selector import ConfigSelector
from smac.main.exceptions import ConfigurationSpaceExhaustedException

from acband_configspace.core.engine import KnownBest

#: Each parameter is changed with this probability, or as many on average, if that is more …
CHANGE_PROBABILITY = 0.25
CHANGES = 2.5
#: The standard deviation of a step in the first pass, as a share of the parameter's range …
FIRST_STEP = 0.25
#: … how it shrinks from pass to pass, and where that ends.
STEP_DECAY = 0.9
LAST_STEP = 0.02
#: The best is taken as the parent with this probability, the second best with half of it, …
BEST_SHARE = 0.5
#: So often a change that the space forbids is drawn anew.
MOST_TRIES = 30


class Proposals(Protocol):
    """What proposes new configurations; write your own by giving this method."""

    def propose(
        self, configurations: Sequence[Configuration], known: KnownBest
    ) -> Configuration | None:
        """Return the next configuration, in view of all those so far; None for a uniform one.

        ``known`` tells of them by their numbers, which are their places in the sequence. The same
        arguments must give the same configuration: a run that is resumed asks again.
        """


class FromSelector:
    """Takes configurations from SMAC's own selector: its initial design, then what its model and
    acquisition function choose.

    For stock facades, which have a model; the selector trains on SMAC's run history. What it says
    depends on all that was asked of it before, so such a run cannot be resumed by its journal, and
    :class:`ACBandFacade` refuses it.
    """

    def __init__(self, selector: ConfigSelector) -> None:
        self._selected = iter(selector)

    def propose(
        self, configurations: Sequence[Configuration], known: KnownBest
    ) -> Configuration | None:
        """Return what the selector chooses, None if it finds nothing new."""
        try:
            return next(self._selected, None)
        except ConfigurationSpaceExhaustedException:
            return None


class NearTheBest:
    """Draws configurations near the best of a run; the same number, the same configuration.

    Parameters
    ----------
    space : ConfigurationSpace
        What they are points of.
    seed : int
        Of all that is random here.
    """

    def __init__(self, space: ConfigurationSpace, *, seed: int) -> None:
        self._space = space
        self._seed = seed
        self._parameters = list(space.values())
        self._free: list[int] = [
            index for index, p in enumerate(self._parameters) if not isinstance(p, Constant)
        ]
        self._probability = max(CHANGE_PROBABILITY, CHANGES / max(1, len(self._free)))

    def propose(
        self, configurations: Sequence[Configuration], known: KnownBest
    ) -> Configuration | None:
        """Return a change of one of the best, None if the space allows none."""
        best = [configurations[number] for number in known.best if number < len(configurations)]
        if not best or not self._free:
            return None
        random = np.random.RandomState([self._seed, 5, len(configurations)])
        rank = min(int(random.geometric(BEST_SHARE)) - 1, len(best) - 1)
        parent = best[rank].get_array()
        step = max(LAST_STEP, FIRST_STEP * STEP_DECAY ** (known.pass_number - 1))
        for _ in range(MOST_TRIES):
            child = self._valid(self._changed(parent, step, random))
            if child is not None:
                child.origin = f"AC-Band: near {best[rank].config_id or 'the default'}"
                return child
        return None

    def _changed(
        self, parent: npt.NDArray[np.float64], step: float, random: np.random.RandomState
    ) -> npt.NDArray[np.float64]:
        vector = parent.copy()
        chosen = [index for index in self._free if random.rand() < self._probability]
        chosen = chosen or [self._free[random.randint(len(self._free))]]
        for index, parameter in enumerate(self._parameters):
            if np.isnan(vector[index]):  # it may become active now
                vector[index] = parameter.sample_vector(1, seed=random)[0]
            elif index in chosen:
                vector[index] = _moved(parameter, float(vector[index]), step, random)
        return vector

    def _valid(self, vector: npt.NDArray[np.float64]) -> Configuration | None:
        """Return the configuration that a vector stands for, None if the space forbids it."""
        try:
            if self._space.conditions:
                return deactivate_inactive_hyperparameters({}, self._space, vector=vector)
            child = Configuration(self._space, vector=vector)
            child.check_valid_configuration()
        except (ForbiddenValueError, IllegalValueError, ValueError):
            return None
        return child


def _moved(
    parameter: Hyperparameter[Any, Any], place: float, step: float, random: np.random.RandomState
) -> float:
    """Return another place of a parameter, near the old one if there is such a thing."""
    if isinstance(parameter, CategoricalHyperparameter):
        return float(parameter.sample_vector(1, seed=random)[0])
    if isinstance(parameter, OrdinalHyperparameter):
        last = int(parameter.size) - 1
        move = max(1, round(abs(random.normal(0.0, step)) * last)) * random.choice([-1, 1])
        return float(np.clip(place + move, 0, last))
    new = place + random.normal(0.0, step)
    new = -new if new < 0.0 else 2.0 - new if new > 1.0 else new  # reflected at the bounds
    # Integers have places of their own on the scale.
    value = parameter.to_value(np.clip(new, 0.0, 1.0))
    return float(parameter.to_vector(value))
