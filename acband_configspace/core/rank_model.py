"""A Gaussian process that learns an order, not values: neither outliers nor scales matter to it.

By hand, and not with scikit-learn: that has no priors for lengths and noise, cannot take in one
more point without a new fit, and takes four to five times as long to fit a hundred points of ten
numbers; and the core needs nothing but numpy.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist

import numpy as np

from acband_configspace.core.statistics import Floats

#: What is likely before anything is known: a length for each parameter, as a share of the root of
#: their number (times or divided by e, in two cases of three), and the noise, as a share of the
#: variance.
USUAL_LENGTH = 0.4
USUAL_NOISE = 0.03
LENGTH_SPREAD = 1.0
NOISE_SPREAD = 1.5
#: Lengths and noise are fitted in so many steps, of a factor of at most e to the power of this.
N_STEPS = 25
LONGEST_STEP = 0.6
FIRST_STEP = 0.3
LEAST_NOISE = 1e-4
LEAST_NOISE_OF_MEANS = 1e-6
#: There is none at all where all ranks are shared.
LEAST_VARIANCE = 1e-12
#: At most so many points, evenly spread over the order, are looked at for the lengths.
MOST_FITTED = 100


class RankModel:
    """A Gaussian process of ranks.

    Ranks become normal scores; who shares a value shares a rank. Each parameter has a length of its
    own; lengths and noise are the most likely ones.

    Parameters
    ----------
    points : array
        A row for each.
    values : array
        What each is worth, the less the better.
    parameters : sequence of int
        Which parameter each column belongs to.
    weights : array
        How much each point's rank is to be trusted: the noise is divided by that.
    """

    def __init__(
        self, points: Floats, values: Floats, parameters: Sequence[int], weights: Floats
    ) -> None:
        n = len(points)
        scores = _normal_scores(values)
        spread = np.unique(np.linspace(0, n - 1, min(n, MOST_FITTED)).round().astype(int))
        some = np.argsort(values, kind="stable")[spread]
        lengths, self._noise = _most_likely(points[some], parameters, scores[some], weights[some])
        self._scales = 1.0 / lengths[np.asarray(parameters)]
        self._points = points * self._scales
        covariance = _covariance(_squares(self._points, self._points))
        factor = np.linalg.cholesky(covariance + np.diag(_noises(self._noise, weights)))
        self._whitening = np.linalg.inv(factor)
        whitened = self._whitening @ scores
        self._weights = self._whitening.T @ whitened
        self._variance = max(LEAST_VARIANCE, float(whitened @ whitened) / n)
        self.best = float(np.min(self.mean(points)))
        """The least that is expected of any of the points."""
        self.n_believed = 0
        """How many points were believed."""

    def mean(self, points: Floats) -> Floats:
        """Return the expected scores of points."""
        return np.asarray(self._correlations(points) @ self._weights)

    def believe(self, point: Floats) -> None:
        """Take a point that is being tried as if it had its expected score."""
        n = len(self._points)
        scaled = point[None] * self._scales
        row = self._whitening @ _covariance(_squares(self._points, scaled))[:, 0]
        last = math.sqrt(max(1.0 + self._noise - float(row @ row), LEAST_NOISE_OF_MEANS))
        whitening = np.zeros((n + 1, n + 1))
        whitening[:n, :n] = self._whitening
        whitening[n, :n] = -(row @ self._whitening) / last
        whitening[n, n] = 1.0 / last
        self._whitening = whitening
        self._points = np.vstack([self._points, scaled])
        self.n_believed += 1
        self._weights = np.append(self._weights, 0.0)  # what was expected changes nothing

    def promise(self, points: Floats) -> Floats:
        """Return the expected improvement of each point on the best one, as a logarithm."""
        correlations = self._correlations(points)
        explained = correlations @ self._whitening.T
        left = np.maximum(LEAST_NOISE_OF_MEANS, 1.0 - (explained**2).sum(axis=1))
        deviations = np.sqrt(self._variance * left)
        hopes = (self.best - correlations @ self._weights) / deviations
        return np.asarray(_log_improvement(hopes) + np.log(deviations))

    def _correlations(self, points: Floats) -> Floats:
        return _covariance(_squares(points * self._scales, self._points))


def _normal_scores(values: Floats) -> Floats:
    """Return what a normal variable is expected to be about at each value's rank."""
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    middles = np.cumsum(counts) - 0.5 * counts
    scores = [NormalDist().inv_cdf(middle / len(values)) for middle in middles]
    return np.array(scores)[places]


