"""The engine as a whole: order, budget, replay, and what it refuses."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from random import Random

import numpy as np
import pytest
from engine_helpers import (
    Played,
    Records,
    World,
    noisy,
    numbered,
    play,
    run_times,
    worlds,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from acband_configspace.core.acband import acband
from acband_configspace.core.ends import End
from acband_configspace.core.engine import Engine, Limits, Plan, ReplayError
from acband_configspace.core.instances import InstanceKey, Instances
from acband_configspace.core.paper_races import PaperRaces
from acband_configspace.core.passes import SchedulePlan
from acband_configspace.core.race import Outcome, Race, RaceId
from acband_configspace.core.settings import PRESETS, Settings


def result(played: Played) -> tuple[object, ...]:
    """Return what a run comes to: who leads, what was raced, and what came of it."""
    engine = played.engine
    races = sorted(played.races, key=lambda race: race.id)
    return engine.leader, engine.finished, engine.n_races, races, list(engine.plans)


# --- order --------------------------------------------------------------------------------------


@settings(max_examples=60)
@given(worlds(), st.sampled_from([2, 7, 1000]), st.randoms(use_true_random=False))
def test_neither_order_nor_number_of_races_at_once_changes_anything(
    world: World, at_once: int, rng: Random
) -> None:
    alone = play(world)
    assert result(play(world, at_once=at_once, pick=rng.randrange)) == result(alone)
    last_told_first = play(world, at_once=at_once, pick=lambda n: n - 1)
    assert result(last_told_first) == result(alone)


@settings(max_examples=10)
@given(st.integers(0, 1000), st.booleans(), st.randoms(use_true_random=False))
def test_nor_with_the_papers_schedule(seed: int, racing: bool, rng: Random) -> None:
    world = World(
        run_times(seed=seed), numbered(30), racing=racing, n_trials=600, seed=seed,
        settings=Settings(alpha=0.2, playoff=30, early_stopping=None),
    )  # fmt: skip
    assert result(play(world, at_once=9, pick=rng.randrange)) == result(play(world))


def test_seeds_make_a_difference() -> None:
    played = [play(World(noisy(), numbered(20), seed=seed)) for seed in (1, 1, 2)]
    assert result(played[0]) == result(played[1])
    assert result(played[0]) != result(played[2])


# --- budget -------------------------------------------------------------------------------------


@settings(max_examples=150)
@given(worlds())
def test_trials_are_not_exceeded_and_nothing_known_is_run_again(world: World) -> None:
    played = play(world)
    assert played.n_trials <= world.n_trials
    assert played.engine.finished is not None
    known: set[tuple[int, object]] = set()
    bounds: dict[tuple[int, object], float] = {}
    for race, (racers, outcome) in zip(played.races, played.records.values(), strict=True):
        assert len(set(racers)) == len(racers)
        limits = race.limits or (math.inf,) * len(racers)
        for racer, cost, end, limit in zip(
            racers, outcome.costs, outcome.ends, limits, strict=True
        ):
            run = (racer, played.engine.key(race.instance))
            assert run not in known
            assert limit > bounds.get(run, -1.0), "it would only lose again"
            if end is End.LOST:
                bounds[run] = cost
            else:
                known.add(run)


@pytest.mark.parametrize("racing", [False, True])
@pytest.mark.parametrize("n_instances", [None, 1, 2, 10, 20_000])
@pytest.mark.parametrize("deterministic", [False, True])
@pytest.mark.parametrize("n_trials", [2, 5, 50, 1000])
def test_all_trials_are_used_as_long_as_there_are_configurations(
    racing: bool, n_instances: int | None, deterministic: bool, n_trials: int
) -> None:
    cost = run_times() if racing else noisy()
    world = World(cost, numbered(n_instances), deterministic, None, racing, n_trials)
    played = play(world)
    assert played.n_trials == n_trials
    assert played.engine.finished == f"all n_trials={n_trials} trials are used"
    assert played.engine.leader is not None


@pytest.mark.parametrize("racing", [False, True])
@pytest.mark.parametrize("n_instances", [1, 2, 10, 20_000])
@pytest.mark.parametrize("n_in_space", [1, 2, 5, 67])
@pytest.mark.parametrize("n_trials", [2, 5, 50, 1000])
def test_a_small_space_with_a_pool_of_instances(
    racing: bool, n_instances: int, n_in_space: int, n_trials: int
) -> None:
    cost = run_times() if racing else noisy()
    world = World(cost, numbered(n_instances), True, n_in_space, racing, n_trials)
    played = play(world)
    engine = played.engine
    assert engine.n_entered <= n_in_space
    if engine.finished != f"all n_trials={n_trials} trials are used":
        assert engine.finished == (
            "every configuration of the space has raced: nothing is left to learn"
        )
        assert {racer for race in played.races for racer in race.racers} == set(range(n_in_space))
    if n_in_space > 1 and n_instances == 20_000:
        assert played.n_trials >= n_trials - 2  # not enough for all to meet once more
    if not racing and n_in_space > 1 and n_in_space * n_instances <= n_trials:
        assert played.n_trials > 0.5 * n_in_space * n_instances


@pytest.mark.parametrize("racing", [False, True])
@pytest.mark.parametrize("n_in_space", [2, 5, 67])
@pytest.mark.parametrize("n_instances", [None, 2])
def test_a_small_space_with_seeds_is_raced_until_the_trials_are_used(
    racing: bool, n_in_space: int | None, n_instances: int | None
) -> None:
    cost = run_times() if racing else noisy()
    played = play(World(cost, numbered(n_instances), False, n_in_space, racing, 700))
    assert played.n_trials >= 698


def test_a_space_of_one_configuration_is_no_reason_to_go_on() -> None:
    played = play(World(noisy(), numbered(100), n_in_space=1, n_trials=1000))
    assert played.engine.leader == 0
    assert played.n_trials == 1


@pytest.mark.parametrize("n_trials", [3, 30, 200])
def test_more_configurations_are_given_than_there_are_trials(n_trials: int) -> None:
    played = play(World(noisy(), numbered(5), n_trials=n_trials, n_given=100))
    assert played.n_trials == n_trials
    first_round = [race.racers for race in played.races if race.id[:3] == (1, 1, 1)]
    assert {racer for racers in first_round for racer in racers} == set(range(min(n_trials, 100)))


def test_without_a_limit_it_goes_on_in_longer_and_longer_passes() -> None:
    world = World(noisy(), numbered(50), n_trials=math.inf)
    engine = world.engine()
    played = play(world, engine, at_most=300)
    assert engine.finished is None
    assert [plan.n_trials for plan in engine.plans[:3]] == [25, 50, 100]
    assert len(played.records) == 300


def test_thousands_of_short_passes_are_no_problem() -> None:
    world = World(run_times(), numbered(1500), n_in_space=2, racing=True, n_trials=math.inf)
    played = play(replace(world, settings=Settings(first_pass=2)))
    assert played.engine.finished is not None
    assert played.engine.plans[-1].n_trials < 2**60


def test_the_run_can_be_ended_from_outside() -> None:
    world = World(noisy(), numbered(5))
    engine = world.engine()
    race = engine.ask()
    assert race is not None
    engine.finish("the time is up")
    assert engine.ask() is None
    assert engine.finished == "the time is up"
    engine.tell(race, world.run(engine, race))  # what still runs may be told
    assert engine.leader is not None


# --- replay -------------------------------------------------------------------------------------


def cut(world: World, played: Played, n: int) -> tuple[list[Plan], Records]:
    """Return the plans and records that there were after n races."""
    until = play(world, at_most=n)
    assert list(until.records) == list(played.records)[:n]
    return list(until.engine.plans), until.records


@settings(max_examples=60)
@given(worlds(), st.floats(0, 1), st.sampled_from([1, 5]))
def test_a_run_that_was_interrupted_goes_on_as_if_it_had_not_been(
    world: World, share: float, at_once: int
) -> None:
    through = play(world)
    n_told = round(share * len(through.records))
    plans, records = cut(world, through, n_told)
    engine = world.engine(plans=plans, recorded=records)
    rest = play(world, engine, at_once=at_once)
    assert {**records, **rest.records} == through.records
    assert not rest.records.keys() & records.keys()
    assert (engine.leader, engine.finished) == (through.engine.leader, through.engine.finished)
    assert engine.n_races == through.engine.n_races
    assert list(engine.plans) == list(through.engine.plans)


@settings(max_examples=60)
@given(worlds(), st.floats(0, 1), st.integers(1, 200))
def test_raising_n_trials_goes_on_where_the_run_ended(
    world: World, share: float, more: int
) -> None:
    first = play(world)
    plans = list(first.engine.plans)
    raised = replace(world, n_trials=world.n_trials + more)
    second = play(raised, raised.engine(plans=plans, recorded=first.records))
    assert first.n_trials + second.n_trials <= raised.n_trials
    if world.n_in_space is None:
        assert first.n_trials + second.n_trials == raised.n_trials
    # And what was interrupted after that goes on in the same way.
    everything = {**first.records, **second.records}
    n_told = len(first.records) + round(share * len(second.records))
    some = dict(list(everything.items())[:n_told])
    third = play(raised, raised.engine(plans=list(second.engine.plans), recorded=some))
    assert {**some, **third.records} == everything
    assert third.engine.leader == second.engine.leader


@pytest.mark.parametrize("n_told", [26, 27, 28])
def test_a_limit_that_was_raised_and_lowered_again_loses_no_race(n_told: int) -> None:
    """Passes overlap, and those begun under the first limit end under the second without others."""
    world = World(run_times(seed=11), numbered(50), racing=True, n_trials=90, seed=11)
    first = play(world, at_once=4, at_most=n_told)
    plans = list(first.engine.plans)
    engine = world.engine(n_trials=180, n_changes=1, plans=plans, recorded=first.records)
    second = play(world, engine, at_once=4, at_most=15)
    records = {**first.records, **second.records}
    third = world.engine(n_changes=2, plans=list(second.engine.plans), recorded=records)
    while third.ask() is not None:  # what is not recorded would be run
        pass
    assert third.n_races == len(records)


@pytest.mark.parametrize("racing", [False, True])
def test_a_pass_of_the_papers_schedule_is_replayed_too(racing: bool) -> None:
    settings_ = Settings(alpha=0.3, playoff=20)
    world = World(run_times(), numbered(40), True, None, racing, 300, settings_)
    through = play(world)
    plans, records = cut(world, through, len(through.records) // 2)
    rest = play(world, world.engine(plans=plans, recorded=records))
    assert {**records, **rest.records} == through.records
    assert rest.engine.leader == through.engine.leader
    raised = replace(world, n_trials=900)
    more = play(raised, raised.engine(plans=through.engine.plans, recorded=through.records))
    assert more.races
    assert {race.id.pass_number for race in more.races} == {2}


def test_who_leads_does_not_depend_on_which_race_was_over_first() -> None:
    """θ_0 fails, and as many others have finished as often."""

    def cost(configuration: int, key: InstanceKey) -> float:
        return math.inf if configuration == 0 else 1.0 + configuration

    world = World(cost, numbered(40), racing=True, n_trials=300, settings=Settings(alpha=0.3))
    leaders = set()
    for last in (False, True):
        engine = world.engine()
        races = [race for _ in range(3) if (race := engine.ask()) is not None]
        for race in reversed(races) if last else races:
            engine.tell(race, world.run(engine, race))
        leaders.add(engine.leader)
    assert len(leaders) == 1
    assert leaders != {None}


def test_a_record_of_other_racers_is_refused() -> None:
    world = World(noisy(), numbered(5))
    played = play(world)
    place, (racers, outcome) = next(iter(played.records.items()))
    wrong = {place: (racers[::-1], outcome)}
    with pytest.raises(ReplayError, match=r"racers of race 1.1.1.0.0: \(7, 6, .* before, \(0, 1"):
        world.engine(plans=played.engine.plans, recorded=wrong).ask()


# --- asking and telling -------------------------------------------------------------------------


def test_wrong_outcomes_are_refused_and_change_nothing() -> None:
    world = World(noisy(), numbered(5))
    engine = world.engine()
    race = engine.ask()
    assert race is not None
    with pytest.raises(ValueError, match="must have 8 costs but got"):
        engine.tell(race, Outcome([1.0]))
    other = replace(race, racers=race.racers[::-1])
    for wrong in (other, replace(race, id=RaceId(9, 1, 1, 0, 0))):
        with pytest.raises(ValueError, match="must be told once, of a race that was handed out"):
            engine.tell(wrong, Outcome([1.0] * 8))
    assert engine.needs(race)
    engine.tell(race, world.run(engine, race))
    assert not engine.needs(race)
    with pytest.raises(ValueError, match="must be told once"):
        engine.tell(race, world.run(engine, race))
    assert result(play(world, engine))[0] == result(play(world))[0]


@pytest.mark.parametrize("preset", ["default", "paper"])
def test_races_that_are_given_back_come_again_in_their_turn(preset: str) -> None:
    """A run that is resumed asks for all there is to be run before it runs any of it."""
    world = World(
        run_times(), numbered(40), racing=True, n_trials=3000,
        settings=replace(PRESETS[preset], k=2),
    )  # fmt: skip
    usual, resumed = world.engine(), world.engine()
    for _ in range(300):
        for engine in (usual, resumed):
            race = engine.ask()
            assert race is not None
            engine.tell(race, world.run(engine, race))
    waiting = list(iter(resumed.ask, None))
    if preset == "default":
        assert len({race.id.pass_number for race in waiting}) > 1
    resumed.give_back(waiting)
    assert not any(resumed.needs(race) for race in waiting)
    for _ in range(300):
        race = usual.ask()
        assert race is not None
        assert resumed.ask() == race
        for engine in (usual, resumed):
            engine.tell(race, world.run(engine, race))
    assert result(play(world, resumed))[0] == result(play(world, usual))[0]


def test_it_waits_for_the_outcomes_of_a_round() -> None:
    world = World(noisy(), numbered(5), settings=Settings(k=2))
    engine = world.engine()
    handed_out = []
    while (race := engine.ask()) is not None:
        handed_out.append(race)
    assert engine.finished is None
    assert [race.racers for race in handed_out] == [(0, 1)], "is this instance of any use?"
    engine.tell(handed_out[0], world.run(engine, handed_out[0]))
    handed_out = []
    while (race := engine.ask()) is not None:
        handed_out.append(race)
    n_entrants = engine.plans[0].n_entrants
    assert [race.racers[0] for race in handed_out] == list(range(2, n_entrants, 2))
    assert len({race.instance for race in handed_out}) == 1
    for race in handed_out:
        engine.tell(race, world.run(engine, race))
    assert engine.ask() is not None


def test_the_position_moves_on() -> None:
    world = World(noisy(), numbered(50), n_trials=500)
    engine = world.engine()
    seen = []
    while (race := engine.ask()) is not None:
        position = engine.position
        assert 0.0 <= position.share <= 1.0
        assert (position.pass_number, position.epoch, position.round) == race.id[:3]
        assert position.is_playoff == (race.id.round > 1)
        seen.append(position)
        engine.tell(race, world.run(engine, race))
    assert seen[-1].pass_number == len(engine.plans) > 1
    assert engine.epoch_winners


# --- the paper's schedule -----------------------------------------------------------------------


def test_the_papers_preset_is_the_papers_algorithm() -> None:
    """The engine adds nothing to the stream of races of Algorithm 3."""
    world = World(run_times(), None, False, None, True, 2000, PRESETS["paper"], seed=4)
    played = play(world)
    (plan,) = played.engine.plans
    assert isinstance(plan, SchedulePlan)
    assert plan.schedule.n_configs == 60
    assert played.n_trials == plan.schedule.n_trials <= 2000
    stream = PaperRaces(acband(plan.schedule, np.random.default_rng([4, 2])))
    races = []
    while isinstance(race := stream.ask(), Race):
        races.append(race)
        stream.tell(race, world.run(played.engine, race))
    assert races == played.races
    assert stream.winner == played.engine.leader
    assert played.engine.epoch_winners == [stream.epoch_winners]
    assert played.engine.finished == "all planned races are judged"
    assert stream.winner is not None
    assert played.engine.costs(stream.winner)


@pytest.mark.parametrize("n_instances", [None, 30])
@pytest.mark.parametrize("chosen", [Settings(alpha=0.5), PRESETS["paper"]])
def test_under_a_time_limit_the_papers_schedule_is_repeated_in_passes_that_double(
    chosen: Settings, n_instances: int | None
) -> None:
    """Also where α asks for more than a short first pass has."""
    world = World(run_times(), numbered(n_instances), racing=True, settings=chosen)
    engine = Engine(
        chosen,
        racing=True,
        instances=Instances(world.names, deterministic=False, seed=0),
        draw=lambda n, known: n,
        limits=Limits(timed=True),
    )
    play(world, engine, at_most=5000)
    schedules = [plan.schedule for plan in engine.plans if isinstance(plan, SchedulePlan)]
    assert schedules[0].n_trials < 1000
    assert len(schedules) > 2
    assert schedules[1].n_trials > 1.5 * schedules[0].n_trials
    assert len({schedule.n_candidates for schedule in schedules}) == 1
    assert engine.finished is None
    assert engine.leader is not None


def test_the_papers_schedule_asks_a_small_space_for_no_more_than_it_has() -> None:
    world = World(noisy(), None, False, 5, n_trials=100, settings=PRESETS["paper"])
    played = play(world)
    assert played.engine.leader is not None
    assert {racer for race in played.races for racer in race.racers} == set(range(5))


def test_also_if_conditions_leave_fewer_than_it_seems() -> None:
    engine = Engine(
        PRESETS["paper"],
        racing=False,
        instances=Instances(None, deterministic=False, seed=0),
        draw=lambda n, known: min(n, 5),
        limits=Limits(n_trials=100),
        n_in_space=64,
    )
    (plan,) = engine.plans
    assert isinstance(plan, SchedulePlan)
    assert plan.schedule.n_configs == 4


def test_nor_do_further_epochs() -> None:
    """Long groups that are decided after a few races save more than ten trials of eleven."""
    settings = Settings(n_candidates=5, early_stopping=0.1, spend="configurations", playoff=0)
    world = World(lambda number, key: number, None, False, 100, False, 2000, settings)
    played = play(world)
    assert len(played.engine.epoch_winners[0]) > len(played.engine.plans[0].schedule.epochs)
    assert max(racer for race in played.races for racer in race.racers) < 100


def test_a_playoff_takes_place_also_where_most_results_are_known() -> None:
    """On 30 instances the 61 configurations of these epochs have 1,830 results, not 3,600."""
    settings = Settings(alpha=0.05, early_stopping=None)
    played = play(World(noisy(), numbered(30), n_trials=2500, settings=settings))
    (plan,) = played.engine.plans
    assert isinstance(plan, SchedulePlan)
    assert plan.schedule.set_aside > 0
    assert plan.schedule.n_trials < plan.schedule.n_racers
    assert any(race.to_the_end for race in played.races)


@pytest.mark.parametrize("seed", range(20))
def test_who_leads_the_papers_schedule_does_not_depend_on_races_that_came_too_late(
    seed: int,
) -> None:
    """Of the first two one decides the group; the other finishes later on; and all else fails."""
    chosen = Settings(n_candidates=3, early_stopping=0.0, playoff=0)
    world = World(noisy(), None, False, n_trials=100, settings=chosen, seed=seed)
    engine = world.engine()
    first = engine.ask()
    (plan,) = engine.plans
    assert isinstance(plan, SchedulePlan)
    n_races = plan.schedule.epochs[0].rounds[0].races_per_group
    keys = [engine.key(instance) for instance in range(n_races)]
    deciding, too_late = keys[: n_races // 2 + 1], keys[n_races // 2 + 1 :]

    def cost(configuration: int, key: InstanceKey) -> float:
        of_first = configuration == first.racers[0] and key in deciding
        of_second = configuration == first.racers[1] and key in too_late
        return 1.0 if of_first or of_second else math.inf

    world = replace(world, cost=cost)
    last_told_first = play(world, at_once=1000, pick=lambda n: n - 1)
    assert last_told_first.engine.leader == play(world).engine.leader is not None


def test_the_papers_leader_is_no_configuration_that_only_failed() -> None:
    world = World(lambda configuration, key: math.inf, numbered(9), settings=Settings(alpha=0.3))
    assert play(world).engine.leader is None


def test_the_papers_schedule_needs_two_configurations() -> None:
    with pytest.raises(ValueError, match="at least two configurations to choose from but has one"):
        World(noisy(), n_in_space=1, settings=PRESETS["paper"], n_trials=1000).engine()


@settings(max_examples=100)
@given(worlds())
def test_a_lower_limit_leaves_what_was_raced_as_it_is(world: World) -> None:
    played = play(world)
    n_trials = max(2, int(world.n_trials) // 2)
    again = world.engine(n_trials=n_trials, plans=played.engine.plans, recorded=played.records)
    assert again.ask() is None
    assert again.n_races == played.engine.n_races
    assert again.leader == played.engine.leader


def test_costs_are_known_of_what_was_not_stopped() -> None:
    world = World(run_times(), numbered(10), racing=True, n_trials=200)
    played = play(world)
    told: Counter[int] = Counter()
    for racers, outcome in played.records.values():
        told.update(r for r, end in zip(racers, outcome.ends, strict=True) if end is not End.LOST)
    for racer, n in told.items():
        assert len(played.engine.costs(racer)) == n
