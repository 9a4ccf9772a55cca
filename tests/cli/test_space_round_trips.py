"""Whatever space there is: written in a format and read again, it allows the same."""

from __future__ import annotations

import itertools
import json
import string
from pathlib import Path

import pytest
from ConfigSpace import Configuration, ConfigurationSpace
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from acband_configspace.cli.errors import COMMAND_LINE
from acband_configspace.cli.main import main
from acband_configspace.cli.spaces.building import Placed, build_space
from acband_configspace.cli.spaces.expressions import And, Comparison, Expression, Not, Or
from acband_configspace.cli.spaces.formats import forbidden_beside, read_space, write_space
from acband_configspace.cli.spaces.parameters import Kind, Parameter

WORDS = st.text(string.ascii_letters + string.digits + "-._@:", min_size=1, max_size=6)
NAMES = WORDS.filter(lambda word: word not in ("in", "c"))
VALUES = st.lists(
    st.one_of(WORDS, st.sampled_from(["very high", "a,b", "1", "0.5", "-1"])),
    min_size=1,
    max_size=4,
    unique_by=lambda text: _number(text) if _number(text) is not None else text,
)


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


@st.composite
def parameters(draw: st.DrawFn, name: str) -> Parameter:
    kinds: list[Kind] = ["categorical", "ordinal", "integer", "real"]
    kind = draw(st.sampled_from(kinds))
    if kind in ("categorical", "ordinal"):
        values = tuple(draw(VALUES))
        return Parameter(name, kind, values=values, default=draw(st.sampled_from(values)))
    log = draw(st.booleans())
    lower = draw(st.integers(1 if log else -50, 50))
    upper = lower + draw(st.integers(1, 100))
    default = draw(st.integers(lower, upper))
    scale = 1.0 if kind == "integer" else 0.125
    bounds = (lower * scale, upper * scale)
    return Parameter(name, kind, bounds=bounds, default=default * scale, log=log)


@st.composite
def expressions(draw: st.DrawFn, known: list[Parameter], depth: int = 2) -> Expression:
    if depth and draw(st.booleans()):
        kind = draw(st.sampled_from([And, Or, Not]))
        if kind is Not:
            return Not(draw(expressions(known, depth - 1)))
        parts = st.lists(expressions(known, depth - 1), min_size=2, max_size=3)
        return kind(tuple(draw(parts)))
    parameter = draw(st.sampled_from(known))
    if parameter.kind in ("categorical", "ordinal"):
        values = draw(st.lists(st.sampled_from(parameter.values), min_size=1, unique=True))
        operators = ["in", "==", "!="] if len(values) == 1 else ["in"]
        return Comparison(parameter.name, draw(st.sampled_from(operators)), tuple(values))
    value = draw(st.integers(-60, 160)) * (1.0 if parameter.kind == "integer" else 0.125)
    operator = draw(st.sampled_from(["==", "!=", "<", "<=", ">", ">=", "in"]))
    return Comparison(parameter.name, operator, (value,))


@st.composite
def spaces(draw: st.DrawFn) -> ConfigurationSpace:
    names = draw(st.lists(NAMES, min_size=2, max_size=6, unique=True))
    known = [draw(parameters(name)) for name in names]
    conditions = [
        Placed(draw(expressions(known[:index])), COMMAND_LINE, child=known[index].name)
        for index in range(1, len(known))
        if draw(st.booleans())
    ]
    by_name = {p.name: p for p in known}
    clauses: list[Placed] = []
    for _ in range(draw(st.integers(0, 2))):
        clause = Placed(draw(expressions(known)), COMMAND_LINE)
        try:
            build_space(by_name, conditions, [*clauses, clause])
        except ValueError:  # it forbids the default: not this one, then
            continue
        clauses.append(clause)
    return build_space(by_name, conditions, clauses)


