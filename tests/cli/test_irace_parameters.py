"""irace's parameter files."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
from cli_helpers import IRACE, needs_irace, write_script
from ConfigSpace import (
    AndConjunction,
    ConfigurationSpace,
    EqualsCondition,
    ForbiddenAndConjunction,
    ForbiddenEqualsClause,
    ForbiddenLessThanClause,
    ForbiddenLessThanRelation,
    GreaterThanCondition,
    LessThanCondition,
    OrConjunction,
    OrdinalHyperparameter,
    UniformIntegerHyperparameter,
)

from acband_configspace.cli.errors import InputError
from acband_configspace.cli.main import main
from acband_configspace.cli.scenario.toml import TEMPLATE
from acband_configspace.cli.spaces.irace import (
    digits_of,
    looks_like_irace,
    parameters_of,
    read_irace,
    write_irace,
)
from acband_configspace.cli.spaces.pcs import read_pcs

PARAMETERS = """\
# name       switch           type values               [conditions (using R syntax)]
algorithm    "--"             c    (as,mmas,"eas",ras,acs)
localsearch  "--localsearch " c    (0, 1, 2, 3)          # a comment
alpha        "--alpha "       r    (0.00, 5.00)
ants         "--ants "        i,log (5, 100)
speed        ""               o    ("none", "very low", "high")
q0           "--q0 "          r    (0.0, 1.0)   | algorithm == "acs"
rank         "--rank "        i    (1, 100)     | algorithm %in% c("ras", "eas") && alpha > 2.5
nnls         "--nnls "        i    (5, 50)      | localsearch %in% c(1,2,3)
odd          "--odd "         i    (1, 9)       | !(alpha <= 1 | speed == "none") & ants >= 10

