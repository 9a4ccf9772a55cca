"""What ``acband`` exits with."""

from __future__ import annotations

DONE = 0
TARGET_FAILS = 1
BAD_INPUT = 2
RUN_IN_THE_WAY = 3
ABORTED = 4
CLUSTER_LOST = 5
INTERRUPTED = 130

EXPLAINED = """exit codes:
  0    done
  1    the target does not work, or no race was finished; check has found a problem
  2    a file or an option is not what it must be
  3    the directory holds another run, or one that another process has open
  4    the target said ABORT
  5    the cluster is gone, or had no workers for too long; started again, the run continues
  130  interrupted (143: by SIGTERM); started again, the run continues
"""
