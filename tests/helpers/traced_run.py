"""A short run whose last result can be followed: ``python traced_run.py serial FOLDER``."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from ConfigSpace import ConfigurationSpace, Float
from dask.distributed import Client
from smac import Callback, Scenario
from smac.main.smbo import SMBO
from smac.runhistory.dataclasses import TrialInfo, TrialValue

from acband_configspace import ACBandFacade

FOLDER = Path(sys.argv[2])


def note(name: str, folder: Path) -> None:
    """Write down that something happens now."""
    with (folder / name).open("a") as file:
        file.write(f"{time.monotonic()}\n")


def target(config: Mapping[str, Any], instance: str, seed: int) -> float:
    """Take as long as the configuration says."""
    time.sleep(config["seconds"])
    note("returned", Path(os.environ["TRACE"]))
    return float(config["seconds"])


class Told(Callback):
    """Takes note of results that have arrived."""

    def on_tell_end(self, smbo: SMBO, info: TrialInfo, value: TrialValue) -> None:
        note("told", FOLDER)


def run(mode: str) -> None:
    """Run to the end, in this process, in processes of racers, or on a Dask cluster."""
    space = ConfigurationSpace()
    space.add(Float("seconds", (0.01, 0.2), default=0.1))
    scenario = Scenario(
        space,
        n_trials=8,
        instances=["a", "b", "c"],
        output_directory=FOLDER,
        n_workers=1 if mode == "serial" else 2,
    )
    options: dict[str, Any] = {"racing": mode != "serial", "k": 2, "callbacks": [Told()]}
    with ExitStack() as stack:
        if mode == "dask":
            client = Client(n_workers=1, threads_per_worker=2, dashboard_address=":0")
            options["dask_client"] = stack.enter_context(client)
        ACBandFacade(scenario, target, logging_level=False, progress=False, **options).optimize()


if __name__ == "__main__":
    run(sys.argv[1])
