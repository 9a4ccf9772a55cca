"""irace (López-Ibáñez et al., 2016) on a surrogate, where R and its package irace are installed."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from ConfigSpace.hyperparameters import (
    FloatHyperparameter,
    IntegerHyperparameter,
    OrdinalHyperparameter,
)

from acband_configspace.benchmark.methods.answering import (
    answering,
    as_word,
    conditions_of,
    from_words,
    parameter_names,
)
from acband_configspace.benchmark.methods.space import CannotRunError, Found, Runs, listed
from acband_configspace.benchmark.tables.surrogate import Surrogate

#: irace rounds times up to whole units of its own: a thousand a second are fine enough.
UNITS = 1000.0
#: What irace says if the time is too short for it.
_REFUSALS = ("Not enough budget", "is not enough", "Insufficient budget")

_SCRIPT = """
suppressMessages(library(irace))
arguments <- commandArgs(trailingOnly = TRUE)
line <- socketConnection(port = as.integer(arguments[1]), blocking = TRUE, open = "r+")
runner <- function(experiment, scenario) {
  values <- experiment$configuration
  words <- c(rbind(names(values), vapply(values, as.character, "")))
  writeLines(paste(c(experiment$id.instance - 1, experiment$bound, words), collapse = " "), line)
  answer <- as.numeric(strsplit(readLines(line, 1), " ")[[1]])
  list(cost = answer[1], time = answer[1])
}
scenario <- list(
  targetRunner = runner, instances = as.character(seq_len(as.integer(arguments[4]))),
  maxTime = as.numeric(arguments[2]), seed = as.integer(arguments[3]),
  capping = 1, boundMax = as.numeric(arguments[5]), boundDigits = 0, cappingType = "median",
  boundType = "candidate", configurationsFile = "default.txt", logFile = "", debugLevel = 0)
best <- irace(scenario = scenario, parameters = readParameters(file = "parameters.txt"))
values <- removeConfigurationsMetaData(best[1, , drop = FALSE])
cat(c(rbind(names(values), vapply(values, as.character, ""))), file = "best.txt")
"""


@dataclass(frozen=True)
class Irace:
    """irace with its defaults, and with capping as its guide advises where the cost is a run time.

    That is ``capping``, ``boundMax`` at the cutoff, ``cappingType="median"`` and
    ``boundType="candidate"``; the test is then the t-test. Times are told in thousandths of a
    second, since irace rounds bounds up to whole units. ``maxTime`` is the CPU time, of which
    irace takes a part to see how long runs are. The default configuration is among the first.
    """

    name: ClassVar[str] = "irace"

    def run(self, surrogate: Surrogate, *, cpu_limit: float, seed: int) -> Found:
        """Run irace in a folder that is removed afterwards; it asks us for every run."""
        check_installed()
        runs = Runs(surrogate, cpu_limit=float("inf"), seed=seed)  # irace keeps to its maxTime
        with tempfile.TemporaryDirectory() as name, answering(runs, scale=UNITS) as port:
            folder = Path(name)
            (folder / "run.R").write_text(_SCRIPT)
            (folder / "parameters.txt").write_text("\n".join(_parameters(surrogate)))
            (folder / "default.txt").write_text(_default(surrogate))
            numbers = (
                port,
                int(cpu_limit * UNITS),
                seed + 1,
                runs.n_instances,
                runs.cutoff * UNITS,
            )
            done = subprocess.run(
                ["Rscript", "run.R", *(f"{number:.12g}" for number in numbers)],
                cwd=folder,
                capture_output=True,
                text=True,
                check=False,
            )
            if any(words in done.stderr for words in _REFUSALS):
                raise CannotRunError("irace refuses so little time")
            if done.returncode:
                raise CannotRunError(f"irace failed:\n{done.stderr}")
            best = from_words(surrogate, (folder / "best.txt").read_text().split())
        return runs.found(best)


def _parameters(surrogate: Surrogate) -> Iterator[str]:
    """Write the space in irace's way, categories as numbers."""
    names = parameter_names(surrogate)
    space = surrogate.space
    for name, short in names.items():
        parameter: Any = space[name]
        if (values := listed(parameter)) is not None:
            kind = "o" if isinstance(parameter, OrdinalHyperparameter) else "c"
            domain = ", ".join(map(str, range(len(values))))
        elif isinstance(parameter, (FloatHyperparameter, IntegerHyperparameter)):
            kind = "r" if isinstance(parameter, FloatHyperparameter) else "i"
            kind += ",log" if parameter.log else ""
            domain = f"{parameter.lower}, {parameter.upper}"
        else:
            raise TypeError(f"{name} must be a number or a category but is a {type(parameter)}")
        rules = [
            f"{names[parent]} %in% c({', '.join(map(repr, numbers))})"
            for parent, numbers in conditions_of(surrogate, name)
        ]
        yield f'{short} "" {kind} ({domain})' + (f" | {' & '.join(rules)}" if rules else "")


def _default(surrogate: Surrogate) -> str:
    """Write the default configuration as a table with a header."""
    default = surrogate.space.get_default_configuration()
    words = {
        short: as_word(surrogate.space[name], default[name]) if name in default else "NA"
        for name, short in parameter_names(surrogate).items()
    }
    return f"{' '.join(words)}\n{' '.join(words.values())}\n"


def check_installed() -> None:
    """Raise CannotRunError if R or irace is missing."""
    if shutil.which("Rscript") is None:
        raise CannotRunError("irace needs R, but Rscript is not found")
    asked = subprocess.run(
        ["Rscript", "-e", "library(irace)"], capture_output=True, text=True, check=False
    )
    if asked.returncode:
        raise CannotRunError(
            f"irace is not installed (in R: install.packages('irace')): {asked.stderr}"
        )
