"""AC-Band itself: by the paper's rules, as the facade runs it, and searching a space."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass

from acband_configspace.benchmark.methods.method import AnytimeMethod, MethodResult, Spending
from acband_configspace.benchmark.methods.space import Found
from acband_configspace.benchmark.simulation import (
    Play,
    SimulatedRun,
    columns_as_instances,
    simulate,
    simulate_run,
)
from acband_configspace.benchmark.tables import RuntimeTable
from acband_configspace.benchmark.tables.surrogate import Surrogate
from acband_configspace.core.engine import Engine, Limits
from acband_configspace.core.settings import settings_from


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
    n_epochs: int | None = None

    @property
    def name(self) -> str:
        """As the paper's tables call it."""
        epochs = "" if self.n_epochs is None else f", epochs {self.n_epochs}"
        return f"AC-Band k={self.k}{epochs}"

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
class AnytimeACBand(AnytimeMethod):
    """What the facade would return within the limit: by default, or with a preset's settings."""

    preset: str = "default"

    @property
    def name(self) -> str:
        """With its preset."""
        return "AC-Band" if self.preset == "default" else f"AC-Band, {self.preset}"

    def _search(self, table: RuntimeTable, spending: Spending, seed: int) -> SimulatedRun:
        """Simulate the run, which keeps its own books."""
        return simulate_run(
            table,
            cpu_limit=spending.cpu_limit,
            n_trials=spending.most_trials,
            seed=seed,
            preset=self.preset,
        )


@dataclass(frozen=True)
class ACBandOnSpace:
    """What the facade would return with races, from the plugin's own engine and configurations."""

    proposals: str = "uniform"
    """As in the facade: "uniform" or "learned"."""

    @property
    def name(self) -> str:
        """With its proposals."""
        return "AC-Band" if self.proposals == "uniform" else f"AC-Band, {self.proposals}"

    def run(self, surrogate: Surrogate, *, cpu_limit: float, seed: int) -> Found:
        """Simulate the run; the default configuration is θ_0."""
        # Only now: SMAC, which they know, takes seconds to import.
        from acband_configspace.smac_plugin.configurations import Configurations
        from acband_configspace.smac_plugin.proposals import Learned

        space, learned = surrogate.space, self.proposals == "learned"
        drawn = Configurations(
            space,
            [space.get_default_configuration()],
            seed=seed,
            proposals=Learned(space, seed=seed, racing=True) if learned else None,
        )
        engine = Engine(
            settings_from("default", proposals=self.proposals),
            racing=True,
            instances=columns_as_instances(surrogate.table, seed),
            draw=drawn.draw,
            limits=Limits(math.inf, True),
            n_given=drawn.n_given,
            seed=seed,
        )
        play = Play(
            engine,
            range(sys.maxsize),  # the surrogate is asked for configurations by their numbers
            lambda number, column: float(surrogate.runtimes(drawn[number])[column]),
            cutoff=surrogate.table.cutoff,
            racing=True,
        )
        result = play.to_the_end(cpu_limit)
        return Found(drawn[result.incumbent], result.cpu_time, result.n_configs, result.n_trials)