def _most_likely(
    points: Floats, parameters: Sequence[int], scores: Floats, weights: Floats
) -> tuple[Floats, float]:
    """Return the lengths and the noise of the highest likelihood, a step at a time.

    Steps have signs of gradients only, and grow as long as those stay the same (Rprop).
    """
    n_parameters = max(parameters) + 1
    apart = np.zeros((n_parameters, len(points), len(points)))
    for column, parameter in zip(points.T, parameters, strict=True):
        apart[parameter] += (column[:, None] - column) ** 2
    flat = apart.reshape(n_parameters, -1)
    middle = np.full(n_parameters + 1, math.log(USUAL_LENGTH * math.sqrt(n_parameters)))
    middle[-1] = math.log(USUAL_NOISE)
    spread = np.full(n_parameters + 1, LENGTH_SPREAD)
    spread[-1] = NOISE_SPREAD
    place, best_place, best = middle.copy(), middle, -math.inf
    step, before = np.full(n_parameters + 1, FIRST_STEP), np.zeros(n_parameters + 1)
    for _ in range(N_STEPS):
        likelihood, gradient = _likelihood(place, flat, scores, weights)
        away = (place - middle) / spread
        likelihood -= 0.5 * float(away @ away)
        gradient = gradient - away / spread
        if likelihood > best:
            best, best_place = likelihood, place.copy()
        same = np.sign(gradient) * np.sign(before)
        step = np.clip(
            step * np.where(same > 0, 1.2, np.where(same < 0, 0.5, 1.0)), 1e-3, LONGEST_STEP
        )
        before = np.where(same < 0, 0.0, gradient)
        place = place + np.sign(before) * step
        place[-1] = max(place[-1], math.log(LEAST_NOISE))
    return np.exp(best_place[:-1]), math.exp(best_place[-1])


def _likelihood(
    place: Floats, flat: Floats, scores: Floats, weights: Floats
) -> tuple[float, Floats]:
    """Return the logarithm of the likelihood, the variance being the most likely; its gradient."""
    n = len(scores)
    inverse_squares, noise = np.exp(-2.0 * place[:-1]), math.exp(place[-1])
    distances = np.sqrt(5.0 * (inverse_squares @ flat)).reshape(n, n)
    falling = np.exp(-distances)
    covariance = (1.0 + distances + distances**2 / 3.0) * falling + np.diag(_noises(noise, weights))
    inverse = np.linalg.inv(covariance)
    solved = inverse @ scores
    variance = max(LEAST_VARIANCE, float(scores @ solved) / n)
    determinant = float(np.linalg.slogdet(covariance).logabsdet)
    likelihood = -0.5 * (n * math.log(variance) + determinant)
    change = np.outer(solved, solved) / variance - inverse
    slope = (change * (5.0 / 3.0) * (1.0 + distances) * falling).ravel()
    gradient = 0.5 * inverse_squares * (flat @ slope)
    of_noise = 0.5 * noise * float((np.diag(change) / weights).sum())
    return likelihood, np.append(gradient, of_noise)


def _noises(noise: float, weights: Floats) -> Floats:
    return np.asarray(np.maximum(LEAST_NOISE_OF_MEANS, noise / weights))


def _squares(a: Floats, b: Floats) -> Floats:
    squares = (a**2).sum(axis=1)[:, None] + (b**2).sum(axis=1) - 2.0 * a @ b.T
    return np.asarray(np.maximum(0.0, squares))


def _covariance(squares: Floats) -> Floats:
    """Return Matérn's covariance (ν = 5/2) by squared distances."""
    scaled = np.sqrt(5.0 * squares)
    return np.asarray((1.0 + scaled + scaled**2 / 3.0) * np.exp(-scaled))


def _log_improvement(z: Floats) -> Floats:
    """Return the logarithm of the expected improvement, z deviations being the expected one.

    It is log(z Φ(z) + φ(z)); where nothing is left of that, φ(z) / (z² + 3), its limit.
    """
    density = -0.5 * z**2 - 0.5 * math.log(2.0 * math.pi)
    below = np.array([0.5 * math.erfc(-each / math.sqrt(2.0)) for each in z])
    improvement = np.maximum(z * below + np.exp(density), 1e-300)
    return np.asarray(np.where(z > -4.0, np.log(improvement), density - np.log(z**2 + 3.0)))
