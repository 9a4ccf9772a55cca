"""PCS files, old and new: what stands in published spaces, and what is wrong in others."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from ConfigSpace import (
    Categorical,
    Configuration,
    ConfigurationSpace,
    ForbiddenAndConjunction,
    ForbiddenEqualsClause,
    ForbiddenGreaterThanClause,
    ForbiddenGreaterThanEqualsClause,
    ForbiddenLessThanClause,
    ForbiddenLessThanEqualsClause,
    Integer,
)
from ConfigSpace.exceptions import ForbiddenValueError

from acband_configspace.cli.errors import InputError
from acband_configspace.cli.spaces.pcs import is_new_pcs, read_pcs, write_pcs

# Constructs of SparrowToRiss', clasp's, lingeling's and CPLEX's spaces, made up anew.
OLD = """\
# a solver
@1:F:q {yes}[yes]          # a constant
luby{0,1}[0]
restart-first [10,1000][100]il
growth [1000000, 100000000000000] [1e12]l  # like a barrier limit
decay-b {0.75,0.85,0.95} [0.85]
decay-e {0.75, 0.85, 0.95}[0.95]
probe {yes,no}[no]
vivify {yes,no}[yes]
depth [-1,10][3]i

Conditionals:
restart-first | luby in {0}
decay-e | luby in {0,1}
vivify | probe in {yes} # only then
vivify | luby in {1}
depth | decay-b in {0.75, 0.85}

