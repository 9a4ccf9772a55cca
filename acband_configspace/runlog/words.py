"""Numbers and verdicts as people read them."""

from __future__ import annotations

import math

from acband_configspace.runlog.estimates import Comparison
from acband_configspace.runlog.replay import Run
from acband_configspace.runlog.verdict import gain


def number(value: float) -> str:
    """Return a number with four significant digits.

    >>> number(0.46154), number(12345.6), number(3.0), number(1e-9)
    ('0.4615', '12,346', '3', '1e-09')
    """
    if not math.isfinite(value):
        return str(value)
    if 1000 <= abs(value) < 1e7:
        return f"{value:,.0f}"
    return f"{value:.4g}"


def seconds(value: float) -> str:
    """Return a duration in a unit that suits it.

    >>> seconds(0.25), seconds(90), seconds(1800), seconds(86400)
    ('0.25 s', '90 s', '30 min', '24 h')
    """
    if value < 120:
        return f"{value:.3g} s"
    if value < 7200:
        return f"{value / 60:.3g} min"
    return f"{value / 3600:.3g} h" if value < 172800 else f"{value / 86400:.3g} days"


def counted(n: int, noun: str) -> str:
    """Return a number of things.

    >>> counted(1, "race"), counted(2000, "race")
    ('1 race', '2,000 races')
    """
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"


def verdict(run: Run) -> str:
    """Return how much better than the default the incumbent is, in a sentence or two."""
    if run.problem is not None:
        return f"Who leads cannot be told: {run.problem}."
    if run.incumbent is None:
        return "No configuration has finished a race yet."
    comparison = run.comparison
    name = f"Configuration {run.label(run.incumbent)}"
    if comparison is None:
        estimate = run.leads[-1].estimate
        cost = "" if estimate is None else f", with an estimated mean of {number(estimate.mean)}"
        return f"{name} leads{cost}. The default takes no part in this run."
    if comparison.is_default:
        return "The default configuration itself leads: nothing better has been found so far."
    failed = counted(comparison.n_default_failed, "instance")
    failures = f" The default failed on {failed}." if comparison.n_default_failed else ""
    if not comparison.n_common:
        return _not_met(run, comparison, name) + failures
    instances = counted(comparison.n_common, "training instance")
    instances = "only training instance" if comparison.n_common == 1 else instances
    where = f"on the {instances} that both have met"
    return f"{name} {_compared(run, comparison)}, {where}.{failures}"


def _compared(run: Run, comparison: Comparison) -> str:
    assert comparison.default_mean is not None
    assert comparison.incumbent_mean is not None
    at_least = "at least " if comparison.at_least else ""
    default = f"{at_least}{number(comparison.default_mean)}"
    means = f"{number(comparison.incumbent_mean)} instead of {default} on average"
    # A lower bound on the default's mean says nothing while it is below the incumbent's.
    unknown = comparison.at_least and comparison.default_mean < comparison.incumbent_mean
    if comparison.ratio is None or unknown:
        return f"costs {means}"
    how = gain(
        comparison.default_mean,
        comparison.incumbent_mean,
        racing=run.racing,
        interval=comparison.ratio_interval,
    )
    return f"{'is' if run.racing else 'costs'} {at_least}{how}: {means}"


def _not_met(run: Run, comparison: Comparison, name: str) -> str:
    default, own = comparison.default_estimate, run.leads[-1].estimate
    if default is None or own is None:
        return f"{name} leads; it has not met the default on a common instance yet."
    at_least = "at least " if default.at_least else ""
    return (
        f"{name} costs {number(own.mean)} on average, the default {at_least}"
        f"{number(default.mean)}, each on instances of its own: they have none in common."
    )
