"""Scenario files of AClib, SMAC and ParamILS, as they are."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from acband_configspace.cli.command_lines import Aclib2Command, OldAclibCommand
from acband_configspace.cli.errors import InputError
from acband_configspace.cli.results import AclibResult
from acband_configspace.cli.scenario.description import ScenarioFile
from acband_configspace.cli.scenario.reading import kind_of, read_scenario

SCENARIO = """\
# ParamILS and SMAC would read this
algo = python "my wrapper.py" --mem-limit 1024
execdir = .
deterministic = 0
run_obj = runtime
overall_obj = PAR10
cutoff_time = 5.5        # seconds
cutoff_length = max
memory_limit = 500
tunerTimeout = 3600
wallclock-limit = 7200
runcount_limit = 300
paramfile = params.pcs
instance_file = train.txt
test_instance_file = test.txt
feature_file = features.csv
cost_for_crash = 100
always_race_default = True
validation = false
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "params.pcs").write_text("a {x,y}[x]\nb [1,9][3]i\n")
    (tmp_path / "train.txt").write_text('i1.cnf specific part\n"with space.cnf" 7\n\ni2.cnf\r\n')
    (tmp_path / "test.txt").write_text("i3.cnf\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def read(folder: Path, text: str = SCENARIO, **overrides: str) -> ScenarioFile:
    path = folder / "scenario.txt"
    path.write_text(text, encoding="utf-8")
    assert kind_of(path) == "aclib"
    return read_scenario(path, overrides)


def test_every_key(folder: Path) -> None:
    scenario = read(folder)
    assert scenario.instances == ("i1.cnf", "with space.cnf", "i2.cnf")
    assert scenario.test_instances == ("i3.cnf",)
    assert scenario.line == OldAclibCommand(
        ("python", "my wrapper.py", "--mem-limit", "1024"),
        specifics={"i1.cnf": "specific part", "with space.cnf": "7"},
        cutoff_length="2147483647",
    )
    assert scenario.reader == AclibResult(quality=False)
    assert (scenario.racing, scenario.par, scenario.cutoff) == (True, 10.0, 5.5)
    assert (scenario.memory_limit, scenario.crash_cost) == (500, 100.0)
    limits = (scenario.cputime_limit, scenario.walltime_limit, scenario.n_trials)
    assert limits == (3600.0, 7200.0, 300)
    assert not scenario.deterministic
    assert scenario.directory == folder
    notes = " ".join(scenario.notes)
    assert all(word in notes for word in ("feature_file", "always_race_default", "validation"))


@pytest.mark.parametrize(
    "text",
    [
        SCENARIO.replace("algo =", "ta="),
        SCENARIO.replace("algo =", "algo-exec ="),
        SCENARIO.replace("algo =", "algoExec =").replace("run_obj", "runObj"),
        SCENARIO.replace("paramfile", "pcs_fn").replace("cutoff_time", "cutoff"),
        SCENARIO.replace("tunerTimeout", "algo_runs_timelimit"),
        SCENARIO.replace("\n", "\r\n\r\n"),
        "\ufeff" + SCENARIO,
    ],
)
def test_other_spellings_mean_the_same(text: str, folder: Path) -> None:
    scenario, usual = read(folder, text), read(folder)
    assert scenario.line == usual.line
    assert (scenario.n_trials, scenario.cutoff) == (usual.n_trials, usual.cutoff)
    assert (scenario.racing, scenario.cputime_limit) == (usual.racing, usual.cputime_limit)


def test_deterministic_is_the_default_there(folder: Path) -> None:
    assert read(folder, SCENARIO.replace("deterministic = 0\n", "")).deterministic


def test_every_word_of_the_command_may_be_in_quotes(folder: Path) -> None:
    algo = 'algo = "python" "my wrapper.py"'
    scenario = read(folder, SCENARIO.replace('algo = python "my wrapper.py"', algo))
    assert isinstance(scenario.line, OldAclibCommand)
    assert scenario.line.command == ("python", "my wrapper.py", "--mem-limit", "1024")
    scenario = read(folder, SCENARIO.replace('python "my wrapper.py" --mem-limit 1024', '"./a b"'))
    assert isinstance(scenario.line, OldAclibCommand)
    assert scenario.line.command == ("./a", "b")
    for words in (("python", "my wrapper.py"), ("python", "-u", "my wrapper.py")):
        algo = f'"python" {" ".join(words[1:-1])} "my wrapper.py"'
        line = read(folder, SCENARIO.replace('python "my wrapper.py" --mem-limit 1024', algo)).line
        assert isinstance(line, OldAclibCommand)
        assert line.command == words


def test_what_follows_an_instance_may_come_after_a_tab(folder: Path) -> None:
    (folder / "train.txt").write_text("i1.cnf\tSAT 12\ni2.cnf \t UNSAT\ni3.cnf\n")
    scenario = read(folder)
    assert scenario.instances == ("i1.cnf", "i2.cnf", "i3.cnf")
    assert isinstance(scenario.line, OldAclibCommand)
    assert scenario.line.specifics == {"i1.cnf": "SAT 12", "i2.cnf": "UNSAT"}


def test_an_instance_with_two_meanings_is_refused(folder: Path) -> None:
    (folder / "train.txt").write_text("i1.cnf 5\ni2.cnf\ni1.cnf 5\ni1.cnf 7\n")
    with pytest.raises(InputError, match=r"train.txt:4: 'i1.cnf' is listed with '5' and with '7'"):
        read(folder)
    (folder / "train.txt").write_text("i1.cnf 5\n")
    (folder / "test.txt").write_text("i1.cnf 7\n")
    with pytest.raises(InputError, match="'i1.cnf' is listed with '5' for training and with '7'"):
        read(folder)


def test_quality(folder: Path) -> None:
    scenario = read(folder, SCENARIO.replace("runtime", "quality").replace("PAR10", "mean"))
    assert not scenario.racing
    assert scenario.reader == AclibResult(quality=True)
    assert scenario.par == 1.0


def test_paramils_has_words_of_its_own(folder: Path) -> None:
    text = SCENARIO.replace("5.5", "max")
    scenario = read(folder, text.replace("runtime", "qual"))
    assert not scenario.racing
    assert scenario.reader == AclibResult(quality=True)
    assert scenario.cutoff is None
    with pytest.raises(InputError, match="cutoff_time must be given to minimise the run time"):
        read(folder, text)


@pytest.mark.parametrize("objective", ["runtime", "quality"])
def test_the_cutoff_is_cpu_time_there(objective: str, folder: Path) -> None:
    assert read(folder, SCENARIO.replace("runtime", objective)).clock == "cpu"


def test_seeds_beside_instances_are_not_used(folder: Path) -> None:
    scenario = read(folder, SCENARIO + "instance_seed_file = seeds.txt\n")
    assert len(scenario.instances or ()) == 3
    note = "scenario.txt:20: instance_seed_file is ignored: seeds are chosen here"
    assert any(told.endswith(note) for told in scenario.notes)


def test_overrides_and_the_call_format_of_aclib2(folder: Path) -> None:
    scenario = read(folder, **{"cutoff-time": "2", "call_format": "aclib2", "k": "3"})
    assert scenario.cutoff == 2.0
    assert isinstance(scenario.line, Aclib2Command)
    assert scenario.options == {"k": 3}


@pytest.mark.parametrize("text", ["-a y -b 5", "a='y', b=5", "a=y,b=5"])
def test_an_initial_incumbent_is_given(text: str, folder: Path) -> None:
    scenario = read(folder, SCENARIO + f"initial_incumbent = {text}\n")
    assert scenario.given == ({"a": "y", "b": 5},)


@pytest.mark.parametrize("text", ["7", "7.0"])
def test_an_initial_incumbent_names_what_cannot_change(text: str, folder: Path) -> None:
    (folder / "params.pcs").write_text("a {x,y}[x]\nb [1,9][3]i\nc [7,7][7]i\n")
    scenario = read(folder, SCENARIO + f"initial_incumbent = -a y -b 5 -c {text}\n")
    assert scenario.given == ({"a": "y", "b": 5, "c": 7},)


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("cutoff_time", "cutof_time", 7, "unknown key 'cutof_time'; did you mean 'cutoff_time'?"),
        ("= runtime", "= speed", 5, "run_obj must be one of runtime, quality but got 'speed'"),
        ("= runtime", "= runlength", 5, "run_obj = runlength is not supported"),
        ("= PAR10", "= median", 6, "overall_obj must be mean or PAR10"),
        ("5.5", "soon", 7, "cutoff_time must be a number but got 'soon'"),
        ("params.pcs", "parms.pcs", 13, "paramfile: there is no file parms.pcs"),
        ("execdir = .", "execdir = nowhere", 3, "execdir: there is no folder"),
        ('"my wrapper.py"', '"my wrapper.py', 2, "algo cannot be read: No closing quotation"),
        ("execdir = .", "execdir", 3, "must be 'key = value'"),
        ("instance_file", "instance_seed_file", 14, "instance_seed_file is not supported"),
    ],
)
def test_errors_name_the_line(old: str, new: str, line: int, message: str, folder: Path) -> None:
    with pytest.raises(InputError) as caught:
        read(folder, SCENARIO.replace(old, new, 1))
    assert f"scenario.txt:{line}: " in str(caught.value)
    assert message in str(caught.value)


def test_paths_may_be_relative_to_the_scenario(
    folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = folder / "scenario.txt"
    path.write_text(SCENARIO)
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    assert len(read_scenario(path).space) == 2


def test_a_hundred_thousand_instances_take_seconds(folder: Path) -> None:
    (folder / "train.txt").write_text("\n".join(f"dir/i{n}.cnf {n}" for n in range(100_000)))
    start = time.process_time()
    scenario = read(folder)
    assert time.process_time() - start < 6  # a second; more on a busy machine
    assert len(scenario.instances or ()) == 100_000
