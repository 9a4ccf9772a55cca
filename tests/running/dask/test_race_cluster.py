"""Races on a cluster: on which workers, what becomes of them when workers die, who is stopped."""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest
from cluster_helpers import Cluster, eventually, kill
from cluster_targets import Counted, Unloadable, run
from dask.distributed import Client
from race_helpers import statuses

from acband_configspace.errors import NoWorkersError, SchedulerLostError
from acband_configspace.running import (
    CommandTarget,
    PythonTarget,
    RaceReport,
    RaceSpec,
    ScriptReport,
    TargetLoadError,
)
from acband_configspace.running.dask.cluster import LOOK_INTERVAL, RaceCluster
from acband_configspace.running.dask.worker import CLOSING_NOTE, SupervisorThread
from acband_configspace.running.local.messages import CommandJob, StartRace
from acband_configspace.running.local.track import SupervisorProcess
from acband_configspace.running.race import TrackLimits
from acband_configspace.running.targets import settings_for


@pytest.fixture
def open_cluster(cluster: Cluster) -> Iterator[Callable[..., RaceCluster]]:
    opened = []

    def open_it(target: Any = run, racers: int = 2, **options: Any) -> RaceCluster:
        opened.append(RaceCluster(cluster.client, PythonTarget(target), racers=racers, **options))
        return opened[-1]

    yield open_it
    for races in opened:
        races.close()


def _seconds(*seconds: float, **more: Any) -> tuple[dict[str, Any], ...]:
    return tuple({"seconds": number, **more} for number in seconds)


def _all_reports(races: RaceCluster, seconds: float = 40.0) -> dict[Any, RaceReport]:
    reports: dict[Any, RaceReport] = {}
    deadline = time.monotonic() + seconds
    while races.unfinished:
        assert time.monotonic() < deadline, f"only {len(reports)} reports so far"
        for report in races.wait(1):
            assert report.key not in reports, "no outcome counts twice"
            reports[report.key] = report
    return reports


def _wait_for(races: RaceCluster, condition: Callable[[], object]) -> None:
    """Wait until a condition holds before any race is over."""

    def holds() -> object:
        assert not races.wait(0.02)
        return condition()

    eventually(holds)


def _is_alive(file: Path) -> bool:
    return file.exists() and bool(text := file.read_text()) and psutil.pid_exists(int(text))


def test_losers_are_stopped_on_the_worker(
    cluster: Cluster, open_cluster: Callable[..., RaceCluster], tmp_path: Path
) -> None:
    cluster.have_workers(2)
    races = open_cluster()
    loser = {"seconds": 60, "file": str(tmp_path / "loser")}
    races.start(RaceSpec("race", (loser, {"seconds": 0.3})))
    report = _all_reports(races)["race"]
    assert statuses(report) == ["lost", "finished"]
    assert report.winner == 1
    assert report.racers[0].time < 60
    assert not _is_alive(tmp_path / "loser")


@pytest.mark.parametrize("stop_losers", [True, False])
def test_each_racer_has_a_limit_of_its_own(
    cluster: Cluster, open_cluster: Callable[..., RaceCluster], stop_losers: bool
) -> None:
    cluster.have_workers(2)
    races = open_cluster(cutoff=5)
    limits = (0.2, None, 0, 5)
    configurations = _seconds(60, 0.5, 0, 60 if stop_losers else 0)
    races.start(RaceSpec("race", configurations, limits=limits, stop_losers=stop_losers))
    report = _all_reports(races)["race"]
    last = "lost" if stop_losers else "finished"
    assert statuses(report) == ["lost", "finished", "lost", last]
    assert report.racers[2].time == 0


