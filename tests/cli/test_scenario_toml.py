"""scenario.toml: what it says, and what is wrong with it."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ConfigSpace import Configuration, ConfigurationSpace
from dask.utils import parse_bytes

from acband_configspace.cli.commands import job_memory
from acband_configspace.cli.errors import InputError
from acband_configspace.cli.facade import make_facade, runs_at_a_time
from acband_configspace.cli.main import main
from acband_configspace.cli.results import LastNumber, PatternResult
from acband_configspace.cli.scenario.description import ScenarioFile
from acband_configspace.cli.scenario.reading import read_scenario
from acband_configspace.cli.scenario.toml import TEMPLATE

SMALL = """\
[target]
command = ["solve"]
minimise = "cost"
[space]
x = { range = [0.0, 1.0], default = 0.5 }
[budget]
trials = 100
"""


def read(folder: Path, text: str, **overrides: str) -> ScenarioFile:
    path = folder / "scenario.toml"
    path.write_text(text, encoding="utf-8")
    return read_scenario(path, overrides)


@pytest.mark.parametrize(
    ("options", "expected"),
    [({}, 4), ({"k": "none"}, 4), ({"k": "3"}, 3), ({"preset": "paper"}, 2), ({"alpha": "0.1"}, 2)],
)
def test_a_worker_has_room_for_a_race(
    tmp_path: Path, options: dict[str, str], expected: int
) -> None:
    racing = SMALL.replace('"cost"', '"wall time"\ncutoff = 1')
    assert runs_at_a_time(read(tmp_path, racing, **options)) == expected
    assert runs_at_a_time(read(tmp_path, SMALL, **options)) == 1


def test_a_wrong_k_is_named_before_a_cluster_is_asked_for(tmp_path: Path) -> None:
    racing = SMALL.replace('"cost"', '"wall time"\ncutoff = 1')
    with pytest.raises(InputError, match="command line: k must be"):
        runs_at_a_time(read(tmp_path, racing, k="1"))


def test_the_template_is_a_scenario(tmp_path: Path) -> None:
    (tmp_path / "instances").mkdir()
    for name in ("b c.cnf", "a.cnf"):
        (tmp_path / "instances" / name).touch()
    scenario = read(tmp_path, TEMPLATE.read_text(encoding="utf-8"))
    assert scenario.instances == ("instances/a.cnf", "instances/b c.cnf")
    assert scenario.racing
    assert scenario.clock == "cpu"
    assert scenario.success_codes == (10, 20)
    assert (scenario.cutoff, scenario.walltime_limit, scenario.n_trials) == (5.0, 1800.0, None)
    words = scenario.line.words(
        dict(scenario.space.get_default_configuration()), "instances/a.cnf", 0, 5.0
    )
    assert words[:2] == ["minisat", "-verb=0"]
    assert words[-1] == str(tmp_path / "instances" / "a.cnf")
    assert {"-luby", "-elim", "-rinc=2", "-rfirst=100", "-phase-saving=2", "-grow=0"} < set(words)
    assert "grow" not in dict(next(iter(_with(scenario.space, elim="off"))))


def _with(space: ConfigurationSpace, **values: Any) -> Iterator[Any]:
    space.seed(0)
    for configuration in space.sample_configuration(200):
        if all(configuration[name] == value for name, value in values.items()):
            yield configuration


def test_parameters_are_written_in_the_order_of_their_table(tmp_path: Path) -> None:
    """ConfigSpace has another: those with conditions last, and by name."""
    table = "z = { values = ['a', 'b'] }\ny = { range = [1, 9], when = 'z == \"b\"' }\nx = {"
    scenario = read(tmp_path, SMALL.replace("x = {", table))
    for values, words in (
        ({"x": 0.5, "y": 3, "z": "b"}, ["--z=b", "--y=3", "--x=0.5"]),
        ({"x": 0.5, "z": "a"}, ["--z=a", "--x=0.5"]),
    ):
        configuration = Configuration(scenario.space, values=values)
        assert scenario.line.words(configuration, None, 0, None)[1:] == words


@pytest.mark.parametrize(
    ("name", "described"),
    [
        ("p.pcs", "z {a,b}[a]\ny [1,9][5]i\nx [0,1][0.5]\ny | z in {b}\n"),
        (
            "new.pcs",
            "z categorical {a,b} [a]\ny integer [1,9] [5]\nx real [0,1] [0.5]\ny | z == b\n",
        ),
        ("parameters.txt", 'z "" c (a, b)\ny "" i (1, 9) | z == "b"\nx "" r (0, 1)\n'),
    ],
)
def test_parameters_of_a_file_are_written_in_its_order(
    name: str, described: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_text(described)
    text = SMALL.replace("x = { range = [0.0, 1.0], default = 0.5 }", f'file = "{name}"')
    scenario = read(tmp_path, text.replace("[space]", 'parameter = "{value}"\n[space]'))
    for values, words in (
        ({"x": 0.5, "y": 3, "z": "b"}, ["b", "3", "0.5"]),
        ({"x": 0.5, "z": "a"}, ["a", "0.5"]),
    ):
        configuration = Configuration(scenario.space, values=values)
        assert scenario.line.words(configuration, None, 0, None)[1:] == words


def test_new_writes_it_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "scenario.toml"
    assert main(["new", str(path)]) == 0
    assert path.read_bytes() == TEMPLATE.read_bytes()
    assert main(["new", str(path)]) == 2
    assert "exists already" in capsys.readouterr().err


def test_the_command_line_comes_last(tmp_path: Path) -> None:
    scenario = read(
        tmp_path, SMALL, **{"trials": "7", "target.cutoff": "2 min", "k": "4", "wall-time": "1h"}
    )
    assert (scenario.n_trials, scenario.cutoff, scenario.walltime_limit) == (7, 120.0, 3600.0)
    assert scenario.options == {"k": 4}


def test_trials_are_a_limit_beside_a_time_limit(tmp_path: Path) -> None:
    """A hundred as well, which is SMAC's default and in Python means that no number was given."""
    both = read(tmp_path, SMALL, **{"wall-time": "1h"})
    assert make_facade(both, tmp_path / "both").intensifier.trial_limit == 100
    timed = read(tmp_path, SMALL.replace("trials = 100", 'wall_time = "1h"'))
    assert make_facade(timed, tmp_path / "timed").intensifier.trial_limit == math.inf


