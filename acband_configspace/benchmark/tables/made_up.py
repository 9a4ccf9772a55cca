"""Made-up tables, the same for the same seed: what is best in them is known, and so is why."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from acband_configspace.benchmark.tables.runtime_table import RuntimeTable
from acband_configspace.core.checks import real_number, whole_number
from acband_configspace.core.statistics import Floats

#: Logarithms beyond this, up or down, have no exponential in single precision.
LARGEST_LOG = 80.0


def synthetic_table(
    n_configs: int = 948,
    n_instances: int = 20118,
    *,
    cutoff: float = 900.0,
    spread: float = 0.6,
    noise: float = 1.0,
    tails: float = np.inf,
    seed: int = 0,
) -> RuntimeTable:
    """Make up heavy-tailed run times of configurations that differ by a factor everywhere.

    log runtime = difficulty of the instance + slowness of the configuration + how the two get on
    with each other. The default shape is that of the paper's SAT data; the numbers are invented.

    Parameters
    ----------
    spread
        Standard deviation of the slowness.
    noise
        Standard deviation of how an instance and a configuration get on with each other.
    tails
        Degrees of freedom of that last term (Student's t): the fewer, the heavier its tails.
    """
    _check(n_configs, n_instances, spread=spread, noise=noise, tails=tails)
    rng = np.random.default_rng(seed)
    difficulty = rng.standard_normal(n_instances, dtype=np.float32) * 2.0
    slowness = rng.gamma(2.0, spread / np.sqrt(2.0), n_configs).astype(np.float32)
    return RuntimeTable(_runtimes(rng, slowness, difficulty, noise, tails, cutoff), cutoff)


def family_table(
    n_configs: int = 1000,
    n_instances: int = 20000,
    *,
    cutoff: float = 900.0,
    n_families: int = 6,
    spread: float = 0.7,
    noise: float = 1.0,
    tails: float = 4.0,
    seed: int = 0,
) -> RuntimeTable:
    """Make up run times of which no configuration has the best everywhere.

    Instances come in families of unequal sizes and difficulties. A configuration's slowness
    differs from family to family, and runtimes scatter around it with tails heavier than
    log-normal. Winning often and being fast on average are then not the same: a family of few but
    hard instances makes the mean. ``spread``, ``noise`` and ``tails`` are those of
    :func:`synthetic_table`.
    """
    _check(n_configs, n_instances, spread=spread, noise=noise, tails=tails)
    whole_number("n_families", n_families, at_least=1)
    rng = np.random.default_rng([seed, 1])
    sizes = rng.dirichlet(np.full(n_families, 2.0))
    family = rng.choice(n_families, n_instances, p=sizes)
    hardness = rng.normal(1.0, 1.5, n_families)
    difficulty = (hardness[family] + rng.normal(0.0, 1.0, n_instances)).astype(np.float32)
    overall = rng.gamma(2.0, spread / 2.0, (n_configs, 1))
    slowness = (overall + rng.normal(0.0, spread / 2.0, (n_configs, n_families))).astype(np.float32)
    runtimes = _runtimes(rng, slowness, difficulty, noise, tails, cutoff, family)
    return RuntimeTable(runtimes, cutoff)


def noisy_table(
    n_configs: int = 2000, n_instances: int = 100, *, noise: float = 1.0, seed: int = 0
) -> RuntimeTable:
    """Make up costs that are not run times: cost = configuration + instance + noise.

    All three are normal, the first two with a standard deviation of 1, the third with ``noise``.
    The costs are shifted so that the lowest is 0, and the cutoff lies above all of them.
    """
    _check(n_configs, n_instances, noise=noise)
    rng = np.random.default_rng([seed, 2])
    costs = noise * rng.standard_normal((n_configs, n_instances), dtype=np.float32)
    costs += rng.standard_normal((n_configs, 1), dtype=np.float32)
    costs += rng.standard_normal(n_instances, dtype=np.float32)
    costs -= costs.min()
    return RuntimeTable(costs, float(costs.max()) + 1.0)


def _runtimes(
    rng: np.random.Generator,
    slowness: Floats,
    difficulty: Floats,
    noise: float,
    tails: float,
    cutoff: float,
    family: npt.NDArray[np.int64] | None = None,
) -> Floats:
    """Return run times, a row at a time: no array but the result is as large as the table.

    They scatter as Student's t with ``tails`` degrees of freedom; normally if these are infinite.
    """
    runtimes = np.empty((len(slowness), len(difficulty)), dtype=np.float32)
    for row, slow in zip(runtimes, slowness, strict=True):
        rng.standard_normal(dtype=np.float32, out=row)
        if np.isfinite(tails):
            # t = z / sqrt(χ²/ν), where a χ² with ν degrees of freedom is twice a gamma(ν/2).
            shape = tails / 2.0
            row /= np.sqrt(rng.standard_gamma(shape, len(row), dtype=np.float32) / shape)
        row *= noise
        row += difficulty
        row += slow if family is None else slow[family]
        np.clip(row, -LARGEST_LOG, LARGEST_LOG, out=row)
        np.minimum(np.exp(row, out=row), cutoff, out=row)
    return runtimes


def _check(n_configs: int, n_instances: int, **options: float) -> None:
    whole_number("n_configs", n_configs, at_least=1)
    whole_number("n_instances", n_instances, at_least=1)
    for name, value in options.items():
        if not real_number(name, value) >= 0:
            raise ValueError(f"{name} must not be negative but got {value!r}")
