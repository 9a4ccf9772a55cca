"""The jobs of the comparison: three solvers, two learners and two functions.

A job has a space, instances to train on, others to test on, and a cost. Where the cost is a run
time, a run is stopped at the cutoff and costs ``PAR`` times as much then.
"""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import clasp_covers
import highs_auctions
import numpy as np
import psutil
import tune_minisat
from ConfigSpace import (
    Categorical,
    ConfigurationSpace,
    EqualsCondition,
    Float,
    InCondition,
    Integer,
)

#: The cutoff of all timed jobs, in CPU seconds, and what a run that meets it counts.
CUTOFF = 5.0
PAR = 10.0

Config = Mapping[str, Any]


@dataclass(frozen=True)
class Job:
    """Something to be configured."""

    title: str
    space: Callable[[], ConfigurationSpace]
    cost: Callable[[Config, str, int, float], float]
    """What a run costs: of a configuration, an instance, a seed and a limit in CPU seconds."""
    train: Callable[[Path], list[str]]
    """The instances to train on, written into a folder if they are files; none, or several."""
    test: Callable[[Path], list[str]]
    """Those to test on, which nobody sees before."""
    race: Mapping[str, Any] | None = None
    """How AC-Band races it: arguments of the facade. None: the cost is no run time."""
    features: Callable[[str], Sequence[float]] | None = None
    """What models are told of an instance."""
    program: str | None = None
    """What must be installed."""
    has_instances: bool = True

    @property
    def timed(self) -> bool:
        """Whether the cost is a run time: the limit of a run is time then, not trials."""
        return self.race is not None


# --- solvers ----------------------------------------------------------------------------------


def command_cost(command: Sequence[str], success_codes: Sequence[int], limit: float) -> float:
    """Return the CPU seconds of a command; PAR times the cutoff if they exceed the limit."""
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    over = threading.Event()
    watch = threading.Thread(target=_stop_if_late, args=(process.pid, limit, over), daemon=True)
    watch.start()
    # Not process.wait: that neither tells the CPU time, nor returns at once with a time limit.
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    over.set()
    watch.join()
    seconds = usage.ru_utime + usage.ru_stime
    solved = process.returncode in success_codes and seconds <= limit
    return seconds if solved else PAR * CUTOFF


def _stop_if_late(pid: int, limit: float, over: threading.Event) -> None:
    left = limit
    while not over.wait(max(left, 0.001)):
        try:
            left = limit - _cpu_time(pid)
        except psutil.NoSuchProcess:
            return
        if left <= 0:
            # Not process.kill: that reaps it if it has just ended, and its CPU time is lost.
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            return


def _cpu_time(pid: int) -> float:
    """Return the CPU seconds of a process, as exactly as AC-Band's own limits are watched."""
    if sys.platform == "linux":
        # What clock_getcpuclockid returns; what psutil reads moves in steps of 10 ms.
        with contextlib.suppress(OSError):  # it has ended, or there are no such clocks
            return time.clock_gettime(~pid << 3 | 2)
    times = psutil.Process(pid).cpu_times()
    return float(times.user + times.system)


def minisat_cost(config: Config, instance: str, seed: int = 0, limit: float = CUTOFF) -> float:
    """Return the CPU seconds of MiniSat on a formula."""
    arguments = tune_minisat.to_arguments(config, instance, seed, None)
    return command_cost(["minisat", "-verb=0", *arguments], (10, 20), limit)


def clasp_cost(config: Config, instance: str, seed: int = 0, limit: float = CUTOFF) -> float:
    """Return the CPU seconds of clasp on a set cover."""
    arguments = clasp_covers.to_arguments(config, instance, seed, None)
    return command_cost([*clasp_covers.COMMAND, *arguments], (clasp_covers.OPTIMUM,), limit)


def formula_features(path: str) -> list[float]:
    """Return the numbers of variables and clauses of a formula, and their ratio."""
    with open(path, encoding="ascii") as file:
        words = file.readline().split()
    n_variables, n_clauses = float(words[2]), float(words[3])
    return [n_variables, n_clauses, n_clauses / n_variables]


# --- learners ---------------------------------------------------------------------------------


@functools.cache
def _data(name: str) -> tuple[Any, Any, Any, Any]:
    """Return half of a data set to train on, points and classes, and the other half to test."""
    from sklearn import datasets
    from sklearn.model_selection import train_test_split

    made_up = {
        "hastie": lambda: datasets.make_hastie_10_2(1200, random_state=1),
        "circles": lambda: datasets.make_circles(800, noise=0.2, factor=0.6, random_state=1),
        "clusters": lambda: datasets.make_classification(
            1000, 20, n_informative=6, n_clusters_per_class=3, flip_y=0.05, random_state=1
        ),
    }
    if name in made_up:
        points, classes = made_up[name]()
    else:
        points, classes = getattr(datasets, f"load_{name}")(return_X_y=True)
    parts = train_test_split(points, classes, test_size=0.5, random_state=0, stratify=classes)
    points, test_points, classes, test_classes = parts
    return points, classes, test_points, test_classes


