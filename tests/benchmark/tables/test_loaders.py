"""Loaders: each form is read as published, and what is wrong with a file is said."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ConfigSpace import Configuration

from acband_configspace.benchmark import RuntimeTable
from acband_configspace.benchmark.tables.loaders import (
    SHIPPED,
    load_measurements,
    load_npy,
    load_shipped,
    load_table,
    save_npz,
)
from acband_configspace.benchmark.tables.runtime_table import TableError
from acband_configspace.benchmark.tables.surrogate import Surrogate


class Hostile:
    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (os.environ["HOSTILE_FOLDER"],)


def test_own_form_keeps_everything(tmp_path: Path) -> None:
    table = RuntimeTable(
        np.array([[1.0, np.inf], [0.5, 2.0]]), 9.0, ("a", "b"), ("x", "y"), {"seed": 3}
    )
    save_npz(tmp_path / "t.npz", table)
    loaded = load_table(tmp_path / "t.npz")
    assert np.array_equal(loaded.runtimes, table.runtimes)
    assert (loaded.cutoff, loaded.config_names, loaded.instance_names, loaded.provenance) == (
        9.0,
        ("a", "b"),
        ("x", "y"),
        {"seed": 3},
    )
    assert load_table(tmp_path / "t.npz", cutoff=4.0).cutoff == 4.0
    assert load_table(tmp_path / "t.npz", cutoff=40.0).cutoff == 9.0


def test_names_may_be_missing_but_not_the_runtimes(tmp_path: Path) -> None:
    np.savez(tmp_path / "plain.npz", runtimes=np.ones((2, 3), dtype=np.float16), cutoff=5.0)
    assert load_table(tmp_path / "plain.npz").runtimes.dtype == np.float32
    np.savez(tmp_path / "other.npz", times=np.ones((2, 3)))
    with pytest.raises(TableError, match="has no array cutoff and no array runtimes"):
        load_table(tmp_path / "other.npz")


def test_a_matrix_is_mapped_not_read(tmp_path: Path) -> None:
    np.save(tmp_path / "t.npy", np.ones((3, 4)))
    table = load_table(tmp_path / "t.npy")
    assert isinstance(table.runtimes, np.memmap)
    assert table.cutoff == 900.0


@pytest.mark.parametrize("name", ["t.npy", "t.npz", "t.dump"])
def test_truncated_files_are_refused(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    if name.endswith("npy"):
        np.save(path, np.ones((30, 40)))
    elif name.endswith("npz"):
        save_npz(path, RuntimeTable(np.random.default_rng(0).random((30, 40)), 9.0))
    else:
        path.write_bytes(pickle.dumps({"a": [1.0] * 50}))
    path.write_bytes(path.read_bytes()[:-60])
    with pytest.raises(TableError, match="is damaged or not a runtime table"):
        load_table(path)


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.ones(3), "configurations × instances but got shape"),
        (np.ones((2, 0)), "configurations × instances but got shape"),
        (np.array([[1.0, np.nan]]), "got NaN"),
        (np.array([[1.0, -1.0]]), "must not be negative"),
        (np.array([["a"]]), "must be numbers"),
    ],
)
def test_wrong_matrices_are_refused(tmp_path: Path, array: np.ndarray, message: str) -> None:
    np.save(tmp_path / "t.npy", array)
    with pytest.raises(TableError, match=message):
        load_npy(tmp_path / "t.npy")


def test_missing_and_unknown_files(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="there is no runtime table"):
        load_table(tmp_path / "nothing.npz")
    (tmp_path / "t.txt").write_text("1 2")
    with pytest.raises(TableError, match="must be .npz, .npy, .dump or an ASlib folder"):
        load_table(tmp_path / "t.txt")


@pytest.mark.parametrize("protocol", [0, 2, 4])
def test_measurements_are_rows_by_sorted_arguments(tmp_path: Path, protocol: int) -> None:
    content = {"-b=2": [3.0, 4.0], "-a=1": [1, 2.5]}
    (tmp_path / "measurements.dump").write_bytes(pickle.dumps(content, protocol=protocol))
    table = load_table(tmp_path / "measurements.dump")
    assert table.runtimes.tolist() == [[1.0, 2.5], [3.0, 4.0]]
    assert (table.config_names, table.cutoff) == (("-a=1", "-b=2"), 900.0)


def test_a_hostile_pickle_is_refused_and_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOSTILE_FOLDER", str(tmp_path / "made"))
    path = tmp_path / "measurements.dump"
    path.write_bytes(pickle.dumps({"a": [1.0], "b": Hostile()}))
    with pytest.raises(TableError, match=r"asks for \w+\.mkdir; only plain data is loaded"):
        load_measurements(path)
    assert not (tmp_path / "made").exists()


def test_even_harmless_classes_are_refused(tmp_path: Path) -> None:
    (tmp_path / "m.dump").write_bytes(pickle.dumps({"a": np.float64(1.0)}))
    with pytest.raises(TableError, match="only plain data is loaded"):
        load_measurements(tmp_path / "m.dump")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([1.0], "must hold a dict of runtimes but holds list"),
        ({}, "must hold a dict"),
        ({"a": [1.0], "b": [1.0, 2.0]}, "of one length"),
        ({"a": 1.0}, "of one length"),
        ({"a": ["x"]}, "damaged or not a runtime table"),
        ({"a": [float("nan")]}, "got NaN"),
    ],
)
def test_pickles_of_something_else(tmp_path: Path, content: Any, message: str) -> None:
    (tmp_path / "m.dump").write_bytes(pickle.dumps(content))
    with pytest.raises(TableError, match=message):
        load_measurements(tmp_path / "m.dump")


DESCRIPTION = """scenario_id: TOY
performance_measures:
- runtime
performance_type:
- runtime
algorithm_cutoff_time: 10
"""
RUNS = """@RELATION ALGORITHM_RUNS_TOY
@ATTRIBUTE instance_id STRING
@ATTRIBUTE repetition NUMERIC
@ATTRIBUTE algorithm STRING
@ATTRIBUTE runtime NUMERIC
@ATTRIBUTE runstatus {ok, timeout, memout}
@DATA
% a comment
'in, one',1,B,2.0,ok
'in, one',2,B,4.0,ok
'in, one',1,A,1.0,ok
two,1,A,?,memout
two,1,B,99,timeout
"""


def scenario(folder: Path, description: Any = DESCRIPTION, runs: Any = RUNS) -> Any:
    (folder / "description.txt").write_text(description)
    (folder / "algorithm_runs.arff").write_text(runs)
    return folder


def test_aslib_repetitions_are_averaged_and_failures_count_as_the_cutoff(tmp_path: Path) -> None:
    table = load_table(scenario(tmp_path))
    assert (table.config_names, table.instance_names) == (("A", "B"), ("in, one", "two"))
    assert table.runtimes.tolist() == [[1.0, 10.0], [3.0, 10.0]]
    assert (table.cutoff, table.provenance) == (10.0, {"aslib_scenario": "TOY"})
    assert load_table(tmp_path, cutoff=3.0).runtimes.max() == 3.0


@pytest.mark.parametrize(
    ("description", "runs", "message"),
    [
        (DESCRIPTION, RUNS[: RUNS.index("two,1,B")], "lacks 1 of the runs.* B on two"),
        (DESCRIPTION, RUNS[: RUNS.index("@DATA")], "has no @data section"),
        (DESCRIPTION, RUNS[:-9], "a row of 4 values, not 5"),
        (DESCRIPTION, RUNS.replace("runstatus", "status"), "has no attribute runstatus"),
        (DESCRIPTION, RUNS[: RUNS.index("%")], "has no runs"),
        (DESCRIPTION.replace("cutoff_time: 10", "cutoff_time: ?"), RUNS, "give a cutoff"),
        (DESCRIPTION.replace("time: 10", "time: '?'"), RUNS, "give a cutoff"),
        (DESCRIPTION.replace("- runtime\nalg", "- solution_quality\nalg"), RUNS, "not runtime"),
        (DESCRIPTION.replace(": 10", ": [10"), RUNS, "description.txt is not YAML"),
        ("TOY", RUNS, "must hold names with values but holds 'TOY'"),
    ],
)
def test_aslib_errors(tmp_path: Path, description: Any, runs: Any, message: str) -> None:
    with pytest.raises(TableError, match=message):
        load_table(scenario(tmp_path, description, runs))


def test_aslib_files_may_be_missing(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="has no description.txt"):
        load_table(tmp_path)


@pytest.mark.parametrize("name", SHIPPED)
def test_a_shipped_table_is_a_recording_with_its_space(name: str) -> None:
    table = load_shipped(name)
    assert table.n_configs >= 150
    assert table.n_instances >= 75
    assert len(table.instance_names) == table.n_instances
    assert {"target", "version", "seed", "machine", "date", "cutoff"} <= set(table.provenance)
    assert table.provenance["n_configs"] == len(table.config_values) == table.n_configs
    assert (table.runtimes < table.cutoff).mean() > 0.9
    assert table.runtimes.min() > 0.0  # by the clock of the process
    space = Surrogate(table).space
    assert table.config_values[0] == dict(space.get_default_configuration())
    for values in table.config_values:
        Configuration(space, values=values).check_valid_configuration()


def test_other_tables_are_not_shipped() -> None:
    with pytest.raises(ValueError, match="name must be one of minisat"):
        load_shipped("glucose")


def test_values_and_space_are_saved(tmp_path: Path, small_table: RuntimeTable) -> None:
    save_npz(tmp_path / "t.npz", small_table)
    again = load_table(tmp_path / "t.npz")
    assert again.config_values == small_table.config_values
    assert again.space == small_table.space