[forbidden]
(alpha == 0) & (algorithm == "as")
nnls > 40 & ants < 8
[global]
digits = 5
"""


def test_it_is_read_as_irace_means_it() -> None:
    space: Any = read_irace(PARAMETERS, "parameters.txt")
    assert looks_like_irace(PARAMETERS)
    assert digits_of(PARAMETERS, "parameters.txt") == 5
    assert len(space) == 9
    assert space["ants"].log
    assert space["speed"].sequence == ("none", "very low", "high")
    assert space["localsearch"].meta == {"switch": "--localsearch "}
    space.seed(2)
    for configuration in space.sample_configuration(500):
        v = dict(configuration)
        assert ("q0" in v) is (v["algorithm"] == "acs")
        assert ("rank" in v) is (v["algorithm"] in ("ras", "eas") and v["alpha"] > 2.5)
        assert ("nnls" in v) is (v["localsearch"] != "0")
        odd = not (v["alpha"] <= 1 or v["speed"] == "none") and v["ants"] >= 10
        assert ("odd" in v) is odd
        assert not (v.get("nnls", 0) > 40 and v["ants"] < 8)


def test_parameters_have_the_order_of_the_file() -> None:
    names = [parameter.name for parameter in parameters_of(PARAMETERS, "parameters.txt")]
    assert names[:3] == ["algorithm", "localsearch", "alpha"]
    assert names[3:] == ["ants", "speed", "q0", "rank", "nnls", "odd"]


def test_defaults_come_from_elsewhere_and_are_moved_out_of_what_is_forbidden() -> None:
    text = 'a "" i (1, 3)\nb "" c (x, y)\n[forbidden]\na == 2 & b == "x"\n'
    default = dict(read_irace(text, "f").get_default_configuration())
    assert default != {"a": 2, "b": "x"}
    given = dict(read_irace(text, "f", defaults={"a": "3", "b": "y"}).get_default_configuration())
    assert given == {"a": 3, "b": "y"}


@pytest.mark.parametrize("condition", ["p == TRUE", "T == p", 'p == "TRUE"', "p %in% c(T)"])
def test_truths_are_compared_as_text(condition: str) -> None:
    space = read_irace(f'p "" c (TRUE, FALSE)\nq "" i (1, 3) | {condition}\n', "f")
    space.seed(1)
    for configuration in space.sample_configuration(20):
        assert ("q" in configuration) is (configuration["p"] == "TRUE")


def test_names_with_signs_are_in_backticks() -> None:
    space = read_irace('`a-b` "" i (1, 3)\nq "" i (1, 3) | `a-b` == 2\n', "f")
    space.seed(1)
    for configuration in space.sample_configuration(20):
        assert ("q" in configuration) is (configuration["a-b"] == 2)


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ("b + 1 > 2", "arithmetic (+) is not supported"),
        ("a-b == 2", "a name with such a sign is written in backticks: `a-name`"),
        ("system('rm x') == 1", "the function 'system' is not supported"),
        ("b >", "expected a parameter or a value"),
        ("c == 1", "'c' is not a parameter"),
        ("(b == 1", "expected ')'"),
        ("b", "expected a comparison after 'b'"),
        ("b %in% 1:3", "unexpected ':'"),
        ("b == 1; quit()", "unexpected ';'"),
        ("is.na(b)", "the function 'is.na' is not supported"),
    ],
)
def test_other_r_is_refused_by_name(condition: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        read_irace(f'b "" i (1, 3)\na "" i (1, 3) | {condition}', "parameters.txt")
    assert str(caught.value).startswith("parameters.txt:2: ")
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('a "" i (1, "b*2")', "bounds that depend on other parameters are not supported"),
        ('a "" i (1, 2, 3)', "must have two bounds but has 3"),
        ('a "" z (1, 2)', "must be c, o, i or r but is 'z'"),
        ("a i (1, 2)", "cannot be read"),
        ('a "" c,log (1, 2)', "the type 'c,log' is not known"),
        ("[forbiden]", "unknown section [forbiden]; did you mean 'forbidden'?"),
        ('a "" r,log (0, 1)', "must be positive on a log scale"),
    ],
)
def test_errors_name_the_line(line: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        read_irace(f"# first\n{line}", "parameters.txt")
    assert str(caught.value).startswith("parameters.txt:2: ")
    assert message in str(caught.value)


def test_round_trip() -> None:
    space = read_irace(PARAMETERS, "f")
    written = write_irace(space)
    again = read_irace(written.text + "[forbidden]\n" + written.forbidden, "g")
    assert write_irace(again) == written
    assert again == space


def test_true_and_false_are_conditions() -> None:
    text = 'a "" i (1, 3) | TRUE\nb "" i (1, 3) | (a > 1) & TRUE\n'
    space = read_irace(text, "f")
    assert [c.child.name for c in space.conditions] == ["b"]


@pytest.mark.parametrize("condition", ["FALSE", "a == 1 & FALSE", "!TRUE", "F"])
def test_a_parameter_that_is_never_active_is_refused(condition: str) -> None:
    with pytest.raises(InputError) as caught:
        read_irace(f'a "" i (1, 3)\nq "--q " i (1, 3) | {condition}\n', "parameters.txt")
    assert str(caught.value) == "parameters.txt:2: q is never active: leave it out"


@pytest.mark.parametrize("condition", ["b == 1", "!(b %in% c(1))", "a == 1 | b > 2"])
def test_a_condition_on_itself_is_refused(condition: str) -> None:
    with pytest.raises(InputError) as caught:
        read_irace(f'a "" i (1, 3)\nb "" i (1, 3) | {condition}\n', "parameters.txt")
    assert str(caught.value) == "parameters.txt:2: the conditions form a cycle: b → b"


@pytest.mark.parametrize("sign", ["==", "%in%"])
def test_a_cycle_of_negations_is_refused(sign: str) -> None:
    text = f'a "" i (1, 3) | !(b {sign} 1)\nb "" i (1, 3) | !(a {sign} 1)\n'
    with pytest.raises(InputError, match="f:1: the conditions form a cycle: . → . → ."):
        read_irace(text, "f")


@pytest.mark.parametrize(
    ("condition", "values"),
    [
        ("as.numeric(tol) < 0.01", {"0.001"}),
        ("0.01 <= as.numeric(tol)", {"0.1", "0.01"}),
        ("as.numeric(tol) > 0.05", {"0.1"}),
        ("!(as.numeric(tol) > 0.05)", {"0.01", "0.001"}),
    ],
)
def test_ordinals_are_compared_by_their_numbers(condition: str, values: set[str]) -> None:
    """R knows nothing of their positions."""
    space = read_irace(f'tol "" o (0.1, 0.01, 0.001)\nq "" i (1, 3) | {condition}\n', "f")
    space.seed(1)
    for configuration in space.sample_configuration(50):
        assert ("q" in configuration) is (configuration["tol"] in values)


@pytest.mark.parametrize("kind", ["c", "o"])
@pytest.mark.parametrize("condition", ["size < 10", "10 > size", "as.character(size) < 10"])
def test_numbers_that_are_text_are_not_compared_by_the_alphabet(kind: str, condition: str) -> None:
    """In R, "2" is not less than 10."""
    with pytest.raises(InputError, match=r"f:2: size < 10: .* write as\.numeric\(size\)"):
        read_irace(f'size "" {kind} (2, 10)\nq "" i (1, 3) | {condition}\n', "f")


def test_ordinals_that_are_no_numbers_have_no_order() -> None:
    with pytest.raises(InputError, match="f:2: o < high: the values of o have no order"):
        read_irace('o "" o (low, high)\nq "" i (1, 3) | o < "high"\n', "f")


def ordered_space() -> ConfigurationSpace:
    space = ConfigurationSpace()
    speed = OrdinalHyperparameter("speed", ["slow", "medium", "fast"])
    size = OrdinalHyperparameter("size", [1, 2, 10])
    space.add(speed, size, UniformIntegerHyperparameter("child", 1, 3))
    return space


def test_the_order_of_ordinals_is_written_as_their_values() -> None:
    """R would compare them by the alphabet."""
    space = ordered_space()
    speed, size, child = space["speed"], space["size"], space["child"]
    above, below = GreaterThanCondition(child, speed, "slow"), LessThanCondition(child, size, 10)
    space.add(AndConjunction(above, below))
    slower, large = ForbiddenLessThanClause(speed, "fast"), ForbiddenEqualsClause(size, 10)
    space.add(ForbiddenAndConjunction(slower, large))
    written = write_irace(space)
    condition = 'speed %in% c("medium", "fast") & size %in% c("1", "2")'
    assert f'child "--child=" i (1, 3) | {condition}\n' in written.text
    assert written.forbidden == 'speed %in% c("slow", "medium") & size == "10"\n'
    again = read_irace(f"{written.text}[forbidden]\n{written.forbidden}", "f")
    again.seed(1)
    for configuration in again.sample_configuration(100):
        v = dict(configuration)
        assert ("child" in v) is (v["speed"] != "slow" and v["size"] != "10")
        assert v["size"] != "10" or v["speed"] == "fast"


def test_an_order_of_two_texts_is_named() -> None:
    """R would compare them by the alphabet, too."""
    space = ordered_space()
    space.add(OrdinalHyperparameter("least", [1, 2, 10]))
    space.add(ForbiddenLessThanRelation(space["size"], space["least"]))
    with pytest.raises(ValueError, match="\n  size < least: R compares text by the alphabet$"):
        write_irace(space)


def test_a_condition_that_no_values_fulfil_is_named() -> None:
    space = ordered_space()
    space.add(LessThanCondition(space["child"], space["speed"], "slow"))
    with pytest.raises(ValueError, match="\n  child: no values fulfil its condition$"):
        write_irace(space)


def test_what_never_holds_beside_other_things_is_left_out() -> None:
    space = ordered_space()
    speed, size, child = space["speed"], space["size"], space["child"]
    never, ever = LessThanCondition(child, speed, "slow"), EqualsCondition(child, size, 2)
    space.add(OrConjunction(never, ever))
    slower, large = ForbiddenLessThanClause(speed, "slow"), ForbiddenEqualsClause(size, 10)
    space.add(slower, ForbiddenAndConjunction(slower, large), large)
    written = write_irace(space)
    assert 'child "--child=" i (1, 3) | size == "2"\n' in written.text
    assert written.forbidden == 'size == "10"\n'


def test_names_that_r_cannot_have_are_changed() -> None:
    space = read_pcs("my-name {a,b}[a]\nmy.name {a,b}[a]\n2nd [0,1][0]\n2nd | my-name in {b}", "f")
    written = write_irace(space)
    assert 'my.name.2 "--my.name=" c' in written.text
    assert 'p.2nd "--2nd=" r (0, 1) | my.name == "b"' in written.text
    assert "'my-name' is called 'my.name' in the file" in written.notes


def test_what_irace_cannot_write_is_named() -> None:
    space = read_pcs('a {"x|y", b}[b]', "f")
    with pytest.raises(ValueError, match="'x|y' contains"):
        write_irace(space)


@needs_irace
@pytest.mark.parametrize("source", ["toml-like", "pcs", "irace"])
def test_irace_itself_accepts_what_is_written(source: str, tmp_path: Path) -> None:
    """``irace --check`` runs the target runner on what it has read."""
    if source == "irace":
        (tmp_path / "in.txt").write_text(PARAMETERS)
    elif source == "pcs":
        (tmp_path / "in.txt").write_text(
            "restart-first [10,1000][100]il\n@1:luby {yes,no}[yes]\ndecay [0.001,0.999][0.95]\n"
            "grow [-10,30][0]i\ngrow | @1:luby in {yes}\nrestart-first | grow in {1,2,3}\n"
            "{@1:luby=yes, decay=0.5}\n"
        )
    else:
        assert "rinc" in TEMPLATE.read_text(encoding="utf-8")
        (tmp_path / "in.txt").write_text("rinc real [1.1, 4.0] [2]\nluby categorical {a b, c} [c]")
    assert main(["convert", str(tmp_path / "in.txt"), str(tmp_path / "parameters.txt")]) == 0
    write_script(tmp_path / "target-runner", "#!/bin/sh\necho 1\n")
    (tmp_path / "instances.txt").write_text("i1\ni2\n")
    forbidden = tmp_path / "parameters.forbidden.txt"
    assert forbidden.exists() is (source != "toml-like")
    (tmp_path / "scenario.txt").write_text(
        'trainInstancesDir = ""\ntrainInstancesFile = "instances.txt"\nmaxExperiments = 300\n'
        + (f'forbiddenFile = "{forbidden}"\n' if forbidden.exists() else "")
    )
    done = subprocess.run(
        [str(IRACE), "--check"], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr
    assert "Check successful" in done.stdout


@pytest.mark.parametrize("name", ['say "hi"', "a#b", "a|b"])
def test_a_name_that_irace_cannot_read_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="contains a quote, '#', '|' or a line end"):
        write_irace(ConfigurationSpace({name: (0.0, 1.0)}))
