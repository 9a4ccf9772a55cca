"""What a SMAC scenario means to AC-Band: its limits, what is refused, what to validate on."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from smac.runhistory.dataclasses import InstanceSeedKey
from smac.scenario import Scenario

from acband_configspace.core.checks import real_number, whole_number
from acband_configspace.core.instances import SEED_LIMIT

#: How many fresh seeds validate a configuration of a target that has no instances.
VALIDATION_SEEDS = 30
#: What SMAC takes for ``n_trials`` where nothing is given.
DEFAULT_N_TRIALS: int = Scenario.n_trials  # a dataclass keeps its defaults as attributes


class ScenarioWithTrials(Scenario):
    """A scenario whose ``n_trials`` was given, and counts even if it is SMAC's default.

    A class of its own, since SMAC saves all attributes and takes them for arguments when it loads
    them.
    """


def is_timed(scenario: Scenario) -> bool:
    """Return whether a time limit may end the run."""
    return math.isfinite(min(scenario.walltime_limit, scenario.cputime_limit))


def trial_limit(scenario: Scenario) -> float:
    """Return how many trials may be started.

    With a time limit, and ``n_trials`` left at SMAC's default, the time alone decides.
    """
    given = isinstance(scenario, ScenarioWithTrials) or scenario.n_trials != DEFAULT_N_TRIALS
    return scenario.n_trials if given or not is_timed(scenario) else math.inf


def own_copy(scenario: Scenario, make_name: Callable[[], str]) -> Scenario:
    """Return a copy for one run, under a name of its own if the user gave it none.

    The user's own is left alone: another facade may use it. The directory is absolute, since a
    target may change the working directory.
    """
    own = copy.copy(scenario)
    object.__setattr__(own, "output_directory", Path(scenario.output_directory).absolute())
    if own.name is None:
        # SMAC's own name depends on the limits, and on memory addresses.
        object.__setattr__(own, "name", make_name())
        own._change_output_directory()
    return own


def hold_back(scenario: Scenario, share: float) -> tuple[Scenario, list[str]]:
    """Return a scenario without a share of its instances, drawn by its seed, and that share."""
    if not 0 < real_number("test_share", share) < 1:
        raise ValueError(f"test_share must lie between 0 and 1 but got {share!r}")
    names = scenario.instances
    if names is None or len(names) < 2:
        n_there = 0 if names is None else len(names)
        raise ValueError(f"test_share needs at least two instances but got {n_there}")
    n_tests = min(max(1, round(share * len(names))), len(names) - 1)
    drawn = set(np.random.default_rng([scenario.seed, 4]).permutation(len(names))[:n_tests])
    own = copy.copy(scenario)
    kept = [name for i, name in enumerate(names) if i not in drawn]
    object.__setattr__(own, "instances", kept)
    if scenario.instance_features is not None:
        features = {name: scenario.instance_features[name] for name in kept}
        object.__setattr__(own, "instance_features", features)
    return own, [name for i, name in enumerate(names) if i in drawn]


def refuse_unsupported(scenario: Scenario) -> None:
    """Raise an error that names what the scenario asks for and AC-Band cannot do."""
    if not isinstance(scenario, Scenario):
        kind = type(scenario).__name__
        hint = ": write Scenario(space, n_trials=…)" if kind == "ConfigurationSpace" else ""
        raise TypeError(f"scenario must be a smac.Scenario but got a {kind}{hint}")
    if scenario.count_objectives() > 1:
        raise ValueError(
            f"objectives must be a single one for AC-Band but got {scenario.objectives}"
        )
    for name in ("min_budget", "max_budget"):
        if (value := getattr(scenario, name)) is not None:
            raise ValueError(
                f"{name} must be None for AC-Band, which races on instances or seeds instead of "
                f"fidelities, but got {value!r}"
            )
    if scenario.adaptive_capping:
        raise ValueError(
            "adaptive_capping must be False for AC-Band, which stops losers by itself with "
            "racing=True, but got True"
        )
    if scenario.runtime_cutoff is not None:
        raise ValueError(
            "runtime_cutoff must be None for AC-Band, which takes the cutoff from "
            f"trial_walltime_limit, but got {scenario.runtime_cutoff!r}"
        )
    whole_number("n_trials", scenario.n_trials, at_least=2)
    whole_number("n_workers", scenario.n_workers, at_least=1)
    whole_number("seed", scenario.seed, at_least=0)
    for name in ("walltime_limit", "cputime_limit", "trial_walltime_limit", "trial_memory_limit"):
        value = getattr(scenario, name)
        if value is not None and not real_number(name, value) > 0:
            raise ValueError(f"{name} must be positive but got {value!r}")
    for name in ("crash_cost", "termination_cost_threshold"):
        # A list for several objectives; here it may have one.
        for cost in np.atleast_1d(np.asarray(getattr(scenario, name), dtype=object)):
            if math.isnan(real_number(name, cost)):
                raise ValueError(f"{name} must be a number but got {cost!r}")
    if not isinstance(scenario.deterministic, bool):
        raise TypeError(f"deterministic must be True or False but got {scenario.deterministic!r}")


def validation_keys(
    scenario: Scenario, instances: Sequence[str] | None, seed: int | None
) -> list[InstanceSeedKey]:
    """Return the instances, or fresh seeds, that a configuration is validated on."""
    rng = np.random.default_rng([scenario.seed if seed is None else seed, 3])
    if instances is not None:
        seeds = rng.integers(SEED_LIMIT, size=len(instances)).tolist()
        return [InstanceSeedKey(str(i), s) for i, s in zip(instances, seeds, strict=True)]
    n_seeds = 1 if scenario.deterministic else VALIDATION_SEEDS
    return [InstanceSeedKey(None, s) for s in rng.integers(SEED_LIMIT, size=n_seeds).tolist()]
