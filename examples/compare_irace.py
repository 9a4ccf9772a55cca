"""irace beside the others: R asks for runs over a socket, processes that are there run them.

So irace pays for R, its own bookkeeping and its processes, but not for starting Python each time.
"""

from __future__ import annotations

import csv
import json
import socketserver
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

from compare_jobs import CUTOFF, PAR
from compare_methods import Run, Task, timed_cost, worker_pool
from ConfigSpace import ConfigurationSpace

from acband_configspace.cli.spaces.irace import write_irace
from acband_configspace.cli.spaces.parameters import parameter_of, value_text

#: irace counts the CPU time of its runs alone, which wait for each other and for R: it gets this
#: share of the time of all workers, so that it ends about when the others do. On clasp that
#: differs: the default takes long there, and with less irace refuses to begin, or ends early.
SHARE_OF_TIME = {"highs": 0.75, "minisat": 0.85, "clasp": 0.75}
#: Digits after the point of real parameters, and of the times at which runs are stopped.
DIGITS, BOUND_DIGITS = 6, 3

SCRIPT = """
suppressMessages(library(irace))
settings <- commandArgs(trailingOnly = TRUE)
port <- as.integer(settings[1]); workers <- as.integer(settings[2])
seed <- as.integer(settings[3]); timed <- settings[4] == "timed"; limit <- as.numeric(settings[5])
cutoff <- as.numeric(settings[6]); par <- as.numeric(settings[7])
digits <- as.integer(settings[8]); boundDigits <- as.integer(settings[9])
parameters <- readParameters("parameters.txt", digits = digits)
runner <- function(experiment, scenario) {
  values <- sapply(experiment$configuration[parameters$names], as.character)
  bound <- if (is.null(experiment$bound)) cutoff else experiment$bound
  connection <- socketConnection("localhost", port, open = "r+", blocking = TRUE, timeout = 3600)
  on.exit(close(connection))
  writeLines(paste(c(experiment$instance, bound, values), collapse = "\\t"), connection)
  answer <- as.numeric(strsplit(readLines(connection, n = 1), " ")[[1]])
  list(cost = answer[1], time = answer[2])
}
scenario <- list(targetRunner = runner, instances = readLines("instances.txt"),
                 configurationsFile = "default.txt", deterministic = 1, seed = seed + 1,
                 digits = digits, parallel = workers, logFile = "irace.Rdata", debugLevel = 0)
if (file.exists("forbidden.txt")) scenario$forbiddenFile <- "forbidden.txt"
if (timed) {
  scenario <- c(scenario, list(maxTime = limit, capping = 1, boundMax = cutoff, boundPar = par,
                               boundDigits = boundDigits))
} else {
  scenario$maxExperiments <- limit
}
irace(scenario = checkScenario(defaultScenario(scenario)), parameters = parameters)
load("irace.Rdata")
log <- as.data.frame(iraceResults$experimentLog)
best <- unlist(iraceResults$iterationElites)
found <- iraceResults$allConfigurations[match(best, iraceResults$allConfigurations$.ID.), ]
counts <- sapply(seq_along(best), function(i) sum(log$iteration <= i))
write.csv(cbind(counts, found[parameters$names]), "elites.csv", row.names = FALSE)
"""


