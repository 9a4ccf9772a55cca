"""Names of runtime tables on the command line: a file, a folder, a shipped or a made-up table."""

from __future__ import annotations

import re
from collections.abc import Mapping

from acband_configspace.benchmark.tables.loaders import SHIPPED, load_shipped, load_table
from acband_configspace.benchmark.tables.made_up import family_table, synthetic_table
from acband_configspace.benchmark.tables.runtime_table import RuntimeTable

#: Configurations × instances of the paper's three tables; only the shapes are theirs.
PAPER_SHAPES: Mapping[str, tuple[int, int]] = {
    "cnfuzzdd": (948, 20118),
    "regions200": (2000, 50000),
    "rcw": (2000, 35640),
}
_MADE_UP = re.compile(r"(synthetic|families):(?:(\d+)[x×](\d+)|(\w+))(?::(\d+))?")

HELP = (
    "a file (.npz, .npy, .dump), an ASlib folder, 'minisat' (recorded, comes with the package), or "
    "a made-up one: 'synthetic:948x20118', 'families:2000x50000', with ':SEED' behind; instead of "
    f"a size one of {', '.join(PAPER_SHAPES)}, the shapes of the paper's tables"
)


def open_table(name: str, *, cutoff: float | None = None) -> RuntimeTable:
    """Return the table of that name; see :data:`HELP`.

    >>> open_table("synthetic:30x200:7").runtimes.shape
    (30, 200)
    """
    if name in SHIPPED:
        return load_shipped(name, cutoff=cutoff)
    if not name.startswith(("synthetic:", "families:")):
        return load_table(name, cutoff=cutoff)
    match = _MADE_UP.fullmatch(name)
    if match is None or (match[4] and match[4] not in PAPER_SHAPES):
        raise ValueError(f"table must be {HELP}; but got {name!r}")
    shape = PAPER_SHAPES[match[4]] if match[4] else (int(match[2]), int(match[3]))
    make = synthetic_table if match[1] == "synthetic" else family_table
    return make(*shape, seed=int(match[5] or 0), cutoff=900.0 if cutoff is None else cutoff)
