"""What makes two runs the same: everything that decides which races are run, and no limits."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from smac.scenario import Scenario
from smac.utils.numpyencoder import NumpyEncoder

from acband_configspace.smac_plugin.description import describe

#: These decide what a trial costs, or which trials there are. Limits (n_trials, walltime_limit,
#: cputime_limit, termination_cost_threshold, n_workers) may change from start to start.
_SCENARIO_FIELDS = (
    "deterministic",
    "objectives",
    "crash_cost",
    "trial_walltime_limit",
    "trial_memory_limit",
    "instances",
    "seed",
)


def identity_of(scenario: Scenario, **parts: Any) -> dict[str, Any]:
    """Return what identifies a run, in JSON's types."""
    identity = {name: getattr(scenario, name) for name in _SCENARIO_FIELDS}
    identity["configspace"] = scenario.configspace.to_serialized_dict()
    identity.update(parts)
    return plain(identity)


def plain(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return values as they come back from a JSON file: no numpy, no tuples."""
    content: dict[str, Any] = json.loads(json.dumps(dict(values), cls=NumpyEncoder))
    return content


def name_of(identity: Mapping[str, Any], *target: object) -> str:
    """Return a name for a run that has none: the same whenever the same script is started.

    It depends on all that decides the results of the target: its code, and how it is called.
    """
    text = json.dumps({**identity, "target": [describe(part) for part in target]}, sort_keys=True)
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


def differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Return a line for each difference between two identities."""
    lines = []
    for name in sorted({*before, *now}):
        old, new = before.get(name), now.get(name)
        if old == new:
            continue
        if isinstance(old, dict) and isinstance(new, dict):
            lines += [f"{name}.{line}" for line in differences(old, new)]
        elif isinstance(old, list) and isinstance(new, list):
            lines += _list_differences(name, old, new)
        else:
            lines.append(f"{name}: {old!r} before, {new!r} now")
    return lines


def _list_differences(name: str, old: list[Any], new: list[Any]) -> list[str]:
    texts_before, texts_now = ([_text(item) for item in items] for items in (old, new))
    known_before, known_now = set(texts_before), set(texts_now)  # lists may be very long
    gone = [item for item, text in zip(old, texts_before, strict=True) if text not in known_now]
    added = [item for item, text in zip(new, texts_now, strict=True) if text not in known_before]
    parts = [f"{len(old)} before, {len(new)} now"]
    if gone:
        parts.append(f"gone: {_shortened(gone)}")
    if added:
        parts.append(f"new: {_shortened(added)}")
    if not gone and not added:
        parts.append("in another order")
    return [f"{name}: {'; '.join(parts)}"]


def _text(item: object) -> str:
    return json.dumps(item, sort_keys=True)


def _shortened(items: list[Any]) -> str:
    shown = ", ".join(repr(item) for item in items[:3])
    return shown if len(items) <= 3 else f"{shown} and {len(items) - 3} more"


def scenario_as_json(scenario: Scenario) -> dict[str, Any]:
    """Return what SMAC's ``Scenario.save`` writes."""
    content = {k: v for k, v in vars(scenario).items() if k != "configspace"}
    content["output_directory"] = str(scenario.output_directory)
    return content
