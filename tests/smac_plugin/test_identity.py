"""What makes two runs the same."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
import time

import pytest
from targets import Counted, a_scenario, exact, noisy

from acband_configspace import ACBandIntensifier
from acband_configspace.core.statistics import Wins
from acband_configspace.smac_plugin.identity import describe, differences, identity_of, name_of


def adding(offset: float):
    def target(config, seed):
        return exact(config, seed) + offset

    return target


def recursive():
    def target(config, seed):
        return target if config is None else 0.0

    return target


class Solver:
    def __init__(self, cutoff: float) -> None:
        self.cutoff = cutoff
        self.helper = object()

    def run(self, config, seed):
        return self.cutoff

    def __call__(self, config, seed):
        return self.cutoff


MAKERS = [
    lambda value: functools.partial(noisy, offset=value),
    lambda value: functools.partial(noisy, value),
    lambda value: functools.partial(Solver(value).run, seed=1),
    adding,
    lambda value: Solver(value).run,
    Solver,
    lambda value: lambda config, seed, offset=value: offset,
    lambda value: f"./solver-{value}",
]


@pytest.mark.parametrize("make", MAKERS)
def test_targets_are_told_apart_by_what_they_are_bound_to_and_not_by_where_they_lie(make):
    assert describe(make(1.0)) == describe(make(1.0))
    assert describe(make(1.0)) != describe(make(2.0))
    assert " at 0x" not in describe(make(1.0))


def test_all_targets_are_different():
    targets = [make(1.0) for make in MAKERS] + [noisy, exact, recursive(), None]
    texts = [describe(target) for target in targets]
    assert len(set(texts)) == len(texts)


def test_objects_of_any_kind_have_a_description(tmp_path):
    assert describe(Counted(noisy, tmp_path)) == describe(Counted(noisy, tmp_path))
    assert describe(object()) == describe(object())
    assert describe(len) == describe(len)


def test_the_order_of_a_set_does_not_matter():
    """What is in braces in the code is in another order in each process."""
    program = (
        "from acband_configspace.smac_plugin.identity import describe\n"
        "print(describe(lambda config, seed: config['kernel'] in {'rbf', 'poly', 'lin', 'sig'}))"
    )
    texts = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(texts) == 1


def test_a_statistic_of_ones_own_has_no_address(tmp_path):
    class Own:
        needs_all_costs = False

        def scores(self, costs, censored):
            return Wins().scores(costs, censored)

    kept = [Own(), Own()]
    metas = [ACBandIntensifier(a_scenario(tmp_path), statistic=own).meta for own in kept]
    assert metas[0]["statistic"] == metas[1]["statistic"]
    assert "Own" in metas[0]["statistic"]


def test_limits_do_not_matter_but_what_decides_the_races_does(tmp_path):
    identity = identity_of(a_scenario(tmp_path), k=2)
    limits = {
        "n_trials": 7,
        "walltime_limit": 5,
        "cputime_limit": 5,
        "n_workers": 2,
        "termination_cost_threshold": 0.1,
    }
    assert identity_of(a_scenario(tmp_path, **limits), k=2) == identity
    assert name_of(identity, noisy) != name_of(identity, exact)
    for change in ({"crash_cost": 5.0}, {"deterministic": True}, {"trial_walltime_limit": 3}):
        other = identity_of(a_scenario(tmp_path, **change), k=2)
        assert len(differences(identity, other)) == 1
        assert name_of(identity, noisy) != name_of(other, noisy)


def test_long_lists_are_shortened():
    lines = differences({"instances": list("abcdefgh")}, {"instances": ["z"]})
    assert lines == ["instances: 8 before, 1 now; gone: 'a', 'b', 'c' and 5 more; new: 'z'"]


def test_a_difference_in_many_instances_is_found_in_no_time():
    names = [f"i{n}" for n in range(20_000)]
    start = time.process_time()
    lines = differences({"instances": names}, {"instances": names[1:]})
    assert time.process_time() - start < 1.0  # comparing all with all takes 40 s
    assert lines == ["instances: 20000 before, 19999 now; gone: 'i0'"]
