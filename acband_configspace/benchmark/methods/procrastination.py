"""Structured Procrastination, without and with confidence: hard runs are put off, and doubled."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from acband_configspace.benchmark.methods.account import (
    Account,
    Runtimes,
    compiled,
    drawn_pool,
    new_account,
    pay,
    result_from,
    runtime_of,
)
from acband_configspace.benchmark.methods.leapsandbounds import CAPPED_SHARE, EPSILON, ZETA
from acband_configspace.benchmark.methods.method import (
    MethodResult,
    Times,
    candidates,
    check_probabilities,
)
from acband_configspace.benchmark.simulation import Numbers
from acband_configspace.benchmark.tables import RuntimeTable

#: The bound of the queue's length is this, over ε², times a logarithm (Algorithm 1 there).
QUEUE_CONSTANT = 12.0
#: log2(κ̄/κ_0): runtimes from κ_0 = 1 s of 900 up to 10^6 times that, as in the experiments of
#: Weisz et al. (2018).
N_DOUBLINGS = math.log2(1e6)
#: Runtimes are counted in bins that grow by 2^(1/8), from 2^-12 of the cutoff to all of it.
BINS_PER_DOUBLING, DOUBLINGS = 8, 12
#: Room for the queue of a configuration, of at most ⌈25 log2(t log2 r)⌉ runs: 900 for t = 2^30.
QUEUE_ROOM = 1024
#: A bound is computed anew after each run of its configuration, and all of them this often.
REFRESH = 1000


@dataclass(frozen=True)
class StructuredProcrastination:
    """Structured Procrastination (Kleinberg et al., 2017), on AC-Band's N configurations for α, ζ.

    Always the configuration with the least mean runtime so far does its next run; a run that
    takes longer than expected goes to the end of its queue, to be resumed with twice the time.
    It is an anytime method; as in the experiments of Weisz et al. (2018) it ends when the
    guarantee holds for δ = 0.2, with their ε and ζ, too. What a run had before is not paid again.
    """

    name: ClassVar[str] = "SP"
    alpha: float = 0.05

    def __post_init__(self) -> None:
        check_probabilities(self, "alpha")

    def run(self, table: RuntimeTable, seed: int) -> MethodResult:
        """Simulate until the guarantee holds."""
        rows, runtimes = drawn_pool(table, seed, candidates(self.alpha, ZETA))
        n = len(rows)
        scale = QUEUE_CONSTANT / EPSILON**2
        events = 3 * N_DOUBLINGS * n / ZETA
        first = math.ceil(scale * math.log(events))
        room = first + math.ceil(scale * 2 * math.log(1e6))  # for a million runs
        account = new_account(runtimes)
        runs_per_length = math.sqrt(1 + EPSILON) / CAPPED_SHARE
        best = procrastinate(
            runtimes, table.cutoff, scale, events, runs_per_length, first, room, account
        )
        return result_from(account, rows, best)


@compiled
def procrastinate(
    runtimes: Runtimes,
    cutoff: float,
    scale: float,
    events: float,
    runs_per_length: float,
    first_length: int,
    room: int,
    account: Account,
) -> int:
    """Run until k_i ≥ √(1 + ε) q_i / δ for the configuration with the most time; return it."""
    n, shortest = runtimes.shape[0], cutoff / 900.0
    # A ring for each configuration: its queue.
    instances = np.zeros((n, room), dtype=np.int64)
    limits, elapsed = np.zeros((n, room)), np.zeros((n, room))
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


@dataclass(frozen=True)
class ProcrastinationWithConfidence:
    """Structured Procrastination with Confidence (Kleinberg et al., 2019).

    Always the configuration with the least lower confidence bound does its next run, of as many
    configurations as AC-Band's N for α and ζ. The bound (section 3 there) integrates
    the empirical distribution of the runtimes so far, shrunk where it rests on few of them; we
    round runtimes down to one of 97 values, which can only lower it. An anytime method: like
    Structured Procrastination it ends when at most a share δ = 0.2 of a configuration's runs can
    be in its queue, that is, when it has begun q/δ of them, and returns that configuration. What a
    run had before it was put off is not paid again.
    """

    name: ClassVar[str] = "SPC"
    alpha: float = 0.05

    def __post_init__(self) -> None:
        check_probabilities(self, "alpha")

    def run(self, table: RuntimeTable, seed: int) -> MethodResult:
        """Simulate until one configuration has begun enough runs."""
        rows, runtimes = drawn_pool(table, seed, candidates(self.alpha, ZETA))
        n_bins = BINS_PER_DOUBLING * DOUBLINGS
        edges = table.cutoff * 2.0 ** (np.arange(-n_bins, 1) / BINS_PER_DOUBLING)
        edges[0] = 0.0
        account = new_account(runtimes)
        best = procrastinate_with_confidence(
            runtimes, table.cutoff, 1.0 / CAPPED_SHARE, edges, account
        )
        return result_from(account, rows, best)


@compiled
def lower_bound(edges: Times, counts: Numbers, n_started: int, time: int) -> float:
    """Return ∫ β(1 - G(x), r, t) dx over the empirical distribution G of r runtimes.

    β(p, r, t) = p / (1 + ε) if ε ≤ 1/2, else 0, where ε² = 9 · 2^k ln(k t) / r and
    k = ⌊log2(1/p)⌋.
    """
    bound, longer = 0.0, n_started
    for b in range(1, len(edges)):
        longer -= counts[b - 1]
        if longer <= 0:
            break
        share = longer / n_started
        k = int(np.floor(np.log2(1.0 / share)))
        # For k = 0 the formula has ln 0: the authors' code has ln t instead since November 2019
        # (ε = 3/r before, which let it stop 13-41 % too early).
        error = np.sqrt(9.0 * 2.0**k * np.log(max(max(k, 1) * time, 1)) / n_started)
        if error <= 0.5:
            bound += (edges[b] - edges[b - 1]) * share / (1.0 + error)
    return bound


@compiled
def procrastinate_with_confidence(
    runtimes: Runtimes, cutoff: float, runs_per_length: float, edges: Times, account: Account
) -> int:
    """Run until a configuration has begun enough runs for each in its queue; return it."""
    n = runtimes.shape[0]
    counts = np.zeros((n, len(edges)), dtype=np.int64)  # of runs, by their time so far
    started = np.zeros(n, dtype=np.int64)
    instances = np.zeros((n, QUEUE_ROOM), dtype=np.int64)
    limits = np.zeros((n, QUEUE_ROOM))
    head, length = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
    current = np.full(n, cutoff / 900.0)
    wanted = np.ones(n)
    bounds = np.zeros(n)
    time = 0
    while True:
        if time % REFRESH == 0 and time > 0:
            for j in range(n):
                if started[j] > 0:
                    bounds[j] = lower_bound(edges, counts[j], started[j], time)
        i = int(np.argmin(bounds))
        before = 0.0
        if length[i] < wanted[i]:
            instance = started[i]
            started[i] += 1
            limit = current[i]
        else:
            place = head[i]
            instance, limit = instances[i, place], limits[i, place]
            before = limit / 2.0
            counts[i, np.searchsorted(edges, before, side="right") - 1] -= 1
            head[i] = (place + 1) % QUEUE_ROOM
            length[i] -= 1
            current[i] = limit
        seconds = runtime_of(runtimes, i, instance, cutoff)
        elapsed = min(seconds, limit)
        pay(account, i, instance, before, elapsed)
        counts[i, np.searchsorted(edges, elapsed, side="right") - 1] += 1
        if seconds >= limit and limit < cutoff:  # put off
            end = (head[i] + length[i]) % QUEUE_ROOM
            instances[i, end], limits[i, end] = instance, 2.0 * limit
            length[i] += 1
        time += 1
        bounds[i] = lower_bound(edges, counts[i], started[i], time)
        wanted[i] = 25.0
        if started[i] > 1 and time > 1:
            wanted[i] = np.ceil(25.0 * np.log2(time * max(np.log2(started[i]), 1.0)))
        if started[i] >= runs_per_length * wanted[i]:
            return i
