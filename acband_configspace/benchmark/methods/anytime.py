"""Anytime methods: they search until a limit of CPU time or trials, and always have a leader."""

from __future__ import annotations

import abc
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import numpy.typing as npt

from acband_configspace.benchmark.methods.method import Numbers
from acband_configspace.benchmark.tables import RuntimeTable
from acband_configspace.core.checks import real_number, whole_number

Times = npt.NDArray[np.float64]
Trajectory = tuple[tuple[float, int], ...]


@dataclass(frozen=True)
class AnytimeResult:
    """What a method found within its limit."""

    incumbent: int
    """The row of the configuration that it returns."""
    cpu_time: float
    """CPU seconds of all runs; a run that the limit cut short is paid up to the limit."""
    n_trials: int
    """Runs of a configuration on an instance that came to an end."""
    n_configs: int
    """Configurations of which at least one run was begun."""
    trajectory: Trajectory = field(repr=False)
    """CPU seconds (or trials, if these are limited) spent when each new incumbent took the lead,
    and its row."""


class AnytimeMethod(Protocol):
    """A configurator that can be stopped at any time, driven through a table."""

    @property
    def name(self) -> str:
        """How the method is called in tables and figures."""

    def run(
        self,
        table: RuntimeTable,
        *,
        cpu_limit: float | None = None,
        n_trials: int | None = None,
        seed: int = 0,
    ) -> AnytimeResult:
        """Search until the limit, or until the table is used up; exactly one limit is given.

        With ``cpu_limit`` the table holds run times, with ``n_trials`` any costs. Rows and columns
        come in the random order of the seed, the same for all methods.
        """


class Spending:
    """The books of one run: what was spent, of what limit, and who led when."""

    def __init__(
        self, table: RuntimeTable, *, cpu_limit: float | None, n_trials: int | None
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
        self._cpu_limit = np.inf if cpu_limit is None else cpu_limit
        self._trial_limit = np.inf if n_trials is None else n_trials
        self._counts_trials = n_trials is not None
        self._trajectory: list[tuple[float, int]] = []
        self.cpu_time = 0.0
        self.n_trials = 0
        self.is_over = False

    @property
    def counts_trials(self) -> bool:
        """Whether trials are limited, and not CPU time."""
        return self._counts_trials

    @property
    def most_trials(self) -> int | None:
        """How many trials there are; None if CPU time is limited."""
        return int(self._trial_limit) if self._counts_trials else None

    def times(self, rows: int | Numbers, columns: Numbers) -> Times:
        """Look up what runs take, unsolved ones the cutoff; nothing is paid yet."""
        found: Times = np.minimum(self._table.runtimes[rows, columns], self._table.cutoff)
        return found.astype(np.float64)

    def pay(self, times: Times) -> int:
        """Pay for runs one after the other; return how many came to an end within the limit."""
        ends = self.cpu_time + np.cumsum(times)
        n_done = int(np.searchsorted(ends, self._cpu_limit, side="right"))
        n_done = int(min(n_done, self._trial_limit - self.n_trials))
        if n_done:
            self.cpu_time = float(ends[n_done - 1])
            self.n_trials += n_done
        if n_done < len(times):  # the next one was stopped by the limit
            self.is_over = True
            self.cpu_time = min(self._cpu_limit, float(ends[n_done]))
        return n_done

    def lead(self, row: int) -> None:
        """Note that a configuration leads from now on."""
        if not self._trajectory or self._trajectory[-1][1] != row:
            spent = self.n_trials if self._counts_trials else self.cpu_time
            self._trajectory.append((float(spent), int(row)))

    def result(self, n_configs: int, fallback: int) -> AnytimeResult:
        """Close the books; ``fallback`` is returned if no run came to an end."""
        if not self._trajectory:
            self.lead(fallback)
        return AnytimeResult(
            incumbent=self._trajectory[-1][1],
            cpu_time=self.cpu_time,
            n_trials=self.n_trials,
            n_configs=n_configs,
            trajectory=tuple(self._trajectory),
        )


class PaidSearch(abc.ABC):
    """An anytime method that keeps its books itself, by paying for runs one after the other."""

    def run(
        self,
        table: RuntimeTable,
        *,
        cpu_limit: float | None = None,
        n_trials: int | None = None,
        seed: int = 0,
    ) -> AnytimeResult:
        """Search until the limit, or until the table is used up."""
        spending = Spending(table, cpu_limit=cpu_limit, n_trials=n_trials)
        return self._search(table, spending, seed)

    @abc.abstractmethod
    def _search(self, table: RuntimeTable, spending: Spending, seed: int) -> AnytimeResult:
        """Pay for runs until the books say that it is over."""
