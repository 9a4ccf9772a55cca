"""AC-Band as a plugin for SMAC and ConfigSpace.

The public names are loaded on first use: the core, the tables and the processes that run the
racers must not pay for importing SMAC.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from acband_configspace._version import __version__

if TYPE_CHECKING:
    from acband_configspace.core.schedule import Schedule as Schedule
    from acband_configspace.core.schedule import sufficient_budget as sufficient_budget
    from acband_configspace.core.settings import PRESETS as PRESETS
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
    "level_for_run": "acband_configspace.core.stopping",
    "sufficient_budget": "acband_configspace.core.schedule",
}

__all__ = [
    "PRESETS",
    "ACBandFacade",
    "ACBandIntensifier",
    "ProgressCallback",
    "Schedule",
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
