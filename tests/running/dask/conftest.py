"""One scheduler for most tests; workers of their own, so that they can be killed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from cluster_helpers import Cluster, eventually


@pytest.fixture(scope="session")
def shared_scheduler(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    cluster = Cluster(tmp_path_factory.mktemp("dask"))
    yield cluster
    cluster.close()


@pytest.fixture
def cluster(shared_scheduler: Cluster) -> Iterator[Cluster]:
    """A cluster to have workers in. They may stay, but nothing that they have started."""
    yield shared_scheduler
    for worker in shared_scheduler.living_workers:
        children = psutil.Process(worker.pid).children(recursive=True)
        eventually(lambda: not any(child.is_running() for child in children))  # noqa: B023


@pytest.fixture
def own_cluster(tmp_path: Path) -> Iterator[Cluster]:
    """A cluster whose scheduler can be killed."""
    cluster = Cluster(tmp_path)
    yield cluster
    cluster.close()
