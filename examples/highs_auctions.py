"""HiGHS on combinatorial auctions: the instances, the options and the call the examples share.

Winner determination: bidders want bundles of goods, and each good can be sold once. Which bids
should be accepted for the highest revenue? A mixed-integer program, and a hard one in general.

An instance is a name such as "train-17": its auction is drawn from a random stream of that name,
in a few milliseconds, so there are no files, and training and test never share one.
"""

from __future__ import annotations

import functools
import math
import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from ConfigSpace import Categorical, ConfigurationSpace, Float, Integer, NotEqualsCondition

try:
    import highspy
except ModuleNotFoundError:
    raise SystemExit('HiGHS is not installed: pip install ".[examples]"') from None

#: Goods lie on a map of this many rows and columns...
ROWS, COLUMNS = 6, 10
#: ... and about this many bids are made for them.
N_BIDS = 200
#: A bidder takes one more neighbouring good with this probability.
ONE_MORE = 0.8
#: How much more a bundle is worth than its goods apart: its number of goods to this power.
SYNERGY = 0.2

#: A solver that takes longer than this, in seconds, is stopped ...
CUTOFF = 5.0
#: ... and counts as having taken so many times the cutoff.
PAR = 10.0


@dataclass(frozen=True)
class Auction:
    """Bids on bundles of goods; of the bids of one bidder, one can be accepted."""

    n_goods: int
    bundles: tuple[tuple[int, ...], ...]
    """The goods of each bid."""
    bidders: tuple[int, ...]
    """Who made each bid."""
    prices: tuple[float, ...]
    """What each bid offers."""


def make_auction(name: str) -> Auction:
    """Draw the auction of that name: goods on a map, bids on neighbouring goods."""
    # The standard library's generator: a racer's time starts before the auction is drawn, and
    # numpy takes ten times as long for thousands of single draws.
    draw = random.Random(name)
    n_goods = ROWS * COLUMNS
    common = [draw.uniform(1.0, 100.0) for _ in range(n_goods)]
    bundles: list[tuple[int, ...]] = []
    bidders: list[int] = []
    prices: list[float] = []
    while len(bundles) < N_BIDS:
        bidder = bidders[-1] + 1 if bidders else 0
        private = [draw.uniform(-1.0, 1.0) for _ in range(n_goods)]
        liking = [math.exp(2.0 * taste) for taste in private]
        wanted = {_bundle(draw, liking) for _ in range(draw.randint(1, 5))}
        for bundle in sorted(wanted):
            worth = sum(common[good] * (1.0 + 0.5 * private[good]) for good in bundle)
            bundles.append(bundle)
            bidders.append(bidder)
            prices.append(round(worth + len(bundle) ** (1.0 + SYNERGY), 2))
    return Auction(n_goods, tuple(bundles), tuple(bidders), tuple(prices))


def _bundle(draw: random.Random, liking: Sequence[float]) -> tuple[int, ...]:
    """Start at a good and add neighbours, those that the bidder likes more often."""
    [good] = draw.choices(range(len(liking)), liking)
    chosen = {good}
    border = set(_neighbours(good))
    while border and draw.random() < ONE_MORE:
        candidates = sorted(border)
        [good] = draw.choices(candidates, [liking[candidate] for candidate in candidates])
        chosen.add(good)
        border.update(_neighbours(good))
        border -= chosen
    return tuple(sorted(chosen))


@functools.cache
def _neighbours(good: int) -> list[int]:
    row, column = divmod(good, COLUMNS)
    steps = [(row - 1, column), (row + 1, column), (row, column - 1), (row, column + 1)]
    return [r * COLUMNS + c for r, c in steps if 0 <= r < ROWS and 0 <= c < COLUMNS]


def make_space() -> ConfigurationSpace:
    """Return 16 options of HiGHS under their own names, its defaults as the default.

    What would change the question is left out: gaps and tolerances.
    """
    switch = [True, False]
    space = ConfigurationSpace(name="HiGHS")
    presolve = Categorical("presolve", ["choose", "off"], default="choose")
    root_only = Categorical("mip_root_presolve_only", switch, default=False)
    lifting = Integer("mip_lifting_for_probing", (-1, 10), default=-1)
    space.add(
        presolve,
        root_only,
        lifting,
        Categorical("mip_detect_symmetry", switch, default=True),
        Categorical("mip_allow_restart", switch, default=True),
        Categorical("mip_allow_cut_separation_at_nodes", switch, default=True),
        Integer("mip_lp_age_limit", (1, 100), default=10, log=True),
        Integer("mip_pool_age_limit", (1, 300), default=30, log=True),
        Integer("mip_pool_soft_limit", (100, 100_000), default=10_000, log=True),
        Integer("mip_pscost_minreliable", (0, 32), default=8),
        Float("mip_heuristic_effort", (0.0, 0.4), default=0.05),
        Categorical("mip_heuristic_run_feasibility_jump", switch, default=True),
        Categorical("mip_heuristic_run_rins", switch, default=True),
        Categorical("mip_heuristic_run_rens", switch, default=True),
        Categorical("mip_heuristic_run_root_reduced_cost", switch, default=True),
        Categorical("simplex_dual_edge_weight_strategy", [-1, 0, 1, 2], default=-1),
    )
    # Without presolve there is nothing for these to steer.
    space.add(NotEqualsCondition(root_only, presolve, "off"))
    space.add(NotEqualsCondition(lifting, presolve, "off"))
    return space


