"""Tune a binary with a command line of its own: MiniSat on formulas of several kinds.

The target is a list, the beginning of the command line, and ``to_arguments`` makes the rest of it
from a configuration. MiniSat exits with 10 for "satisfiable" and 20 for "unsatisfiable": both are
an answer, so ``success_codes`` says so. Anything else, a crash for instance, never wins a race.

    python examples/tune_minisat.py                  # tunes for a minute, then tests
    python examples/tune_minisat.py --minutes 20 --workers 8

Needs MiniSat: ``apt install minisat`` (Debian, Ubuntu), ``brew install minisat`` (macOS), or
``conda install -c conda-forge minisat``.
"""

from __future__ import annotations

import itertools
import random
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ConfigSpace import (
    Categorical,
    ConfigurationSpace,
    EqualsCondition,
    Float,
    GreaterThanCondition,
    Integer,
)
from ConfigSpace.hyperparameters import Hyperparameter
from smac import Scenario
from tuning import make_parser, parse, print_found, print_tested

from acband_configspace import ACBandFacade

CUTOFF = 5.0
PAR = 10.0
#: The exit code of this script if there is no MiniSat.
NO_MINISAT = 3

Clauses = list[list[int]]


def main(argv: Sequence[str] | None = None) -> int:
    parser = make_parser(__doc__, workers=2, instances=400, test=60)
    parser.add_argument("--minisat", default="minisat", help="where MiniSat is")
    arguments = parse(parser, argv)
    if shutil.which(arguments.minisat) is None:
        print(
            f"There is no {arguments.minisat!r} here. Get MiniSat with `apt install minisat` "
            "(Debian, Ubuntu), `brew install minisat` (macOS) or `conda install -c conda-forge "
            "minisat`, or say where it is: --minisat PATH",
            file=sys.stderr,
        )
        return NO_MINISAT
    folder = Path(arguments.output) / "formulas"
    train = write_formulas(folder, "train", arguments.instances)
    test = write_formulas(folder, "test", arguments.test)
    scenario = Scenario(
        make_space(),
        instances=train,
        deterministic=True,
        walltime_limit=60.0 * arguments.minutes,
        n_trials=arguments.trials,
        trial_walltime_limit=CUTOFF,
        n_workers=arguments.workers,
        seed=arguments.seed,
        output_directory=Path(arguments.output),
    )
    facade = ACBandFacade(
        scenario,
        [arguments.minisat, "-verb=0"],
        to_arguments=to_arguments,
        success_codes=(10, 20),
        racing=True,
        clock="cpu",
        par=PAR,
        overwrite=True,
        logging_level=30,
    )
    print(facade.schedule, flush=True)
    incumbent = facade.optimize()
    if incumbent is None:
        print("No race finished in that time: give it more --minutes.", file=sys.stderr)
        return 1
    default = scenario.configspace.get_default_configuration()
    print(f"\nThe run is in {facade.scenario.output_directory}")
    print_found(incumbent, default)
    print(
        "\nOn the command line:", arguments.minisat, *to_arguments(incumbent, "FILE.cnf", 0, None)
    )
    print_tested(facade, incumbent, default, test, cutoff=CUTOFF, par=PAR)
    return 0


def to_arguments(
    config: Mapping[str, Any], instance: str | None, seed: int | None, cutoff: float | None
) -> list[str]:
    """Return MiniSat's way to say it: -name=value, and -name or -no-name for switches."""
    arguments = []
    for name, value in config.items():
        if value in ("on", "off"):
            arguments.append(f"-{name}" if value == "on" else f"-no-{name}")
        else:
            arguments.append(f"-{name}={value}")
    return [*arguments, f"-rnd-seed={1 + (seed or 0)}", str(instance)]


