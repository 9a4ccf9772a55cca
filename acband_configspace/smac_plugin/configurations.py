"""Draws configurations: the numbers of the core stand for points of a ConfigSpace."""

from __future__ import annotations

import json
import math
from collections import deque
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from ConfigSpace import Configuration, ConfigurationSpace
from ConfigSpace.hyperparameters import (
    FloatHyperparameter,
    Hyperparameter,
    IntegerHyperparameter,
    NumericalHyperparameter,
)
from ConfigSpace.hyperparameters.hp_components import ROUND_PLACES

from acband_configspace.core.checks import real_number
from acband_configspace.core.engine import KnownBest
from acband_configspace.smac_plugin.proposals import (
    UNIFORM_SHARE_OF_OTHERS,
    FromSelector,
    Learned,
    Proposals,
)

#: ConfigSpace samples in batches much faster than one by one. The size is part of the sequence
#: that a seed stands for: changing it changes what is drawn.
BATCH = 64
#: By so much a number's place may lie beyond 0 and 1.
ROUNDING = 1e-9


class Configurations:
    """The configurations of a run: those given first, then random ones, none twice.

    Configuration number i is ``configurations[i]``. They are drawn uniformly as ConfigSpace
    understands it: conditions, forbidden clauses and priors hold.
    """

    def __init__(
        self,
        space: ConfigurationSpace,
        given: Sequence[Configuration],
        *,
        seed: int,
        proposals: Proposals | None = None,
    ) -> None:
        self._space = space
        self._random = np.random.RandomState(seed)
        self._drawn: list[Configuration] = []
        self._numbers: dict[Hashable, int] = {}
        self._exhausted = False
        sizes = [parameter.size for parameter in space.values()]
        self._most = math.prod(sizes) if all(map(math.isfinite, sizes)) else math.inf
        self._sampled: deque[tuple[Configuration, Hashable]] = deque()
        self._proposals = proposals
        share = getattr(proposals, "uniform_share", UNIFORM_SHARE_OF_OTHERS)
        self._uniform_share = real_number("uniform_share of proposals", share)
        if not 0.0 <= share <= 1.0:
            raise ValueError(f"uniform_share of proposals must be from 0 to 1 but got {share!r}")
        for one in given:
            own = in_space(space, one, what="additional_configs")
            self._add(own, name_of_values(own), origin="AC-Band: given")
        self.n_given = max(1, len(self))
        """How many were given, none of them counted twice; one, θ_0, if that is random."""

    def __len__(self) -> int:
        """Return how many are known so far."""
        return len(self._drawn)

    def __getitem__(self, number: int) -> Configuration:
        if number >= len(self._drawn) and self.draw(number + 1) <= number:
            raise IndexError(f"the space has only {len(self)} configurations but got {number}")
        return self._drawn[number]

    def number_of(self, configuration: Configuration) -> int | None:
        """Return the number of a configuration; None if it has not been drawn."""
        return self._numbers.get(name_of_values(configuration))

    def has(self, number: int, values: Mapping[str, Any]) -> bool:
        """Return whether a configuration has these values, in the order of the space."""
        return self._numbers.get(name_of_values(values)) == number

    def adopt(self, number: int, other: Configuration) -> bool:
        """Let a drawn number stand for another configuration, unless that was given.

        Where that has a number already, the two change places.
        """
        name = name_of_values(other)
        taken = self._numbers.get(name)
        if min(number, number if taken is None else taken) < self.n_given:
            return False
        before = self._drawn[number]
        if taken is not None:
            other, self._drawn[taken] = self._drawn[taken], before
            self._numbers[name_of_values(before)] = taken
        else:
            other.origin = before.origin
            del self._numbers[name_of_values(before)]
        self._drawn[number] = other
        self._numbers[name] = number
        return True

    def draw(self, n: int, known: Callable[[], KnownBest] | None = None) -> int:
        """Draw until n are known, or the space is used up; return how many are known.

        With proposals, all new ones but a fixed share are proposed in view of who is known to be
        good; before anything raced, of those given.
        """
        if self._proposals is not None:
            told = None if known is None else known()
            while len(self) < n and self._draw_one(told or self._given_ones()):
                pass
            return len(self)
        # A finite space takes ever longer to give something new. One of m equally likely
        # configurations stays unseen in 20 m draws with a probability of e^-20.
        n_repeats = 0
        while len(self) < n and not self._exhausted:
            for configuration, name in self._batch():
                n_repeats = 0 if self._add(configuration, name) else n_repeats + 1
            self._exhausted = n_repeats > max(1000, 20 * len(self))
        return len(self)

    def _given_ones(self) -> KnownBest:
        """Return those given, as far as they are drawn: a random θ_0 is not, at first."""
        return KnownBest(1, tuple(range(min(self.n_given, len(self)))))

    def _draw_one(self, known: KnownBest) -> bool:
        """Add one, proposed or uniform; return whether there was one left to add.

        Uniform ones may come to an end first: of what a prior makes very rare none may be drawn.
        """
        n, share = len(self), self._uniform_share
        if n >= self._most:
            return False
        if math.floor(n * share) > math.floor((n - 1) * share):
            return self._add_uniform() or self._add_proposed(known)
        return self._add_proposed(known) or self._add_uniform()

    def _add_uniform(self) -> bool:
        n_repeats = 0
        while not self._exhausted:
            if not self._sampled:
                self._sampled.extend(self._batch())
            if self._add(*self._sampled.popleft()):
                return True
            n_repeats += 1
            self._exhausted = n_repeats > max(1000, 20 * len(self))
        return False

    def _add_proposed(self, known: KnownBest) -> bool:
        assert self._proposals is not None
        if isinstance(self._proposals, Learned):
            candidates = self._proposals.candidates(self._drawn, known)
            return any(self._add(child, name_of_values(child)) for child in candidates)
        proposed = self._proposals.propose(self._drawn, known)
        if proposed is None:
            return False
        if not isinstance(proposed, Configuration):
            raise TypeError(f"proposals must propose a Configuration but got {proposed!r}")
        proposed = in_space(self._space, proposed, what="proposals")
        if not isinstance(self._proposals, FromSelector):  # ConfigSpace's own
            _check_allowed(proposed)
        return self._add(proposed, name_of_values(proposed), origin="AC-Band: proposed")

    def _batch(self) -> list[tuple[Configuration, Hashable]]:
        """Return some more random configurations, each with its name."""
        # Our own random stream: what else samples from the user's space must not change ours.
        theirs, self._space.random = self._space.random, self._random
        try:
            sampled = self._space.sample_configuration(BATCH)
        finally:
            self._space.random = theirs
        for one in sampled:  # a view of all that was sampled to find these would keep it in memory
            one._vector = one._vector.copy()
        values = compute_values(self._space, sampled)
        return list(zip(sampled, map(name_of_values, values), strict=True))

    def _add(
        self,
        configuration: Configuration,
        name: Hashable,
        *,
        origin: str = "AC-Band: uniform random",
    ) -> bool:
        if name in self._numbers:
            return False
        if configuration.origin is None:
            configuration.origin = origin
        self._numbers[name] = len(self._drawn)
        self._drawn.append(configuration)
        return True


