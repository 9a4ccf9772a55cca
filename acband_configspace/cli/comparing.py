"""Two configurations on the same instances: is one better, and can that be told?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

#: How often the instances are drawn anew for the interval.
RESAMPLES = 2000


@dataclass(frozen=True)
class Comparison:
    """Costs of the incumbent beside those of the default, instance by instance."""

    incumbent: tuple[float, ...]
    default: tuple[float, ...]

    def __post_init__(self) -> None:
        if not self.incumbent or len(self.incumbent) != len(self.default):
            raise ValueError("the costs must be pairs, at least one")

    @property
    def difference(self) -> float:
        """The mean of the incumbent's cost minus the default's: negative is better."""
        return float(np.mean(self.incumbent) - np.mean(self.default))

    def interval(self) -> tuple[float, float]:
        """Return a 95 % bootstrap interval of the mean difference, over the instances."""
        differences = np.subtract(self.incumbent, self.default)
        rng = np.random.default_rng(0)
        n = len(differences)
        means = [float(differences[rng.integers(n, size=n)].mean()) for _ in range(RESAMPLES)]
        low, high = np.quantile(means, [0.025, 0.975]).tolist()
        return low, high

    @property
    def wins(self) -> tuple[int, int]:
        """On how many instances the incumbent, and the default, is cheaper."""
        differences = np.subtract(self.incumbent, self.default)
        return int((differences < 0).sum()), int((differences > 0).sum())

    def verdict(self) -> str:
        """Return in a sentence what can be said."""
        if self.incumbent == self.default:
            return "The incumbent costs the same as the default on every instance."
        low, high = self.interval()
        if not np.isfinite([low, high]).all():
            return "Some costs are infinite: count the wins."
        if high < 0:
            return "The incumbent is better than the default."
        if low > 0:
            return "The incumbent is worse than the default."
        return "These instances cannot tell the two apart: use more of them."


def table(rows: Sequence[tuple[str, Sequence[float], int]], *, unit: str) -> str:
    """Return mean and median of each row's costs, and its wins."""
    lines = [f"{'':10}{'mean':>14}{'median':>14}{'wins':>8}"]
    for name, costs, wins in rows:
        mean, median = float(np.mean(costs)), float(np.median(costs))
        lines.append(f"{name:10}{_short(mean, unit):>14}{_short(median, unit):>14}{wins:>8}")
    return "\n".join(lines)


def _short(value: float, unit: str) -> str:
    return f"{value:.4g}{unit}"
