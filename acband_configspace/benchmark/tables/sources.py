"""Names of runtime tables on the command line: a file, a folder, a shipped or a made-up table."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any

from acband_configspace.benchmark.tables.loaders import SHIPPED, load_shipped, load_table
from acband_configspace.benchmark.tables.made_up import family_table, noisy_table, synthetic_table
from acband_configspace.benchmark.tables.runtime_table import RuntimeTable

#: Configurations × instances of the paper's three tables; only the shapes are theirs.
PAPER_SHAPES: Mapping[str, tuple[int, int]] = {
    "cnfuzzdd": (948, 20118),
    "regions200": (2000, 50000),
    "rcw": (2000, 35640),
}
MADE_UP: Mapping[str, Callable[..., RuntimeTable]] = {
    "synthetic": synthetic_table,
    "families": family_table,
    "noisy": noisy_table,
}
_SIZE = re.compile(r"(\d+)[x×](\d+)")

HELP = (
    f"a file (.npz, .npy, .dump), an ASlib folder, {' or '.join(SHIPPED)} (recorded, come with the "
    "package), or a made-up one: KIND:CONFIGSxINSTANCES with KIND synthetic, families (run times) "
    "or noisy (costs), then ':SEED' or any of ':seed=…', ':spread=…', ':noise=…', ':tails=…', such "
    "as 'synthetic:948x20118:spread=1.5:seed=3'; instead of a size one of "
    f"{', '.join(PAPER_SHAPES)}, the shapes of the paper's tables"
)


def open_table(name: str, *, cutoff: float | None = None) -> RuntimeTable:
    """Return the table of that name; see :data:`HELP`.

    >>> open_table("synthetic:30x200:7").runtimes.shape
    (30, 200)
    >>> open_table("noisy:10x20:noise=4:seed=7").n_instances
    20
    """
    if name in SHIPPED:
        return load_shipped(name, cutoff=cutoff)
    kind, *parts = name.split(":")
    if kind not in MADE_UP or not parts:
        return load_table(name, cutoff=cutoff)
    make = MADE_UP[kind]
    options = _options(name, parts[1:], make)
    if cutoff is not None:
        if "cutoff" not in inspect.signature(make).parameters:
            raise ValueError(f"cutoff must not be given for a table of costs but got {cutoff}")
        options["cutoff"] = cutoff
    return make(*_shape(name, parts[0]), **options)


def _shape(name: str, size: str) -> tuple[int, int]:
    if size in PAPER_SHAPES:
        return PAPER_SHAPES[size]
    match = _SIZE.fullmatch(size)
    if match is None:
        raise ValueError(f"table must be {HELP}; but got {name!r}")
    return int(match[1]), int(match[2])


def _options(name: str, parts: list[str], make: Callable[..., RuntimeTable]) -> dict[str, Any]:
    """Read ``NAME=VALUE`` parts; a number alone is the seed."""
    options: dict[str, Any] = {}
    for part in parts:
        key, _, value = part.rpartition("=")
        key = key or "seed"
        default = inspect.signature(make).parameters.get(key)
        if default is None or default.kind is not inspect.Parameter.KEYWORD_ONLY:
            raise ValueError(f"table must be {HELP}; but got {name!r}, which has a {key!r}")
        try:
            options[key] = type(default.default)(value)
        except ValueError:
            raise ValueError(f"{key} must be a number but got {value!r} in {name!r}") from None
    return options
