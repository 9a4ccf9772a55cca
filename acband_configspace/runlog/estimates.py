"""How good incumbents are, by the instances that they and the default have met."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from acband_configspace.core.ends import End
from acband_configspace.core.instances import InstanceKey
from acband_configspace.core.statistics import Floats
from acband_configspace.runlog.records import RaceRecord, TrialRecord
from acband_configspace.runlog.verdict import ENOUGH_PAIRS, paired_interval, ratio_of_means
from acband_configspace.runlog.words import bounded, counted, gain


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a configuration is estimated to cost on average."""

    mean: float
    error: float | None
    """The standard error; None if one instance is all there is."""
    n_common: int
    """On how many instances it was compared with the present incumbent: 0 if they have none in
    common, so that it is only known by instances of its own."""
    at_least: bool
    """Whether it was stopped on some of them, or the incumbent anywhere, so that this is a lower
    bound."""


@dataclass(frozen=True, slots=True)
class Lead:
    """A configuration that took the lead."""

    configuration: int
    since: float
    """Seconds the run had taken when it took the lead."""
    n_trials: int
    """Trials that had finished by then."""
    estimate: Estimate | None
    """What it costs, from all that is known today; None if it has no finite cost."""
    best: float | None
    """The least estimate of all who have led by then, but not below the present incumbent's,
    which is known best. So the curve goes down, and ends at the incumbent's own estimate."""


@dataclass(frozen=True, slots=True)
class Pairs:
    """Two configurations on the instances that both have met, where both have a finite cost."""

    first: Floats
    second: Floats
    first_bounded: int
    """How many costs of the first one are lower bounds only: it was stopped."""
    second_bounded: int

    def __len__(self) -> int:
        return len(self.first)


class Known(Protocol):
    """What is known of configurations: the journal's races, or the engine that runs."""

    def costs(self, configuration: int) -> Mapping[InstanceKey, float]:
        """Return the costs of a configuration that are known, by instance."""

    def bounds(self, configuration: int) -> Mapping[InstanceKey, float]:
        """Return what its cost exceeds where it was stopped."""


class Costs:
    """What the races of a journal say about configurations on instances."""

    def __init__(self, races: Iterable[RaceRecord]) -> None:
        self._known: dict[int, dict[InstanceKey, float]] = {}
        self._bounds: dict[int, dict[InstanceKey, float]] = {}
        self.n_failed: Counter[int] = Counter()
        """On how many instances each configuration failed or met a limit."""
        for race in races:
            for racer, trial in zip(race.racers, race.trials, strict=True):
                self._add(race.key, racer, trial)

    def _add(self, key: InstanceKey, racer: int, trial: TrialRecord) -> None:
        if trial.end is End.LOST:
            own = self._bounds.setdefault(racer, {})
            own[key] = max(trial.cost, own.get(key, -math.inf))
        elif trial.end is not End.CANCELLED:
            own = self._known.setdefault(racer, {})
            self.n_failed[racer] += trial.end is not End.FINISHED and key not in own
            own[key] = trial.cost

    def costs(self, configuration: int) -> Mapping[InstanceKey, float]:
        """Return the costs of a configuration that are known, by instance."""
        return self._known.get(configuration, {})

    def bounds(self, configuration: int) -> Mapping[InstanceKey, float]:
        """Return what its cost exceeds where it was stopped."""
        return self._bounds.get(configuration, {})


def own_costs(known: Known, number: int) -> tuple[Floats, bool]:
    """Return the finite costs of a configuration, and whether some are bounds: it was stopped."""
    costs = known.costs(number)
    table = {**known.bounds(number), **costs}
    finite = {key: cost for key, cost in table.items() if math.isfinite(cost)}
    values = np.array(list(finite.values()), dtype=float)
    return values, any(key not in costs for key in finite)


def pairs_of(known: Known, first: int, second: int, *, with_bounds: bool) -> Pairs:
    """Return two configurations side by side; with bounds for costs that are not known."""
    costs = [known.costs(number) for number in (first, second)]
    tables = costs
    if with_bounds:
        bounds = [known.bounds(number) for number in (first, second)]
        tables = [{**stopped, **own} for stopped, own in zip(bounds, costs, strict=True)]
    common = [
        key
        for key, cost in tables[0].items()
        if math.isfinite(cost) and math.isfinite(tables[1].get(key, math.inf))
    ]
    values = [np.array([table[key] for key in common], dtype=float) for table in tables]
    n_bounded = [sum(key not in own for key in common) for own in costs]
    return Pairs(values[0], values[1], n_bounded[0], n_bounded[1])


