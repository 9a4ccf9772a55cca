"""Reads and writes runtime tables: our own ``.npz``, and the forms that others publish.

=====================  ==========================================================================
``.npz``               our own: runtimes, cutoff, names, values, the space and provenance
``.npy``               a matrix of configurations × instances, memory-mapped
``.dump``              a pickled dict from a configuration's arguments to its list of runtimes
a folder               an ASlib scenario: ``description.txt`` and ``algorithm_runs.arff``
=====================  ==========================================================================
"""

from __future__ import annotations

import csv
import gzip
import json
import os
import pickle
import re
import zipfile
import zlib
from collections import defaultdict
from collections.abc import Iterator, Mapping
from importlib import resources
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import yaml

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


def _refuse(path: str | os.PathLike[str], error: Exception) -> NoReturn:
    raise TableError(f"{path} is damaged or not a runtime table: {error}") from error


def load_aslib(folder: str | os.PathLike[str], *, cutoff: float | None = None) -> RuntimeTable:
    """Load an ASlib scenario (Bischl et al., 2016): algorithms × instances.

    Repeated runs are averaged, runs that failed count as the cutoff.

    Raises
    ------
    FileNotFoundError
        If description.txt or algorithm_runs.arff is missing.
    TableError
        If the scenario does not measure runtime, or runs are missing.
    """
    folder = Path(folder)
    for name in ("description.txt", "algorithm_runs.arff"):
        if not (folder / name).is_file():
            raise FileNotFoundError(f"{folder} is not an ASlib scenario: it has no {name}")
    described = _description(folder / "description.txt")
    own_cutoff = _cutoff(folder, described, cutoff)
    measure = _measure(folder, described)
    runs: dict[tuple[str, str], list[float]] = defaultdict(list)
    for run in _rows(folder / "algorithm_runs.arff"):
        if measure not in run:
            raise TableError(f"{folder}/algorithm_runs.arff has no column {measure!r}")
        # ASlib writes "ok" for a solved instance, and a question mark for a missing value.
        solved = run["runstatus"].lower() == "ok" and run[measure] != "?"
        seconds = float(run[measure]) if solved else own_cutoff
        runs[run["algorithm"], run["instance_id"]].append(min(seconds, own_cutoff))
    if not runs:
        raise TableError(f"{folder}/algorithm_runs.arff has no runs")
    algorithms = sorted({algorithm for algorithm, _ in runs})
    instances = sorted({instance for _, instance in runs})
    missing = [(a, i) for a in algorithms for i in instances if (a, i) not in runs]
    if missing:
        raise TableError(
            f"{folder}/algorithm_runs.arff lacks {len(missing)} of the runs, the first of them "
            f"{missing[0][0]} on {missing[0][1]}: it may be truncated"
        )
    runtimes = np.array([[np.mean(runs[a, i]) for i in instances] for a in algorithms])
    provenance = {"aslib_scenario": str(described.get("scenario_id", folder.name))}
    return RuntimeTable(runtimes, own_cutoff, tuple(algorithms), tuple(instances), provenance)


def _description(path: Path) -> Mapping[str, Any]:
    # Old scenarios write a bare question mark for "not known", which YAML does not allow.
    text = re.sub(r":\s*\?\s*$", ": null", path.read_text(), flags=re.MULTILINE)
    try:
        described = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise TableError(f"{path} is not YAML: {error}") from error
    if not isinstance(described, Mapping):
        raise TableError(f"{path} must hold names with values but holds {described!r:.60}")
    return described


def _cutoff(folder: Path, described: Mapping[str, Any], cutoff: float | None) -> float:
    try:
        own = float(described.get("algorithm_cutoff_time"))  # type: ignore[arg-type]
    except (TypeError, ValueError):  # missing, null or '?'
        own = np.inf
    own = own if cutoff is None else min(own, cutoff)
    if not np.isfinite(own):
        raise TableError(f"{folder}/description.txt states no algorithm_cutoff_time: give a cutoff")
    return own


def _measure(folder: Path, described: Mapping[str, Any]) -> str:
    kind = _first(described.get("performance_type"))
    if kind != "runtime":
        raise TableError(f"{folder} measures {kind}, not runtime")
    return _first(described.get("performance_measures")).lower()


def _first(value: Any) -> str:
    """Return the first of a list, or the only value; a scenario that says nothing has runtimes."""
    if isinstance(value, list):
        value = value[0] if value else None
    return str(value or "runtime")


def _rows(path: Path) -> Iterator[dict[str, str]]:
    """Yield the rows of an ARFF file by the names of its attributes."""
    names: list[str] = []
    with path.open(newline="") as file:
        for line in file:
            lowered = line.strip().lower()
            if lowered.startswith("@attribute"):
                names.append(line.split()[1].strip("'\"").lower())
            elif lowered.startswith("@data"):
                break
        else:
            raise TableError(f"{path} has no @data section: it may be truncated")
        if lost := {"instance_id", "algorithm", "runstatus"} - set(names):
            raise TableError(f"{path} has no attribute {', '.join(sorted(lost))}")
        lines = (line for line in file if line.strip() and not line.lstrip().startswith("%"))
        for row in csv.reader(lines, quotechar="'", skipinitialspace=True):
            if len(row) != len(names):
                raise TableError(f"{path} has a row of {len(row)} values, not {len(names)}: {row}")
            yield dict(zip(names, (value.strip() for value in row), strict=True))
