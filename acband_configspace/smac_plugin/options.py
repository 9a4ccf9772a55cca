"""The facade's arguments: ours are checked before anything is built, some of SMAC's are ignored."""

from __future__ import annotations

import logging
import math
import os
from collections.abc import Mapping, Sequence
from typing import Any

from ConfigSpace import Configuration
from dask.distributed import Client
from smac.callback.callback import Callback
from smac.initial_design.abstract_initial_design import AbstractInitialDesign
from smac.initial_design.default_design import DefaultInitialDesign

from acband_configspace.core.checks import real_number
from acband_configspace.running.targets import checked_codes

logger = logging.getLogger(__name__)

#: Options that are the runner's alone.
RUNNER_OPTIONS = (
    "racing", "clock", "par", "grace", "to_arguments", "success_codes", "read_result", "directory",
)  # fmt: skip
#: Options of SMAC's intensifiers that have no meaning here.
OF_INTENSIFIERS = (
    "max_config_calls", "max_incumbents", "eta", "n_seeds", "instance_seed_order",
    "incumbent_selection", "retries",
)  # fmt: skip
#: Options of SMAC's initial designs, as its facades take them.
OF_DESIGNS = ("n_configs", "n_configs_per_hyperparameter", "max_ratio")


def check_run_options(given: Mapping[str, Any]) -> None:
    """Raise an error that names the first option whose value makes no sense."""
    for name in ("racing", "overwrite", "allow_crashes"):
        if not isinstance(given[name], bool):
            raise TypeError(f"{name} must be True or False but got {given[name]!r}")
    directory = given["directory"]
    if directory is not None and not isinstance(directory, (str, os.PathLike)):
        raise TypeError(f"directory must be a path but got {directory!r}")
    if given["clock"] not in ("wall", "cpu"):
        raise ValueError(f"clock must be 'wall' or 'cpu' but got {given['clock']!r}")
    _check_number("par", given["par"], at_least=1)
    _check_number("grace", given["grace"], at_least=0)
    _check_number("worker_timeout", given["worker_timeout"], at_least=0, may_be_infinite=True)
    for name in ("to_arguments", "read_result"):
        if given[name] is not None and not callable(given[name]):
            raise TypeError(f"{name} must be a function but got {given[name]!r}")
    if given["success_codes"] is not None:
        checked_codes(given["success_codes"])
    client, tests = given["dask_client"], given["test_instances"]
    if client is not None and not isinstance(client, Client):
        raise TypeError(f"dask_client must be a dask.distributed.Client but got {client!r}")
    _check_all("callbacks", given["callbacks"], Callback, "callbacks of SMAC's")
    _check_all("test_instances", tests, object, "names")
    if isinstance(tests, Sequence) and not tests:
        raise ValueError("test_instances must not be empty but got an empty list")


def _check_number(name: str, value: Any, *, at_least: float, may_be_infinite: bool = False) -> None:
    number = real_number(name, value)
    finite = math.isfinite(number) or (may_be_infinite and number == math.inf)
    if not finite or number < at_least:
        raise ValueError(f"{name} must be at least {at_least} but got {value!r}")


def _check_all(name: str, items: object, kind: type, what: str) -> None:
    if items is None:
        return
    fit = isinstance(items, Sequence) and all(isinstance(i, kind) and i is not None for i in items)
    if isinstance(items, (str, bytes)) or not fit:
        raise TypeError(f"{name} must be a list of {what} but got {items!r}")


def without_ignored(
    where: str, options: Mapping[str, Any], ignored: tuple[str, ...]
) -> dict[str, Any]:
    """Return the options that have a meaning here; a warning names the others."""
    warn_of_ignored(where, [name for name in options if name in ignored])
    return {name: value for name, value in options.items() if name not in ignored}


def warn_of_ignored(where: str, names: list[str]) -> None:
    """Name the arguments that have no effect."""
    if names:
        logger.warning(
            "%s ignores %s: AC-Band does not use SMAC's model, and decides itself how often a "
            "configuration is run.",
            where,
            ", ".join(names),
        )


def configs_of(design: AbstractInitialDesign) -> list[Configuration]:
    """Return the configurations of a user's initial design: they race from the start.

    θ_0 is an option of AC-Band, so the default configuration is not among them.
    """
    if isinstance(design, DefaultInitialDesign):
        return list(design._additional_configs)
    return list(design.select_configurations())
