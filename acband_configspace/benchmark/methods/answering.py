"""Answers programs of others, line by line on a local socket, with runs of a surrogate."""

from __future__ import annotations

import contextlib
import socketserver
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ConfigSpace import Configuration
from ConfigSpace.hyperparameters import CategoricalHyperparameter, IntegerHyperparameter

from acband_configspace.benchmark.methods.space import Runs, active, listed
from acband_configspace.benchmark.tables.surrogate import Surrogate


@contextlib.contextmanager
def answering(runs: Runs, *, scale: float = 1.0) -> Iterator[int]:
    """Answer ``instance limit name value name value …`` with ``seconds ends``; yield the port.

    ``ends`` is 1 if the run ends before its limit and the cutoff, otherwise 0. ``scale`` is how
    many of the program's units of time a second has. Once the CPU time is used up, connections
    are closed without an answer.
    """
    lock = threading.Lock()

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            with contextlib.suppress(ConnectionResetError):  # a program that was stopped
                self._answer()

        def _answer(self) -> None:
            for line in self.rfile:
                instance, limit, *words = line.decode().split()
                configuration = from_words(runs.surrogate, words)
                with lock:
                    if runs.is_over:
                        return
                    seconds, ends = runs.run(
                        configuration, int(instance), limit=float(limit) / scale
                    )
                self.wfile.write(f"{seconds * scale:.9g} {ends:d}\n".encode())

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield int(server.server_address[1])
        finally:
            server.shutdown()
            thread.join()


def parameter_names(surrogate: Surrogate) -> Mapping[str, str]:
    """Return a name without any special character for each parameter."""
    return {name: f"p{number}" for number, name in enumerate(surrogate.space)}


def as_word(parameter: Any, value: Any) -> str:
    """Return a value as the programs know it: categories by their number."""
    if (values := listed(parameter)) is not None:
        return str(values.index(value))
    return str(int(value)) if isinstance(parameter, IntegerHyperparameter) else f"{value:.6g}"


def from_words(surrogate: Surrogate, words: Sequence[str]) -> Configuration:
    """Return the configuration of ``name value name value …`` with such names.

    Names may have a dash before them. Categories are given by their number. What a program says of
    inactive parameters is ignored.
    """
    said = {name.lstrip("-"): word for name, word in zip(words[::2], words[1::2], strict=True)}
    values = {}
    for name, short in parameter_names(surrogate).items():
        parameter = surrogate.space[name]
        if said.get(short, "NA") == "NA":
            values[name] = parameter.default_value
        elif (choices := listed(parameter)) is not None:
            values[name] = choices[int(said[short])]
        else:
            kind = type(parameter.default_value)
            values[name] = kind(float(said[short]))
    return active(surrogate, values)


def conditions_of(surrogate: Surrogate, name: str) -> Iterator[tuple[str, list[str]]]:
    """Yield, for each condition on a parameter, its parent and the numbers of the values allowed.

    Raises
    ------
    TypeError
        If a condition is not on some values of a category.
    """
    for condition in surrogate.space.parent_conditions_of[name]:
        parent: Any = getattr(condition, "parent", None)
        if not isinstance(parent, CategoricalHyperparameter):
            raise TypeError(f"conditions must be on categories but {name} has {condition}")
        met = [condition.satisfied_by_value({parent.name: value}) for value in parent.choices]
        yield parent.name, [str(number) for number, holds in enumerate(met) if holds]
