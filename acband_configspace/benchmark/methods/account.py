"""What runs cost: looked up in compiled code, each second of a run paid for once.

There are two accounts. A method may ask for more runs than a table has instances; they then come
again. Nobody would run a solver again where the result is known, so the CPU time that we report
pays for each pair of a configuration and an instance once. The other account takes an instance
that comes again for a fresh one, as its authors' proofs do.

Loops that cannot be vectorised are compiled where numba is installed (the extra ``fast``). Without
it the same functions run as plain Python: the same numbers, some hundred times slower.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from acband_configspace.benchmark.methods.method import MethodResult, Times
from acband_configspace.benchmark.simulation import Numbers, drawn_order
from acband_configspace.benchmark.tables import RuntimeTable

Function = TypeVar("Function", bound=Callable[..., Any])
Runtimes = npt.NDArray[Any]

# Places in an account's totals.
CPU_TIME, CPU_TIME_WITH_REPEATS, LAST_RUN = 0, 1, 2


def compiled(function: Function) -> Function:
    """Return the function compiled to machine code if numba is there; kept for the next start."""
    if importlib.util.find_spec("numba") is None:
        return function
    numba: Any = importlib.import_module("numba")
    result: Function = numba.njit(cache=True)(function)
    return result


def drawn_pool(table: RuntimeTable, seed: int, wanted: int) -> tuple[Numbers, Runtimes]:
    """Return the rows of a pool that the seed draws, and their runtimes as compiled code has them.

    A table with fewer configurations is used up. The instances are in the order of the seed, too;
    what is read one after the other lies side by side.
    """
    rows, columns = drawn_order(table, seed)
    rows = rows[:wanted]
    runtimes = np.empty((len(rows), len(columns)), dtype=table.runtimes.dtype)
    for out, row in zip(runtimes, rows, strict=True):
        np.take(table.runtimes[row], columns, out=out)
    return rows, runtimes


class Account(NamedTuple):
    """What has been paid for so far."""

    paid: Runtimes
    """The longest run paid for, for each configuration and each instance of the table."""
    paid_runs: Times
    """The same for each configuration's first runs, by number: the runs that are ever resumed in
    the account where instances that come again are fresh ones."""
    totals: Times
    """CPU time, CPU time with repeats, and the highest number of a run."""


def new_account(runtimes: Runtimes, n_resumed: int = 0) -> Account:
    """Return an empty account for these configurations × instances.

    Parameters
    ----------
    n_resumed
        How many of a configuration's runs may be started anew and are then resumed instead.
    """
    kind = np.result_type(runtimes.dtype, np.float32)
    return Account(
        np.zeros(runtimes.shape, dtype=kind), np.zeros((len(runtimes), n_resumed)), np.zeros(3)
    )


@compiled
def runtime_of(runtimes: Runtimes, i: int, run: int, cutoff: float) -> float:
    """Look a run up, by its number: beyond the table's instances they come again."""
    return min(float(runtimes[i, run % runtimes.shape[1]]), cutoff)


@compiled
def pay(account: Account, i: int, run: int, before: float, after: float) -> None:
    """Pay for continuing a run from ``before`` to ``after``, except for what is paid already."""
    account.totals[LAST_RUN] = max(account.totals[LAST_RUN], run)
    instance = run % account.paid.shape[1]
    paid = np.float64(account.paid[i, instance])
    if after > paid:
        account.totals[CPU_TIME] += after - paid
        account.paid[i, instance] = after
    if run < account.paid_runs.shape[1]:
        before = max(before, account.paid_runs[i, run])
        account.paid_runs[i, run] = max(after, account.paid_runs[i, run])
    if after > before:
        account.totals[CPU_TIME_WITH_REPEATS] += after - before


def result_from(account: Account, rows: Numbers, best: int, **extra: Any) -> MethodResult:
    """Return the result of a method that runs one configuration at a time."""
    n_runs = int(account.totals[LAST_RUN]) + 1
    return MethodResult(
        incumbent=int(rows[best]),
        cpu_time=float(account.totals[CPU_TIME]),
        wall_time=float(account.totals[CPU_TIME]),
        n_configs=len(rows),
        n_instances=min(n_runs, account.paid.shape[1]),
        configurations=tuple(rows.tolist()),
        cpu_time_with_repeats=float(account.totals[CPU_TIME_WITH_REPEATS]),
        extra={"n_runs_of_a_configuration": n_runs, **extra},
    )