def _parts(instance: str, n_folds: int) -> tuple[Any, Any, Any, Any]:
    """Return points and classes to fit on and to judge by: "wine-train-3", or "wine-test-3"."""
    name, kind, number = instance.split("-")
    points, classes, test_points, test_classes = _data(name)
    chosen = np.arange(len(classes if kind == "train" else test_classes)) % n_folds == int(number)
    if kind == "test":
        return points, classes, test_points[chosen], test_classes[chosen]
    return points[~chosen], classes[~chosen], points[chosen], classes[chosen]


def svc_space() -> ConfigurationSpace:
    """Return the options of a support vector machine."""
    space = ConfigurationSpace(name="SVC")
    kernel = Categorical("kernel", ["rbf", "poly", "sigmoid", "linear"], default="rbf")
    gamma = Float("gamma", (1e-6, 10.0), default=0.01, log=True)
    degree = Integer("degree", (2, 5), default=3)
    shift = Float("coef0", (-1.0, 1.0), default=0.0)
    space.add(kernel, gamma, degree, shift, Float("C", (1e-3, 1e3), default=1.0, log=True))
    space.add(Categorical("shrinking", [True, False], default=True))
    space.add(Float("tol", (1e-5, 1e-1), default=1e-3, log=True))
    space.add(InCondition(gamma, kernel, ["rbf", "poly", "sigmoid"]))
    space.add(EqualsCondition(degree, kernel, "poly"))
    space.add(InCondition(shift, kernel, ["poly", "sigmoid"]))
    return space


def svc_cost(config: Config, instance: str, seed: int = 0, limit: float = CUTOFF) -> float:
    """Return the error on one of ten folds."""
    from sklearn.svm import SVC

    points, classes, other_points, other_classes = _parts(instance, 10)
    # A machine that does not converge is bad, not slow.
    learner = SVC(**config, max_iter=20_000, random_state=0).fit(points, classes)
    return float(1.0 - learner.score(other_points, other_classes))


def boosting_space() -> ConfigurationSpace:
    """Return the options of gradient boosting."""
    space = ConfigurationSpace(name="gradient boosting")
    space.add(
        Float("learning_rate", (0.005, 1.0), default=0.1, log=True),
        Integer("n_estimators", (10, 150), default=100, log=True),
        Integer("max_depth", (1, 8), default=3),
        Integer("min_samples_split", (2, 50), default=2, log=True),
        Integer("min_samples_leaf", (1, 40), default=1, log=True),
        Float("subsample", (0.2, 1.0), default=1.0),
        Float("max_features", (0.05, 1.0), default=1.0),
        Float("ccp_alpha", (1e-6, 0.05), default=1e-6, log=True),
    )
    return space


def boosting_cost(config: Config, instance: str, seed: int = 0, limit: float = CUTOFF) -> float:
    """Return the logarithmic loss, as a share of that of guessing by the classes' shares."""
    from sklearn.ensemble import GradientBoostingClassifier
    from sklearn.metrics import log_loss

    points, classes, other_points, other_classes = _parts(instance, 3)
    learner = GradientBoostingClassifier(**config, random_state=0).fit(points, classes)
    labels, counts = np.unique(classes, return_counts=True)
    guess = np.tile(counts / counts.sum(), (len(other_classes), 1))
    loss = log_loss(other_classes, learner.predict_proba(other_points), labels=labels)
    return float(min(3.0, loss / log_loss(other_classes, guess, labels=labels)))


BOOSTED = ("breast_cancer", "wine", "iris", "hastie", "circles", "clusters")


# --- functions --------------------------------------------------------------------------------


def valley_space() -> ConfigurationSpace:
    """Return eight numbers, two of them on a logarithmic scale."""
    space = ConfigurationSpace(name="valley")
    space.add([Float(f"x{i}", (0.0, 1.0), default=0.5) for i in range(6)])
    space.add([Float(f"y{i}", (1e-4, 1.0), default=1e-2, log=True) for i in range(2)])
    return space


