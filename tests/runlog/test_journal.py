"""The journal: what is written comes back, and nothing but a torn last line is ever dropped."""

from __future__ import annotations

import errno
import json
import math
import multiprocessing
import os
import shutil
import subprocess
import sys
import threading
import tracemalloc
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acband_configspace.core.ends import End
from acband_configspace.core.instances import InstanceKey
from acband_configspace.core.passes import SchedulePlan
from acband_configspace.core.race import Outcome, RaceId
from acband_configspace.core.schedule import Schedule, Supply
from acband_configspace.core.search_plan import PassPlan
from acband_configspace.core.settings import Settings, settings_from
from acband_configspace.core.statistics import QuantileCost, Wins
from acband_configspace.errors import JournalError, RunDirectoryGoneError, RunInUseError
from acband_configspace.runlog.journal import Journal, read_journal
from acband_configspace.runlog.records import Header, RaceRecord, TrialRecord, short_info

IDENTITY = {"k": 2, "instances": ["ä", "b\n"], "crash_cost": math.inf}
HEADER = Header(settings=Settings(), racing=False, seed=3, deterministic=True)

finite = st.floats(-1e9, 1e9)
numbers = st.integers(0, 10**6)
trials = st.builds(
    TrialRecord,
    end=st.sampled_from(End),
    cost=finite | st.just(math.inf),
    time=finite,
    cpu_time=finite,
    started=finite,
    info=st.dictionaries(st.text(max_size=9), st.text() | st.integers(0, 9) | st.booleans()),
)
records = st.builds(
    lambda place, instance, key, trials, n_trials: RaceRecord(
        RaceId(*place),
        instance,
        key,
        tuple(range(len(trials))),
        tuple(trials),
        1.5,
        n_trials,
        known=tuple(range(0, len(trials), 2)),
    ),
    place=st.tuples(numbers, numbers, numbers, numbers, numbers),
    instance=numbers,
    key=st.builds(InstanceKey, instance=st.none() | st.text(), seed=st.integers(0, 2**31)),
    trials=st.lists(trials, min_size=1, max_size=4),
    n_trials=numbers,
)


def values_of(record: RaceRecord) -> dict[int, dict[str, object]]:
    return {number: {"x": 0.1 * number, "name": "é"} for number in record.racers}


def race(index: int, *, info: dict[str, object] | None = None) -> RaceRecord:
    trial = TrialRecord(End.FINISHED, 1.0, 1.0, 0.9, 5.5, info or {})
    place = RaceId(1, 1, 1, 0, index)
    key = InstanceKey("ü", index)
    return RaceRecord(place, index, key, (0, index + 1), (trial,) * 2, 0.5, 2 * index + 2)


def written(path: Path, races: list[RaceRecord]) -> None:
    journal = Journal(path)
    journal.start(HEADER, IDENTITY)
    for record in races:
        journal.add_race(record, values_of(record))
    journal.close()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run" / "journal.jsonl"


# --- what is written comes back ---------------------------------------------------------------


@given(st.lists(records, max_size=5, unique_by=lambda record: record.id))
@settings(max_examples=20)
def test_races_come_back_as_they_were(
    tmp_path_factory: pytest.TempPathFactory, races: list[RaceRecord]
) -> None:
    path = tmp_path_factory.mktemp("journal") / "journal.jsonl"
    written(path, races)
    for recorded in (Journal(path).read(), read_journal(path)):
        assert recorded.identity == IDENTITY
        assert recorded.header == HEADER
        assert [*recorded.races] == races
        for record in races:
            for number in record.racers:
                assert recorded.configurations[number] == {"x": 0.1 * number, "name": "é"}


def test_what_was_recorded_is_read_race_by_race(path: Path) -> None:
    written(path, [race(n) for n in range(4)])
    journal = Journal(path)
    journal.read()
    assert journal.earlier(race(2).id) == race(2)
    assert journal.earlier(race(0).id) == race(0)
    assert journal.earlier(RaceId(9, 1, 1, 0, 0)) is None
    assert [*journal.not_asked_for()] == [race(1), race(3)]
    journal.add_race(race(4), values_of(race(4)))
    assert journal.earlier(race(1).id) == race(1)  # what follows changes nothing
    assert journal.earlier(race(4).id) is None


