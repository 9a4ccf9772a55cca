"""What a notebook shows of a plan."""

from __future__ import annotations

import pytest

from acband_configspace import Schedule
from acband_configspace.core.search_plan import SearchSchedule, search_schedule


@pytest.mark.parametrize(
    "schedule",
    [
        Schedule.plan(150, k=4, alpha=0.1, delta=0.1),
        search_schedule(n_trials=200, k=4, first_pass=25, growth=2.0, racing=False),
    ],
)
def test_plans_keep_their_columns(schedule: Schedule | SearchSchedule) -> None:
    shown = schedule._repr_html_()
    assert shown.startswith("<pre>")
    assert shown.endswith("</pre>")
    assert str(schedule).splitlines()[-1] in shown
