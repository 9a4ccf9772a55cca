"""SMAC's arguments that have no meaning for AC-Band: scripts may pass them, and are told so."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from ConfigSpace import Configuration
from smac.initial_design.abstract_initial_design import AbstractInitialDesign
from smac.initial_design.default_design import DefaultInitialDesign

logger = logging.getLogger(__name__)

#: Options of SMAC's intensifiers.
OF_INTENSIFIERS = (
    "max_config_calls", "max_incumbents", "eta", "n_seeds", "instance_seed_order",
    "incumbent_selection", "retries",
)  # fmt: skip
#: Options of SMAC's initial designs, as its facades take them.
OF_DESIGNS = ("n_configs", "n_configs_per_hyperparameter", "max_ratio")


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
            "%s ignores %s: AC-Band builds no model, and decides itself how often a configuration "
            "is run.",
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
