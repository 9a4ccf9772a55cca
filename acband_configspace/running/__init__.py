"""Runs races for real: starts, limits, times, stops and accounts for their processes.

Four kinds of processes, each started by the one before::

    the user's process    RaceTrack: queues races, receives their reports
    supervisor            loads the target once, decides the races
    watchers, one a slot  limit, stop and account for one racer's process tree at a time
    racers                run the target

On a Dask cluster, RaceCluster takes the place of RaceTrack, and every worker has a supervisor.

The public names are loaded on first use: racers inherit the memory of the supervisor, and the less
there is of it, the sooner they start and end.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from acband_configspace.core.ends import End as End
    from acband_configspace.running.dask.cluster import RaceCluster as RaceCluster
    from acband_configspace.running.local.track import RaceTrack as RaceTrack
    from acband_configspace.running.local.track import SupervisorDiedError as SupervisorDiedError
    from acband_configspace.running.local.track import TargetLoadError as TargetLoadError
    from acband_configspace.running.race import Clock as Clock
    from acband_configspace.running.race import RaceReport as RaceReport
    from acband_configspace.running.race import RacerReport as RacerReport
    from acband_configspace.running.race import RaceSpec as RaceSpec
    from acband_configspace.running.race import ScriptReport as ScriptReport
    from acband_configspace.running.race import TrackLimits as TrackLimits
    from acband_configspace.running.targets import CommandTarget as CommandTarget
    from acband_configspace.running.targets import PythonTarget as PythonTarget
    from acband_configspace.running.targets import Target as Target

_HOMES = {
    "race": (
        "Clock", "End", "RaceReport", "RaceSpec", "RacerReport", "ScriptReport", "TrackLimits",
    ),
    "targets": ("CommandTarget", "PythonTarget", "Target"),
    "local.track": ("RaceTrack", "SupervisorDiedError", "TargetLoadError"),
    "dask.cluster": ("RaceCluster",),
}  # fmt: skip

__all__ = [name for names in _HOMES.values() for name in names]


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            return getattr(importlib.import_module(f"{__name__}.{home}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
