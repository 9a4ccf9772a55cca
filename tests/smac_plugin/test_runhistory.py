"""LinearRunHistory answers and saves what SMAC's own run history does."""

from __future__ import annotations

import math
import pickle
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from smac.runhistory.dataclasses import TrialInfo, TrialValue
from smac.runhistory.enumerations import StatusType
from smac.runhistory.runhistory import RunHistory
from targets import a_space

from acband_configspace.smac_plugin.runhistory import LinearRunHistory

SPACE = a_space()
CONFIGS = SPACE.sample_configuration(3)


@dataclass(frozen=True)
class Entry:
    """One thing that is added to a run history; without a status, a trial that is running."""

    config: int
    instance: str | None
    seed: int
    status: StatusType | None
    cost: float = 0.0
    replace: bool = True

    def add_to(self, history: RunHistory) -> None:
        config = CONFIGS[self.config]
        if self.status is None:
            history.add_running_trial(TrialInfo(config, self.instance, self.seed))
            return
        history.add(
            config,
            cost=self.cost,
            time=0.5,
            status=self.status,
            instance=self.instance,
            seed=self.seed,
            additional_info={"note": "said"},
            force_update=self.replace,
        )


finished = [StatusType.SUCCESS, StatusType.CRASHED, StatusType.TIMEOUT, StatusType.MEMORYOUT]
costs = st.one_of(st.floats(-1e6, 1e6), st.sampled_from([math.inf, 0.0, 1.0]))
entries = st.builds(
    Entry,
    config=st.integers(0, 2),
    instance=st.sampled_from([None, "a"]),
    seed=st.integers(0, 2),
    status=st.sampled_from([None, *finished]),
    cost=costs,
    replace=st.booleans(),
)

CRASH = Entry(0, "a", 1, StatusType.CRASHED, math.inf)
SUCCESS = Entry(0, "a", 1, StatusType.SUCCESS, 3.0)
BETTER = Entry(0, "a", 1, StatusType.SUCCESS, 1.0)


def filled(kind: type[RunHistory], added: list[Entry]) -> RunHistory:
    history = kind()
    for entry in added:
        entry.add_to(history)
    return history


def assert_alike(one: RunHistory, other: RunHistory) -> None:
    counts = [(h.submitted, h.finished, h.running, len(h)) for h in (one, other)]
    assert counts[0] == counts[1]
    assert dict(one) == dict(other)
    assert one.get_configs() == other.get_configs()
    assert one.get_running_configs() == other.get_running_configs()
    assert one.objective_bounds == other.objective_bounds
    # SMAC lists a trial that was replaced while another was running at another place.
    assert all(trial in other.get_running_trials() for trial in one.get_running_trials())
    for config in CONFIGS:
        assert one.get_trials(config) == other.get_trials(config)
        keys = one.get_instance_seed_budget_keys(config)
        assert keys == other.get_instance_seed_budget_keys(config)
        for question in ("get_cost", "get_min_cost", "average_cost", "min_cost", "sum_cost"):
            answers = [getattr(history, question)(config) for history in (one, other)]
            assert answers[0] == pytest.approx(answers[1], nan_ok=True, abs=1e-6), question
        assert one.average_cost(config, keys[:1]) == pytest.approx(
            other.average_cost(config, keys[:1]), nan_ok=True
        )


@given(st.lists(entries, max_size=30))
@example([CRASH, SUCCESS])
@example([SUCCESS, CRASH])
@example([BETTER, SUCCESS])
@example([Entry(0, "a", 1, None), SUCCESS, Entry(0, "a", 1, None)])
def test_it_answers_like_smacs(added: list[Entry]) -> None:
    assert_alike(filled(LinearRunHistory, added), filled(RunHistory, added))


