"""A damaged journal is refused, and mended on request; the run then ends as it would have."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from targets import PAPER, a_scenario, noisy, on_instance, races_of

from acband_configspace import ACBandFacade
from acband_configspace.cli.main import main
from acband_configspace.core.race import RaceId
from acband_configspace.errors import JournalError, RunInUseError
from acband_configspace.runlog.journal import JOURNAL, Journal, read_journal
from acband_configspace.runlog.recovery import recover
from acband_configspace.runlog.replay import Run
from acband_configspace.runlog.report import html_report


def a_facade(directory: Path, **options: Any) -> ACBandFacade:
    return ACBandFacade(a_scenario(directory), noisy, logging_level=False, **options)


def verdicts(facade: ACBandFacade) -> dict[RaceId, tuple[tuple[int, ...], list[float]]]:
    """Return the races without their order and times: those that are run again come later."""
    races = races_of(facade.scenario)
    return {race.id: (race.racers, [trial.cost for trial in race.trials]) for race in races}


@pytest.mark.parametrize("options", [{}, PAPER, {"proposals": "learned"}], ids=str)
@pytest.mark.parametrize("part", [0.02, 0.3, 0.6, 0.9, 1.0])
def test_a_mended_run_ends_as_it_would_have(
    options: dict[str, Any], part: float, tmp_path: Path
) -> None:
    facade = a_facade(tmp_path, **options)
    incumbent, expected = facade.optimize(), verdicts(facade)
    path = facade.scenario.output_directory / JOURNAL
    lines = path.read_bytes().splitlines(keepends=True)
    damaged = max(1, round(part * (len(lines) - 1)))
    lines[damaged] = lines[damaged].replace(b"0", b"1", 1)
    path.write_bytes(b"".join(lines))
    content = path.read_bytes()
    with pytest.raises(JournalError, match=f"line {damaged + 1} of "):
        a_facade(tmp_path, **options)
    assert path.read_bytes() == content
    recovery = recover(path)
    assert recovery.damaged == (damaged + 1,)
    assert recovery.copy is not None
    assert recovery.copy.read_bytes() == content
    assert recovery.n_races == len(read_journal(path).races)
    again = a_facade(tmp_path, **options)
    assert again.optimize() == incumbent
    assert verdicts(again) == expected
    assert recover(path).copy is None  # nothing to mend any more


def test_races_that_do_not_depend_on_the_damage_are_kept(tmp_path: Path) -> None:
    facade = a_facade(tmp_path)
    facade.optimize()
    n_races = len(races_of(facade.scenario))
    path = facade.scenario.output_directory / JOURNAL
    lines = path.read_bytes().splitlines(keepends=True)
    _, second, *_ = (n for n, line in enumerate(lines) if line.startswith(b'{"race"'))
    lines[second] = lines[second][:-20] + b"\n"
    path.write_bytes(b"".join(lines))
    recovery = recover(path)
    assert recovery.n_races > 0  # those of the same round at least
    assert recovery.n_races + recovery.n_dependent == n_races - 1


@pytest.mark.parametrize(
    "content",
    [b"", b'{"used_walltime": 0.0', b"\0" * 40, b"[1, 2]", b'{"used_walltime": null}', b'"x"',
     b'{"used_walltime": "x", "finished": []}', b'{"used_walltime": Infinity}'],
)  # fmt: skip
def test_smacs_files_may_be_torn(content: bytes, tmp_path: Path) -> None:
    """The journal has everything: nothing that lies beside it can stop a run, or its report."""
    facade = a_facade(tmp_path)
    incumbent, expected = facade.optimize(), verdicts(facade)
    directory = facade.scenario.output_directory
    lines = (directory / JOURNAL).read_bytes().splitlines(keepends=True)
    (directory / JOURNAL).write_bytes(b"".join(lines[:12]))
    for name in ("optimization", "runhistory", "intensifier", "scenario", "configspace"):
        (directory / f"{name}.json").write_bytes(content)
    assert main(["report", str(directory)]) == 0
    again = a_facade(tmp_path)
    assert again.optimize() == incumbent
    assert verdicts(again) == expected


def test_a_run_ends_well_where_smacs_files_cannot_be_saved(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A disk may be full for them, which grow with the run, while it has room for a race."""
    facade = a_facade(tmp_path)
    directory = facade.scenario.output_directory
    (directory / "runhistory.json").unlink()
    (directory / "runhistory.json" / "in the way").mkdir(parents=True)
    incumbent = facade.optimize()
    assert incumbent is not None
    assert "SMAC's files could not be saved" in caplog.text
    assert not list(directory.glob(".*.json"))  # half a file would take room, too
    (directory / "runhistory.json" / "in the way").rmdir()
    (directory / "runhistory.json").rmdir()
    again = a_facade(tmp_path)
    assert again.runhistory.finished == facade.runhistory.finished
    assert again.optimize() == incumbent


