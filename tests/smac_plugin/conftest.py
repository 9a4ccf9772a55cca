"""What the tests of the SMAC plugin share."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from dask.distributed import Client
from smac import Scenario
from targets import a_scenario

Run = Callable[..., int]


@pytest.fixture
def make_scenario(tmp_path: Path) -> Callable[..., Scenario]:
    """Make a scenario that writes to a directory of the test's own."""

    def make(**settings: Any) -> Scenario:
        return a_scenario(settings.pop("output_directory", tmp_path), **settings)

    return make


@pytest.fixture(scope="session")
def in_process() -> Run:
    """Run a function in a process of its own, and return its exit code.

    They are forked from a server that has imported SMAC, which takes seconds, once.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["smac"])

    def run(function: Callable[..., object], *args: object) -> int:
        process = context.Process(target=function, args=args)
        process.start()
        process.join(timeout=60)
        assert process.exitcode is not None, "the process hangs"
        return process.exitcode

    return run


@pytest.fixture(scope="session")
def four_workers() -> Iterator[Client]:
    """Four Dask workers in threads of this process: quick to start, and out of order."""
    with Client(
        n_workers=1, threads_per_worker=4, processes=False, dashboard_address=None
    ) as client:
        yield client
