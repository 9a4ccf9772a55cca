"""Disturb real runs at random, and see whether anything is wrong, lost or left behind.

Runs with costs, with races of a function, of a script that leaves daemons behind, and on a Dask
cluster are killed in every part and at random moments, their files are damaged, and they are
started again until they are finished. Runs with costs must be those of an undisturbed run, race by
race; in races, whose times are measured, the faster one must win, each time and in the end. No
recorded race may be lost or run twice; and whenever a run is not going, none of its processes may
be. The exit code is 1 if any of this fails. (Linux only.)
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import subprocess
import sys
import tempfile
import time
import uuid
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from acband_configspace.benchmark.commands import faults_actions as actions
from acband_configspace.benchmark.commands.cluster import Cluster
from acband_configspace.core.ends import End
from acband_configspace.runlog.journal import JOURNAL
from acband_configspace.runlog.recovery import recover
from acband_configspace.runlog.replay import Run

#: What is killed in which kind of run, and how often beside the others.
_HERE = {"user process": 1, "supervisor": 1, "all that watch": 1, "watcher": 4}
_THERE = {"user process": 1, "supervisor": 2, "watcher": 3, "Dask worker": 3, "Dask scheduler": 1}
KILLS = {"costs": _HERE, "racing": _HERE, "script": _HERE, "dask": _THERE}
#: What is done to files while nobody runs.
DAMAGES = ("journal cut off", "journal changed", "SMAC's files torn")
#: A target's process that is killed is a crash of its configuration, which may change the winner:
#: in a part of the runs this is done, and they are compared with their own journals alone.
RACER = "racer"
#: What must not happen.
WRONGS = ("wrong incumbent", "race lost", "race run twice", "process left", "not as it should")
#: What ends the user's process; started again, it must go on.
FATAL = ("user process", "all that watch", "Dask scheduler")
#: A racer, or a race, that loses what watches over it three times counts as the cause.
MOST_IN_A_ROW = 2
#: How often a run is disturbed before it may finish.
MOST_FAULTS = 10
#: Racers that run at the same moment, at most: what a kill may cost.
AT_ONCE = {"costs": 2, "racing": 2, "script": 2, "dask": 4}
#: Seconds that processes may take to be gone, and that a run may stand still.
GONE_PATIENCE, RUN_PATIENCE = 60.0, 300.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of this command."""
    parser.add_argument("--minutes", type=float, default=5.0, help="when to stop (default: 5)")
    parser.add_argument("--kills", type=int, help="stop after so many, if that is sooner")
    parser.add_argument(
        "--kinds", nargs="+", choices=KILLS, default=list(KILLS),
        help=f"of runs: some of {', '.join(KILLS)}; by default all", metavar="KIND",
    )  # fmt: skip
    parser.add_argument("--seed", type=int, help="for the faults (default: a new one each time)")


def run(arguments: argparse.Namespace) -> int:
    """Disturb runs until the time is up; print what was tried and what held."""
    if sys.platform != "linux":
        raise ValueError("faults needs Linux")
    seed = random.randrange(2**31) if arguments.seed is None else arguments.seed
    random.seed(seed)
    print(f"seed {seed}", flush=True)
    campaign = _Campaign(arguments.kinds)
    deadline = time.monotonic() + 60 * arguments.minutes
    with tempfile.TemporaryDirectory() as folder:
        (home := Path(folder, "reference")).mkdir()
        campaign.find_reference(home)
        number = 0
        while time.monotonic() < deadline and campaign.n_kills < (arguments.kills or 10**9):
            kind = arguments.kinds[number % len(arguments.kinds)]
            with_racers = number // len(arguments.kinds) % 3 == 1
            home = Path(folder, f"{number}-{kind}")
            home.mkdir()
            campaign.disturb(kind, home, with_racers=with_racers)
            number += 1
    print(campaign.table())
    return 1 if campaign.problems else 0


