"""A run read from its journal is the run that took place."""

from __future__ import annotations

import csv
import json
import math
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from made_up import CUTOFF_COST, usual_cost, values_of, write_run

from acband_configspace.cli.run_directory import incumbent_of
from acband_configspace.core.ends import End
from acband_configspace.core.instances import InstanceKey
from acband_configspace.core.passes import SchedulePlan
from acband_configspace.core.race import RaceId
from acband_configspace.core.settings import Settings, settings_from
from acband_configspace.core.statistics import Wins, wins
from acband_configspace.runlog.csv import write_trials
from acband_configspace.runlog.estimates import Costs, Estimator, Lead, comparison_of
from acband_configspace.runlog.journal import Journal
from acband_configspace.runlog.records import RaceRecord, TrialRecord
from acband_configspace.runlog.replay import FATES, NoRunError, Run

POOL = tuple(f"instance {n}" for n in range(40))


class OwnWins(Wins):
    """A statistic of the user's own, of which a journal has the name only."""

    def __repr__(self) -> str:
        return "my own"


RUNS = {
    "memory": {"n_trials": 400},
    "memory, workers": {"n_trials": 400, "n_workers": 5},
    "memory, pool": {"n_trials": 400, "instances": POOL, "deterministic": True},
    "memory, racing": {"n_trials": 900, "racing": True, "n_workers": 3},
    "memory, racing, pool": {"racing": True, "instances": POOL, "deterministic": True},
    "memory, few": {"n_trials": 500, "n_in_space": 30},
    "memory, learned": {"settings": Settings(proposals="learned"), "n_trials": 600},
    "memory, learned, few": {"settings": Settings(proposals="learned"), "n_in_space": 60},
    "memory, one": {"n_trials": 100, "deterministic": True},
    "paper": {"settings": settings_from("paper"), "n_trials": 900, "n_workers": 4},
    "paper, racing": {"settings": settings_from("paper"), "n_trials": 900, "racing": True},
    "paper, early": {"settings": Settings(k=4, early_stopping=0.1, alpha=0.1), "n_workers": 4},
    "paper, playoff": {"settings": Settings(playoff=20, early_stopping=0.1, alpha=0.1)},
    "paper, mean": {"settings": Settings(statistic="mean"), "cost": lambda v, k: v["x"]},
    "paper, spend": {
        "settings": Settings(spend="configurations", early_stopping=0.2, playoff=0),
        "n_trials": 800,
    },
}


@pytest.fixture(params=RUNS, ids=str)
def options(request: pytest.FixtureRequest) -> Any:
    return RUNS[request.param]


def test_the_engine_takes_in_the_whole_run(tmp_path: Path, options: dict[str, Any]) -> None:
    engine = write_run(tmp_path, **options)
    run = Run.load(tmp_path)
    assert run.problem is None
    assert len(run.races) == engine.n_races
    assert list(run.plans) == list(engine.plans)
    assert run.finished == engine.finished is not None
    assert run.incumbent == engine.leader
    if not engine.plans or run.header.settings.memory:
        [(champion,)] = engine.epoch_winners
        assert run.epochs[-1].winner in (champion, run.incumbent)
        return
    expected = [number for winners in engine.epoch_winners for number in winners]
    assert [epoch.winner for epoch in run.epochs if not epoch.is_playoff] == expected
    (schedule,) = (plan.schedule for plan in run.plans[:1] if isinstance(plan, SchedulePlan))
    for epoch, plan in zip(run.epochs, schedule.epochs, strict=False):
        assert len(epoch.rounds) == len(plan.rounds)
        for round_, planned in zip(epoch.rounds, plan.rounds, strict=True):
            assert len(round_.in_play) == planned.n_configs
            assert len(round_.carried) == planned.carried
            assert round_.n_planned_races == planned.n_races
            assert all(len(group.survivors or ()) == planned.survivors for group in round_.groups)


