"""Every option of AC-Band in one frozen value, checked once, with the presets. Values only."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any, Literal

from acband_configspace.core.checks import probability, whole_number
from acband_configspace.core.statistics import Statistic, get_statistic
from acband_configspace.core.stopping import checked_early_stopping

#: What becomes of races that early decisions saved.
SPENDINGS = ("nothing", "configurations")
#: Where new configurations may come from.
PROPOSALS = ("uniform", "learned", "selector")
#: How many times as long as the one before a pass is; shorter ones learn sooner.
GROWTH = 2.0
GROWTH_RACING = 1.1
LEARNING_GROWTH = 1.03
#: The trials of the first pass, where passes grow; likewise.
FIRST_PASS = 25
FIRST_PASS_RACING = 11
LEARNING_FIRST_PASS = 10
#: What θ_0 may be.
FIRSTS = ("default", "random")


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How AC-Band searches.

    With memory (the default) a run is made in passes, results are kept, and configurations meet on
    the same instances: see :mod:`acband_configspace.core.search`.
    Without, it follows the paper's schedule, every race on an instance of its own: see
    :class:`~acband_configspace.Schedule`. The options from ``alpha`` on belong to that schedule,
    and giving one of them a value other than its default selects it (in a facade, giving it at all
    does).

    >>> Settings().memory, Settings(alpha=0.05).memory
    (True, False)
    >>> Settings(alpha=0.05, memory=True)
    Traceback (most recent call last):
    ...
    ValueError: alpha must not be given with memory=True: it belongs to the paper's schedule
    """

    k: int | None = None
    """How many configurations race on an instance. None: 4 if losers are stopped, otherwise 8; 2,
    the paper's, without memory."""
    memory: bool | None = None
    """Whether results are kept from round to round, and configurations meet on common instances.
    None: yes, unless an option of the paper's schedule is given."""
    first_pass: int | None = None
    """With memory: how many trials the first pass may take; further ones are longer. None: 11 where
    losers are stopped; otherwise 10 where something proposes configurations, and 25 where time
    decides; otherwise all n_trials are divided up beforehand."""
    proposals: Any = "uniform"
    """Where new configurations come from: "uniform"; "learned", three quarters as a model chooses,
    half where losers are stopped; "selector", half of them from SMAC's own selector, in a stock
    facade; or an object of the user's own with ``propose``."""
    first: Literal["default", "random"] = "default"
    """θ_0: the space's default configuration, or a random one as in the paper."""
    alpha: float | None = None
    """α: with probability 1 - δ one of the best share α of all configurations is drawn. None: as
    small as the budget allows."""
    delta: float = 0.05
    """δ, the probability of drawing none of them."""
    n_candidates: int | None = None
    """N, how many configurations to draw instead of what α and δ ask for."""
    n_epochs: int | None = None
    """At most so many epochs; None is the paper's n_0 = N + 1."""
    budget: int | None = None
    """B, the number of races; None: as many as fit into the trials."""
    statistic: str | Statistic = "wins"
    """What ranks a group: "wins" (the paper's), "mean", "quantile", or an object of one's own."""
    early_stopping: float | None = 0.0
    """When a group is decided: see :mod:`acband_configspace.core.stopping`."""
    playoff: int = 100
    """On how many fresh instances, at most, the winners of the epochs and θ_0 meet in the end."""
    spend: Literal["nothing", "configurations"] = "nothing"
    """What becomes of trials that early decisions saved: they remain, or buy further epochs."""
    judge_by: Statistic = field(init=False, repr=False)
    """The statistic itself."""

    def __post_init__(self) -> None:
        self._check_numbers()
        self._choose_memory()
        if isinstance(self.proposals, str) and self.proposals not in PROPOSALS:
            names = ", ".join(map(repr, PROPOSALS))
            raise ValueError(f"proposals must be one of {names} but got {self.proposals!r}")
        if not isinstance(self.proposals, str) and not hasattr(self.proposals, "propose"):
            raise TypeError(
                f"proposals must be a name or have a method propose but got {self.proposals!r}"
            )
        self._refuse_without_memory()
        if self.first not in FIRSTS:
            raise ValueError(f"first must be 'default' or 'random' but got {self.first!r}")
        if self.spend not in SPENDINGS:
            names = ", ".join(map(repr, SPENDINGS))
            raise ValueError(f"spend must be one of {names} but got {self.spend!r}")
        statistic = get_statistic(self.statistic)
        object.__setattr__(self, "judge_by", statistic)
        level = checked_early_stopping(self.early_stopping, statistic)
        object.__setattr__(self, "early_stopping", level)

    def _choose_memory(self) -> None:
        if not isinstance(self.memory, (bool, type(None))):
            raise TypeError(f"memory must be True or False but got {self.memory!r}")
        given = [
            option.name
            for option in dataclasses.fields(self)
            if option.name in PAPER_OPTIONS and getattr(self, option.name) != option.default
        ]
        if self.memory and given:
            raise ValueError(
                f"{given[0]} must not be given with memory=True: it belongs to the paper's schedule"
            )
        object.__setattr__(self, "memory", not given if self.memory is None else self.memory)

    def _refuse_without_memory(self) -> None:
        if not self.memory and self.proposals != "uniform":
            raise ValueError(
                "proposals must be 'uniform' with the paper's schedule, which draws all "
                f"configurations before anything has raced, but got {self.proposals!r}"
            )
        if not self.memory and self.first_pass is not None:
            raise ValueError(
                f"first_pass must be None with the paper's schedule but got {self.first_pass}"
            )

    def _check_numbers(self) -> None:
        for name, at_least in (
            ("k", 2), ("first_pass", 2), ("n_candidates", 1), ("n_epochs", 1), ("budget", 1),
            ("playoff", 0),
        ):  # fmt: skip
            value = getattr(self, name)
            if value is not None or name == "playoff":
                object.__setattr__(self, name, whole_number(name, value, at_least=at_least))
        if self.alpha is not None:
            probability("alpha", self.alpha)
        probability("delta", self.delta)

    def racers(self, *, racing: bool) -> int:
        """Return k, or what it is by default where losers are stopped, or are not."""
        if self.k is not None:
            return self.k
        if not self.memory:
            return 2
        return 4 if racing else 8

    def trials_of_first_pass(self, *, racing: bool, timed: bool) -> int | None:
        """Return how long the first pass is; None where all n_trials are divided up beforehand.

        Where time may end the run, it may do so long before all n_trials.
        """
        if self.first_pass is not None:
            return self.first_pass
        if racing:
            return FIRST_PASS_RACING
        if self.proposals != "uniform":
            return LEARNING_FIRST_PASS
        return FIRST_PASS if timed else None

    def growth(self, *, racing: bool) -> float:
        """Return how many times as long as the one before each pass is."""
        if racing:
            return GROWTH_RACING
        return GROWTH if self.proposals == "uniform" else LEARNING_GROWTH

    def settings(self) -> dict[str, Any]:
        """Return the options that are not the default's, as facades and simulations take them."""
        given = {}
        for option in dataclasses.fields(self):
            value = getattr(self, option.name)
            if option.init and option.name != "memory" and value != option.default:
                given[option.name] = value
        if not self.memory and not any(name in PAPER_OPTIONS for name in given):
            given["memory"] = False  # nothing else says so
        return given


