"""Runs the jobs of an experiment in several processes, and shows how far it is."""

from __future__ import annotations

import multiprocessing
import tempfile
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from rich.console import Console
from rich.progress import Progress

from acband_configspace.benchmark.tables import RuntimeTable

J = TypeVar("J")
R = TypeVar("R")
T = TypeVar("T")


def in_parallel(
    function: Callable[[J], R],
    jobs: Sequence[J],
    *,
    workers: int,
    title: str,
    prepare: Callable[[], object] | None = None,
) -> list[R]:
    """Call a function for each job; return what it returns, in the order of the jobs.

    Jobs are begun in their order. The results do not depend on the number of workers, each of
    which first does what ``prepare`` says.
    """
    with Progress(transient=True, console=Console(stderr=True)) as progress:

        def shown(results: Iterable[T]) -> Iterable[T]:
            return progress.track(results, total=len(jobs), description=title)

        if workers <= 1:
            return list(shown(map(function, jobs)))
        context = multiprocessing.get_context("spawn")  # rich has threads: never fork it
        with ProcessPoolExecutor(workers, context, prepare) as pool:
            futures = [pool.submit(function, job) for job in jobs]
            for future in shown(as_completed(futures)):
                future.result()  # a job that failed is told at once
            return [future.result() for future in futures]


def on_table(
    table: RuntimeTable,
    function: Callable[[RuntimeTable, J], R],
    jobs: Sequence[J],
    *,
    workers: int,
    title: str,
) -> list[R]:
    """Do that with a function of a table and a job; workers share one copy of it, a mapped file."""
    if workers <= 1:
        return in_parallel(partial(function, table), jobs, workers=1, title=title)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "runtimes.npy"
        np.save(path, np.asarray(table.runtimes))
        known = {field.name: getattr(table, field.name) for field in fields(table)}
        del known["runtimes"]
        prepare = partial(_open, path, known)
        call = partial(_call, function)
        return in_parallel(call, jobs, workers=workers, title=title, prepare=prepare)


_shared: list[RuntimeTable] = []


def _open(path: Path, known: dict[str, Any]) -> None:
    """Map the table into a worker's memory."""
    _shared[:] = [RuntimeTable(np.load(path, mmap_mode="r"), **known)]


def _call(function: Callable[[RuntimeTable, J], R], job: J) -> R:
    return function(_shared[0], job)
