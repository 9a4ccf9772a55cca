"""How busy workers are: what can be known beforehand."""

from __future__ import annotations

import pytest

from acband_configspace.benchmark.__main__ import main
from acband_configspace.benchmark.commands.workers import Job, Shift, measure
from acband_configspace.benchmark.simulation import racing_play
from acband_configspace.benchmark.tables import open_table

TABLE = "synthetic:500x50:seed=2"


def test_one_worker_is_busy_all_the_time() -> None:
    busy, gap = measure(Job(TABLE, n_workers=1, limit=300, seed=0))
    assert busy == pytest.approx(1.0)
    assert gap >= 0.0


def test_more_workers_wait_more_but_none_for_a_whole_pass() -> None:
    shares = [measure(Job(TABLE, n, limit=1000, seed=3))[0] for n in (1, 2, 4, 8)]
    assert shares == sorted(shares, reverse=True)
    # With one pass after the other, two are busy for .87 of the time here, eight for .26.
    assert shares[1] > 0.9
    assert shares[3] > 0.33


@pytest.mark.parametrize("n_workers", [2, 7])
def test_workers_change_when_things_happen_and_not_what(n_workers: int) -> None:
    """Given enough time, each comes to what one worker comes to, later or sooner."""
    table, told = open_table(TABLE), {}
    for n in (1, n_workers):
        play = racing_play(table, seed=1)
        Shift(play, n).until(2000.0 * float(table.mean_runtimes().mean()) / n)
        told[n] = [plan.n_entrants for plan in play.engine.plans], dict(play.engine.champions)
    one, several = told[1], told[n_workers]
    common = one[1].keys() & several[1].keys()
    assert len(common) > 5
    assert {number: one[1][number] for number in common} == {
        number: several[1][number] for number in common
    }


def test_the_command_prints_a_row_for_each_table(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--workers", "1", "3", "--limit", "100", "--seeds", "2", "--processes", "1"]
    assert main(["workers", "--table", TABLE, *options]) == 0
    printed = capsys.readouterr().out
    assert printed.count(TABLE) == 2
    busy = next(line for line in printed.splitlines() if TABLE in line).split()
    assert float(busy[1]) == 100
    assert 0 < float(busy[2]) < 100


def test_numbers_are_checked(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["workers", "--workers", "0", "--processes", "1"]) == 2
    assert "workers must be at least 1 but got 0" in capsys.readouterr().err
