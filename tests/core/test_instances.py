"""The stream of fresh instances: none again while there are others."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acband_configspace.core.acband import Verdict, acband
from acband_configspace.core.instances import SEED_LIMIT, InstanceKey, Instances
from acband_configspace.core.schedule import Schedule, Supply

seeds = st.integers(0, 2**31)


def names(n: int) -> list[str]:
    return [f"instance {i}" for i in range(n)]


def meetings(
    instances: Instances, n_trials: int, *, k: int = 2, seed: int = 0
) -> list[tuple[list[int], list[InstanceKey]]]:
    """Return who raced on what, group by group, if the first of each group survives."""
    supply = Supply(n_instances=instances.n_distinct)
    schedule = Schedule.for_trials(n_trials, k=k, supply=supply)
    rounds_ = acband(schedule, np.random.default_rng(seed))
    result: list[tuple[list[int], list[InstanceKey]]] = []
    try:
        round_ = next(rounds_)
        while True:
            keys = [[instances[i] for i in row] for row in round_.instances.tolist()]
            result += zip(round_.groups.tolist(), keys, strict=True)
            plan = round_.plan
            n_raced = np.full(plan.n_groups, plan.races_per_group)
            round_ = rounds_.send(Verdict(round_.groups[:, : plan.survivors], n_raced))
    except StopIteration:
        return result


@given(n=st.integers(1, 50), seed=seeds)
@settings(max_examples=25)
def test_pairs_of_instances_and_seeds_never_run_out(n: int, seed: int) -> None:
    instances = Instances(names(n), deterministic=False, seed=seed)
    assert instances.n_distinct is None
    met = [key for _, keys in meetings(instances, 300) for key in keys]
    assert len(set(met)) == len(met)
    assert all(0 <= key.seed < SEED_LIMIT for key in met)
    # All instances come with one seed before any comes with the next.
    for start in range(0, len(met) - n, n):
        assert len({key.instance for key in met[start : start + n]}) == n


@given(seed=seeds)
@settings(max_examples=25)
def test_without_instances_there_are_seeds(seed: int) -> None:
    instances = Instances(None, deterministic=False, seed=seed)
    met = [key for _, keys in meetings(instances, 300) for key in keys]
    assert {key.instance for key in met} == {None}
    assert len({key.seed for key in met}) == len(met)


def test_a_deterministic_target_without_instances_has_a_single_one() -> None:
    instances = Instances(None, deterministic=True, seed=0)
    assert instances.n_distinct == 1
    for _, keys in meetings(instances, 60):
        assert len(keys) == 1
    assert len({keys[0] for _, keys in meetings(instances, 60)}) == 1


@given(n=st.integers(1, 60), n_trials=st.integers(10, 300), k=st.integers(2, 5), seed=seeds)
@settings(max_examples=50)
def test_few_instances_are_fresh_as_long_as_there_are_any(
    n: int, n_trials: int, k: int, seed: int
) -> None:
    instances = Instances(names(n), deterministic=True, seed=seed)
    assert instances.n_distinct == n
    uses = Counter(dict.fromkeys(names(n), 0))
    for _, keys in meetings(instances, n_trials, k=k, seed=seed):
        group = [str(key.instance) for key in keys]
        assert len(set(group)) == len(group), "within a group each at most once"
        uses.update(group)
        assert max(uses.values()) - min(uses.values()) <= 1, "none again while there are others"


def test_the_order_is_random_but_repeatable() -> None:
    def order(seed: int) -> list[InstanceKey]:
        instances = Instances(names(100), deterministic=True, seed=seed)
        return [key for _, keys in meetings(instances, 100) for key in keys]

    assert order(1) == order(1)
    assert order(1) != order(2)
    assert [key.instance for key in order(1)] != names(len(order(1)))


@given(n=st.integers(1, 50), seed=seeds, deterministic=st.booleans())
def test_numbers_stand_for_instances(n: int, seed: int, deterministic: bool) -> None:
    instances = Instances(names(n), deterministic=deterministic, seed=seed)
    again = Instances(names(n), deterministic=deterministic, seed=seed)
    keys = [instances[number] for number in range(3 * n)]
    assert keys == [again[number] for number in reversed(range(3 * n))][::-1]
    assert {key.instance for key in keys[:n]} == set(names(n))
    if deterministic:
        assert keys[n : 2 * n] == keys[:n]
        assert len({key.seed for key in keys}) == 1
    else:
        assert len(set(keys)) == 3 * n
    assert instances.n_names == n


def test_instances_are_found_at_once_however_many_there_are() -> None:
    instances = Instances(names(100_000), deterministic=False, seed=0)
    assert instances[99_999].seed != instances[100_000].seed


def test_bad_lists_of_instances_are_refused() -> None:
    with pytest.raises(ValueError, match="instances must not be empty"):
        Instances([], deterministic=True, seed=0)
    with pytest.raises(ValueError, match="must be distinct but got \\['a'\\] more than once"):
        Instances(["a", "b", "a"], deterministic=True, seed=0)