def test_any_part_of_a_run_can_be_played(tmp_path: Path, options: dict[str, Any]) -> None:
    write_run(tmp_path / "whole", **options)
    journal = tmp_path / "whole" / "journal.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    whole = Run.load(tmp_path / "whole")
    (tmp_path / "part").mkdir()
    for share in (0.0, 0.03, 0.1, 0.35, 0.6, 0.9, 0.99):
        n_lines = 1 + int(share * (len(lines) - 1))
        torn = lines[n_lines][:30]
        (tmp_path / "part" / "journal.jsonl").write_bytes(b"".join(lines[:n_lines]) + torn)
        part = Run.load(tmp_path / "part")
        assert part.problem is None
        assert part.finished is None
        assert part.races == whole.races[: len(part.races)]
        # What was decided stays so.
        known = [lead.configuration for lead in part.leads]
        assert known == [lead.configuration for lead in whole.leads][: len(known)]
        for before, after in zip(part.rounds, whole.rounds, strict=False):
            if not before.is_open:
                for early, late in zip(before.groups, after.groups, strict=True):
                    assert set(early.survivors or ()) <= set(late.survivors or ())


@pytest.mark.parametrize("n_in_space", [None, 30])
@pytest.mark.parametrize("n_workers", [3, 8])
def test_a_run_of_races_can_be_played_after_each_of_them(
    tmp_path: Path, n_workers: int, n_in_space: int | None
) -> None:
    """Passes overlap: when one has begun, not all need have raced that entered the one before."""
    write_run(
        tmp_path / "whole",
        racing=True,
        n_trials=250,
        n_workers=n_workers,
        n_in_space=n_in_space,
    )
    lines = (tmp_path / "whole" / "journal.jsonl").read_bytes().splitlines(keepends=True)
    (tmp_path / "part").mkdir()
    for n_lines in range(2, len(lines)):
        (tmp_path / "part" / "journal.jsonl").write_bytes(b"".join(lines[:n_lines]))
        assert Run.load(tmp_path / "part").problem is None


def test_the_order_in_which_races_end_changes_when_but_not_who(tmp_path: Path) -> None:
    for n_workers in (1, 7):
        write_run(tmp_path / str(n_workers), n_trials=400, n_workers=n_workers)
    one, many = Run.load(tmp_path / "1"), Run.load(tmp_path / "7")
    assert one.races != many.races
    assert [lead.configuration for lead in one.leads] == [lead.configuration for lead in many.leads]


def test_the_incumbents_cost_goes_down_and_ends_at_its_own(
    tmp_path: Path, options: dict[str, Any]
) -> None:
    write_run(tmp_path, **options)
    run = Run.load(tmp_path)
    curve = [lead.best for lead in run.leads if lead.best is not None]
    assert len(curve) == len(run.leads)
    assert curve == sorted(curve, reverse=True)
    assert curve[-1] == run.leads[-1].estimate.mean
    since = [lead.since for lead in run.leads]
    assert since == sorted(since)
    assert since[-1] <= run.elapsed


def test_estimates_are_near_the_truth(tmp_path: Path) -> None:
    write_run(tmp_path, n_trials=3000)
    run = Run.load(tmp_path)
    keys = [InstanceKey(None, seed) for seed in range(3000)]
    for lead in run.leads[1:]:
        values = run.values(lead.configuration)
        truth = sum(usual_cost(values, key) for key in keys) / len(keys)
        assert abs(lead.estimate.mean - truth) < 4 * lead.estimate.error
    assert run.leads[-1].estimate.error < 0.1 * run.leads[-1].estimate.mean


def test_the_default_is_set_beside_the_incumbent(tmp_path: Path) -> None:
    write_run(tmp_path, Settings(playoff=30, k=4), n_trials=1500)
    run = Run.load(tmp_path)
    comparison = run.comparison
    assert comparison.default == 0
    assert comparison.incumbent == run.incumbent != 0
    assert comparison.n_common >= 20
    low, high = comparison.ratio_interval or (0, 0)
    assert 1 < low < comparison.ratio < high
    assert comparison.default_estimate.mean > run.leads[-1].estimate.mean
    assert run.label(0) == "#0 (default)"
    assert run.label(3) == "#3"
    assert run.label(None) == "–"