def solve(config: Mapping[str, Any], instance: str, seed: int = 0) -> float:
    """Solve an auction to optimality with these options and return its revenue.

    A race times this from outside: its target does not look at a clock.
    """
    highs = _run(config, instance, seed)
    if highs.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        raise RuntimeError(f"HiGHS ended with {highs.getModelStatus()} on {instance}")
    return float(highs.getObjectiveValue())


def timed_solve(
    config: Mapping[str, Any], instance: str, seed: int = 0, limit: float = CUTOFF
) -> float:
    """Return the CPU seconds of ``solve``, or PAR times the cutoff if they exceed the limit."""
    start = time.thread_time()
    highs = _run(config, instance, seed, cpu_limit=limit)
    seconds = time.thread_time() - start
    solved = highs.getModelStatus() == highspy.HighsModelStatus.kOptimal
    return seconds if solved and seconds <= limit else PAR * CUTOFF


def version() -> str:
    """Return which HiGHS is installed."""
    return str(highspy.Highs().version())


def instances_to_record(count: int, seed: int) -> list[str]:
    """Return auctions for ``python -m acband_configspace.benchmark record``, as large as all."""
    return [f"table-{seed}-{number}" for number in range(count)]


def features(instance: str) -> list[float]:
    """Describe an auction in three numbers, for SMAC's models of what a run will cost."""
    auction = make_auction(instance)
    sizes = [len(bundle) for bundle in auction.bundles]
    return [float(len(sizes)), float(np.mean(sizes)), float(np.mean(auction.prices))]


def _run(
    config: Mapping[str, Any], instance: str, seed: int, *, cpu_limit: float | None = None
) -> highspy.Highs:
    model = _as_model(make_auction(instance))
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    highs.setOptionValue("threads", 1)  # a racer has one core
    highs.setOptionValue("random_seed", seed % 2**31)
    for name, value in config.items():
        # ConfigSpace hands out numpy's types, which HiGHS does not know.
        plain = value.item() if isinstance(value, np.generic) else value
        if highs.setOptionValue(name, plain) != highspy.HighsStatus.kOk:
            raise ValueError(f"HiGHS refuses {name} = {plain!r}")
    highs.passModel(model)
    if cpu_limit is not None:
        # HiGHS' own time limit is on elapsed time: a busy machine would stop what is not slow.
        start = time.thread_time()

        def stop_if_late(event: highspy.HighsCallbackEvent) -> None:
            if time.thread_time() - start > cpu_limit:
                event.interrupt()

        highs.cbMipInterrupt.subscribe(stop_if_late)
    highs.run()
    return highs


def _as_model(auction: Auction) -> highspy.HighsLp:
    """One 0/1 variable a bid; each good, and each bidder, has at most one accepted bid."""
    n_bids = len(auction.bundles)
    columns = [
        [*bundle, auction.n_goods + bidder]
        for bundle, bidder in zip(auction.bundles, auction.bidders, strict=True)
    ]
    rows = np.concatenate([np.array(column, dtype=np.int32) for column in columns])
    starts = np.cumsum([0, *map(len, columns)]).astype(np.int32)
    n_rows = auction.n_goods + auction.bidders[-1] + 1
    model = highspy.HighsLp()
    model.num_col_, model.num_row_ = n_bids, n_rows
    model.sense_ = highspy.ObjSense.kMaximize
    model.col_cost_ = np.array(auction.prices)
    model.col_lower_, model.col_upper_ = np.zeros(n_bids), np.ones(n_bids)
    model.row_lower_, model.row_upper_ = np.full(n_rows, -highspy.kHighsInf), np.ones(n_rows)
    model.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    model.a_matrix_.start_, model.a_matrix_.index_ = starts, rows
    model.a_matrix_.value_ = np.ones(len(rows))
    model.integrality_ = [highspy.HighsVarType.kInteger] * n_bids
    return model
