"""Compiled loops and the same loops as plain Python give the same numbers."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from acband_configspace.benchmark import synthetic_table
from acband_configspace.benchmark.methods.capsandruns import CapsAndRuns
from acband_configspace.benchmark.methods.compiled import IS_COMPILED
from acband_configspace.benchmark.methods.impatient import ImpatientCapsAndRuns

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
def test_plain_python_gives_the_same_numbers():
    plain = subprocess.run(
        [sys.executable, "-c", CODE],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    table = synthetic_table(4, 100, cutoff=50.0, seed=5)
    for line, make in zip(
        plain.stdout.splitlines(), (CapsAndRuns, ImpatientCapsAndRuns), strict=True
    ):
        result = make(alpha=0.2, epsilon=0.5, capped_share=0.5).run(table, 0)
        incumbent, cpu_time = line.split()
        assert int(incumbent) == result.incumbent
        assert float(cpu_time) == pytest.approx(result.cpu_time, rel=1e-9)