def test_a_journal_that_is_read_takes_a_few_hundred_bytes_a_race(path: Path) -> None:
    written(path, [race(n) for n in range(500)])
    journal = Journal(path)
    tracemalloc.start()
    try:
        recorded = journal.read()
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(recorded.races) == 500
    assert held / 500 < 500  # all of it as values takes 1,200


def plans() -> Any:
    supply = Supply(n_given=2, n_available=9, n_instances=30, results_kept=True)
    return [
        SchedulePlan(Schedule.for_trials(100), 100),
        SchedulePlan(Schedule.for_trials(500, k=5, alpha=0.2, playoff=20), 700),
        SchedulePlan(Schedule.plan(20118, k=2, alpha=0.05, delta=0.05), 50000),
        SchedulePlan(Schedule.for_trials(300, supply=supply), 1000),
        PassPlan(1, 25, 12),
    ]


def test_plans_come_back_as_they_were(path: Path) -> None:
    journal = Journal(path)
    journal.start(HEADER, IDENTITY)
    for plan in plans():
        journal.add_plan(plan)
    assert read_journal(path).plans == plans()
    assert read_journal(path).plans[2].schedule.alpha == 0.05


@pytest.mark.parametrize(
    "chosen",
    [
        Settings(),
        Settings(proposals="learned"),
        Settings(k=5, first_pass=7, first="random"),
        settings_from("paper"),
        Settings(alpha=0.05, statistic="quantile", early_stopping=None),
        Settings(statistic=QuantileCost(0.9)),
        Settings(early_stopping=0.1, spend="configurations", playoff=7, n_epochs=2, budget=90),
    ],
    ids=str,
)
def test_settings_come_back_as_they_were(path: Path, chosen: Any) -> None:
    header = Header(
        settings=chosen,
        racing=True,
        seed=2**40,
        deterministic=False,
        instances=("a", "ü\udcff"),
        n_given=3,
        n_in_space=67,
        n_trials=500,
        default=None,
        default_values={"x": 0.1},
        objective="seconds",
        started=1.5,
        version="9",
    )
    Journal(path).start(header, {})
    assert read_journal(path).header == header


def test_of_a_statistic_of_ones_own_its_name_is_kept(path: Path) -> None:
    class Own(Wins):
        def __repr__(self) -> str:
            return "my own"

    header = Header(
        settings=Settings(k=3, statistic=Own()), racing=False, seed=0, deterministic=True
    )
    Journal(path).start(header, {})
    found = read_journal(path).header
    assert found.own_statistic == "my own"
    assert found.settings == Settings(k=3, statistic="wins", early_stopping=None)


def test_of_proposals_of_ones_own_their_name_is_kept(path: Path) -> None:
    class Own:
        def propose(self) -> None:
            raise NotImplementedError

        def __repr__(self) -> str:
            return "my own"

    own = Settings(proposals=Own())
    Journal(path).start(Header(settings=own, racing=False, seed=0, deterministic=True), {})
    found = read_journal(path).header
    assert found.own_proposals == "my own"
    assert found.settings == Settings(proposals="learned")
    assert found.settings.growth(racing=False) == own.growth(racing=False)


def test_values_of_numpy_and_notes_come_back_as_pythons(path: Path) -> None:
    journal = Journal(path)
    journal.start(HEADER, {"sizes": np.arange(2)})
    values: dict[int, dict[str, Any]] = {
        0: {"n": np.int64(3), "flag": np.bool_(True)},
        1: {"name": np.str_("a"), "z": None},
    }
    journal.add_race(race(0), values)
    journal.add_note("walltime", seconds=np.float64(2.5))
    recorded = read_journal(path)
    assert recorded.configurations == {0: {"n": 3, "flag": True}, 1: {"name": "a", "z": None}}
    assert recorded.note("walltime").values == {"seconds": 2.5}
    assert recorded.note("other") is None
    assert recorded.identity == {"sizes": [0, 1]}


def test_a_run_that_goes_on_is_not_finished(path: Path) -> None:
    journal = Journal(path)
    journal.start(HEADER, {})
    journal.add_race(race(0), values_of(race(0)))
    journal.add_note("finished", reason="all is judged")
    assert read_journal(path).finished == "all is judged"
    journal.add_note("limits", n_trials=9)
    journal.add_race(race(1), values_of(race(1)))
    assert read_journal(path).finished is None
    assert read_journal(path).n_trials == 9


