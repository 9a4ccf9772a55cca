"""Journals that are whole, with checksums that agree, but hold something that makes no sense."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from run_helpers import make_run

from acband_configspace.cli.main import main
from acband_configspace.errors import JournalError, RunDiffersError
from acband_configspace.runlog.journal import JOURNAL, _encoded, decoded
from acband_configspace.runlog.replay import NoRunError, Run
from acband_configspace.runlog.report import html_report
from acband_configspace.runlog.verdict import Verdict

Line = dict[str, Any]
Place = tuple[Any, ...]

#: Stands for nothing at all.
GONE: Any = object()
WRONG = [GONE, None, "x", -1, 1.5, True, [], {}, math.inf, math.nan, 10**400]
OPTIONS: dict[str, dict[str, Any]] = {"default": {}, "paper": {"early_stopping": None}}


@pytest.fixture(scope="module", params=OPTIONS)
def journal(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, dict[str, Any], list[Line]]:
    """Make a run; return where it is, its options, and its lines, with notes of every kind."""
    folder, options = tmp_path_factory.mktemp("run"), OPTIONS[request.param]
    facade = make_run(folder, n_trials=40, **options)
    path = facade.scenario.output_directory / JOURNAL
    lines = [decoded(raw) for raw in path.read_bytes().splitlines(keepends=True)]
    lines.append({"note": "verdict", "values": asdict(Verdict.of([1.0, 2.0], [2.0, 3.0]))})
    lines.append({"note": "limits", "values": {"n_trials": 40}})
    return path, options, lines


def places(value: Any, *above: Any) -> Iterator[Place]:
    """Yield the place of each value within a value; of lists, the first two."""
    if isinstance(value, dict):
        for name in value:
            if (*above, name)[:2] != ("identity", "configspace"):  # it is compared as a whole
                yield (*above, name)
                yield from places(value[name], *above, name)
    elif isinstance(value, list):
        for number in range(min(2, len(value))):
            yield (*above, number)
            yield from places(value[number], *above, number)


def changed(line: Line, place: Place, value: Any) -> Line:
    line = copy.deepcopy(line)
    holder: Any = line
    for name in place[:-1]:
        holder = holder[name]
    if value is GONE:
        del holder[place[-1]]
    else:
        holder[place[-1]] = value
    return line


def wrong_journals(lines: list[Line]) -> Iterator[tuple[int, str, bytes]]:
    """Yield journals with one wrong value, in a line of each kind in turn: where, what, content."""
    kinds: dict[str, int] = {}
    for number, line in enumerate(lines):
        kinds.setdefault(str(line.get("note", next(iter(line)))), number)
    assert len(kinds) >= 5
    for number in kinds.values():
        for place in places(lines[number]):
            for value in WRONG:
                line = changed(lines[number], place, value)
                content = [*lines[:number], line, *lines[number + 1 :]]
                yield number + 1, f"{place}: {value!r:.20}", b"".join(map(_encoded, content))


def test_reports_read_them_or_say_what_is_wrong(
    journal: tuple[Path, dict[str, Any], list[Line]], tmp_path: Path
) -> None:
    n_read = n_refused = 0
    for number, what, content in [*wrong_journals(journal[2])][::3]:
        (tmp_path / JOURNAL).write_bytes(content)
        refused = ""
        try:
            html_report(Run.load(tmp_path))
            n_read += 1
        except NoRunError as error:
            refused = str(error)
            n_refused += 1
        except Exception as error:
            pytest.fail(f"line {number}, {what}: {error!r}")
        assert not refused or f"line {number} of " in refused, what
    assert n_read > 50
    assert n_refused > 150


def test_commands_read_them_or_exit_with_2(
    journal: tuple[Path, dict[str, Any], list[Line]],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for _, what, content in [*wrong_journals(journal[2])][::31]:
        (tmp_path / JOURNAL).write_bytes(content)
        for command in (["report"], ["report", "--csv", str(tmp_path / "t.csv")], ["show"]):
            code = main([*command, str(tmp_path)])
            assert code in (0, 2), what
            assert (code == 2) == capsys.readouterr().err.startswith("error: "), what


def test_a_run_goes_on_or_is_refused_and_the_file_left_alone(
    journal: tuple[Path, dict[str, Any], list[Line]],
) -> None:
    path, options, lines = journal
    n_refused = 0
    for number, what, content in [*wrong_journals(lines)][::4]:
        path.write_bytes(content)
        try:
            make_run(path.parents[2], n_trials=40, **options)
        except (JournalError, RunDiffersError):
            n_refused += 1
            assert path.read_bytes() == content, what
        except Exception as error:
            pytest.fail(f"line {number}, {what}: {error!r}")
    assert n_refused > 100
