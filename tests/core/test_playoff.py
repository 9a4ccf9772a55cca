"""The playoff and further epochs: the best mean wins, instances are fresh, budgets hold."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acband_configspace.benchmark import RuntimeTable, simulate
from acband_configspace.core.acband import acband
from acband_configspace.core.ends import End
from acband_configspace.core.paper_races import PaperRaces
from acband_configspace.core.race import Outcome, Race
from acband_configspace.core.rounds import playoff_rounds, playoff_trials
from acband_configspace.core.schedule import Schedule, Supply


@given(n_contestants=st.integers(1, 40), n_instances=st.integers(0, 500))
def test_steps_halve_the_contestants_and_use_every_instance(
    n_contestants: int, n_instances: int
) -> None:
    steps = playoff_rounds(n_contestants, n_instances)
    size = n_contestants
    for step in steps:
        assert (step.n_groups, step.group_size) == (1, size)
        assert step.races_per_group >= 1
        size = step.survivors
    if steps:
        assert size == 1
        assert sum(step.n_races for step in steps) == n_instances
        assert sum(step.n_trials for step in steps) <= playoff_trials(n_contestants, n_instances)
    else:
        assert n_contestants == 1 or n_instances < 6


def test_steps_cost_about_the_same() -> None:
    steps = playoff_rounds(7, 400)
    assert [(step.group_size, step.races_per_group) for step in steps] == [
        (7, 64),
        (4, 112),
        (2, 224),
    ]


def play(stream: PaperRaces, cost: Callable[[Race], Outcome]) -> list[Race]:
    races = []
    while isinstance(race := stream.ask(), Race):
        races.append(race)
        stream.tell(race, cost(race))
    return races


def test_the_best_mean_wins_the_playoff() -> None:
    """Later configurations win more races, but every tenth costs them dearly."""
    schedule = Schedule.plan(2000, n_candidates=30, playoff=200)

    def cost(race: Race) -> Outcome:
        if not race.to_the_end:
            return Outcome([-racer for racer in race.racers])
        dear = race.instance % 10 == 0
        costs = [1.0 + 100.0 * racer * dear for racer in race.racers]
        end = End.LOST if dear else End.FINISHED  # what losers cost counts with its value
        return Outcome(costs, [end] * len(costs))

    stream = PaperRaces(acband(schedule, np.random.default_rng(0)))
    races = play(stream, cost)
    assert stream.epoch_winners[-1] == schedule.n_configs
    assert stream.winner == 0  # θ_0 takes part, and never costs more than 1
    in_playoff = [race for race in races if race.to_the_end]
    assert {race.id.epoch for race in in_playoff} == {len(schedule.epochs) + 1}
    assert len(in_playoff) == schedule.set_aside == 200
    assert set(in_playoff[0].racers) == {0, *stream.epoch_winners}
    assert len({race.instance for race in races}) == len(races) == schedule.n_races


def test_an_instance_on_which_all_fail_does_not_decide() -> None:
    """Nor does who failed once lose to who fails often: the others' costs count as ever."""
    schedule = Schedule.plan(2000, n_candidates=30, playoff=200)

    def cost(race: Race) -> Outcome:
        if not race.to_the_end:
            return Outcome([-racer for racer in race.racers])
        if race.instance % 10 == 0:
            return Outcome([math.inf] * len(race.racers))
        return Outcome([float(racer) for racer in race.racers])

    stream = PaperRaces(acband(schedule, np.random.default_rng(0)))
    play(stream, cost)
    assert stream.winner == 0
    assert stream.epoch_winners[-1] != 0


def test_earlier_steps_count() -> None:
    """Two finalists: equal in the last step, apart in the first."""
    schedule = Schedule.plan(2000, n_candidates=30, playoff=200)
    first_step = []

    def cost(race: Race) -> Outcome:
        if not race.to_the_end:
            return Outcome([-racer for racer in race.racers])
        if race.id.round == 1:
            first_step.append(race)
            return Outcome(range(len(race.racers)))
        return Outcome([0.0] * len(race.racers))

    stream = PaperRaces(acband(schedule, np.random.default_rng(0)))
    play(stream, cost)
    assert stream.winner == first_step[0].racers[0]


