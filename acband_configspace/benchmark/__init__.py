"""Experiments on runtime tables: AC-Band and its rivals by table look-up, in milliseconds.

``python -m acband_configspace.benchmark --help`` lists the experiments.

==================  =========================================================================
``tables``          runtime tables: shipped, read, made up, and surrogates of recorded ones
``simulation``      AC-Band on a table: the paper's, and what the facade would do
``methods``         AC-Band and its rivals behind one interface
``commands``        the experiments; ``recording`` makes tables of real solvers
==================  =========================================================================
"""

from acband_configspace.benchmark.simulation import (
    SimulatedRun,
    SimulationResult,
    simulate,
    simulate_run,
)
from acband_configspace.benchmark.tables import (
    RuntimeTable,
    load_shipped,
    load_table,
    open_table,
    synthetic_table,
)

__all__ = [
    "RuntimeTable",
    "SimulatedRun",
    "SimulationResult",
    "load_shipped",
    "load_table",
    "open_table",
    "simulate",
    "simulate_run",
    "synthetic_table",
]
