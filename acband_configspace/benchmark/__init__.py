"""Experiments on runtime tables: AC-Band by table look-up, in milliseconds.

``python -m acband_configspace.benchmark --help`` lists the experiments.
"""

from acband_configspace.benchmark.loaders import load_shipped, load_table
from acband_configspace.benchmark.simulation import SimulationResult, simulate
from acband_configspace.benchmark.tables import RuntimeTable, synthetic_table

__all__ = [
    "RuntimeTable",
    "SimulationResult",
    "load_shipped",
    "load_table",
    "simulate",
    "synthetic_table",
]