def test_the_output_of_commands_is_read_on_the_worker(cluster: Cluster) -> None:
    cluster.have_workers(2)

    def read(output: str, code: int) -> ScriptReport:
        return ScriptReport(status="CRASHED" if "bad" in output else None, cost=float(len(output)))

    def to_arguments(configuration: Any, *_: Any) -> list[str]:
        return [str(configuration["text"])]

    target = CommandTarget("echo", to_arguments=to_arguments, read_result=read)
    races = RaceCluster(cluster.client, target, racers=2)
    races.start(RaceSpec("race", ({"text": "bad"}, {"text": "good"}), stop_losers=False))
    report = _all_reports(races)["race"]
    races.close()
    assert statuses(report) == ["crashed", "finished"]
    assert report.racers[1].reported == ScriptReport(cost=5.0)


def test_a_worker_without_the_package_is_skipped_and_named(
    cluster: Cluster,
    open_cluster: Callable[..., RaceCluster],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    (tmp_path / "acband_configspace.py").write_text(
        "raise ModuleNotFoundError(f'No module named {__name__!r}')\n"
    )
    cluster.have_workers(1)
    [good] = cluster.client.scheduler_info()["workers"]
    unfit = cluster.launch_worker(4, finds=str(tmp_path))
    cluster.await_workers(2)
    races = open_cluster(racers=1)
    for number in range(6):
        races.start(RaceSpec(number, _seconds(0.1)))
    assert all(statuses(report) == ["finished"] for report in _all_reports(races).values())
    [address] = set(cluster.client.scheduler_info()["workers"]) - {good}
    assert f"Worker {address} gets no more races" in caplog.text
    assert "No module named 'acband_configspace'" in caplog.text
    assert races.slots == 1
    late = cluster.launch_worker(4, finds=str(tmp_path))  # one that joins does not fail either
    cluster.await_workers(3)
    for worker in (unfit, late):
        cluster.end(worker)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"racers": 0}, "racers must be at least 1 but got 0"),
        ({"worker_timeout": "x"}, "worker_timeout must be a number but got 'x'"),
        ({"worker_timeout": float("nan")}, "worker_timeout must not be negative but got nan"),
        ({"clock": "sun"}, "clock must be 'wall' or 'cpu' but got 'sun'"),
    ],
)
def test_options_are_checked(cluster: Cluster, options: dict[str, Any], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        RaceCluster(cluster.client, PythonTarget(run), **{"racers": 1, **options})
    with pytest.raises(TypeError, match="client must be a dask.distributed.Client but got 5"):
        RaceCluster(5, PythonTarget(run), racers=1)


def test_each_worker_runs_what_its_threads_allow(
    cluster: Cluster, open_cluster: Callable[..., RaceCluster]
) -> None:
    small, large = cluster.have_workers(1, 5)
    races = open_cluster(racers=2)
    assert races.slots == 1 + 5
    for number in range(10):
        races.start(RaceSpec(number, _seconds(0.3, 0.3), stop_losers=False))
    runs: dict[Any, list[Any]] = defaultdict(list)
    for report in _all_reports(races).values():
        for racer in report.racers:
            worker, started, ended = racer.returned
            runs[worker] += [(started, 1), (ended, -1)]
    most = {worker: _most_at_once(events) for worker, events in runs.items()}
    assert most == {small.pid: 1, large.pid: 5}


def _most_at_once(events: list[tuple[float, int]]) -> int:
    running = most = 0
    for _, change in sorted(events):
        running += change
        most = max(most, running)
    return most


def test_outstanding_tasks_stay_in_proportion_to_the_cluster(
    cluster: Cluster, open_cluster: Callable[..., RaceCluster]
) -> None:
    cluster.have_workers(1, 1)
    races = open_cluster(racers=1)
    for number in range(40):
        races.start(RaceSpec(number, _seconds(0.02)))
    most = 0
    while races.unfinished:
        races.wait(0.05)
        most = max(most, len(cluster.client.futures))
    # Two workers, with one race running and one waiting each, and as many just let go of.
    assert most <= 8


def test_a_killed_workers_races_run_elsewhere(
    cluster: Cluster, open_cluster: Callable[..., RaceCluster], tmp_path: Path
) -> None:
    doomed, _ = cluster.have_workers(1, 1)
    races = open_cluster(racers=1)
    for number in range(2):
        races.start(RaceSpec(number, _seconds(4, file=str(tmp_path / str(number)))))
    _wait_for(races, lambda: all((tmp_path / str(n)).exists() for n in range(2)))
    racers = psutil.Process(doomed.pid).children(recursive=True)
    kill(doomed)
    eventually(lambda: not any(racer.is_running() for racer in racers))
    reports = _all_reports(races)
    assert [statuses(reports[number]) for number in range(2)] == [["finished"], ["finished"]]
    assert all(report.racers[0].returned[0] != doomed.pid for report in reports.values())


def test_a_report_that_has_arrived_counts_though_its_worker_is_gone(
    cluster: Cluster, open_cluster: Callable[..., RaceCluster]
) -> None:
    """The caller may be busy while both happens; the race must not be run a second time."""
    (worker,) = cluster.have_workers(1)
    races = open_cluster(racers=1)
    races.start(RaceSpec("race", _seconds(0.1)))
    eventually(lambda: not races._client._arrived.empty())
    kill(worker)
    cluster.await_workers(0)
    time.sleep(LOOK_INTERVAL)
    [report] = races.wait(10)
    assert statuses(report) == ["finished"]
    assert report.racers[0].returned[0] == worker.pid


def test_a_worker_that_is_asked_to_end_hands_its_races_back(
    cluster: Cluster, open_cluster: Callable[..., RaceCluster], tmp_path: Path
) -> None:
    """As a batch system does it. However often: it is not the race that kills the workers."""
    races = open_cluster(racers=1)
    races.start(RaceSpec("race", _seconds(3, file=str(tmp_path / "pid"))))
    for _ in range(3):
        (worker,) = cluster.have_workers(1)
        _wait_for(races, lambda: _is_alive(tmp_path / "pid"))
        worker.terminate()
        worker.wait(10)
        assert not _is_alive(tmp_path / "pid")
    cluster.have_workers(1)
    assert statuses(_all_reports(races)["race"]) == ["finished"]


def test_a_worker_that_left_in_order_excuses_none_that_comes_after_it(
    cluster: Cluster, open_cluster: Callable[..., RaceCluster]
) -> None:
    """With fixed ports a scheduler notes several workers under one address."""
    cluster.have_workers(1)
    [address] = cluster.client.scheduler_info()["workers"]
    client = open_cluster()._client
    assert not client.has_left_in_order(address)
    [(_, joined), *_] = cluster.client.get_events(address)
    cluster.client.log_event(address, CLOSING_NOTE)
    assert client.has_left_in_order(address)
    cluster.client.log_event(address, joined)
    assert not client.has_left_in_order(address)


def test_all_workers_gone_and_back(
    cluster: Cluster,
    open_cluster: Callable[..., RaceCluster],
    caplog: pytest.LogCaptureFixture,
) -> None:
    (worker,) = cluster.have_workers(1)
    races = open_cluster(racers=1)
    for number in range(4):
        races.start(RaceSpec(number, _seconds(0.5)))
    assert races.wait(20)
    kill(worker)
    deadline = time.monotonic() + 3
    while time.monotonic() < deadline:
        races.wait(0.1)
    assert "no worker" in caplog.text
    cluster.launch_worker()
    assert all(statuses(report) == ["finished"] for report in _all_reports(races).values())


def test_workers_that_join_are_used(
    cluster: Cluster, open_cluster: Callable[..., RaceCluster]
) -> None:
    cluster.have_workers(1)
    races = open_cluster(racers=1)
    for number in range(6):
        races.start(RaceSpec(number, _seconds(1.0)))
    cluster.have_workers(1, 1)
    workers = {report.racers[0].returned[0] for report in _all_reports(races).values()}
    assert len(workers) == 2


def test_a_race_that_kills_its_worker_three_times_has_crashed(
    cluster: Cluster, open_cluster: Callable[..., RaceCluster]
) -> None:
    """And takes no other race with it that often."""
    workers = cluster.have_workers(2, 2, 2, 2)
    races = open_cluster(racers=1)
    races.start(RaceSpec("killer", _seconds(0, kills=True)))
    for number in range(8):
        races.start(RaceSpec(number, _seconds(0.5)))
    reports = _all_reports(races)
    killer = reports.pop("killer")
    assert statuses(killer) == ["crashed"]
    assert "its worker died" in str(killer.racers[0].error)
    assert all(statuses(report) == ["finished"] for report in reports.values())
    assert sum(worker.poll() is None for worker in workers) == 1


def test_a_cancelled_race_is_stopped_and_reported(
    cluster: Cluster, open_cluster: Callable[..., RaceCluster], tmp_path: Path
) -> None:
    cluster.have_workers(1)
    races = open_cluster(racers=1)
    for number in range(2):
        races.start(RaceSpec(number, _seconds(60, file=str(tmp_path / str(number)))))
    _wait_for(races, lambda: _is_alive(tmp_path / "0"))
    races.cancel(0)
    races.cancel(1)
    reports = _all_reports(races)
    assert [statuses(reports[number]) for number in range(2)] == [["cancelled"], ["cancelled"]]
    assert reports[0].racers[0].time > 0, "what it took is accounted for"
    assert not _is_alive(tmp_path / "0")
    assert not (tmp_path / "1").exists()


def test_a_worker_kept_free_for_a_cancelled_race_is_used_again(
    cluster: Cluster, open_cluster: Callable[..., RaceCluster], tmp_path: Path
) -> None:
    """A race that lost its worker is run again alone; the worker is kept free for it."""
    workers = cluster.have_workers(1, 1)
    races = open_cluster(racers=1)
    for name in ("lost", "long"):
        races.start(
            RaceSpec(name, _seconds(60 if name == "lost" else 4, file=str(tmp_path / name)))
        )
    _wait_for(races, lambda: _is_alive(tmp_path / "lost") and _is_alive(tmp_path / "long"))
    pid = int((tmp_path / "lost").read_text())
    ancestors = {process.pid for process in psutil.Process(pid).parents()}
    [doomed] = [worker for worker in workers if worker.pid in ancestors]
    kill(doomed)
    _wait_for(races, lambda: len(cluster.client.scheduler_info()["workers"]) == 1)
    races.wait(0.5)
    races.cancel("lost")
    races.start(RaceSpec("next", _seconds(0)))
    reports = _all_reports(races)
    assert statuses(reports["lost"]) == ["cancelled"]
    assert statuses(reports["next"]) == ["finished"]


def test_a_supervisor_that_dies_while_nothing_runs_is_replaced() -> None:
    others = set(psutil.Process().children())
    settings = settings_for(CommandTarget("true"), None, TrackLimits())
    races = SupervisorThread(lambda: SupervisorProcess(settings, slots=1))
    details = (CommandJob(("true",)),), (math.inf,), True
    assert races.run(StartRace("a", *details)).winner == 0
    before = time.process_time()
    [supervisor] = set(psutil.Process().children()) - others
    supervisor.kill()
    time.sleep(0.5)
    assert time.process_time() - before < 0.3, "it waits, it does not spin"
    assert races.run(StartRace("b", *details)).winner == 0
    races.close(5)


def test_a_race_does_not_wait_behind_one_that_could_not_be_started() -> None:
    opening, all_queued = threading.Event(), threading.Event()

    def fail() -> SupervisorProcess:
        opening.set()
        all_queued.wait(10)
        raise OSError("no more processes")

    races = SupervisorThread(fail)
    details = (CommandJob(("true",)),), (math.inf,), True
    with ThreadPoolExecutor() as pool:
        answers = [pool.submit(races.run, StartRace("first", *details))]
        opening.wait(10)
        answers += [pool.submit(races.run, StartRace(key, *details)) for key in ("next", "last")]
        time.sleep(0.2)  # both wait when the first one fails
        all_queued.set()
        try:
            for answer in answers:
                with pytest.raises(OSError, match="no more processes"):
                    answer.result(10)
        finally:
            races.close(5)


def test_races_of_a_client_that_is_gone_are_stopped(cluster: Cluster, tmp_path: Path) -> None:
    """As when its process is killed: then nobody can ask for it."""
    cluster.have_workers(1)
    with Client(cluster.address, set_as_default=False) as client:
        races = RaceCluster(client, PythonTarget(run), racers=1)
        races.start(RaceSpec("race", _seconds(60, file=str(tmp_path / "pid"))))
        _wait_for(races, lambda: _is_alive(tmp_path / "pid"))
    eventually(lambda: not _is_alive(tmp_path / "pid"))
    cluster.have_workers()  # its track stays open for a while


def test_closing_stops_the_racers_and_leaves_the_client_open(
    cluster: Cluster, open_cluster: Callable[..., RaceCluster], tmp_path: Path
) -> None:
    (worker,) = cluster.have_workers(2)
    races = open_cluster(racers=1)
    for number in range(2):
        races.start(RaceSpec(number, _seconds(60, file=str(tmp_path / str(number)))))
    _wait_for(races, lambda: _is_alive(tmp_path / "0") and _is_alive(tmp_path / "1"))
    races.close()
    eventually(lambda: not psutil.Process(worker.pid).children(recursive=True))
    assert cluster.client.status == "running"
    assert cluster.client.submit(sum, [1, 2]).result(10) == 3


def test_the_target_is_sent_to_each_worker_once(
    cluster: Cluster, open_cluster: Callable[..., RaceCluster], tmp_path: Path
) -> None:
    cluster.have_workers(1, 2)
    races = open_cluster(Counted(str(tmp_path / "loaded")), racers=1)
    for number in range(20):
        races.start(RaceSpec(number, ({"seconds": 0},)))
    _all_reports(races)
    assert len((tmp_path / "loaded").read_text().splitlines()) == 2


def test_a_target_that_cannot_be_loaded_is_an_error(
    cluster: Cluster, open_cluster: Callable[..., RaceCluster]
) -> None:
    cluster.have_workers(1)
    races = open_cluster(Unloadable())
    races.start(RaceSpec("race", ({},)))
    with pytest.raises(TargetLoadError, match="no such thing"):
        _all_reports(races)


def test_a_target_that_some_workers_can_load_runs_on_those(
    cluster: Cluster,
    open_cluster: Callable[..., RaceCluster],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """What has run is no mistake of the target: one node lacks a library, say."""
    no_licence = tmp_path / "no licence"

    def load(file: str) -> Callable[[Any], None]:
        if Path(file).exists():
            raise ImportError("no licence here")
        return lambda configuration: time.sleep(0.5)

    class Licensed:
        def __reduce__(self) -> tuple[Any, ...]:
            return load, (str(no_licence),)

        def __call__(self, configuration: Any) -> None:
            pass

    cluster.have_workers(1)
    races = open_cluster(Licensed(), racers=1)
    races.start(RaceSpec("first", ({},)))
    _all_reports(races)
    no_licence.touch()  # where it is loaded it stays so
    cluster.have_workers(1, 1)
    for number in range(6):
        races.start(RaceSpec(number, ({},)))
    assert all(statuses(report) == ["finished"] for report in _all_reports(races).values())
    assert "gets no more races for 60 seconds" in caplog.text
    assert "no licence here" in caplog.text


@pytest.mark.parametrize("n_races", [1, 3])
def test_a_cluster_that_has_forgotten_the_run_is_set_up_again(
    n_races: int,
    cluster: Cluster,
    open_cluster: Callable[..., RaceCluster],
    caplog: pytest.LogCaptureFixture,
) -> None:
    """As one has whose scheduler was restarted while no race was out."""
    cluster.have_workers(n_races)
    races = open_cluster(racers=1)
    races.start(RaceSpec("before", _seconds(0)))
    _all_reports(races)
    cluster.client.unregister_worker_plugin(races._run)
    for number in range(n_races):
        races.start(RaceSpec(number, _seconds(0.5)))
    reports = _all_reports(races).values()
    assert [statuses(report) for report in reports] == [["finished"]] * n_races
    assert "gets no more races" not in caplog.text


@contextmanager
def _two_being_fetched(cluster: Cluster, races: RaceCluster) -> Iterator[None]:
    """Have Dask begin to fetch the results of two races, as always together, but not end it."""
    client, n_at_once = cluster.client, 5

    async def hold() -> None:
        for _ in range(n_at_once):
            await client._gather_semaphore.acquire()

    async def let_go() -> None:
        for _ in range(n_at_once):
            client._gather_semaphore.release()

    client.sync(hold)
    for key in ("first", "second"):
        races.start(RaceSpec(key, _seconds(0)))
    _wait_for(races, lambda: len(client._gather_keys or ()) == 2)
    yield
    client.sync(let_go)


def test_who_drops_a_task_leaves_the_results_of_others_alone(
    cluster: Cluster, open_cluster: Callable[..., RaceCluster]
) -> None:
    cluster.have_workers(2)
    races = open_cluster(racers=1)
    with _two_being_fetched(cluster, races):
        first, second = races._unfinished.values()
        races._take_back(first, counts=False)
    assert len(_all_reports(races)) == 2
    assert (first.tries, second.tries) == (2, 1)
    assert races._client._n_set_ups == 1


def test_a_wait_that_others_end_is_no_reason_to_set_up_again(
    cluster: Cluster, open_cluster: Callable[..., RaceCluster]
) -> None:
    """That would close the races of all workers."""

    async def end_all_waits() -> None:
        for task in asyncio.all_tasks():
            if "ClusterClient._follow" in repr(task):
                task.cancel()

    cluster.have_workers(2)
    races = open_cluster(racers=1)
    races.start(RaceSpec("race", _seconds(0.5)))
    _wait_for(races, lambda: races._sent)
    (race,) = races._sent.values()
    cluster.client.sync(end_all_waits)
    assert statuses(_all_reports(races)["race"]) == ["finished"]
    assert race.tries == 2
    assert races._client._n_set_ups == 1


def test_a_run_that_was_not_set_up_everywhere_is_closed(
    cluster: Cluster, open_cluster: Callable[..., RaceCluster]
) -> None:
    cluster.have_workers(1)
    races = open_cluster(racers=1)
    races.start(RaceSpec("race", _seconds(0)))
    _all_reports(races)
    races._client._is_set_up = False  # as after a lost task
    races.close()
    with pytest.raises(ValueError, match="does not exist"):
        cluster.client.unregister_worker_plugin(races._run)


def test_no_worker_for_too_long_is_an_error(
    cluster: Cluster, open_cluster: Callable[..., RaceCluster]
) -> None:
    cluster.have_workers()
    races = open_cluster(worker_timeout=1)
    races.start(RaceSpec("race", ({},)))
    with pytest.raises(NoWorkersError, match="no worker for 1 seconds.*continues"):
        _all_reports(races)


def test_a_lost_scheduler_is_an_error(own_cluster: Cluster, tmp_path: Path) -> None:
    (worker,) = own_cluster.have_workers(1)
    races = RaceCluster(own_cluster.client, PythonTarget(run), racers=1)
    races.start(RaceSpec("race", _seconds(60, file=str(tmp_path / "pid"))))
    _wait_for(races, lambda: _is_alive(tmp_path / "pid"))
    racers = psutil.Process(worker.pid).children(recursive=True)
    kill(own_cluster.scheduler)
    with pytest.raises(SchedulerLostError, match="continues"):
        _all_reports(races, 30)
    races.close()
    worker.wait(30)
    eventually(lambda: not any(racer.is_running() for racer in racers))
