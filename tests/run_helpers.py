"""A small real run, for those who look at runs."""

from __future__ import annotations

from ConfigSpace import Categorical, ConfigurationSpace, EqualsCondition, Float
from smac import Scenario

from acband_configspace import ACBandFacade


def cost(config, seed=0):
    if config["x"] > 6:
        raise RuntimeError("too much <b>x</b>")
    return config["x"] + (seed % 7) / 10


def make_space():
    space = ConfigurationSpace()
    mode = Categorical("mode", ["plain", "fancy"], default="plain")
    extra = Float("extra", (0.0, 1.0), default=0.5)
    space.add(mode, extra, Float("x", (0.0, 10.0), default=5.0))
    space.add(EqualsCondition(extra, mode, "fancy"))
    return space


def make_run(folder, *, n_trials=300, **options):
    """Run AC-Band to its end and return the facade."""
    scenario = Scenario(make_space(), n_trials=n_trials, seed=3, output_directory=folder)
    facade = ACBandFacade(scenario, cost, logging_level=False, progress=False, **options)
    facade.optimize()
    return facade