def valley_cost(config: Config, instance: str, seed: int = 0, limit: float = CUTOFF) -> float:
    """Return the depth of a bent valley, which lies a little elsewhere for each instance."""
    draw = np.random.default_rng([7, *instance.encode()])
    x = np.array([config[f"x{i}"] for i in range(6)])
    y = np.array([1.0 + np.log10(config[f"y{i}"]) / 4.0 for i in range(2)])
    place = np.concatenate([x, y])
    bottom = np.array([0.71, 0.23, 0.62, 0.85, 0.35, 0.52, 0.27, 0.66])
    away = place - bottom - draw.normal(0.0, 0.04, 8)
    away[1:] += 0.5 * away[:-1] ** 2  # bent
    steep = np.array([4.0, 3.0, 2.0, 1.5, 1.0, 0.7, 0.5, 0.3]) * draw.uniform(0.7, 1.4, 8)
    ripple = 0.02 * np.sum(1.0 - np.cos(12.0 * away))
    return float(np.sqrt(np.sum(steep * away**2)) + ripple + draw.uniform(0.0, 0.2))


def hartmann_space() -> ConfigurationSpace:
    """Return six numbers."""
    space = ConfigurationSpace(name="Hartmann 6")
    space.add([Float(f"x{i}", (0.0, 1.0), default=0.5) for i in range(6)])
    return space


def hartmann_cost(config: Config, instance: str, seed: int = 0, limit: float = CUTOFF) -> float:
    """Return how far the Hartmann function of six variables is from its minimum."""
    x = np.array([config[f"x{i}"] for i in range(6)])
    a = np.array(
        [[10, 3, 17, 3.5, 1.7, 8], [0.05, 10, 17, 0.1, 8, 14],
         [3, 3.5, 1.7, 10, 17, 8], [17, 8, 0.05, 10, 0.1, 14]]
    )  # fmt: skip
    p = 1e-4 * np.array(
        [[1312, 1696, 5569, 124, 8283, 5886], [2329, 4135, 8307, 3736, 1004, 9991],
         [2348, 1451, 3522, 2883, 3047, 6650], [4047, 8828, 8732, 5743, 1091, 381]]
    )  # fmt: skip
    value = np.array([1.0, 1.2, 3.0, 3.2]) @ np.exp(-np.sum(a * (x - p) ** 2, axis=1))
    return float(3.32237 - value)


# --- all of them ------------------------------------------------------------------------------


def _numbered(name: str, number: int) -> Callable[[Path], list[str]]:
    return lambda folder: [f"{name}-{index}" for index in range(number)]


JOBS = {
    "highs": Job(
        "HiGHS on auctions",
        highs_auctions.make_space,
        highs_auctions.timed_solve,
        _numbered("train", 100),
        _numbered("test", 400),
        race={"target_function": highs_auctions.solve},
        features=highs_auctions.features,
    ),
    "minisat": Job(
        "MiniSat on formulas of three kinds",
        tune_minisat.make_space,
        minisat_cost,
        lambda folder: tune_minisat.write_formulas(folder, "train", 200),
        lambda folder: tune_minisat.write_formulas(folder, "test", 300),
        race={
            "target_function": ["minisat", "-verb=0"],
            "to_arguments": tune_minisat.to_arguments,
            "success_codes": (10, 20),
        },
        features=formula_features,
        program="minisat",
    ),
    "clasp": Job(
        "clasp on weighted set covers",
        clasp_covers.make_space,
        clasp_cost,
        lambda folder: clasp_covers.write_covers(folder, "train", 200),
        lambda folder: clasp_covers.write_covers(folder, "test", 100),
        race={
            "target_function": list(clasp_covers.COMMAND),
            "to_arguments": clasp_covers.to_arguments,
            "success_codes": (clasp_covers.OPTIMUM,),
        },
        features=clasp_covers.features,
        program="clasp",
    ),
    "svc": Job(
        "support vector machine on digits, ten folds",
        svc_space,
        svc_cost,
        _numbered("digits-train", 10),
        _numbered("digits-test", 10),
    ),
    "boosting": Job(
        "gradient boosting on six data sets, three folds of each",
        boosting_space,
        boosting_cost,
        lambda folder: [f"{name}-train-{fold}" for name in BOOSTED for fold in range(3)],
        # All data sets in turn, as MiniSat has its kinds: the first few speak for all.
        lambda folder: [f"{name}-test-{fold}" for fold in range(3) for name in BOOSTED],
        features=lambda instance: [
            *map(float, _data(instance.split("-")[0])[0].shape),
            float(len(np.unique(_data(instance.split("-")[0])[1]))),
        ],
    ),
    "valley": Job(
        "a function of eight numbers on 30 instances",
        valley_space,
        valley_cost,
        _numbered("train", 30),
        _numbered("test", 200),
    ),
    "hartmann": Job(
        "a function of six numbers, no instances",
        hartmann_space,
        hartmann_cost,
        _numbered("", 0),
        _numbered("", 0),
        has_instances=False,
    ),
}
