"""Tables that the tests of methods run on."""

from __future__ import annotations

import numpy as np

from acband_configspace.benchmark.tables import RuntimeTable


def constant_table(*seconds: float, n_instances: int = 50, cutoff: float = 900.0) -> RuntimeTable:
    """Return a table in which a configuration takes the same time on every instance."""
    return RuntimeTable(np.repeat(np.array(seconds)[:, None], n_instances, axis=1), cutoff)
