"""Dask workers as SLURM's jobs, and waiting until the first of them has started.

Needs dask-jobqueue, which changes what Ctrl-C does as soon as it is imported: only
``acband run --slurm`` imports this module, and changes that back.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from dask_jobqueue.slurm import SLURMCluster, SLURMJob
from distributed.core import Status

from acband_configspace.errors import NoWorkersError
from acband_configspace.running.signals import exit_on_signals

logger = logging.getLogger(__name__)

#: Seconds until the first look at SLURM's queue: most jobs that fail do so at once.
FIRST_LOOK = 1.0
#: The time between two looks doubles up to this many seconds: others want to know the queue, too.
LOOK_INTERVAL = 60.0
#: Seconds after which squeue is not waited for any longer.
SQUEUE_TIMEOUT = 60.0


class WorkerJob(SLURMJob):
    """A job that remembers why sbatch did not take it, or which cluster has it.

    The error of dask-jobqueue ends in a log: Dask submits jobs where nobody can catch it.
    """

    refusal: str | None = None
    """What sbatch said, None if it has taken the job."""
    cluster_name: str | None = None
    """What sbatch called the cluster, where there are several: others do not know the job."""

    async def start(self) -> None:
        """Submit it."""
        try:
            await super().start()  # type: ignore[no-untyped-call]  # untyped in dask-jobqueue
        except Exception as error:  # whatever it is, nobody else would notice
            self.refusal = _reason(error)
            self.status = Status.running  # as Dask wants it; without a number, nothing is cancelled

    def _job_id_from_submit_output(self, out: str) -> str:
        if named := re.search(r"on cluster (\S+)", out):
            self.cluster_name = named[1]
            self.cancel_command = f"{self.cancel_command} --clusters={named[1]}"
        return str(SLURMJob._job_id_from_submit_output(self, out))

    @staticmethod
    def _call(cmd: list[str], **options: Any) -> Any:
        """Call sbatch or scancel where Ctrl-C at the terminal does not end it half-way."""
        return SLURMJob._call(cmd, start_new_session=True, **options)


def _reason(error: Exception) -> str:
    """Return what sbatch said, or else what dask-jobqueue says."""
    _, _, said = str(error).partition("stderr:\n")
    return said.strip() or str(error)


class WorkerCluster(SLURMCluster):
    """A cluster of such jobs."""

    job_cls = WorkerJob


@contextmanager
def slurm_cluster(partition: str, *, jobs: int, cores: int, memory: str) -> Iterator[WorkerCluster]:
    """Submit so many jobs, each one worker; in the end they are cancelled, after SIGTERM too."""
    with (
        exit_on_signals(),
        WorkerCluster(queue=partition, cores=cores, processes=1, memory=memory) as cluster,
    ):
        cluster.scale(jobs=jobs)
        # Not left to Dask's client, which waits for this too: Ctrl-C would make it drop the task
        # that calls sbatch, and nobody would know the numbers of these jobs to cancel them.
        while not cluster.workers:
            time.sleep(0.05)
        yield cluster


def await_worker(cluster: WorkerCluster) -> None:
    """Wait until a job has started and its worker has connected, as long as one still may.

    There is no other limit: who gives up loses their place in the queue.
    """
    check_taken(cluster)
    refusals = _refusals(cluster)
    if refusals:
        logger.warning(
            "%d of %d jobs could not be submitted to SLURM: %s",
            len(refusals),
            len(cluster.workers),
            refusals[0],
        )
    taken = [(str(job.job_id), job.cluster_name) for job in _jobs(cluster) if job.refusal is None]
    seconds = FIRST_LOOK
    while not _has_worker(cluster, within=seconds):
        if not _is_any_queued(taken):
            raise NoWorkersError(
                "no worker has connected, and none of the jobs is in SLURM's queue any more: see "
                "what they wrote to slurm-*.out, or to the log-directory of dask-jobqueue's "
                "configuration"
            )
        seconds = min(2 * seconds, LOOK_INTERVAL)


def check_taken(cluster: WorkerCluster) -> None:
    """Raise an error, which says why, if SLURM took no job."""
    refusals = _refusals(cluster)
    if len(refusals) == len(cluster.workers):
        raise NoWorkersError(f"no job could be submitted to SLURM: {refusals[0]}")


def _refusals(cluster: WorkerCluster) -> list[str]:
    return [job.refusal for job in _jobs(cluster) if job.refusal is not None]


def _jobs(cluster: WorkerCluster) -> list[WorkerJob]:
    # When Dask closes the cluster it insists that nobody holds a job any more: no variable may do
    # so while an error is on its way.
    return list(cluster.workers.values())


def _has_worker(cluster: WorkerCluster, *, within: float) -> bool:
    """Return whether there is a worker, or one comes within so many seconds."""
    try:
        cluster.wait_for_workers(1, timeout=within)
    except asyncio.TimeoutError:  # up to Python 3.10 this is not TimeoutError
        return False
    return True


def _is_any_queued(jobs: Sequence[tuple[str, str | None]]) -> bool:
    """Return whether one of these jobs is waiting or running; if SLURM does not say, it may be.

    Each comes with the name of its cluster, if sbatch told one.
    """
    if not jobs:  # their workers have come and gone before anybody waited
        return False
    clusters = sorted({cluster for _, cluster in jobs if cluster is not None})
    where = [f"--clusters={','.join(clusters)}"] if clusters else []
    numbers = ",".join(number for number, _ in jobs)
    # The user's own filters, such as SQUEUE_STATES, must not hide a job.
    environment = {k: v for k, v in os.environ.items() if not k.startswith("SQUEUE_")}
    try:
        asked = subprocess.run(
            ["squeue", *where, f"--jobs={numbers}", "--noheader", "--format=%i"],
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SQUEUE_TIMEOUT,
        )
    except (OSError, subprocess.TimeoutExpired):
        return True
    if asked.returncode != 0:
        # Of a single job it says so a few minutes after its end. Anything else may pass, as when
        # SLURM's controller is being restarted.
        return "Invalid job id" not in asked.stderr
    return any(word.isdigit() for word in asked.stdout.split())  # clusters have a title each