@pytest.mark.parametrize(
    ("objective", "clock"), [("cost", "wall"), ("wall time", "wall"), ("cpu time", "cpu")]
)
def test_the_cutoff_is_cpu_time_only_if_that_is_minimised(
    objective: str, clock: str, tmp_path: Path
) -> None:
    assert read(tmp_path, SMALL, minimise=objective, cutoff="5").clock == clock


def test_what_aclibs_wrappers_exit_with_says_nothing(tmp_path: Path) -> None:
    assert read(tmp_path, SMALL).success_codes == (0,)
    assert read(tmp_path, SMALL, result="aclib").success_codes == tuple(range(256))
    assert read(tmp_path, SMALL, result="aclib", success="[0, 10]").success_codes == (0, 10)


@pytest.mark.parametrize(
    ("memory", "configured", "least"),
    [("6000", None, 24e9), ("6000", "9 GB", 24e9), (None, "9 GB", 9e9), (None, None, 8e9)],
)
def test_a_job_has_memory_for_a_run_on_each_core(
    memory: str | None, configured: str | None, least: float, tmp_path: Path
) -> None:
    racing = SMALL.replace('"cost"', '"wall time"\ncutoff = 1')
    scenario = read(tmp_path, racing, k="4", **({"memory": memory} if memory else {}))
    cores = runs_at_a_time(scenario)
    asked = job_memory(cores, limit_mb=scenario.memory_limit, configured=configured)
    assert least <= parse_bytes(asked) < 1.2 * least


def test_how_a_cost_is_read(tmp_path: Path) -> None:
    assert read(tmp_path, SMALL).reader == LastNumber()
    assert read(tmp_path, SMALL, pattern="'c=(.*)'").reader == PatternResult("c=(.*)")


@pytest.mark.parametrize("value", ['"list.txt"', '"*.cnf"', '"."', '["a b.cnf", "c.cnf"]'])
def test_instances_of_all_kinds(value: str, tmp_path: Path) -> None:
    folder = tmp_path / "x"
    (folder / "deeper").mkdir(parents=True)
    for name in ("a b.cnf", "c.cnf", "deeper/d.cnf"):
        (folder / name).touch()
    (folder / "list.txt").write_bytes(b"\xef\xbb\xbf# two\r\na b.cnf\r\n\r\nc.cnf\r\nc.cnf\r\n")
    found = read(folder, SMALL + f"[instances]\ntrain = {value}\n").instances or ()
    wanted = {"a b.cnf", "c.cnf"}
    assert {Path(name).name for name in found} >= wanted
    assert len(found) == (4 if value == '"."' else 2)


