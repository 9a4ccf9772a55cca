"""What every method of the benchmark is: something that runs on a table and reports its costs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from acband_configspace.benchmark.tables import RuntimeTable
from acband_configspace.core.checks import probability
from acband_configspace.core.epochs import EpochOutline

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class MethodResult:
    """What a method found on a table and what it would have cost."""

    incumbent: int
    """The row of the configuration it returns."""
    cpu_time: float
    """CPU seconds of all runs; each second of a configuration on an instance is paid for once."""
    wall_time: float
    """Seconds with as many processors as the method runs at once: k for races, otherwise one."""
    n_configs: int
    """Configurations tried, counted as the method's paper counts them."""
    n_instances: int
    """Different instances of the table that were used."""
    configurations: tuple[int, ...] = field(repr=False)
    """The rows that were tried, for the gap to the best of them."""
    cpu_time_with_repeats: float | None = None
    """CPU seconds if an instance that comes again is paid again; None if none ever does."""
    extra: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """What else the method has to say."""


class Method(Protocol):
    """A configurator that can be driven through a table."""

    @property
    def name(self) -> str:
        """How the method is called in tables and figures."""

    def run(self, table: RuntimeTable, seed: int) -> MethodResult:
        """Run on the table; the same seed gives the same result."""


def drawn_order(table: RuntimeTable, seed: int) -> tuple[Numbers, Numbers]:
    """Return rows and columns in random order; all methods draw the same from the same seed."""
    rows = np.random.default_rng([seed, 0]).permutation(table.n_configs)
    columns = np.random.default_rng([seed, 1]).permutation(table.n_instances)
    return rows, columns


def check_probabilities(method: object, *names: str) -> None:
    """Refuse a method with an option that is not a probability but should be."""
    for name in names:
        probability(name, getattr(method, name))


def candidates(alpha: float, delta: float) -> int:
    """Return N = ⌈ln δ / ln(1 - α)⌉: one of the best share α is drawn with probability 1 - δ."""
    return EpochOutline.checked(2, alpha, delta, None, None).n_candidates
