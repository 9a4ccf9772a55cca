"""A small recorded table, made up, for tests of what searches a space."""

from __future__ import annotations

import numpy as np
import pytest
from ConfigSpace import Categorical, ConfigurationSpace, EqualsCondition, Float

from acband_configspace.benchmark.tables import RuntimeTable


@pytest.fixture(scope="session")
def small_space() -> ConfigurationSpace:
    space = ConfigurationSpace(seed=1)
    mode = Categorical("mode", ["slow", "fast"], default="slow")
    size, speed = Float("size", (1.0, 100.0), log=True, default=10.0), Float("speed", (0.0, 1.0))
    space.add(mode, size, speed)
    space.add(EqualsCondition(speed, mode, "fast"))
    return space


@pytest.fixture(scope="session")
def small_table(small_space: ConfigurationSpace) -> RuntimeTable:
    """Return runtimes that grow with the size, are shorter in mode "fast", and hardly scatter."""
    n_configs, n_instances = 80, 20
    rows = small_space.sample_configuration(n_configs)
    levels = np.array([row["size"] ** 0.5 / (1 + row.get("speed", -0.3)) for row in rows])
    scatter = np.random.default_rng(0).lognormal(0.0, 0.2, (n_configs, n_instances))
    return RuntimeTable(
        levels[:, None] * scatter,
        50.0,
        config_values=tuple(dict(row) for row in rows),
        space=small_space.to_serialized_dict(),
    )
