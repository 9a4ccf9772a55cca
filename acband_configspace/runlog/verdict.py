"""The incumbent beside the default on test instances: how much better, how sure, in words."""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from acband_configspace.core.statistics import Floats
from acband_configspace.runlog.words import gain, number

#: The journal's note that holds one.
VERDICT = "verdict"
#: The fewest instances for which an interval is given: from fewer it would say little.
ENOUGH_PAIRS = 5
#: How often the instances are drawn again for an interval.
N_RESAMPLES = 2000


def paired_interval(
    default: Floats, incumbent: Floats, figure: Callable[[Floats, Floats], float]
) -> tuple[float, float] | None:
    """Return a 95 % interval of a figure of two configurations: the paired bootstrap.

    Instances are drawn again with replacement, each with the costs of both. None from too few.
    """
    n = len(default)
    if n < ENOUGH_PAIRS:
        return None
    rng = np.random.default_rng(0)
    draws = (rng.integers(n, size=n) for _ in range(N_RESAMPLES))
    figures = [figure(default[drawn], incumbent[drawn]) for drawn in draws]
    low, high = np.quantile(figures, [0.025, 0.975]).tolist()
    return low, high


def ratio_of_means(default: Floats, incumbent: Floats) -> float:
    """Return how many times as much as the incumbent the default costs."""
    return float(default.mean() / incumbent.mean())


def difference_of_means(default: Floats, incumbent: Floats) -> float:
    """Return how much more than the incumbent the default costs."""
    return float(default.mean() - incumbent.mean())