def test_a_default_that_was_stopped_costs_at_least_what_it_had(tmp_path: Path) -> None:
    write_run(tmp_path, racing=True, n_trials=900)
    comparison = Run.load(tmp_path).comparison
    assert comparison.at_least
    assert comparison.ratio > 1


def race_of(index: int, ends: dict[int, End], cost: float) -> RaceRecord:
    """Return a race, on an instance of its own, in which all cost the same."""
    trials = tuple(TrialRecord(end, cost, cost, cost, 0.0) for end in ends.values())
    place, key = RaceId(1, 1, 1, 0, index), InstanceKey(None, index)
    return RaceRecord(place, index, key, tuple(ends), trials, 1.0, len(trials))


def test_an_incumbent_that_was_stopped_costs_at_least_what_it_had() -> None:
    leads = [Lead(1, 0.0, 2, None, None)]
    races = [race_of(n, {0: End.FINISHED, 1: End.FINISHED}, 2.0) for n in range(5)]
    known = comparison_of(Costs(races), leads, 0)
    assert (known.ratio, known.ratio_interval) == (1.0, (1.0, 1.0))
    races.append(race_of(5, {0: End.FINISHED, 1: End.LOST}, 5.0))
    bound = comparison_of(Costs(races), leads, 0)
    assert (bound.ratio, bound.ratio_interval) == (None, None)
    text = bound.in_words(None, racing=True)
    assert text.startswith("costs at least 2.5 instead of 2.5 on average, on the 6 training")
    races.append(race_of(6, {0: End.LOST, 1: End.FINISHED}, 2.5))
    both = comparison_of(Costs(races), leads, 0)
    assert (both.at_least, both.own_at_least, both.ratio) == (True, True, None)
    text = both.in_words(None, racing=True)
    assert text.startswith("costs at least 2.5 instead of at least 2.5 on average, on the 7")


def test_who_is_set_beside_an_incumbent_that_was_stopped_costs_at_least_that() -> None:
    """The estimate is the incumbent's mean and a difference."""
    races = [race_of(n, {0: End.FINISHED, 1: End.FINISHED}, 2.0) for n in range(5)]
    assert not Estimator(Costs(races), 1).estimate(0).at_least
    races.append(race_of(5, {2: End.FINISHED, 1: End.LOST}, 5.0))
    estimate = Estimator(Costs(races), 1).estimate(0)
    assert (estimate.mean, estimate.at_least) == (2.5, True)


def test_those_who_have_not_met_cost_at_least_what_they_had() -> None:
    ends = [{0: End.FINISHED}, {1: End.FINISHED}, {1: End.LOST}]
    costs = Costs([race_of(n, end, n + 2.0) for n, end in enumerate(ends)])
    own = Estimator(costs, 1).estimate(1)
    compared = comparison_of(costs, [Lead(1, 0.0, 1, own, None)], 0)
    text = compared.in_words(own, racing=True)
    assert text.startswith("costs at least 3.5 on average, the default 2, each on instances")


def race_that_the_default_fails(index: int) -> RaceRecord:
    race = race_of(index, {0: End.CRASHED, 1: End.FINISHED}, 3.0)
    return replace(race, trials=(replace(race.trials[0], cost=math.inf), race.trials[1]))


def test_instances_on_which_the_default_failed_are_met_too() -> None:
    leads = [Lead(1, 0.0, 2, None, None)]
    races = [race_that_the_default_fails(n) for n in range(9)]
    text = comparison_of(Costs(races), leads, 0).in_words(None, racing=False)
    assert text == (
        "is better than the default, which failed on all 9 training instances that both have met"
    )
    races.append(race_of(9, {0: End.FINISHED, 1: End.FINISHED}, 3.0))
    text = comparison_of(Costs(races), leads, 0).in_words(None, racing=False)
    assert text.endswith("on the 1 of 10 common training instances where neither failed")