def test_a_space_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "p.pcs").write_text("a {x,y}[x]\n")
    text = SMALL.replace("x = { range = [0.0, 1.0], default = 0.5 }", 'file = "p.pcs"')
    assert list(read(tmp_path, text).space) == ["a"]


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("minimise", "minimize", 3, "unknown key 'minimize' in [target]; did you mean 'minimise'?"),
        ("[budget]", "[bugdet]", 6, "unknown table or key 'bugdet'; did you mean 'budget'?"),
        ('"cost"', '"price"', 3, "minimise must be one of cpu time, wall time, cost"),
        ("trials = 100", 'trials = "many"', 7, "trials must be a number but got 'many'"),
        ("trials = 100", "trials = 1", 7, "trials must be at least 2 but got 1"),
        ("trials = 100", "trials = = 1", 7, "is not valid TOML"),
        ('["solve"]', '"solve"', 2, "command must be a list of words"),
        ('["solve"]', '["solve", "{instanec}"]', 2, "did you mean 'instance'?"),
        ("range", "rnage", 5, "x: unknown key 'rnage'; did you mean 'range'?"),
        ("default = 0.5", "default = 5", 5, "default of x must lie in [0, 1] but is 5"),
        ("default = 0.5", "when = 'y == 1'", 5, "'y' is not a parameter of this file"),
        ("default = 0.5", "when = 'FALSE'", 5, "x is never active: leave it out"),
        ("default = 0.5", "when = 'x > 0.5'", 5, "the conditions form a cycle: x → x"),
        ("default = 0.5", 'log = "false"', 5, "x: log must be true or false but got 'false'"),
        ("default = 0.5", "ordered = true", 5, "x: ordered must not be given beside range"),
        ("range = [0.0, 1.0]", "values = [0.5], log = true", 5, "x: log must not be given beside"),
        ("range = [0.0, 1.0]", "values = [0.5], ordered = 1", 5, "true or false but got 1"),
        ('minimise = "cost"', 'minimise = "cost"\npattern = "("', 4, "not a regular expression"),
        ('minimise = "cost"', 'minimise = "cost"\nsuccess = [256]', 4, "exit codes of 0 to 255"),
        ('minimise = "cost"', 'minimise = "cost"\ntrials = 3', 4, "belongs to [budget] trials"),
        (
            '["solve"]',
            "'solve \"{instance}\" | tail -1'\nshell = true",
            2,
            "command must not have {instance} within quotes",
        ),
        (
            'minimise = "cost"',
            'minimise = "cost"\nwritten.xx = "+{value}"',
            4,
            "written: there is no parameter 'xx'; did you mean 'x'?",
        ),
        ("[budget]", "[instances]\ntest = []\n[budget]", 7, "at least one instance but got []"),
    ],
)
def test_errors_name_the_line(old: str, new: str, line: int, message: str, tmp_path: Path) -> None:
    assert old in SMALL
    with pytest.raises(InputError) as caught:
        read(tmp_path, SMALL.replace(old, new, 1))
    assert f"scenario.toml:{line}: " in str(caught.value)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("old", "message"),
    [
        ("trials = 100", "[budget] trials, wall_time or cpu_time must be given"),
        ('minimise = "cost"', "[target] cutoff must be given"),
        ('command = ["solve"]', "[target] must have a command"),
    ],
)
def test_what_is_missing(old: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        read(tmp_path, SMALL.replace(old, ""))
    assert message in str(caught.value)


def test_a_hundred_thousand_instances_take_seconds(tmp_path: Path) -> None:
    names = [f"folder/of/instances/number-{number:06}.cnf" for number in range(100_000)]
    (tmp_path / "list.txt").write_text("\n".join(names))
    start = time.process_time()
    scenario = read(tmp_path, SMALL + '[instances]\ntrain = "list.txt"\n')
    assert time.process_time() - start < 4  # half a second; more on a busy machine
    assert len(scenario.instances or ()) == 100_000
