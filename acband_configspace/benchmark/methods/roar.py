"""ROAR: random search with SMAC's intensification, and the same with capped run times."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from acband_configspace.benchmark.methods.method import AnytimeMethod, Spending, Times
from acband_configspace.benchmark.simulation import SimulatedRun, drawn_order
from acband_configspace.benchmark.tables import RuntimeTable


@dataclass(frozen=True)
class Roar(AnytimeMethod):
    """Random online aggressive racing (Hutter et al., 2011) as SMAC 2.4's ``Intensifier`` has it.

    Taken over from SMAC, for one worker and one objective:

    - Before each new challenger the incumbent gets a run on one more instance, drawn at random.
    - A challenger, drawn at random, gets 1 run, then up to 2, 4, 8, … in all, on instances of the
      incumbent in an order drawn anew for each challenger. (In one order for all, a lucky incumbent
      would turn everybody away on the same first instance.)
    - It is rejected once its mean on the instances it has seen is not below the incumbent's there.
      The runs it was promised are still made, as SMAC has handed them out already.
    - With all instances of the incumbent and a lower mean it is the new incumbent.

    Not taken over: ``max_config_calls``, 3 in SMAC's random facade, by which no configuration would
    be run on more instances. The initial design is one random configuration.

    Parameters
    ----------
    capped
        Stop a challenger's run when its sum reaches the incumbent's on the instances of this step
        and of those before, and reject it then: adaptive capping for run times, as in ParamILS
        (Hutter et al., 2009), the first SMAC, and SMAC 2.4 with ``adaptive_capping`` (which sets
        the caps of a step before its first run; here each run gets what the others have left).
        Challengers are compared at the end of a step.
    one_order
        All challengers meet the incumbent's instances in the one order in which it has met them,
        as in ParamILS (Hutter et al., 2009).
    """

    capped: bool = False
    one_order: bool = False

    @property
    def name(self) -> str:
        """As in the literature."""
        name = "ROAR, capped" if self.capped else "ROAR"
        return f"{name}, one order" if self.one_order else name

    def _search(self, table: RuntimeTable, spending: Spending, seed: int) -> SimulatedRun:
        """Challenge the incumbent with one new configuration after the other."""
        rows, columns = drawn_order(table, seed)
        shuffle = np.random.default_rng([seed, 4])
        best, known = int(rows[0]), spending.times(int(rows[0]), columns[:1])
        n_configs = 1
        if spending.pay(known):
            spending.lead(best)
        for row in rows[1:].tolist():
            if len(known) < len(columns) and not spending.is_over:
                more = spending.times(best, columns[len(known) : len(known) + 1])
                if spending.pay(more):
                    known = np.concatenate([known, more])
            if spending.is_over:
                break
            n_configs += 1
            every = np.arange(len(known))
            order = every if self.one_order else shuffle.permutation(every)
            own = spending.times(row, columns[: len(known)])
            if self._is_better(own[order], known[order], spending):
                best, known = row, own
                spending.lead(best)
        return spending.result(n_configs, best)

    def _is_better(self, own: Times, known: Times, spending: Spending) -> bool:
        """Run a challenger, step by step, until it is rejected or has seen all instances."""
        sums, bounds = np.cumsum(own), np.cumsum(known)
        done, n_all = 0, len(own)
        while done < n_all:
            end = min(n_all, max(1, 2 * done))
            runs = own[done:end]
            if self.capped:
                spent = sums[done - 1] if done else 0.0
                runs = _stopped_at(bounds[end - 1] - spent, runs)
            if spending.pay(runs) < len(runs):
                return False
            judged = slice(end - 1 if self.capped or end == n_all else done, end)
            if (sums[judged] >= bounds[judged]).any():
                return False
            done = end
        return True


def _stopped_at(allowance: float, runs: Times) -> Times:
    """Return what is run of these until the allowance is used up."""
    left = allowance - (np.cumsum(runs) - runs)
    stopped: Times = np.minimum(runs, left)[left > 0]
    return stopped
