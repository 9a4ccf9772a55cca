"""How the incumbent compares with the default by now, from what the run history knows."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ConfigSpace import Configuration
from smac.main.smbo import SMBO
from smac.runhistory.dataclasses import TrialKey
from smac.runhistory.runhistory import RunHistory

from acband_configspace.core.ends import End
from acband_configspace.core.instances import InstanceKey
from acband_configspace.runlog.words import gain
from acband_configspace.smac_plugin.intensifier import ACBandIntensifier
from acband_configspace.smac_plugin.trial_values import cost_of, end_of

#: So many values of a configuration are told.
MOST_VALUES = 8


@dataclass(frozen=True)
class Standing:
    """Who leads, and how it compares with the default on the instances that both have met."""

    number: int
    """The number of the incumbent."""
    values: str
    """Its values, the first of them if there are many."""
    is_default: bool
    n_common: int
    """On how many instances they have met."""
    gain: str | None
    """How much better it is there, "23 % less than the default"; None if that is not known."""
    at_least: bool
    """Whether the default was stopped on some of them: it is then worse than that."""

    @classmethod
    def of(cls, smbo: SMBO) -> Standing | None:
        """Look at a run; None as long as nobody leads."""
        intensifier = smbo.intensifier
        assert isinstance(intensifier, ACBandIntensifier)
        incumbent = next(iter(intensifier.get_incumbents()), None)
        if incumbent is None:
            return None
        default = smbo._scenario.configspace.get_default_configuration()
        own, other = (_costs(smbo.runhistory, config) for config in (incumbent, default))
        common = [key for key, (_, known) in own.items() if known and key in other]
        n = max(1, len(common))
        means = [sum(costs[key][0] for key in common) / n for costs in (other, own)]
        at_least = not all(other[key][1] for key in common)
        # A lower bound on the default's mean says nothing while it is below the incumbent's.
        is_known = bool(common) and not (at_least and means[0] < means[1])
        return cls(
            number=intensifier.configurations.number_of(incumbent) or 0,
            values=_values(incumbent),
            is_default=dict(incumbent) == dict(default),
            n_common=len(common),
            gain=gain(*means, racing=intensifier.racing) if is_known else None,
            at_least=at_least,
        )

    def __str__(self) -> str:
        if self.is_default:
            return f"#{self.number} (default)"
        if self.gain is None:
            verb = "known to beat" if self.n_common else "compared with"
            return f"#{self.number}, not {verb} the default yet"
        return f"#{self.number}, {'at least ' if self.at_least else ''}{self.gain}"


def _costs(runhistory: RunHistory, config: Configuration) -> dict[InstanceKey, tuple[float, bool]]:
    """Return the finite costs of a configuration, and whether each is known or only a bound."""
    if config not in runhistory.config_ids:
        return {}
    costs = {}
    for trial in runhistory.get_trials(config):
        key = TrialKey(runhistory.get_config_id(config), trial.instance, trial.seed, trial.budget)
        value = runhistory[key]
        known = end_of(value) is not End.LOST
        if end_of(value) is not End.CANCELLED and math.isfinite(cost_of(value)):
            costs[InstanceKey(trial.instance, int(trial.seed or 0))] = (cost_of(value), known)
    return costs


def _values(config: Configuration) -> str:
    shown = [
        f"{name}={value:.4g}" if isinstance(value, float) else f"{name}={value}"
        for name, value in config.items()
    ]
    more = len(shown) - MOST_VALUES
    return ", ".join(shown[:MOST_VALUES]) + (f" and {more} more" if more > 0 else "")
