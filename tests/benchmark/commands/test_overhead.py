"""What resuming takes is measured by a command."""

from __future__ import annotations

from acband_configspace.benchmark.commands.overhead import measure_resuming


def test_resuming_is_measured_beside_what_the_run_holds_anyway() -> None:
    found = measure_resuming(100, racing=True, k=4)
    assert found.n_races == 100
    assert found.n_trials >= 100
    assert found.milliseconds > 0
    assert 0 <= found.own_bytes < found.run_bytes
