"""Shows how far a run is and how good its incumbent, in a terminal or a notebook."""

from __future__ import annotations

import atexit
import importlib
import logging
import math
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

from ConfigSpace import Configuration
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.jupyter import JupyterMixin
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text
from smac.callback.callback import Callback
from smac.main.smbo import SMBO
from smac.runhistory.dataclasses import TrialInfo, TrialKey, TrialValue
from smac.runhistory.runhistory import RunHistory

from acband_configspace.core.ends import End
from acband_configspace.core.engine import Position
from acband_configspace.core.instances import InstanceKey
from acband_configspace.runlog.words import counted, gain
from acband_configspace.smac_plugin.intensifier import ACBandIntensifier
from acband_configspace.smac_plugin.runners import RaceRunner
from acband_configspace.smac_plugin.trial_values import cost_of, end_of

#: Seconds between two pictures: more would cost time that the races need.
REFRESH_INTERVAL = 0.2
#: How wide the bar may be, in characters.
LEAST_BAR, LONGEST_BAR = 5, 30
#: How many values of a configuration are shown.
MOST_VALUES = 8


@dataclass(frozen=True)
class Standing:
    """Who leads, and how it compares with the default on the instances that both have met."""

    number: int
    """The number of the incumbent."""
    values: str
    """Its values, the first of them if there are many."""
    is_default: bool
    n_common: int
    """On how many instances they have met."""
    gain: str | None
    """How much better it is there, "23 % less than the default"; None if that is not known."""
    at_least: bool
    """Whether the default was stopped on some of them: it is then worse than that."""

    @classmethod
    def of(cls, smbo: SMBO, intensifier: ACBandIntensifier) -> Standing | None:
        """Look at a run; None as long as nobody leads."""
        incumbent = next(iter(intensifier.get_incumbents()), None)
        if incumbent is None:
            return None
        default = smbo._scenario.configspace.get_default_configuration()
        own, other = (_costs(smbo.runhistory, config) for config in (incumbent, default))
        common = [key for key in own if key in other]
        n = max(1, len(common))
        means = [sum(costs[key][0] for key in common) / n for costs in (other, own)]
        at_least = not all(other[key][1] for key in common)
        # A lower bound on the default's mean says nothing while it is below the incumbent's, and
        # one on the incumbent's never does.
        own_known = bool(common) and all(own[key][1] for key in common)
        is_known = own_known and not (at_least and means[0] < means[1])
        return cls(
            number=intensifier.configurations.number_of(incumbent) or 0,
            values=_values(incumbent),
            is_default=dict(incumbent) == dict(default),
            n_common=len(common),
            gain=gain(*means, racing=intensifier.racing) if is_known else None,
            at_least=at_least,
        )

    def __str__(self) -> str:
        if self.is_default:
            return f"#{self.number} (default)"
        if self.gain is None:
            verb = "known to beat" if self.n_common else "compared with"
            return f"#{self.number}, not {verb} the default yet"
        return f"#{self.number}, {'at least ' if self.at_least else ''}{self.gain}"


def _costs(runhistory: RunHistory, config: Configuration) -> dict[InstanceKey, tuple[float, bool]]:
    """Return the finite costs of a configuration, and whether each is known or only a bound."""
    id_ = runhistory.config_ids.get(config)  # once: configurations are found by their hash
    if id_ is None:
        return {}
    costs = {}
    for trial in runhistory.get_trials(config):
        key = TrialKey(id_, trial.instance, trial.seed, trial.budget)
        value = runhistory[key]
        known = end_of(value) is not End.LOST
        if end_of(value) is not End.CANCELLED and math.isfinite(cost_of(value)):
            costs[InstanceKey(trial.instance, int(trial.seed or 0))] = (cost_of(value), known)
    return costs


def _values(config: Configuration) -> str:
    shown = [
        f"{name}={value:.4g}" if isinstance(value, float) else f"{name}={value}"
        for name, value in config.items()
    ]
    more = len(shown) - MOST_VALUES
    return ", ".join(shown[:MOST_VALUES]) + (f" and {more} more" if more > 0 else "")


