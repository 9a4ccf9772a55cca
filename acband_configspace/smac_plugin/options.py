"""The facade's options on how trials are run, all checked before anything is built."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from typing import Any

from dask.distributed import Client
from smac.callback.callback import Callback

from acband_configspace.core.checks import real_number, whole_number


def check_run_options(
    *,
    racing: object,
    clock: object,
    par: object,
    grace: object,
    worker_timeout: object,
    to_arguments: object,
    read_result: object,
    success_codes: object,
    dask_client: object,
    callbacks: object,
    test_instances: object,
) -> None:
    """Raise an error that names the first option whose value makes no sense."""
    if not isinstance(racing, bool):
        raise TypeError(f"racing must be True or False but got {racing!r}")
    if clock not in ("wall", "cpu"):
        raise ValueError(f"clock must be 'wall' or 'cpu' but got {clock!r}")
    _check_number("par", par, at_least=1)
    _check_number("grace", grace, at_least=0)
    _check_number("worker_timeout", worker_timeout, at_least=0, may_be_infinite=True)
    for name, option in {"to_arguments": to_arguments, "read_result": read_result}.items():
        if option is not None and not callable(option):
            raise TypeError(f"{name} must be a function but got {option!r}")
    if success_codes is not None:
        _check_codes(success_codes)
    if dask_client is not None and not isinstance(dask_client, Client):
        raise TypeError(f"dask_client must be a dask.distributed.Client but got {dask_client!r}")
    _check_all(
        "callbacks", callbacks, lambda item: isinstance(item, Callback), "callbacks of SMAC's"
    )
    _check_all("test_instances", test_instances, lambda item: item is not None, "names")
    if isinstance(test_instances, Sequence) and not test_instances:
        raise ValueError("test_instances must not be empty but got an empty list")


def _check_number(name: str, value: Any, *, at_least: float, may_be_infinite: bool = False) -> None:
    number = real_number(name, value)
    finite = math.isfinite(number) or (may_be_infinite and number == math.inf)
    if not finite or number < at_least:
        raise ValueError(f"{name} must be at least {at_least} but got {value!r}")


def _check_codes(codes: object) -> None:
    if not isinstance(codes, Collection) or isinstance(codes, (str, bytes)):
        raise TypeError(f"success_codes must be a collection of exit codes but got {codes!r}")
    for code in codes:
        whole_number("success_codes", code, at_least=0)


def _check_all(name: str, items: object, fits: Callable[[object], bool], what: str) -> None:
    if items is None:
        return
    is_text = isinstance(items, (str, bytes))
    if is_text or not isinstance(items, Sequence) or not all(fits(item) for item in items):
        raise TypeError(f"{name} must be a list of {what} but got {items!r}")
