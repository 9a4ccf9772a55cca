"""What a run's directory says: which scenario it was started from, and who leads."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from acband_configspace.cli.errors import InputError, Place
from acband_configspace.cli.scenario.description import ScenarioFile
from acband_configspace.cli.scenario.reading import kind_of, read_scenario

#: The file beside the journal that says what ``acband run`` was told.
RECORD = "acband.json"


@dataclass(frozen=True)
class Origin:
    """What a run was started from."""

    scenario: Path
    overrides: Mapping[str, str]
    folder: Path
    """Where ``acband`` was called."""
    target: tuple[str, ...]
    """What is run and how its results are read."""


def target_of(scenario_file: ScenarioFile) -> tuple[str, ...]:
    """Return what is run, with words in place of the values, and how its results are read."""
    values = dict.fromkeys(scenario_file.space, "VALUE")
    instance = None if scenario_file.instances is None else "INSTANCE"
    words = scenario_file.line.words(values, instance, 0, scenario_file.cutoff)
    codes = scenario_file.success_codes
    success = f"exits with {' or '.join(map(str, codes))}" if len(codes) < 256 else "exits"
    reader = scenario_file.reader
    return (shlex.join(words), success if reader is None else f"{success}, then {reader}")


def refuse_other_target(directory: Path, scenario_file: ScenarioFile) -> None:
    """Refuse to go on with a run of another target.

    The journal knows the space and the instances of a run, but not its target.
    """
    if not (directory / RECORD).exists():
        return
    before, now = read_origin(directory).target, target_of(scenario_file)
    differences = [pair for pair in zip(before, now, strict=True) if pair[0] != pair[1]]
    if differences:
        listing = "".join(f"\n  before: {old}\n  now:    {new}" for old, new in differences)
        raise InputError(
            Place(directory),
            "this run was started with another target; use --output for a run of its own, or "
            f"--fresh to start anew{listing}",
        )


def record_origin(
    directory: Path, scenario_file: ScenarioFile, overrides: Mapping[str, str], folder: Path
) -> None:
    """Write down what a run is started from, and in which folder."""
    path = directory / RECORD
    directory.mkdir(parents=True, exist_ok=True)
    content = {
        "scenario": str(folder / scenario_file.path),
        "overrides": dict(overrides),
        "folder": str(folder),
        "target": target_of(scenario_file),
    }
    temporary = path.with_suffix(f".{os.getpid()}.tmp")
    temporary.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    os.replace(temporary, path)


def read_origin(directory: Path) -> Origin:
    """Return what a run was started from."""
    path = directory / RECORD
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        return Origin(
            scenario=Path(content["scenario"]),
            overrides=dict(content["overrides"]),
            folder=Path(content["folder"]),
            target=tuple(content["target"]),
        )
    except FileNotFoundError:
        raise InputError(
            Place(directory),
            f"was not made by 'acband run': it has no {RECORD}; give the scenario with --scenario",
        ) from None
    except (ValueError, KeyError, TypeError, OSError) as error:
        raise InputError(Place(path), f"cannot be read: {error!r}") from None


def scenario_of_run(
    directory: Path, scenario: Path | None = None, test_instances: Path | None = None
) -> ScenarioFile:
    """Read the scenario of a run again, as it was given then, with what overrode its file.

    ``scenario`` is where the file is now, if it has moved. Relative paths mean what they meant
    then, or for a file that has moved, what they mean here. ``test_instances``, a list in the
    scenario's own format, replaces those of the scenario.
    """
    origin = _origin(directory, scenario)
    overrides = dict(origin.overrides)
    if test_instances is not None:
        overrides |= _test_list(kind_of(origin.scenario), test_instances.resolve())
    here = Path.cwd()
    try:
        os.chdir(origin.folder)
        return read_scenario(origin.scenario, overrides)
    except FileNotFoundError as error:
        raise InputError(Place(directory), f"its folder is gone: {error.filename}") from None
    finally:
        os.chdir(here)


def _origin(directory: Path, moved: Path | None) -> Origin:
    """Return what a run was started from, with the scenario where it has ``moved`` to."""
    if moved is None:
        return read_origin(directory)
    here = Path.cwd()
    if not (directory / RECORD).exists():  # a script's run: its scenario says it all
        return Origin(moved, overrides={}, folder=here, target=())
    return replace(read_origin(directory), scenario=moved, folder=here)


def _test_list(kind: str, path: Path) -> dict[str, str]:
    """Return what makes a list the test instances of a scenario."""
    return {
        "toml": {"instances.test": str(path)},
        "aclib": {"test_instance_file": str(path)},
        "irace": {"testInstancesFile": str(path), "testInstancesDir": ""},
    }[kind]


def incumbent_of(directory: Path) -> dict[str, Any]:
    """Return the values of the configuration that leads a run, finished or not.

    A NoRunError says so if there is no such run, or none leads yet.
    """
    from acband_configspace.runlog.replay import NoRunError, Run

    run = Run.load(directory)
    if run.problem is not None:
        raise NoRunError(f"it is not known who leads in {directory}: {run.problem}")
    saved = _saved_incumbent(directory, n_races=len(run.races))
    if saved is not None:
        return saved
    if run.incumbent is None:
        raise NoRunError(f"no result is on record yet in {directory}")
    return dict(run.values(run.incumbent))


def _saved_incumbent(directory: Path, *, n_races: int) -> dict[str, Any] | None:
    """Return who leads in SMAC's files, None if there is nobody or the journal knows of more races.

    In a race that is not over somebody may lead of whom the journal knows nothing.
    """
    with suppress(LookupError, OSError, TypeError, ValueError):
        saved = json.loads((directory / "intensifier.json").read_text(encoding="utf-8"))
        if saved["state"]["n_races"] == n_races:
            number = saved["incumbent_ids"][0]
            history = json.loads((directory / "runhistory.json").read_text(encoding="utf-8"))
            return dict(history["configs"][str(number)])
    return None