def allowed(space: ConfigurationSpace, number: int = 30) -> list[dict[str, object]]:
    space.seed(0)
    try:
        drawn = space.sample_configuration(number)
    except Exception:  # so much is forbidden that ConfigSpace gives up
        return [dict(space.get_default_configuration())]
    return [dict(configuration) for configuration in drawn]


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(spaces())
@pytest.mark.parametrize("format_name", ["pcs-new", "json", "yaml"])
def test_formats_with_defaults_and_names(
    format_name: str, tmp_path: Path, space: ConfigurationSpace
) -> None:
    path = tmp_path / f"space.{format_name}"
    path.write_text(write_space(space, path, format_name=format_name).text, encoding="utf-8")
    again = read_space(path, format_name=format_name)
    assert list(again) == list(space)
    assert dict(again.get_default_configuration()) == dict(space.get_default_configuration())
    for here, there in ((space, again), (again, space)):
        for values in allowed(here):
            Configuration(there, values=values)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(spaces())
def test_irace(tmp_path: Path, space: ConfigurationSpace) -> None:
    """Names change and defaults are lost; what is allowed is not."""
    path = tmp_path / "parameters.txt"
    written = write_space(space, path, format_name="irace")
    path.write_text(written.text, encoding="utf-8")
    forbidden_beside(path).write_text(written.forbidden, encoding="utf-8")
    again = read_space(path)
    assert len(again) == len(space)
    # ConfigSpace orders by dependence and name: the order in the file tells who is who.
    order = [line.split()[0] for line in written.text.splitlines()]
    names = dict(zip(space, order, strict=True))
    for values in allowed(space):
        Configuration(again, values={names[name]: value for name, value in values.items()})
    back = {new: old for old, new in names.items()}
    for values in allowed(again):
        Configuration(space, values={back[name]: value for name, value in values.items()})


def test_the_command_converts_through_all_formats(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = tmp_path / "a.pcs"
    first.write_text("a-b {x,y}[y]\nc [1,100][10]il\nc | a-b in {y}\n{a-b=x, c=1}\n")
    chain = ["a.pcs", "b-new.pcs", "c.json", "d.yaml", "e.pcs"]
    for source, target in itertools.pairwise(chain):
        assert main(["convert", str(tmp_path / source), str(tmp_path / target)]) == 0
    assert read_space(tmp_path / "e.pcs") == read_space(first)
    assert "a-b categorical {x, y} [y]" in (tmp_path / "b-new.pcs").read_text()
    assert json.loads((tmp_path / "c.json").read_text())["hyperparameters"]
    assert main(["convert", str(first), str(tmp_path / "what.xyz")]) == 2
    assert "--to" in capsys.readouterr().err


def test_what_cannot_be_written_leaves_no_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, target = tmp_path / "a-new.pcs", tmp_path / "b.pcs"
    source.write_text("x real [0,1] [0]\ny real [0,1] [0]\ny | x > 0.5\n")
    assert main(["convert", str(source), str(target)]) == 2
    assert "the condition of y: x > 0.5" in capsys.readouterr().err
    assert not target.exists()


def test_what_was_forbidden_before_is_not_read_with_a_new_space(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, target = tmp_path / "a.pcs", tmp_path / "parameters.txt"
    for clause, number in (("{a=x, b=x}\n", 1), ("", 0)):
        source.write_text(f"a {{x,y}}[y]\nb {{x,y}}[y]\n{clause}")
        assert main(["convert", str(source), str(target)]) == 0
        assert len(read_space(target).forbidden_clauses) == number
    beside = forbidden_beside(target)
    assert f"{beside}: removed, since nothing is forbidden now" in capsys.readouterr().out
    assert not beside.exists()


def test_a_broken_json_names_the_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.json"
    path.write_text('{\n "hyperparameters": [,]\n}')
    assert main(["convert", str(path), str(tmp_path / "b.pcs")]) == 2
    assert "a.json:2: " in capsys.readouterr().err
