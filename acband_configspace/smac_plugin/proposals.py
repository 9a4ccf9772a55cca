"""Proposals: where new configurations come from, beside uniform ones.

A quarter of the new configurations stays uniform, or half of them where losers are stopped: the
paper's N counts those, and no part of the space is given up. The others, if they are *learned*, are
chosen by a Gaussian process, by their expected improvement on the best. It chooses among small
changes of the best so far, as irace makes them (of a few parameters by larger steps, or of all of
them by smaller ones; the steps shrink from pass to pass, with races not for long; categories are
drawn anew), and among as many configurations from anywhere. It is fitted before each pass, to how
far configurations are behind the champion (in costs, as a multiple of what is usual on the
instance), by their ranks, so that neither outliers nor the scales of costs matter. It is also told
on how many instances each rank rests, and what is being tried at the moment. Conditions, forbidden
clauses, log scales, priors and orders of the space hold.

What was tried, with figures, and what was of no use: examples/TRIED.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cache, cached_property
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from ConfigSpace import Configuration, ConfigurationSpace
from ConfigSpace.hyperparameters import (
    BetaIntegerHyperparameter,
    CategoricalHyperparameter,
    Hyperparameter,
    IntegerHyperparameter,
    NormalIntegerHyperparameter,
    NumericalHyperparameter,
    OrdinalHyperparameter,
    UniformFloatHyperparameter,
    UniformIntegerHyperparameter,
)
from smac.main.config_selector import ConfigSelector
from smac.main.exceptions import ConfigurationSpaceExhaustedException
from threadpoolctl import ThreadpoolController

from acband_configspace.core.engine import KnownBest
from acband_configspace.core.rank_model import RankModel

#: The share of new configurations that stays uniform where some are learned, and where losers are
#: stopped: a race on one instance tells less than a cost, so less is built on it …
UNIFORM_SHARE = 0.25
UNIFORM_SHARE_OF_RACES = 0.5
#: … and where others propose.
UNIFORM_SHARE_OF_OTHERS = 0.5
#: A change of few parameters changes each with this probability, or so many on average, if that is
#: more; a change of all changes all numbers.
CHANGE_PROBABILITY = 0.25
CHANGES = 2.5
#: The standard deviation of a step in the first pass, as a share of the parameter's range, where
#: few parameters change, and where all do …
FIRST_STEP = 0.25
FIRST_STEP_OF_ALL = 0.15
#: … how it shrinks from pass to pass, and where that ends: with races early, since one race cannot
#: tell what is nearly the same from what is better, and who keeps up with the champion takes long.
STEP_DECAY = 0.9
LAST_STEP = 0.01
LAST_STEP_OF_RACES = 0.12
#: The best is taken as the parent with this probability, the second best with half of it, …
BEST_SHARE = 0.5
#: The model chooses among so many changes, and so many configurations from anywhere; it takes so
#: many results to have one, and at most so many are looked at.
N_CHANGES = 60
N_ANYWHERE = 60
LEAST_RESULTS = 8
MOST_RESULTS = 300
#: Of those that are being tried when the model is fitted it is told of so many, the newest, and of
#: so many in all: more take long.
MOST_UNDER_WAY = 50
MOST_BELIEVED = 100

Floats = npt.NDArray[np.float64]


class Proposals(Protocol):
    """Proposes new configurations; implement this method to write your own."""

    def propose(
        self, configurations: Sequence[Configuration], known: KnownBest
    ) -> Configuration | None:
        """Return the next configuration, in view of all those so far; None for a uniform one.

        ``known`` describes them by their numbers, which are their places in the sequence. The same
        arguments must give the same configuration: a resumed run asks again. It is asked for every
        second new configuration or, given an attribute ``uniform_share`` from 0 to 1, for all but
        that share.
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
    """Proposes changes of the best of a run; the same number, the same configuration."""

    def __init__(self, space: ConfigurationSpace, *, seed: int, racing: bool = False) -> None:
        self.uniform_share = UNIFORM_SHARE_OF_RACES if racing else UNIFORM_SHARE
        """How many of the new configurations are to be uniform."""
        self._last_step = LAST_STEP_OF_RACES if racing else LAST_STEP
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
        self._widths = np.array(list(map(_width, self._parameters)))
        self._model: RankModel | None = None
        self._fitted_to: KnownBest | None = None
        self._n_looked_at = 0
        self._default = dict(space.get_default_configuration())

    def propose(
        self, configurations: Sequence[Configuration], known: KnownBest
    ) -> Configuration | None:
        """Return what promises most of some changes of the best, None if the space allows none."""
        return next(self.candidates(configurations, known), None)

    def candidates(
        self, configurations: Sequence[Configuration], known: KnownBest
    ) -> Iterator[Configuration]:
        """Yield what the space allows of some changes of the best, what promises most first.

        One may have been drawn before: where values are few, a change may not change anything.
        """
        best = [number for number in known.best if number < len(configurations)]
        if not best or not self._free.any():
            return
        with _threads().limit(limits=1, user_api="blas"):
            vectors, parents = self._ranked(configurations, best, known)
        for vector, parent in zip(vectors, parents, strict=True):
            child = self._valid(vector)
            if child is not None:
                child.origin = self._origin(configurations, parent)
                yield child

    def _ranked(
        self,
        configurations: Sequence[Configuration],
        best: Sequence[int],
        known: KnownBest,
    ) -> tuple[Floats, list[int | None]]:
        """Return vectors, what promises most first, and the numbers of what they are changes of."""
        if self._fitted_to is not known:
            self._fitted_to, self._model = known, self._fit(configurations, known)
            self._n_looked_at = 0
        random = np.random.RandomState([self._seed, 5, len(configurations)])
        ranks = np.minimum(random.geometric(BEST_SHARE, N_CHANGES) - 1, len(best) - 1)
        parents = np.array([configurations[number].get_array() for number in best])[ranks]
        children = self._changed(parents, known.pass_number, random)
        changed = [best[rank] for rank in ranks]
        if self._model is None:
            return self._allowed(children), [*changed]
        children = self._allowed(np.vstack([children, self._anywhere(random)]))
        self._believe(self._model, configurations, known)
        order = np.argsort(-self._model.promise(self._places(children)), kind="stable")
        return children[order], [changed[n] if n < N_CHANGES else None for n in order]

    def _origin(self, configurations: Sequence[Configuration], parent: int | None) -> str:
        if parent is None:
            return "AC-Band: chosen by the model"
        is_default = dict(configurations[parent]) == self._default
        return f"AC-Band: near {'the default' if is_default else parent}"

    def _believe(
        self, model: RankModel, configurations: Sequence[Configuration], known: KnownBest
    ) -> None:
        """Let the model know of those of which nothing is known yet: they are being tried."""
        drawn = range(self._n_looked_at, len(configurations))
        unknown = [number for number in drawn if number not in known.behind]
        if not self._n_looked_at:  # most of them are of passes before this one
            unknown = unknown[-MOST_UNDER_WAY:]
        self._n_looked_at = len(configurations)
        for number in unknown[: MOST_BELIEVED - model.n_believed]:
            model.believe(self._places(configurations[number].get_array()[None])[0])

    def _anywhere(self, random: np.random.RandomState) -> Floats:
        drawn = [parameter.sample_vector(N_ANYWHERE, seed=random) for parameter in self._parameters]
        return np.column_stack(drawn)

    def _changed(self, parents: Floats, pass_number: int, random: np.random.RandomState) -> Floats:
        """Return a change of each of the parents, of few parameters or of all."""
        shape, shrunk = parents.shape, STEP_DECAY ** (pass_number - 1)
        of_all = random.rand(len(parents), 1) < 0.5
        first_step = np.where(of_all, FIRST_STEP_OF_ALL, FIRST_STEP)
        step = np.maximum(self._last_step, shrunk * first_step)
        chosen = (random.rand(*shape) < self._probability) & self._free
        one = random.choice(np.flatnonzero(self._free), len(parents))
        chosen[np.arange(len(parents)), one] |= ~chosen.any(axis=1)
        moves = random.normal(size=shape)
        ways = np.sign(moves)  # a prior may have no width, but its integers have neighbours
        moves = moves * step * self._lasts * self._widths
        least = np.where(chosen, self._least_moves(parents, ways), 0.0)
        moves = ways * np.maximum(np.abs(moves), least)
        moves = np.where(self._is_order, ways * np.ceil(np.abs(moves)), moves)
        # Orders stay as categories do: a step of theirs is never small.
        moved = parents + moves * (chosen | (of_all & self._free & ~self._is_order))
        moved = np.abs(moved)  # reflected at the bounds
        moved = np.where(moved > self._lasts, np.maximum(0.0, 2.0 * self._lasts - moved), moved)
        children = np.where(self._is_category, parents, moved)
        for index, parameter in enumerate(self._parameters):
            # Categories are drawn anew; what was inactive may become active now.
            anew = np.isnan(parents[:, index])
            if self._is_category[index]:
                anew |= chosen[:, index]
            if anew.any():
                drawn = _drawn_anew(parameter, len(parents), random)
                children[:, index] = np.where(anew, drawn, children[:, index])
        return children

    def _least_moves(self, parents: Floats, directions: Floats) -> Floats:
        """Return how far integers are from the next ones: a shorter step would leave them there.

        On a logarithmic scale small integers are far apart. Beyond a bound a step is reflected.
        """
        least = np.zeros(parents.shape)
        for index, parameter in enumerate(self._parameters):
            if isinstance(parameter, IntegerHyperparameter):
                places = np.nan_to_num(parents[:, index], nan=0.5)  # what is inactive is drawn anew
                values = parameter.to_value(places)
                steps = directions[:, index].astype(np.int64)
                is_beyond = (values + steps < parameter.lower) | (values + steps > parameter.upper)
                neighbours = values + np.where(is_beyond, -steps, steps)
                least[:, index] = np.abs(parameter.to_vector(neighbours) - places)
        return least

    def _allowed(self, vectors: Floats) -> Floats:
        """Return the nearest vectors that the space can have, without what is inactive."""
        rows = np.array(vectors.T)  # ConfigSpace has a row for each parameter here
        for row, parameter in zip(rows, self._parameters, strict=True):
            if isinstance(parameter, NumericalHyperparameter):  # integers have places of their own
                row[:] = parameter.to_vector(parameter.to_value(np.clip(row, 0.0, 1.0)))
        for row, parameter in zip(rows, self._parameters, strict=True):  # parents come first
            for condition in self._space.parent_conditions_of[parameter.name]:
                row[~condition.satisfied_by_vector_array(rows)] = np.nan
        return np.ascontiguousarray(rows.T)

    def _valid(self, vector: Floats) -> Configuration | None:
        """Return the configuration that a vector stands for, None if the space forbids it."""
        # A copy: a view would keep all candidates in memory for as long as this one is known.
        child = Configuration(self._space, vector=vector.copy())
        try:
            child.check_valid_configuration()
        except ValueError:  # forbidden, or what ConfigSpace's conditions contradict each other in
            return None
        return child

    def _fit(self, configurations: Sequence[Configuration], known: KnownBest) -> RankModel | None:
        """Return a model of how far configurations are behind, None if too few are known."""
        numbers = _looked_at(known, len(configurations))
        if len(numbers) < LEAST_RESULTS:
            return None
        vectors = np.array([configurations[number].get_array() for number in numbers])
        behind = np.array([known.behind[number] for number in numbers])
        n_common = np.array([float(known.n_common.get(number, 1)) for number in numbers])
        return RankModel(self._places(vectors), behind, self._place_parameters, n_common)

    @cached_property
    def _place_parameters(self) -> list[int]:
        """Which parameter each column of places belongs to: lengths are of parameters."""
        columns = list(range(int((~self._is_category & self._free).sum())))
        for number, index in enumerate(np.flatnonzero(self._is_category & self._free)):
            columns += [len(self._parameters) + number] * int(self._parameters[index].size)
        return [int(number) for number in np.unique(columns, return_inverse=True)[1]]

    def _places(self, vectors: Floats) -> Floats:
        """Return vectors as points whose distances mean something.

        Two categories are as far apart as two numbers at seven tenths of their range; what is
        inactive lies in the middle.
        """
        numbers = np.nan_to_num(vectors / self._lasts, nan=0.5)[:, ~self._is_category & self._free]
        parts = [numbers]
        for index in np.flatnonzero(self._is_category & self._free):
            size = int(self._parameters[index].size)
            parts.append(0.5 * (vectors[:, [index]] == np.arange(size)))
        return np.hstack(parts)


