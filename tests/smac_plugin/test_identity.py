"""What makes two runs the same."""

from __future__ import annotations

import time
from pathlib import Path

from targets import a_scenario, exact, noisy

from acband_configspace.smac_plugin.identity import differences, identity_of, name_of


def test_limits_do_not_matter_but_what_decides_the_races_does(tmp_path: Path) -> None:
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


def test_long_lists_are_shortened() -> None:
    lines = differences({"instances": list("abcdefgh")}, {"instances": ["z"]})
    assert lines == ["instances: 8 before, 1 now; gone: 'a', 'b', 'c' and 5 more; new: 'z'"]


def test_a_difference_in_many_instances_is_found_in_no_time() -> None:
    names = [f"i{n}" for n in range(20_000)]
    start = time.process_time()
    lines = differences({"instances": names}, {"instances": names[1:]})
    assert time.process_time() - start < 1.0  # comparing all with all takes 40 s
    assert lines == ["instances: 20000 before, 19999 now; gone: 'i0'"]
