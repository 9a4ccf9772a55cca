"""One scheduler for most tests; workers of their own, so that they can be killed."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from cluster_helpers import Cluster, eventually

MARK = "ACBAND_CLUSTER_TEST_MARK"


@pytest.fixture(scope="session")
def shared_scheduler(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    cluster = Cluster(tmp_path_factory.mktemp("dask"))
    yield cluster
    cluster.close()


@pytest.fixture
def cluster(shared_scheduler: Cluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    """A cluster without workers. None may be left behind, nor what they have started."""
    mark = uuid.uuid4().hex
    monkeypatch.setenv(MARK, mark)
    yield shared_scheduler
    shared_scheduler.end_workers()
    eventually(lambda: not _marked(mark), 3)
    shared_scheduler.await_workers(0)


@pytest.fixture
def own_cluster(tmp_path: Path) -> Iterator[Cluster]:
    """A cluster whose scheduler can be killed."""
    cluster = Cluster(tmp_path)
    yield cluster
    cluster.close()


def _marked(mark: str) -> list[psutil.Process]:
    return [process for process in psutil.process_iter() if _is_marked(process, mark)]


def _is_marked(process: psutil.Process, mark: str) -> bool:
    try:
        return process.environ().get(MARK) == mark and process.status() != "zombie"
    except psutil.Error:  # gone, or not ours
        return False
