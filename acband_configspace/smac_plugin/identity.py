"""What makes two runs the same: everything that decides which races are run, and no limits."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Mapping
from types import CodeType
from typing import Any

from smac.scenario import Scenario
from smac.utils.numpyencoder import NumpyEncoder

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
    """Return what identifies a run, as JSON has it."""
    identity = {name: getattr(scenario, name) for name in _SCENARIO_FIELDS}
    identity["configspace"] = scenario.configspace.to_serialized_dict()
    identity.update(parts)
    plain: dict[str, Any] = json.loads(json.dumps(identity, cls=NumpyEncoder))
    return plain


def name_of(identity: Mapping[str, Any], target: object) -> str:
    """Return a name for a run that has none: the same whenever the same script is started."""
    text = json.dumps({**identity, "target": describe(target)}, sort_keys=True)
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
    gone = [item for item in old if item not in new]
    added = [item for item in new if item not in old]
    parts = [f"{len(old)} before, {len(new)} now"]
    if gone:
        parts.append(f"gone: {_shortened(gone)}")
    if added:
        parts.append(f"new: {_shortened(added)}")
    if not gone and not added:
        parts.append("in another order")
    return [f"{name}: {'; '.join(parts)}"]


def _shortened(items: list[Any]) -> str:
    shown = ", ".join(repr(item) for item in items[:3])
    return shown if len(items) <= 3 else f"{shown} and {len(items) - 3} more"


def describe(target: object) -> str:
    """Return a text that tells targets apart, and is the same in the next process.

    It has no memory addresses, so partials, lambdas, bound methods and callable objects keep their
    name from start to start. What they are bound to does not count.
    """
    if isinstance(target, functools.partial):
        return f"partial({describe(target.func)})"
    if isinstance(target, (str, list, tuple)) or target is None:
        return repr(target)
    function = getattr(target, "__func__", target)
    code = getattr(function, "__code__", None)
    if code is None:
        function = type(target).__call__ if callable(target) else type(target)
        code = getattr(function, "__code__", None)
    name = getattr(function, "__qualname__", type(target).__qualname__)
    return f"{name}:{_code_digest(code)}" if isinstance(code, CodeType) else name


def _code_digest(code: CodeType) -> str:
    digest = hashlib.md5(code.co_code, usedforsecurity=False)
    for constant in code.co_consts:
        # The code of inner functions prints with its address.
        text = _code_digest(constant) if isinstance(constant, CodeType) else repr(constant)
        digest.update(text.encode())
    digest.update(repr(code.co_names).encode())
    return digest.hexdigest()


def scenario_as_json(scenario: Scenario) -> dict[str, Any]:
    """Return what SMAC's ``Scenario.save`` writes."""
    content = {k: v for k, v in vars(scenario).items() if k != "configspace"}
    content["output_directory"] = str(scenario.output_directory)
    return content
