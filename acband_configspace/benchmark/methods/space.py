"""What methods that search a space are: they choose configurations, a surrogate answers.

All of them get the same CPU time. A run is paid for once: who asks again for a configuration on an
instance pays for what goes beyond the longest run so far.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from ConfigSpace import Configuration
from ConfigSpace.hyperparameters import CategoricalHyperparameter, OrdinalHyperparameter
from ConfigSpace.util import deactivate_inactive_hyperparameters

from acband_configspace.benchmark.methods.method import AnytimeMethod
from acband_configspace.benchmark.simulation import Numbers, drawn_order
from acband_configspace.benchmark.tables.surrogate import Surrogate

#: How many configurations those get that only draw: more than they can try in the time given.
N_SAMPLED = 2000


@dataclass(frozen=True)
class Found:
    """What a method found, and what it would have cost."""

    incumbent: Configuration
    cpu_time: float
    """CPU seconds of all runs."""
    n_configs: int
    """Configurations tried."""
    n_runs: int
    """Runs asked for."""


class CannotRunError(RuntimeError):
    """A program of others is missing, refuses so little time, or fails."""


class SpaceMethod(Protocol):
    """A configurator that searches a space until its CPU time is up."""

    @property
    def name(self) -> str:
        """How the method is called in tables."""

    def run(self, surrogate: Surrogate, *, cpu_limit: float, seed: int) -> Found:
        """Search; the same seed gives the same result unless the class says otherwise."""


@dataclass(frozen=True)
class OnSample:
    """A method that draws configurations at random, on a sample of the space."""

    method: AnytimeMethod

    @property
    def name(self) -> str:
        """The method's."""
        return self.method.name

    def run(self, surrogate: Surrogate, *, cpu_limit: float, seed: int) -> Found:
        """Run it on configurations that the seed draws."""
        table = surrogate.sampled(N_SAMPLED, seed=seed)
        result = self.method.run(table, cpu_limit=cpu_limit, seed=seed)
        incumbent = Configuration(surrogate.space, values=table.config_values[result.incumbent])
        return Found(incumbent, result.cpu_time, result.n_configs, result.n_trials)


class Runs:
    """Looks runs up in a surrogate, and adds up what they cost.

    Instances are numbered in an order that the seed draws.
    """

    def __init__(self, surrogate: Surrogate, *, cpu_limit: float, seed: int) -> None:
        self.surrogate = surrogate
        self.cutoff = surrogate.table.cutoff
        self.n_instances = surrogate.table.n_instances
        self.cpu_limit = cpu_limit
        self.cpu_time = 0.0
        self.n_runs = 0
        _, self._columns = drawn_order(surrogate.table, seed)
        self._paid: dict[tuple[bytes, int], float] = {}
        self._configs: set[bytes] = set()

    @property
    def is_over(self) -> bool:
        """Whether the CPU time is used up."""
        return self.cpu_time >= self.cpu_limit

    def run(
        self, configuration: Configuration, instance: int, *, limit: float = float("inf")
    ) -> tuple[float, bool]:
        """Return the seconds that a run takes until it ends or is stopped, and whether it ends.

        ``limit`` stops it earlier than the table's cutoff.
        """
        full = float(self.surrogate.runtimes(configuration)[self._columns[instance]])
        seconds = max(0.0, min(full, float(limit)))
        key = configuration.get_array().tobytes()
        paid = self._paid.get((key, instance), 0.0)
        if seconds > paid:
            self.cpu_time += seconds - paid
            self._paid[key, instance] = seconds
        self._configs.add(key)
        self.n_runs += 1
        return seconds, bool(full < self.cutoff and full <= limit)

    def columns(self, instances: range) -> Numbers:
        """Return where the table has these instances."""
        return self._columns[instances.start : instances.stop]

    def found(self, incumbent: Configuration) -> Found:
        """Return the result."""
        return Found(incumbent, self.cpu_time, len(self._configs), self.n_runs)


def active(surrogate: Surrogate, values: Mapping[str, Any]) -> Configuration:
    """Return the configuration of these values; those of inactive parameters are left out."""
    return deactivate_inactive_hyperparameters(dict(values), surrogate.space)


def listed(parameter: Any) -> Sequence[Any] | None:
    """Return the values of a category, ordered or not; None for a number."""
    if isinstance(parameter, CategoricalHyperparameter):
        return list(parameter.choices)
    return list(parameter.sequence) if isinstance(parameter, OrdinalHyperparameter) else None
