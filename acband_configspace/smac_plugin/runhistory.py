"""SMAC's run history with a constant cost per trial."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, TextIO

from ConfigSpace import Configuration
from smac.runhistory.dataclasses import (
    InstanceSeedBudgetKey,
    InstanceSeedKey,
    TrialInfo,
    TrialKey,
    TrialValue,
)
from smac.runhistory.enumerations import StatusType
from smac.runhistory.runhistory import RunHistory
from smac.utils.numpyencoder import NumpyEncoder

from acband_configspace.smac_plugin.trial_values import is_result

#: How the line of a trial begins in a file that was saved.
_TRIAL = '{"config_id": '
#: And how it mostly goes on: names with characters that JSON escapes are rare.
_PLACE = re.compile(r'{"config_id": (\d+), "instance": (?:null|"([^"\\]*)"), "seed": (\d+),')
#: How many trials were over, in the first line of such a file.
_FINISHED = re.compile(r'{"stats": {.*?"finished": (\d+)')
#: The ids of configurations that were told and take no part start here.
FIRST_FOREIGN = 10**9


class LinearRunHistory(RunHistory):
    """A run history for one objective and no fidelities that stays fast however long it gets.

    SMAC's own looks at all trials, and at all trials of the configuration, each time one is added;
    this one keeps sums instead. What it answers and what it saves is the same, but for racers
    that lost: what they cost is not known, so they do not count in the mean of a configuration,
    which is infinite if it has no other results: whoever looks for the lowest must not find it.
    """

    number_of: Callable[[Configuration], int | None] | None = None
    """The number that a configuration has in the journal, the report and the logs: its id here."""

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the function that numbers configurations: a copy has its numbers already."""
        return {name: value for name, value in vars(self).items() if name != "number_of"}

    def reset(self) -> None:
        """Forget all trials."""
        super().reset()
        self._running_by_key: dict[TrialKey, TrialInfo] = {}
        self._known_costs: dict[int, tuple[float, int]] = {}
        self._places: dict[tuple[str | None, int | None], InstanceSeedKey] = {}
        self._known_as: dict[int, int] = {}
        self._lowest, self._highest = math.inf, -math.inf

    def add(self, config: Configuration, *args: Any, **options: Any) -> None:
        """Add a trial; a configuration has the same number here as elsewhere."""
        if self.number_of is not None and config not in self._config_ids:
            number = self.number_of(config)
            # SMAC counts on from here. What AC-Band never drew has none: far from those it draws.
            self._n_id = FIRST_FOREIGN + len(self._config_ids) if number is None else number - 1
        super().add(config, *args, **options)
        self._n_id = len(self._config_ids)  # as SMAC's statistics have it

    def number_anew(self) -> None:
        """Give every configuration the number that it has elsewhere by now."""
        trials = [(self._ids_config[key.config_id], key, value) for key, value in self.items()]
        self.reset()
        for config, key, value in trials:
            self.add(config, instance=key.instance, seed=key.seed, **vars(value))

    def add_again(self, config: Configuration, key: TrialKey, value: TrialValue) -> bool:
        """Add a trial of an earlier process, whose configuration has its number there.

        It was checked when it was added first: nothing is looked at, and hashed, twice. Returns
        false if it is there: a race may have used the result of another.
        """
        id_ = self._known_as.get(key.config_id, key.config_id)
        if id_ not in self._ids_config:
            # What was told before the run, and then drawn in it, keeps the id that it had.
            id_ = self._config_ids.setdefault(config, id_)
            self._known_as[key.config_id] = id_
            self._ids_config.setdefault(id_, config)
            self._n_id = len(self._config_ids)
            config.config_id = id_
        if id_ != key.config_id:
            key = replace(key, config_id=id_)
        known = self._data.get(key)
        if known is None:
            self._finished += 1
            self._submitted += 1
        elif (known.starttime, known.time) == (value.starttime, value.time):
            return False
        self._n_objectives = 1
        self._data[key] = value
        self._note(key, value, known)
        return True

    def average_cost(
        self,
        config: Configuration,
        instance_seed_budget_keys: list[InstanceSeedBudgetKey] | None = None,
        normalize: bool = False,
    ) -> float | list[float]:
        """Return the mean cost of a configuration, over all its trials if no keys are given."""
        if instance_seed_budget_keys is None:
            # Not SMAC's cache, which ``update_costs`` may have filled for some instances only.
            id_ = self._config_ids.get(config, -1)
            if id_ not in self._known_costs:
                return math.nan
            return _mean(*self._known_costs[id_])
        return super().average_cost(config, instance_seed_budget_keys, normalize)

    def _cost(
        self,
        config: Configuration,
        instance_seed_budget_keys: list[InstanceSeedBudgetKey] | None = None,
    ) -> list[float | list[float]]:
        """Return the costs that are known: those of losers are not, and alone mean infinity."""
        if (id_ := self._config_ids.get(config)) is None:
            return []
        keys = instance_seed_budget_keys
        if keys is None:
            keys = self.get_instance_seed_budget_keys(config)
        values = [self._data[TrialKey(id_, key.instance, key.seed, key.budget)] for key in keys]
        known = [value.cost for value in values if is_result(value)]
        return known if known or not values else [math.inf]

    def _add(self, k: TrialKey, v: TrialValue, status: StatusType) -> None:
        previous = self._data.get(k)
        self._data[k] = v
        if status == StatusType.RUNNING:
            info = TrialInfo(self.get_config(k.config_id), k.instance, k.seed, k.budget)
            self._running_by_key[k] = info
        else:
            if previous is not None:
                self._running_by_key.pop(k, None)
            self._note(k, v, previous)
        if self._running_by_key or self._running_trials:
            self._running_trials = list(self._running_by_key.values())

    def _note(self, k: TrialKey, v: TrialValue, previous: TrialValue | None) -> None:
        """Take note of a trial that is over, perhaps in the place of another."""
        trials = self._config_id_to_isk_to_budget.setdefault(k.config_id, {})
        place = self._places.get((k.instance, k.seed))
        if place is None:  # one object for all who meet there
            place = self._places[k.instance, k.seed] = InstanceSeedKey(k.instance, k.seed)
        trials[place] = [k.budget]
        self._num_trials_per_config[k.config_id] = len(trials)
        if previous is None or not _counts(previous):
            self._register(k.config_id, v)
        else:
            self._register_all_again(k.config_id)

    def _register(self, config_id: int, v: TrialValue) -> None:
        """Add a trial to the sums."""
        cost = v.cost
        assert isinstance(cost, float)
        total, n_known = self._known_costs.get(config_id, (0.0, 0))
        if is_result(v):
            total, n_known = total + cost, n_known + 1
        self._known_costs[config_id] = total, n_known
        self._cost_per_config[config_id] = _mean(total, n_known)
        lowest = self._min_cost_per_config.get(config_id, math.inf)
        assert isinstance(lowest, float)
        self._min_cost_per_config[config_id] = min(lowest, cost) if is_result(v) else lowest
        if v.status == StatusType.SUCCESS and not self._lowest <= cost <= self._highest:
            self._lowest, self._highest = min(self._lowest, cost), max(self._highest, cost)
            self._objective_bounds = [(self._lowest, self._highest)]
        elif not self._objective_bounds:
            self._objective_bounds = [(self._lowest, self._highest)]

    def _register_all_again(self, config_id: int) -> None:
        """Compute the sums again from all trials: one was replaced, and sums do not forget."""
        self._known_costs.pop(config_id, None)
        self._min_cost_per_config.pop(config_id, None)
        self._update_objective_bounds()
        ((self._lowest, self._highest),) = self._objective_bounds
        for isk, (budget,) in self._config_id_to_isk_to_budget[config_id].items():
            self._register(
                config_id, self._data[TrialKey(config_id, isk.instance, isk.seed, budget)]
            )

    def save(self, filename: str | Path = "runhistory.json") -> None:
        """Save in SMAC's format; without its indentation, which takes most of the time.

        Each trial and each configuration has a line, so that neither writing nor reading takes
        memory for all of them.
        """
        encode = NumpyEncoder().encode
        stats = {"submitted": self.submitted, "finished": self.finished, "running": self.running}
        configs = self._ids_config.items()
        path = Path(filename)
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("w", encoding="utf-8") as file:
            file.write(f'{{"stats": {encode(stats)}, "configs": {{')
            _write(file, (f'"{id_}": {encode(dict(config))}' for id_, config in configs))
            file.write('}, "config_origins": {')
            _write(file, (f'"{id_}": {encode(config.origin)}' for id_, config in configs))
            file.write('}, "data": [')
            _write(
                file,
                (  # SMAC's names, in its order
                    encode({**vars(key), **vars(value), "status": int(value.status)})
                    for key, value in self._data.items()
                ),
            )
            file.write("]}")


