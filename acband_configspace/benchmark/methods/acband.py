"""AC-Band itself behind the interfaces of the methods."""

from __future__ import annotations

from dataclasses import dataclass

from acband_configspace.benchmark.methods.anytime import AnytimeResult
from acband_configspace.benchmark.methods.method import MethodResult
from acband_configspace.benchmark.simulated_run import simulate_run
from acband_configspace.benchmark.simulation import simulate
from acband_configspace.benchmark.tables import RuntimeTable


@dataclass(frozen=True)
class ACBand:
    """AC-Band with the paper's rules (Brandt et al., 2023): every race of the budget is run.

    The budget is the number of instances of the table, as in the paper's experiments, or, for
    tables with few instances, so many ``times`` that: groups then share instances.
    """

    k: int = 2
    alpha: float = 0.05
    delta: float = 0.05
    n_candidates: int | None = None
    times: int = 1
    early_stopping: float | None = None
    n_epochs: int | None = None

    @property
    def name(self) -> str:
        """As the paper's tables call it."""
        stopping = "" if self.early_stopping is None else f", stop {self.early_stopping:g}"
        epochs = "" if self.n_epochs is None else f", epochs {self.n_epochs}"
        return f"AC-Band k={self.k}{stopping}{epochs}"

    def run(self, table: RuntimeTable, seed: int) -> MethodResult:
        """Simulate the run."""
        result = simulate(
            table,
            k=self.k,
            alpha=self.alpha,
            delta=self.delta,
            n_candidates=self.n_candidates,
            budget=self.times * table.n_instances,
            reuse=self.times > 1,
            early_stopping=self.early_stopping,
            n_epochs=self.n_epochs,
            seed=seed,
        )
        return MethodResult(
            result.incumbent,
            result.cpu_time,
            result.wall_time,
            result.n_configs,
            min(result.n_instances, table.n_instances),
            result.configurations,
        )


@dataclass(frozen=True)
class AnytimeACBand:
    """What the facade would return within the limit: by default, or with a preset's settings."""

    preset: str = "default"

    @property
    def name(self) -> str:
        """With its preset."""
        return "AC-Band" if self.preset == "default" else f"AC-Band, {self.preset}"

    def run(
        self,
        table: RuntimeTable,
        *,
        cpu_limit: float | None = None,
        n_trials: int | None = None,
        seed: int = 0,
    ) -> AnytimeResult:
        """Simulate the run."""
        result = simulate_run(
            table, cpu_limit=cpu_limit, n_trials=n_trials, seed=seed, preset=self.preset
        )
        return AnytimeResult(
            incumbent=result.incumbent,
            cpu_time=result.cpu_time,
            n_trials=result.n_trials,
            n_configs=result.n_configs,
            trajectory=tuple(result.trajectory),
        )