def test_where_the_default_takes_no_part_there_is_no_comparison(tmp_path: Path) -> None:
    write_run(tmp_path, Settings(first="random"), header={"default": None})
    run = Run.load(tmp_path)
    assert run.comparison is None
    assert run.label(0) == "#0"
    assert run.default == values_of(0, 3)


def test_costs_that_are_negative_or_zero_have_no_ratio(tmp_path: Path) -> None:
    write_run(tmp_path, cost=lambda values, key: values["x"] - 7)
    comparison = Run.load(tmp_path).comparison
    assert comparison.default_mean == -2
    assert comparison.ratio is None
    assert comparison.ratio_interval is None


def test_trials_and_times_add_up(tmp_path: Path, options: dict[str, Any]) -> None:
    write_run(tmp_path, **options)
    run = Run.load(tmp_path)
    assert {trial.fate for trial in run.trials} <= set(FATES)
    assert len(run.trials) == run.races[-1].n_trials
    assert run.cpu_time == pytest.approx(
        sum(trial.cpu_time for race in run.races for trial in race.trials)
    )
    assert run.default == {"mode": "plain", "x": 5.0}
    assert all(
        sum(trial.fate == "won" for trial in run.trials if trial.race is race) <= 1
        for race in run.races[:20]
    )
    assert run.elapsed == run.races[-1].walltime


def test_a_result_that_is_used_again_costs_nothing(tmp_path: Path) -> None:
    write_run(tmp_path, stop_after=0)
    journal = Journal(tmp_path / "journal.jsonl")
    journal.read()
    trial = TrialRecord(End.FINISHED, 1.0, 1.0, 2.0, 5.0)
    for index in range(2):
        record = RaceRecord(
            RaceId(1, 1, 1, 0, index), 0, InstanceKey("a", 1), (0,), (trial,), 1.0, 1
        )
        journal.add_race(record, {0: {"x": 1}})
    run = Run.load(tmp_path)
    assert [trial.reused for trial in run.trials] == [False, True]
    assert run.cpu_time == 2.0


def test_what_was_known_before_the_run_costs_nothing(tmp_path: Path) -> None:
    write_run(tmp_path, racing=True, stop_after=0)
    journal = Journal(tmp_path / "journal.jsonl")
    journal.read()
    trial = TrialRecord(End.FINISHED, 1.0, 1.0, 2.0, 5.0)
    place, key = RaceId(1, 1, 1, 0, 0), InstanceKey("a", 1)
    record = RaceRecord(place, 0, key, (0, 1, 2), (trial,) * 3, 1.0, 1, known=(0, 2))
    journal.add_race(record, {n: {"x": n} for n in range(3)})
    run = Run.load(tmp_path)
    assert [trial.reused for trial in run.trials] == [True, False, True]
    assert run.cpu_time == 2.0
    assert run.races[0].outcome.n_known == 2


def test_who_races_alone_finishes_and_wins_nothing(tmp_path: Path) -> None:
    write_run(tmp_path, stop_after=0)
    journal = Journal(tmp_path / "journal.jsonl")
    journal.read()
    for index, racers in enumerate([(0,), (0, 1), (1,)]):
        trials = tuple(
            TrialRecord(End.FINISHED if n == 0 else End.LOST, 1.0, 1.0, 2.0, float(index))
            for n in range(len(racers))
        )
        place, key = RaceId(1, 1, 1, 0, index), InstanceKey("a", index)
        record = RaceRecord(place, index, key, racers, trials, 1.0, index + 1)
        journal.add_race(record, {n: {"x": n} for n in racers})
    run = Run.load(tmp_path)
    fates = [(trial.configuration, trial.fate) for trial in run.trials]
    assert fates == [(0, "finished"), (0, "won"), (1, "lost"), (1, "finished")]


