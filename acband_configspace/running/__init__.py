"""Runs races for real: starts, limits, times, stops and accounts for their processes.

Four kinds of processes, each started by the one before::

    the user's process   RaceTrack: queues races, receives their reports
    starter              loads the target once, decides the races
    keepers, one a slot  limit, stop and account for one racer's process tree at a time
    racers               run the target
"""

from acband_configspace.running.race import (
    Clock,
    RaceReport,
    RacerReport,
    RacerStatus,
    RaceSpec,
    ScriptReport,
)
from acband_configspace.running.racetrack import RaceTrack, StarterDiedError, TargetLoadError
from acband_configspace.running.targets import CommandTarget, PythonTarget, Target

__all__ = [
    "Clock",
    "CommandTarget",
    "PythonTarget",
    "RaceReport",
    "RaceSpec",
    "RaceTrack",
    "RacerReport",
    "RacerStatus",
    "ScriptReport",
    "StarterDiedError",
    "Target",
    "TargetLoadError",
]
