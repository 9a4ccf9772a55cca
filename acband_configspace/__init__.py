"""AC-Band as a plugin for SMAC and ConfigSpace.

* ``ACBandFacade``: finds a good configuration; stands in for one of SMAC's facades.
* ``ACBandIntensifier``: the same within a facade of SMAC's.
* ``Settings``, ``PRESETS``: every option of the search in one value, and the paper's.
* ``Schedule``, ``sufficient_budget``, ``level_for_run``: the paper's plan and its guarantee.
* ``ProgressCallback``: the display in a terminal or notebook.

What is raised is in ``acband_configspace.errors``; tables, simulations and rivals are in
``acband_configspace.benchmark``; reports and pictures of a run are in
``acband_configspace.runlog``.

The names are loaded on first use: the core, the tables and the processes that run the racers must
not pay for importing SMAC.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from acband_configspace._version import __version__

if TYPE_CHECKING:
    from acband_configspace.core.schedule import Schedule as Schedule
    from acband_configspace.core.schedule import sufficient_budget as sufficient_budget
    from acband_configspace.core.settings import PRESETS as PRESETS
    from acband_configspace.core.settings import Settings as Settings
    from acband_configspace.core.stopping import level_for_run as level_for_run
    from acband_configspace.smac_plugin.facade import ACBandFacade as ACBandFacade
    from acband_configspace.smac_plugin.intensifier import ACBandIntensifier as ACBandIntensifier
    from acband_configspace.smac_plugin.progress import ProgressCallback as ProgressCallback

_HOMES = {
    "PRESETS": "acband_configspace.core.settings",
    "ACBandFacade": "acband_configspace.smac_plugin.facade",
    "ACBandIntensifier": "acband_configspace.smac_plugin.intensifier",
    "ProgressCallback": "acband_configspace.smac_plugin.progress",
    "Schedule": "acband_configspace.core.schedule",
    "Settings": "acband_configspace.core.settings",
    "level_for_run": "acband_configspace.core.stopping",
    "sufficient_budget": "acband_configspace.core.schedule",
}

__all__ = [
    "PRESETS",
    "ACBandFacade",
    "ACBandIntensifier",
    "ProgressCallback",
    "Schedule",
    "Settings",
    "__version__",
    "level_for_run",
    "sufficient_budget",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__
