"""Named settings: the paper's, and those that measured best. Values only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Preset:
    """Settings that belong together; they mean what the same arguments mean everywhere.

    But for one thing: with early stopping a simulated playoff lives on the races that were saved,
    as far as they go, while a run sets its own aside, at most a quarter of the budget: how many
    are saved in a run depends on its workers.

    >>> PRESETS["paper"].settings()["k"]
    2
    """

    k: int
    """How many configurations race at once."""
    alpha: float | None
    """α, the share of configurations one is content with; None: as small as the budget allows."""
    delta: float
    """δ, the probability of drawing none of them."""
    n_epochs: int | None
    """At most so many epochs; None is the paper's n_0 = N + 1."""
    early_stopping: float | None
    """When a group is decided: see ``stopping``."""
    playoff: int
    """On how many instances the epoch winners meet in the end."""
    spend: str = "nothing"
    """What becomes of races that were saved."""
    budget_share: float = 1.0
    """The share of the instances, as a number of races, that measured best; advice, as a budget
    is always the user's own. Not among the settings."""

    def settings(self) -> dict[str, Any]:
        """Return the arguments by name."""
        names = ("k", "alpha", "delta", "n_epochs", "early_stopping", "playoff", "spend")
        return {name: getattr(self, name) for name in names}


def get_preset(name: str) -> Preset:
    """Return the preset of that name."""
    if name not in PRESETS:
        raise ValueError(f"preset must be one of {', '.join(map(repr, PRESETS))}, got {name!r}")
    return PRESETS[name]


PRESETS = {
    # The experiments of Brandt et al. (2023): every race of the budget is run, and n_0 = N + 1.
    "paper": Preset(k=2, alpha=0.05, delta=0.05, n_epochs=None, early_stopping=None, playoff=0),
    # With as many races as a table has instances, on each of twelve tables a mean gap of ×0.53 to
    # ×0.99 of the paper's at ×0.29 to ×0.43 of its CPU time: many configurations in two epochs,
    # the last word to the mean cost.
    "recommended": Preset(
        k=2,
        alpha=None,
        delta=0.05,
        n_epochs=2,
        early_stopping=0.1,
        playoff=800,
        budget_share=0.3,
    ),
    # For configurations of one algorithm: ×0.53 to ×0.77 of the gap at ×0.20 to ×0.28 of the CPU.
    # Not for a portfolio of different algorithms, where winning one race of four and being fast
    # on average are different things (up to ×2.5 of the gap).
    "frugal": Preset(
        k=4,
        alpha=None,
        delta=0.05,
        n_epochs=1,
        early_stopping=0.1,
        playoff=0,
        budget_share=0.25,
    ),
}
