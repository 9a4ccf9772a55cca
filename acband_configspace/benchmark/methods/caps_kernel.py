"""The inner loops of CapsAndRuns: one simulated thread per configuration, all in step.

"CAR" is Weisz et al. (2019), "ICAR" Weisz et al. (2020), "their code" the code published with
the latter, which Brandt et al. (2023) ran. All arrays are indexed by the thread, the runtimes too.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from acband_configspace.benchmark.methods.account import (
    Account,
    Runtimes,
    compiled,
    pay,
    runtime_of,
)
from acband_configspace.benchmark.methods.method import Times
from acband_configspace.benchmark.simulation import Numbers

Records = npt.NDArray[Any]
Interval = tuple[float, float]

# What a thread is doing.
MEASURING, RACING, PAUSED, REJECTED, ACCEPTED = 1, 2, 3, 4, 5
# What all threads share: the least upper bound T, and whose it is.
BOUND, BOUND_OWNER = 0, 1
#: Stages of the empirical Bernstein bound grow by this factor (Mnih et al., 2008, EBGStop).
GROWTH = 1.1
#: Σ k^-1.1: the failure probabilities of the stages, d_k ∝ k^-1.1, add up to one.
SUM_OF_STAGES = 10.5844


class Rules(NamedTuple):
    """The constants of one variant."""

    cutoff: float
    n_measured: int
    """b: on how many instances the cap of a configuration is measured."""
    n_to_complete: int
    """⌈(1 - 3δ/4) b⌉: how many of them must be completed; the longest of these is the cap τ."""
    work_step: float
    """Seconds for which a run is continued before it is the next one's turn."""
    reject_factor: float
    """Measuring a cap is given up once it has cost this times b T."""
    epsilon: float
    zeta: float
    n_configs: int
    """n, over which the failure probability ζ is split."""


#: The state of one thread; a thread is one record of an array.
THREAD = np.dtype(
    [
        ("state", np.int64),
        ("n_pending", np.int64),  # runs of the first phase that are not completed
        ("turn", np.int64),  # whose turn it is among them
        ("n_kept", np.int64),  # how many of those before it are still to be continued
        ("n_turns", np.int64),  # how many work steps each of them has had
        ("n_completed", np.int64),
        ("work", np.float64),
        ("cap", np.float64),  # τ
        ("instance", np.int64),  # on which the second phase is
        ("elapsed", np.float64),
        ("total", np.float64),
        ("squares", np.float64),
        ("stage", np.int64),
        ("stage_end", np.float64),  # after how many runs the next stage begins
        ("log_term", np.float64),
        ("lower", np.float64),
        ("upper", np.float64),
        ("mean", np.float64),
    ]
)


class Race(NamedTuple):
    """Everything the threads of a race know."""

    runtimes: Runtimes
    """A row for each thread."""
    threads: Records
    pending: Numbers
    """For each thread the instances of its first phase, in the order of their turns."""
    shared: Times
    account: Account


def new_race(runtimes: Runtimes, n_measured: int, account: Account) -> Race:
    """Return a race of as many threads as there are rows, none of which has begun."""
    n = len(runtimes)
    threads = np.zeros(n, dtype=THREAD)
    threads["state"] = MEASURING
    threads["n_pending"] = n_measured
    threads["stage_end"] = 1.0
    threads["upper"] = threads["mean"] = np.inf
    pending = np.tile(np.arange(n_measured), (n, 1))
    return Race(runtimes, threads, pending, np.array([np.inf, -1.0]), account)


@compiled
def bernstein(total: float, squares: float, n: int, cap: float, log_term: float) -> Interval:
    """Return the mean of n runs up to the cap, and how far the true one may be from it.

    The empirical Bernstein bound, as their code has it.
    """
    mean = total / n
    variance = max(squares / n - mean * mean, 0.0)
    return mean, np.sqrt(2.0 * variance * log_term / n) + 3.0 * cap * log_term / n


@compiled
def measure_step(race: Race, rules: Rules, i: int) -> None:
    """Continue one run of the first phase, QuantileEst (CAR, Algorithm 2)."""
    thread = race.threads[i]
    instance = race.pending[i, thread["turn"]]
    before = thread["n_turns"] * rules.work_step
    limit = before + rules.work_step
    seconds = runtime_of(race.runtimes, i, instance, rules.cutoff)
    elapsed = min(seconds, limit)
    pay(race.account, i, instance, before, elapsed)
    thread["work"] += elapsed - before
    if thread["work"] >= rules.reject_factor * rules.n_measured * race.shared[BOUND]:
        thread["state"] = REJECTED
        return
    if seconds < limit or limit >= rules.cutoff:
        thread["n_completed"] += 1
        thread["cap"] = max(thread["cap"], elapsed)
        if thread["n_completed"] >= rules.n_to_complete:
            thread["state"] = RACING
            thread["instance"] = rules.n_measured
            return
    else:
        race.pending[i, thread["n_kept"]] = instance
        thread["n_kept"] += 1
    thread["turn"] += 1
    if thread["turn"] == thread["n_pending"]:
        thread["n_pending"] = thread["n_kept"]
        thread["n_turns"] += 1
        thread["turn"] = thread["n_kept"] = 0


