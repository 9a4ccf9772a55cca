"""A racer as its watcher has it, without the processes around them."""

from __future__ import annotations

import math
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import psutil

from acband_configspace.core.ends import End
from acband_configspace.running.local.messages import CommandJob, RunRacer
from acband_configspace.running.local.racer import LoadedTarget, launch
from acband_configspace.running.local.watcher import RacerRun
from acband_configspace.running.race import TrackLimits

NOTHING = LoadedTarget(function=None, read_result=None, shared=None)
#: More than any process has.
CLOSED_DESCRIPTOR = 2**30


@contextmanager
def started(*command: str) -> Iterator[RacerRun]:
    """Have a racer on the CPU clock."""
    order = RunRacer(CommandJob(command), limit=math.inf)
    run = RacerRun(order, TrackLimits(cutoff=60.0, clock="cpu"), NOTHING, private=())
    yield run
    os.kill(run.racer.pid, signal.SIGKILL)
    os.waitpid(run.racer.pid, 0)
    for pipe in list(run.streams.open_pipes):
        run.streams.close(pipe)


def test_a_private_descriptor_that_is_not_open_keeps_no_racer_from_starting() -> None:
    """As that of a kqueue is on macOS, where a forked process has none."""
    racer = launch(CommandJob(("true",)), NOTHING, private=[CLOSED_DESCRIPTOR])
    _, status = os.waitpid(racer.pid, 0)
    for pipe in (racer.output, racer.errors, racer.result):
        os.close(pipe)
    assert os.waitstatus_to_exitcode(status) == 0


def test_what_happens_to_a_racer_causes_no_look_at_its_cpu_time() -> None:
    """Whatever it prints is an event; a look takes 0.2 ms or more."""
    with started("sleep", "60") as run:
        before = time.process_time()
        for _ in range(3000):
            assert run.broken_limit() is None
        assert time.process_time() - before < 0.3


def test_a_limit_that_is_lowered_is_looked_at_at_once() -> None:
    with started(sys.executable, "-SEc", "while True: pass") as run:
        process = psutil.Process(run.racer.pid)
        while sum(process.cpu_times()[:2]) < 0.1:
            time.sleep(0.01)
        run.lower_limit(0.05)
        assert run.patience() == 0.0
        assert run.broken_limit() is End.LOST
