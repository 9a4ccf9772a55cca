"""Make a MIP solver faster on your own kind of problem, in two minutes.

HiGHS solves winner determination in combinatorial auctions; AC-Band races configurations of 16 of
its options, four in a race: the first to prove an optimum wins, the others are stopped at once.
In the end the winner and HiGHS' default meet on fresh auctions that nobody has seen before.

    python examples/tune_highs.py                # tunes for a minute, then tests
    python examples/tune_highs.py --minutes 20 --workers 8

Needs ``pip install ".[examples]"``.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from highs_auctions import CUTOFF, PAR, make_space, solve
from smac import Scenario
from tuning import make_parser, parse, print_found, print_tested

from acband_configspace import ACBandFacade


def main(argv: Sequence[str] | None = None) -> int:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    parser = make_parser(__doc__, workers=cores or 1, instances=2000, test=100)
    parser.add_argument(
        "--clock",
        choices=["cpu", "wall"],
        default="cpu",
        help="which time counts: CPU time (the default) is the same on a busy machine",
    )
    parser.add_argument("--resume", action="store_true", help="go on with a run that was stopped")
    parser.add_argument("--check", action="store_true", help="try everything once, then stop")
    arguments = parse(parser, argv)
    scenario = Scenario(
        make_space(),
        instances=[f"train-{number}" for number in range(arguments.instances)],
        deterministic=True,
        walltime_limit=60.0 * arguments.minutes,
        n_trials=arguments.trials,  # left at SMAC's default, the time alone decides
        trial_walltime_limit=CUTOFF,
        n_workers=arguments.workers,
        seed=arguments.seed,
        output_directory=arguments.output,
    )
    facade = ACBandFacade(
        scenario,
        solve,
        racing=True,
        par=PAR,
        clock=arguments.clock,
        overwrite=not arguments.resume,
        logging_level=30,
    )
    if arguments.check:
        return 0 if facade.check() else 1
    print(facade.schedule)
    incumbent = facade.optimize()
    if incumbent is None:
        print("No race finished in that time: give it more --minutes.", file=sys.stderr)
        return 1
    run = facade.scenario.output_directory
    print(f"\nThe run is in {run}; for a report of it:")
    print(f"python -m acband_configspace report {run}\n")
    default = scenario.configspace.get_default_configuration()
    print_found(incumbent, default)
    test = [f"test-{number}" for number in range(arguments.test)]
    print_tested(facade, incumbent, default, test, cutoff=CUTOFF, par=PAR)
    return 0


if __name__ == "__main__":
    sys.exit(main())
