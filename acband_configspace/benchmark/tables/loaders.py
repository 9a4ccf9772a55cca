"""Reads and writes runtime tables: our own ``.npz``, and the forms that others publish.

=====================  ==========================================================================
``.npz``               our own: runtimes, cutoff, names, values, the space and provenance
``.npy``               a matrix of configurations × instances, memory-mapped
``.dump``              a pickled dict from a configuration's arguments to its list of runtimes
a folder               an ASlib scenario: ``description.txt`` and ``algorithm_runs.arff``
=====================  ==========================================================================
"""

from __future__ import annotations

import gzip
import json
import os
import pickle
import zipfile
import zlib
from importlib import resources
from pathlib import Path
from typing import IO, Any, NoReturn

import numpy as np

from acband_configspace.benchmark.tables.aslib import load_aslib
from acband_configspace.benchmark.tables.runtime_table import RuntimeTable, TableError

#: Seconds after which a run was stopped, in the tables of the paper's experiments.
PAPER_CUTOFF = 900.0
SHIPPED = ("minisat", "clasp", "highs")


def load_table(path: str | os.PathLike[str], *, cutoff: float | None = None) -> RuntimeTable:
    """Load a table, by the ending of its file: .npz, .npy, .dump, .dump.gz, or an ASlib folder.

    ``cutoff`` is needed where the file does not say it (900 s, as in the paper, if not given) and
    lowers it where it does.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    TableError
        If it is damaged, or not a table.
    """
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"there is no runtime table {path}")
    if path.is_dir():
        return load_aslib(path, cutoff=cutoff)
    if path.suffix == ".npz":
        return load_npz(path, cutoff=cutoff)
    if path.suffix == ".npy":
        return load_npy(path, cutoff=PAPER_CUTOFF if cutoff is None else cutoff)
    if path.name.endswith((".dump", ".dump.gz", ".pkl", ".pickle")):
        return load_measurements(path, cutoff=PAPER_CUTOFF if cutoff is None else cutoff)
    raise TableError(
        f"{path} must be .npz, .npy, .dump or an ASlib folder but ends in {path.suffix!r}"
    )


def load_shipped(name: str = "minisat", *, cutoff: float | None = None) -> RuntimeTable:
    """Load a table that comes with this package: real runs, recorded by its ``record`` command."""
    if name not in SHIPPED:
        raise ValueError(f"name must be one of {', '.join(SHIPPED)} but got {name!r}")
    folder = resources.files("acband_configspace.benchmark.tables") / "data"
    with resources.as_file(folder / f"{name}.npz") as path:
        return load_npz(path, cutoff=cutoff)


def load_npy(path: str | os.PathLike[str], *, cutoff: float = PAPER_CUTOFF) -> RuntimeTable:
    """Map a matrix of configurations × instances into memory; it is read as it is needed."""
    try:
        runtimes = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError, OSError) as error:
        _refuse(path, error)
    return _table(path, runtimes, cutoff)


def load_npz(path: str | os.PathLike[str], *, cutoff: float | None = None) -> RuntimeTable:
    """Load a table that :func:`save_npz` or the command ``record`` wrote.

    The arrays ``runtimes`` and ``cutoff`` are enough; names and provenance may be missing.
    """
    try:
        with np.load(path, allow_pickle=False) as stored:
            if missing := {"runtimes", "cutoff"} - set(stored.files):
                raise TableError(f"{path} has no array {' and no array '.join(sorted(missing))}")
            runtimes, own_cutoff = stored["runtimes"], float(stored["cutoff"])
            names = {
                key: tuple(map(str, stored[key]))
                for key in ("config_names", "instance_names")
                if key in stored.files
            }
            said = {
                key: json.loads(str(stored[key]))
                for key in ("provenance", "config_values", "space")
                if key in stored.files
            }
    except TableError:
        raise
    except (ValueError, TypeError, EOFError, OSError, zipfile.BadZipFile, zlib.error) as error:
        _refuse(path, error)
    lowest = own_cutoff if cutoff is None else min(cutoff, own_cutoff)
    if runtimes.dtype == np.float16:  # small to store, slow to compute with
        runtimes = runtimes.astype(np.float32)
    said["config_values"] = tuple(said.get("config_values", ()))
    return _table(path, runtimes, lowest, **names, **said)


def save_npz(path: str | os.PathLike[str], table: RuntimeTable) -> None:
    """Write a table with all that is known of it, as single-precision numbers."""
    np.savez_compressed(
        path,
        runtimes=np.asarray(table.runtimes, dtype=np.float32),
        cutoff=table.cutoff,
        config_names=np.array(table.config_names, dtype=str),
        instance_names=np.array(table.instance_names, dtype=str),
        provenance=json.dumps(dict(table.provenance)),
        config_values=json.dumps([dict(values) for values in table.config_values]),
        space=json.dumps(table.space),
    )


def load_measurements(
    path: str | os.PathLike[str], *, cutoff: float = PAPER_CUTOFF
) -> RuntimeTable:
    """Load ``measurements.dump`` of Weisz et al. (2018): a pickle, read without running any of it.

    Rows are in the order of the sorted arguments, as in the experiments of that line of work.
    """
    path = Path(path)
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            content = _PlainUnpickler(file, encoding="latin1").load()
    except TableError:
        raise
    except Exception as error:  # a damaged pickle may raise anything
        _refuse(path, error)
    if not isinstance(content, dict) or not content:
        raise TableError(f"{path} must hold a dict of runtimes but holds {type(content).__name__}")
    names = sorted(content, key=lambda key: (str(type(key)), key))
    lengths = {len(row) if isinstance(row, (list, tuple)) else -1 for row in content.values()}
    if -1 in lengths or len(lengths) > 1:
        raise TableError(f"{path} must hold lists of runtimes of one length but has {lengths}")
    try:
        runtimes = np.array([content.pop(name) for name in names], dtype=np.float64)
    except (TypeError, ValueError) as error:
        _refuse(path, error)
    return _table(path, runtimes, cutoff, config_names=tuple(map(str, names)))


class _PlainUnpickler(pickle.Unpickler):
    """Admits dicts, lists, tuples, strings and numbers: a pickle that names code is refused."""

    def find_class(self, module_name: str, global_name: str) -> NoReturn:
        raise TableError(
            f"the pickle asks for {module_name}.{global_name}; only plain data is loaded, as "
            "pickles can run any code"
        )

    def persistent_load(self, pid: Any) -> NoReturn:
        raise TableError(f"the pickle refers to something outside of it: {pid!r}")


def _table(
    path: str | os.PathLike[str], runtimes: Any, cutoff: float, **known: Any
) -> RuntimeTable:
    try:
        return RuntimeTable(runtimes, cutoff, **known)
    except (TypeError, ValueError) as error:
        raise TableError(f"{path}: {error}") from error


def _refuse(path: str | os.PathLike[str] | IO[bytes], error: Exception) -> NoReturn:
    raise TableError(f"{path} is damaged or not a runtime table: {error}") from error
