"""A run read from its journal is the run that took place."""

from __future__ import annotations

import pytest
from run_helpers import make_run

from acband_configspace.core.statistics import Wins
from acband_configspace.runlog.bracket import incumbents, played_epochs
from acband_configspace.runlog.run import CAUSES, NoRunError, Run


class OwnWins(Wins):
    """A statistic of the user's own, of which a journal has the name only."""

    def __repr__(self):
        return "my own"


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"early_stopping": None},
        {"early_stopping": 0.1, "k": 4},
        {"statistic": "mean", "early_stopping": None},
        {"statistic": "mean", "crash_cost": 50.0},
        {"statistic": "quantile", "crash_cost": 50.0},
        {"statistic": OwnWins()},
        {"playoff": 20, "early_stopping": 0.1},
        {"spend": "configurations", "early_stopping": 0.2},
        {"spend": "configurations", "early_stopping": 0.2, "playoff": 0, "n_trials": 1000},
    ],
    ids=str,
)
def test_the_epochs_have_the_winners_of_the_intensifier(tmp_path, options):
    facade = make_run(tmp_path, **options)
    run = Run.load(facade.scenario.output_directory)
    intensifier = facade.intensifier
    assert len(run.races) == intensifier.n_races
    assert run.schedules == tuple(plan.schedule for plan in intensifier.plans)
    assert run.finished == intensifier.finished
    epochs = [epoch for epoch in played_epochs(run) if not epoch.is_playoff]
    expected = [n for winners in intensifier.epoch_winners for n in winners]
    found = [epoch.winner for epoch in epochs]
    if isinstance(options.get("statistic"), OwnWins):  # known by who went on; the last did not
        found, expected = found[:-1], expected[:-1]
    assert found == expected
    if not facade.schedule.playoff and not isinstance(options.get("statistic"), OwnWins):
        assert run.configurations[incumbents(run)[-1][1]] == dict(intensifier.get_incumbent())
    for epoch, plan in zip(epochs, run.schedules[0].epochs, strict=False):
        assert len(epoch.rounds) == len(plan.rounds)
        for round_, planned_round in zip(epoch.rounds, plan.rounds, strict=True):
            assert len(round_.in_play) == planned_round.n_configs
            assert len(round_.races) <= planned_round.n_races


def test_trials_and_times_add_up(tmp_path):
    facade = make_run(tmp_path)
    run = Run.load(facade.scenario.output_directory)
    assert {trial.cause for _, trial in run.trials} <= set(CAUSES)
    assert run.cpu_time == pytest.approx(sum(v.cpu_time for v in facade.runhistory.values()))
    assert run.default == {"mode": "plain", "x": 5.0}
    number = incumbents(run)[-1][1]
    assert run.configurations[number] == dict(facade.intensifier.get_incumbent())
    assert all(sum(t.cause == "won" for t in race.trials) <= 1 for race in run.races)


def test_a_run_that_is_being_written_can_be_read(tmp_path):
    directory = make_run(tmp_path).scenario.output_directory
    whole = Run.load(directory)
    journal = directory / "journal.jsonl"
    lines = journal.read_text().splitlines(keepends=True)
    journal.write_text("".join(lines[:12]) + lines[12][:30])
    part = Run.load(directory)
    assert part.races == whole.races[:10]
    assert played_epochs(part)[-1].winner is None


def test_what_is_no_run_is_refused(tmp_path):
    with pytest.raises(NoRunError, match="is no directory"):
        Run.load(tmp_path / "missing")
    with pytest.raises(NoRunError, match="holds no run: it has no journal.jsonl$"):
        Run.load(tmp_path)
    journal = tmp_path / "run" / "journal.jsonl"
    journal.parent.mkdir()
    journal.write_text("")
    with pytest.raises(NoRunError, match="is empty"):
        Run.load(journal.parent)
    with pytest.raises(NoRunError, match="did you mean .*run"):
        Run.load(tmp_path)
    journal.write_text('{"format": 99}\n')
    with pytest.raises(NoRunError, match="in format 1"):
        Run.load(journal.parent)
    journal.write_text('{"format": 1, "identity": {}}\n{"race": "1.2", "on": [1]}\n')
    with pytest.raises(NoRunError, match="cannot be read"):
        Run.load(journal.parent)
