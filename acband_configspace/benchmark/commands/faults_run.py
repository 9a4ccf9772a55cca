"""A run that is disturbed: ``python -m …faults_run KIND FOLDER [SCHEDULER_FILE]``.

Started again, it goes on. Its last line says, in JSON, whom it has found.
"""

from __future__ import annotations

import json
import os
import sys
import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ConfigSpace import ConfigurationSpace, Integer
from smac.scenario import Scenario

from acband_configspace.benchmark.commands.faults_actions import CALLS
from acband_configspace.smac_plugin.facade import ACBandFacade

#: How many racers run at a time, in all.
SLOTS = 2
#: How long a racer takes by its level: so different that the same one wins on a busy machine, too.
SECONDS = (0.25, 0.8, 2.0, 4.5, 9.0)

#: Leaves two processes behind, each in its own way out of sight.
_SCRIPT = """#!/bin/sh
echo "$1 $2 $3" >> "$ACBAND_FAULTS_CALLS"
setsid sleep 300 &
(sleep 300 &)
case $1 in {cases} esac
"""


def _note_call(*what: object) -> None:
    line = " ".join(map(str, what)) + "\n"
    descriptor = os.open(os.environ[CALLS], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
    os.write(descriptor, line.encode())
    os.close(descriptor)


def cost(config: Mapping[str, Any], instance: str, seed: int) -> float:
    """Return a cost that depends on the arguments alone, after a moment."""
    _note_call(config["level"], instance, seed)
    time.sleep(0.15)
    noise = zlib.crc32(f"{config['level']} {instance} {seed}".encode()) / 2**32
    return abs(int(config["level"]) - 17) + 5 * noise


def sleep(config: Mapping[str, Any], instance: str, seed: int) -> None:
    """Take the time that belongs to the level."""
    _note_call(config["level"], instance, seed)
    time.sleep(SECONDS[int(config["level"])])


def script_arguments(config: Mapping[str, Any], instance: str, seed: int, _: object) -> list[str]:
    """Return the arguments of the script."""
    return [str(config["level"]), instance, str(seed)]


def facade(kind: str, folder: Path, client: Any = None) -> ACBandFacade:
    """Return the facade of a run, which goes on if it was begun before."""
    racing = kind != "costs"
    n_levels = len(SECONDS) if racing else 100
    space = ConfigurationSpace(seed=1)
    space.add(Integer("level", (0, n_levels - 1), default=n_levels - 2))
    scenario = Scenario(
        space,
        name="run",
        n_trials=40,
        instances=[f"i{number}" for number in range(10)],
        trial_walltime_limit=60,
        n_workers=1 if kind == "dask" else SLOTS,
        seed=5,
        output_directory=folder,
    )
    target: Callable[..., Any] | Sequence[str] = sleep if racing else cost
    options: dict[str, Any] = {}
    if kind == "script":
        target, options = [_script(folder)], {"to_arguments": script_arguments}
    if kind == "dask":
        options = {"dask_client": client, "worker_timeout": 60}
    return ACBandFacade(scenario, target, racing=racing, k=2, logging_level=False, **options)


def _script(folder: Path) -> str:
    path = folder / "target.sh"
    if not path.exists():
        cases = " ".join(f"{level}) sleep {s};;" for level, s in enumerate(SECONDS))
        path.write_text(_SCRIPT.format(cases=cases))
        path.chmod(0o755)
    return str(path)


def main() -> int:
    """Run, or go on, to the end."""
    kind, folder, *scheduler_file = sys.argv[1:]
    client: Any = None
    if kind == "dask":
        from distributed import Client

        connect: Any = Client
        client = connect(scheduler_file=scheduler_file[0], timeout=20)
    incumbent = facade(kind, Path(folder), client).optimize()
    print(json.dumps({"level": int(incumbent["level"])}), flush=True)
    if client is not None:
        client.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