@compiled
def race_step(race: Race, rules: Rules, i: int, pauses: bool) -> None:
    """Continue the current run of the second phase, RuntimeEst (CAR, Algorithm 3)."""
    thread = race.threads[i]
    instance, before = thread["instance"], thread["elapsed"]
    limit = min(before + rules.work_step, thread["cap"])
    seconds = runtime_of(race.runtimes, i, instance, rules.cutoff)
    elapsed = min(seconds, limit)
    pay(race.account, i, instance, before, elapsed)
    if elapsed >= limit and elapsed < thread["cap"]:
        thread["elapsed"] = elapsed
        return
    thread["elapsed"] = 0.0
    thread["instance"] += 1
    thread["total"] += elapsed
    thread["squares"] += elapsed * elapsed
    n = instance - rules.n_measured + 1
    if n > thread["stage_end"]:
        thread["stage"] += 1
        stage = thread["stage"]
        share = np.floor(GROWTH**stage) / thread["stage_end"]
        thread["stage_end"] = np.floor(GROWTH**stage)
        failure = rules.zeta / (stage**1.1 * SUM_OF_STAGES * rules.n_configs)
        thread["log_term"] = share * np.log(3.0 / failure)
    if n > 1:
        bound_mean(race, rules, i, n, pauses)


@compiled
def bound_mean(race: Race, rules: Rules, i: int, n: int, pauses: bool) -> None:
    """Bound the mean after n runs; reject, accept or pause the thread."""
    thread = race.threads[i]
    mean, confidence = bernstein(
        thread["total"], thread["squares"], n, thread["cap"], thread["log_term"]
    )
    thread["lower"], thread["upper"] = mean - confidence, mean + confidence
    upper = thread["upper"]
    if n == rules.n_measured + 1 and confidence > mean:  # their code: T ≤ 2 × mean by now
        upper = min(upper, 2.0 * mean)
    if upper < race.shared[BOUND]:
        race.shared[BOUND], race.shared[BOUND_OWNER] = upper, i
    if thread["lower"] > race.shared[BOUND]:
        thread["state"] = REJECTED
    elif confidence <= rules.epsilon / 3.0 * (mean + thread["lower"]):
        thread["state"] = ACCEPTED
        thread["mean"] = mean
    elif pauses and n == rules.n_measured + 1:
        thread["state"] = PAUSED


@compiled
def run_threads(race: Race, rules: Rules, members: Numbers, pauses: bool) -> int:
    """Let the threads take turns, a step each, until all are done; return the one left, or -1.

    Unless threads pause, the run ends as well when all others are known to be worse than the only
    one that is still running.
    """
    active = members.copy()
    n_active = len(active)
    while n_active > 0:
        n_left = 0
        for place in range(n_active):
            i = active[place]
            thread = race.threads[i]
            if thread["state"] == MEASURING:
                measure_step(race, rules, i)
            elif thread["state"] == RACING:
                race_step(race, rules, i, pauses)
            if thread["state"] == MEASURING or thread["state"] == RACING:
                active[n_left] = i
                n_left += 1
        if n_left == 1 and not pauses:
            lowest = np.inf
            for i in members:
                if i != active[0]:
                    lowest = min(lowest, race.threads[i]["lower"])
            if lowest > race.shared[BOUND]:
                return int(active[0])
        n_active = n_left
    return -1


@compiled
def first_with_a_cap(race: Race, rules: Rules, n_wanted: int) -> Numbers:
    """Let all threads take turns until enough have measured their cap; return these, in order.

    Their code for "guess the best configurations". A thread that has its cap goes on with its
    second phase while the others measure theirs.
    """
    found = np.empty(len(race.threads), dtype=np.int64)
    n_found, n_active = 0, 1
    while n_active > 0 and n_found < n_wanted:
        n_active = 0
        for i in range(len(race.threads)):
            thread = race.threads[i]
            if thread["state"] == MEASURING:
                n_active += 1
                measure_step(race, rules, i)
                if thread["state"] == RACING:
                    found[n_found] = i
                    n_found += 1
            elif thread["state"] == RACING:
                n_active += 1
                race_step(race, rules, i, False)
    return found[: min(n_found, n_wanted)]


@compiled
def precheck(race: Race, rules: Rules, i: int, log_term: float) -> bool:
    """Return whether a configuration may still be better than T (ICAR, Algorithm 4, PreCheck).

    The cap is measured on b' runs; the mean is taken over b' further ones, up to 2.99 b' T.
    """
    thread = race.threads[i]
    while thread["state"] == MEASURING:
        measure_step(race, rules, i)
    if thread["state"] == REJECTED:
        return False
    total, squares, n = 0.0, 0.0, 0
    for instance in range(rules.n_measured, 2 * rules.n_measured):
        elapsed = min(runtime_of(race.runtimes, i, instance, rules.cutoff), thread["cap"])
        pay(race.account, i, instance, 0.0, elapsed)
        total += elapsed
        squares += elapsed * elapsed
        n += 1
        if total > 2.99 * rules.n_measured * race.shared[BOUND]:
            break
    mean, confidence = bernstein(total, squares, n, thread["cap"], log_term)
    return bool(mean - confidence <= race.shared[BOUND])