@dataclass
class _Campaign:
    """What was tried so far, and what went wrong."""

    kinds: list[str]
    tried: Counter[tuple[str, str]] = field(default_factory=Counter)
    """By fault and kind of run."""
    problems: list[tuple[str, str, str]] = field(default_factory=list)
    """What went wrong, in which kind of run, and the details."""
    reference: dict[Any, Any] = field(default_factory=dict)
    """The verdicts of an undisturbed run with costs."""

    @property
    def n_kills(self) -> int:
        """How many processes, or sets of them, were killed."""
        return sum(n for (what, _), n in self.tried.items() if what not in ("runs", *DAMAGES))

    def find_reference(self, folder: Path) -> None:
        """Run without any disturbance what runs with costs are compared with."""
        if "costs" in self.kinds:
            one = _DisturbedRun(self, "costs", folder, with_racers=False)
            try:
                one.finish()
                self.reference = verdicts(one.load())
            finally:
                one.close()

    def disturb(self, kind: str, home: Path, *, with_racers: bool) -> None:
        """See one run through to its end, with faults on the way."""
        before = len(self.problems)
        one = _DisturbedRun(self, kind, home, with_racers=with_racers)
        try:
            one.go()
        except _WentWrongError as error:
            self.problems.append((error.what, kind, str(error)))
        finally:
            one.close()
        self.tried["runs", kind] += 1
        faults = ", ".join(one.faults) or "nothing"
        verdict = "held" if len(self.problems) == before else "DID NOT HOLD"
        print(f"{kind} {verdict}: {faults}", flush=True)
        for what, _, details in self.problems[before:]:
            print(f"    {what}: {details}", flush=True)

    def table(self) -> str:
        """Return what was tried and what held, a column for each kind of run."""
        whats = [*dict.fromkeys(what for kind in self.kinds for what in KILLS[kind]), RACER]
        wrong = Counter((what, kind) for what, kind, _ in self.problems)
        lines = [f"{'':28}" + "".join(f"{kind:>9}" for kind in (*self.kinds, "all"))]
        for title, names, found in (
            ("killed with -9", whats, self.tried),
            ("damaged", DAMAGES, self.tried),
            ("", ["runs"], self.tried),
            ("what must not happen", WRONGS, wrong),
        ):
            lines += [title] if title else []
            for name in names:
                counts = [found[name, kind] for kind in self.kinds]
                figures = "".join(f"{count:9}" for count in (*counts, sum(counts)))
                lines.append(f"  {name:26}{figures}")
        return "\n".join(lines)


class _WentWrongError(Exception):
    """Something happened that must not."""

    def __init__(self, what: str, details: str) -> None:
        self.what = what
        super().__init__(details)


def verdicts(run: Run) -> dict[Any, Any]:
    """Return who raced and who won, by race."""
    return {tuple(race.id): (race.racers, race.key, race.winner) for race in run.races}


