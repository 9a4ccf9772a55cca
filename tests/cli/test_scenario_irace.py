"""irace folders, as they are."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from cli_helpers import write_script
from ConfigSpace import Configuration

from acband_configspace.cli.command_lines import TARGET_CMDLINE, IraceCommand
from acband_configspace.cli.errors import ExitCode, InputError
from acband_configspace.cli.main import main
from acband_configspace.cli.results import IraceResult
from acband_configspace.cli.scenario.description import ScenarioFile
from acband_configspace.cli.scenario.reading import kind_of, read_scenario

SCENARIO = """\
## Scenario setup for irace
parameterFile = "./parameters.txt"
trainInstancesDir = "./Instances"
testInstancesDir = ""
testInstancesFile = 'test.txt'
configurationsFile = "configurations.txt"   # initial ones
forbiddenFile = "forbidden.txt"
targetRunner <- "./target-runner"
maxExperiments = 500
deterministic = 1
digits = 2
seed = 7
parallel = 3
testType = "t-test"
# debugLevel = 0
"""
#: Without configurations, which name the parameters.
PLAIN = """\
trainInstancesDir = ""
trainInstancesFile = "test.txt"
maxExperiments = 500
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "parameters.txt").write_text(
        'a "--a " c (x, y)\nb "--b=" r (0, 1) | a == "x"\nn "" i (1, 9)\n'
    )
    (tmp_path / "configurations.txt").write_text('a b n\n"y" NA 3\nx 0.25 4\n')
    (tmp_path / "forbidden.txt").write_text("# none of these\nn > 8 & b < 0.1\n")
    (tmp_path / "test.txt").write_text("t1 --time 5 # slow\n")
    (tmp_path / "Instances").mkdir()
    for name in ("i2", "i1", ".hidden"):
        (tmp_path / "Instances" / name).touch()
    write_script(tmp_path / "target-runner", "#!/bin/sh\necho 1\n")
    return tmp_path


def read(folder: Path, text: str = SCENARIO, **overrides: str) -> ScenarioFile:
    path = folder / "scenario.txt"
    path.write_text(text, encoding="utf-8")
    assert kind_of(path) == "irace"
    return read_scenario(folder, overrides)


def test_every_key(folder: Path) -> None:
    scenario = read(folder)
    assert scenario.instances == ("./Instances/i1", "./Instances/i2")
    assert scenario.test_instances == ("t1",)
    assert scenario.reader == IraceResult()
    assert not scenario.racing
    assert scenario.n_trials == 500
    assert scenario.deterministic
    assert (scenario.seed, scenario.workers) == (7, 3)
    assert scenario.given == ({"a": "y", "n": 3}, {"a": "x", "b": 0.25, "n": 4})
    assert dict(scenario.space.get_default_configuration()) == {"a": "y", "n": 3}
    assert len(scenario.space.forbidden_clauses) == 1
    assert isinstance(scenario.line, IraceCommand)
    words = scenario.line.words({"a": "x", "b": 0.123, "n": 4}, "t1", 9, None)
    assert words[0] == str(folder / "target-runner")
    assert words[2:] == ["3", "9", "t1", "--time", "5", "--a", "x", "--b=0.12", "4"]
    assert any("testType" in note for note in scenario.notes)


def test_parameters_are_passed_in_the_order_of_the_file(folder: Path) -> None:
    """A target runner may know them by their positions; ConfigSpace's order is another."""
    (folder / "parameters.txt").write_text(
        'onq0 "" c ("--no-q0", "--q0")\nq0 "" r (0, 1) | onq0 == "--q0"\n'
        'zeta "" i (1, 9)\nbeta "--beta " i (1, 9)\n'
    )
    scenario = read(folder, PLAIN)
    for values, words in (
        ({"onq0": "--q0", "q0": 0.5, "zeta": 3, "beta": 2}, ["--q0", "0.5", "3", "--beta", "2"]),
        ({"onq0": "--no-q0", "zeta": 3, "beta": 2}, ["--no-q0", "3", "--beta", "2"]),
    ):
        configuration = Configuration(scenario.space, values=values)
        assert scenario.line.words(configuration, "t1", 0, None)[7:] == words


