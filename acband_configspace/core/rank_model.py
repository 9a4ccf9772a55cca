"""A Gaussian process that learns an order, not values: neither outliers nor scales matter to it."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np

from acband_configspace.core.statistics import Floats

#: A model tries these lengths, as shares of the space's diagonal, and these shares of noise.
LENGTHS = (0.09, 0.18, 0.36, 0.72)
NOISES = (0.05, 0.3)


class RankModel:
    """A Gaussian process of ranks: points are given from the best to the worst.

    Ranks become normal scores; length and noise are those of the highest likelihood among a few.
    """

    def __init__(self, points: Floats) -> None:
        n, d = points.shape
        scores = np.array([NormalDist().inv_cdf((rank + 0.5) / n) for rank in range(n)])
        self._points = points
        best = -math.inf
        for length in LENGTHS:
            covariance = _matern(points, points, length * math.sqrt(d))
            for noise in NOISES:
                factor = np.linalg.cholesky(covariance + noise * np.eye(n))
                whitened = np.linalg.solve(factor, scores)
                likelihood = -0.5 * whitened @ whitened - np.log(np.diag(factor)).sum()
                if likelihood > best:
                    best = float(likelihood)
                    self._length, self._whitening = length * math.sqrt(d), np.linalg.inv(factor)
                    self._weights = self._whitening.T @ whitened

    def expected(self, points: Floats) -> Floats:
        """Return what may be hoped of points, the lower the better: mean less deviation."""
        covariance = _matern(points, self._points, self._length)
        explained = self._whitening @ covariance.T
        variance = np.maximum(0.0, 1.0 - (explained**2).sum(axis=0))
        return np.asarray(covariance @ self._weights - np.sqrt(variance))


def _matern(a: Floats, b: Floats, length: float) -> Floats:
    """Return Matérn's covariance (ν = 3/2) of two sets of points."""
    squares = (a**2).sum(axis=1)[:, None] + (b**2).sum(axis=1) - 2.0 * a @ b.T
    scaled = np.sqrt(3.0 * np.maximum(0.0, squares)) / length
    return np.asarray((1.0 + scaled) * np.exp(-scaled))
