"""A small real run, for those who look at runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ConfigSpace import Categorical, ConfigurationSpace, EqualsCondition, Float
from smac import Scenario

from acband_configspace import ACBandFacade


def cost(config: Mapping[str, Any], seed: int = 0) -> float:
    if config["x"] > 6:
        raise RuntimeError("too much <b>x</b>")
    return config["x"] + (seed % 7) / 10


def make_space() -> ConfigurationSpace:
    space = ConfigurationSpace()
    mode = Categorical("mode", ["plain", "fancy"], default="plain")
    extra = Float("extra", (0.0, 1.0), default=0.5)
    space.add(mode, extra, Float("x", (0.0, 10.0), default=5.0))
    space.add(EqualsCondition(extra, mode, "fancy"))
    return space


def make_run(
    folder: Path,
    *,
    target: Callable[..., Any] = cost,
    space: ConfigurationSpace | None = None,
    **options: Any,
) -> ACBandFacade:
    """Run AC-Band to its end and return the facade."""
    settings: dict[str, Any] = {
        name: options.pop(name) for name in ("n_trials", "crash_cost") if name in options
    }
    settings = {"n_trials": 300, "seed": 3, "output_directory": folder, **settings}
    scenario = Scenario(space or make_space(), **settings)
    facade = ACBandFacade(scenario, target, logging_level=False, progress=False, **options)
    facade.optimize()
    return facade
