"""What SMAC's trials mean to AC-Band: which failed, what a race brought, what to validate on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from smac.runhistory.dataclasses import InstanceSeedKey, TrialValue
from smac.runhistory.enumerations import StatusType
from smac.scenario import Scenario

from acband_configspace.core.instances import SEED_LIMIT, InstanceKey
from acband_configspace.core.race import Outcome
from acband_configspace.errors import FirstRaceCrashedError

#: How many fresh seeds validate a configuration of a target that has no instances.
VALIDATION_SEEDS = 30


@dataclass(frozen=True)
class RaceRecord:
    """A finished race, with all that is needed to take it in again."""

    name: str
    """The pass, epoch, round, group and index of the race."""
    key: InstanceKey
    racers: tuple[int, ...]
    values: tuple[TrialValue, ...]
    walltime: float
    """Seconds the run had taken when the race was over."""
    n_trials: int
    """Trials that were finished by then."""


def succeeded(value: TrialValue) -> bool:
    """Return whether a trial came to its end with a cost; NaN and infinity are crashes."""
    return value.status == StatusType.SUCCESS and bool(np.all(np.isfinite(value.cost)))


def is_censored(value: TrialValue) -> bool:
    """Return whether a racer was stopped because another one had won.

    A racer that met the cutoff is done: it would meet it again.
    """
    return _why(value) == "lost"


def is_cancelled(value: TrialValue) -> bool:
    """Return whether a racer was stopped with its whole race."""
    return _why(value) == "cancelled"


def _why(value: TrialValue) -> object:
    # A trial that succeeded has nothing to explain; what it says is the target's own word.
    return None if value.status == StatusType.SUCCESS else value.additional_info.get("why")


def outcome_of(values: Sequence[TrialValue], *, needs_all_costs: bool) -> Outcome:
    """Return what a race brought.

    Where only winning counts, a failure is no finish whatever cost stands for it; where every
    cost counts, a limit that was met costs what the user says it does.
    """
    costs = []
    for value in values:
        cost = float(np.asarray(value.cost).squeeze())
        counts = is_censored(value) or succeeded(value) or needs_all_costs
        costs.append(cost if counts and np.isfinite(cost) else np.inf)
    return Outcome(costs, [is_censored(value) for value in values])


def refuse_crashed(values: Sequence[TrialValue], scenario: Scenario) -> None:
    """Raise an error if every racer of the first race crashed: the target cannot work."""
    if any(value.status != StatusType.CRASHED for value in values):
        return
    infos = [value.additional_info for value in values]
    reasons = [info.get("traceback") or info.get("error") for info in infos]
    limits = (scenario.trial_walltime_limit, scenario.trial_memory_limit)
    if limits != (None, None) and not any(reasons):
        return  # SMAC calls a limit that was met a crash if crash_cost is infinite, its default
    no_reason = "no reason is known; a cost that is None, NaN or infinite is a crash, too"
    reason = next(filter(None, reasons), no_reason)
    raise FirstRaceCrashedError(
        f"every racer of the first race crashed; the first one because of:\n{reason}"
    )


def refuse_unsupported(scenario: Scenario) -> None:
    """Raise a ValueError that names what of the scenario AC-Band cannot do."""
    if scenario.count_objectives() > 1:
        raise ValueError(f"objectives must be one for AC-Band but got {scenario.objectives}")
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
