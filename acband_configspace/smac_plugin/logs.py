"""Logging for those who set up none; the root logger is left alone."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from smac.utils.logging import setup_logging

#: SMAC says how many trials are finished each time it looks, while that is a multiple of 50.
_COUNTER = "Finished "
_HANDLER = "acband_configspace"


def set_up_logging(level: int | Path | Literal[False] | None) -> None:
    """Do what SMAC's ``logging_level`` asks for, but leave the user's root handlers alone.

    False: nothing. A path: SMAC's way, that file decides. A level, or None for INFO: SMAC's and
    our loggers get that level, and a handler that prints, unless the user set up logging.
    """
    if level is False:
        return
    if isinstance(level, Path):
        setup_logging(level)
        return
    for name in ("smac", "acband_configspace"):
        logger = logging.getLogger(name)
        logger.setLevel(logging.INFO if level is None else level)
        if not logger.hasHandlers():
            handler = logging.StreamHandler(sys.stdout)
            handler.set_name(_HANDLER)
            handler.setFormatter(
                logging.Formatter("[%(levelname)s][%(filename)s:%(lineno)d] %(message)s")
            )
            logger.addHandler(handler)


@contextmanager
def said_once() -> Iterator[None]:
    """Let SMAC say each number of finished trials once, and nothing while it is zero."""
    said = {f"{_COUNTER}0 trials."}

    def is_new(record: logging.LogRecord) -> bool:
        text = record.getMessage()
        if not text.startswith(_COUNTER):
            return True
        new = text not in said
        said.add(text)
        return new

    logger = logging.getLogger("smac.main.smbo")
    logger.addFilter(is_new)
    try:
        yield
    finally:
        logger.removeFilter(is_new)