@dataclass(frozen=True)
class Verdict:
    """How the incumbent compares with the default on instances that both were run on.

    Make one with :meth:`of`. ``print`` shows the sentence and the figures, and so does a notebook.
    """

    n_instances: int
    what: str
    """What they are, in the plural: "unseen instances"."""
    racing: bool
    """Whether costs are run times, in seconds."""
    par: float
    """With ``racing``: what a run that met the cutoff costs, in cutoffs."""
    incumbent_mean: float
    """Of the costs; of run times, cutoffs counted once."""
    default_mean: float
    incumbent_median: float
    default_median: float
    incumbent_cost: float
    """The mean cost; with ``racing``, cutoffs counted ``par`` times."""
    default_cost: float
    incumbent_failures: int
    """Runs that crashed or met a limit; if that is not known, those that cost the cutoff or more,
    or infinity."""
    default_failures: int
    n_wins: int
    """On how many instances the incumbent was cheaper."""
    n_losses: int
    low: float | None
    """The lower end of :attr:`interval`."""
    high: float | None
    p_value: float
    """Of Wilcoxon's signed-rank test, two-sided: how likely such ranks are if both are equal."""
    is_ratio: bool
    """Whether costs can be divided: all of them are positive and finite."""
    is_default: bool = False
    """Whether the incumbent is the default configuration itself."""

    @classmethod
    def of(
        cls,
        incumbent: Sequence[float],
        default: Sequence[float],
        *,
        what: str = "unseen instances",
        racing: bool = False,
        par: float = 10.0,
        cutoff: float | None = None,
        failures: tuple[int, int] | None = None,
        is_default: bool = False,
    ) -> Verdict:
        """Compare costs, a pair for each instance; ``failures`` are those of both, if known."""
        if not len(incumbent) or len(incumbent) != len(default):
            raise ValueError(
                f"costs must be pairs, at least one, but got {len(incumbent)} and {len(default)}"
            )
        own, other = np.asarray(incumbent, dtype=float), np.asarray(default, dtype=float)
        limit = math.inf if cutoff is None or not racing else cutoff
        if failures is None:
            failures = int((own >= limit).sum()), int((other >= limit).sum())
        finite = bool(np.isfinite([own, other]).all())
        is_ratio = finite and bool(min(own.min(), other.min()) > 0)
        figure = ratio_of_means if is_ratio else difference_of_means
        interval = paired_interval(other, own, figure) if finite else None
        low, high = (None, None) if interval is None else interval
        return cls(
            n_instances=len(own),
            what=what,
            racing=racing,
            par=par,
            incumbent_mean=float(np.minimum(own, limit).mean()),
            default_mean=float(np.minimum(other, limit).mean()),
            incumbent_median=float(np.median(np.minimum(own, limit))),
            default_median=float(np.median(np.minimum(other, limit))),
            incumbent_cost=float(own.mean()),
            default_cost=float(other.mean()),
            incumbent_failures=failures[0],
            default_failures=failures[1],
            n_wins=int((own < other).sum()),
            n_losses=int((own > other).sum()),
            low=low,
            high=high,
            p_value=_wilcoxon(own, other),
            is_ratio=is_ratio,
            is_default=is_default,
        )

    @classmethod
    def of_note(cls, values: Mapping[str, Any]) -> Verdict:
        """Return the one that a journal's note holds."""
        known = (field.name for field in fields(cls))
        return cls(**{name: values[name] for name in known if name in values})

    @property
    def figure(self) -> float:
        """The default's mean cost divided by the incumbent's, the speed-up; or minus it."""
        if self.is_ratio:
            return self.default_cost / self.incumbent_cost
        return self.default_cost - self.incumbent_cost

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95 % interval of :attr:`figure`, None from too few instances."""
        return None if self.low is None or self.high is None else (self.low, self.high)

    @property
    def text(self) -> str:
        """The verdict in a sentence."""
        what = self.what.removesuffix("s") if self.n_instances == 1 else self.what
        where = f"on {self.n_instances:,} {what}"
        if self.is_default:
            return "The incumbent is the default itself: nothing better was found."
        if self.n_wins == self.n_losses == 0:
            return f"The incumbent costs the same as the default {where}, on each of them."
        if not math.isfinite(self.figure):
            return (
                f"The incumbent failed on {self.incumbent_failures:,} and the default on "
                f"{self.default_failures:,} of {self.n_instances:,} {what}; it is better on "
                f"{self.n_wins:,} and worse on {self.n_losses:,}."
            )
        return f"The incumbent {self._compared()} {where}{self._doubt()}."

    def _compared(self) -> str:
        verb = "is" if self.is_ratio and self.racing else "costs"
        how = gain(
            self.default_cost,
            self.incumbent_cost,
            racing=self.racing,
            is_ratio=self.is_ratio,
            interval=self.interval,
        )
        return f"{verb} {how}"

    def _doubt(self) -> str:
        if self.interval is None:
            return ", too few to tell how sure that is"
        low, high = self.interval
        equal = 1.0 if self.is_ratio else 0.0
        return ", which cannot tell the two apart" if low <= equal <= high else ""

    @property
    def columns(self) -> list[str]:
        """The titles of :attr:`rows`."""
        par = [f"PAR{self.par:g}"] if self.racing else []
        return ["", "mean", "median", *par, "failures", "wins"]

    @property
    def rows(self) -> list[list[str]]:
        """The figures of the incumbent and of the default, as texts."""
        unit = " s" if self.racing else ""

        def row(name: str, mean: float, median: float, cost: float, *counts: int) -> list[str]:
            costs = [mean, median, cost] if self.racing else [mean, median]
            return [name, *(f"{number(c)}{unit}" for c in costs), *(f"{n:,}" for n in counts)]

        return [
            row("incumbent", self.incumbent_mean, self.incumbent_median, self.incumbent_cost,
                self.incumbent_failures, self.n_wins),
            row("default", self.default_mean, self.default_median, self.default_cost,
                self.default_failures, self.n_losses),
        ]  # fmt: skip

    @property
    def test(self) -> str:
        """How sure it is, in figures."""
        name = f"speed-up by PAR{self.par:g}" if self.racing else "default / incumbent"
        name = name if self.is_ratio else "default - incumbent"
        bounds = " to ".join(map(number, self.interval or ()))
        interval = f" (95 % bootstrap interval {bounds})" if bounds else ""
        figure = f"{name}: {number(self.figure)}{interval}; "
        known = figure if math.isfinite(self.figure) else ""
        return f"{known}Wilcoxon signed-rank test: p = {self.p_value:.2g}"

    def __str__(self) -> str:
        widths = [10, *(max(10, len(title) + 2) for title in self.columns[1:])]
        lines = [
            f"{row[0]:{widths[0]}}"
            + "".join(f"{cell:>{width}}" for cell, width in zip(row[1:], widths[1:], strict=True))
            for row in [self.columns, *self.rows]
        ]
        return "\n".join([self.text, *lines, self.test])

    def _repr_html_(self) -> str:
        def cells(row: Sequence[str], tag: str) -> str:
            return "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in row)

        body = "".join(f"<tr>{cells(row, 'td')}</tr>" for row in self.rows)
        return (
            f"<p><b>{html.escape(self.text)}</b></p><table><thead><tr>{cells(self.columns, 'th')}"
            f"</tr></thead><tbody>{body}</tbody></table><p>{html.escape(self.test)}</p>"
        )


def _wilcoxon(own: Floats, other: Floats) -> float:
    with np.errstate(invalid="ignore"):
        differences = np.nan_to_num(own - other, nan=0.0, posinf=np.inf, neginf=-np.inf)
    if not differences.any():
        return 1.0
    from scipy.stats import wilcoxon  # takes a second to load

    return float(wilcoxon(differences).pvalue)
