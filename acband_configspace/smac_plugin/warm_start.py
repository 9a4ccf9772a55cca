"""Results that are known before a run: of an earlier run, a run history, or a list."""

from __future__ import annotations

import hashlib
import itertools
import json
import logging
from collections.abc import Hashable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from ConfigSpace import Configuration, ConfigurationSpace
from smac.runhistory.dataclasses import TrialValue
from smac.runhistory.runhistory import RunHistory
from smac.scenario import Scenario

from acband_configspace.core.instances import InstanceKey
from acband_configspace.runlog.journal import JOURNAL, read_header, read_journal
from acband_configspace.runlog.words import counted
from acband_configspace.running import Clock
from acband_configspace.smac_plugin.configurations import from_json, name_of_values
from acband_configspace.smac_plugin.told import best_of
from acband_configspace.smac_plugin.trial_values import (
    ToldTrial,
    as_value,
    check_told,
    cost_of,
    is_result,
)

logger = logging.getLogger(__name__)

WarmStart = str | Path | RunHistory | Sequence[tuple[Any, str | None, int | None, float]]
"""A run's directory, a run history, or (configuration, instance, seed, cost) for each result."""

_Result = tuple[Any, str | None, int | None, TrialValue]


def earlier_results(
    source: WarmStart | None,
    scenario: Scenario,
    *,
    most: int,
    with_default: bool,
    racing: bool,
    clock: Clock,
    par: float,
) -> list[ToldTrial]:
    """Return the results of the ``most`` best configurations of a warm start.

    And of the default, if that races anyway, so that what is known of it need not be run again.
    In an earlier run of ours ``racing``, ``clock`` and ``par`` must have been the same: they are
    what a cost means.
    """
    if source is None:
        return []
    scale: dict[str, Any] = {"racing": racing}
    if racing:  # otherwise a cost is what the target says
        limit = scenario.trial_walltime_limit
        scale |= {"clock": clock, "par": par, "trial_walltime_limit": limit}
    names = None if scenario.instances is None else set(scenario.instances)
    trials: dict[Hashable, dict[InstanceKey, ToldTrial]] = {}
    n_other = 0
    for values, instance, seed, value in _results(source, scenario.configspace, scale):
        if not is_result(value):  # it lost a race: what it costs is not known
            continue
        if (instance is not None) if names is None else (instance not in names):
            n_other += 1
            continue
        config = _in_space(values, scenario.configspace)
        own = trials.setdefault(name_of_values(config), {})
        if seed is None and not scenario.deterministic:  # each is a repetition
            seed = next(n for n in itertools.count() if InstanceKey(instance, n) not in own)
        key = InstanceKey(instance, int(seed or 0))
        own[key] = ToldTrial(config, key, value, warm=True)  # once, however often it is there
    if n_other:
        n_results = counted(n_other, "result")
        logger.warning("warm_start: %s of other instances left out.", n_results)
    chosen = best_of(trials, most)
    default = name_of_values(scenario.configspace.get_default_configuration())
    if with_default and default in trials and default not in chosen:
        chosen.append(default)
    return [told for name in chosen for told in trials[name].values()]


def source_name(source: WarmStart, trials: Sequence[ToldTrial]) -> str:
    """Return a text that tells warm starts apart, given the results that are taken of this one.

    A run of ours stays the same source though it may grow meanwhile, or be moved.
    """
    if isinstance(source, (str, Path)) and (journal := Path(source) / JOURNAL).is_file():
        return f"the run begun at {read_header(journal).started!r}"
    return _digest(trials)


def _digest(trials: Sequence[ToldTrial]) -> str:
    results = [[dict(told.config), told.key, cost_of(told.value)] for told in trials]
    text = json.dumps(results, sort_keys=True, default=str)
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


def _results(
    source: WarmStart, space: ConfigurationSpace, scale: Mapping[str, Any]
) -> Iterator[_Result]:
    if isinstance(source, (str, Path)):
        return _of_directory(Path(source), space, scale)
    if isinstance(source, RunHistory):
        return _of_history(source)
    if isinstance(source, Sequence):
        return _of_list(source)
    raise TypeError(
        "warm_start must be a run's directory, a RunHistory or a list of (configuration, "
        f"instance, seed, cost) but got {source!r}"
    )


def _of_directory(
    directory: Path, space: ConfigurationSpace, scale: Mapping[str, Any]
) -> Iterator[_Result]:
    """Yield the results of a run of ours, or of one of SMAC's facades."""
    if (directory / JOURNAL).is_file():
        recorded = read_journal(directory / JOURNAL)
        for name, value in scale.items():
            if (other := recorded.identity.get(name, value)) != value:
                raise ValueError(
                    f"warm_start must be a run with the same {name}, {value!r}, but got {other!r}"
                )
        for race in recorded.races:
            for number, record in zip(race.racers, race.trials, strict=True):
                yield recorded.configurations[number], *race.key, as_value(record)
        return
    path = directory / "runhistory.json"
    if not path.is_file():
        raise ValueError(
            f"warm_start must be the directory of a run but {directory} has neither {JOURNAL} nor "
            f"{path.name}"
        )
    history = RunHistory()
    history.load(path, space)
    yield from _of_history(history)


def _of_history(history: RunHistory) -> Iterator[_Result]:
    for key, value in history.items():
        if key.budget is not None:
            raise ValueError(
                "warm_start must hold results without budgets, which AC-Band does not know, but "
                f"got {key}"
            )
        if np.size(value.cost) != 1:
            raise ValueError(
                f"warm_start must hold costs of one objective but got {value.cost} for {key}"
            )
        yield history.get_config(key.config_id), key.instance, key.seed, value


def _of_list(results: Sequence[Any]) -> Iterator[_Result]:
    for result in results:
        try:
            config, instance, seed, cost = result
            values = dict(config)
        except (TypeError, ValueError):
            raise TypeError(
                f"warm_start must hold (configuration, instance, seed, cost) but got {result!r}"
            ) from None
        value = TrialValue(cost=cost)
        check_told(value)
        yield values, None if instance is None else str(instance), seed, value


def _in_space(values: Any, space: ConfigurationSpace) -> Configuration:
    try:
        return from_json(space, dict(values), origin="Warm start")
    except (ValueError, KeyError) as error:
        raise ValueError(
            f"warm_start must hold configurations of the scenario's space but got {dict(values)}: "
            f"{error}"
        ) from error