def test_a_run_that_somebody_else_has_is_refused_before_anything_is_run(tmp_path: Path) -> None:
    """Both facades may be there before either starts."""
    calls = []

    def counted(config: Any, seed: int = 0) -> float:
        calls.append(seed)
        return float(config["x"])

    facade = ACBandFacade(a_scenario(tmp_path), counted, logging_level=False)
    other = Journal(facade.scenario.output_directory / JOURNAL)
    assert other.read() is not None
    with pytest.raises(RunInUseError):
        facade.optimize()
    assert not calls
    other.close()
    assert facade.optimize() is not None
    assert calls


def test_the_command_says_what_was_salvaged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    facade = a_facade(tmp_path)
    facade.optimize()
    directory = facade.scenario.output_directory
    assert main(["recover", str(directory)]) == 0
    assert "No damage found (" in capsys.readouterr().out
    content = bytearray((directory / JOURNAL).read_bytes())
    content[len(content) // 2] ^= 1
    (directory / JOURNAL).write_bytes(content)
    assert main(["report", str(directory)]) == 2
    assert "is damaged" in capsys.readouterr().err
    assert main(["recover", str(directory)]) == 0
    printed = capsys.readouterr().out
    assert "Damaged: line " in printed
    assert f"As it was: {directory / JOURNAL}.damaged-1" in printed
    assert main(["report", str(directory)]) == 0


def test_what_cannot_be_mended_is_left_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    facade = a_facade(tmp_path)
    directory = facade.scenario.output_directory
    path = directory / JOURNAL
    with_lock = Journal(path)
    assert with_lock.read() is not None
    with pytest.raises(RunInUseError):
        recover(path)
    with_lock.close()
    content = b"x" + path.read_bytes()
    path.write_bytes(content)
    assert main(["recover", str(directory)]) == 2
    assert "start anew" in capsys.readouterr().err
    assert path.read_bytes() == content
    assert not list(directory.glob("*.damaged*"))
    assert main(["recover", str(tmp_path / "nowhere")]) == 2


def test_a_verdict_on_races_that_are_gone_is_dropped(tmp_path: Path) -> None:
    scenario = a_scenario(tmp_path, instances=["a", "b"])
    facade = ACBandFacade(scenario, on_instance, test_instances=["c", "d"], logging_level=False)
    facade.optimize()
    assert facade.test_results is not None
    verdict = facade.test_results.verdict.text
    path = facade.scenario.output_directory / JOURNAL
    assert verdict in html_report(Run.load(path.parent))
    lines = path.read_bytes().splitlines(keepends=True)
    damaged = max(n for n, line in enumerate(lines) if line.startswith(b'{"race"'))
    lines[damaged] = lines[damaged][:-20] + b"\n"
    path.write_bytes(b"".join(lines))
    assert recover(path).n_races > 0
    assert verdict not in html_report(Run.load(path.parent))
