"""What makes two targets the same."""

from __future__ import annotations

import functools
import importlib
import os
import runpy
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.svm import SVC
from sklearn.utils import Bunch
from targets import Counted, a_scenario, exact, noisy

from acband_configspace import ACBandFacade, ACBandIntensifier
from acband_configspace.core.statistics import Wins
from acband_configspace.smac_plugin.description import describe


def adding(offset: float) -> Any:
    def target(config: Mapping[str, Any], seed: int) -> float:
        return exact(config, seed) + offset

    return target


def recursive() -> Any:
    def target(config: Mapping[str, Any], seed: int) -> Any:
        return target if config is None else 0.0

    return target


class Solver:
    def __init__(self, cutoff: float) -> None:
        self.cutoff = cutoff
        self.helper = object()

    def run(self, config: Mapping[str, Any], seed: int) -> Any:
        return self.cutoff

    def __call__(self, config: Mapping[str, Any], seed: int) -> Any:
        return self.cutoff


@dataclass
class Settings:
    folds: float


MAKERS: list[Callable[[Any], Any]] = [
    lambda value: functools.partial(noisy, offset=value),  # type: ignore[call-arg]
    lambda value: functools.partial(noisy, value),
    lambda value: functools.partial(Solver(value).run, seed=1),
    adding,
    lambda value: Solver(value).run,
    Solver,
    lambda value: lambda config, seed, offset=value: offset,
    lambda value: f"./solver-{value}",
    lambda value: functools.partial(noisy, data=np.full(3, value)),  # type: ignore[call-arg]
    lambda value: functools.partial(noisy, data=np.array([value, "x"], dtype=object)),  # type: ignore[call-arg]
    lambda value: functools.partial(noisy, data={"a": value, "b": 0}),  # type: ignore[call-arg]
    lambda value: functools.partial(noisy, data=Bunch(data=np.full(3, value), target=np.ones(3))),  # type: ignore[call-arg]
    lambda value: functools.partial(noisy, data=[{1.0, 3.0 * value}]),  # type: ignore[call-arg]
    lambda value: functools.partial(noisy, data=Settings(value)),  # type: ignore[call-arg]
    lambda value: functools.partial(noisy, data=SVC(C=value)),  # type: ignore[call-arg]
    lambda value: functools.partial(noisy, data=csr_matrix([[0.0, value]])),  # type: ignore[call-arg]
]


@pytest.mark.parametrize("make", MAKERS)
def test_targets_are_told_apart_by_what_they_are_bound_to_and_not_by_where_they_lie(
    make: Callable[[float], Any],
) -> None:
    assert describe(make(1.0)) == describe(make(1.0))
    assert describe(make(1.0)) != describe(make(2.0))
    assert " at 0x" not in describe(make(1.0))


def test_all_targets_are_different() -> None:
    targets = [make(1.0) for make in MAKERS] + [noisy, exact, recursive(), None]
    texts = [describe(target) for target in targets]
    assert len(set(texts)) == len(texts)


def test_objects_of_any_kind_have_a_description(tmp_path: Path) -> None:
    assert describe(Counted(noisy, tmp_path)) == describe(Counted(noisy, tmp_path))
    assert describe(object()) == describe(object())
    assert describe(len) == describe(len)


def texts_of_processes(target: str) -> set[bytes]:
    """Return the descriptions that processes whose sets are in other orders give of a target."""
    program = (
        "import functools, numpy as np\n"
        "from acband_configspace.smac_plugin.description import describe\n"
        f"print(describe({target}))"
    )
    return {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "3")
    }


def test_the_order_of_a_set_does_not_matter() -> None:
    """What is in braces in the code is in another order in each process."""
    target = "lambda config, seed: config['kernel'] in {'rbf', 'poly', 'lin', 'sig'}"
    assert len(texts_of_processes(target)) == 1


def test_a_statistic_of_ones_own_has_no_address(tmp_path: Path) -> None:
    class Own:
        needs_all_costs = False

        def scores(self, costs: np.ndarray, censored: np.ndarray) -> Any:
            return Wins().scores(costs, censored)

    kept = [Own(), Own()]
    metas = [ACBandIntensifier(a_scenario(tmp_path), statistic=own).meta for own in kept]
    assert metas[0]["statistic"] == metas[1]["statistic"]
    assert "Own" in metas[0]["statistic"]


def described(source: str, path: Path) -> str:
    """Return the description of the target that a script defines, as another process has it."""
    path.write_text(textwrap.dedent(source))
    spaces = runpy.run_path(str(path))
    return describe(spaces["target"])


SCRIPT = """
    import math
    import numpy as np
    SCALE = 2.0
    SETTINGS = {"folds": 3}
    WEIGHTS = np.ones(3)
    CACHE = {}
    counter = 0
    unrelated = 1

    def helper(x):
        return deeper(x) * SCALE * SETTINGS["folds"] * WEIGHTS[0]

    def deeper(x):
        return math.sqrt(x) + np.abs(x)

    class Base:
        def start(self):
            return 4

    class Model(Base):
        def fit(self, x):
            CACHE[x] = self.start()
            return x + 1

    def target(config, seed):
        global counter
        counter += 1
        return sum(helper(config["x"]) for _ in range(2)) + Model().fit(0)
"""