def _check_allowed(proposed: Configuration) -> None:
    """Raise an error unless the space allows it: one made from a vector is not checked by anyone.

    It would be raced, and fail where it is made again from its values, long after that.
    """
    vector = proposed.get_array().tolist()
    try:
        for parameter, place in zip(proposed.config_space.values(), vector, strict=True):
            is_number = isinstance(parameter, NumericalHyperparameter) and not math.isnan(place)
            if is_number and not -ROUNDING <= place <= 1.0 + ROUNDING:  # it would be clipped
                raise ValueError(f"{place} is beyond the bounds of {parameter.name}")
        Configuration(proposed.config_space, values=dict(proposed))
    except (ValueError, LookupError) as error:
        raise ValueError(
            f"proposals must propose what the space allows but got the vector {vector}: {error}"
        ) from error


def in_space(
    space: ConfigurationSpace, configuration: Configuration, *, what: str
) -> Configuration:
    """Return a user's configuration as one of this very space: a copy of it may not be equal."""
    if configuration.config_space is space:
        return configuration
    try:
        return Configuration(space, values=dict(configuration), origin=configuration.origin)
    except (ValueError, KeyError) as error:
        raise ValueError(
            f"{what} must be of the scenario's space but got {configuration}: {error}"
        ) from error


def from_json(
    space: ConfigurationSpace, values: Mapping[str, Any], *, origin: str | None = None
) -> Configuration:
    """Return the configuration with these values, in which a file has lists in place of tuples."""
    own = {
        name: _choice(space[name], value) if isinstance(value, list) and name in space else value
        for name, value in values.items()
    }
    return Configuration(space, values=own, origin=origin)


def _choice(parameter: Hyperparameter[Any, Any], value: list[Any]) -> Any:
    choices = getattr(parameter, "choices", ()) or getattr(parameter, "sequence", ())
    text = json.dumps(value)
    return next((c for c in choices if isinstance(c, tuple) and json.dumps(c) == text), value)


def compute_values(
    space: ConfigurationSpace, configurations: Sequence[Configuration]
) -> list[dict[str, Any]]:
    """Let configurations know their values, and return these.

    Each would compute its own, the same ones, when it is asked for them; together it takes a tenth
    of the time, and all are asked anyway, to see whether they were drawn before.
    """
    vectors = np.array([configuration.get_array() for configuration in configurations])
    values: list[dict[str, Any]] = [{} for _ in configurations]
    for (name, parameter), column in zip(space.items(), vectors.T, strict=True):
        active = np.flatnonzero(~np.isnan(column))
        for number, value in zip(active, _values_of(parameter, column[active]), strict=True):
            values[number][name] = value
    for configuration, own in zip(configurations, values, strict=True):
        configuration._values = own
    return values


def _values_of(parameter: Hyperparameter[Any, Any], vector: npt.NDArray[np.float64]) -> list[Any]:
    if isinstance(parameter, FloatHyperparameter):
        return list(np.round(parameter.to_value(vector), ROUND_PLACES).tolist())
    if isinstance(parameter, IntegerHyperparameter):
        return list(parameter.to_value(vector).tolist())
    choices = {place: parameter.to_value(place) for place in np.unique(vector)}
    return [choices[place] for place in vector]


def name_of_values(configuration: Mapping[str, Any]) -> Hashable:
    """Return what tells configurations apart: equal for copies, and from process to process."""
    # By values, since a vector that is computed from values differs in the last digits from the
    # one that was drawn; and not by hash, which is that of a text and takes long.
    values = tuple(configuration.items())
    try:
        hash(values)
    except TypeError:  # a categorical may have lists to choose from
        return repr(values)
    return values