def test_losers_run_to_the_end_where_every_cost_counts() -> None:
    schedule = Schedule.plan(50, n_candidates=3)
    for statistic, to_the_end in (("wins", False), ("mean", True)):
        rounds_ = acband(schedule, np.random.default_rng(0))
        race = PaperRaces(rounds_, statistic=statistic).ask()
        assert isinstance(race, Race)
        assert race.to_the_end is to_the_end


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 1000),
    k=st.integers(2, 9),
    n_trials=st.integers(10, 4000),
    playoff=st.sampled_from([0, 30, 400]),
    early_stopping=st.sampled_from([None, 0.0, 0.3]),
    spend=st.sampled_from(["nothing", "configurations"]),
    n_instances=st.sampled_from([None, 20, 150]),
)
def test_budgets_hold(
    seed: int,
    k: int,
    n_trials: int,
    playoff: int,
    early_stopping: float | None,
    spend: str,
    n_instances: int | None,
) -> None:
    schedule = Schedule.for_trials(
        n_trials,
        k=k,
        playoff=playoff,
        set_aside=early_stopping is None,
        supply=Supply(n_instances=n_instances, n_available=300),
    )
    rng = np.random.default_rng(seed)

    def cost(race: Race) -> Outcome:
        return Outcome(rng.exponential(1.0 + np.array(race.racers) % 7).tolist())

    rounds_ = acband(schedule, np.random.default_rng(seed), spend=spend)
    stream = PaperRaces(rounds_, early_stopping=early_stopping)
    races = play(stream, cost)
    if schedule.n_trials > n_trials:  # too few even for one race of two
        return
    assert sum(len(race.racers) for race in races) == stream.n_trials <= schedule.n_trials
    assert len(races) == stream.n_races <= schedule.n_races
    assert max((max(race.racers) for race in races), default=0) <= 300
    assert len({race.instance for race in races}) == len(races)
    groups: dict[tuple[int, ...], list[int]] = {}
    for race in races:
        # A playoff's steps follow each other on different instances.
        place = (0,) if race.to_the_end else race.id[:4]
        groups.setdefault(place, []).append(race.instance % (n_instances or 10**9))
    for instances in groups.values():
        assert len(set(instances)) == len(instances)


def test_an_early_decision_does_not_shift_later_instances() -> None:
    schedule = Schedule.plan(600, n_candidates=20)
    seen = []
    for early_stopping in (None, 0.0):
        rounds_ = acband(schedule, np.random.default_rng(1))
        races = play(
            PaperRaces(rounds_, early_stopping=early_stopping),
            lambda race: Outcome([-racer for racer in race.racers]),
        )
        seen.append({race: race.instance for race in races})
    assert seen[1].items() < seen[0].items()


def test_what_is_saved_buys_new_configurations() -> None:
    rng = np.random.default_rng(0)
    table = RuntimeTable(np.exp(rng.normal(0, 0.5, (200, 2000)) + np.arange(200)[:, None]), 1e90)
    returned, spent = (
        simulate(table, n_candidates=30, early_stopping=0.3, spend=spend, playoff=50)
        for spend in ("nothing", "configurations")
    )
    assert spent.n_configs > returned.n_configs
    assert returned.n_instances < spent.n_instances <= spent.n_instances_planned
    assert spent.epoch_winners[: len(returned.epoch_winners)] == returned.epoch_winners[:]
    assert spent.incumbent == min(spent.configurations)


def test_the_schedule_shows_its_playoff() -> None:
    aside = Schedule.plan(3000, playoff=400)
    assert aside.set_aside == 400
    assert "7 on 64, 4 on 112, 2 on 224 = 1,344 trials" in str(aside)
    assert aside.n_trials == sum(epoch.n_trials for epoch in aside.epochs) + 1344
    saved = Schedule.plan(3000, playoff=400, set_aside=False)
    assert saved.epochs == Schedule.plan(3000).epochs
    assert "playoff on up to 400 instances, as far as races were saved" in str(saved)
    assert Schedule.plan(400, playoff=400).set_aside == 100  # a quarter at most


def test_reuse_goes_beyond_the_table() -> None:
    rng = np.random.default_rng(0)
    table = RuntimeTable(rng.exponential(1.0, (30, 60)) + np.arange(30)[:, None], 40.0)
    with pytest.raises(ValueError, match="reuse=True uses instances again"):
        simulate(table, n_candidates=10, budget=600)
    result = simulate(
        table, n_candidates=10, budget=600, reuse=True, early_stopping=0.1, playoff=100
    )
    assert result.incumbent == min(result.configurations)
    assert len(result.instances) == 60


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"playoff": -1}, ValueError, "playoff must be at least 0 but got -1"),
        ({"playoff": 0.5}, TypeError, "playoff must be a whole number but got 0.5"),
        ({"spend": "all"}, ValueError, "spend must be one of 'nothing', 'configurations'"),
    ],
)
def test_bad_input(arguments: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        simulate(RuntimeTable(np.ones((9, 99)), 2.0), n_candidates=5, **arguments)
