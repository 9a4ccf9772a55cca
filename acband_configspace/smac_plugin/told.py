"""Results that are known before the first race: who of them takes part, and what they count."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import Any

from ConfigSpace import Configuration

from acband_configspace.core.earlier import best_known
from acband_configspace.core.instances import InstanceKey
from acband_configspace.smac_plugin.configurations import Configurations, name_of_values
from acband_configspace.smac_plugin.pending import KnownValues
from acband_configspace.smac_plugin.trial_values import ToldTrial, cost_of

Results = Mapping[Hashable, Mapping[InstanceKey, ToldTrial]]
"""The results of each configuration, by its name and the instance."""


class Told:
    """The results that were told before the first race, in their order, one for each trial."""

    def __init__(self, trials: Iterable[ToldTrial] = ()) -> None:
        self._results: dict[Hashable, dict[InstanceKey, ToldTrial]] = {}
        self.n_warm = 0
        """How many come from a warm start: they take nothing of ``n_trials``."""
        self.n_counted = 0
        """How many do not, and count as run."""
        for trial in trials:
            self.add(trial)

    def __len__(self) -> int:
        return self.n_warm + self.n_counted

    def __iter__(self) -> Iterator[ToldTrial]:
        return (trial for own in self._results.values() for trial in own.values())

    def __contains__(self, trial: ToldTrial) -> bool:
        """Return whether this very result is known."""
        known = self._results.get(name_of_values(trial.config), {}).get(trial.key)
        return known is not None and _kept(known) == _kept(trial)

    def add(self, trial: ToldTrial) -> None:
        """Add a result, perhaps in the place of another of the same trial."""
        own = self._results.setdefault(name_of_values(trial.config), {})
        self._count(own.get(trial.key), -1)
        own[trial.key] = trial
        self._count(trial, 1)

    def replaces(self, trial: ToldTrial) -> bool:
        """Return whether something was told in the place of this result of a warm start."""
        known = self._results.get(name_of_values(trial.config), {}).get(trial.key)
        return known is not None and not known.warm

    def _count(self, trial: ToldTrial | None, by: int) -> None:
        if trial is not None:
            self.n_warm += by * trial.warm
            self.n_counted += by * (not trial.warm)

    def configs(self, most: int) -> list[Configuration]:
        """Return who races from the start: those of a warm start, and the best of the others.

        However many were told, at most so many of the others: each of them would be run again
        before anything new is drawn.
        """
        others = {
            name: own
            for name, own in self._results.items()
            if not any(trial.warm for trial in own.values())
        }
        good = set(best_of(others, most))
        return [
            next(iter(own.values())).config
            for name, own in self._results.items()
            if name in good or name not in others
        ]

    def keys_of(self, configurations: Configurations) -> list[InstanceKey]:
        """Return the instances that these have met, those that most of them have met first."""
        met = (told for told in self if configurations.number_of(told.config) is not None)
        return [key for key, _ in Counter(told.key for told in met).most_common()]

    def values(self, *, only_seed: int | None) -> KnownValues:
        """Return the results, as they are looked up.

        If seeds do not matter, all results are of the only one.
        """
        return {
            name: {
                InstanceKey(key.instance, key.seed if only_seed is None else only_seed): told.value
                for key, told in own.items()
            }
            for name, own in self._results.items()
        }


def best_of(results: Results, most: int) -> list[Hashable]:
    """Return the names of the best configurations, at most so many, the best first."""
    names = list(results)
    costs = {
        number: {key: cost_of(trial.value) for key, trial in results[name].items()}
        for number, name in enumerate(names)
    }
    return [names[number] for number in best_known(costs, most)]


def _kept(trial: ToldTrial) -> dict[str, Any]:
    """Return a result as a journal keeps it: it may come from there."""
    return {**trial.as_json(), "warm": None}