@pytest.mark.parametrize("line", ['a "--a " c ("don\'t", x)', 'a "--a \'" i (1, 9)'])
def test_a_lone_quote_is_named_with_its_line(
    line: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "parameters.txt").write_text(f'b "-b " i (1, 9)\n{line}\n')
    (folder / "scenario.txt").write_text(PLAIN)
    assert main(["check", str(folder)]) == ExitCode.BAD_INPUT
    (error,) = capsys.readouterr().err.splitlines()
    assert "parameters.txt:2: " in error
    assert "No closing quotation" in error


def test_an_instance_with_two_meanings_is_refused(folder: Path) -> None:
    own = 'trainInstancesDir = ""\ntrainInstancesFile = "train.txt"'
    text = SCENARIO.replace('trainInstancesDir = "./Instances"', own)
    (folder / "train.txt").write_text("t0\nt1 --time 60\n")
    message = "'t1' is listed with '--time 60' for training and with '--time 5' for testing"
    with pytest.raises(InputError, match=f"scenario.txt:6: {message}"):
        read(folder, text)
    (folder / "train.txt").write_text("t0\nt1 --time 5\n")
    assert read(folder, text).line.words({}, "t1", 9, None)[2] == "2"


def test_instances_are_in_folders_of_folders(folder: Path) -> None:
    """irace lists them so; what is hidden, it does not."""
    (folder / "Instances" / "hard" / "very").mkdir(parents=True)
    (folder / "Instances" / ".git").mkdir()
    (folder / "Tests" / "easy").mkdir(parents=True)
    for name in ("hard/very/i0", "hard/i4", "hard/.i5", ".git/HEAD"):
        (folder / "Instances" / name).touch()
    (folder / "Tests" / "easy" / "t2").touch()
    text = SCENARIO.replace('testInstancesDir = ""', 'testInstancesDir = "Tests"')
    scenario = read(folder, text.replace("testInstancesFile = 'test.txt'\n", ""))
    names = ["hard/i4", "hard/very/i0", "i1", "i2"]
    assert scenario.instances == tuple(f"./Instances/{name}" for name in names)
    assert scenario.test_instances == ("Tests/easy/t2",)


def test_links_that_lead_back_add_no_instances(folder: Path) -> None:
    instances = folder / "Instances"
    before = read(folder).instances or ()
    (instances / "one").mkdir()
    (instances / "two").mkdir()
    (instances / "two" / "i9").touch()
    (instances / "one" / "other").symlink_to(instances / "two")
    (instances / "two" / "other").symlink_to(instances / "one")
    (instances / "all").symlink_to(folder)
    (instances / "itself").symlink_to("itself")
    added = ("./Instances/one/other/i9", "./Instances/two/i9")
    assert read(folder).instances == (*before, *added)


