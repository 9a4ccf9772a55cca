"""irace (López-Ibáñez et al., 2016), where R and its package irace are installed."""

from __future__ import annotations

import csv
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from acband_configspace.benchmark.methods.method import MethodResult, drawn_order
from acband_configspace.benchmark.tables import RuntimeTable
from acband_configspace.core.checks import whole_number

_SCRIPT = """
suppressMessages(library(irace))
arguments <- commandArgs(trailingOnly = TRUE)
times <- as.matrix(read.csv("runtimes.csv", header = FALSE))
runner <- function(experiment, scenario) {
  row <- as.integer(experiment$configuration[["row"]])
  column <- as.integer(experiment$instance)
  cat(row, column, "\\n", sep = " ", file = "runs.txt", append = TRUE)
  list(cost = times[row, column])
}
parameters <- readParameters(text = paste0('row "" i (1,', nrow(times), ')'))
scenario <- list(targetRunner = runner, instances = as.character(seq_len(ncol(times))),
                 maxExperiments = as.integer(arguments[1]), seed = as.integer(arguments[2]),
                 logFile = "", debugLevel = 0)
best <- irace(scenario = scenario, parameters = parameters)
cat(as.integer(best$row[1]), file = "best.txt")
"""


@dataclass(frozen=True)
class Irace:
    """irace with its default settings; the cost of a run is its runtime, and runs are not capped.

    As with SMAC, the number of a configuration is all that a table can offer its sampling model.
    """

    n_trials: int = 1000

    def __post_init__(self) -> None:
        whole_number("n_trials", self.n_trials, at_least=1)

    @property
    def name(self) -> str:
        """As it is called."""
        return "irace"

    def run(self, table: RuntimeTable, seed: int) -> MethodResult:
        """Run irace in a folder that is removed afterwards."""
        check_installed()
        rows, columns = drawn_order(table, seed)
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder)
            times = np.minimum(table.runtimes[rows[:, None], columns], table.cutoff)
            np.savetxt(place / "runtimes.csv", times, delimiter=",")
            (place / "run.R").write_text(_SCRIPT)
            command = ["Rscript", "run.R", str(self.n_trials), str(seed + 1)]
            done = subprocess.run(command, cwd=place, capture_output=True, text=True, check=False)
            if done.returncode:
                raise RuntimeError(f"irace failed:\n{done.stderr}")
            best = int((place / "best.txt").read_text()) - 1
            with (place / "runs.txt").open() as file:
                lines = csv.reader(file, delimiter=" ")
                pairs = {(int(line[0]) - 1, int(line[1]) - 1) for line in lines}
        seen = {row for row, _ in pairs}
        cpu_time = float(sum(times[pair] for pair in pairs))
        return MethodResult(
            incumbent=int(rows[best]),
            cpu_time=cpu_time,
            wall_time=cpu_time,
            n_configs=len(seen),
            n_instances=len({column for _, column in pairs}),
            configurations=tuple(int(rows[row]) for row in sorted(seen | {best})),
        )


def check_installed() -> None:
    """Raise RuntimeError if R or irace is missing."""
    if shutil.which("Rscript") is None:
        raise RuntimeError("irace needs R, but Rscript is not found")
    asked = subprocess.run(
        ["Rscript", "-e", "library(irace)"], capture_output=True, text=True, check=False
    )
    if asked.returncode:
        raise RuntimeError(
            f"irace is not installed (in R: install.packages('irace')): {asked.stderr}"
        )
