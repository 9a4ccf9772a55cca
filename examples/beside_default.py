"""What the examples print in the end: the tuned configuration beside the default."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from acband_configspace import ACBandFacade


def print_found(found: Mapping[str, Any], default: Mapping[str, Any]) -> None:
    """Print a configuration and what the default has in its place."""
    print("Found:")
    for name, value in sorted(found.items()):
        mark = "" if default.get(name) == value else f"   (default: {default.get(name)})"
        print(f"  {name} = {value}{mark}")


def test_costs(facade: ACBandFacade, config: Mapping[str, Any], instances: list[str]) -> np.ndarray:
    """Run a configuration on test instances and return what each cost."""
    return np.array([trial.value.cost for trial in facade.validate(config, instances).trials])


def comparison(tuned: np.ndarray, plain: np.ndarray, *, cutoff: float, par: float) -> str:
    """Compare costs on the same instances; a run that met the cutoff has cost par × cutoff."""
    lines = [f"{'':10}{'mean':>9}{'median':>9}{f'PAR{par:g}':>9}{'cutoffs':>9}{'wins':>6}"]
    for name, own, other in (("tuned", tuned, plain), ("default", plain, tuned)):
        seconds = np.minimum(own, cutoff)
        lines.append(
            f"{name:10}{seconds.mean():7.3f} s{np.median(seconds):7.3f} s{own.mean():7.3f} s"
            f"{np.sum(own > cutoff):9}{np.sum(own < other):6}"
        )
    low, high = speed_up_interval(tuned, plain)
    lines.append(
        f"speed-up by PAR{par:g}: {plain.mean() / tuned.mean():.2f} "
        f"(95 % bootstrap interval {low:.2f} to {high:.2f})"
    )
    return "\n".join(lines)


def speed_up_interval(tuned: np.ndarray, plain: np.ndarray) -> tuple[float, float]:
    """Return a 95 % interval for the ratio of the means, instances drawn with replacement."""
    rng = np.random.default_rng(0)
    drawn = rng.integers(len(tuned), size=(10_000, len(tuned)))
    low, high = np.quantile(plain[drawn].mean(axis=1) / tuned[drawn].mean(axis=1), [0.025, 0.975])
    return float(low), float(high)
