"""A user's script, ``python cluster_run.py SCHEDULER FOLDER``: to be killed, and resumed."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from cluster_targets import sleep_as_configured
from ConfigSpace import ConfigurationSpace, Float
from dask.distributed import Client
from smac import Scenario

from acband_configspace import ACBandFacade


def facade(
    folder: Path,
    target: Any,
    client: Client | None = None,
    *,
    walltime_limit: float = float("inf"),
    **options: Any,
) -> ACBandFacade:
    space = ConfigurationSpace(seed=0)
    space.add(Float("x", (0.0, 1.0)))
    scenario = Scenario(
        space,
        name="run",
        n_trials=24,
        walltime_limit=walltime_limit,
        instances=[str(number) for number in range(12)],
        seed=3,
        output_directory=folder,
    )
    # All races are run, so that the journals of two runs can be compared.
    settings = {"k": 2, "early_stopping": None, "logging_level": False, **options}
    return ACBandFacade(scenario, target, dask_client=client, **settings)


if __name__ == "__main__":
    with Client(sys.argv[1]) as its_client:
        facade(Path(sys.argv[2]), sleep_as_configured, its_client, racing=True).optimize()