@pytest.mark.parametrize(
    ("before", "after", "same"),
    [
        ("SCALE = 2.0", "SCALE = 3.0", False),
        ("math.sqrt(x)", "math.sin(x)", False),
        ("deeper(x) *", "deeper(x) +", False),
        ("return x + 1", "return x + 2", False),
        ("range(2)", "range(3)", False),
        ("unrelated = 1", "unrelated = 2", True),
        ("counter = 0", "counter = 5", True),
        ('"folds": 3', '"folds": 5', False),
        ("np.ones(3)", "np.zeros(3)", False),
        ("return 4", "return 5", False),
        ("CACHE = {}", "CACHE = {1: 2}", True),
        ("SCALE = 2.0", "SCALE = 2.0  # a remark", True),
    ],
)
def test_what_a_target_reaches_tells_it_apart(
    before: str, after: str, same: bool, tmp_path: Path
) -> None:
    assert before in SCRIPT
    texts = [
        described(source, tmp_path / "script.py")
        for source in (SCRIPT, SCRIPT.replace(before, after))
    ]
    assert (texts[0] == texts[1]) is same


@pytest.mark.parametrize("folder", ["site-packages", "dist-packages"])
def test_what_is_installed_elsewhere_is_left_out(
    folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By pip install --user, or as a module of a cluster."""
    library = tmp_path / folder / "own_library.py"
    library.parent.mkdir()
    monkeypatch.syspath_prepend(library.parent)
    script = "import own_library\ndef target(config, seed):\n    return own_library.cost(config)"
    texts = []
    for number in (1, 2):
        library.write_text(f"def cost(config): return {number}")
        sys.modules.pop("own_library", None)
        importlib.invalidate_caches()
        shutil.rmtree(library.parent / "__pycache__", ignore_errors=True)
        texts.append(described(script, tmp_path / "script.py"))
    assert texts[0] == texts[1]


def test_functions_may_name_each_other_in_a_long_chain(tmp_path: Path) -> None:
    chain = [f"def f{n}(x): return f{n + 1}(x)" for n in range(1500)]
    texts = [
        described(
            "\n".join([*chain, f"def f1500(x): return {end}", "target = f0"]), tmp_path / "s.py"
        )
        for end in (1, 2)
    ]
    assert texts[0] != texts[1]


def test_functions_of_one_name_are_told_apart() -> None:
    one, other = adding(1.0), adding(1.0)

    def calls(first: Any, second: Any, third: Any) -> Any:
        return lambda config, seed: [f(config, seed) for f in (first, second, third)]

    assert describe(calls(one, other, one)) != describe(calls(one, other, other))


def test_a_module_of_the_users_is_reached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    script = """
        import own_helpers
        def target(config, seed):
            return own_helpers.cost(config)
    """
    texts = []
    for number in (1, 2, 1):
        (tmp_path / "own_helpers.py").write_text(f"def cost(config): return {number}")
        sys.modules.pop("own_helpers", None)
        importlib.invalidate_caches()
        shutil.rmtree(tmp_path / "__pycache__", ignore_errors=True)
        texts.append(described(script, tmp_path / "script.py"))
    assert texts[0] == texts[2] != texts[1]


def test_the_content_of_a_script_tells_it_apart(tmp_path: Path) -> None:
    script = tmp_path / "solver.sh"
    texts = []
    for content in ("echo 1", "echo 2", "echo 1"):
        script.write_text(content)
        texts.append((describe(str(script)), describe(["sh", str(script), "--fast"])))
    assert texts[0] == texts[2]
    assert texts[0][0] != texts[1][0]
    assert texts[0][1] != texts[1][1]


def test_a_word_may_be_longer_than_the_name_of_a_file() -> None:
    scripts = ["echo " + "very " * 100 + end for end in ("good", "bad")]
    texts = [describe(["sh", "-c", script]) for script in scripts]
    assert texts[0] != texts[1]


def test_a_changed_helper_starts_a_run_of_its_own(tmp_path: Path) -> None:
    runs = []
    for scale in (1.0, 2.0):
        scope: dict[str, Any] = {"SCALE": scale}
        exec("def target(config, seed): return SCALE * config['x']", scope)
        facade = ACBandFacade(a_scenario(tmp_path, name=None), scope["target"], logging_level=False)
        facade.optimize()
        runs.append(facade.scenario.output_directory)
    assert runs[0] != runs[1]


def test_data_of_a_target_that_fits_a_model_tells_it_apart() -> None:
    def fitting(data: np.ndarray) -> Any:
        def target(config: Mapping[str, Any], seed: int) -> Any:
            weights = np.zeros(3)
            weights[0] = config["x"]
            return SVC().fit(data, weights).score(data, weights)

        return target

    assert describe(fitting(np.ones(3))) == describe(fitting(np.ones(3)))
    assert describe(fitting(np.ones(3))) != describe(fitting(np.zeros(3)))


def test_the_limits_of_a_scenario_that_a_target_names_do_not_matter(tmp_path: Path) -> None:
    def naming(n_trials: int) -> Any:
        scenario = a_scenario(tmp_path, n_trials=n_trials)
        return lambda config, seed: scenario.seed

    assert describe(naming(10)) == describe(naming(20))


def test_the_environment_does_not_matter_but_what_is_added_to_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    texts = []
    for job, threads in (("7", "1"), ("8", "1"), ("8", "2")):
        monkeypatch.setenv("SLURM_JOB_ID", job)
        own = {**os.environ, "OWN_THREADS": threads}
        texts.append(describe(functools.partial(noisy, environment=own)))  # type: ignore[call-arg]
    assert texts[0] == texts[1] != texts[2]


@dataclass
class Node:
    neighbours: list[Any]


def test_data_may_be_deeply_nested() -> None:
    last = first = Node([])
    for _ in range(5000):
        last.neighbours.append(Node([]))
        last = last.neighbours[0]
    assert describe(functools.partial(noisy, nodes=first))  # type: ignore[call-arg]


def test_what_an_object_array_holds_has_the_same_text_in_each_process() -> None:
    target = "functools.partial(print, np.array([{'a', 'b', 'c'}, None]))"
    assert len(texts_of_processes(target)) == 1
