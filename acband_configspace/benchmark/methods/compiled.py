"""Compiles loops that cannot be vectorised, where numba is installed (the extra ``fast``).

Without it the same functions run as plain Python: the same numbers, some hundred times slower.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from acband_configspace.benchmark.methods.method import Numbers
from acband_configspace.benchmark.tables import RuntimeTable

Function = TypeVar("Function", bound=Callable[..., Any])

IS_COMPILED = importlib.util.find_spec("numba") is not None


def compiled(function: Function) -> Function:
    """Return the function compiled to machine code if numba is there; kept for the next start."""
    if not IS_COMPILED:
        return function
    numba: Any = importlib.import_module("numba")
    result: Function = numba.njit(cache=True)(function)
    return result


def gathered(table: RuntimeTable, rows: Numbers, columns: Numbers) -> npt.NDArray[Any]:
    """Return the runtimes of these rows and columns in this order, as compiled code takes them.

    One look at the table in advance: what is read one after the other then lies side by side.
    """
    result = np.empty((len(rows), len(columns)), dtype=table.runtimes.dtype)
    for out, row in zip(result, rows, strict=True):
        np.take(table.runtimes[row], columns, out=out)
    return result
