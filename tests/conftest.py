"""Settings of the test suite."""

from __future__ import annotations

from hypothesis import settings

# Deterministic, and no deadline: the time an example takes says nothing on a busy machine.
settings.register_profile("suite", deadline=None, derandomize=True)
settings.load_profile("suite")
