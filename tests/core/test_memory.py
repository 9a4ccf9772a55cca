"""What is known: costs, failures and bounds, and how they add up."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from acband_configspace.core.memory import UNKNOWN, Memory, Total

INF = math.inf


def remembering(costs: dict[int, list[float]]) -> Memory:
    """Return a memory of these configurations, the instances counted from 0."""
    memory = Memory()
    for configuration, row in costs.items():
        for instance, cost in enumerate(row):
            memory.add(configuration, instance, cost)
    return memory


def test_what_is_told_is_known() -> None:
    memory = remembering({4: [1.0, 2.5]})
    assert memory.cost(4, 1) == memory.finishing_cost(4, 1) == 2.5
    assert memory.costs(4) == {0: 1.0, 1: 2.5}
    assert (memory.met(4), memory.n_met(4)) == ([0, 1], 2)
    assert memory.knows_all(4, [0, 1])
    assert memory.total(4, [0, 1]) == Total(0, 3.5)
    assert memory.block([4], [1, 0]).tolist() == [[2.5, 1.0]]


def test_what_is_not_told_is_not() -> None:
    memory = remembering({4: [1.0]})
    assert memory.cost(4, 7) is None
    assert memory.cost(5, 0) is None
    assert memory.finishing_cost(5, 0) == INF
    assert not memory.knows_all(4, [0, 7])
    assert memory.total(4, [0, 7]) == UNKNOWN
    assert memory.total_so_far(4, [0, 7]) == Total(0, 1.0)
    assert memory.n_unknown([4, 5], [0, 7]) == 3
    assert not memory.has_finished(5, [0])


def test_a_failure_has_a_cost_but_has_not_finished() -> None:
    memory = Memory()
    memory.add(0, 0, 30.0, finished=False)
    assert memory.cost(0, 0) == 30.0
    assert memory.finishing_cost(0, 0) == INF
    assert memory.total(0, [0]) == Total(0, 30.0)
    assert not memory.has_finished(0, [0])


def test_failures_without_a_cost_count_first() -> None:
    memory = remembering({0: [9.0, 9.0, INF], 1: [1.0, INF, INF], 2: [8.0, 9.0, INF]})
    totals = [memory.total(configuration, range(3)) for configuration in range(3)]
    assert totals == [Total(1, 18.0), Total(2, 1.0), Total(1, 17.0)]
    assert totals[2] < totals[0] < totals[1] < UNKNOWN


def test_bounds_only_rise_and_are_no_costs() -> None:
    memory = Memory()
    assert memory.bound(0, 0) == -INF
    for bound, known in ((2.0, 2.0), (1.0, 2.0), (3.0, 3.0)):
        memory.add_bound(0, 0, bound)
        assert memory.bound(0, 0) == known
    assert memory.cost(0, 0) is None
    assert memory.n_met(0) == 0


def test_who_was_stopped_is_as_bad_as_its_bound_at_least() -> None:
    memory = remembering({0: [1.0, 5.0], 1: [0.5]})
    assert memory.is_better(1, 0)
    memory.add_bound(1, 1, 5.0)
    assert not memory.is_better(0, 1)  # 6 against more than 5.5
    memory.add_bound(1, 1, 6.0)
    assert memory.is_better(0, 1)


def test_nobody_is_better_on_nothing() -> None:
    memory = Memory()
    memory.add(0, 0, 1.0)
    memory.add(1, 1, 2.0)
    assert not memory.is_better(0, 1)
    assert not memory.is_better(1, 0)


rows = st.lists(st.sampled_from([0.0, 1.0, 2.0, -3.0, INF]), max_size=5)


@given(rows, rows)
def test_two_are_never_better_than_each_other(one: list[float], other: list[float]) -> None:
    memory = remembering({0: one, 1: other})
    assert not (memory.is_better(0, 1) and memory.is_better(1, 0))
    n_common = min(len(one), len(other))
    totals = [memory.total(configuration, range(n_common)) for configuration in (0, 1)]
    assert memory.is_better(0, 1) == (totals[0] < totals[1])
