"""Methods that search a space: all find what is good, keep to their CPU time and pay once."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path

import numpy as np
import pytest
from ConfigSpace import Float, Integer

from acband_configspace.benchmark.methods import paramils
from acband_configspace.benchmark.methods.answering import as_word, conditions_of, from_words
from acband_configspace.benchmark.methods.irace import Irace, check_installed
from acband_configspace.benchmark.methods.registry import SPACE_METHODS
from acband_configspace.benchmark.methods.smac import Smac
from acband_configspace.benchmark.methods.space import CannotRunError, Runs
from acband_configspace.benchmark.tables import RuntimeTable
from acband_configspace.benchmark.tables.surrogate import Surrogate


@pytest.fixture(scope="module")
def surrogate(small_table: RuntimeTable) -> Surrogate:
    return Surrogate(small_table)


def irace_is_missing() -> bool:
    try:
        check_installed()
    except CannotRunError:
        return True
    return False


NEEDS = {
    "irace": pytest.mark.skipif(irace_is_missing(), reason="R or its package irace is missing"),
    "paramils": pytest.mark.skipif(
        importlib.util.find_spec("ramparils") is None, reason="ramparils is not installed"
    ),
}


@pytest.mark.parametrize(
    "name",
    # SMAC's model is the same with and without capping.
    [pytest.param(n, marks=NEEDS.get(n, ())) for n in SPACE_METHODS if n != "smac-ac"],
)
def test_every_method_finds_what_is_good_in_its_time(name: str, surrogate: Surrogate) -> None:
    means = surrogate.sampled(500, seed=0).mean_runtimes()
    limit = 60 * float(np.median(means))
    if name.startswith("smac-ac"):  # its model makes as much of less, and takes its time
        limit *= 0.2
    found = SPACE_METHODS[name].run(surrogate, cpu_limit=limit, seed=1)
    assert surrogate.mean_runtime(found.incumbent) < np.quantile(means, 0.35)
    assert 0.5 * limit < found.cpu_time < 1.5 * limit
    assert 1 < found.n_configs <= found.n_runs


@pytest.mark.parametrize("name", ["acband", "learned", "gga", "roar-capped", "smac-hb"])
def test_the_same_seed_gives_the_same_result(name: str, surrogate: Surrogate) -> None:
    results = [SPACE_METHODS[name].run(surrogate, cpu_limit=100.0, seed=seed) for seed in (2, 2, 3)]
    assert dict(results[0].incumbent) == dict(results[1].incumbent)
    counts = [(result.n_configs, result.n_runs, result.cpu_time) for result in results]
    assert counts[0] == counts[1] != counts[2]


def test_a_second_of_a_run_is_paid_once(surrogate: Surrogate) -> None:
    runs = Runs(surrogate, cpu_limit=1e9, seed=0)
    default = surrogate.space.get_default_configuration()
    full, ends = runs.run(default, 3)
    assert ends
    assert runs.run(default, 3, limit=full / 2) == (full / 2, False)
    assert runs.cpu_time == full
    other = Runs(surrogate, cpu_limit=full, seed=0)
    other.run(default, 3, limit=full / 2)
    assert (other.cpu_time, other.is_over) == (full / 2, False)
    other.run(default, 3)
    assert (other.cpu_time, other.is_over) == (full, True)


def test_what_programs_say_becomes_a_configuration(surrogate: Surrogate) -> None:
    # The parameters are p0 = mode, p1 = size, p2 = speed; "fast" has the number 1.
    assert dict(from_words(surrogate, ["p1", "20", "p0", "1", "p2", "0.25"])) == {
        "mode": "fast", "size": 20.0, "speed": 0.25,
    }  # fmt: skip
    slow = from_words(surrogate, ["-p0", "0", "-p1", "20", "-p2", "NA"])
    assert dict(slow) == {"mode": "slow", "size": pytest.approx(20.0)}
    assert list(conditions_of(surrogate, "speed")) == [("mode", ["1"])]


def test_long_integers_keep_their_digits() -> None:
    parameter = Integer("n", (1, 10**9), default=1_234_567)
    assert as_word(parameter, parameter.default_value) == "1234567"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("sys.stderr.write('x' * 300_000); sys.exit(1)", "ParamILS failed"),
        ("time.sleep(60)", "did not end"),
    ],
)
def test_paramils_is_not_waited_for_without_end(
    body: str, message: str, surrogate: Surrogate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A package of that name which writes more than a pipe holds, or does nothing at all."""
    text = f"import sys, time\ndef specialize(*given):\n    {body}\n"
    (tmp_path / "ramparils.py").write_text(text)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(paramils, "PATIENCE", 10.0 if "exit" in body else 0.5)
    with pytest.raises(CannotRunError, match=message):
        paramils.ParamILS().run(surrogate, cpu_limit=1e9, seed=0)


def test_paramils_is_told_of_no_value_twice() -> None:
    """A default may be the same as a place of the grid but for digits that are not told."""
    words = paramils._values(Float("x", (0.0, 1.0), default=1.0 - 1e-9))
    assert words[-1] == "1"
    assert len(set(words)) == len(words)


@pytest.mark.skipif(shutil.which("Rscript") is not None, reason="R is installed")
def test_irace_says_what_is_missing(surrogate: Surrogate) -> None:
    with pytest.raises(CannotRunError, match="Rscript is not found"):
        Irace().run(surrogate, cpu_limit=1.0, seed=0)


def test_hyperband_has_no_capping() -> None:
    with pytest.raises(ValueError, match="capped must be False for Hyperband"):
        Smac("hyperband", capped=True)
