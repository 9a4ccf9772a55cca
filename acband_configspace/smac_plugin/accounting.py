"""What a trial cost: how the ends of racers become SMAC's trial values."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from smac.runhistory.dataclasses import TrialValue
from smac.runhistory.enumerations import StatusType
from smac.utils.numpyencoder import NumpyEncoder

from acband_configspace.core.checks import real_number
from acband_configspace.core.ends import End
from acband_configspace.running import Clock, RaceReport, RacerReport

_STATUS = {
    End.FINISHED: StatusType.SUCCESS,
    End.LOST: StatusType.TIMEOUT,
    End.CUTOFF: StatusType.TIMEOUT,
    End.MEMORY: StatusType.MEMORYOUT,
    End.CRASHED: StatusType.CRASHED,
    End.CANCELLED: StatusType.TIMEOUT,
}

#: Why a trial has no result of its own, in ``additional_info["why"]``.
_WHY = {
    End.LOST: "lost",
    End.CUTOFF: "cutoff",
    End.MEMORY: "memory",
    End.CRASHED: "crash",
    End.CANCELLED: "cancelled",
}


@dataclass(frozen=True)
class Accounting:
    """Turns reports of races into trial values.

    In a race the cost of a finisher is its time (or what it reports as its cost), that of a
    racer that met the cutoff ``par`` times the cutoff, and that of a loser its time so far, marked
    as censored. Otherwise the cost is what the target returns or prints.
    """

    racing: bool
    clock: Clock
    par: float
    cutoff: float | None
    crash_cost: float

    def __post_init__(self) -> None:
        if real_number("par", self.par) < 1:
            raise ValueError(f"par must be at least 1 but got {self.par!r}")

    def values(self, report: RaceReport, race: str | None) -> list[TrialValue]:
        """Return a trial value for each racer of a race."""
        winner = None if report.winner is None else report.racers[report.winner]
        return [
            self._value(racer, winner, {"race": race, "winner": report.winner})
            for racer in report.racers
        ]

    def _value(
        self, racer: RacerReport, winner: RacerReport | None, place: Mapping[str, Any]
    ) -> TrialValue:
        info: dict[str, Any] = {}
        if self.racing and place["race"] is not None:
            info.update(place)
        if racer.error is not None:
            info["error"] = info["traceback"] = racer.error
        if self.racing:
            status, cost = _STATUS[racer.status], self._race_cost(racer, winner)
            info.update(_as_json({"returned": racer.returned, "reported": racer.reported}))
        else:
            status, cost = self._own_cost(racer, info)
        if racer.status in _WHY:
            info["why"] = _WHY[racer.status]
            info["censored"] = racer.status in (End.LOST, End.CUTOFF)
        return TrialValue(
            status=status,
            cost=cost,
            time=racer.time,
            cpu_time=racer.cpu_time,
            starttime=racer.started,
            endtime=racer.started + racer.time,
            additional_info=info,
        )

    def _race_cost(self, racer: RacerReport, winner: RacerReport | None) -> float:
        if racer.status is End.FINISHED:
            return self._finishing_cost(racer)
        if racer.status in (End.LOST, End.CANCELLED):
            # Whoever finishes first has won, also if it reports a cost of its own.
            least = self._finishing_cost(winner) if winner is not None else 0.0
            return max(self._seconds(racer), least)
        crashed = racer.status is End.CRASHED
        if self.cutoff is None or (crashed and math.isfinite(self.crash_cost)):
            return self.crash_cost
        return self.par * self.cutoff

    def _finishing_cost(self, racer: RacerReport) -> float:
        if racer.reported is not None and isinstance(racer.reported.cost, float):
            return racer.reported.cost
        return self._seconds(racer)

    def _seconds(self, racer: RacerReport) -> float:
        return racer.cpu_time if self.clock == "cpu" else racer.time

    def _own_cost(self, racer: RacerReport, info: dict[str, Any]) -> tuple[StatusType, float]:
        """Return what the target says it cost; a failure costs what the scenario says."""
        status, cost = _STATUS[racer.status], self.crash_cost
        if status == StatusType.SUCCESS and racer.command is not None:
            reported = racer.reported
            status, cost, more = judged(None if reported is None else reported.cost)
            if reported is not None and reported.additional_info is not None:
                more = {**more, "additional_info": reported.additional_info}
            info.update(more)
        elif status == StatusType.SUCCESS:
            status, cost, more = judged(racer.returned)
            info.update(more)
        return status, cost if status == StatusType.SUCCESS else self.crash_cost


def judged(returned: object) -> tuple[StatusType, float, dict[str, Any]]:
    """Return the status, cost and additional information that a target's return value means.

    As in SMAC: a number, or a pair of a number and a dictionary. Anything else is a crash, and so
    are NaN and infinity.
    """
    cost, info = returned if isinstance(returned, tuple) and len(returned) == 2 else (returned, {})
    if isinstance(cost, Mapping) and len(cost) == 1:
        (cost,) = cost.values()
    try:
        number = float(np.asarray(cost, dtype=float).squeeze())
    except (TypeError, ValueError):
        number = math.nan
    info = _as_json(info) if isinstance(info, Mapping) else {"returned": repr(info)}
    if not math.isfinite(number):
        return StatusType.CRASHED, math.inf, {**info, "error": f"the cost must be finite: {cost!r}"}
    return StatusType.SUCCESS, number, info


def _as_json(info: Mapping[str, Any]) -> dict[str, Any]:
    """Return what can be written as JSON, the rest as text, without what is None."""
    kept = {}
    for name, value in info.items():
        if value is None:
            continue
        try:
            json.dumps(value, cls=NumpyEncoder)
        except (TypeError, ValueError):
            value = repr(value)
        kept[str(name)] = value
    return kept