def make_space() -> ConfigurationSpace:
    """Return 14 options of MiniSat under their own names, its defaults as the default."""

    def switch(name: str, default: str) -> Hyperparameter[Any, Any]:
        return Categorical(name, ["on", "off"], default=default)

    space = ConfigurationSpace(name="MiniSat")
    elim, grow = switch("elim", "on"), Integer("grow", (-10, 30), default=0)
    limit = Integer("cl-lim", (5, 60), default=20)
    luby = switch("luby", "on")
    random_share = Float("rnd-freq", (0.0, 0.1), default=0.0)
    random_start = switch("rnd-init", "off")
    space.add(
        elim,
        grow,
        limit,
        luby,
        random_share,
        random_start,
        switch("asymm", "off"),
        switch("rcheck", "off"),
        Integer("rfirst", (10, 1000), default=100, log=True),
        Float("rinc", (1.1, 4.0), default=2.0),
        Float("var-decay", (0.7, 0.999), default=0.95),
        Float("cla-decay", (0.9, 0.9999), default=0.999),
        Categorical("phase-saving", [0, 1, 2], default=2, ordered=True),
        Categorical("ccmin-mode", [0, 1, 2], default=2, ordered=True),
    )
    space.add(EqualsCondition(grow, elim, "on"))  # both steer the elimination of variables
    space.add(EqualsCondition(limit, elim, "on"))
    space.add(GreaterThanCondition(random_start, random_share, 0.01))
    return space


def write_formulas(folder: Path, name: str, number: int) -> list[str]:
    """Write formulas of all kinds in turn, unless they are there, and return the files."""
    folder.mkdir(parents=True, exist_ok=True)
    kinds = itertools.cycle([random_3sat, colouring, pigeons])
    paths = []
    for index, kind in zip(range(number), kinds, strict=False):
        path = folder / f"{name}-{index}-{kind.__name__}.cnf"
        if not path.exists():
            path.write_text(as_dimacs(kind(random.Random(path.name))), encoding="ascii")
        paths.append(str(path.resolve()))
    return paths


def random_3sat(draw: random.Random) -> Clauses:
    """Three random literals a clause, at the ratio where half of the formulas are satisfiable."""
    n = draw.randint(170, 210)
    return [
        [draw.choice((-1, 1)) * variable for variable in draw.sample(range(1, n + 1), 3)]
        for _ in range(round(4.26 * n))
    ]


def colouring(draw: random.Random) -> Clauses:
    """Colour a random graph with four colours, at a density where that just about works."""
    n, colours = draw.randint(95, 112), 4
    edges = draw.sample(list(itertools.combinations(range(n), 2)), round(4.4 * n))

    def has(node: int, colour: int) -> int:
        return node * colours + colour + 1

    clauses = [[has(node, colour) for colour in range(colours)] for node in range(n)]
    clauses += [[-has(a, c), -has(b, c)] for a, b in edges for c in range(colours)]
    return clauses


def pigeons(draw: random.Random) -> Clauses:
    """Pigeons that like some holes only: sometimes too many for them, hard to prove then."""
    holes = draw.randint(8, 9)
    birds = holes + (draw.random() < 0.8)
    likes = [[h for h in range(holes) if draw.random() < 0.9] or [0] for _ in range(birds)]

    def sits(bird: int, hole: int) -> int:
        return bird * holes + hole + 1

    clauses = [[sits(bird, hole) for hole in likes[bird]] for bird in range(birds)]
    for hole in range(holes):
        wanting = [bird for bird in range(birds) if hole in likes[bird]]
        clauses += [[-sits(a, hole), -sits(b, hole)] for a, b in itertools.combinations(wanting, 2)]
    return clauses


def as_dimacs(clauses: Iterable[Sequence[int]]) -> str:
    lines = [" ".join(map(str, (*clause, 0))) for clause in clauses]
    n = max(abs(int(literal)) for line in lines for literal in line.split())
    return "\n".join([f"p cnf {n} {len(lines)}", *lines, ""])


if __name__ == "__main__":
    sys.exit(main())
