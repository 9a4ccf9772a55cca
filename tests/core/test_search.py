"""The default search: who leads, what a race credits, and special cases that are none."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from engine_helpers import World, failing, noisy, numbered, play, run_times, worlds
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import spearmanr

from acband_configspace.core.ends import End
from acband_configspace.core.engine import Engine, Limits
from acband_configspace.core.instances import InstanceKey, Instances
from acband_configspace.core.race import Outcome, Race
from acband_configspace.core.search_plan import (
    MOST_LISTED,
    KnownBest,
    PassPlan,
    plan_pass,
    search_schedule,
)
from acband_configspace.core.settings import Settings

INF = math.inf


def failures_and_cost(costs: list[float]) -> tuple[int, float]:
    finite = [cost for cost in costs if math.isfinite(cost)]
    return len(costs) - len(finite), math.fsum(finite)


# --- who leads ----------------------------------------------------------------------------------


@settings(max_examples=150)
@given(worlds(racing=False))
def test_the_leader_is_never_worse_on_what_is_known_than_the_one_before(world: World) -> None:
    engine = world.engine()
    before: int | None = None
    while (race := engine.ask()) is not None:
        engine.tell(race, world.run(engine, race))
        if engine.leader is None:
            assert before is None
            continue
        new = engine.costs(engine.leader)
        assert any(math.isfinite(cost) for cost in new.values()), "it only failed"
        if before not in (None, engine.leader):
            old = engine.costs(before)
            common = [instance for instance in new if instance in old]
            assert common
            new_total = failures_and_cost([new[instance] for instance in common])
            old_total = failures_and_cost([old[instance] for instance in common])
            assert new_total <= (old_total[0], old_total[1] + 1e-9)
        before = engine.leader


@pytest.mark.parametrize("seed", range(4))
def test_who_leads_by_a_single_instance_is_not_left_alone(seed: int) -> None:
    """The second pass begins where the champion did badly; newcomers are good there and only there.

    Who leads after that must meet all that the champion has met, and is beaten.
    """
    plain = noisy(noise=0.1, seed=seed)
    settings = Settings(first_pass=50)
    world = World(plain, numbered(30), n_trials=400, settings=settings, seed=seed)
    second = next(race for race in play(world).races if race.id.pass_number == 2)
    bad, first_newcomer = world.engine().key(second.instance), min(second.racers)

    def cost(configuration: int, key: InstanceKey) -> float:
        is_new = configuration >= first_newcomer
        if key == bad:
            return plain(configuration, key) + (0.0 if is_new else 10.0)
        return plain(configuration, key) + (2.0 if is_new else 0.0)

    engine, n_passes = replace(world, cost=cost).engine(), 1
    while (race := engine.ask()) is not None:
        if race.id.pass_number > n_passes:
            n_passes = race.id.pass_number
            (champion,) = engine.epoch_winners[-1]
            assert engine.leader is not None
            assert set(engine.costs(champion)) <= set(engine.costs(engine.leader))
        engine.tell(race, replace(world, cost=cost).run(engine, race))
    assert n_passes > 2


@settings(max_examples=100)
@given(worlds(racing=True))
def test_nor_where_losers_are_stopped(world: World) -> None:
    """There a leader may also have been stopped: then its cost is at least what it exceeds."""
    engine = world.engine()
    before = None
    at_least: dict[int, dict[InstanceKey, float]] = {}
    while (race := engine.ask()) is not None:
        outcome = world.run(engine, race)
        engine.tell(race, outcome)
        for racer, cost in zip(race.racers, outcome.costs, strict=True):
            bounds = at_least.setdefault(racer, {})
            key = engine.key(race.instance)
            bounds[key] = max(cost, bounds.get(key, -INF))
        if before is not None and engine.leader != before:
            assert engine.leader is not None
            new = engine.costs(engine.leader)
            common = [instance for instance in new if instance in at_least[before]]
            assert common
            lost_to = math.fsum(at_least[before][instance] for instance in common)
            assert math.fsum(new[instance] for instance in common) <= lost_to + 1e-9
        before = engine.leader


@settings(max_examples=100)
@given(worlds())
def test_who_leads_in_the_end_has_finished(world: World) -> None:
    played = play(world)
    finished = {
        racer
        for racers, outcome in played.records.values()
        for racer, cost, end in zip(racers, outcome.costs, outcome.ends, strict=True)
        if end is End.FINISHED and math.isfinite(cost)
    }
    leader = played.engine.leader
    assert (leader in finished) if finished else (leader is None)


@pytest.mark.parametrize("racing", [False, True])
def test_the_default_leads_until_it_is_beaten(racing: bool) -> None:
    """The default costs 5 everywhere, and one other configuration in twenty is better."""

    def cost(configuration: int, key: InstanceKey) -> float:
        if configuration == 0:
            return 5.0
        return 1.0 if configuration % 20 == 13 else 10.0 + configuration / 100

    world = World(cost, numbered(10), racing=racing, settings=Settings(k=4, first_pass=50))
    played = play(world)
    leaders = dict.fromkeys(played.leaders)
    assert list(leaders) == [0, 13]
    n_before = played.leaders.index(13)
    assert 13 in played.races[n_before].racers, "from the race on in which it was beaten"


def test_the_best_is_found_where_nothing_is_random() -> None:
    cost = noisy(noise=0.0)
    played = play(World(cost, numbered(5), n_in_space=67, n_trials=600))
    key = played.engine.key(0)
    assert played.engine.leader == min(range(67), key=lambda c: cost(c, key))


def test_a_clear_winner_is_found_among_noise() -> None:
    cost = noisy(noise=1.0, spread=0.3)

    def with_one_good(configuration: int, key: InstanceKey) -> float:
        return cost(configuration, key) - 3.0 * (configuration == 40)

    for seed in range(5):
        world = World(with_one_good, numbered(30), n_in_space=100, n_trials=600, seed=seed)
        assert play(world).engine.leader == 40


# --- what a race credits ------------------------------------------------------------------------


@settings(max_examples=100)
@given(worlds(racing=True))
def test_limits_say_who_has_no_chance(world: World) -> None:
    played = play(world)
    for race, (_, outcome) in zip(played.races, played.records.values(), strict=True):
        if race.limits is None:
            continue
        assert len(race.limits) == len(race.racers)
        assert any(math.isfinite(limit) for limit in race.limits)
        assert all(limit >= 0.0 for limit in race.limits)
        for cost, end, limit in zip(outcome.costs, outcome.ends, race.limits, strict=True):
            assert end is not End.FINISHED or cost <= limit


@given(worlds(racing=False))
def test_without_racing_there_are_no_limits(world: World) -> None:
    for race in play(world).races:
        assert race.to_the_end
        assert race.limits is None


def survivors(world: World) -> set[int]:
    """Return who raced after the first round of the first pass."""
    later = [race for race in play(world).races if race.id.pass_number == 1 < race.id.round]
    return {racer for race in later for racer in race.racers}


def first_pass(cost: dict[int, float]) -> World:
    """Return a world of eight racing in groups of four, with these times on every instance."""
    return World(
        lambda configuration, key: cost.get(configuration, 50.0),
        numbered(5),
        racing=True,
        n_in_space=8,
        n_given=8,
        n_trials=11,
        settings=Settings(k=4),
    )


def test_only_the_quickest_winner_goes_on_to_be_the_first_champion() -> None:
    assert survivors(first_pass({1: 3.0, 2: 4.0, 6: 3.5, 7: 4.0})) == {1}


def test_who_challenges_the_champion_has_won_its_group_and_was_quicker() -> None:
    world = World(run_times(), numbered(20), racing=True, n_trials=400)
    engine = world.engine()
    challengers: set[int] = set()
    champion, n_challenges = -1, 0
    while (race := engine.ask()) is not None:
        outcome = world.run(engine, race)
        if race.id.pass_number > 1 and race.id.round == 1:
            (champion,) = engine.epoch_winners[-1]
            if End.FINISHED in outcome.ends:  # nobody may take longer than the champion
                challengers.add(race.racers[outcome.ends.index(End.FINISHED)])
        elif race.id.pass_number > 1:
            assert set(race.racers) <= {champion, *challengers}
            n_challenges += champion not in race.racers
        engine.tell(race, outcome)
    assert n_challenges > 20


def test_a_tie_credits_nobody() -> None:
    assert survivors(first_pass({1: 3.0, 2: 3.0, 6: 2.5})) == {6}
    # Somebody must go on if there are nothing but ties: the first to have led.
    assert survivors(first_pass({1: 3.0, 2: 3.0, 6: 2.5, 7: 2.5})) == {6}


def test_a_tie_does_not_lose_the_lead_to_a_slower_one() -> None:
    played = play(first_pass({1: 3.0, 2: 3.0, 6: 4.0}))
    assert played.leaders[0] == 1
    assert 6 not in played.leaders
    assert played.engine.epoch_winners[-1] == (1,)


def test_a_race_that_nobody_finishes_credits_nobody() -> None:
    nobody = dict.fromkeys(range(4), 200.0)
    assert survivors(first_pass({**nobody, 5: 3.0})) == {5}


def test_who_led_in_a_challenge_that_failed_leads_no_longer() -> None:
    """Challengers are quicker on two of three instances, and far slower on the third."""

    def cost(configuration: int, key: InstanceKey) -> float:
        if configuration == 0:
            return 2.0
        slow = key.instance == "instance 2" or configuration < 8
        return 9.0 if slow else 1.9 + configuration / 1e4  # no ties

    n_challengers_led = 0
    for seed in range(20):
        world = World(cost, numbered(3), racing=True, n_trials=10_000, seed=seed)
        engine = world.engine()
        for _ in range(100):  # long before the trials are used up, and a challenge is cut short
            race = engine.ask()
            assert race is not None
            if race.id.pass_number > 1 and race.id.round == 1:
                assert engine.leader == 0
            engine.tell(race, world.run(engine, race))
            n_challengers_led += engine.leader != 0
    assert n_challengers_led > 20


def test_newcomers_are_stopped_at_the_time_of_the_champion() -> None:
    """Of the one that was champion when the pass began: passes overlap."""
    world = World(run_times(), numbered(20), racing=True, n_trials=400)
    engine = world.engine()
    n_limited = n_alone = 0
    champions: dict[int, int] = {}
    while (race := engine.ask()) is not None:
        if race.id.pass_number > 1 and race.id.round == 1:
            champion = champions[race.id.pass_number]
            if race.racers == (champion,):
                n_alone += 1
                assert race.limits is None
            else:
                limit = engine.costs(champion)[engine.key(race.instance)]
                assert race.limits == pytest.approx([limit] * len(race.racers))
                n_limited += 1
        engine.tell(race, world.run(engine, race))
        for plan in engine.plans[len(champions) + 1 :]:
            (champions[plan.number],) = engine.epoch_winners[-1]
    assert n_limited > 20
    assert n_alone > 15  # it meets all others of the 20 instances meanwhile


def test_the_rounds_of_a_pass_are_numbered_without_gaps() -> None:
    rounds: dict[int, set[int]] = {}
    for race in play(World(run_times(), numbered(20), racing=True, n_trials=400)).races:
        rounds.setdefault(race.id.pass_number, set()).add(race.id.round)
    assert any(len(numbers) > 2 for number, numbers in rounds.items() if number > 1)
    assert all(numbers == set(range(1, len(numbers) + 1)) for numbers in rounds.values())


def test_while_a_challenge_is_open_others_race() -> None:
    """Or workers would wait for the last race of each round."""
    world = World(run_times(), numbered(50), racing=True, n_trials=INF)
    engine = world.engine()
    while (race := engine.ask()) is not None and race.id[:3] < (10, 1, 2):
        engine.tell(race, world.run(engine, race))
    assert race is not None
    held_back, leader, later = race, engine.leader, []
    while (race := engine.ask()) is not None:
        engine.tell(race, world.run(engine, race))
        later.append(race)
    groups = [race for race in later if race.id.pass_number > held_back.id.pass_number]
    assert len(groups) > 10
    assert {race.id.round for race in groups} == {1}
    assert engine.leader == leader, "they are judged when the challenge is over"
    engine.tell(held_back, world.run(engine, held_back))
    assert engine.ask() is not None


@settings(max_examples=100)
@given(worlds(racing=True), st.integers(2, 30), st.randoms(use_true_random=False))
def test_nobody_meets_an_instance_in_two_races_at_a_time(
    world: World, at_once: int, rng: random.Random
) -> None:
    engine = world.engine()
    running: list[Race] = []
    while True:
        while len(running) < at_once and (race := engine.ask()) is not None:
            running.append(race)
        pairs = [(racer, race.instance) for race in running for racer in race.racers]
        assert len(set(pairs)) == len(pairs)
        if not running:
            break
        race = running.pop(rng.randrange(len(running)))
        engine.tell(race, world.run(engine, race))


# --- failures -----------------------------------------------------------------------------------


@pytest.mark.parametrize("racing", [False, True])
@pytest.mark.parametrize("deterministic", [False, True])
@pytest.mark.parametrize("n_in_space", [1, 5, None])
@pytest.mark.parametrize("n_instances", [None, 7])
def test_if_all_runs_fail_nobody_leads(
    racing: bool, deterministic: bool, n_in_space: int | None, n_instances: int | None
) -> None:
    def cost(configuration: int, key: InstanceKey) -> float:
        return INF

    world = World(cost, numbered(n_instances), deterministic, n_in_space, racing, 200)
    played = play(world)
    assert played.engine.finished is not None
    assert played.engine.leader is None
    assert set(played.leaders) == {None}
    if n_in_space is None:
        assert played.n_trials == 200


class Crashing(World):
    """Every run fails, at a finite cost."""

    def run(self, engine: Engine, race: Race) -> Outcome:
        return Outcome([3.0] * len(race.racers), [End.CRASHED] * len(race.racers))


@pytest.mark.parametrize("racing", [False, True])
def test_a_failure_that_has_a_cost_is_a_failure(racing: bool) -> None:
    assert play(Crashing(noisy(), numbered(5), racing=racing)).engine.leader is None


@pytest.mark.parametrize("racing", [False, True])
@pytest.mark.parametrize("bad", range(6))
def test_an_instance_on_which_everybody_fails_does_no_harm(racing: bool, bad: int) -> None:
    cost = run_times(seed=5, noise=0.3) if racing else noisy(seed=5, noise=0.3)

    def with_bad_instance(configuration: int, key: InstanceKey) -> float:
        return INF if key.instance == f"instance {bad}" else cost(configuration, key)

    played = play(World(with_bad_instance, numbered(6), racing=racing, n_trials=500))
    engine = played.engine
    good = [engine.key(i) for i in range(6) if engine.key(i).instance != f"instance {bad}"]
    means = [sum(cost(c, key) for key in good) for c in range(engine.n_entered)]
    assert engine.leader is not None
    assert sorted(means).index(means[engine.leader]) <= 0.03 * len(means)


@pytest.mark.parametrize("everywhere", [INF, 1.0])
def test_an_instance_that_tells_nothing_is_not_what_a_pass_starts_on(everywhere: float) -> None:
    """All fail there, or cost the same; the first one is such an instance, and every third."""
    cost = noisy(noise=0.1)

    def tells_nothing(key: InstanceKey) -> bool:
        return int(str(key.instance).split()[1]) % 3 == 0

    def cost_on(configuration: int, key: InstanceKey) -> float:
        return everywhere if tells_nothing(key) else cost(configuration, key)

    for seed in range(6):
        played = play(World(cost_on, numbered(30), n_trials=1000, seed=seed))
        key = played.engine.key
        vain = sum(
            len(r.racers)
            for r in played.races
            if r.id.round == 1 and tells_nothing(key(r.instance))
        )
        assert vain < 0.45 * sum(len(r.racers) for r in played.races if r.id.round == 1)
        assert played.engine.leader is not None
        values = [cost(c, InstanceKey("instance 1", 0)) for c in range(played.engine.n_entered)]
        assert sorted(values).index(values[played.engine.leader]) < 0.05 * len(values)


@pytest.mark.parametrize("racing", [False, True])
@pytest.mark.parametrize("n_met", [0, 3, 30])
def test_what_is_known_beforehand_takes_no_trials(n_met: int, racing: bool) -> None:
    """Whatever the races make use of: of 20 configurations, on so many instances."""
    cost = run_times() if racing else noisy()
    engine = Engine(
        Settings(),
        racing=racing,
        instances=Instances(numbered(30), deterministic=True, seed=0),
        draw=lambda n, known: n,
        limits=Limits(200),
        n_given=20,
    )
    n_run = 0
    while (race := engine.ask()) is not None:
        n_known = sum(racer < 20 for racer in race.racers) if race.instance < n_met else 0
        n_run += len(race.racers) - n_known
        costs = [cost(racer, engine.key(race.instance)) for racer in race.racers]
        engine.tell(race, Outcome(costs, n_known=n_known))
    assert n_run == 200
    assert engine.finished == "all n_trials=200 trials are used"


def test_who_fails_less_often_leads() -> None:
    """Half of the configurations fail on every third instance, and are cheaper elsewhere."""
    cost = noisy(noise=0.1)

    def cost_or_failure(configuration: int, key: InstanceKey) -> float:
        if configuration % 2:
            return cost(configuration, key) + 10.0
        return INF if int(str(key.instance).split()[1]) % 3 == 0 else cost(configuration, key)

    for seed in range(4):
        played = play(World(cost_or_failure, numbered(30), n_trials=1500, seed=seed))
        assert played.engine.leader is not None
        assert played.engine.leader % 2


# --- special cases ------------------------------------------------------------------------------


def same_for_all_seeds(configuration: int, key: InstanceKey) -> float:
    return random.Random(configuration).random()


@pytest.mark.parametrize("n_trials", [30, 100, 1000])
@pytest.mark.parametrize("names", [None, ["the only one"]])
def test_costs_that_do_not_depend_on_seeds_are_noticed(
    n_trials: int, names: list[str] | None
) -> None:
    world = World(same_for_all_seeds, names, deterministic=False, n_trials=n_trials)
    played = play(world)
    engine = played.engine
    assert played.n_trials == n_trials
    key = engine.key(0)
    best = min(range(engine.n_entered), key=lambda c: same_for_all_seeds(c, key))
    assert engine.leader == best
    # Once it is noticed every trial is a new configuration: what came before is a few repeats.
    assert engine.n_entered >= n_trials - 12
    later = [racer for race in played.races if race.id.group for racer in race.racers]
    assert len(set(later)) == len(later)


def test_but_costs_that_do_are_not_mistaken_for_it() -> None:
    def heads_or_tails(configuration: int, key: InstanceKey) -> float:
        return float(random.Random(f"{configuration} {key.seed}").random() < 0.5)

    for seed in range(10):
        world = World(heads_or_tails, deterministic=False, n_trials=300, seed=seed)
        assert play(world).engine.n_entered < 290


@pytest.mark.parametrize("k", [2, None])
def test_steady_configurations_do_not_show_that_seeds_do_not_matter(k: int | None) -> None:
    """Those that are left in the end are the steady ones; others must not win by one lucky seed."""

    def steady_or_not(configuration: int, key: InstanceKey) -> float:
        drawn = random.Random(f"{configuration} {key.seed}").randrange(42, 61)
        return 43.0 if configuration % 2 else float(drawn)

    for seed in range(10):
        world = World(
            steady_or_not, deterministic=False, n_trials=300, settings=Settings(k=k), seed=seed
        )
        leader = play(world).engine.leader
        assert leader is not None
        assert leader % 2


def test_it_is_noticed_in_a_later_pass_if_the_first_ones_are_all_equal() -> None:
    def equal_at_first(configuration: int, key: InstanceKey) -> float:
        return 1.0 if configuration < 8 else same_for_all_seeds(configuration, key)

    world = World(equal_at_first, deterministic=False, n_trials=1000)
    assert play(world).engine.n_entered > 900


def test_failures_do_not_show_it() -> None:
    def one_of_eight(configuration: int, key: InstanceKey) -> float:
        if configuration % 8 != 7:
            return math.inf
        return float(random.Random(f"{configuration} {key.seed}").random() < 0.5)

    for seed in range(20):
        world = World(one_of_eight, deterministic=False, n_trials=300, seed=seed)
        assert play(world).engine.n_entered < 270


@pytest.mark.parametrize("proposals", ["uniform", "learned"])
def test_few_configurations_are_repeated_more_often(proposals: str) -> None:
    settings = Settings(proposals=proposals)
    world = World(same_for_all_seeds, deterministic=False, n_trials=60, settings=settings)
    assert play(world).engine.n_entered >= 60 - 12


@pytest.mark.parametrize("racing", [False, True])
def test_on_a_single_instance_the_lowest_cost_leads_at_any_time(racing: bool) -> None:
    for seed in range(5):
        cost = run_times(seed=seed)
        world = World(cost, numbered(1), racing=racing, n_trials=200)
        engine, best = world.engine(), math.inf
        key = engine.key(0)
        while (race := engine.ask()) is not None:
            engine.tell(race, world.run(engine, race))
            best = min(best, *(cost(racer, key) for racer in race.racers))
            assert engine.leader is not None
            assert cost(engine.leader, key) == best


def test_a_deterministic_target_without_instances_has_every_trial_for_a_new_configuration() -> None:
    played = play(World(same_for_all_seeds, n_trials=300))
    assert played.engine.n_entered == 300
    key = played.engine.key(0)
    assert played.engine.leader == min(range(300), key=lambda c: same_for_all_seeds(c, key))


@pytest.mark.parametrize("racing", [False, True])
@pytest.mark.parametrize("k", [2, 8, 500])
def test_more_racers_than_configurations(racing: bool, k: int) -> None:
    cost = run_times() if racing else noisy()
    world = World(cost, numbered(4), n_in_space=3, racing=racing, settings=Settings(k=k))
    played = play(world)
    assert {racer for race in played.races for racer in race.racers} == {0, 1, 2}
    assert all(len(race.racers) <= 3 for race in played.races)


@pytest.mark.parametrize("racing", [False, True])
@pytest.mark.parametrize("constant", [0.0, 1.0])
def test_if_all_costs_are_the_same_the_first_leads(racing: bool, constant: float) -> None:
    def cost(configuration: int, key: InstanceKey) -> float:
        return constant

    for n_in_space in (5, None):
        world = World(cost, numbered(5), n_in_space=n_in_space, racing=racing)
        assert set(play(world).leaders) == {0}


def test_times_of_zero_end() -> None:
    """A champion that takes no time leaves no time to the others: nothing is left to race."""
    cost = run_times()
    world = World(
        lambda configuration, key: 0.0 if configuration == 7 else cost(configuration, key),
        numbered(9), n_in_space=30, racing=True, n_trials=INF,
    )  # fmt: skip
    played = play(world, at_most=20_000)
    assert played.engine.leader == 7
    assert played.engine.finished is not None


@pytest.mark.parametrize("shift", [-1e6, -5.0, 1e6])
def test_costs_may_be_negative(shift: float) -> None:
    cost = noisy()
    world = World(cost, numbered(20), n_trials=300)
    shifted = replace(world, cost=lambda configuration, key: cost(configuration, key) + shift)
    assert play(shifted).engine.leader == play(world).engine.leader


def test_failures_among_negative_costs() -> None:
    world = World(failing(noisy(), share=0.2), numbered(20), n_trials=300)
    assert play(world).engine.leader is not None


# --- what is planned ----------------------------------------------------------------------------


@given(
    st.integers(2, 20_000),
    st.integers(2, 500) | st.none(),
    st.sampled_from([1.1, 2.0]),
    st.booleans(),
    st.sampled_from([1, 5, 300]),
)
def test_the_schedule_shows_the_passes(
    n_trials: int, first_pass: int | None, growth: float, racing: bool, n_given: int
) -> None:
    schedule = search_schedule(
        n_trials=n_trials,
        k=4,
        first_pass=first_pass,
        growth=growth,
        racing=racing,
        n_given=n_given,
    )
    assert sum(plan.n_trials for plan in schedule.passes) == n_trials
    for number, plan in enumerate(schedule.passes, start=1):
        assert plan.number == number
        assert 1 <= plan.n_entrants <= plan.n_trials
    assert schedule.passes[0].n_entrants >= min(n_given, n_trials)
    assert schedule.n_configs == sum(plan.n_entrants for plan in schedule.passes)
    assert len(str(schedule).splitlines()) == 4 + min(len(schedule.passes), MOST_LISTED + 1)


def test_the_schedule_of_a_run_without_a_limit() -> None:
    schedule = search_schedule(n_trials=INF, k=4, first_pass=25, growth=2.0, racing=True)
    assert [plan.n_trials for plan in schedule.passes] == [25, 50, 100, 200, 400, 800]
    assert "until time is up" in str(schedule)
    assert "each pass longer than" in str(schedule)


def test_the_first_pass_is_the_one_of_the_schedule() -> None:
    world = World(noisy(), numbered(30), n_trials=1000)
    planned = search_schedule(n_trials=1000, k=8, first_pass=None, growth=2.0, racing=False).passes
    first = world.engine().plans[0]
    assert isinstance(first, PassPlan)
    assert replace(first, n_entered=None) == planned[0]
    assert str(planned[0]) == "pass 1: 240 configurations, 400 trials"


def test_where_time_may_end_the_run_passes_are_short_at_first() -> None:
    """However many trials there may be: nobody knows how many there will be."""
    engine = Engine(
        Settings(),
        racing=False,
        instances=Instances(numbered(20), deterministic=True, seed=0),
        draw=lambda n, known: n,
        limits=Limits(100_000, timed=True),
    )
    assert engine.plans[0] == PassPlan(1, n_trials=25, n_entrants=15, limit=100_000, n_entered=15)


@pytest.mark.parametrize("racing", [False, True])
def test_who_draws_is_told_the_best_so_far(racing: bool) -> None:
    told: list[tuple[int, KnownBest]] = []

    def draw(n: int, known: Callable[[], KnownBest]) -> int:
        told.append((n, known()))
        return n

    world = World(run_times(), numbered(20), racing=racing, n_trials=1000, n_given=3)
    engine = Engine(
        Settings(),
        racing=racing,
        instances=Instances(world.names, deterministic=True, seed=0),
        draw=draw,
        limits=Limits(1000),
        n_given=3,
    )
    played = play(world, engine)
    assert told[0][1] == KnownBest(1, (0, 1, 2))
    assert [known.pass_number for _, known in told] == list(range(1, 1 + len(engine.plans)))
    for n, known in told[1:]:
        assert len(set(known.best)) == len(known.best) <= 5
        assert max(known.best) < n, "of those that were drawn before"
    assert told[-1][0] == engine.n_entered
    assert played.n_trials == 1000


def test_who_draws_is_told_of_costs_in_one_unit() -> None:
    """On some instances costs are a thousand times as high: who met those is not behind others."""
    effects = np.random.default_rng(0).random(1000)
    units = 10.0 ** np.random.default_rng(1).integers(0, 4, 20)
    names = numbered(20)
    told: list[KnownBest] = []

    def draw(n: int, known: Callable[[], KnownBest]) -> int:
        told.append(known())
        return n

    engine = Engine(
        Settings(proposals="learned"),
        racing=False,
        instances=Instances(names, deterministic=True, seed=0),
        draw=draw,
        limits=Limits(300),
        n_given=1,
    )
    while (race := engine.ask()) is not None:
        unit = units[names.index(str(engine.key(race.instance).instance))]
        engine.tell(race, Outcome([float(unit * effects[racer]) for racer in race.racers]))
    behind = told[-1].behind
    assert len(behind) > 100
    correlation = spearmanr([effects[number] for number in behind], list(behind.values()))[0]
    assert correlation > 0.8  # of plain differences: 0.49


@pytest.mark.parametrize("n_passes", [1, 60, 3000])
@pytest.mark.parametrize("growth", [1.1, 2.0])
def test_no_pass_is_too_late_to_be_planned(n_passes: int, growth: float) -> None:
    plan = plan_pass(
        n_passes, left=INF, first_pass=25, growth=growth, share=0.5, at_least=1, limit=INF
    )
    assert 25 <= plan.n_trials <= 2**40
    assert plan.n_entrants == round(0.5 * plan.n_trials)
