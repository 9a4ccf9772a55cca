"""The paper's experiments: which methods run, in which settings and with which seeds."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any

from acband_configspace.benchmark.commands.parallel import on_table
from acband_configspace.benchmark.methods.acband import ACBand
from acband_configspace.benchmark.methods.halving import Hyperband
from acband_configspace.benchmark.methods.method import Method
from acband_configspace.benchmark.methods.registry import Setting, build
from acband_configspace.benchmark.tables import RuntimeTable
from acband_configspace.core.epochs import last_true
from acband_configspace.core.schedule import Schedule

#: η with which Hyperband draws the 618 configurations of the second appendix experiment.
TABLE_4_ETA = 8
#: Most expensive first, so that no worker is left with a long run in the end.
SLOW_FIRST = ("spc", "sp", "lab", "car", "icar", "car++")


@dataclass(frozen=True)
class Job:
    """One method in one setting with one seed."""

    method: Method
    alpha: float | None
    """None if the method does not depend on it."""
    seed: int
    family: str
    """The name by which the method was asked for."""
    lowered: bool = False
    """Whether AC-Band gets fewer configurations than were asked for: the table has no more."""


@dataclass(frozen=True)
class Row:
    """What one run gave, in the paper's metrics."""

    method: str
    family: str
    alpha: float | None
    seed: int
    cpu_time: float
    cpu_time_with_repeats: float
    """If an instance that comes again were paid again."""
    wall_time: float
    gap: float
    """Percent gap to best, as a fraction: 0.1 is 10 % (the paper's tables print fractions too)."""
    subset_gap: float
    r_delta: float
    n_configs: int
    n_instances: int
    computing: float
    """CPU seconds that the simulation took."""


@dataclass(frozen=True)
class Grid:
    """All settings of the paper's experiments on a table."""

    table: RuntimeTable
    alphas: Sequence[float]
    delta: float
    ks: Sequence[int]
    etas: Sequence[int]
    seeds: range
    times: int = 1
    """AC-Band's budget in multiples of the table's instances."""

    def main(self, families: Sequence[str]) -> list[Job]:
        """Return the jobs of Tables 1 and 2 of the paper (and of its figures)."""
        jobs = []
        for family in families:
            for number, alpha in enumerate(self.alphas):
                setting = Setting(alpha, self.delta, self.ks, self.etas, self.times)
                for method in build(family, setting):
                    if hasattr(method, "alpha"):
                        jobs += self._jobs(method, alpha, family)
                    elif number == 0:  # once for all α
                        jobs += self._jobs(method, None, family)
        return jobs

    def car(self) -> list[Job]:
        """Return the jobs of Table 3: AC-Band with as many configurations (N) as CAR++ draws."""
        # Only now: numba takes a second to import, and other commands do without.
        from acband_configspace.benchmark.methods.capsandruns import CapsAndRuns

        jobs = self.main(("icar", "car++", "car"))
        for alpha in self.alphas:
            n = CapsAndRuns(alpha=alpha, zeta=self.delta).pool_size()
            for k in self.ks:
                method = ACBand(k, alpha, self.delta, n_candidates=n, times=self.times)
                jobs += self._jobs(method, alpha, "acband")
        return jobs

    def hyperband(self) -> list[Job]:
        """Return the jobs of Table 4: AC-Band with the configurations of Hyperband (η = 8)."""
        jobs = []
        for eta in self.etas:
            jobs += self._jobs(Hyperband(eta, times=self.times), None, "hyperband")
        n = sum(Hyperband(TABLE_4_ETA).brackets(self.table.n_configs))
        for k in self.ks:
            jobs += self._jobs(ACBand(k, n_candidates=n, times=self.times), None, "acband")
        return jobs

    def _jobs(self, method: Method, alpha: float | None, family: str) -> list[Job]:
        fitted = fit_to(self.table, method)
        return [Job(fitted, alpha, seed, family, fitted is not method) for seed in self.seeds]


def fit_to(table: RuntimeTable, method: Method) -> Method:
    """Lower AC-Band's N where its epochs would draw or race more than the table has.

    The other methods see to it themselves.
    """
    if not isinstance(method, ACBand):
        return method

    def fits(n: int | None) -> bool:
        names = ("k", "alpha", "delta", "n_epochs")
        options: dict[str, Any] = {name: getattr(method, name) for name in names}
        options["n_candidates"] = n
        enough = Schedule.minimum_budget(**options) <= method.times * table.n_instances
        return enough and Schedule.plan(10**9, **options).n_configs < table.n_configs

    if fits(method.n_candidates):
        return method
    return replace(method, n_candidates=last_true(fits, 1, table.n_configs))


def run_jobs(table: RuntimeTable, jobs: Sequence[Job], *, workers: int, title: str) -> list[Row]:
    """Run the jobs, the slow ones first; return their rows in the order of the jobs."""
    slow = {family: place for place, family in enumerate(SLOW_FIRST)}
    order = sorted(
        range(len(jobs)), key=lambda i: (slow.get(jobs[i].family, 99), jobs[i].alpha or 0)
    )
    rows = on_table(table, _row, [jobs[i] for i in order], workers=workers, title=title)
    return [row for _, row in sorted(zip(order, rows, strict=True), key=itemgetter(0))]


def _row(table: RuntimeTable, job: Job) -> Row:
    start = time.process_time()
    result = job.method.run(table, job.seed)
    computing = time.process_time() - start
    repeated = result.cpu_time_with_repeats
    return Row(
        method=job.method.name,
        family=job.family,
        alpha=job.alpha,
        seed=job.seed,
        cpu_time=result.cpu_time,
        cpu_time_with_repeats=result.cpu_time if repeated is None else repeated,
        wall_time=result.wall_time,
        gap=table.gap_to_best(result.incumbent),
        subset_gap=table.gap_to_subset_best(result.incumbent, result.configurations),
        r_delta=table.capped_mean_runtime(result.incumbent),
        n_configs=result.n_configs,
        n_instances=result.n_instances,
        computing=computing,
    )
