"""Recording: real runs, an interrupted recording goes on, and formulas are what they claim."""

from __future__ import annotations

import importlib.util
import itertools
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ConfigSpace import ConfigurationSpace, Integer

from acband_configspace.benchmark.__main__ import main
from acband_configspace.benchmark.recording.cnf import FAMILIES, Formula, formula
from acband_configspace.benchmark.recording.recorder import Plan, record
from acband_configspace.benchmark.recording.solvers import (
    CLASP,
    MINISAT,
    Solver,
    clasp_arguments,
    drawn_values,
    get_solver,
    minisat_arguments,
)
from acband_configspace.benchmark.tables import load_table
from acband_configspace.benchmark.tables.surrogate import Surrogate
from acband_configspace.core.ends import End
from acband_configspace.running import PythonTarget, RacerReport

needs_minisat = pytest.mark.skipif(shutil.which("minisat") is None, reason="no minisat")


def returned(report: RacerReport, cutoff: float) -> float:
    assert isinstance(report.returned, float)
    return report.returned if report.returned < cutoff else float("inf")


#: A solver that answers at once: configuration c on instance i takes c + i / 10 seconds.
FAKE = Solver(
    "fake",
    version=lambda: "1",
    space=lambda: ConfigurationSpace({"c": Integer("c", (0, 9), default=0)}),
    instances=lambda count, seed, folder: [(f"instance {i}", str(i)) for i in range(count)],
    target=lambda: PythonTarget(lambda config, instance: config["c"] + int(instance) / 10),
    seconds=returned,
)


def test_an_interrupted_recording_goes_on(tmp_path: Path) -> None:
    plan, journal = Plan(3, 4, cutoff=2.0), tmp_path / "journal"
    seen: list[int] = []
    first = record(FAKE, plan, journal, tmp_path, on_progress=lambda done, total: seen.append(done))
    assert seen == list(range(1, 13))
    assert first is not None
    cs = np.array([values["c"] for values in first.config_values])
    assert cs[0] == 0  # the default comes first
    expected = cs[:, None] + np.arange(4) / 10
    assert np.allclose(first.runtimes, np.where(expected < 2.0, expected, np.inf))
    assert first.instance_names == tuple(f"instance {i}" for i in range(4))
    # Killed in the middle of a line:
    text = journal.read_text()
    journal.write_text(text[:-25])
    seen.clear()
    again = record(FAKE, plan, journal, tmp_path, on_progress=lambda done, total: seen.append(done))
    assert 0 < len(seen) < 12
    assert again is not None
    assert np.array_equal(again.runtimes, first.runtimes)
    assert sorted(journal.read_text().splitlines()[1:]) == sorted(text.splitlines()[1:])


def test_at_the_deadline_only_complete_instances_count(tmp_path: Path) -> None:
    plan, journal = Plan(3, 4, cutoff=2.0), tmp_path / "journal"
    assert record(FAKE, plan, journal, tmp_path, deadline=0.0) is None
    record(FAKE, plan, journal, tmp_path)
    lines = journal.read_text().splitlines(keepends=True)
    journal.write_text("".join(lines[: 1 + 2 * 3 + 1]))  # two instances, and one run of a third
    table = record(FAKE, plan, journal, tmp_path, deadline=0.0)
    assert table is not None
    assert (table.n_instances, table.provenance["n_instances"]) == (2, 2)


def test_another_recording_is_refused(tmp_path: Path) -> None:
    record(FAKE, Plan(2, 2, cutoff=2.0), tmp_path / "journal", tmp_path)
    with pytest.raises(ValueError, match="is a recording with cutoff 2.0, not 3.0"):
        record(FAKE, Plan(2, 2, cutoff=3.0), tmp_path / "journal", tmp_path)


@pytest.mark.parametrize("sizes", [(0, 1, 1.0), (1, 0, 1.0), (1, 1, 0.0)])
def test_bad_plans_are_refused(sizes: tuple[int, int, float]) -> None:
    with pytest.raises(ValueError, match="but got"):
        Plan(*sizes)


@needs_minisat
def test_minisat_is_recorded_with_its_provenance(tmp_path: Path) -> None:
    output = tmp_path / "tables" / "t.npz"
    options = ["record", "--configurations", "2", "--instances", "3", "--output", str(output)]
    assert main([*options, "--workers", "2"]) == 0
    table = load_table(output)
    assert (table.runtimes.shape, table.cutoff) == ((2, 3), 1.0)
    assert 0 < table.runtimes.min() < 0.5
    assert table.provenance["target"] == "minisat"
    assert [name.split()[1] for name in table.instance_names] == ["3sat", "factoring", "fuzz"]
    # The values and the space are in the file: the default comes first.
    assert table.config_values[0]["var-decay"] == 0.95
    assert Surrogate(table).space == MINISAT.space()


@pytest.mark.skipif(shutil.which("clasp") is None, reason="no clasp")
def test_clasp_takes_every_configuration(tmp_path: Path) -> None:
    table = record(CLASP, Plan(25, 1, cutoff=5.0), tmp_path / "journal", tmp_path)
    assert table is not None
    assert np.isfinite(table.runtimes).all()