Forbidden:
{decay-b=0.95, decay-e=0.75}   # the start must not exceed the end
{probe=yes,vivify=no}
"""

NEW = """\
algorithm categorical {lrs, otter, z3} [lrs]
"with space" ordinal {low, medium, "very high"} [low]
ratio:log real [-10.0, 3.0] [0.0]
steps integer [1, 100000] [100] log
inner categorical {on,off} [off]
deep integer [0, 10] [0]
either real [0, 1] [0.5]
inner | algorithm == otter
deep | inner == on && steps > 50
either | (algorithm != z3 && steps < 1000) || "with space" > low
{algorithm == z3 && steps > 5000}
{ratio:log < deep}
"""


def test_the_old_format() -> None:
    space: Any = read_pcs(OLD, "old.pcs")
    assert len(space) == 9
    assert space["growth"].log
    assert space["growth"].default_value == pytest.approx(1e12)
    assert space["restart-first"].log
    assert (space["restart-first"].lower, space["restart-first"].upper) == (10, 1000)
    assert space["@1:F:q"].choices == ("yes",)
    assert len(space.forbidden_clauses) == 2
    default = dict(space.get_default_configuration())
    assert default["depth"] == 3
    assert "vivify" not in default  # both of its conditions must hold
    del default["depth"]
    with pytest.raises(ForbiddenValueError):
        Configuration(space, values={**default, "decay-b": "0.95", "decay-e": "0.75"})


def test_the_new_format() -> None:
    space: Any = read_pcs(NEW, "new.pcs")
    assert space["with space"].sequence == ("low", "medium", "very high")
    assert space["steps"].log
    space.seed(1)
    for configuration in space.sample_configuration(300):
        values = dict(configuration)
        inner_wanted = values["algorithm"] == "otter"
        assert ("inner" in values) is inner_wanted
        assert ("deep" in values) is (values.get("inner") == "on" and values["steps"] > 50)
        either = (values["algorithm"] != "z3" and values["steps"] < 1000) or values[
            "with space"
        ] != "low"
        assert ("either" in values) is either
        assert not (values["algorithm"] == "z3" and values["steps"] > 5000)
        assert not ("deep" in values and values["ratio:log"] < values["deep"])


def test_line_ends_byte_order_marks_and_comments_make_no_difference(tmp_path: Path) -> None:
    from acband_configspace.cli.spaces.formats import read_space

    plain, windows = tmp_path / "plain.pcs", tmp_path / "windows.pcs"
    plain.write_text(OLD, encoding="utf-8")
    windows.write_bytes(b"\xef\xbb\xbf" + OLD.replace("\n", "\r\n\r\n# é\r\n").encode())
    assert read_space(plain) == read_space(windows)


def test_a_child_of_a_child_is_active_with_it_only() -> None:
    text = "a {x,y}[y]\nb {1,2}[1]\nc {3,4}[3]\nb | a in {x}\nc | b in {1,2}\n"
    space = read_pcs(text, "f")
    assert "c" not in space.get_default_configuration()


def test_old_and_new_are_told_apart() -> None:
    assert not is_new_pcs(OLD)
    assert is_new_pcs(NEW)


@pytest.mark.parametrize("new", [False, True])
def test_what_is_written_is_read_again(new: bool) -> None:
    space = read_pcs(OLD, "f")
    assert read_pcs(write_pcs(space, new=new).text, "f") == space


def test_the_old_format_names_what_it_cannot_express() -> None:
    with pytest.raises(ValueError, match="cannot be written as old PCS") as caught:
        write_pcs(read_pcs(NEW, "f"), new=False)
    message = str(caught.value)
    assert "the condition of either" in message
    assert "ratio:log < deep" in message


def test_ranges_of_whole_numbers_become_lists_in_the_old_format() -> None:
    space = read_pcs("n integer [1,5] [3]\nm real [0,1] [0]\nm | n > 2\n{n < 2 && m == 1}\n", "f")
    written = write_pcs(space, new=False)
    assert "m | n in {3, 4, 5}" in written.text
    assert "{n=1, m=1}" in written.text


@pytest.mark.parametrize(
    ("clause", "forbidden"),
    [
        (ForbiddenLessThanClause, [1, 2]),
        (ForbiddenLessThanEqualsClause, [1, 2, 3]),
        (ForbiddenGreaterThanClause, [4, 5]),
        (ForbiddenGreaterThanEqualsClause, [3, 4, 5]),
    ],
)
def test_bounds_of_all_kinds_become_lists_in_the_old_format(
    clause: Any, forbidden: list[int]
) -> None:
    n, a = Integer("n", (1, 5), default=3), Categorical("a", ["x", "y"], default="y")
    space = ConfigurationSpace()
    space.add(n, a)
    space.add(ForbiddenAndConjunction(ForbiddenEqualsClause(a, "x"), clause(n, 3)))
    written = write_pcs(space, new=False).text
    listed = [line for line in written.splitlines() if line.startswith("{")]
    assert listed == [f"{{a=x, n={value}}}" for value in forbidden]


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("a {x,y}[x]\n\nb {1,2}[3]", 3, "default of b must be one of 1, 2 but is 3"),
        ("a {x,y}[x]\na {x}[x]", 2, "a is already described in line 1"),
        ("alpha [0,1][0.5]\nb [0,1][1]\nb | alpa in {1}", 3, "did you mean 'alpha'?"),
        ("a {x,y}[x]\nb {x}[x]\nb | a in {z}", 3, "'z' is not a value of a, which has x, y"),
        ("a [0,1][2]", 1, "default of a must lie in [0, 1] but is 2"),
        ("a [2,1][1]", 1, "bounds of a must be in order but are 2 and 1"),
        ("a [0,1][0.5]l", 1, "must be positive on a log scale"),
        ("a [0,1][0.5]x", 1, "unknown flags 'x'"),
        ("a integre [0,1][0]", 1, "unknown type 'integre'; did you mean 'integer'?"),
        ("a {x,x}[x]", 1, "lists the value 'x' twice"),
        ("a [0.5,2][1]i", 1, "must be whole numbers"),
        ("what is this", 1, "cannot be read"),
        ("a {x,y}[x]\n{a=x}", 2, "forbids the default configuration"),
        ("a {x,y}[x]\n{a=x,", 2, "cannot be read"),
        ("a [0,1][0]\nb [0,1][0]\n{a + b > 1}", 3, "arithmetic (+) is not supported"),
        ("a [0,1][0]\nb [0,1][0]\nb | a < ", 3, "expected a parameter or a value"),
        ("a [0,1][0]\nb [0,1][0]\nc [0,1][0]\nc | a < b", 4, "cannot compare two parameters"),
        ("a [0,1][0]\nb [0,1][0]\nb | a < b", 3, "the conditions form a cycle: b → b"),
    ],
)
def test_errors_name_the_line(text: str, line: int, message: str) -> None:
    with pytest.raises(InputError) as caught:
        read_pcs(text, "space.pcs")
    assert str(caught.value).startswith(f"space.pcs:{line}: ")
    assert message in str(caught.value)


def test_a_cycle_of_conditions_is_an_error() -> None:
    with pytest.raises(InputError, match="the conditions form a cycle: . → . → ."):
        read_pcs("a {x,y}[x]\nb {x,y}[x]\na | b in {x}\nb | a in {x}", "f")


def test_parentheses_without_end_are_refused() -> None:
    with pytest.raises(InputError, match="nested more than"):
        read_pcs("a {x,y}[x]\nb {x,y}[x]\nb | " + "(" * 100_000 + "a == x", "f")


def test_a_thousand_parameters_are_read_in_seconds() -> None:
    lines = ["top {on,off}[on]"]
    for number in range(1, 1000):
        lines.append(f"p{number} [1,{number + 10}][{number}]{'il' if number % 2 else ''}")
        if number % 2:
            lines.append(f"p{number} | top in {{on}}")
    start = time.process_time()
    space = read_pcs("\n".join(lines), "f")
    assert len(space) == 1000
    assert time.process_time() - start < 6  # a second; more on a busy machine
