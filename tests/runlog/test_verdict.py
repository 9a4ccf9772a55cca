"""Verdicts: figures by hand, words for each case."""

from __future__ import annotations

import math
from dataclasses import asdict

import numpy as np
import pytest
from scipy import stats

from acband_configspace.runlog.verdict import Verdict, paired_interval, ratio_of_means

RNG = np.random.default_rng(1)
DEFAULT = RNG.lognormal(0.0, 1.0, size=100)
TUNED = DEFAULT / 1.6 * RNG.lognormal(0.0, 0.2, size=100)


def test_the_figures_are_those_of_scipy() -> None:
    verdict = Verdict.of(TUNED.tolist(), DEFAULT.tolist())
    assert verdict.p_value == pytest.approx(stats.wilcoxon(TUNED, DEFAULT).pvalue)
    theirs = stats.bootstrap(
        (DEFAULT, TUNED),
        lambda default, tuned, axis: default.mean(axis=axis) / tuned.mean(axis=axis),
        paired=True,
        vectorized=True,
        method="percentile",
        rng=np.random.default_rng(2),
    ).confidence_interval
    assert verdict.low == pytest.approx(theirs.low, rel=0.02)
    assert verdict.high == pytest.approx(theirs.high, rel=0.02)
    assert verdict.figure == pytest.approx(DEFAULT.mean() / TUNED.mean())
    assert verdict.n_wins == (TUNED < DEFAULT).sum()


def test_run_times_count_cutoffs_once_in_the_mean_and_par_times_in_the_cost() -> None:
    verdict = Verdict.of([1.0, 2.0, 50.0], [3.0, 50.0, 50.0], racing=True, cutoff=5.0, par=10)
    assert verdict.incumbent_mean == pytest.approx(8 / 3)
    assert verdict.incumbent_cost == pytest.approx(53 / 3)
    assert (verdict.incumbent_failures, verdict.default_failures) == (1, 2)
    assert (verdict.n_wins, verdict.n_losses) == (2, 0)
    assert verdict.figure == pytest.approx(103 / 53)
    assert verdict.columns == ["", "mean", "median", "PAR10", "failures", "wins"]


@pytest.mark.parametrize(
    ("incumbent", "default", "options", "text"),
    [
        ([1.0] * 9, [2.0] * 9, {"racing": True},
         "The incumbent is 2.00 times as fast as the default (95 % interval 2.00 to 2.00) "
         "on 9 unseen instances."),
        ([2.0] * 9, [1.0] * 9, {"racing": True},
         "The incumbent is 2.00 times as slow as the default (95 % interval 2.00 to 2.00) "
         "on 9 unseen instances."),
        ([1.0] * 9, [2.0] * 9, {"what": "fresh seeds"},
         "The incumbent costs 50 % less than the default (95 % interval 50 % to 50 %) "
         "on 9 fresh seeds."),
        ([3.0] * 9, [2.0] * 9, {},
         "The incumbent costs 50 % more than the default (95 % interval 50 % to 50 %) "
         "on 9 unseen instances."),
        ([-1.0] * 9, [2.0] * 9, {},
         "The incumbent costs 3 less than the default (95 % interval 3 to 3) "
         "on 9 unseen instances."),
        ([0.0, *[2.0] * 8], [1.0, *[3.0] * 8], {"racing": True},  # the figure and its interval
         "The incumbent costs 1 less than the default (95 % interval 1 to 1) "
         "on 9 unseen instances."),
        ([1.0], [2.0], {},
         "The incumbent costs 50 % less than the default on 1 unseen instance, "
         "too few to tell how sure that is."),
        ([1.0, 2.0], [2.0, 3.0], {},
         "The incumbent costs 40 % less than the default on 2 unseen instances, "
         "too few to tell how sure that is."),
        ([1.0] * 9, [1.0] * 9, {},
         "The incumbent costs the same as the default on 9 unseen instances, on each of them."),
        ([1.0] * 9, [1.0] * 9, {"is_default": True},
         "The incumbent is the default itself: nothing better was found."),
        ([1.0, math.inf, 1.0], [2.0, math.inf, math.inf], {},
         "The incumbent failed on 1 and the default on 2 of 3 unseen instances; "
         "it is better on 2 and worse on 0."),
    ],
)  # fmt: skip
def test_the_words(
    incumbent: list[float], default: list[float], options: dict[str, bool], text: str
) -> None:
    assert Verdict.of(incumbent, default, **options).text == text  # type: ignore[arg-type]


def test_what_cannot_be_told_apart_is_not() -> None:
    other = DEFAULT * RNG.lognormal(0.0, 0.5, size=100)
    verdict = Verdict.of(other.tolist(), DEFAULT.tolist())
    assert verdict.low is not None
    assert verdict.high is not None
    assert verdict.low < 1 < verdict.high
    assert verdict.text.endswith(", which cannot tell the two apart.")


def test_it_goes_through_a_note_of_the_journal() -> None:
    verdict = Verdict.of(TUNED.tolist(), DEFAULT.tolist(), racing=True, cutoff=5.0)
    assert Verdict.of_note({**asdict(verdict), "more": 1}) == verdict


def test_a_notebook_shows_its_words_and_figures() -> None:
    page = Verdict.of(TUNED.tolist(), DEFAULT.tolist(), what="<new> ones")._repr_html_()
    assert "&lt;new&gt; ones" in page
    assert page.count("<tr>") == 3


def test_failures_that_are_known_count_whatever_they_cost() -> None:
    verdict = Verdict.of([1.0, 9.0], [9.0, 9.0], racing=True, cutoff=9.0, failures=(0, 1))
    assert (verdict.incumbent_failures, verdict.default_failures) == (0, 1)
    assert [row[-2] for row in verdict.rows] == ["0", "1"]


def test_costs_must_be_pairs() -> None:
    with pytest.raises(ValueError, match="must be pairs, at least one, but got 1 and 2"):
        Verdict.of([1.0], [1.0, 2.0])
    assert paired_interval(DEFAULT[:4], TUNED[:4], ratio_of_means) is None
