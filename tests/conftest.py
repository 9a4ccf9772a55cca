"""Settings of the test suite."""

from __future__ import annotations

import signal

from hypothesis import settings

# In the background of a shell SIGINT is ignored, and all that is started there inherits it.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Deterministic, and no deadline: the time an example takes says nothing on a busy machine.
settings.register_profile("suite", deadline=None, derandomize=True)
settings.load_profile("suite")
