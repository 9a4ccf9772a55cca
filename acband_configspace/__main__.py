"""The command line: ``python -m acband_configspace`` is ``acband``."""

from __future__ import annotations

import sys

from acband_configspace.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
