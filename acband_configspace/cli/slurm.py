"""Dask workers as SLURM's jobs, and waiting until the first of them has started.

Needs dask-jobqueue, which changes what Ctrl-C does as soon as it is imported: only
``acband run --slurm`` imports this module.
"""

from __future__ import annotations

import asyncio
import logging
import os
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from dask_jobqueue.slurm import SLURMCluster, SLURMJob
from distributed.core import Status

from acband_configspace.errors import NoWorkersError
from acband_configspace.smac_plugin.runners import exit_on_sigterm, interrupt_on_ctrl_c

logger = logging.getLogger(__name__)

#: Seconds until the first look at SLURM's queue: most jobs that fail do so at once.
FIRST_LOOK = 1.0
#: The time between two looks doubles up to this many seconds: others want to know the queue, too.
LOOK_INTERVAL = 60.0
#: Seconds after which squeue is not waited for any longer.
SQUEUE_TIMEOUT = 60.0


class WorkerJob(SLURMJob):
    """A job that remembers why sbatch did not take it.

    The error of dask-jobqueue ends in a log: Dask submits jobs where nobody can catch it.
    """

    refusal: str | None = None
    """What sbatch said, None if it has taken the job."""

    async def start(self) -> None:
        """Submit it."""
        try:
            await super().start()  # type: ignore[no-untyped-call]  # untyped in dask-jobqueue
        except Exception as error:  # whatever it is, nobody else would notice
            self.refusal = _reason(error)
            self.status = Status.running  # as Dask wants it; without a number, nothing is cancelled


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
        exit_on_sigterm(),
        interrupt_on_ctrl_c(),
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
    jobs = _submitted(cluster)
    seconds = FIRST_LOOK
    while not _has_worker(cluster, within=seconds):
        if not _is_any_queued(jobs):
            raise NoWorkersError(
                "no worker has connected, and no job is in SLURM's queue any more: see what they "
                "wrote to slurm-*.out, or to the log-directory of dask-jobqueue's configuration"
            )
        seconds = min(2 * seconds, LOOK_INTERVAL)


def _submitted(cluster: WorkerCluster) -> list[str]:
    """Return the numbers of the jobs that SLURM has taken; an error says why it took none."""
    # When Dask closes the cluster it insists that nobody holds a job any more: no variable may do
    # so here while the error is on its way.
    jobs = [job.job_id for job in list(cluster.workers.values()) if job.refusal is None]
    refusals = [job.refusal for job in list(cluster.workers.values()) if job.refusal is not None]
    if refusals and not jobs:
        raise NoWorkersError(f"no job could be submitted to SLURM: {refusals[0]}")
    if refusals:
        n_jobs = len(jobs) + len(refusals)
        logger.warning(
            "%d of %d jobs could not be submitted to SLURM: %s", len(refusals), n_jobs, refusals[0]
        )
    return jobs


def _has_worker(cluster: WorkerCluster, *, within: float) -> bool:
    """Return whether there is a worker, or one comes within so many seconds."""
    try:
        cluster.wait_for_workers(1, timeout=within)
    except asyncio.TimeoutError:  # up to Python 3.10 this is not TimeoutError
        return False
    return True


def _is_any_queued(jobs: Sequence[str]) -> bool:
    """Return whether one of these jobs is waiting or running; if SLURM does not say, it may be."""
    if not jobs:  # their workers have come and gone before anybody waited
        return False
    # The user's own filters, such as SQUEUE_STATES, must not hide a job.
    environment = {k: v for k, v in os.environ.items() if not k.startswith("SQUEUE_")}
    try:
        asked = subprocess.run(
            ["squeue", f"--jobs={','.join(jobs)}", "--noheader", "--format=%i"],
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
    return bool(asked.stdout.strip())
