"""``ACBandFacade`` with a Dask client: the same result as on one machine, whatever happens."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import cluster_run
import psutil
import pytest
from cluster_helpers import SEARCH_PATH, Cluster, eventually, kill
from cluster_run import facade
from cluster_targets import cost, cost_by_data, endless, sleep_as_configured
from smac.runhistory.dataclasses import TrialInfo
from smac.runhistory.enumerations import StatusType

from acband_configspace.errors import NoWorkersError
from acband_configspace.smac_plugin.runners import DaskRaceRunner, RaceRunner


def _races(folder: Path) -> list[tuple[int, ...]]:
    """The races in the journal of a run."""
    (journal,) = folder.rglob("journal.jsonl")
    lines = [json.loads(line) for line in journal.read_text().splitlines() if line.endswith("}")]
    return [tuple(line["race"]) for line in lines if "race" in line]


@pytest.mark.parametrize(("target", "racing"), [(cost, False), (sleep_as_configured, True)])
def test_the_result_is_that_of_one_machine(
    cluster: Cluster, tmp_path: Path, target: Any, racing: bool
) -> None:
    cluster.have_workers(1, 2)
    alone = facade(tmp_path / "alone", target, racing=racing)
    on_cluster = facade(tmp_path / "cluster", target, cluster.client, racing=racing)
    assert dict(on_cluster.optimize()) == dict(alone.optimize())
    assert sorted(_races(tmp_path / "cluster")) == sorted(_races(tmp_path / "alone"))
    assert cluster.client.status == "running"


def test_data_to_scatter_reaches_the_target(cluster: Cluster, tmp_path: Path) -> None:
    cluster.have_workers(1, 2)
    run = facade(tmp_path, cost_by_data, cluster.client)
    best = run.optimize(data_to_scatter={"best": 0.8})
    values = list(run.runhistory.values())
    assert all(value.status == StatusType.SUCCESS for value in values)
    mean = run.validate(best)
    assert mean == pytest.approx(abs(best["x"] - 0.8))


def test_a_worker_killed_in_mid_round_changes_nothing(cluster: Cluster, tmp_path: Path) -> None:
    doomed, _ = cluster.have_workers(1, 2)
    run = facade(tmp_path / "cluster", sleep_as_configured, cluster.client)

    def kill_in_mid_round() -> None:
        eventually(lambda: run.runhistory.finished >= 3)
        kill(doomed)

    killing = threading.Thread(target=kill_in_mid_round)
    killing.start()
    result = run.optimize()
    killing.join()
    assert dict(result) == dict(facade(tmp_path / "alone", sleep_as_configured).optimize())
    races = _races(tmp_path / "cluster")
    assert len(races) == len(set(races)), "no race counts twice"


def test_without_workers_it_stops_and_goes_on_later(cluster: Cluster, tmp_path: Path) -> None:
    (worker,) = cluster.have_workers(2)
    run = facade(tmp_path, sleep_as_configured, cluster.client, racing=True, worker_timeout=1)

    def kill_in_mid_round() -> None:
        eventually(lambda: run.intensifier.n_races >= 3)
        kill(worker)

    killing = threading.Thread(target=kill_in_mid_round)
    killing.start()
    with pytest.raises(NoWorkersError, match="continues"):
        run.optimize()
    killing.join()
    before = _races(tmp_path)
    assert len(before) >= 3
    cluster.have_workers(2)
    resumed = facade(tmp_path, sleep_as_configured, cluster.client, racing=True)
    resumed.optimize()
    after = _races(tmp_path)
    assert after[: len(before)] == before
    assert len(after) == len(set(after)) > len(before)


def test_a_killed_run_goes_on_on_another_cluster(
    cluster: Cluster, own_cluster: Cluster, tmp_path: Path
) -> None:
    own_cluster.have_workers(2)
    script = Path(cluster_run.__file__)
    folder = tmp_path / "killed"
    parent = subprocess.Popen(
        [sys.executable, str(script), own_cluster.address, str(folder)],
        env={**os.environ, "PYTHONPATH": SEARCH_PATH},
    )
    eventually(lambda: list(folder.rglob("journal.jsonl")) and len(_races(folder)) >= 3, 60)
    kill(parent)
    before = _races(folder)
    cluster.have_workers(2)
    result = facade(folder, sleep_as_configured, cluster.client, racing=True).optimize()
    after = _races(folder)
    assert after[: len(before)] == before
    assert len(after) == len(set(after))
    assert dict(result) == dict(
        facade(tmp_path / "alone", sleep_as_configured, racing=True).optimize()
    )


def test_the_time_limit_stops_the_racers(cluster: Cluster, tmp_path: Path) -> None:
    (worker,) = cluster.have_workers(2)
    run = facade(tmp_path, endless, cluster.client, racing=True, walltime_limit=5)
    run.optimize()
    eventually(lambda: not psutil.Process(worker.pid).children(recursive=True), 1)


def test_workers_that_join_are_given_trials_before_any_has_ended(
    cluster: Cluster, tmp_path: Path
) -> None:
    cluster.have_workers(1)
    scenario = facade(tmp_path, endless).scenario
    runner = DaskRaceRunner(scenario, endless, cluster.client, k=1, racing=False)
    deadline = time.monotonic() + 30
    runner.seconds_left = lambda: deadline - time.monotonic()
    config = scenario.configspace.get_default_configuration()
    try:
        for number in range(2):
            runner.submit_trial(TrialInfo(config, instance=str(number), seed=0))
        cluster.launch_worker(2)
        for number in range(2, 6):
            runner.submit_trial(TrialInfo(config, instance=str(number), seed=0))
        assert runner.seconds_left() > 0
        assert runner.n_workers == 1 + 2
        assert list(runner.iter_results()) == []
    finally:
        runner.close()


def test_a_runner_of_ones_own_takes_its_client_itself(cluster: Cluster, tmp_path: Path) -> None:
    run = facade(tmp_path, cost)
    runner = RaceRunner(run.scenario, cost, racing=False)
    with pytest.raises(TypeError, match="dask_client must be None"):
        facade(tmp_path, runner, cluster.client)
