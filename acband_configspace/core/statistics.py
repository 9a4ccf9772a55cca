"""How outcomes rank a group: the statistic s of the paper. Higher scores are better.

A statistic sees all costs of a group at once, as an array of shape (…, races, racers) and a mask
of the same shape that says which of them are censored; it returns the scores, (…, racers). The
leading axes let one call judge many groups.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from acband_configspace.core.checks import real_number

Floats = npt.NDArray[np.floating]
Flags = npt.NDArray[np.bool_]


@runtime_checkable
class Statistic(Protocol):
    """What ranks the configurations of a group; write your own by giving these two."""

    @property
    def needs_all_costs(self) -> bool:
        """Whether losers must be run to their end: False if knowing the winner is enough."""

    def scores(self, costs: Floats, censored: Flags) -> Floats:
        """Return a score per racer; the highest survive, ties in the group's random order."""


@dataclass(frozen=True)
class Wins:
    """The paper's statistic: the relative frequency of finishing first."""

    needs_all_costs = False

    def scores(self, costs: Floats, censored: Flags) -> Floats:
        """Return the share of its races that each racer won."""
        shares: Floats = wins(costs, censored).mean(axis=-2)
        return shares


@dataclass(frozen=True)
class MeanCost:
    """The mean cost, lowest first. Losers run to their end, so races save nothing."""

    needs_all_costs = True

    def scores(self, costs: Floats, censored: Flags) -> Floats:
        """Return the negative mean cost."""
        _refuse_censored("mean", censored)
        means: Floats = np.mean(costs, axis=-2, dtype=float)
        return -means


@dataclass(frozen=True)
class QuantileCost:
    """A quantile of the cost, lowest first; the median unless another is given."""

    quantile: float = 0.5
    needs_all_costs = True

    def __post_init__(self) -> None:
        if not 0.0 <= real_number("quantile", self.quantile) <= 1.0:
            raise ValueError(f"quantile must lie in [0, 1] but got {self.quantile!r}")

    def scores(self, costs: Floats, censored: Flags) -> Floats:
        """Return the negative quantile of the costs."""
        _refuse_censored("quantile", censored)
        # No interpolation: a failure costs infinity, and inf - inf is not a number.
        ordered: Floats = -np.quantile(costs, self.quantile, axis=-2, method="inverted_cdf")
        return ordered


def wins(costs: Floats, censored: Flags) -> Flags:
    """Return who won which race, (…, races, racers).

    A racer wins whose finite, uncensored cost all others are known to exceed. If nobody
    finishes, or several share the lowest cost, nobody is credited. (The authors' code credits
    the first listed.)
    """
    finished = ~censored & np.isfinite(costs)
    own = np.where(finished, costs, np.inf)
    best = own.min(axis=-1, keepdims=True)
    # A censored racer's true cost lies above its bound, so a bound at the best cost loses.
    others_lose = np.where(censored, costs >= best, costs > best)
    beaten = others_lose.sum(axis=-1, keepdims=True) == costs.shape[-1] - 1
    result: Flags = finished & (own == best) & beaten
    return result


_STATISTICS: dict[str, Statistic] = {
    "wins": Wins(),
    "mean": MeanCost(),
    "quantile": QuantileCost(),
}


def get_statistic(statistic: str | Statistic) -> Statistic:
    """Return the statistic of that name, or the user's own as it is."""
    if isinstance(statistic, str):
        if statistic not in _STATISTICS:
            names = ", ".join(map(repr, _STATISTICS))
            raise ValueError(f"statistic must be one of {names} but got {statistic!r}")
        return _STATISTICS[statistic]
    if isinstance(statistic, type) or not isinstance(statistic, Statistic):
        raise TypeError(
            "statistic must be a name or an object with scores() and needs_all_costs "
            f"but got {statistic!r}"
        )
    return statistic


def _refuse_censored(name: str, censored: Flags) -> None:
    if np.any(censored):
        raise ValueError(
            f"statistic {name!r} must know every cost but got {int(np.sum(censored))} censored "
            "ones (racers stopped early); use 'wins', or let all racers finish"
        )


def paired_noise(costs: Floats) -> float | None:
    """Return how much the difference of two configurations' costs varies between instances.

    The standard deviation of that difference, from the residuals of costs (configurations ×
    instances) after the means of both are taken out, or None where that says nothing.
    """
    finite = costs[np.isfinite(costs).all(axis=1)]
    n_configs, n_instances = finite.shape if finite.ndim == 2 else (0, 0)
    if n_configs < 2 or n_instances < 2:
        return None
    residuals = finite - finite.mean(axis=0)
    residuals -= residuals.mean(axis=1, keepdims=True)
    variance = float((residuals**2).sum()) / ((n_configs - 1) * (n_instances - 1))
    return float(np.sqrt(2.0 * variance))