def test_an_outcome_is_what_the_engine_is_told() -> None:
    trials = (
        TrialRecord(End.FINISHED, 1.0, 1.0, 1.0, 0.0),
        TrialRecord(End.LOST, 1.5, 1.0, 1.0, 0.0),
        TrialRecord(End.CRASHED, math.inf, 1.0, 1.0, 0.0),
    )
    record = RaceRecord(RaceId(1, 1, 1, 0, 0), 0, InstanceKey(None, 0), (4, 5, 6), trials, 1.0, 3)
    ends = (End.FINISHED, End.LOST, End.CRASHED)
    assert record.outcome == Outcome((1.0, 1.5, math.inf), ends)


# --- what targets say -------------------------------------------------------------------------


def test_what_a_target_says_is_kept_short(path: Path) -> None:
    class Bad:
        def __repr__(self) -> str:
            raise RuntimeError

    info = {
        "list": [0.0] * 300_000,
        "text": "x" * 10_000 + "the end",
        "bad": Bad(),
        "huge": 10**5000,
        "gap": np.float32(0.5),
        "good": True,
        **{f"v{n}": n for n in range(10_000)},
    }
    journal = Journal(path)
    journal.start(HEADER, {})
    journal.add_race(race(0, info=info), values_of(race(0)))
    assert path.stat().st_size < 10_000
    kept = read_journal(path).races[0].trials[0].info
    assert kept == short_info(info)
    assert kept["gap"] == 0.5
    assert kept["good"] is True
    assert len(kept["text"]) <= 1000
    assert kept["text"].endswith("the end")
    assert "Bad" in kept["bad"]


# --- damage -----------------------------------------------------------------------------------