@given(st.lists(entries, max_size=15))
@settings(max_examples=40)
def test_what_it_saves_smac_loads_and_the_other_way_round(added: list[Entry]) -> None:
    linear, smacs = filled(LinearRunHistory, added), filled(RunHistory, added)
    with tempfile.TemporaryDirectory() as directory:
        for saved in (linear, smacs):
            path = Path(directory) / "runhistory.json"
            saved.save(path)
            for kind in (RunHistory, LinearRunHistory):
                loaded = kind()
                loaded.load(path, SPACE)
                assert dict(loaded) == dict(smacs)
                assert loaded.finished == smacs.finished
                assert loaded.submitted == smacs.submitted
                assert [c.origin for c in loaded.get_configs()] == [
                    c.origin for c in smacs.get_configs()
                ]


def test_what_a_loser_costs_is_not_known() -> None:
    history = LinearRunHistory()
    for end, seed in (("lost", 1), ("cancelled", 2)):
        timeout, info = StatusType.TIMEOUT, {"end": end}
        history.add(CONFIGS[0], cost=0.01, status=timeout, seed=seed, additional_info=info)
    history.add(CONFIGS[1], cost=5.0, status=StatusType.SUCCESS, seed=1)
    assert history.average_cost(CONFIGS[0]) == history.get_cost(CONFIGS[0]) == math.inf
    assert min(history.get_configs(), key=history.get_cost) == CONFIGS[1]
    history.add(CONFIGS[0], cost=3.0, status=StatusType.SUCCESS, seed=3)
    assert history.average_cost(CONFIGS[0]) == 3.0


def test_it_can_be_reset() -> None:
    history = filled(LinearRunHistory, [SUCCESS])
    history.reset()
    assert history.empty()
    assert np.isnan(history.average_cost(CONFIGS[0]))
    assert_alike(history, RunHistory())


def test_it_can_be_pickled() -> None:
    history = LinearRunHistory()
    history.number_of = lambda config: 7
    SUCCESS.add_to(history)
    again = pickle.loads(pickle.dumps(history))
    assert dict(again) == dict(history)
    assert [key.config_id for key in again] == [7]


def test_asked_for_costs_on_some_instances_it_still_knows_the_mean_of_all() -> None:
    history = filled(LinearRunHistory, [SUCCESS, Entry(0, "b", 1, StatusType.SUCCESS, 5.0)])
    history.update_costs(instances=["b"])
    assert history.average_cost(CONFIGS[0]) == 4.0


def test_the_time_to_add_a_trial_does_not_grow() -> None:
    """SMAC's own takes 20 times as long for the last 500 as for the first 500."""
    history = LinearRunHistory()
    value = TrialValue(cost=1.0)

    def seconds(first: int) -> float:
        start = time.process_time()
        for seed in range(first, first + 500):
            history.add_trial(TrialInfo(CONFIGS[0], seed=seed), value)
        return time.process_time() - start

    seconds(0)
    early = min(seconds(500), seconds(1000))
    for first in range(1500, 9500, 500):
        late = seconds(first)
    late = min(late, seconds(9500), seconds(10_000))
    assert late < 3 * early


def test_a_loser_has_no_least_cost_nor_a_sum_of_costs() -> None:
    history = LinearRunHistory()
    lost = {"status": StatusType.TIMEOUT, "additional_info": {"end": "lost"}}
    history.add(CONFIGS[0], cost=0.01, seed=1, **lost)
    keys = history.get_instance_seed_budget_keys(CONFIGS[0])
    questions = (history.average_cost, history.min_cost, history.sum_cost)
    assert history.get_min_cost(CONFIGS[0]) == math.inf
    assert [ask(CONFIGS[0], keys) for ask in questions] == [math.inf] * 3
    history.add(CONFIGS[0], cost=3.0, status=StatusType.SUCCESS, seed=2)
    keys = history.get_instance_seed_budget_keys(CONFIGS[0])
    assert history.get_min_cost(CONFIGS[0]) == 3.0
    assert [ask(CONFIGS[0], keys) for ask in questions] == [3.0] * 3


def test_it_makes_the_directory_that_it_is_saved_in(tmp_path: Path) -> None:
    path = tmp_path / "new" / "deep" / "runhistory.json"
    filled(LinearRunHistory, [SUCCESS]).save(path)
    assert path.exists()