def n_saved(path: Path) -> int:
    """Return how many trials were over when a file was saved; none if there is no such file."""
    try:
        with path.open(encoding="utf-8") as file:
            found = _FINISHED.match(file.readline())
    except (OSError, ValueError):
        return 0
    return 0 if found is None else int(found[1])


def saved_trials(
    path: Path, is_wanted: Callable[[TrialKey], bool]
) -> list[tuple[TrialKey, TrialValue, dict[str, Any]]]:
    """Return some of the trials that :meth:`LinearRunHistory.save` wrote, with their values.

    Raises
    ------
    OSError, ValueError, TypeError, KeyError
        If there is no such file, or something else is in it.
    """
    with path.open(encoding="utf-8") as file:
        lines = (line for line in file if line.startswith(_TRIAL))
        wanted = [_trial(line) for line in lines if is_wanted(_key(line))]
    values: dict[int, dict[str, Any]] = {}
    numbers = {f'"{key.config_id}"': key.config_id for key, _ in wanted}
    with path.open(encoding="utf-8") as file:
        for line in file if wanted else ():
            number, _, rest = line.partition(": ")
            if number in numbers:  # its values come first, then its origin
                values.setdefault(numbers[number], json.loads(rest.rstrip(",\n")))
    return [(key, value, values[key.config_id]) for key, value in wanted]


def _key(line: str) -> TrialKey:
    """Return which trial the line of a file is about; most of the line is left unread."""
    if (place := _PLACE.match(line)) is not None:
        return TrialKey(int(place[1]), place[2], int(place[3]))
    return _trial(line)[0]


def _trial(line: str) -> tuple[TrialKey, TrialValue]:
    entry = json.loads(line.rstrip(",\n"))
    names = ("cost", "time", "cpu_time", "starttime", "endtime", "additional_info")
    numbers = {name: entry[name] for name in names}
    key = TrialKey(int(entry["config_id"]), entry["instance"], entry["seed"])
    return key, TrialValue(status=StatusType(entry["status"]), **numbers)


def _write(file: TextIO, entries: Iterable[str]) -> None:
    """Write entries, each on a line of its own."""
    separator = "\n"
    for entry in entries:
        file.write(f"{separator}{entry}")
        separator = ",\n"
    file.write("\n")


def _counts(value: TrialValue) -> bool:
    """Return whether a trial that is over is in any sum, minimum or bound: losers are not."""
    return value.status != StatusType.RUNNING and (
        value.status == StatusType.SUCCESS or is_result(value)
    )


def _mean(total: float, n_known: int) -> float:
    return total / n_known if n_known else math.inf
