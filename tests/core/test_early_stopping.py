"""When a group is decided: lossless stopping changes nothing, and the test keeps its level."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acband_configspace.benchmark import RuntimeTable, simulate
from acband_configspace.core.acband import acband
from acband_configspace.core.ends import End
from acband_configspace.core.paper_races import PaperRaces, Signal
from acband_configspace.core.race import Outcome, Race, RaceId
from acband_configspace.core.rounds import RoundPlan
from acband_configspace.core.schedule import Schedule, Supply
from acband_configspace.core.statistics import MeanCost, Wins, get_statistic
from acband_configspace.core.stopping import checked_early_stopping, decided, level_for_run


def small_table(seed: int, *, ties: bool = False) -> RuntimeTable:
    rng = np.random.default_rng(seed)
    runtimes = np.exp(rng.normal(0, 1, (40, 300)) + rng.normal(0, 0.6, (40, 1)))
    if ties:  # whole seconds: many races that nobody wins
        runtimes = np.ceil(runtimes)
    return RuntimeTable(runtimes, 6.0)


def survivors(wins: np.ndarray, n_survivors: int) -> frozenset[int]:
    return frozenset(np.argsort(-wins, kind="stable")[:n_survivors].tolist())


@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize("kept", [1, 2])
def test_lossless_is_exact(size: int, kept: int) -> None:
    """A group is decided if, and only if, every way to go on has the same survivors."""
    if kept >= size:
        return
    n_races = 5
    plan = RoundPlan(1, size, n_races, kept, 0)
    nobody = size  # nobody is credited with the race
    for n_raced in range(n_races + 1):
        for past in itertools.combinations_with_replacement(range(nobody + 1), n_raced):
            wins = np.bincount(past, minlength=size + 1)[:size]
            ends = {
                survivors(wins + np.bincount(future, minlength=size + 1)[:size], kept)
                for future in itertools.combinations_with_replacement(
                    range(nobody + 1), n_races - n_raced
                )
            }
            assert bool(decided(wins, n_raced, plan, 0.0)) == (len(ends) == 1)


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    k=st.integers(2, 6),
    n_candidates=st.integers(1, 25),
    ties=st.booleans(),
)
def test_lossless_changes_nothing_but_the_cost(
    seed: int, k: int, n_candidates: int, ties: bool
) -> None:
    table = small_table(seed % 7, ties=ties)
    paper, lossless, level = (
        simulate(table, k=k, n_candidates=n_candidates, early_stopping=stopping, seed=seed)
        for stopping in (None, 0.0, 0.2)
    )
    assert lossless.incumbent == paper.incumbent
    assert lossless.epoch_winners == paper.epoch_winners
    assert lossless.configurations == paper.configurations
    assert lossless.n_instances <= paper.n_instances == paper.n_instances_planned
    assert lossless.cpu_time <= paper.cpu_time * (1 + 1e-12)
    assert level.n_instances <= paper.n_instances


@pytest.mark.parametrize(("size", "kept"), [(2, 1), (4, 1), (4, 2), (4, 3)])
@pytest.mark.parametrize("level", [0.05, 0.3])
def test_equals_are_told_apart_with_at_most_the_level(size: int, kept: int, level: float) -> None:
    n_groups, n_races = 3000, 400
    rng = np.random.default_rng(size * 10 + kept)
    winner = rng.integers(0, size + 1, (n_groups, n_races))  # one race in size + 1 credits nobody
    wins = (winner[:, :, None] == np.arange(size)).cumsum(axis=1)
    # So many races are left in the end that only the test can decide.
    plan = RoundPlan(n_groups, size, 10 * n_races, kept, 0)
    ever = decided(wins, np.arange(1, n_races + 1), plan, level).any(axis=1)
    error = math.sqrt(level * (1 - level) / n_groups)
    assert ever.mean() <= level + 3 * error
    if size == 2 or level > 0.1:
        assert ever.any()  # not valid by never deciding


@pytest.mark.parametrize("kept", [1, 2])
def test_the_best_is_rarely_dropped(kept: int) -> None:
    """Racer 0 is barely the best of 4: the test drops it with at most level · (n - f) / n."""
    n_groups, n_races, level = 3000, 300, 0.3
    rng = np.random.default_rng(kept)
    winner = rng.choice(4, (n_groups, n_races), p=[0.28, 0.24, 0.24, 0.24])
    wins = (winner[:, :, None] == np.arange(4)).cumsum(axis=1)
    plan = RoundPlan(n_groups, 4, 10 * n_races, kept, 0)
    enough = decided(wins, np.arange(1, n_races + 1), plan, level)
    at = enough.argmax(axis=1)
    dropped = [
        0 not in survivors(wins[group, at[group]], kept)
        for group in np.flatnonzero(enough.any(axis=1))
    ]
    bar = 6 / (kept * (4 - kept) * level)
    assert sum(dropped) / n_groups <= 3 / (kept * (2 * bar - 1))


def test_the_mixture_is_the_formula() -> None:
    """c = 10 for two racers at level 0.1: M(6, 0) = 14.4 reaches it, M(5, 0) = 7.9 does not."""
    plan = RoundPlan(1, 2, 1000, 1, 0)
    assert not decided(np.array([5, 0]), 5, plan, 0.1)
    assert decided(np.array([6, 0]), 6, plan, 0.1)
    for a, b in [(5, 0), (6, 0), (20, 6), (19, 7), (300, 240), (300, 250)]:
        log_m = (
            (a + b) * math.log(2)
            + math.lgamma(a + 0.5)
            + math.lgamma(b + 0.5)
            - math.log(math.pi)
            - math.lgamma(a + b + 1)
        )
        assert decided(np.array([b, a]), a + b, plan, 0.1) == (log_m >= math.log(10))


def stream_result(
    table: RuntimeTable,
    stream: PaperRaces,
    rows: tuple[int, ...],
    columns: tuple[int, ...],
    order: Callable[[int], int],
) -> int:
    """Run up to 12 races at a time, told in the order that ``order(n)`` picks; cancel some."""
    running: list[Race] = []
    while True:
        race = stream.ask()
        if race is Signal.DONE:
            for late in running:  # still running when all is over: taken, and ignored
                assert not stream.is_open(late)
                stream.tell(late, outcome_of(table, late, rows, columns))
            assert stream.winner is not None
            return rows[stream.winner]
        if isinstance(race, Race):
            assert stream.is_open(race)
            running.append(race)
        if race is Signal.WAIT or len(running) >= 12:
            told = running.pop(order(len(running)))
            was_open = stream.is_open(told)
            if not was_open and told.id.index_in_group % 2:
                continue  # cancelled: never told
            stream.tell(told, outcome_of(table, told, rows, columns))
            with pytest.raises(ValueError, match="must be told once"):
                stream.tell(told, outcome_of(table, told, rows, columns))


def outcome_of(
    table: RuntimeTable, race: Race, rows: tuple[int, ...], columns: tuple[int, ...]
) -> Outcome:
    column = columns[race.instance % len(columns)]
    times = np.array([table.runtimes[rows[racer], column] for racer in race.racers])
    ends = [End.LOST if time >= table.cutoff else End.FINISHED for time in times]
    return Outcome(np.minimum(times, table.cutoff).tolist(), ends)


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    k=st.sampled_from([2, 3, 5]),
    early_stopping=st.sampled_from([None, 0.0, 0.1, 0.5]),
    playoff=st.sampled_from([0, 30]),
    spend=st.sampled_from(["nothing", "configurations"]),
    reuse=st.booleans(),
    data=st.data(),
)
def test_streaming_is_the_table_driver_in_any_order(
    seed: int,
    k: int,
    early_stopping: float | None,
    playoff: int,
    spend: str,
    reuse: bool,
    data: st.DataObject,
) -> None:
    table = small_table(seed % 5, ties=seed % 2 == 0)
    budget = 450 if reuse else 300
    result = simulate(
        table,
        k=k,
        n_candidates=15,
        budget=budget,
        early_stopping=early_stopping,
        playoff=playoff,
        spend=spend,
        reuse=reuse,
        seed=seed,
    )
    schedule = Schedule.plan(
        budget,
        k=k,
        n_candidates=15,
        playoff=playoff,
        set_aside=early_stopping is None,
        supply=Supply(
            n_available=table.n_configs - 1, n_instances=table.n_instances if reuse else None
        ),
    )
    rounds_ = acband(schedule, np.random.default_rng([seed, 2]), spend=spend)
    stream = PaperRaces(rounds_, early_stopping=early_stopping)
    shuffle = data.draw(st.randoms(use_true_random=False))
    winner = stream_result(
        table, stream, result.configurations, result.instances, shuffle.randrange
    )
    assert winner == result.incumbent
    epoch_winners = tuple(result.configurations[number] for number in stream.epoch_winners)
    assert epoch_winners == result.epoch_winners
    assert (stream.n_races, stream.n_trials) == (result.n_instances, result.n_trials)


def test_a_group_waits_for_gaps() -> None:
    """Outcomes after a gap count only once it is filled, in race order."""
    schedule = Schedule.plan(10, n_candidates=1)
    stream = PaperRaces(acband(schedule, np.random.default_rng(0)), early_stopping=0.0)
    races = [race for race in (stream.ask() for _ in range(10)) if isinstance(race, Race)]
    assert len(races) == 10
    for race in races[1:]:
        stream.tell(race, Outcome([1.0, 2.0]))
        assert stream.winner is None
    stream.tell(races[0], Outcome([2.0, 1.0]))
    assert stream.winner == races[0].racers[0]
    assert stream.n_races == 6  # 5 : 1 with 4 to go, and a tie goes to the first of the group


def test_races_of_decided_groups_are_not_handed_out() -> None:
    schedule = Schedule.plan(40, n_candidates=3, n0=6)  # one epoch: 4 configurations, 2 groups
    stream = PaperRaces(acband(schedule, np.random.default_rng(0)), early_stopping=0.0)
    waiting = []
    while isinstance(race := stream.ask(), Race) and race.id.round == 1:
        if race.id.group == 0:
            stream.tell(race, Outcome([1.0, 2.0]))
        else:
            waiting.append(race)
    assert race is Signal.WAIT
    assert len(waiting) == schedule.epochs[0].rounds[0].races_per_group
    assert stream.round_ is not None
    assert stream.round_.round == 1


def test_only_what_was_handed_out_can_be_told() -> None:
    stream = PaperRaces(acband(Schedule.plan(10, n_candidates=1), np.random.default_rng(0)))
    with pytest.raises(ValueError, match="was handed out"):
        stream.tell(Race(RaceId(1, 1, 1, 0, 0), 0, (0, 1)), Outcome([1.0, 2.0]))


def test_level_for_run_divides_over_the_rounds() -> None:
    schedule = Schedule.plan(20118)
    assert level_for_run(0.19, schedule) == pytest.approx(0.19 / 19)


def test_the_statistic_decides_what_applies() -> None:
    assert checked_early_stopping(0.1, Wins()) == 0.1
    assert checked_early_stopping(0.0, MeanCost()) is None
    with pytest.raises(ValueError, match="the test counts wins"):
        checked_early_stopping(0.1, get_statistic("mean"))


@pytest.mark.parametrize("bad", [2, 1.0, -0.1, math.nan])
def test_bad_levels(bad: float) -> None:
    table = small_table(0)
    text = r"early_stopping must be None or lie in \[0, 1\) but got"
    with pytest.raises(ValueError, match=text):
        simulate(table, n_candidates=5, early_stopping=bad)
    with pytest.raises(ValueError, match=text):
        PaperRaces(
            acband(Schedule.plan(100, n_candidates=3), np.random.default_rng(0)), early_stopping=bad
        )
