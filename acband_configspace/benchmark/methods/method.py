"""What a method is: something that runs on a table, and says what it found and what it cost.

A :class:`Method` ends by its own rule. An :class:`AnytimeMethod` searches until a limit of CPU time
or trials, and always has a leader. (A method that searches a space is in ``space``.)
"""

from __future__ import annotations

import abc
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from acband_configspace.benchmark.simulation import Numbers, SimulatedRun
from acband_configspace.benchmark.tables import RuntimeTable
from acband_configspace.core.checks import probability, real_number, whole_number
from acband_configspace.core.epochs import EpochOutline

Times = npt.NDArray[np.float64]


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


def check_probabilities(method: object, *names: str) -> None:
    """Refuse a method with an option that is not a probability but should be."""
    for name in names:
        probability(name, getattr(method, name))


def candidates(alpha: float, delta: float) -> int:
    """Return N = ⌈ln δ / ln(1 - α)⌉: one of the best share α is drawn with probability 1 - δ."""
    return EpochOutline.checked(2, alpha, delta, None, None).n_candidates


class Spending:
    """The books of one run: what was spent, of what limit, and who led when.

    A run that the limit cuts short is paid up to the limit, and does not count as a trial.
    """

    def __init__(
        self, table: RuntimeTable, *, cpu_limit: float | None = None, n_trials: int | None = None
    ) -> None:
        if (cpu_limit is None) == (n_trials is None):
            raise ValueError(
                "exactly one of cpu_limit and n_trials must be given but got "
                f"{cpu_limit!r} and {n_trials!r}"
            )
        if cpu_limit is not None and not real_number("cpu_limit", cpu_limit) > 0:
            raise ValueError(f"cpu_limit must be positive but got {cpu_limit!r}")
        if n_trials is not None:
            whole_number("n_trials", n_trials, at_least=1)
        self._table = table
        self._trajectory: list[tuple[float, int]] = []
        self.cpu_limit, self.most_trials = cpu_limit, n_trials
        """What there is of it; None of what is not limited."""
        self.cpu_time = 0.0
        self.n_trials = 0
        self.is_over = False

    def times(self, rows: int | Numbers, columns: Numbers) -> Times:
        """Look up what runs take, unsolved ones the cutoff; nothing is paid yet."""
        found: Times = np.minimum(self._table.runtimes[rows, columns], self._table.cutoff)
        return found.astype(np.float64)

    def pay(self, times: Times) -> int:
        """Pay for runs one after the other; return how many came to an end within the limit."""
        limit = np.inf if self.cpu_limit is None else self.cpu_limit
        ends = self.cpu_time + np.cumsum(times)
        n_done = int(np.searchsorted(ends, limit, side="right"))
        if self.most_trials is not None:
            n_done = min(n_done, self.most_trials - self.n_trials)
        if n_done:
            self.cpu_time = float(ends[n_done - 1])
            self.n_trials += n_done
        if n_done < len(times):  # the next one was stopped by the limit
            self.is_over = True
            self.cpu_time = min(limit, float(ends[n_done]))
        return n_done

    def lead(self, row: int) -> None:
        """Note that a configuration leads from now on."""
        if not self._trajectory or self._trajectory[-1][1] != row:
            spent = self.cpu_time if self.most_trials is None else self.n_trials
            self._trajectory.append((float(spent), int(row)))

    def result(self, n_configs: int, fallback: int) -> SimulatedRun:
        """Close the books; ``fallback`` is returned if no run came to an end."""
        if not self._trajectory:
            self.lead(fallback)
        return SimulatedRun(
            incumbent=self._trajectory[-1][1],
            cpu_time=self.cpu_time,
            n_trials=self.n_trials,
            n_configs=n_configs,
            trajectory=tuple(self._trajectory),
        )


class AnytimeMethod(abc.ABC):
    """A configurator that can be stopped at any time, driven through a table."""

    @property
    @abc.abstractmethod
    def name(self) -> str:
        """How the method is called in tables and figures."""

    def run(
        self,
        table: RuntimeTable,
        *,
        cpu_limit: float | None = None,
        n_trials: int | None = None,
        seed: int = 0,
    ) -> SimulatedRun:
        """Search until the limit, or until the table is used up; exactly one limit is given.

        With ``cpu_limit`` the table holds run times, with ``n_trials`` any costs. Rows and columns
        come in the random order of the seed, the same for all methods.
        """
        spending = Spending(table, cpu_limit=cpu_limit, n_trials=n_trials)
        return self._search(table, spending, seed)

    @abc.abstractmethod
    def _search(self, table: RuntimeTable, spending: Spending, seed: int) -> SimulatedRun:
        """Pay for runs, one after the other, until the books say that it is over."""
