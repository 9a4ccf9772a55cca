"""Made-up tables, the same for the same seed: what is best in them is known, and so is why."""

from __future__ import annotations

import numpy as np

from acband_configspace.benchmark.tables.runtime_table import RuntimeTable
from acband_configspace.core.checks import whole_number


def synthetic_table(
    n_configs: int = 948,
    n_instances: int = 20118,
    *,
    cutoff: float = 900.0,
    spread: float = 0.6,
    seed: int = 0,
) -> RuntimeTable:
    """Make a table up: heavy-tailed runtimes, the same for the same seed.

    log runtime = difficulty of the instance + slowness of the configuration (standard deviation
    ``spread``) + how the two get on with each other. The default shape is that of the paper's SAT
    data; the numbers are invented.
    """
    n_configs = whole_number("n_configs", n_configs, at_least=1)
    n_instances = whole_number("n_instances", n_instances, at_least=1)
    rng = np.random.default_rng(seed)
    difficulty = rng.standard_normal(n_instances, dtype=np.float32) * 2.0
    slowness = rng.gamma(2.0, spread / np.sqrt(2.0), n_configs).astype(np.float32)
    runtimes = np.empty((n_configs, n_instances), dtype=np.float32)
    for row, slow in zip(runtimes, slowness, strict=True):
        rng.standard_normal(dtype=np.float32, out=row)
        row += difficulty
        row += slow
        np.exp(row, out=row)
        np.minimum(row, cutoff, out=row)
    return RuntimeTable(runtimes, cutoff)


def family_table(
    n_configs: int = 1000,
    n_instances: int = 20000,
    *,
    cutoff: float = 900.0,
    n_families: int = 6,
    spread: float = 0.7,
    seed: int = 0,
) -> RuntimeTable:
    """Make a table up in which no configuration is best everywhere, the same for the same seed.

    Instances come in families of unequal sizes and difficulties. A configuration's slowness
    differs from family to family, and runtimes scatter around it with tails heavier than
    log-normal (Student's t with 4 degrees of freedom). Winning often and being fast on average
    are then not the same: a family of few but hard instances makes the mean.
    """
    n_configs = whole_number("n_configs", n_configs, at_least=1)
    n_instances = whole_number("n_instances", n_instances, at_least=1)
    n_families = whole_number("n_families", n_families, at_least=1)
    rng = np.random.default_rng([seed, 1])
    sizes = rng.dirichlet(np.full(n_families, 2.0))
    family = rng.choice(n_families, n_instances, p=sizes)
    hardness = rng.normal(1.0, 1.5, n_families)
    difficulty = (hardness[family] + rng.normal(0.0, 1.0, n_instances)).astype(np.float32)
    overall = rng.gamma(2.0, spread / 2.0, (n_configs, 1))
    slowness = (overall + rng.normal(0.0, spread / 2.0, (n_configs, n_families))).astype(np.float32)
    runtimes = np.empty((n_configs, n_instances), dtype=np.float32)
    for row, slow in zip(runtimes, slowness, strict=True):
        # t = z / sqrt(χ²/4): a χ² with 4 degrees of freedom is twice a gamma(2).
        rng.standard_normal(dtype=np.float32, out=row)
        row /= np.sqrt(rng.standard_gamma(2.0, n_instances, dtype=np.float32) / 2.0)
        row += difficulty
        row += slow[family]
        np.minimum(row, 80.0, out=row)  # exp would overflow
        np.exp(row, out=row)
        np.minimum(row, cutoff, out=row)
    return RuntimeTable(runtimes, cutoff)
