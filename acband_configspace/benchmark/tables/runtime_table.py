"""Runtime tables: how long each configuration takes on each instance."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from acband_configspace.core.checks import real_number
from acband_configspace.core.statistics import Floats


class TableError(ValueError):
    """A file is not the runtime table it should be; the message says what is wrong with it."""


@dataclass(frozen=True, eq=False)
class RuntimeTable:
    """Runtimes in seconds, a row per configuration, a column per instance.

    The array is neither copied nor changed, and may be memory-mapped. A runtime at or above the
    cutoff, or infinite, means that the configuration did not solve the instance.
    """

    runtimes: Floats
    cutoff: float
    config_names: tuple[str, ...] = field(default=(), repr=False)
    """A name for each row, or none at all."""
    instance_names: tuple[str, ...] = field(default=(), repr=False)
    """A name for each column, or none at all."""
    provenance: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """Where the runtimes come from: solver, version, seeds, machine, date, as far as known."""
    config_values: tuple[Mapping[str, Any], ...] = field(default=(), repr=False)
    """The values of each row's active parameters, or none at all."""
    space: Mapping[str, Any] | None = field(default=None, repr=False)
    """The space of these configurations, as ``ConfigurationSpace.to_serialized_dict`` has it."""

    def __post_init__(self) -> None:
        cutoff = real_number("cutoff", self.cutoff)
        if not 0 < cutoff < np.inf:
            raise ValueError(f"cutoff must be positive and finite but got {self.cutoff!r}")
        runtimes = np.asanyarray(self.runtimes)
        if not np.issubdtype(runtimes.dtype, np.number) or np.iscomplexobj(runtimes):
            raise TypeError(f"runtimes must be numbers but got an array of {runtimes.dtype}")
        if runtimes.ndim != 2 or 0 in runtimes.shape:
            raise ValueError(
                "runtimes must be a table of configurations × instances but got shape "
                f"{runtimes.shape}"
            )
        lowest = float(runtimes.min())  # NaN if any is: one pass, no temporary array
        if np.isnan(lowest):
            raise ValueError("runtimes must be numbers (inf for unsolved) but got NaN")
        if lowest < 0:
            raise ValueError(f"runtimes must not be negative but got {lowest}")
        for what, names, count in (
            ("config_names", self.config_names, runtimes.shape[0]),
            ("instance_names", self.instance_names, runtimes.shape[1]),
            ("config_values", self.config_values, runtimes.shape[0]),
        ):
            if names and len(names) != count:
                raise ValueError(f"{what} must be given for all {count} but got {len(names)}")
        if np.issubdtype(runtimes.dtype, np.floating):
            # Single precision may hold a little less: a run that was stopped there is not below it.
            held = float(runtimes.dtype.type(cutoff))
            cutoff = held if 0 < held < cutoff else cutoff
        object.__setattr__(self, "runtimes", runtimes)
        object.__setattr__(self, "cutoff", cutoff)

    @property
    def n_configs(self) -> int:
        """Number of configurations (rows)."""
        return int(self.runtimes.shape[0])

    @property
    def n_instances(self) -> int:
        """Number of instances (columns)."""
        return int(self.runtimes.shape[1])

    @cached_property
    def _means(self) -> npt.NDArray[np.float64]:
        # Row by row: capping the whole table at once would copy it.
        means = np.array([np.minimum(row, self.cutoff).mean(dtype=float) for row in self.runtimes])
        means.flags.writeable = False
        return means

    def mean_runtimes(self) -> npt.NDArray[np.float64]:
        """Return each configuration's mean runtime over all instances, capped at the cutoff."""
        return self._means

    def gap_to_best(self, configuration: int) -> float:
        """Return how much longer a configuration takes than the best one: 0.1 is 10 % longer."""
        return self._gap(configuration, self._means)

    def gap_to_subset_best(self, configuration: int, subset: Collection[int]) -> float:
        """Return how much longer it takes than the best of those that a method has tried.

        The paper's "percent gap to subset-best" (Extended Experiments): 0 if the method returned
        the best of what it had sampled.
        """
        return self._gap(configuration, self._means[list(subset)])

    def capped_mean_runtime(self, configuration: int, share: float = 0.1) -> float:
        """Return R^δ for δ = ``share``: the mean over the 1 - δ of the instances it solves fastest.

        As the paper's Evaluation section words it. Weisz et al. (2020) let the slowest count
        with the (1 - δ)-quantile instead of leaving them out.
        """
        n_kept = max(1, int(np.ceil((1.0 - share) * self.n_instances)))
        row = np.minimum(self.runtimes[configuration], self.cutoff).astype(float)
        return float(np.partition(row, n_kept - 1)[:n_kept].mean())

    def _gap(self, configuration: int, means: npt.NDArray[np.float64]) -> float:
        best, own = float(means.min()), float(self._means[configuration])
        if best == 0.0:  # nobody takes any time: then none takes longer
            return 0.0 if own == 0.0 else float("inf")
        return own / best - 1.0