class Estimator:
    """Estimates what configurations cost by comparing them with the present incumbent.

    Its own mean is over all instances that it has met. Any other costs as much more or less as it
    did on the instances that both have met: instances differ more than configurations do. Only
    where two never met (as in the paper's schedule) must their own means do.
    """

    def __init__(self, known: Known, incumbent: int, others: Iterable[int] = ()) -> None:
        self._known = known
        self._incumbent = incumbent
        self._own, self._own_bounded = own_costs(known, incumbent)
        self._variance = self._paired_variance({*others} - {incumbent})

    def estimate(self, number: int) -> Estimate | None:
        """Return what a configuration costs, None if nothing finite is known of it."""
        own = self._own
        if not len(own):
            return None
        level, error = float(own.mean()), _standard_error(own)
        if number == self._incumbent:
            return Estimate(level, error, len(own), self._own_bounded)
        pairs = pairs_of(self._known, number, self._incumbent, with_bounds=False)
        if len(pairs):
            return self._beside(pairs, level, error)
        # It was stopped wherever they met, or they never did: of two lower bounds, the larger.
        pairs = pairs_of(self._known, number, self._incumbent, with_bounds=True)
        bounds = [self._beside(pairs, level, error)] if len(pairs) else []
        alone, bounded = own_costs(self._known, number)
        if len(alone):
            bounds.append(Estimate(float(alone.mean()), _standard_error(alone), 0, bounded))
        return max(bounds, key=lambda estimate: estimate.mean, default=None)

    def _beside(self, pairs: Pairs, level: float, error: float | None) -> Estimate:
        mean = level + float((pairs.first - pairs.second).mean())
        own_error = None
        if len(pairs) >= ENOUGH_PAIRS:
            own_error = _standard_error(pairs.first - pairs.second)
        elif self._variance is not None:
            own_error = _size(pairs) * math.sqrt(self._variance / len(pairs))
        both = None if error is None or own_error is None else math.hypot(error, own_error)
        # The incumbent's own mean is in it.
        return Estimate(mean, both, len(pairs), self._own_bounded or pairs.first_bounded > 0)

    def _paired_variance(self, others: Iterable[int]) -> float | None:
        """Return how much differences vary between instances, in units of the costs' size.

        From all pairs together, for those that are too few to tell by themselves. Costs vary in
        proportion to their size.
        """
        squares, degrees = 0.0, 0
        for other in others:
            pairs = pairs_of(self._known, other, self._incumbent, with_bounds=False)
            if len(pairs) > 1:
                differences = (pairs.first - pairs.second) / _size(pairs)
                squares += float(((differences - differences.mean()) ** 2).sum())
                degrees += len(pairs) - 1
        return squares / degrees if degrees else None


def _size(pairs: Pairs) -> float:
    means = (abs(float(pairs.first.mean())), abs(float(pairs.second.mean())))
    return max(means) or 1.0


def _standard_error(costs: Floats) -> float | None:
    return float(costs.std(ddof=1)) / math.sqrt(len(costs)) if len(costs) > 1 else None


@dataclass(frozen=True, slots=True)
class Estimated:
    """What a former leader costs, from all that is known today."""

    estimate: Estimate | None
    best: float | None
    """As in :class:`Lead`."""


def estimated(known: Known, leaders: Sequence[int]) -> list[Estimated]:
    """Return what each of those who have led costs, the last being the present incumbent."""
    if not leaders:
        return []
    estimator = Estimator(known, leaders[-1], leaders)
    estimates = {number: estimator.estimate(number) for number in set(leaders)}
    last = estimates[leaders[-1]]
    best: float | None = None
    curve = []
    for estimate in map(estimates.__getitem__, leaders):
        if estimate is not None and last is not None:
            best = min(math.inf if best is None else best, max(estimate.mean, last.mean))
        curve.append(Estimated(estimate, best))
    return curve


def leads_of(changes: Sequence[tuple[RaceRecord, int]], costs: Costs) -> tuple[Lead, ...]:
    """Return who led from when, after the races that changed it, and at what cost."""
    curve = estimated(costs, [number for _, number in changes])
    return tuple(
        Lead(number, race.walltime, race.n_trials, cost.estimate, cost.best)
        for (race, number), cost in zip(changes, curve, strict=True)
    )


