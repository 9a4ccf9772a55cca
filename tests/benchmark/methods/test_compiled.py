"""Compiled loops and the same loops as plain Python give the same numbers."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest

from acband_configspace.benchmark import synthetic_table
from acband_configspace.benchmark.methods.capsandruns import CapsAndRuns
from acband_configspace.benchmark.methods.compiled import IS_COMPILED
from acband_configspace.benchmark.methods.impatient import ImpatientCapsAndRuns
from acband_configspace.benchmark.methods.method import Method

CODE = """
from acband_configspace.benchmark import synthetic_table
from acband_configspace.benchmark.methods.capsandruns import CapsAndRuns
from acband_configspace.benchmark.methods.impatient import ImpatientCapsAndRuns

table = synthetic_table(4, 100, cutoff=50.0, seed=5)
for make in (CapsAndRuns, ImpatientCapsAndRuns):
    result = make(alpha=0.2, epsilon=0.5, capped_share=0.5).run(table, 0)
    print(result.incumbent, repr(result.cpu_time))
"""


@pytest.mark.skipif(not IS_COMPILED, reason="numba is not installed: there is one way only")
def test_plain_python_gives_the_same_numbers() -> None:
    plain = subprocess.run(
        [sys.executable, "-c", CODE],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    table = synthetic_table(4, 100, cutoff=50.0, seed=5)
    options: dict[str, Any] = {"alpha": 0.2, "epsilon": 0.5, "capped_share": 0.5}
    methods: list[Method] = [CapsAndRuns(**options), ImpatientCapsAndRuns(**options)]
    for line, method in zip(plain.stdout.splitlines(), methods, strict=True):
        result = method.run(table, 0)
        incumbent, cpu_time = line.split()
        assert int(incumbent) == result.incumbent
        assert float(cpu_time) == pytest.approx(result.cpu_time, rel=1e-9)