def run_irace(task: Task) -> Run:
    """Run irace with its own parallel runs and, where the cost is a run time, its capping."""
    job, space = task.job, task.job.space()
    folder = task.folder / "irace"
    folder.mkdir(parents=True, exist_ok=True)
    _write_files(folder, space, task.train or [""])
    limit = task.n_trials
    if job.timed:
        limit = round(SHARE_OF_TIME[task.job_name] * task.seconds * task.workers)
    with worker_pool(task) as pool, RunServer(task, space, pool) as server:
        start = time.perf_counter()
        arguments = [
            server.server_address[1], task.workers if task.workers > 1 else 0, task.seed,
            "timed" if job.timed else "trials", limit, CUTOFF, PAR, DIGITS, BOUND_DIGITS,
        ]  # fmt: skip
        done = subprocess.run(
            ["Rscript", "run.R", *map(str, arguments)],
            cwd=folder, capture_output=True, text=True, check=False,
        )  # fmt: skip
        elapsed = time.perf_counter() - start
    if done.returncode:
        said = [line for line in done.stderr.splitlines() if line.startswith("Error")]
        raise RuntimeError(f"{done.stdout[-2000:]}\n{done.stderr[-2000:]}\n{' '.join(said)}")
    trajectory = []
    with (folder / "elites.csv").open(encoding="utf-8") as file:
        for row in csv.reader(file):
            if row[0] != "counts":
                count = min(int(row[0]), len(server.finished))
                spent = server.finished[count - 1] - start if job.timed else float(count)
                trajectory.append((spent, _config(space, row[1:])))
    # What it returns at last is what it is judged by, also if that took a little longer.
    trajectory[-1] = (min(trajectory[-1][0], float(task.limit)), trajectory[-1][1])
    return Run(
        trajectory, elapsed, server.in_target, len(server.finished), len(server.configurations)
    )


class RunServer(socketserver.ThreadingTCPServer):
    """Answers requests for runs: a line with an instance, a limit and the values as texts."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, task: Task, space: ConfigurationSpace, pool: Any) -> None:
        super().__init__(("localhost", 0), _Handler)
        self.task, self.space, self.pool = task, space, pool
        self.finished: list[float] = []
        self.in_target = 0.0
        self.configurations: set[str] = set()
        self.lock = threading.Lock()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def __exit__(self, *exception: Any) -> None:
        self.shutdown()
        super().__exit__(*exception)

    def config(self, texts: list[str]) -> dict[str, Any]:
        """Return the configuration of which these are the values, in the order of the space."""
        return _config(self.space, texts)

    def run(self, line: str) -> tuple[float, float]:
        """Return the cost and the time of a run, as irace counts them."""
        instance, bound, *texts = line.split("\t")
        config = self.config(texts)
        limit = min(CUTOFF, float(bound))
        job = self.pool.submit(timed_cost, self.task.job_name, config, instance, limit)
        cost, seconds = job.result()
        with self.lock:
            self.finished.append(time.perf_counter())
            self.in_target += seconds
            self.configurations.add(json.dumps(config))
        if self.task.job.timed:  # irace itself knows what a run that was stopped counts ...
            cost = min(cost, limit)
            seconds = cost  # ... and sets its limits by these
        return cost, max(seconds, 0.01)


class _Handler(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        assert isinstance(self.server, RunServer)
        line = self.rfile.readline().decode().rstrip("\r\n")
        if not line:  # who asked was stopped
            return
        cost, seconds = self.server.run(line)
        self.wfile.write(f"{cost!r} {seconds!r}\n".encode())


def _write_files(folder: Path, space: ConfigurationSpace, instances: list[str]) -> None:
    written = write_irace(space)
    files = {"parameters.txt": written.text, "run.R": SCRIPT}
    if written.forbidden:
        files["forbidden.txt"] = written.forbidden
    files["instances.txt"] = "\n".join(name or "the-only-one" for name in instances) + "\n"
    names = [line.split(' "')[0] for line in written.text.splitlines()]
    default = dict(space.get_default_configuration())
    values = [f'"{value_text(default[n])}"' if n in default else "NA" for n in space]
    files["default.txt"] = " ".join(names) + "\n" + " ".join(values) + "\n"
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")


def _config(space: ConfigurationSpace, texts: list[str]) -> dict[str, Any]:
    """Return the values that irace writes as texts, in the order of the space."""
    config: dict[str, Any] = {}
    for (name, parameter), text in zip(space.items(), texts, strict=True):
        if text in ("NA", ""):
            continue
        known = parameter_of(parameter)
        if known.values:
            config[name] = {value_text(value): value for value in known.values}[text]
        else:
            config[name] = int(float(text)) if known.kind == "integer" else float(text)
    return dict(sorted(config.items()))
