"""Structured Procrastination (Kleinberg et al., 2017): hard runs are put off, and doubled."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from acband_configspace.benchmark.methods.account import (
    Account,
    Floats,
    Runtimes,
    Whole,
    new_account,
    pay,
    result_from,
    runtime_of,
)
from acband_configspace.benchmark.methods.compiled import compiled, gathered
from acband_configspace.benchmark.methods.method import (
    MethodResult,
    candidates,
    drawn_order,
    enough_rows,
)
from acband_configspace.benchmark.tables import RuntimeTable
from acband_configspace.core.checks import probability

#: The bound of the queue's length is this, over ε², times a logarithm (Algorithm 1 there).
QUEUE_CONSTANT = 12.0
#: log2(κ̄/κ_0): runtimes from κ_0 = 1 s of 900 up to 10^6 times that, as in the experiments of
#: Weisz et al. (2018).
N_DOUBLINGS = math.log2(1e6)


@dataclass(frozen=True)
class StructuredProcrastination:
    """Structured Procrastination on as many configurations as AC-Band's N for α and ζ.

    Always the configuration with the least mean runtime so far does its next run; a run that
    takes longer than expected goes to the end of its queue, to be resumed with twice the time.
    It is an anytime method; as in the experiments of Weisz et al. (2018) it ends when the
    guarantee holds for δ = 0.2 (with ε = 0.2, ζ = 0.1). What a run had before is not paid again.
    """

    alpha: float = 0.05
    zeta: float = 0.1
    capped_share: float = 0.2
    epsilon: float = 0.2

    def __post_init__(self) -> None:
        for name in ("alpha", "zeta", "capped_share", "epsilon"):
            probability(name, getattr(self, name))

    @property
    def name(self) -> str:
        """By its initials."""
        return "SP"

    def run(self, table: RuntimeTable, seed: int) -> MethodResult:
        """Simulate until the guarantee holds."""
        rows, columns = drawn_order(table, seed)
        n = enough_rows(table, candidates(self.alpha, self.zeta))
        scale = QUEUE_CONSTANT / self.epsilon**2
        events = 3 * N_DOUBLINGS * n / self.zeta
        first = math.ceil(scale * math.log(events))
        room = first + math.ceil(scale * 2 * math.log(1e6))  # for a million runs
        runtimes = gathered(table, rows[:n], columns)
        account = new_account(runtimes)
        best = procrastinate(
            runtimes,
            table.cutoff,
            table.cutoff / 900.0,
            scale,
            events,
            math.sqrt(1 + self.epsilon) / self.capped_share,
            first,
            np.zeros((n, room), dtype=np.int64),
            np.zeros((n, room)),
            np.zeros((n, room)),
            account,
        )
        return result_from(account, rows[:n], best)


@compiled
def procrastinate(
    runtimes: Runtimes,
    cutoff: float,
    shortest: float,
    scale: float,
    events: float,
    runs_per_length: float,
    first_length: int,
    instances: Whole,
    limits: Floats,
    elapsed: Floats,
    account: Account,
) -> int:
    """Run until k_i ≥ √(1 + ε) q_i / δ for the configuration with the most time; return it.

    ``instances``, ``limits`` and ``elapsed`` are a ring for each configuration: its queue.
    """
    n, room = instances.shape
    totals = np.zeros(n)  # the time of each configuration
    started = np.zeros(n, dtype=np.int64)  # k_i: how many runs it has begun
    head = np.zeros(n, dtype=np.int64)
    length = np.full(n, first_length)
    n_known = np.full(n, first_length)
    wanted = np.full(n, first_length)  # q_i
    means = np.zeros(n)
    for i in range(n):
        for j in range(first_length):
            instances[i, j], limits[i, j] = j, shortest
    while True:
        i = int(np.argmin(means))
        place = head[i]
        instance, limit, before = instances[i, place], limits[i, place], elapsed[i, place]
        head[i] = (place + 1) % room
        length[i] -= 1
        if before == 0.0:
            started[i] += 1
            k = float(started[i])
            wanted[i] = int(np.ceil(scale * (np.log(events) + 2.0 * np.log(k))))
        seconds = runtime_of(runtimes, i, instance, cutoff)
        totals[i] += min(seconds, limit) - before
        pay(account, i, instance, before, min(seconds, limit))
        if seconds >= limit and limit < cutoff:  # put off
            end = (head[i] + length[i]) % room
            instances[i, end], limits[i, end], elapsed[i, end] = instance, 2.0 * limit, limit
            length[i] += 1
        while length[i] < min(wanted[i], room):
            head[i] = (head[i] - 1) % room
            start = head[i]
            instances[i, start], limits[i, start], elapsed[i, start] = n_known[i], limit, 0.0
            n_known[i] += 1
            length[i] += 1
        means[i] = totals[i] / started[i]
        most = int(np.argmax(totals))
        if started[most] >= runs_per_length * wanted[most]:
            return most
