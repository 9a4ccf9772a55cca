"""A SMAC runner for Dask clusters, in place of SMAC's own, which sends single trials."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dask.distributed import Client
from smac.scenario import Scenario

from acband_configspace.core.checks import real_number
from acband_configspace.running import PythonTarget
from acband_configspace.running.dask.cluster import RaceCluster
from acband_configspace.smac_plugin.runners import RaceRunner


class DaskRaceRunner(RaceRunner):
    """Runs trials like :class:`RaceRunner`, but on the workers of a Dask cluster.

    With ``racing`` all trials of a race run on one worker, otherwise each trial for itself.
    Workers may join and leave: what a lost worker was running is run again elsewhere.

    Parameters
    ----------
    scenario : Scenario
        ``n_workers`` is ignored: the cluster has as many workers as it has.
    target : callable, str or list of str
        As for the facade. Sent to each worker once, as is the space.
    client : Client
        Stays open.
    k : int
        How many racers a race has.
    worker_timeout : float
        Seconds to wait for workers when there are none.
    **options
        Those of :class:`RaceRunner`.
    """

    def __init__(
        self,
        scenario: Scenario,
        target: Callable[..., Any] | str | Sequence[str],
        client: Client,
        *,
        k: int,
        worker_timeout: float = 300.0,
        racing: bool,
        **options: Any,
    ) -> None:
        if real_number("worker_timeout", worker_timeout) < 0:
            raise ValueError(f"worker_timeout must not be negative but got {worker_timeout!r}")
        super().__init__(scenario, target, racing=racing, **options)
        self._client = client
        self._given_target = target
        self._k = k if racing else 1
        self._worker_timeout = worker_timeout
        self._cluster: RaceCluster | None = None

    def scatter(self, data: Mapping[str, Any]) -> None:
        """Pass this to the target function as ``data_to_scatter``, as SMAC does.

        It goes to each worker once, as a part of the target, and racers find it in memory.
        """
        if not callable(self._given_target):
            raise TypeError("data_to_scatter must be None for a command, which cannot take it")
        self.close()
        with_data = functools.partial(self._given_target, data_to_scatter=dict(data))
        self._target = PythonTarget(with_data)

    def close(self) -> None:
        """Stop all that runs on the workers; what is submitted later starts them again."""
        super().close()
        self._cluster = None

    @property
    def _n_slots(self) -> int:
        return self._open_track().slots

    def _open_track(self) -> RaceCluster:
        if self._cluster is None:
            self._track = self._cluster = RaceCluster(
                self._client,
                self._target,
                racers=self._k,
                worker_timeout=self._worker_timeout,
                **self._track_options(),
            )
        return self._cluster
