"""Makes SMAC's loop wait where AC-Band must know outcomes before it can go on."""

from __future__ import annotations

from typing import Protocol

from ConfigSpace import Configuration
from smac.callback.callback import Callback
from smac.main.smbo import SMBO
from smac.runhistory.dataclasses import TrialInfo, TrialValue

from acband_configspace.errors import OutcomesNeededError, RunFinishedError
from acband_configspace.smac_plugin.runners import RaceRunner


class RaceSource(Protocol):
    """What the callback needs of the intensifier."""

    @property
    def finished(self) -> str | None:
        """Why there is nothing left to race, None while there is."""

    def fill(self) -> bool:
        """Return whether there is a trial to be handed out."""

    def hand_out_again(self) -> None:
        """Queue the trials whose results will not come any more."""

    def record(self, info: TrialInfo, value: TrialValue) -> None:
        """Take in the result of a trial."""

    def pop_needless(self) -> list[str]:
        """Return races that are running though their outcome does not matter any more."""

    def get_incumbent(self) -> Configuration | None:
        """Return the incumbent."""


class RaceCallback(Callback):
    """Waits before a trial is asked for, and passes results on.

    SMAC has no word for "wait": a generator that ends stops the run. But callbacks are called
    before each trial is asked for, so the waiting is done here.
    """

    def __init__(self, intensifier: RaceSource) -> None:
        super().__init__()
        self._intensifier = intensifier
        self._optimizing = False
        self._incumbent: Configuration | None = None

    def on_start(self, smbo: SMBO) -> None:  # noqa: D102
        self._optimizing = True

    def on_end(self, smbo: SMBO) -> None:
        """Judge the races whose results are all known: SMAC stops at the last trial."""
        self._optimizing = False
        self._intensifier.fill()

    def on_ask_start(self, smbo: SMBO) -> None:
        """Wait until there is a trial to be had; in ask/tell say that there is none."""
        intensifier = self._intensifier
        while not intensifier.fill() and intensifier.finished is None:
            runner = smbo._runner
            if not self._optimizing or runner is None:
                raise OutcomesNeededError(
                    "AC-Band must know the outcomes of the races of this round before it can name "
                    "further ones: tell the results of the trials that were asked for, then ask "
                    "again"
                )
            if smbo._stop or smbo.budget_exhausted:
                return  # the generator ends, and with it SMAC's loop
            if runner.is_running():
                runner.wait()
                smbo._add_results()
                continue
            # An interrupted ``optimize`` lost them, or they were asked for and never told.
            intensifier.hand_out_again()
            if not intensifier.fill() and intensifier.finished is None:
                raise RuntimeError("AC-Band waits for results of trials that nobody runs")
        if intensifier.finished is not None and not self._optimizing:
            raise RunFinishedError(
                f"AC-Band is finished: {intensifier.finished}. The incumbent is "
                f"{intensifier.get_incumbent()}"
            )

    def on_iteration_end(self, smbo: SMBO) -> None:
        """Stop what runs when a time limit is met, or a callback or cost threshold ends the run."""
        time_is_up = smbo.remaining_walltime <= 0 or smbo.remaining_cputime <= 0
        called_off = smbo._stop and self._intensifier.finished is None
        if (time_is_up or called_off) and isinstance(smbo._runner, RaceRunner):
            smbo._runner.stop()
        self._stop_needless(smbo)

    def on_tell_start(self, smbo: SMBO, info: TrialInfo, value: TrialValue) -> None:
        """Give a configuration that was in another process its space back.

        ConfigSpace 1.2 does not hold a hyperparameter on a log scale of integers, or with a normal
        or beta prior, equal to its own copy; SMAC's run history would see a new configuration.
        """
        ours, theirs = smbo._scenario.configspace, info.config.config_space
        if theirs is not ours and str(theirs) == str(ours):
            info.config.config_space = ours

    def on_tell_end(self, smbo: SMBO, info: TrialInfo, value: TrialValue) -> None:
        """Pass a result on, and stop the races that it makes needless."""
        self._intensifier.record(info, value)
        self._stop_needless(smbo)
        incumbent = self._intensifier.get_incumbent()
        if incumbent is not None and incumbent is not self._incumbent:
            self._incumbent = incumbent
            for callback in smbo._callbacks:  # no hook of SMAC's, but one that callbacks may have
                if (hook := getattr(callback, "on_incumbent_changed", None)) is not None:
                    hook(smbo, incumbent)

    def _stop_needless(self, smbo: SMBO) -> None:
        if isinstance(smbo._runner, RaceRunner):
            for race in self._intensifier.pop_needless():
                smbo._runner.cancel(race)
