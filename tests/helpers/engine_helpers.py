"""Drives an engine on costs that a function makes up, as a plugin would."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from hypothesis import strategies as st

from acband_configspace.core.ends import End
from acband_configspace.core.engine import Engine, Limits, Plan
from acband_configspace.core.instances import InstanceKey, Instances
from acband_configspace.core.race import Outcome, Race, RaceId
from acband_configspace.core.settings import Settings

Cost = Callable[[int, InstanceKey], float]
Records = dict[RaceId, tuple[tuple[int, ...], Outcome]]

CUTOFF = 100.0


def noisy(*, noise: float = 1.0, spread: float = 1.0, seed: int = 0) -> Cost:
    """Return costs that are a configuration's own, plus the instance's, plus noise."""

    def cost(configuration: int, key: InstanceKey) -> float:
        own = random.Random(f"{seed} {configuration}").gauss(0.0, spread)
        shared = random.Random(f"{seed} {key}").gauss(0.0, 1.0)
        return own + shared + random.Random(f"{seed} {configuration} {key}").gauss(0.0, noise)

    return cost


def run_times(*, noise: float = 1.0, seed: int = 0, digits: int = 9) -> Cost:
    """Return positive costs with heavy tails; few digits make for ties."""
    logs = noisy(noise=noise, seed=seed)
    return lambda configuration, key: round(math.exp(logs(configuration, key)), digits)


def failing(cost: Cost, *, share: float, seed: int = 0) -> Cost:
    """Return the costs of a target of whose runs a share fails."""

    def with_failures(configuration: int, key: InstanceKey) -> float:
        fails = random.Random(f"{seed} {configuration} {key} fails").random() < share
        return math.inf if fails else cost(configuration, key)

    return with_failures


def numbered(n: int | None) -> list[str] | None:
    """Return names for so many instances, None for none."""
    return None if n is None else [f"instance {i}" for i in range(n)]


@dataclass(frozen=True)
class World:
    """A target, its space and its instances: everything that an engine is made for."""

    cost: Cost
    """A cost of CUTOFF or more is a run that meets the cutoff, where losers are stopped."""
    names: Sequence[str] | None = None
    deterministic: bool = True
    n_in_space: int | None = None
    racing: bool = False
    n_trials: float = 100
    settings: Settings = field(default_factory=Settings)
    n_given: int = 1
    seed: int = 0

    def engine(
        self,
        *,
        n_trials: float | None = None,
        n_changes: int = 0,
        plans: Sequence[Plan] = (),
        recorded: Mapping[RaceId, tuple[tuple[int, ...], Outcome]] | None = None,
    ) -> Engine:
        """Return an engine at the start of its run, or of its replay."""
        return Engine(
            self.settings,
            racing=self.racing,
            instances=Instances(self.names, deterministic=self.deterministic, seed=self.seed),
            draw=lambda n, known: n if self.n_in_space is None else min(n, self.n_in_space),
            limits=Limits(self.n_trials if n_trials is None else n_trials, n_changes=n_changes),
            n_given=self.n_given,
            n_in_space=self.n_in_space,
            seed=self.seed,
            plans=plans,
            recorded=None if recorded is None else recorded.get,
        )

    def run(self, engine: Engine, race: Race) -> Outcome:
        """Return what a race brings: in a real race all stop when the first has finished."""
        key = engine.key(race.instance)
        costs = [self.cost(racer, key) for racer in race.racers]
        if not self.racing:
            return Outcome(costs)
        limits = race.limits or (math.inf,) * len(costs)
        pairs = list(zip(costs, limits, strict=True))
        best = math.inf
        if not race.to_the_end:
            best = min((c for c, limit in pairs if c < CUTOFF and c <= limit), default=math.inf)
        stops = [min(limit, best) for limit in limits]
        return Outcome(
            *zip(*(_end(c, stop) for c, stop in zip(costs, stops, strict=True)), strict=True)
        )


def _end(cost: float, stop: float) -> tuple[float, End]:
    if cost < CUTOFF and cost <= stop:
        return cost, End.FINISHED
    if stop < CUTOFF:
        return max(0.0, stop), End.LOST
    return 10 * CUTOFF, End.CUTOFF


@dataclass
class Played:
    """A run that is over."""

    engine: Engine
    races: list[Race] = field(default_factory=list)
    """In the order in which they were handed out."""
    records: Records = field(default_factory=dict)
    """In the order in which they were told."""
    leaders: list[int | None] = field(default_factory=list)
    """After each of these."""

    @property
    def n_trials(self) -> int:
        return sum(len(race.racers) for race in self.races)


def play(
    world: World,
    engine: Engine | None = None,
    *,
    at_once: int = 1,
    pick: Callable[[int], int] = lambda n: 0,
    at_most: int = 10**6,
) -> Played:
    """Drive a run to its end, ``at_once`` races at a time, ``pick`` saying which is told next."""
    played = Played(world.engine() if engine is None else engine)
    engine = played.engine
    running: list[Race] = []
    while len(played.records) < at_most:
        while len(running) < at_once and (race := engine.ask()) is not None:
            running.append(race)
            played.races.append(race)
        if not running:
            break
        race = running.pop(pick(len(running)))
        outcome = world.run(engine, race)
        engine.tell(race, outcome)
        played.records[race.id] = (race.racers, outcome)
        played.leaders.append(engine.leader)
    return played


@st.composite
def worlds(draw: st.DrawFn, *, racing: bool | None = None) -> World:
    """Draw targets of all kinds, with and without failures, ties, instances and seeds."""
    seed = draw(st.integers(0, 1000))
    if racing is None:
        racing = draw(st.booleans())
    noise = draw(st.sampled_from([0.0, 0.5, 2.0]))
    if racing:
        cost = run_times(noise=noise, seed=seed, digits=draw(st.sampled_from([0, 1, 9])))
    else:
        cost = noisy(noise=noise, seed=seed)
    if share := draw(st.sampled_from([0.0, 0.1, 0.7])):
        cost = failing(cost, share=share, seed=seed)
    k = draw(st.sampled_from([None, 2, 3, 100]))
    return World(
        cost,
        names=numbered(draw(st.sampled_from([None, 1, 2, 10, 200]))),
        deterministic=draw(st.booleans()),
        n_in_space=draw(st.sampled_from([1, 2, 5, 67, None])),
        racing=racing,
        n_trials=draw(st.sampled_from([2, 3, 5, 26, 50, 51, 130, 300])),
        settings=Settings(k=k, first_pass=draw(st.sampled_from([2, 25, 400]))),
        n_given=draw(st.sampled_from([1, 1, 4, 60])),
        seed=seed,
    )
