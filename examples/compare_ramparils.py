"""RamParILS, a ParamILS that runs in parallel, beside the others on timed jobs.

ParamILS knows lists of values only: numbers have seven places on their scale, and their default;
categories are told by their numbers, since their names may have commas. It says what it has found
in the end only. A wrapper asks for runs over a socket, as irace's does, and pays for starting a
bare Python.
"""

from __future__ import annotations

import sys
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import numpy as np
from compare_irace import RunServer
from compare_jobs import CUTOFF, PAR
from compare_methods import Run, Task, be_there, plain, worker_pool
from ConfigSpace import ConfigurationSpace
from ConfigSpace.conditions import Conjunction
from ConfigSpace.hyperparameters import IntegerHyperparameter

from acband_configspace.cli.spaces.parameters import parameter_of, value_text

#: Places of a number on its scale.
N_PLACES = 7

WRAPPER = """
import socket, sys
port, names, most, penalty, instance, cutoff, *pairs = sys.argv[1:]
values = {pairs[i][1:]: pairs[i + 1] for i in range(0, len(pairs), 2)}
texts = [values.get(name, "NA") for name in names.split(",")]
with socket.create_connection(("localhost", int(port))) as connection:
    connection.sendall(("\\t".join([instance, cutoff, *texts]) + "\\n").encode())
    cost = connection.makefile().readline().split()[0]
status = "OK" if float(cost) < float(cutoff) else "TIMEOUT"
if float(cost) >= float(most):  # what it minimises is the mean of what it is told
    cost = penalty
print("#%# RamParIls #%# " + status + ", " + cost + ", " + cost)
"""


def run_ramparils(task: Task) -> Run:
    """Run FocusedILS with its defaults, from the default configuration; it takes no seed."""
    space = task.job.space()
    folder = task.folder / "ramparils"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "space.params").write_text(parameter_file(space), encoding="utf-8")
    (folder / "wrapper.py").write_text(WRAPPER, encoding="utf-8")
    default = {name: _word(p, p.default_value) for name, p in space.items()}
    # In a process of its own: it lets no other thread of Python run.
    with (
        worker_pool(task) as pool,
        NumberedServer(task, space, pool) as server,
        ProcessPoolExecutor(1, get_context("spawn")) as apart,
    ):
        apart.submit(be_there, 0).result()
        start = time.perf_counter()
        port = server.server_address[1]
        found = apart.submit(
            specialize,
            default,
            {
                "algo": f"{sys.executable} -S -E {folder}/wrapper.py {port} {','.join(space)} "
                f"{CUTOFF} {PAR * CUTOFF}",
                "paramfile": str(folder / "space.params"),
                "instances": task.train,
                "cutoff_time": CUTOFF,
                "tuner_timeout": task.seconds,
                "cores": task.workers,
                "run_obj": "quality",  # a run time would count no more than the cutoff
            },
        ).result()
        elapsed = time.perf_counter() - start
    best = server.config([found.get(name, "NA") for name in space])
    trajectory = [(min(elapsed, task.seconds), plain(best))]
    return Run(
        trajectory, elapsed, server.in_target, len(server.finished), len(server.configurations)
    )


class NumberedServer(RunServer):
    """Answers requests for runs in which categories are told by their numbers."""

    def config(self, texts: list[str]) -> dict[str, Any]:
        """Return the configuration of which these are the values, in the order of the space."""
        pairs = zip(self.space.values(), texts, strict=True)
        return super().config([_text(parameter, word) for parameter, word in pairs])


def specialize(strategy: dict[str, str], scenario: dict[str, Any]) -> dict[str, str]:
    """Let RamParILS run, in a process of a pool."""
    import ramparils

    return dict(ramparils.specialize(strategy=strategy, scenario=scenario))


def _categories(parameter: Any) -> list[Any]:
    """Return the values of a parameter that are told by their numbers; none of a number."""
    return list(parameter_of(parameter).values)


def _word(parameter: Any, value: Any) -> str:
    """Return a value as RamParILS is told of it."""
    known = _categories(parameter)
    return str(known.index(value)) if known else value_text(value)


def _text(parameter: Any, word: str) -> str:
    """Return the text of a value of which RamParILS tells us."""
    known = _categories(parameter)
    return value_text(known[int(word)]) if known and word != "NA" else word


def _values(parameter: Any) -> list[Any]:
    """Return the values that are tried of a parameter, in order."""
    if known := _categories(parameter):
        return known
    tried = [float(parameter.to_value(place)) for place in np.linspace(0.0, 1.0, N_PLACES)]
    if isinstance(parameter, IntegerHyperparameter):
        return sorted({*map(int, tried), int(parameter.default_value)})
    return sorted({*(float(f"{value:.6g}") for value in tried), float(parameter.default_value)})


def parameter_file(space: ConfigurationSpace) -> str:
    """Return the space as RamParILS reads it."""
    values = {name: _values(parameter) for name, parameter in space.items()}
    lines = []
    for name, parameter in space.items():
        listed = ", ".join(_word(parameter, value) for value in values[name])
        guards = []
        for condition in space.parent_conditions_of[name]:
            if isinstance(condition, Conjunction):
                raise TypeError(f"ParamILS cannot be told of {condition}")
            parent = condition.parent.name
            allowed = [v for v in values[parent] if condition.satisfied_by_value({parent: v})]
            words = ", ".join(_word(condition.parent, value) for value in allowed)
            guards.append(f"{parent} in {{{words}}}")
        guard = f" | {' && '.join(guards)}" if guards else ""
        lines.append(f"{name} {{{listed}}} [{_word(parameter, parameter.default_value)}]{guard}")
    return "\n".join([*lines, ""])