@dataclass(frozen=True)
class Progress(JupyterMixin):
    """How far a run is."""

    position: Position
    n_trials: int
    """Trials that are over, without those of a warm start."""
    n_configs: int
    """Configurations that have raced."""
    most_trials: float
    """Trials the run may take."""
    n_running: int
    """Racers that run, as far as there are workers for them."""
    cpu_seconds: float
    """The CPU time of all trials so far."""
    standing: Standing | None
    """Who leads and how good it is."""
    elapsed: float
    """Seconds since the start."""
    limit: float
    """Seconds the run may take."""
    finished: bool = False
    """Whether there is nothing left to race."""

    @classmethod
    def of(cls, smbo: SMBO) -> Progress:
        """Look at a run."""
        intensifier = smbo.intensifier
        assert isinstance(intensifier, ACBandIntensifier)
        n_open = smbo.runhistory.submitted - smbo.runhistory.finished
        n_workers = smbo._scenario.n_workers
        if isinstance(smbo._runner, RaceRunner):  # a cluster has workers of its own
            n_workers = smbo._runner.n_workers
        return cls(
            position=intensifier.engine.position,
            n_trials=intensifier.n_finished,
            n_configs=len(smbo.runhistory.config_ids),
            most_trials=intensifier.trial_limit - intensifier.n_warm,
            n_running=max(0, min(n_open, n_workers)),
            cpu_seconds=smbo.used_target_function_cputime,
            standing=Standing.of(smbo, intensifier),
            elapsed=smbo.used_walltime,
            limit=smbo._scenario.walltime_limit,
            finished=intensifier.finished is not None or smbo._finished,
        )

    @property
    def share(self) -> float:
        """The share of the run that is over, by time or by races, as far as that is known."""
        if self.finished:
            return 1.0
        if math.isfinite(self.limit):
            return min(1.0, self.elapsed / self.limit)
        if not math.isfinite(self.most_trials):
            return self.position.share
        # The paper's schedule may need fewer trials than there are; passes of the search do not.
        of_schedule = self.position.share if (self.position.n_epochs or 1) > 1 else 0.0
        return min(1.0, max(self.n_trials / self.most_trials, of_schedule))

    @property
    def seconds_left(self) -> float:
        """The seconds left, if races keep taking as long as they have so far."""
        if math.isfinite(self.limit) and not self.finished:
            return max(0.0, self.limit - self.elapsed)
        return self.elapsed * (1.0 - self.share) / self.share if self.share else math.inf

    @property
    def measured(self) -> str:
        """What the bar measures, and how long it will take."""
        if self.finished:
            return f"finished after {clock(self.elapsed)}"
        if math.isfinite(self.limit):
            whole = clock(self.limit)
        elif math.isfinite(self.most_trials):
            whole = f"{self.most_trials:,.0f} trials"
        else:
            whole = f"pass {self.position.pass_number}"
        return f"{self.share:.0%} of {whole}, {clock(self.seconds_left)} left"

    @property
    def place(self) -> str:
        """Where the run is."""
        position = self.position
        parts = [f"pass {position.pass_number}"]
        if position.n_epochs != 1:
            total = "" if position.n_epochs is None else f" of {position.n_epochs}"
            parts.append(f"epoch {position.epoch}{total}")
        parts.append(f"{'playoff, ' if position.is_playoff else ''}round {position.round}")
        return " · ".join(parts)

    @property
    def raced(self) -> str:
        """How many trials there were, of how many configurations."""
        return f"{counted(self.n_trials, 'trial')} of {counted(self.n_configs, 'configuration')}"

    def lines(self) -> tuple[str, str, str]:
        """Return what the bar measures, who leads and where the run is, in order of importance."""
        leader = "none yet" if self.standing is None else str(self.standing)
        used = (
            f"{self.raced} · {counted(self.n_running, 'racer')} running · "
            f"CPU {clock(self.cpu_seconds)} · {clock(self.elapsed)} elapsed"
        )
        return self.measured, f"incumbent: {leader}", f"{self.place} · {used}"

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Draw it: in a narrow window the bar makes room for the words."""
        measured, leader, place = self.lines()
        room = options.max_width - len(f"AC-Band  {measured}")
        head = Table.grid(padding=(0, 1))
        cells: list[RenderableType] = [Text("AC-Band", style="bold")]
        if room >= LEAST_BAR:
            cells.append(ProgressBar(total=1.0, completed=self.share, width=min(LONGEST_BAR, room)))
        head.add_row(*cells, Text(measured, no_wrap=True, overflow="ellipsis"))
        yield head
        yield Text(leader, no_wrap=True, overflow="ellipsis")
        yield Text(place, style="dim", no_wrap=True, overflow="ellipsis")


def how_it_stands(smbo: SMBO, *, interrupted: bool = True) -> str:
    """Return three lines on a run that is stopped or shown: where it is, who leads, what next."""
    progress = Progress.of(smbo)
    standing = progress.standing
    if standing is None:
        leader = "No trial has finished yet, so there is no incumbent."
    else:
        met = counted(standing.n_common, "common instance")
        compared = "" if standing.gain is None or standing.is_default else f" on {met}"
        leader = f"The incumbent is {standing}{compared}: {standing.values}"
    after = f"after {progress.raced} and {clock(progress.elapsed)}"
    place = f"in {progress.place.replace(' · ', ', ')}, {after}"
    how = " without overwrite=True" if smbo._overwrite else ""
    further = f"Start it again{how} to continue; its files are in"
    if interrupted:
        where = f"Interrupted {after if progress.finished else place}."
    elif progress.finished:
        where, further = f"The run is finished {after}.", "Its files are in"
    elif not progress.n_trials:
        where, further = "The run has not started.", "Its files will be in"
    else:
        where = f"The run is {place}."
    return f"{where}\n{leader}\n{further} {smbo._scenario.output_directory}"


def is_terminal(stream: object) -> bool:
    """Return whether a stream is a terminal; one may be closed, or of the user's own making."""
    try:
        return bool(stream.isatty())  # type: ignore[attr-defined]
    except (AttributeError, ValueError):
        return False


