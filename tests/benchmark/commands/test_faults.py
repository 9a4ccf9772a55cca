"""A short campaign of faults; and that it would notice if something did not hold."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from acband_configspace.benchmark.__main__ import main
from acband_configspace.benchmark.commands import faults
from acband_configspace.benchmark.commands.faults import _Campaign, _DisturbedRun
from acband_configspace.benchmark.commands.faults_actions import MARK, left_behind
from acband_configspace.core.ends import End
from acband_configspace.core.instances import InstanceKey
from acband_configspace.core.race import RaceId
from acband_configspace.core.settings import Settings
from acband_configspace.runlog.journal import JOURNAL, Journal
from acband_configspace.runlog.records import Header, RaceRecord, TrialRecord

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")


@pytest.mark.timeout(600)  # on a busy machine each start takes its time
def test_a_short_campaign_holds(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(faults, "MOST_FAULTS", 3)
    options = ["--kinds", "script", "--kills", "1", "--minutes", "1", "--seed", "4"]
    assert main(["faults", *options]) == 0, capsys.readouterr().out
    printed = capsys.readouterr().out
    assert "script held: " in printed
    for wrong in ("wrong incumbent", "race lost", "race run twice", "process left"):
        assert f"  {wrong:26}        0        0" in printed


def test_what_is_left_behind_is_found() -> None:
    process = subprocess.Popen(["sleep", "60"], env={**os.environ, MARK: "this test"})
    try:
        [found] = left_behind("this test", None)
        assert found == f"{process.pid} sleep 60"
    finally:
        process.kill()
        process.wait()
    assert left_behind("this test", None) == []


def test_what_is_lost_or_run_again_is_noticed(tmp_path: Path) -> None:
    campaign = _Campaign(["costs"])
    run = _DisturbedRun(campaign, "costs", tmp_path, with_racers=False)
    run.finish()
    assert campaign.problems == []
    run._note_known()
    with (tmp_path / "calls").open("a") as calls:
        calls.write((tmp_path / "calls").read_text().splitlines()[0] + "\n")
    run._check_pause()
    assert [problem[0] for problem in campaign.problems] == ["race run twice"]
    journal = run._journal
    journal.write_bytes(b"".join(journal.read_bytes().splitlines(keepends=True)[:-1]))
    with pytest.raises(Exception, match="does not begin as it did"):
        run._check_pause()
    run.close()


def test_a_loser_may_race_again_but_nobody_who_has_finished(tmp_path: Path) -> None:
    """It may be killed before that race is recorded, which then is not one that is run twice."""
    run = _DisturbedRun(campaign := _Campaign(["dask"]), "racing", tmp_path, with_racers=False)
    journal = Journal(tmp_path / "run" / "0" / JOURNAL)
    journal.start(Header(settings=Settings(), racing=True, seed=0, deterministic=False), {})
    trials = tuple(TrialRecord(end, 0.25, 0.25, 0.1, 0.0) for end in (End.FINISHED, End.LOST))
    race = RaceRecord(RaceId(1, 1, 1, 0, 0), 0, InstanceKey("i0", 7), (0, 1), trials, 1.0, 2)
    journal.add_race(race, {0: {"level": 0}, 1: {"level": 1}})
    journal.close()
    run._note_known()
    calls = tmp_path / "calls"
    calls.write_text("1 i0 7\n")
    run._check_pause()
    assert campaign.problems == []
    calls.write_text("1 i0 7\n0 i0 7\n")
    run._check_pause()
    assert [problem[0] for problem in campaign.problems] == ["race run twice"]
    assert "0 i0 7" in campaign.problems[0][2]
    run.close()
