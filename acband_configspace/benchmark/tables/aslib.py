"""Reads the runtimes of an ASlib scenario (Bischl et al., 2016): algorithms × instances."""

from __future__ import annotations

import csv
import os
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from acband_configspace.benchmark.tables.runtime_table import RuntimeTable, TableError


def load_aslib(folder: str | os.PathLike[str], *, cutoff: float | None = None) -> RuntimeTable:
    """Load a scenario folder; repeated runs are averaged, runs that failed count as the cutoff.

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
            raise FileNotFoundError(f"{folder} is no ASlib scenario: it has no {name}")
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