def test_a_folder_that_cannot_be_read_is_no_instance(folder: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("the superuser may read everything")
    before = read(folder).instances
    (folder / "Instances" / "lost+found").mkdir(mode=0)
    assert read(folder).instances == before
    (folder / "Instances").chmod(0)
    with pytest.raises(InputError, match="Instances: cannot be read: Permission denied"):
        read(folder)
    (folder / "Instances").chmod(0o700)


def test_capping_means_run_time(folder: Path) -> None:
    text = SCENARIO.replace("maxExperiments = 500", "maxTime = 900\ncapping = 1\nboundMax = 5")
    scenario = read(folder, text)
    assert scenario.racing
    assert (scenario.cutoff, scenario.cputime_limit) == (5.0, 900.0)
    assert scenario.reader == IraceResult(bound=5.0)
    assert scenario.line.words({}, "t1", 9, 5.0)[-1] == "5"


def test_the_command_line_comes_last(folder: Path) -> None:
    scenario = read(folder, **{"max-experiments": "20", "seed": "1", "k": "4"})
    assert (scenario.n_trials, scenario.seed, scenario.options) == (20, 1, {"k": 4})


def test_digits_must_do_for_the_bounds(folder: Path) -> None:
    """Else a learning rate of 0.00001 would be passed as 0."""
    path = folder / "parameters.txt"
    path.write_text(path.read_text().replace("r (0, 1)", "r,log (0.00001, 1)"))
    message = "digits must be at least 5 for the bounds of b but is"
    with pytest.raises(InputError, match=rf"scenario.txt:11: {message} 2"):
        read(folder)
    with pytest.raises(InputError, match=rf"scenario.txt: {message} 4"):
        read(folder, SCENARIO.replace("digits = 2\n", ""))
    words = read(folder, digits="5").line.words({"b": 0.00001}, "t1", 9, None)
    assert words[-1] == "--b=1e-05"
    words = read(folder, SCENARIO + "aclib = 1\n").line.words({"b": 0.00001}, "t1", 9, None)
    assert words[-1] == "1e-05"  # irace has 15 digits then


def test_a_launcher(folder: Path) -> None:
    text = SCENARIO + 'targetRunnerLauncher = "python"\n'
    words = read(folder, text).line.words({}, "t1", 0, None)
    assert words[:2] == ["python", str(folder / "target-runner")]


@pytest.mark.parametrize(
    ("launcher", "cmdline", "limit", "expected"),
    [
        (
            "",
            "-i {instance} -s {seed} --cutoff={bound} {targetRunnerArgs} 'the end'",
            10.5,
            ["RUNNER", "-i", "t1", "--time", "5", "-s", "9", "--cutoff=5", "--n", "4", "the end"],
        ),
        (
            "python",
            "{seed} {instance} {targetRunnerArgs}",
            5.0,  # it is not told the bound, and so has no longer
            ["python", "RUNNER", "9", "t1", "--time", "5", "--n", "4"],
        ),
        (
            "python",
            "-m {targetRunner} {targetRunnerArgs} {bound} -- {seed} {instance}",
            10.5,
            ["python", "-m", "RUNNER", "--n", "4", "5", "--", "9", "t1", "--time", "5"],
        ),
    ],
)
def test_a_command_line_of_irace_4(
    launcher: str, cmdline: str, limit: float, expected: list[str], folder: Path
) -> None:
    (folder / "parameters.txt").write_text('n "--n " i (1, 9)\n')
    own = f'targetRunnerLauncher = "{launcher}"\ntargetCmdline = "{cmdline}"\n'
    scenario = read(folder, f"{PLAIN}boundMax = 5\n{own}")
    assert scenario.limit == limit
    runner = str(folder / "target-runner")
    words = scenario.line.words({"n": 4}, "t1", 9, 5.0)
    assert words == [runner if word == "RUNNER" else word for word in expected]


def test_the_default_command_line_of_irace_4_changes_nothing(folder: Path) -> None:
    own = f'targetCmdline = "{TARGET_CMDLINE}"\n'
    for text in (SCENARIO, SCENARIO + "boundMax = 5\n", SCENARIO + "aclib = 1\n"):
        scenario = read(folder, text + own)
        assert scenario.line == read(folder, text).line
        told = any("targetCmdline has no meaning with aclib" in note for note in scenario.notes)
        assert told is ("aclib" in text)


def test_with_capping_the_command_line_must_tell_the_bound(folder: Path) -> None:
    own = 'targetCmdline = "{seed} {instance} {targetRunnerArgs}"\n'
    with pytest.raises(InputError, match=r"scenario.txt:18: targetCmdline must have {bound}"):
        read(folder, SCENARIO + "capping = 1\nboundMax = 5\n" + own)


def test_a_launcher_and_instances_are_found_from_elsewhere(folder: Path) -> None:
    (folder / "arena").mkdir()
    (folder / "venv" / "bin").mkdir(parents=True)
    python = folder / "venv" / "bin" / "python"
    python.symlink_to(sys.executable)  # outside its environment it would find other packages
    more = 'execDir = "./arena"\ntargetRunnerLauncher = "./venv/bin/python"\naclib = 1\n'
    scenario = read(folder, SCENARIO + more)
    assert scenario.directory == folder / "arena"
    words = scenario.line.words({}, "./Instances/i1", 0, None)
    assert words[:3] == [str(python), str(folder / "target-runner"), "--instance"]
    assert Path(words[3]) == folder / "Instances" / "i1"


def test_instances_of_the_current_folder_keep_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    here = tmp_path_factory.mktemp("here")
    (here / "small").mkdir()
    instance = here / "small" / "s1"
    instance.touch()
    monkeypatch.chdir(here)
    scenario = read(folder, trainInstancesDir="./small")
    assert scenario.instances == (str(instance),)
    assert scenario.line.words({}, str(instance), 0, None)[4] == str(instance)


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("maxExperiments", "maxExperimnts", 9, "did you mean 'maxExperiments'?"),
        ('"./Instances"', '"./Instanzen"', 3, "there is no folder ./Instanzen"),
        ('"./parameters.txt"', 'file.path("a")', 2, "R expressions are not evaluated"),
        ("digits = 2", 'targetEvaluator = "./e"', 11, "targetEvaluator is not supported"),
        ('"./target-runner"', '"./target-runer"', 8, "did you mean 'target-runner'?"),
        ("digits = 2", 'targetRunnerLauncher = "./py"', 11, "Launcher: there is no file ./py"),
        ("digits = 2", 'targetCmdline = "{seed} {targetRunnerArgs}"', 11, "must have {instance}"),
        ("digits = 2", 'targetCmdline = "-a={targetRunnerArgs}"', 11, "an argument of its own"),
        ("digits = 2", 'targetCmdline = "{seed} \'"', 11, "No closing quotation"),
        (
            "digits = 2",
            "targetRunnerLauncher = 'python'\ntargetRunnerLauncherArgs = \"' {targetRunnerArgs}\"",
            12,
            "No closing quotation",
        ),
        (
            "digits = 2",
            'targetRunnerLauncher = "python"\ntargetRunnerLauncherArgs = "{targetRunnerArgs}"\n'
            'targetCmdline = "{seed} {instance} {targetRunnerArgs}"',
            12,
            "targetRunnerLauncherArgs must not be given beside targetCmdline",
        ),
    ],
)
def test_errors_name_the_line(old: str, new: str, line: int, message: str, folder: Path) -> None:
    with pytest.raises(InputError) as caught:
        read(folder, SCENARIO.replace(old, new, 1))
    assert f"scenario.txt:{line}: " in str(caught.value)
    assert message in str(caught.value)


