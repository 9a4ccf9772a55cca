"""AC-Band's own search of a space, and methods that only draw from it, on a surrogate."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from ConfigSpace import Configuration

from acband_configspace.benchmark.methods.anytime import AnytimeMethod
from acband_configspace.benchmark.methods.space import Found
from acband_configspace.benchmark.simulated_run import Play
from acband_configspace.benchmark.tables.surrogate import Surrogate
from acband_configspace.core.engine import Engine, Limits
from acband_configspace.core.instances import Instances
from acband_configspace.core.settings import settings_from
from acband_configspace.smac_plugin.configurations import Configurations
from acband_configspace.smac_plugin.proposals import Learned

#: How many configurations those get that only draw: more than they can try in the time given.
N_SAMPLED = 2000
PAR = 10.0


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
        space, learned = surrogate.space, self.proposals == "learned"
        drawn = Configurations(
            space,
            [space.get_default_configuration()],
            seed=seed,
            proposals=Learned(space, seed=seed, racing=True) if learned else None,
        )
        names = [str(column) for column in range(surrogate.table.n_instances)]
        engine = Engine(
            settings_from("default", proposals=self.proposals),
            racing=True,
            instances=Instances(names, deterministic=True, seed=seed),
            draw=drawn.draw,
            limits=Limits(math.inf, True),
            n_given=drawn.n_given,
            seed=seed,
        )
        asked: Any = _AskedTable(surrogate, drawn)
        result = Play(asked, engine, range(10**9), True, PAR, None).to_the_end(cpu_limit)
        return Found(drawn[result.incumbent], result.cpu_time, result.n_configs, result.n_trials)


class _AskedTable:
    """Looks like a table whose row i is the configuration that was drawn as number i."""

    def __init__(self, surrogate: Surrogate, drawn: Configurations) -> None:
        self.cutoff = surrogate.table.cutoff
        self._surrogate = surrogate
        self._drawn = drawn

    @property
    def runtimes(self) -> _AskedTable:
        return self

    def __getitem__(self, place: tuple[int, int]) -> float:
        return float(self._surrogate.runtimes(self._drawn[place[0]])[place[1]])


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
