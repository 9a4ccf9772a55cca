"""SMAC's own facades on a surrogate of a recorded table, in the real space."""

from __future__ import annotations

import tempfile
import warnings
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from ConfigSpace import Configuration

from acband_configspace.benchmark.methods.space import Found, Runs
from acband_configspace.benchmark.tables.surrogate import Surrogate

#: More trials than any CPU time allows here: that is what ends the search.
NO_LIMIT = 10**6
#: What a run that was stopped costs, in multiples of the time that it had.
LOST = 1.01


@dataclass(frozen=True)
class Smac:
    """SMAC 2's AlgorithmConfigurationFacade or HyperbandFacade, otherwise with its defaults.

    ``ac`` has SMAC's random-forest model and starts from the default configuration; ``capped``
    turns on its adaptive capping, which is off by default. Hyperband's fidelity is the number of
    instances, whose mean is the cost. The cost of a run is its time.
    """

    facade: Literal["ac", "hyperband"] = "ac"
    capped: bool = False

    def __post_init__(self) -> None:
        if self.facade not in ("ac", "hyperband"):
            raise ValueError(f"facade must be 'ac' or 'hyperband' but got {self.facade!r}")
        if self.capped and self.facade != "ac":
            raise ValueError("capped must be False for Hyperband, which SMAC does not cap")

    @property
    def name(self) -> str:
        """With the facade."""
        name = "SMAC AC" if self.facade == "ac" else "SMAC Hyperband"
        return f"{name}, capped" if self.capped else name

    def run(self, surrogate: Surrogate, *, cpu_limit: float, seed: int) -> Found:
        """Ask SMAC and tell it, in a folder that is removed afterwards."""
        from smac.runhistory import TrialValue

        runs = Runs(surrogate, cpu_limit=cpu_limit, seed=seed)
        with tempfile.TemporaryDirectory() as folder:
            smac = self._facade(surrogate, seed, folder)
            while not runs.is_over:
                trial = smac.ask()
                if self.facade == "ac":
                    limit = (trial.additional_info or {}).get("cutoff", np.inf)
                    seconds, ends = runs.run(trial.config, int(trial.instance), limit=limit)
                    # SMAC takes who costs as much as the incumbent for undecided, and goes on.
                    cost = seconds if ends else LOST * seconds
                else:
                    instances = range(max(1, int(trial.budget)))
                    before = runs.cpu_time
                    cost = float(np.mean([runs.run(trial.config, i)[0] for i in instances]))
                    seconds = runs.cpu_time - before
                smac.tell(trial, TrialValue(cost=cost, time=seconds), save=False)
            incumbent = smac.intensifier.get_incumbent()
        assert isinstance(incumbent, Configuration)
        return runs.found(incumbent)

    def _facade(self, surrogate: Surrogate, seed: int, folder: str) -> Any:
        from smac import AlgorithmConfigurationFacade, HyperbandFacade, Scenario

        n_instances = surrogate.table.n_instances
        common: dict[str, Any] = {
            "output_directory": folder, "seed": seed, "n_trials": NO_LIMIT, "deterministic": True,
        }  # fmt: skip
        if self.facade == "ac":
            # No features: a table knows none, and marginalising over them takes SMAC minutes.
            common["instances"] = [str(i) for i in range(n_instances)]
            common["adaptive_capping"] = self.capped
        else:
            common |= {"min_budget": 1, "max_budget": n_instances}
        facade: Any = AlgorithmConfigurationFacade if self.facade == "ac" else HyperbandFacade
        scenario = Scenario(surrogate.space, **common)

        target = _never_capped if self.capped else _never if self.facade == "ac" else _never_on
        with warnings.catch_warnings():  # that a model without features learns less: see above
            warnings.simplefilter("ignore")
            return facade(scenario, target, overwrite=True, logging_level=False)


# SMAC insists on the arguments of a target, though in ask and tell it runs nothing.
def _never(config: Any, instance: str, seed: int) -> float:
    raise NotImplementedError


def _never_capped(config: Any, instance: str, seed: int, cutoff: float) -> float:
    raise NotImplementedError


def _never_on(config: Any, seed: int, budget: float) -> float:
    raise NotImplementedError