def test_a_configuration_that_is_none_names_its_line(folder: Path) -> None:
    (folder / "configurations.txt").write_text("a b n\ny NA 3\nx 7 4\n")
    with pytest.raises(InputError, match=r"configurations.txt:3: is not a configuration"):
        read(folder)
    (folder / "configurations.txt").write_text("a b n\ny NA\n")
    with pytest.raises(InputError, match=r"configurations.txt:2: must have 3 values but has 2"):
        read(folder)


def test_a_bound_without_capping_is_told_and_not_raced_for(folder: Path) -> None:
    scenario = read(folder, SCENARIO + "boundMax = 5\n")
    assert not scenario.racing
    assert scenario.line.words({}, "t1", 9, 5.0)[-1] == "5"
    assert scenario.limit == 10.5  # it may say what it has found by then


def test_aclib_wrappers_are_called_by_their_switches(folder: Path) -> None:
    scenario = read(folder, SCENARIO + "aclib = 1\n")
    words = scenario.line.words({"a": "x", "b": 0.5}, "t1", 9, None)
    assert words[-5:] == ["--config", "---a", "x", "---b=", "0.5"]


def test_an_explicitly_empty_folder_is_not_the_default_one(folder: Path) -> None:
    """The instances of a list are relative to the folder, if there is one."""
    (folder / "list.txt").write_text("i1\n")
    listed = SCENARIO + 'trainInstancesFile = "list.txt"\n'
    own = 'trainInstancesDir = "./Instances"\n'
    assert own in listed
    for line, instance in (
        ('trainInstancesDir = ""\n', "i1"),
        ("trainInstancesDir = NULL\n", "./Instances/i1"),
        ("", "./Instances/i1"),
    ):
        assert read(folder, listed.replace(own, line)).instances == (instance,)


def test_where_irace_4_would_cap_a_note_says_so(folder: Path) -> None:
    text = SCENARIO.replace("maxExperiments = 500", "maxTime = 900\nboundMax = 5")
    scenario = read(folder, text)
    assert (scenario.racing, scenario.clock) == (False, "wall")
    [note] = [note for note in scenario.notes if "irace 4 caps the runs" in note]
    assert "scenario.txt:10: " in note
    for told in ("capping = 0\n", "capping = 1\n"):
        scenario = read(folder, text + told)
        assert not [note for note in scenario.notes if "irace 4" in note]
    assert (scenario.racing, scenario.clock) == (True, "cpu")
