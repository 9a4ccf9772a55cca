"""What makes two runs the same: everything that decides which races are run, and no limits."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Mapping
from pathlib import PurePath
from types import CellType, CodeType, FunctionType, MethodType
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

#: Their texts are the same in the next process.
_PLAIN = (str, bytes, int, float, complex, bool, type(None), PurePath)


def identity_of(scenario: Scenario, **parts: Any) -> dict[str, Any]:
    """Return what identifies a run, as JSON has it."""
    identity = {name: getattr(scenario, name) for name in _SCENARIO_FIELDS}
    identity["configspace"] = scenario.configspace.to_serialized_dict()
    identity.update(parts)
    return plain(identity)


def plain(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return values as they come back from a JSON file: no numpy, no tuples."""
    content: dict[str, Any] = json.loads(json.dumps(dict(values), cls=NumpyEncoder))
    return content


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


def describe(target: object) -> str:
    """Return a text that tells targets apart, and is the same in the next process.

    It has no memory addresses, so partials, lambdas, bound methods and callable objects keep their
    name from start to start. Of what they are bound to, plain values count: two partials of one
    function with different numbers or names are different targets.
    """
    if isinstance(target, functools.partial):
        bound = [*target.args, *(part for item in sorted(target.keywords.items()) for part in item)]
        return f"partial({describe(target.func)}, {_describe_bound(bound)})"
    if isinstance(target, MethodType):
        return f"{describe(target.__func__)} of {_describe_object(target.__self__)}"
    if isinstance(target, FunctionType):
        cells = [cell.cell_contents for cell in target.__closure__ or () if cell != CellType()]
        bound = [*cells, *(target.__defaults__ or ()), *(target.__kwdefaults__ or {}).values()]
        return f"{target.__qualname__}:{_code_digest(target.__code__)}{_describe_bound(bound)}"
    return _describe_bound(target) if isinstance(target, _PLAIN) else _describe_object(target)


def _describe_object(target: object) -> str:
    kind = type(target)
    call = kind.__call__ if callable(target) else None
    code = _code_digest(call.__code__) if isinstance(call, FunctionType) else ""
    attributes = sorted(getattr(target, "__dict__", {}).items())
    bound = [part for name, value in attributes for part in (name, value)]
    return f"{kind.__qualname__}:{code}{_describe_bound(bound)}"


def _describe_bound(value: object) -> str:
    """Return the text of a plain value, or what kind of thing it is: never an address."""
    if isinstance(value, _PLAIN):
        return repr(value)
    if isinstance(value, (list, tuple)):
        return f"({', '.join(_describe_bound(item) for item in value)})"
    if isinstance(value, FunctionType):  # its own cells may lead back here
        return f"{value.__qualname__}:{_code_digest(value.__code__)}"
    return type(value).__qualname__


def _code_digest(code: CodeType) -> str:
    digest = hashlib.md5(code.co_code, usedforsecurity=False)
    digest.update(_describe_constant(code.co_consts).encode())
    digest.update(repr(code.co_names).encode())
    return digest.hexdigest()


def _describe_constant(constant: object) -> str:
    if isinstance(constant, CodeType):  # it prints with its address
        return _code_digest(constant)
    if isinstance(constant, tuple):
        return f"({', '.join(map(_describe_constant, constant))})"
    if isinstance(constant, frozenset):  # what stands in braces; its order is another each time
        return f"{{{', '.join(sorted(map(_describe_constant, constant)))}}}"
    return repr(constant)


def scenario_as_json(scenario: Scenario) -> dict[str, Any]:
    """Return what SMAC's ``Scenario.save`` writes."""
    content = {k: v for k, v in vars(scenario).items() if k != "configspace"}
    content["output_directory"] = str(scenario.output_directory)
    return content