@cache
def _threads() -> ThreadpoolController:
    """Return what controls the threads of numpy's linear algebra.

    While racers have all the cores, several threads wait for each other: a proposal took 25 times
    as long with two. On an idle machine they save nothing.
    """
    return ThreadpoolController()


def _looked_at(known: KnownBest, n: int) -> list[int]:
    """Return whose results the model is fitted to, of the first n configurations.

    If there are many: of those that have met the champion more than once, or as often as anyone
    can, the best; of all others the newest, and some of all times. A model of nothing but the best
    would forget where the bad ones are, and look there again.
    """
    numbers = [number for number in known.behind if number < n]
    if len(numbers) <= MOST_RESULTS:
        return numbers
    enough = 1 if known.one_instance else 2
    proven = [number for number in numbers if known.n_common.get(number, 1) >= enough]
    proven = sorted(proven, key=known.behind.__getitem__)[: MOST_RESULTS // 2]
    others = sorted(set(numbers) - set(proven))
    n_newest = (MOST_RESULTS - len(proven)) // 2
    older = others[:-n_newest]
    some = np.linspace(0, len(older) - 1, MOST_RESULTS - len(proven) - n_newest).astype(int)
    return [*proven, *others[-n_newest:], *(older[place] for place in some)]


def _is_category(parameter: Hyperparameter[Any, Any]) -> bool:
    """Return whether values are drawn anew, and not stepped to: of two, none is between."""
    has_steps = isinstance(parameter, (OrdinalHyperparameter, IntegerHyperparameter))
    return isinstance(parameter, CategoricalHyperparameter) or (has_steps and parameter.size <= 2)


def _drawn_anew(
    parameter: Hyperparameter[Any, Any], n: int, random: np.random.RandomState
) -> Floats:
    """Return n values of a parameter; of two numbers either one, however rare a prior makes it."""
    with_prior = (NormalIntegerHyperparameter, BetaIntegerHyperparameter)
    if isinstance(parameter, with_prior) and parameter.size <= 2:
        both = parameter.to_vector(np.array([parameter.lower, parameter.upper]))
        return np.asarray(both[random.randint(2, size=n)])
    return parameter.sample_vector(n, seed=random)


def _width(parameter: Hyperparameter[Any, Any]) -> float:
    """Return how wide a number's prior is, compared with a uniform one: steps are as wide."""
    has_prior = isinstance(parameter, NumericalHyperparameter) and not isinstance(
        parameter, (UniformFloatHyperparameter, UniformIntegerHyperparameter)
    )
    if not has_prior or parameter.size <= 1:
        return 1.0
    drawn = parameter.sample_vector(1000, seed=np.random.RandomState(0))
    return min(1.0, float(np.std(drawn)) * math.sqrt(12.0))