@pytest.mark.skipif(importlib.util.find_spec("highspy") is None, reason="no highspy")
def test_the_auctions_of_the_example_are_recorded(tmp_path: Path) -> None:
    output = tmp_path / "t.npz"
    example = Path(__file__).parents[3] / "examples" / "highs_auctions.py"
    options = ["record", "--target", str(example), "--configurations", "2", "--instances", "2"]
    assert main([*options, "--cutoff", "5", "--output", str(output)]) == 0
    table = load_table(output)
    assert table.provenance["target"] == "highs_auctions"
    assert table.instance_names == ("table-0-0", "table-0-1")
    assert table.runtimes.max() < 5


def test_a_python_file_must_say_all_that_is_needed(tmp_path: Path) -> None:
    (tmp_path / "half_a_solver.py").write_text("def solve(config, instance, seed): ...\n")
    with pytest.raises(ValueError, match="must define make_space, .* but lacks make_space"):
        get_solver(str(tmp_path / "half_a_solver.py")).version()
    with pytest.raises(FileNotFoundError, match="there is no Python file"):
        get_solver(str(tmp_path / "none.py")).version()
    with pytest.raises(ValueError, match="target must be 'minisat', 'clasp' or a Python file"):
        get_solver("glucose")


def test_clasp_command_line() -> None:
    configuration = {
        "heuristic": "Vsids", "vsids-decay": 92, "vsids-acids": "on", "restarts": "x",
        "restart-length": 128, "restart-growth": 1.5, "deletion": "basic", "deletion-share": 75,
        "deletion-score": "lbd", "otfs": 2, "local-restarts": "off",
    }  # fmt: skip
    assert clasp_arguments(configuration, "f.cnf", 3, 1.0) == [
        "--quiet=2", "--configuration=trendy", "--heuristic=Vsids,92", "--restarts=x,128,1.5",
        "--deletion=basic,75,lbd", "--vsids-acids", "--otfs=2", "--no-local-restarts", "--seed=3",
        "f.cnf",
    ]  # fmt: skip


def test_the_same_seed_draws_the_same_values() -> None:
    first, again = (drawn_values(CLASP.space(), 5, 7) for _ in range(2))
    assert first == again
    assert first != drawn_values(CLASP.space(), 5, 8)
    assert first[0] == dict(CLASP.space().get_default_configuration())


def test_minisat_command_line() -> None:
    configuration = {"var-decay": 0.9, "luby": "off", "elim": "on", "rfirst": 7}
    assert minisat_arguments(configuration, "f.cnf", 3, 1.0) == [
        "-var-decay=0.9", "-no-luby", "-elim", "-rfirst=7", "-rnd-seed=4", "f.cnf",
    ]  # fmt: skip


def test_minisat_has_answered_whatever_the_exit_code() -> None:
    # Its own clock may read 0 after a few milliseconds: it counts user time only.
    output = "CPU time              : 0 s\n\nUNSATISFIABLE\n"
    report = RacerReport(
        End.CRASHED, 0.3, cpu_time=0.25, error="exited with code 20", output=output
    )
    assert MINISAT.seconds(report, 1.0) == 0.25
    assert MINISAT.seconds(report, 0.2) == float("inf")
    assert MINISAT.seconds(RacerReport(End.CUTOFF, 0.0), 1.0) == float("inf")
    with pytest.raises(RuntimeError, match="minisat gave no answer"):
        MINISAT.seconds(RacerReport(End.CRASHED, 0.0, output="PARSE ERROR!"), 1.0)


def test_formulas_are_the_same_for_the_same_seed_and_come_from_all_families() -> None:
    drawn = [formula(1, index) for index in range(len(FAMILIES))]
    assert drawn == [formula(1, index) for index in range(len(FAMILIES))]
    assert [one.family.split()[0] for one in drawn] == list(FAMILIES)
    for one in drawn:
        used = {abs(literal) for clause in one.clauses for literal in clause}
        assert used <= set(range(1, one.n_variables + 1))
        assert all(clause for clause in one.clauses)


def test_dimacs() -> None:
    assert Formula("toy", 2, ((1, -2), (2,))).as_dimacs() == "c toy\np cnf 2 2\n1 -2 0\n2 0\n"


def test_factoring_finds_the_factors() -> None:
    """By brute force over the inputs: the circuit multiplies."""
    from acband_configspace.benchmark.recording import cnf

    circuit = cnf._Circuit(3)
    total, carry = circuit.add(1, 2, 3)
    for bits in itertools.product((False, True), repeat=3):
        values = solve_by_propagation(circuit, bits)
        found = 2 * literal(values, carry) + literal(values, total)
        assert found == sum(bits)


def literal(values: Any, number: int) -> Any:
    return values[number] if number > 0 else not values[-number]


def solve_by_propagation(circuit: Any, bits: Any) -> Any:
    values = dict(enumerate(bits, start=1))
    while len(values) < circuit.n:
        for clause in circuit.clauses:
            unknown = [x for x in clause if abs(x) not in values]
            if len(unknown) == 1 and not any(
                literal(values, x) for x in clause if abs(x) in values
            ):
                values[abs(unknown[0])] = unknown[0] > 0
    return values