class _DisturbedRun:
    """A run that is started again and again until it is finished."""

    def __init__(self, campaign: _Campaign, kind: str, home: Path, *, with_racers: bool) -> None:
        self._campaign = campaign
        self._kind = kind
        self._home = home
        self._with_racers = with_racers
        self._mark = uuid.uuid4().hex
        self._calls = home / "calls"
        self._environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry),
            actions.MARK: self._mark,
            actions.CALLS: str(self._calls),
        }
        self._cluster = self._new_cluster() if kind == "dask" else None
        self._user: subprocess.Popen[bytes] | None = None
        self._in_a_row = 0
        self._known: Counter[str] = Counter()
        self._results: set[str] = set()
        self._n_calls_before = 0
        self._n_kills = 0
        self._n_races_then = 0
        self._kept = b""
        self.faults: list[str] = []

    def _new_cluster(self) -> Cluster:
        return Cluster(self._home, self._environment, threads=2)

    # --- its course ---------------------------------------------------------------------------

    def go(self) -> None:
        """Start it, disturb it, and compare what comes out in the end."""
        self._start()
        while len(self.faults) < MOST_FAULTS and self._is_racing():
            time.sleep(random.uniform(0.0, 1.5))
            what = self._choice()
            self._kill(what)
            if self._exit_code(GONE_PATIENCE if self._is_fatal(what) else 0.5) is not None:
                self._check_pause()
                self._damage()
                self._note_known()
                self._start()
        self._compare(self.finish())

    def finish(self) -> int:
        """Let it run to its end; return the level of its incumbent."""
        if self._user is None:
            self._start()
        self._check_end(self._exit_code(RUN_PATIENCE))
        self._check_pause()
        return int(json.loads(self._output().splitlines()[-1])["level"])

    def close(self) -> None:
        """End all of it."""
        if self._user is not None:
            self._user.kill()
            self._user.wait()
        if self._cluster is not None:
            self._cluster.close()
            self._cluster = None
        self._note_left()

    def load(self) -> Run:
        """Read what is recorded."""
        return Run.load(self._journal.parent)

    def _start(self) -> None:
        words = [self._kind, str(self._home)]
        if self._cluster is not None:
            if self._cluster.scheduler.poll() is not None:
                self._cluster.close()
                self._cluster = self._new_cluster()
            self._cluster.replace_workers()
            words.append(str(self._cluster.file))
        module = "acband_configspace.benchmark.commands.faults_run"
        with open(self._home / "output", "wb") as output:
            self._user = subprocess.Popen(
                [sys.executable, "-m", module, *words],
                env=self._environment,
                cwd=self._home,
                stdout=output,
                stderr=output,
            )
        self._in_a_row = self._n_kills = 0

    def _is_racing(self) -> bool:
        """Wait until there are racers; return false if the run ends before."""
        deadline = time.monotonic() + RUN_PATIENCE
        while (code := self._exit_code(0.05)) is None and time.monotonic() < deadline:
            if self._processes().racers() and self._n_races() >= (3 if self._with_racers else 0):
                return True
        self._check_end(code)
        return False

    def _exit_code(self, patience: float) -> int | None:
        """Wait for the end of the run; return None if it is not over in these seconds."""
        assert self._user is not None
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self._user.wait(patience)
        return None

    def _check_end(self, code: int | None) -> None:
        if code is None:
            raise _WentWrongError("not as it should", "the run stands still")
        if code != 0:
            raise _WentWrongError("not as it should", self._output()[-2000:])

    # --- what is done to it -------------------------------------------------------------------

    def _processes(self) -> actions.Processes:
        assert self._user is not None
        return actions.Processes(self._user.pid, self._cluster)

    def _choice(self) -> str:
        kills = {RACER: 4, "user process": 1} if self._with_racers else KILLS[self._kind]
        n_races = self._n_races()
        if n_races >= self._n_races_then + 3:  # what has lost its watcher twice is over by now
            self._in_a_row, self._n_races_then = 0, n_races
        if self._in_a_row >= MOST_IN_A_ROW:
            return "user process"
        return random.choices([*kills], weights=[*kills.values()])[0]

    def _is_fatal(self, what: str) -> bool:
        """Whether the user's process ends: on a cluster the others are done without."""
        return what in FATAL or (what == "supervisor" and self._cluster is None)

    def _kill(self, what: str) -> None:
        self._keep()
        victims = self._processes().victims(what)
        for victim in victims:
            with contextlib.suppress(psutil.Error):
                victim.kill()
        if not victims:
            return
        self.faults.append(what)
        self._n_kills += 1
        self._campaign.tried[what, self._kind] += 1
        print(f"{time.strftime('%X')} {self._kind}: {what}", flush=True)
        if what in ("watcher", "supervisor", "Dask worker"):
            self._in_a_row += 1
        if what == "Dask worker" and self._cluster is not None:
            self._cluster.replace_workers()

    def _damage(self) -> None:
        """Do something to the files, in every second pause."""
        if random.random() < 0.5 or not self._n_races():
            return
        what = random.choice(DAMAGES)
        self.faults.append(what)
        self._campaign.tried[what, self._kind] += 1
        if what == "journal cut off":
            actions.cut_off(self._journal)
        elif what == "SMAC's files torn":
            actions.tear_smacs_files(self._journal.parent)
        else:
            self._change_and_recover()
        self._keep(anew=True)

    def _change_and_recover(self) -> None:
        """Change a byte: the run must refuse to go on, and go on once it is mended."""
        number = actions.change_byte(self._journal)
        content = self._journal.read_bytes()
        self._start()
        refused = self._exit_code(RUN_PATIENCE) not in (None, 0)
        if not refused or f"line {number} of " not in self._output():
            raise _WentWrongError("not as it should", f"line {number} changed: {self._output()}")
        if self._journal.read_bytes() != content:
            raise _WentWrongError("race lost", "a damaged journal was written to")
        recover(self._journal)

    # --- what must hold -----------------------------------------------------------------------

    @property
    def _journal(self) -> Path:
        found = [*self._home.glob(f"run/*/{JOURNAL}")]
        return found[0] if found else self._home / JOURNAL

    def _n_races(self) -> int:
        return self._journal.read_bytes().count(b'{"race"') if self._journal.exists() else 0

    def _output(self) -> str:
        return (self._home / "output").read_text(errors="replace")

    def _keep(self, *, anew: bool = False) -> None:
        """Remember what is recorded; all that was before must still be there."""
        if not self._journal.exists():
            return
        content = self._journal.read_bytes()
        content = content[: content.rfind(b"\n") + 1]
        if not anew and not content.startswith(self._kept):
            raise _WentWrongError("race lost", "the journal does not begin as it did before")
        self._kept = content

    def _check_pause(self) -> None:
        """See to it that nobody is left, and nothing is lost or run again."""
        self._note_left()
        self._keep()
        if not self._n_races():
            return
        recorded = Counter(key for key, _ in self._recorded_trials())
        calls = Counter(self._all_calls()[self._n_calls_before :])
        again = [key for key in calls if key in self._results]
        surplus = calls.total() - (recorded - self._known).total()
        if again or surplus > AT_ONCE[self._kind] * (1 + self._n_kills):
            details = f"{again[:5]}, {surplus} calls beyond what is recorded"
            self._campaign.problems.append(("race run twice", self._kind, details))

    def _note_known(self) -> None:
        """Remember what is recorded when the run is started again.

        Nothing that has a result may be run. Who lost has none: it may race there again, with more
        time, and may be killed before that race is recorded.
        """
        trials = self._recorded_trials() if self._n_races() else []
        self._known = Counter(key for key, _ in trials)
        self._results = {key for key, end in trials if end is not End.LOST}
        self._n_calls_before = len(self._all_calls())

    def _all_calls(self) -> list[str]:
        return self._calls.read_text().splitlines() if self._calls.exists() else []

    def _recorded_trials(self) -> list[tuple[str, End]]:
        """Return all trials as their calls are written down, and how they ended."""
        run = self.load()
        return [
            (
                f"{run.values(trial.configuration).get('level')} {trial.race.key.instance} "
                f"{trial.race.key.seed}",
                trial.record.end,
            )
            for trial in run.trials
        ]

    def _note_left(self) -> None:
        deadline = time.monotonic() + GONE_PATIENCE
        while left := actions.left_behind(self._mark, self._cluster):
            if time.monotonic() > deadline:
                self._campaign.problems.append(("process left", self._kind, "; ".join(left)))
                return
            time.sleep(0.3)

    def _compare(self, level: int) -> None:
        """Compare the run with what its races show, and with what they should show."""
        run = self.load()
        found = None if run.incumbent is None else run.values(run.incumbent)["level"]
        if run.problem is not None or found != level:
            self._wrong(f"{level}, but its journal shows {found}: {run.problem}")
        crashed = sum(trial.fate == "crashed" for trial in run.trials)
        if crashed > self.faults.count(RACER):
            self._wrong(f"{crashed} crashes, though {self.faults.count(RACER)} racers were killed")
        if self._with_racers:
            return
        if self._kind == "costs" and verdicts(run) != self._campaign.reference:
            self._wrong("the races are not those of an undisturbed run")
        odd = _odd_winners(run) if self._kind != "costs" else []
        if odd or (self._kind != "costs" and level != 0):
            self._wrong(f"{level}, where 0 is the fastest; slower ones have won: {odd}")

    def _wrong(self, details: str) -> None:
        raise _WentWrongError("wrong incumbent", details)


def _odd_winners(run: Run) -> list[str]:
    """Return the races that a slower one has won; nobody wins if all are slower than the best."""
    odd = []
    for race in run.races:
        levels = {racer: run.values(racer)["level"] for racer in race.racers}
        if race.winner is not None and levels[race.winner] > min(levels.values()):
            odd.append(f"{race.id}: {levels}, won by {race.winner}")
    return odd
