"""Proposals: where new configurations come from, beside uniform ones.

Half of the new configurations stay uniform, so that the paper's N counts them, and no part of the
space is given up. The others, if they are *learned*, are small changes of the best so far, as irace
makes them: of a few parameters by larger steps, or of all of them by smaller ones; the steps shrink
from pass to pass, categories are drawn anew. Of two dozen such changes the one is taken that a
Gaussian process expects most of. It is fitted before each pass, to how far configurations are
behind the champion, by their ranks, so that neither outliers nor the scale of costs matter.
Conditions, forbidden clauses, log scales, priors and orders of the space hold.

Measured through the engine on made-up functions of 5 to 10 numbers, most with 30 instances, some
with noise; regret to the best of 3,000 random configurations, the median having 1, after 100 and
300 trials. Only the last is left:

    uniform                                                  .29   .17
    changes of few parameters, no model                      .18  -.04
    truncated normal steps around survivors (irace)          .20  -.02
    density ratio of survivors and dropped (BOHB)            .26   .08
    … choosing among 8 changes                               .23   .01
    mean rank of neighbours, choosing among 8 changes        .16   .04
    random forest of ranks, choosing among 8 changes         .17  -.04
    Gaussian process, choosing among 24 changes of few       .16  -.09
    … of all                                                 .12  -.10
    … of either kind                                         .10  -.10

Of no use beyond chance: 64 changes to choose from, and larger steps. On six other functions, with
20 seeds, after 100, 300 and 1,000 trials: .16, .03 and -.08; without the model .20, .06 and -.04;
uniform .26, .18 and .10.
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
from acband_configspace.core.rank_model import RankModel

#: A change of few parameters changes each with this probability, or so many on average, if that is
#: more; a change of all changes all numbers.
CHANGE_PROBABILITY = 0.25
CHANGES = 2.5
#: The standard deviation of a step in the first pass, as a share of the parameter's range, where
#: few parameters change, and where all do …
FIRST_STEP = 0.25
FIRST_STEP_OF_ALL = 0.15
#: … how it shrinks from pass to pass, and where that ends.
STEP_DECAY = 0.9
LAST_STEP = 0.02
#: The best is taken as the parent with this probability, the second best with half of it, …
BEST_SHARE = 0.5
#: The model chooses among so many changes; it takes so many results to have one, and at most so
#: many, the best, are looked at.
N_CHANGES = 24
LEAST_RESULTS = 8
MOST_RESULTS = 150

Floats = npt.NDArray[np.float64]


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
    """Takes configurations from SMAC's own selector, so that its model has a say.

    For stock facades, which have a model: the initial design comes first, then what the acquisition
    function chooses, given SMAC's run history. What the selector says depends on all that was asked
    of it before, so such a run cannot be resumed, and :class:`ACBandFacade` refuses it.
    """

    def __init__(self, selector: ConfigSelector) -> None:
        self.selector = selector
        self._selected = iter(selector)
        self._n_given = 0
        self.chosen: list[Configuration] = []
        """All that the selector has chosen so far."""

    def rewind(self) -> None:
        """Begin again with what the selector has chosen so far: a run may begin twice."""
        self._n_given = 0

    def propose(
        self, configurations: Sequence[Configuration], known: KnownBest
    ) -> Configuration | None:
        """Return what the selector chooses, None if it finds nothing new."""
        if self._n_given == len(self.chosen):
            try:
                self.chosen.append(next(self._selected))
            except (StopIteration, ConfigurationSpaceExhaustedException):
                return None
        self._n_given += 1
        return self.chosen[self._n_given - 1]


class Learned:
    """Proposes changes of the best of a run; the same number, the same configuration.

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
        self._free = np.array([p.size > 1 for p in self._parameters], dtype=bool)
        self._probability = max(CHANGE_PROBABILITY, CHANGES / max(1, int(self._free.sum())))
        # Vectors have the places of numbers in [0, 1], but of categories and orders the index.
        self._is_category = np.array(list(map(_is_category, self._parameters)), dtype=bool)
        self._is_order = ~self._is_category & np.array(
            [isinstance(p, OrdinalHyperparameter) for p in self._parameters], dtype=bool
        )
        sizes = np.array([float(p.size) for p in self._parameters])
        self._lasts = np.where(self._is_order, sizes - 1.0, 1.0)
        self._model: RankModel | None = None
        self._fitted_to: KnownBest | None = None

    def propose(
        self, configurations: Sequence[Configuration], known: KnownBest
    ) -> Configuration | None:
        """Return a change of one of the best, None if the space allows none."""
        best = [configurations[number] for number in known.best if number < len(configurations)]
        if not best or not self._free.any():
            return None
        if self._fitted_to is not known:
            self._fitted_to, self._model = known, self._fit(configurations, known)
        random = np.random.RandomState([self._seed, 5, len(configurations)])
        ranks = np.minimum(random.geometric(BEST_SHARE, N_CHANGES) - 1, len(best) - 1)
        parents = np.array([configuration.get_array() for configuration in best])[ranks]
        children = self._changed(parents, known.pass_number, random)
        order: Sequence[int] = range(N_CHANGES)
        if self._model is not None:
            order = np.argsort(self._model.expected(self._places(children)), kind="stable").tolist()
        for index in order:
            child = self._valid(children[index])
            if child is not None:
                parent = best[ranks[index]]
                child.origin = f"AC-Band: near {parent.config_id or 'the default'}"
                return child
        return None

    def _changed(self, parents: Floats, pass_number: int, random: np.random.RandomState) -> Floats:
        """Return a change of each of the parents, of few parameters or of all."""
        shape, shrunk = parents.shape, STEP_DECAY ** (pass_number - 1)
        of_all = random.rand(len(parents), 1) < 0.5
        step = np.maximum(LAST_STEP, shrunk * np.where(of_all, FIRST_STEP_OF_ALL, FIRST_STEP))
        chosen = (random.rand(*shape) < self._probability) & self._free
        one = random.choice(np.flatnonzero(self._free), len(parents))
        chosen[np.arange(len(parents)), one] |= ~chosen.any(axis=1)
        moves = random.normal(size=shape) * step * self._lasts
        moves = np.where(self._is_order, np.sign(moves) * np.ceil(np.abs(moves)), moves)
        moved = parents + moves * (chosen | (of_all & self._free))
        moved = np.abs(moved)  # reflected at the bounds
        moved = np.where(moved > self._lasts, np.maximum(0.0, 2.0 * self._lasts - moved), moved)
        children = np.where(self._is_category, parents, moved)
        for index, parameter in enumerate(self._parameters):
            # Categories are drawn anew; what was inactive may become active now.
            anew = np.isnan(parents[:, index])
            if self._is_category[index]:
                anew |= chosen[:, index]
            if anew.any():
                drawn = parameter.sample_vector(len(parents), seed=random)
                children[:, index] = np.where(anew, drawn, children[:, index])
        return children

    def _valid(self, vector: Floats) -> Configuration | None:
        """Return the configuration that a vector stands for, None if the space forbids it."""
        pairs = zip(self._parameters, vector, strict=True)
        vector = np.array([_legal(parameter, float(place)) for parameter, place in pairs])
        try:
            if self._space.conditions:
                return deactivate_inactive_hyperparameters({}, self._space, vector=vector)
            child = Configuration(self._space, vector=vector)
            child.check_valid_configuration()
        except (ForbiddenValueError, IllegalValueError, ValueError):
            return None
        return child

    def _fit(self, configurations: Sequence[Configuration], known: KnownBest) -> RankModel | None:
        """Return a model of how far configurations are behind, None if too few are known."""
        numbers = sorted(
            (number for number in known.behind if number < len(configurations)),
            key=known.behind.__getitem__,
        )[:MOST_RESULTS]
        if len(numbers) < LEAST_RESULTS:
            return None
        vectors = np.array([configurations[number].get_array() for number in numbers])
        return RankModel(self._places(vectors))

    def _places(self, vectors: Floats) -> Floats:
        """Return vectors as points whose distances mean something.

        Two categories are as far apart as two numbers at seven tenths of their range; what is
        inactive lies in the middle.
        """
        numbers = np.nan_to_num(vectors / self._lasts, nan=0.5)[:, ~self._is_category]
        parts = [numbers]
        for index in np.flatnonzero(self._is_category & self._free):
            size = int(self._parameters[index].size)
            parts.append(0.5 * (vectors[:, [index]] == np.arange(size)))
        return np.hstack(parts)


def _is_category(parameter: Hyperparameter[Any, Any]) -> bool:
    """Return whether values are drawn anew, and not stepped to: of two, none is between."""
    ordinal = isinstance(parameter, OrdinalHyperparameter)
    return isinstance(parameter, CategoricalHyperparameter) or (ordinal and parameter.size <= 2)


def _legal(parameter: Hyperparameter[Any, Any], place: float) -> float:
    """Return the nearest place that a parameter can have: integers have places of their own."""
    if isinstance(parameter, (CategoricalHyperparameter, OrdinalHyperparameter, Constant)):
        return place
    return float(parameter.to_vector(parameter.to_value(min(1.0, max(0.0, place)))))
