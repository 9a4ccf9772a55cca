"""The journal: what is written comes back, and a torn line takes nothing else with it."""

from __future__ import annotations

import json
import logging
import math
import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from smac.runhistory.dataclasses import TrialValue
from smac.runhistory.enumerations import StatusType

from acband_configspace import Schedule
from acband_configspace.core.instances import InstanceKey
from acband_configspace.core.schedule import Supply
from acband_configspace.errors import RunDiffersError
from acband_configspace.smac_plugin.journal import Journal
from acband_configspace.smac_plugin.passes import PassPlan
from acband_configspace.smac_plugin.trials import RaceRecord

IDENTITY = {"k": 2, "instances": ["ä", "b\n"], "crash_cost": math.inf}
finite = st.floats(-1e9, 1e9)
values = st.builds(
    TrialValue,
    cost=finite | st.just(math.inf),
    time=finite,
    cpu_time=finite,
    status=st.sampled_from([StatusType.SUCCESS, StatusType.CRASHED, StatusType.TIMEOUT]),
    starttime=finite,
    endtime=finite,
    additional_info=st.dictionaries(st.text(), st.text() | st.integers() | st.booleans()),
)
records = st.builds(
    lambda name, key, values, n_trials: RaceRecord(
        name, key, tuple(range(len(values))), tuple(values), 1.5, n_trials
    ),
    name=st.text(),
    key=st.builds(InstanceKey, instance=st.none() | st.text(), seed=st.integers(0, 2**31)),
    values=st.lists(values, min_size=1, max_size=4),
    n_trials=st.integers(0, 1000),
)


def plans() -> list[PassPlan]:
    supply = Supply(n_given=2, n_available=9, n_instances=30, results_kept=True)
    return [
        PassPlan(Schedule.for_trials(100), 100),
        PassPlan(Schedule.for_trials(500, k=5, alpha=0.2), 700),
        PassPlan(Schedule.plan(200, k=3, n_candidates=12, n0=20), 2000),
        PassPlan(Schedule.for_trials(300, supply=supply), 1000),
    ]


def racers(record: RaceRecord) -> list[dict[str, object]]:
    return [{"x": 0.1 * number, "name": "é"} for number in record.racers]


def written(path, races: list[RaceRecord]) -> None:
    journal = Journal(path)
    journal.start(IDENTITY)
    for record in races:
        journal.add_race(record, racers(record))
    journal.close()


@given(st.lists(records, max_size=5))
@settings(max_examples=20)
def test_races_come_back_as_they_were(tmp_path_factory, races):
    path = tmp_path_factory.mktemp("journal") / "journal.jsonl"
    written(path, races)
    recorded = Journal(path).read()
    assert recorded.identity == IDENTITY
    assert recorded.races == races
    for race in races:
        for number in race.racers:
            assert recorded.configurations[number] == {"x": 0.1 * number, "name": "é"}


def test_plans_come_back_as_they_were(tmp_path):
    journal = Journal(tmp_path / "deep" / "journal.jsonl")
    journal.start(IDENTITY)
    for plan in plans():
        journal.add_plan(plan)
    recorded = Journal(journal.path).read()
    for before, after in zip(plans(), recorded.plans, strict=True):
        assert after.n_trials == before.n_trials
        assert after.schedule.epochs == before.schedule.epochs
        assert after.schedule.supply == before.schedule.supply


def test_a_race_is_in_the_file_as_soon_as_it_is_added(tmp_path):
    journal = Journal(tmp_path / "journal.jsonl")
    journal.start(IDENTITY)
    record = RaceRecord("1.1.1.0.0", InstanceKey(None, 3), (4,), (TrialValue(cost=1.0),), 0.0, 1)
    journal.add_race(record, [{"x": 1}])
    assert Journal(journal.path).read().races == [record]


@given(data=st.data())
@settings(max_examples=40)
def test_cut_anywhere_it_gives_back_all_whole_lines_and_can_be_continued(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("journal") / "journal.jsonl"
    races = [
        RaceRecord(str(n), InstanceKey("ü", n), (0, n + 1), (TrialValue(cost=1.0),) * 2, 0.5, 2 * n)
        for n in range(4)
    ]
    written(path, races)
    whole = path.read_bytes()
    size = data.draw(st.integers(0, len(whole)))
    os.truncate(path, size)
    n_whole = whole[:size].count(b"\n")
    journal = Journal(path)
    recorded = journal.read()
    if n_whole == 0:
        assert recorded is None
        return
    assert recorded.races == races[: n_whole - 1]
    for race in races[n_whole - 1 :]:
        journal.add_race(race, racers(race))
    again = Journal(path).read()
    assert again.races == races
    assert set(again.configurations) == {0, 1, 2, 3, 4}


def test_a_torn_line_is_named(tmp_path, caplog):
    path = tmp_path / "journal.jsonl"
    written(path, [])
    with path.open("a") as file:
        file.write('{"race": 3, "on": [nul')
    with caplog.at_level(logging.WARNING):
        assert Journal(path).read().races == []
    assert f"Line 2 of {path} is torn" in caplog.text


def test_a_journal_of_another_format_is_refused(tmp_path):
    path = tmp_path / "journal.jsonl"
    path.write_text(json.dumps({"format": 99, "identity": {}}) + "\n")
    with pytest.raises(RunDiffersError, match="format: 99 before, 1 now"):
        Journal(path).read()


def test_no_journal_is_no_run(tmp_path):
    assert Journal(tmp_path / "journal.jsonl").read() is None