@given(data=st.data())
@settings(max_examples=40)
def test_cut_anywhere_it_gives_back_all_whole_lines_and_can_be_continued(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("journal") / "journal.jsonl"
    races = [race(n) for n in range(4)]
    written(path, races)
    whole = path.read_bytes()
    size = data.draw(st.integers(0, len(whole)))
    os.truncate(path, size)
    n_whole = whole[:size].count(b"\n")
    journal = Journal(path)
    recorded = journal.read()
    if n_whole == 0:
        assert recorded is None
        with pytest.raises(JournalError, match="nothing was recorded"):
            read_journal(path)
        return
    assert path.stat().st_size == size  # nothing is cut until something is added
    assert [*recorded.races] == races[: n_whole - 1]
    for record in races[n_whole - 1 :]:
        journal.add_race(record, values_of(record))
    again = read_journal(path)
    assert again.races == races
    assert set(again.configurations) == {0, 1, 2, 3, 4}


@given(data=st.data())
@settings(max_examples=60)
def test_a_changed_byte_is_noticed_and_the_file_left_alone(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("journal") / "journal.jsonl"
    written(path, [race(n) for n in range(3)])
    content = bytearray(path.read_bytes())
    place = data.draw(st.integers(0, len(content) - 2))
    content[place] ^= data.draw(st.integers(1, 255))
    path.write_bytes(content)
    number = bytes(content[:place]).count(b"\n") + 1
    journal = Journal(path)
    for read in (journal.read, lambda: read_journal(path)):
        with pytest.raises(JournalError) as caught:
            read()
        assert caught.value.line == number
        assert str(path) in str(caught.value)
    assert path.read_bytes() == content
    with pytest.raises(ValueError, match="must be started or read"):
        journal.add_plan(PassPlan(1, 2, 3))


def with_checksum(line: object) -> str:
    text = json.dumps(line)[:-1]
    return text + f',"crc32":"{zlib.crc32(text.encode()):08x}"}}\n'


@pytest.mark.parametrize(
    "line",
    [
        {"race": [1, 2]},
        {"race": 3, "on": 5},
        {"race": [1, 1, 1, 0, 9], "on": [None, 0], "racers": [1], "trials": []},
        {"plan": "pass", "number": 1},
        {"plan": "schedule", "schedule": {}, "n_trials": 5},
        {"plan": "other"},
        {"note": "x"},
        {"unknown": 1},
        [1, 2],
    ],
    ids=str,
)
def test_what_makes_no_sense_is_refused_by_its_number(
    path: Path, line: dict[str, Any] | list[Any]
) -> None:
    written(path, [race(0)])
    with path.open("a") as file:
        file.write(with_checksum(line))
    before = path.read_bytes()
    with pytest.raises(JournalError, match=f"^line 3 of {path} "):
        [*Journal(path).read().races]  # each is read when it is asked for
    with pytest.raises(JournalError, match=f"^line 3 of {path} "):
        read_journal(path)
    assert path.read_bytes() == before


def test_a_journal_of_version_0_1_0_is_refused(path: Path) -> None:
    path.parent.mkdir()
    path.write_text('{"format": 1, "identity": {}}\n{"race": "1.1.1.0.0"}\n')
    with pytest.raises(JournalError, match="written by version 0.1.0; this version cannot contin"):
        Journal(path).read()
    path.write_text(with_checksum({"format": 99}))
    with pytest.raises(JournalError, match="is in format 99, but this version reads format 2"):
        Journal(path).read()
    path.write_text("hello\n")
    with pytest.raises(JournalError, match="not the journal of a run"):
        Journal(path).read()


def test_a_new_journal_replaces_an_old_one_whole(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(path, [race(0)])
    before = path.read_bytes()
    journal = Journal(path)
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full_disk(20))
        with pytest.raises(OSError, match="No space"):
            journal.start(HEADER, {"other": 1})
    assert path.read_bytes() == before
    assert set(os.listdir(path.parent)) == {"journal.jsonl", "journal.lock"}
    journal.start(HEADER, {"other": 1})
    journal.add_race(race(0), values_of(race(0)))
    assert read_journal(path).identity == {"other": 1}
    assert read_journal(path).races == [race(0)]


def full_disk(n_bytes: int) -> Any:
    """Return an ``os.write`` to a disk that has so many bytes left."""
    real_write = os.write
    left = n_bytes

    def write(descriptor: int, content: Any) -> Any:
        nonlocal left
        if not left:
            raise OSError(errno.ENOSPC, "No space left on device")
        n_written = real_write(descriptor, bytes(content)[:left])
        left -= n_written
        return n_written

    return write


def test_after_a_full_disk_a_race_is_there_once(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = Journal(path)
    journal.start(HEADER, IDENTITY)
    journal.add_race(race(0), values_of(race(0)))
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full_disk(40))
        with pytest.raises(OSError, match="No space"):
            journal.add_race(race(1), values_of(race(1)))
    assert read_journal(path).races == [race(0)]
    journal.add_race(race(1), values_of(race(1)))
    with pytest.raises(ValueError, match="race 1.1.1.0.1 must be recorded once"):
        journal.add_race(race(1), values_of(race(1)))
    recorded = read_journal(path)
    assert recorded.races == [race(0), race(1)]
    assert set(recorded.configurations) == {0, 1, 2}


def test_a_race_that_is_there_twice_is_refused(path: Path) -> None:
    written(path, [race(0)])
    line = path.read_bytes().splitlines(keepends=True)[-1]
    path.write_bytes(path.read_bytes() + line)
    with pytest.raises(JournalError, match="line 3 .* race 1.1.1.0.0 is there twice"):
        read_journal(path)


@pytest.mark.parametrize("loss", ["deleted", "moved", "replaced"])
def test_a_directory_that_is_gone_is_noticed(path: Path, loss: str) -> None:
    journal = Journal(path)
    journal.start(HEADER, IDENTITY)
    if loss == "deleted":
        shutil.rmtree(path.parent)
    elif loss == "moved":
        path.parent.rename(path.parent.with_name("elsewhere"))
    else:
        path.unlink()
        path.write_text("x" * 1000)
    with pytest.raises(RunDirectoryGoneError, match=str(path)):
        journal.add_race(race(0), values_of(race(0)))
    journal.close()


def test_the_path_is_not_lost_by_a_change_of_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    journal = Journal(Path("run/journal.jsonl"))
    journal.start(HEADER, IDENTITY)
    monkeypatch.chdir("/")
    journal.add_race(race(0), values_of(race(0)))
    assert read_journal(tmp_path / "run" / "journal.jsonl").races == [race(0)]


def test_no_journal_is_no_run(tmp_path: Path) -> None:
    assert Journal(tmp_path / "missing" / "journal.jsonl").read() is None
    assert not (tmp_path / "missing").exists()


# --- one at a time ----------------------------------------------------------------------------


def in_a_thread(function: Callable[..., Any]) -> bool:
    caught = []

    def run() -> None:
        try:
            function()
        except RunInUseError as error:
            caught.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return bool(caught)


def refused(function: Callable[..., Any]) -> bool:
    try:
        function()
    except RunInUseError:
        return True
    return False


def test_a_run_is_open_once_in_a_process(path: Path) -> None:
    journal = Journal(path)
    journal.start(HEADER, IDENTITY)
    link = path.parent.with_name("link")
    link.symlink_to(path.parent)
    for other in (path, link / path.name):
        assert refused(lambda other=other: Journal(other).read())
        assert refused(lambda other=other: Journal(other).start(HEADER, {}))
        assert in_a_thread(lambda other=other: Journal(other).start(HEADER, {}))
    journal.add_race(race(0), values_of(race(0)))  # and those refused have broken no lock
    assert refused_elsewhere(path)
    assert read_journal(path).identity == IDENTITY
    journal.close()
    assert [*Journal(path).read().races] == [race(0)]
    assert [*journal.read().races] == [race(0)]


def test_a_journal_that_nobody_has_any_more_is_open_to_others(path: Path) -> None:
    journal = Journal(path)
    journal.start(HEADER, IDENTITY)
    del journal
    assert Journal(path).read() is not None


def refused_elsewhere(path: Path) -> bool:
    code = (
        "import sys; from pathlib import Path\n"
        "from acband_configspace.runlog.journal import Journal\n"
        "from acband_configspace.errors import RunInUseError\n"
        "try: Journal(Path(sys.argv[1])).read()\n"
        "except RunInUseError: sys.exit(7)\n"
    )
    return subprocess.run([sys.executable, "-c", code, str(path)], check=False).returncode == 7


def test_a_forked_child_is_refused_and_breaks_nothing(path: Path) -> None:
    journal = Journal(path)
    journal.start(HEADER, IDENTITY)
    context = multiprocessing.get_context("fork")
    answers = context.Queue()

    def child() -> None:
        answers.put(refused(lambda: journal.add_race(race(0), values_of(race(0)))))
        answers.put(refused(journal.read))
        answers.put(refused(lambda: journal.start(HEADER, {})))
        answers.put(refused(lambda: Journal(path).start(HEADER, {})))
        journal.close()

    process = context.Process(target=child)
    process.start()
    assert [answers.get(timeout=30) for _ in range(4)] == [True] * 4
    process.join()
    assert refused_elsewhere(path)
    journal.add_race(race(0), values_of(race(0)))
    assert read_journal(path).races == [race(0)]


def test_a_child_that_lives_on_does_not_keep_the_run(path: Path) -> None:
    code = (
        "import os, sys, time; from pathlib import Path\n"
        "sys.path.insert(0, sys.argv[2])\n"
        "from test_journal import Journal, HEADER\n"
        "journal = Journal(Path(sys.argv[1])); journal.start(HEADER, {})\n"
        "pid = os.fork()\n"
        "if pid == 0:\n    os.close(1); os.close(2); time.sleep(60)\n"
        "print(pid, flush=True); os._exit(0)\n"
    )
    command = [sys.executable, "-c", code, str(path), os.path.dirname(__file__)]
    child = int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    try:
        assert Journal(path).read() is not None
    finally:
        os.kill(child, 9)


def test_while_paused_others_may_look_but_not_add(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = Journal(path)
    journal.start(HEADER, IDENTITY)
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full_disk(40))
        with pytest.raises(OSError, match="No space"):
            journal.add_race(race(0), values_of(race(0)))
    journal.pause()
    other = Journal(path)
    assert [*other.read().races] == []
    other.pause()
    journal.add_race(race(0), values_of(race(0)))
    journal.pause()
    with pytest.raises(JournalError, match="changed by another process; start the run again"):
        other.add_race(race(1), values_of(race(1)))
    assert read_journal(path).races == [race(0)]


def test_results_told_before_the_first_race_come_back_until_a_new_journal_begins(
    path: Path,
) -> None:
    journal = Journal(path)
    journal.start(HEADER, IDENTITY)
    told = [{"config": {"x": number}, "cost": math.inf} for number in range(3)]
    for trial in told:
        journal.add_told(trial)
    journal.close()
    for recorded in (Journal(path).read(), read_journal(path)):
        assert recorded is not None
        assert recorded.told == told
    journal.start(HEADER, IDENTITY)
    assert read_journal(path).told == []