def test_who_wins_a_race_is_the_cores_rule() -> None:
    ends = (End.FINISHED, End.LOST, End.CRASHED, End.CUTOFF)
    for i in range(4**3):
        for costs in ((1.0, 2.0, 3.0), (1.0, 1.0, 2.0), (3.0, 2.0, 1.0), (math.inf, 2.0, 2.0)):
            trials = tuple(
                TrialRecord(ends[i // 4**n % 4], costs[n], 1.0, 1.0, 0.0) for n in range(3)
            )
            race = RaceRecord(
                RaceId(1, 1, 1, 0, 0), 0, InstanceKey(None, 0), (7, 8, 9), trials, 1.0, 3
            )
            outcome = race.outcome
            won = wins(np.array([outcome.finishing_costs]), np.array([outcome.censored]))[0]
            expected = [n for n, has_won in zip(race.racers, won, strict=True) if has_won]
            assert [n for n in [race.winner] if n is not None] == expected


def test_a_statistic_of_ones_own_can_be_given_again(tmp_path: Path) -> None:
    settings = Settings(statistic=OwnWins(), k=3, alpha=0.1)
    engine = write_run(tmp_path, settings, n_trials=600)
    played = Run.load(tmp_path, statistic=OwnWins())
    assert played.problem is None
    assert played.incumbent == engine.leader
    facade = SimpleNamespace(
        scenario=SimpleNamespace(output_directory=tmp_path),
        intensifier=SimpleNamespace(settings=settings),
    )
    assert Run.of(facade).incumbent == engine.leader
    unknown = Run.load(tmp_path)
    assert "my own" in unknown.problem
    assert list(unknown.races) == list(played.races)
    assert (unknown.incumbent, unknown.epochs) == (None, ())
    with pytest.raises(NoRunError, match="not known who leads in .*: it was judged by"):
        incumbent_of(tmp_path)


def test_a_journal_that_the_engine_does_not_take_says_so(tmp_path: Path) -> None:
    write_run(tmp_path, n_trials=300)
    run = Run.load(tmp_path)
    races = [race for race in run.races if race.id != RaceId(1, 1, 1, 0, 0)]
    run = replace(run, recorded=replace(run.recorded, races=races))
    assert "could be run at that time" in run.problem
    assert (run.incumbent, run.rounds) == (None, ())


def test_a_run_is_found_by_directory_run_or_facade(tmp_path: Path) -> None:
    write_run(tmp_path, n_trials=50)
    run = Run.load(tmp_path)
    assert Run.of(run) is run
    assert Run.of(str(tmp_path)).races == run.races
    facade = SimpleNamespace(scenario=SimpleNamespace(output_directory=tmp_path))
    assert Run.of(facade).races == run.races
    with pytest.raises(TypeError, match="must be a directory, a Run or a facade but got int 3"):
        Run.of(3)


def test_what_is_not_a_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NoRunError, match="is not a directory"):
        Run.load(tmp_path / "missing")
    with pytest.raises(NoRunError, match="holds no run: it has no journal.jsonl$"):
        Run.load(tmp_path)
    journal = tmp_path / "run" / "journal.jsonl"
    journal.parent.mkdir()
    journal.write_text("")
    with pytest.raises(NoRunError, match="nothing was recorded"):
        Run.load(journal.parent)
    with pytest.raises(NoRunError, match="did you mean .*run"):
        Run.load(tmp_path)
    journal.write_text('{"format": 1}\n')
    with pytest.raises(NoRunError, match="written by version 0.1.0"):
        Run.load(journal.parent)
    write_run(journal.parent, n_trials=50)
    content = journal.read_bytes()
    journal.write_bytes(content.replace(b'"finished",', b'"finished" ', 1))
    with pytest.raises(NoRunError, match="line 3 of .* is damaged"):
        Run.load(journal.parent)


def test_why_a_run_ended_may_stand_in_smacs_files(tmp_path: Path) -> None:
    write_run(tmp_path, n_trials=50, stop_after=3)
    assert Run.load(tmp_path).finished is None
    (tmp_path / "optimization.json").write_text(json.dumps({"finished": True}))
    (tmp_path / "intensifier.json").write_text(json.dumps({"state": {"finished": None}}))
    assert Run.load(tmp_path).finished == "its limit was reached"
    (tmp_path / "intensifier.json").write_text(json.dumps({"state": {"finished": "done"}}))
    assert Run.load(tmp_path).finished == "done"
    for torn in ('{"sta', "[]", "{}"):
        (tmp_path / "intensifier.json").write_text(torn)
        assert Run.load(tmp_path).finished is None


@pytest.mark.parametrize(("reason", "seconds"), [(None, 0.0), ("done", 0.0), ("done", -0.001)])
def test_what_smac_saved_before_the_last_race_is_of_an_earlier_end(
    tmp_path: Path, reason: str | None, seconds: float
) -> None:
    write_run(tmp_path, n_trials=50, stop_after=3)
    walltime = Run.load(tmp_path).elapsed + seconds
    state = {"finished": True, "used_walltime": walltime}
    (tmp_path / "optimization.json").write_text(json.dumps(state))
    (tmp_path / "intensifier.json").write_text(json.dumps({"state": {"finished": reason}}))
    expected = None if seconds < 0 else reason or "its limit was reached"
    assert Run.load(tmp_path).finished == expected


def test_the_table_has_a_line_per_trial(tmp_path: Path) -> None:
    write_run(tmp_path, racing=True)
    run = Run.load(tmp_path)
    table = tmp_path / "trials.csv"
    write_trials(tmp_path, table)
    rows = list(csv.DictReader(table.open()))
    assert len(rows) == len(run.trials)
    last = run.trials[-1]
    assert rows[-1]["race"] == str(last.race.id)
    assert int(rows[-1]["configuration"]) == last.configuration
    assert float(rows[-1]["x"]) == run.configurations[last.configuration]["x"]
    assert {row["end"] for row in rows} >= {"won", "lost"}
    assert all((row["censored"] == "True") == (row["end"] == "lost") for row in rows)
    assert all((row["default"] == "True") == (row["configuration"] == "0") for row in rows)
    assert {row["cost"] for row in rows if row["end"] == "crashed"} <= {str(CUTOFF_COST)}


def test_columns_have_names_of_their_own(tmp_path: Path) -> None:
    write_run(tmp_path, stop_after=0)
    journal = Journal(tmp_path / "journal.jsonl")
    journal.read()
    trial = TrialRecord(End.FINISHED, 7.0, 1.0, 2.0, 5.0)
    key = InstanceKey("no UTF-8: \udcff", 1)
    record = RaceRecord(RaceId(1, 1, 1, 0, 0), 0, key, (0,), (trial,), 1.0, 1)
    journal.add_race(record, {0: {"cost": 0.5, "seed": 4, "x": 1}})
    write_trials(Run.load(tmp_path), tmp_path / "trials.csv")
    [row] = csv.DictReader((tmp_path / "trials.csv").open())
    assert (row["cost"], row["config.cost"], row["config.seed"]) == ("7.0", "0.5", "4")


@pytest.mark.parametrize("seed", range(2))
def test_a_playoff_has_a_winner_also_if_that_does_not_race_at_first_in_the_next_pass(
    seed: int, tmp_path: Path
) -> None:
    settings = Settings(k=4, n_candidates=6, n_epochs=1, playoff=30)
    write_run(tmp_path, settings, n_trials=20_000, timed=True, seed=seed)
    run = Run.load(tmp_path)
    playoffs = [epoch for epoch in run.epochs if epoch.is_playoff]
    assert len(playoffs) > 1
    assert None not in {epoch.winner for epoch in playoffs}
