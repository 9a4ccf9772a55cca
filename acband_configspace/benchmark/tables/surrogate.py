"""A model of a recorded table, to ask for the runtimes of configurations that were not recorded.

A method that searches a space (SMAC, irace, ParamILS, GGA, our own learned proposals) asks for
configurations of its own choosing. Answering with the nearest recorded row would make of the
table a handful of plateaus; a random forest ranks configurations that it has not seen nearly twice
as well. :func:`rank_correlations` measures both.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from ConfigSpace import Configuration, ConfigurationSpace
from ConfigSpace.hyperparameters import CategoricalHyperparameter, OrdinalHyperparameter
from scipy.stats import spearmanr
from sklearn.ensemble import RandomForestRegressor

from acband_configspace.benchmark.tables.runtime_table import RuntimeTable, TableError

Floats = npt.NDArray[np.float64]
#: Where a parameter is not active; all active ones are at 0 or above.
INACTIVE = -1.0
N_TREES = 60
N_FOLDS = 5
#: Seconds below which runtimes are not told apart: clocks and processes cannot do so either.
SHORTEST = 1e-3


class Surrogate:
    """A random forest from a configuration to the logarithms of its runtimes on all instances.

    Errors of an instance are weighted by the root of its mean runtime: instances that make up the
    mean count for more, and the easy ones are not forgotten.

    Parameters
    ----------
    table : RuntimeTable
        One with the values of its configurations and their space.
    """

    def __init__(self, table: RuntimeTable) -> None:
        if table.space is None or not table.config_values:
            raise TableError(
                "the table must hold the values of its configurations and their space: record it "
                "with `python -m acband_configspace.benchmark record`"
            )
        self.table = table
        # ConfigSpace takes apart what it is given.
        self.space = ConfigurationSpace.from_serialized_dict(copy.deepcopy(dict(table.space)))
        self._known: dict[bytes, Floats] = {}

    def runtimes(self, configuration: Configuration) -> Floats:
        """Return the runtime on each instance of the table, the cutoff if it is not solved."""
        point = _points([configuration])
        key = point.tobytes()
        if key not in self._known:
            leaves = [
                values[tree.apply(point)[0]]
                for tree, values in zip(self._trees, self._leaves, strict=True)
            ]
            self._known[key] = self._seconds(np.mean(leaves, axis=0))
        return self._known[key]

    def mean_runtime(self, configuration: Configuration) -> float:
        """Return the mean over all instances."""
        return float(self.runtimes(configuration).mean())

    def sampled(self, n_configs: int, *, seed: int) -> RuntimeTable:
        """Return a table of the default and random configurations, for those who only draw."""
        self.space.seed(seed)
        drawn = self.space.sample_configuration(max(2, n_configs))[: n_configs - 1]
        rows = [self.space.get_default_configuration(), *drawn]
        return RuntimeTable(
            self._seconds(self._forest.predict(_points(rows))),
            self.table.cutoff,
            config_values=tuple(dict(row) for row in rows),
            space=self.table.space,
        )

    @cached_property
    def _weights(self) -> Floats:
        # Not even an instance that takes no time may have the weight zero: weights are divided by.
        means = np.maximum(_capped(self.table).mean(axis=0), SHORTEST)
        weights: Floats = np.sqrt(means / means.mean())
        return weights

    @cached_property
    def _forest(self) -> RandomForestRegressor:
        rows = _points([Configuration(self.space, values=v) for v in self.table.config_values])
        logs = np.log(np.maximum(_capped(self.table), SHORTEST))
        # Trees that see all parameters at each split resemble each other too much: half of them.
        forest = RandomForestRegressor(N_TREES, max_features=0.5, random_state=0)
        return forest.fit(rows, logs * self._weights)

    @cached_property
    def _trees(self) -> list[Any]:
        return [estimator.tree_ for estimator in self._forest.estimators_]

    @cached_property
    def _leaves(self) -> list[Floats]:
        return [tree.value[:, :, 0] for tree in self._trees]

    def _seconds(self, weighted_logs: Floats) -> Floats:
        seconds: Floats = np.minimum(np.exp(weighted_logs / self._weights), self.table.cutoff)
        return seconds


def rank_correlations(table: RuntimeTable) -> tuple[float, float]:
    """Return how well held-out configurations are ranked by their mean runtime (Spearman's ρ).

    First by the surrogate of the others, then by the nearest of the others. A fifth of the
    configurations is held out at a time.
    """
    folds = np.random.default_rng(0).permutation(table.n_configs) % N_FOLDS
    predicted, nearest = np.empty(table.n_configs), np.empty(table.n_configs)
    means = table.mean_runtimes()
    space = Surrogate(table).space
    configurations = [Configuration(space, values=v) for v in table.config_values]
    apart = distances(space, configurations)
    for fold in range(N_FOLDS):
        kept, out = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
        surrogate = Surrogate(_rows_of(table, kept))
        predicted[out] = [surrogate.mean_runtime(configurations[i]) for i in out]
        nearest[out] = means[kept[apart[np.ix_(out, kept)].argmin(axis=1)]]
    return float(spearmanr(predicted, means)[0]), float(spearmanr(nearest, means)[0])


def distances(space: ConfigurationSpace, configurations: Sequence[Configuration]) -> Floats:
    """Return Gower's distance of each two, on the scales that the space has.

    Numbers differ by their places on the scale (perhaps logarithmic), categories by 0 or 1, and
    so does a parameter that is active in one of the two only; the mean over all parameters.
    """
    points = _points(configurations).astype(np.float64)
    parameters = list(space.values())
    apart = np.zeros((len(points), len(points)))
    for column, parameter in zip(points.T, parameters, strict=True):
        if isinstance(parameter, OrdinalHyperparameter):
            column = np.where(column == INACTIVE, column, column / max(1, parameter.size - 1))
        steps = np.abs(column[:, None] - column)
        active = column != INACTIVE
        if isinstance(parameter, CategoricalHyperparameter):
            steps = steps > 0
        apart += np.where(active[:, None] == active, steps, 1.0)
    return apart / len(parameters)


def _points(configurations: Sequence[Configuration]) -> npt.NDArray[np.float32]:
    vectors = np.array([one.get_array() for one in configurations], dtype=np.float32)
    return np.nan_to_num(vectors, nan=INACTIVE)


def _capped(table: RuntimeTable) -> Floats:
    capped: Floats = np.minimum(table.runtimes, table.cutoff).astype(np.float64)
    return capped


def _rows_of(table: RuntimeTable, rows: npt.NDArray[np.int64]) -> RuntimeTable:
    values = tuple(table.config_values[row] for row in rows)
    return RuntimeTable(table.runtimes[rows], table.cutoff, config_values=values, space=table.space)
