"""Shows how far a run is, in a terminal."""

from __future__ import annotations

import atexit
import logging
import math
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text
from smac.callback.callback import Callback
from smac.main.smbo import SMBO
from smac.runhistory.dataclasses import TrialInfo, TrialValue

from acband_configspace.core.engine import Position
from acband_configspace.smac_plugin.intensifier import ACBandIntensifier
from acband_configspace.smac_plugin.scenario import trial_limit

#: Seconds between two pictures: more would cost time that the races need.
REFRESH_INTERVAL = 0.2


@dataclass(frozen=True)
class Progress:
    """How far a run is."""

    position: Position
    n_races: int
    """Races that are over."""
    n_trials: int
    """Trials that are over."""
    n_configs: int
    """Configurations that have raced."""
    most_trials: float
    """Trials the run may take."""
    n_running: int
    """Racers that run, as far as there are workers for them."""
    cpu_seconds: float
    """The CPU time of all trials so far."""
    incumbent: int | None
    """The number of the incumbent; 0 is the default configuration."""
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
        incumbent = next(iter(intensifier.get_incumbents()), None)
        return cls(
            position=intensifier.position,
            n_races=intensifier.n_races,
            n_trials=smbo.runhistory.finished,
            n_configs=intensifier.engine.n_entered,
            most_trials=trial_limit(smbo._scenario),
            n_running=max(0, min(n_open, smbo._scenario.n_workers)),
            cpu_seconds=smbo.used_target_function_cputime,
            incumbent=None
            if incumbent is None
            else intensifier.configurations.number_of(incumbent),
            elapsed=smbo.used_walltime,
            limit=smbo._scenario.walltime_limit,
            finished=intensifier.finished is not None,
        )

    @property
    def share(self) -> float:
        """What share of the run is over, as far as one can tell: of its time, or of its races."""
        if self.finished:
            return 1.0
        if math.isfinite(self.limit):
            return min(1.0, self.elapsed / self.limit)
        if math.isfinite(self.most_trials):
            return min(1.0, max(self.n_trials / self.most_trials, self._share_of_schedule))
        return self.position.share

    @property
    def _share_of_schedule(self) -> float:
        # The paper's schedule may need fewer trials than there are; passes of the search do not.
        return self.position.share if (self.position.n_epochs or 1) > 1 else 0.0

    @property
    def seconds_left(self) -> float:
        """The time that is left, if the races go on taking as long as they did so far."""
        if math.isfinite(self.limit) and not self.finished:
            return max(0.0, self.limit - self.elapsed)
        return self.elapsed * (1.0 - self.share) / self.share if self.share else math.inf

    def lines(self) -> tuple[str, str]:
        """Return where the run is, and what it has used."""
        position = self.position
        parts = [f"pass {position.pass_number}"]
        if position.n_epochs != 1:
            parts.append(f"epoch {_out_of(position.epoch, position.n_epochs)}")
        parts.append(f"{'playoff, ' if position.is_playoff else ''}round {position.round}")
        parts.append(f"{self.n_trials:,} trials of {self.n_configs:,} configurations")
        racers = "1 racer" if self.n_running == 1 else f"{self.n_running} racers"
        used = [
            f"{racers} running",
            f"CPU {clock(self.cpu_seconds)}",
            f"incumbent: {_name(self.incumbent)}",
            f"{clock(self.elapsed)} elapsed",
            "finished" if self.finished else f"{clock(self.seconds_left)} left",
        ]
        return " · ".join(parts), " · ".join(used)

    def __rich__(self) -> Group:
        where, used = self.lines()
        head = Table.grid(padding=(0, 1))
        bar = ProgressBar(total=1.0, completed=self.share, width=30)
        head.add_row(Text("AC-Band", style="bold"), bar, Text(where, no_wrap=True))
        return Group(head, Text(used, style="dim", no_wrap=True, overflow="ellipsis"))


class ProgressCallback(Callback):
    """Shows how far a run is: its epoch and round, races, racers, CPU time, incumbent, time left.

    :class:`ACBandFacade` adds one by itself when it runs in a terminal (``progress=False`` keeps
    it from doing so). For a stock facade of SMAC with our intensifier, pass it in ``callbacks``.

    It draws only while ``optimize`` runs: in ask/tell the loop is the user's own, and so is the
    screen. Where the output is no terminal it is silent.

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
        self._open = ExitStack()
        self._last = -math.inf

    def on_start(self, smbo: SMBO) -> None:
        """Begin to draw."""
        if not isinstance(smbo.intensifier, ACBandIntensifier):
            raise TypeError(
                f"ProgressCallback needs an ACBandIntensifier but got {smbo.intensifier!r}"
            )
        console = Console(stderr=True) if self._console is None else self._console
        if not console.is_terminal:
            return
        self.close()
        self._console_in_use = console
        # No thread draws: targets may fork this process. What the script prints to a file or
        # a pipe must go on to do so.
        self._live = Live(
            Progress.of(smbo),
            console=console,
            auto_refresh=False,
            redirect_stdout=sys.stdout.isatty(),
            redirect_stderr=sys.stderr.isatty(),
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
        """Leave the last picture on the screen."""
        self._last = -math.inf
        self._draw(smbo)
        self.close()

    def say(self, text: str) -> bool:
        """Print a text where the picture was; return False if there was none."""
        if self._console_in_use is None:
            return False
        self._console_in_use.print(text, markup=False, highlight=False, soft_wrap=True)
        return True

    def close(self) -> None:
        """Stop drawing and give the terminal back; also when nothing was drawn."""
        self._live = None
        self._open.close()
        atexit.unregister(self.close)

    def _draw(self, smbo: SMBO) -> None:
        now = time.monotonic()
        if self._live is not None and now - self._last >= REFRESH_INTERVAL:
            self._live.update(Progress.of(smbo), refresh=True)
            self._last = now


@contextmanager
def _logs_above(stdout: object, stderr: object) -> Iterator[None]:
    """Let log handlers print above the picture: they hold on to the streams from before it."""
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


def _out_of(number: int, total: int | None) -> str:
    return f"{number}" if total is None else f"{number} of {total}"


def _name(incumbent: int | None) -> str:
    if incumbent is None:
        return "none yet"
    return "the default" if incumbent == 0 else f"configuration {incumbent}"
