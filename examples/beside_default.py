"""What the examples print in the end: the tuned configuration beside the default."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from acband_configspace import ACBandFacade
from acband_configspace.runlog.verdict import Verdict


def print_found(found: Mapping[str, Any], default: Mapping[str, Any]) -> None:
    """Print a configuration and what the default has in its place."""
    print("Found:")
    for name, value in sorted(found.items()):
        mark = "" if default.get(name) == value else f"   (default: {default.get(name)})"
        print(f"  {name} = {value}{mark}")


def test_costs(facade: ACBandFacade, config: Mapping[str, Any], instances: list[str]) -> np.ndarray:
    """Run a configuration on test instances and return what each cost."""
    return np.array([trial.value.cost for trial in facade.validate(config, instances).trials])


def comparison(tuned: np.ndarray, plain: np.ndarray, *, cutoff: float, par: float) -> str:
    """Compare costs on the same instances; a run that met the cutoff has cost par × cutoff."""
    return str(Verdict.of(tuned.tolist(), plain.tolist(), racing=True, cutoff=cutoff, par=par))
