"""The passes of the default search as values, printable before anything runs. Numbers only."""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

#: The share of a pass' trials that goes to its first round.
FIRST_ROUND_SHARE = 0.6
FIRST_ROUND_SHARE_OF_FEW = 0.5
FEW_TRIALS = 100
FIRST_ROUND_SHARE_RACING = 0.75
#: Where costs are compared and the number of trials is known, this share of them goes to the first
#: pass and the rest to the second, which starts on another instance; of fewer trials all to one.
FIRST_PASS_SHARE = 0.4
FEWEST_FOR_TWO = 150
#: So many passes are printed.
MOST_LISTED = 8
#: The trials of the longest pass. In a small space there can be thousands of passes that turn out
#: short, and powers of their number have no end.
LONGEST_PASS = 2**40


@dataclass(frozen=True)
class PassPlan:
    """What a pass may use."""

    number: int
    """The pass, from 1."""
    n_trials: int
    """How many trials it may start."""
    n_entrants: int
    """How many configurations enter it, the champion not counted."""
    limit: float = math.inf
    """How many trials the whole run could start when it was planned: raising that later leaves
    this pass as it is."""
    n_changes: int = 0
    """How often that had been changed by then."""
    n_entered: int | None = None
    """How many configurations had entered the run once this pass had begun; a space may have fewer
    than were planned. None before the pass begins."""

    def __str__(self) -> str:
        return f"pass {self.number}: {self.n_entrants} configurations, {self.n_trials} trials"


@dataclass(frozen=True)
class SearchSchedule:
    """What the default search will do with its trials: its passes, as far as they are limited.

    A pass may turn out cheaper than planned, if few can keep up with the champion; then there are
    more passes than are listed here.
    """

    k: int
    """How many configurations race together."""
    racing: bool
    """Whether losers are stopped."""
    n_trials: float
    """Trials in all; infinity if a time limit decides."""
    passes: tuple[PassPlan, ...]
    """The passes, or the first of them if there is no end."""

    @property
    def n_configs(self) -> int:
        """Configurations that enter the passes listed."""
        return sum(plan.n_entrants for plan in self.passes)

    def __str__(self) -> str:
        limit = "until time is up" if math.isinf(self.n_trials) else f"{self.n_trials:,.0f} trials"
        what = (
            "in each pass, groups race on instances that the\n"
            "champion has met, and each group's winner challenges it on 2, 4, 8, … of these"
            if self.racing
            else "in each pass, new configurations race on one instance,\n"
            "and the best on more, until one is left to challenge the champion"
        )
        lines = [
            f"AC-Band with memory, k = {self.k}, {limit}: {what}",
            "",
            "pass  configurations  groups   trials",
        ]
        for plan in self.passes[:MOST_LISTED]:
            n_groups = -(-plan.n_entrants // self.k)
            lines.append(
                f"{plan.number:4}  {plan.n_entrants:14,}  {n_groups:6,}  {plan.n_trials:7,}"
            )
        if math.isinf(self.n_trials) or len(self.passes) > MOST_LISTED:
            lines.append("   …  and so on, each pass longer than the one before")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"  # how a notebook shows it


def search_schedule(
    *,
    n_trials: float,
    k: int,
    first_pass: int | None,
    growth: float,
    racing: bool,
    n_given: int = 1,
    one_instance: bool = False,
) -> SearchSchedule:
    """Plan the passes beforehand, each as long as it can be."""
    share = 1.0 if one_instance else first_round_share(racing=racing, n_trials=n_trials)
    passes: list[PassPlan] = []
    n_used = 0
    while n_used < n_trials and (math.isfinite(n_trials) or len(passes) < 6):
        plan = plan_pass(
            len(passes) + 1,
            left=n_trials - n_used,
            first_pass=first_pass,
            growth=growth,
            share=share,
            at_least=n_given if not passes else 1,
            limit=n_trials,
            multiple=k if racing else 1,
        )
        passes.append(plan)
        n_used += plan.n_trials
    return SearchSchedule(k, racing, n_trials, tuple(passes))


def first_round_share(*, racing: bool, n_trials: float) -> float:
    """Return the share of a pass' trials that goes to its first round."""
    if racing:
        return FIRST_ROUND_SHARE_RACING
    return FIRST_ROUND_SHARE if n_trials >= FEW_TRIALS else FIRST_ROUND_SHARE_OF_FEW


def plan_pass(
    number: int,
    *,
    left: float,
    first_pass: int | None,
    growth: float,
    share: float,
    at_least: int,
    limit: float,
    multiple: int = 1,
) -> PassPlan:
    """Plan a pass of up to ``left`` trials, the given share of them in its first round.

    Where there is room, the number of configurations is a multiple: all groups are full.
    """
    if first_pass is None:
        is_first_of_two = number == 1 and left >= FEWEST_FOR_TWO
        n_trials = int(FIRST_PASS_SHARE * left) if is_first_of_two else int(left)
    else:
        wanted = min(LONGEST_PASS, round(first_pass * growth ** min(number - 1, 500)))
        # What would be left is too little for the pass after this one.
        n_trials = int(left) if left < 2 * wanted else wanted
    n_full = multiple * round(share * n_trials / multiple)
    n_entrants = max(2 if number == 1 else 1, n_full, multiple, at_least)
    n_entrants = int(min(n_entrants, left))
    return PassPlan(number, max(n_trials, n_entrants), n_entrants, limit)


@dataclass(frozen=True)
class KnownBest:
    """What whoever draws new configurations may want to know. Configurations are numbers."""

    pass_number: int
    """The pass they are for, from 1."""
    best: tuple[int, ...]
    """The best so far, the champion first; those that were given, before there is one."""
    behind: Mapping[int, float] = field(default_factory=dict)
    """How far each that has raced is behind the champion, on the instances that both have met: the
    mean difference of their costs, as a multiple of what is usual on the instance, or of the
    logarithms of their times where losers are stopped."""
    n_common: Mapping[int, int] = field(default_factory=dict)
    """On how many instances each of them has met the champion: how much that tells."""
    one_instance: bool = False
    """Whether there is one instance only, so that one cost tells all."""


Draw = Callable[[int, Callable[[], KnownBest]], int]
"""Asked for n configurations in all, returns how many there are; it may ask what is known."""