@dataclass(frozen=True, slots=True)
class Comparison:
    """How the incumbent compares with the default, on the instances that both have met."""

    default: int
    incumbent: int
    n_common: int
    """Instances on which something finite is known of both."""
    n_met: int
    """Instances that both have met, failures that cost infinitely much included."""
    n_default_lost: int
    """Those of them on which the default failed at infinite cost, and the incumbent did not."""
    default_mean: float | None
    """The default's mean cost, on the common instances."""
    incumbent_mean: float | None
    at_least: bool
    """Whether the default was stopped on some: then it is known to cost more than this."""
    own_at_least: bool
    """Whether the incumbent was: then it is not known how much better it is, or whether."""
    ratio_interval: tuple[float, float] | None
    """95 % of the default's mean divided by the incumbent's; None from too few instances, and
    where there is no ratio."""
    default_estimate: Estimate | None
    """What the default costs, as incumbents are estimated."""
    n_default_failed: int
    """On how many instances the default failed or met a limit."""

    @property
    def is_default(self) -> bool:
        """Whether the default itself leads."""
        return self.default == self.incumbent

    @property
    def ratio(self) -> float | None:
        """The default's mean divided by the incumbent's, where that means something."""
        if self.default_mean is None or self.incumbent_mean is None or self.own_at_least:
            return None
        if min(self.default_mean, self.incumbent_mean) <= 0:
            return None
        return self.default_mean / self.incumbent_mean

    def in_words(self, own: Estimate | None, *, racing: bool) -> str:
        """Return what is to be said of the incumbent, whose own estimate is given."""
        default, incumbent = self.default_mean, self.incumbent_mean
        if default is None or incumbent is None:
            return self._not_met(own)
        text = (
            f"{bounded(incumbent, at_least=self.own_at_least)} instead of "
            f"{bounded(default, at_least=self.at_least)} on average"
        )
        # A lower bound on the default's mean says nothing while it is below the incumbent's.
        if self.ratio is None or (self.at_least and default < incumbent):
            text = f"costs {text}"
        else:
            how = gain(default, incumbent, racing=racing, interval=self.ratio_interval)
            at_least = "at least " if self.at_least else ""
            text = f"{'is' if racing else 'costs'} {at_least}{how}: {text}"
        instances = counted(self.n_common, "training instance")
        if self.n_common < self.n_met:
            where = f"{self.n_common} of {self.n_met} common training instances"
            return f"{text}, on the {where} where neither failed"
        instances = "only training instance" if self.n_common == 1 else instances
        return f"{text}, on the {instances} that both have met"

    def _not_met(self, own: Estimate | None) -> str:
        default = self.default_estimate
        if self.n_met:
            if self.n_default_lost < self.n_met:
                return "leads; there is no training instance that both have finished"
            instances = counted(self.n_met, "training instance")
            instances = "the only training instance" if self.n_met == 1 else f"all {instances}"
            return f"is better than the default, which failed on {instances} that both have met"
        if default is None or own is None:
            return "leads; it has not met the default on a common instance yet"
        costs = [bounded(known.mean, at_least=known.at_least) for known in (own, default)]
        return (
            f"costs {costs[0]} on average, the default {costs[1]}, "
            "each on instances of its own: they have none in common"
        )


def comparison_of(costs: Costs, leads: Sequence[Lead], default: int) -> Comparison:
    """Compare the incumbent, who leads last, with the default."""
    incumbent = leads[-1].configuration
    leaders = {lead.configuration for lead in leads}
    pairs = pairs_of(costs, default, incumbent, with_bounds=True)
    n_common = len(pairs)
    own, others = ({**costs.bounds(n), **costs.costs(n)} for n in (incumbent, default))
    met = own.keys() & others.keys()
    return Comparison(
        default=default,
        incumbent=incumbent,
        n_common=n_common,
        n_met=len(met),
        n_default_lost=sum(
            math.isinf(others[key]) and math.isfinite(costs.costs(incumbent).get(key, math.inf))
            for key in met
        ),
        default_mean=float(pairs.first.mean()) if n_common else None,
        incumbent_mean=float(pairs.second.mean()) if n_common else None,
        at_least=pairs.first_bounded > 0,
        own_at_least=pairs.second_bounded > 0,
        ratio_interval=_ratio_interval(pairs) if default != incumbent else None,
        default_estimate=Estimator(costs, incumbent, {default, *leaders}).estimate(default),
        n_default_failed=costs.n_failed[default],
    )


def _ratio_interval(pairs: Pairs) -> tuple[float, float] | None:
    if not len(pairs) or min(pairs.first.min(), pairs.second.min()) <= 0:
        return None
    if pairs.second_bounded:  # whose mean may be any number above, and the ratio any below
        return None
    return paired_interval(pairs.first, pairs.second, ratio_of_means)
