"""Runs every configuration on every instance, and writes down each result at once.

The journal is a text file to which lines are only added: a header that says what is being
recorded, then ``configuration instance seconds`` for each run. A recording that was interrupted
goes on from it; a last line that was cut short is run again.
"""

from __future__ import annotations

import datetime
import json
import platform
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from acband_configspace.benchmark.recording.solvers import Solver, drawn_values
from acband_configspace.benchmark.tables import RuntimeTable
from acband_configspace.core.checks import whole_number
from acband_configspace.running.local.track import RaceTrack
from acband_configspace.running.race import RaceSpec

Pair = tuple[int, int]
#: How many runs are queued for each worker, so that none waits for the next.
QUEUED = 8


@dataclass(frozen=True)
class Plan:
    """What to record."""

    n_configs: int
    n_instances: int
    cutoff: float
    seed: int = 0

    def __post_init__(self) -> None:
        whole_number("configurations", self.n_configs, at_least=1)
        whole_number("instances", self.n_instances, at_least=1)
        if not self.cutoff > 0:
            raise ValueError(f"cutoff must be positive but got {self.cutoff}")


def record(
    solver: Solver,
    plan: Plan,
    journal: Path,
    folder: Path,
    *,
    workers: int = 1,
    deadline: float | None = None,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
) -> RuntimeTable | None:
    """Run what the journal does not hold yet, and return the instances that all have run on.

    That is the whole table, unless the deadline, by ``time.monotonic()``, has come before; it is
    None if no instance is done by then.

    Raises
    ------
    ValueError
        If the journal is that of another recording.
    """
    runtimes = np.full((plan.n_configs, plan.n_instances), np.nan, dtype=np.float32)
    header = _read_journal(journal, _header(solver, plan), runtimes)  # before anything is written
    space = solver.space()
    values = drawn_values(space, plan.n_configs, plan.seed)
    instances = solver.instances(plan.n_instances, plan.seed, folder)
    n_done = int((~np.isnan(runtimes)).sum())
    with journal.open("a") as lines:
        if lines.tell() == 0:
            lines.write(json.dumps(header) + "\n")
        with RaceTrack(solver.target(), slots=workers, cutoff=plan.cutoff, clock="cpu") as track:
            specs = (
                RaceSpec((c, i), (values[c],), instances[i][1], plan.seed, stop_losers=False)
                for c, i in _missing(runtimes, plan.seed)
            )
            for pair, seconds in _results(track, solver, specs, plan.cutoff):
                runtimes[pair] = seconds
                lines.write(f"{pair[0]} {pair[1]} {seconds:.6g}\n")
                lines.flush()
                n_done += 1
                on_progress(n_done, runtimes.size)
                if deadline is not None and time.monotonic() > deadline:
                    break
    complete: npt.NDArray[np.bool_] = np.logical_not(np.isnan(runtimes).any(axis=0))
    if not complete.any():
        return None
    return RuntimeTable(
        runtimes[:, complete],
        plan.cutoff,
        instance_names=tuple(
            name for (name, _), done in zip(instances, complete, strict=True) if done
        ),
        provenance={**header, "n_instances": int(complete.sum())},
        config_values=tuple(values),
        space=space.to_serialized_dict(),
    )


def _results(
    track: RaceTrack, solver: Solver, specs: Iterator[RaceSpec], cutoff: float
) -> Iterator[tuple[Pair, float]]:
    """Keep the workers busy, and yield what they report."""

    def reported() -> Iterator[tuple[Pair, float]]:
        for report in track.wait():
            assert isinstance(report.key, tuple)
            yield report.key, solver.seconds(report.racers[0], cutoff)

    for spec in specs:
        track.start(spec)
        if track.unfinished >= QUEUED * track.slots:
            yield from reported()
    while track.unfinished:
        yield from reported()


def _missing(runtimes: npt.NDArray[np.float32], seed: int) -> Iterator[Pair]:
    """Yield the runs to do, an instance after the other, its configurations in random order.

    So all configurations meet the same load of the machine, and a recording that is given up has
    complete columns.
    """
    shuffle = random.Random(seed)
    n_configs, n_instances = runtimes.shape
    for instance in range(n_instances):
        order = list(range(n_configs))
        shuffle.shuffle(order)
        for configuration in order:
            if np.isnan(runtimes[configuration, instance]):
                yield configuration, instance


def _header(solver: Solver, plan: Plan) -> dict[str, Any]:
    """Return what is being recorded, where and when."""
    return {
        "target": solver.name,
        "version": solver.version(),
        "n_configs": plan.n_configs,
        "n_instances": plan.n_instances,
        "cutoff": plan.cutoff,
        "seed": plan.seed,
        "measure": "CPU seconds",
        "machine": {
            "processor": _processor(),
            "system": f"{platform.system()} {platform.machine()}",
            "python": platform.python_version(),
        },
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d"),
    }


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:  # not Linux
        pass
    return platform.processor()


def _read_journal(
    journal: Path, header: dict[str, Any], runtimes: npt.NDArray[np.float32]
) -> dict[str, Any]:
    """Fill in what was recorded before, cut off half a line; return the header that holds."""
    if not journal.exists() or not (text := journal.read_text()):
        return header
    complete = text[: text.rfind("\n") + 1]
    if len(complete) < len(text):
        with journal.open("r+") as file:
            file.truncate(len(complete.encode()))
    if not complete:
        return header
    first, *lines = complete.splitlines()
    begun: dict[str, Any] = json.loads(first)
    for key in ("target", "version", "n_configs", "n_instances", "cutoff", "seed"):
        if begun.get(key) != header[key]:
            raise ValueError(
                f"{journal} is a recording with {key} {begun.get(key)!r}, not {header[key]!r}: "
                "give another output, or remove it"
            )
    for line in lines:
        configuration, instance, seconds = line.split()
        runtimes[int(configuration), int(instance)] = float(seconds)
    return begun
