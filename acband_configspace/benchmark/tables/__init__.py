"""Runtime tables, made up or read from files: a row per configuration, a column per instance."""

from acband_configspace.benchmark.tables.loaders import load_shipped, load_table, save_npz
from acband_configspace.benchmark.tables.made_up import family_table, noisy_table, synthetic_table
from acband_configspace.benchmark.tables.runtime_table import RuntimeTable, TableError
from acband_configspace.benchmark.tables.sources import open_table

__all__ = [
    "RuntimeTable",
    "TableError",
    "family_table",
    "load_shipped",
    "load_table",
    "noisy_table",
    "open_table",
    "save_npz",
    "synthetic_table",
]