#: The options of the paper's schedule, which have no meaning with memory.
PAPER_OPTIONS = (
    "alpha", "delta", "n_candidates", "n_epochs", "budget", "statistic", "early_stopping",
    "playoff", "spend",
)  # fmt: skip

#: Those for which None is a wish.
MAY_BE_NONE = ("early_stopping",)

PRESETS = {
    # What the facade does unless told otherwise.
    "default": Settings(),
    # The experiments of Brandt et al. (2023): every race of the budget is run, and n_0 = N + 1.
    "paper": Settings(k=2, alpha=0.05, delta=0.05, early_stopping=None, playoff=0),
}


def settings_from(preset: str | Settings = "default", **options: Any) -> Settings:
    """Return the settings of a preset, changed by the options given by name."""
    if isinstance(preset, str):
        if preset not in PRESETS:
            names = ", ".join(map(repr, PRESETS))
            raise ValueError(f"preset must be one of {names} but got {preset!r}")
        preset = PRESETS[preset]
    known = [option.name for option in dataclasses.fields(Settings) if option.init]
    for name in options:
        if name not in known:
            raise TypeError(f"{name!r} is not an option of AC-Band; these are: {', '.join(known)}")
    chosen = {**preset.settings(), **options}
    # Also one that is given its default; but None is what most have where nothing is given.
    wanted = {name for name, value in options.items() if value is not None or name in MAY_BE_NONE}
    if chosen.get("memory") is None and not wanted.isdisjoint(PAPER_OPTIONS):
        chosen["memory"] = False
    return Settings(**chosen)