def in_notebook() -> bool:
    """Return whether this is Jupyter, or something like it, as rich sees it."""
    return Console().is_jupyter


class ProgressCallback(Callback):
    """Shows how far a run is: what share is over, the incumbent and how good it is, the round.

    :class:`ACBandFacade` adds one by itself when it runs in a terminal or a notebook
    (``progress=False`` keeps it from doing so). For a stock facade of SMAC with our intensifier,
    pass it in ``callbacks``.

    It draws only while ``optimize`` runs: in ask/tell the loop is the user's own, and so is the
    screen. Where the output is neither a terminal nor a notebook it is silent.

    Parameters
    ----------
    console : rich.console.Console | None
        Where to draw: the standard error stream by default, so that what a script prints can be
        piped.
    """

    def __init__(self, *, console: Console | None = None) -> None:
        super().__init__()
        self._console = console
        self._console_in_use: Console | None = None
        self._live: Live | None = None
        self._cell: Any = None
        self._open = ExitStack()
        self._last = -math.inf

    def on_start(self, smbo: SMBO) -> None:
        """Begin to draw."""
        if not isinstance(smbo.intensifier, ACBandIntensifier):
            raise TypeError(
                f"ProgressCallback needs an ACBandIntensifier but got {smbo.intensifier!r}"
            )
        console = Console(stderr=True) if self._console is None else self._console
        if not (console.is_terminal or console.is_jupyter):
            return
        self.close()
        self._console_in_use = console
        if console.is_jupyter:
            # An output of the cell that is replaced: rich's own way needs ipywidgets for it.
            display = importlib.import_module("IPython.display").display
            self._cell = display(Progress.of(smbo), display_id=True)
            return
        # No thread draws: targets may fork this process. What the script prints to a file or
        # a pipe must go on to do so.
        self._live = Live(
            Progress.of(smbo),
            console=console,
            auto_refresh=False,
            redirect_stdout=is_terminal(sys.stdout),
            redirect_stderr=is_terminal(sys.stderr),
        )
        streams = (sys.stdout, sys.stderr)
        # SMAC does not tell its callbacks of an exception or Ctrl-C; the facade does. And the
        # interrupt may come while the first picture is drawn, with the cursor hidden already.
        atexit.register(self.close)
        self._open.callback(self._live.stop)
        self._live.start(refresh=True)
        self._open.enter_context(_logs_above(*streams))

    def on_ask_start(self, smbo: SMBO) -> None:
        """Draw, if it is time to."""
        self._draw(smbo)

    def on_tell_end(self, smbo: SMBO, info: TrialInfo, value: TrialValue) -> None:
        """Draw, if it is time to."""
        self._draw(smbo)

    def on_end(self, smbo: SMBO) -> None:
        """Leave the last display on the screen."""
        self._last = -math.inf
        self._draw(smbo)
        self.close()

    def say(self, text: str) -> bool:
        """Print a text where the display was; return False if there was none."""
        if self._console_in_use is None:
            return False
        self._console_in_use.print(text, markup=False, highlight=False, soft_wrap=True)
        return True

    def close(self) -> None:
        """Stop drawing and release the terminal, even if nothing was drawn."""
        self._live = self._cell = None
        self._open.close()
        atexit.unregister(self.close)

    def _draw(self, smbo: SMBO) -> None:
        if time.monotonic() - self._last < REFRESH_INTERVAL:
            return
        if self._live is not None:
            self._live.update(Progress.of(smbo), refresh=True)
        elif self._cell is not None:
            self._cell.update(Progress.of(smbo))
        self._last = time.monotonic()  # not before: drawing takes long in long runs


@contextmanager
def _logs_above(stdout: object, stderr: object) -> Iterator[None]:
    """Let log handlers print above the display: they still hold the streams it replaced."""
    replaced = []
    for name in (None, "smac", "acband_configspace"):
        for handler in logging.getLogger(name).handlers:
            if not isinstance(handler, logging.StreamHandler):
                continue
            old = handler.stream
            new = sys.stdout if old is stdout else sys.stderr if old is stderr else old
            if new is not old:
                handler.setStream(new)
                replaced.append((handler, old))
    try:
        yield
    finally:
        for handler, old in replaced:
            handler.setStream(old)


def clock(seconds: float) -> str:
    """Return a time as a clock shows it: 1:05, or 2:01:05."""
    if not math.isfinite(seconds):
        return "?"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
