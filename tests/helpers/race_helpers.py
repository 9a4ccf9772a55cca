"""What the tests of races share."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import psutil

from acband_configspace.running import RaceReport, RaceSpec, RaceTrack

MARK = "ACBAND_TEST_MARK"


def marked_processes(mark: str) -> list[psutil.Process]:
    """All other processes with the mark in their environment, wherever they have hidden."""
    return [process for process in psutil.process_iter() if _is_marked(process, mark)]


def _is_marked(process: psutil.Process, mark: str) -> bool:
    if process.pid == os.getpid():
        return False
    try:
        return process.environ().get(MARK) == mark and process.status() != "zombie"
    except psutil.Error:  # gone, or not ours
        return False


def watchers_of(supervisor: psutil.Process) -> list[psutil.Process]:
    """The watchers, in order; the guard is the only other child."""
    found = [child for child in supervisor.children() if child.name() != "sh"]
    return sorted(found, key=lambda process: process.pid)


def race(track: RaceTrack, *configurations: Mapping[str, Any], **options: Any) -> RaceReport:
    """Run one race to its end."""
    track.start(RaceSpec("only", configurations, **options))
    [report] = track.wait(30)
    assert report.key == "only"
    return report


def statuses(report: RaceReport) -> list[str]:
    return [racer.status.value for racer in report.racers]
