"""ParamILS (Hutter et al., 2009) on a surrogate: the package ramparils, an implementation of it."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from acband_configspace.benchmark.methods.answering import (
    answering,
    as_word,
    conditions_of,
    from_words,
    parameter_names,
)
from acband_configspace.benchmark.methods.space import CannotRunError, Found, Runs, listed
from acband_configspace.benchmark.tables.surrogate import Surrogate

#: ParamILS knows only lists: how many values a number gets, evenly on its scale, and its default.
N_VALUES = 7
#: Seconds after which it is to end by itself; a little later it is given up.
PATIENCE = 600.0

_RUN = "import json, ramparils, sys; ramparils.specialize(*json.load(sys.stdin))"
_ASK = """
exec 3<>/dev/tcp/127.0.0.1/{port}
echo "$@" >&3
read -r seconds ends <&3 || exit 1
[ "$ends" = 1 ] && status=OK || status=TIMEOUT
echo "#%# RamParIls #%# $status, $seconds, 0.0"
"""
_INCUMBENT = re.compile(r"new incumbent:.*\n((?:p\d+: .*\n)+)")


@dataclass(frozen=True)
class ParamILS:
    """FocusedILS of the package ramparils, with its defaults and its adaptive capping, one core.

    It is stopped when the CPU time of its runs is used up, and its last incumbent counts: its own
    limit is on elapsed time, which looking runs up does not take. It has no seed: the seed draws
    the order of the instances, and results differ a little from run to run. Numbers are cut into
    :data:`N_VALUES` values.
    """

    name: ClassVar[str] = "ParamILS"

    def run(self, surrogate: Surrogate, *, cpu_limit: float, seed: int) -> Found:
        """Run it in a folder that is removed afterwards; it asks us for every run."""
        if importlib.util.find_spec("ramparils") is None:
            raise CannotRunError("ParamILS needs ramparils: pip install ramparils")
        runs = Runs(surrogate, cpu_limit=cpu_limit, seed=seed)
        default = surrogate.space.get_default_configuration()
        with tempfile.TemporaryDirectory() as place, answering(runs) as port:
            folder = Path(place)
            (folder / "ask.sh").write_text(_ASK.format(port=port))
            (folder / "space.params").write_text("\n".join(_parameters(surrogate)) + "\n")
            scenario = {
                "algo": f"bash {folder / 'ask.sh'}",
                "paramfile": str(folder / "space.params"),
                "instances": [str(i) for i in range(runs.n_instances)],
                "cutoff_time": runs.cutoff,
                "tuner_timeout": PATIENCE,
                "cores": 1,
                "debug": True,
                "debug_log": str(folder / "log.txt"),
            }
            names = parameter_names(surrogate)
            start = {short: _default(surrogate, name) for name, short in names.items()}
            (folder / "arguments.json").write_text(json.dumps([start, scenario]))
            _run_until_over(folder, runs)
            log = (folder / "log.txt").read_text()
        incumbents = _INCUMBENT.findall(log)
        if not incumbents:
            return runs.found(default)
        words = re.sub("[:']", "", incumbents[-1]).split()
        return runs.found(from_words(surrogate, words))


def _run_until_over(folder: Path, runs: Runs) -> None:
    """Start ParamILS, and stop it when the CPU time of its runs is used up."""
    deadline = time.monotonic() + 1.1 * PATIENCE
    with (
        open(folder / "arguments.json") as arguments,
        open(folder / "errors.txt", "w+") as errors,  # not a pipe, which nobody would read
        subprocess.Popen(
            [sys.executable, "-c", _RUN], stdin=arguments, stdout=subprocess.DEVNULL, stderr=errors
        ) as child,
    ):
        try:
            while child.poll() is None and not runs.is_over:
                if time.monotonic() > deadline:
                    raise CannotRunError(f"ParamILS did not end within {PATIENCE:g} s")
                time.sleep(0.02)
            if child.returncode and not runs.is_over:
                errors.seek(0)
                raise CannotRunError(f"ParamILS failed:\n{errors.read()}")
        finally:
            child.kill()


def _parameters(surrogate: Surrogate) -> Iterator[str]:
    """Write the space in the way of ParamILS, categories as numbers."""
    names = parameter_names(surrogate)
    for name, short in names.items():
        rules = [
            f"{names[parent]} in {{{', '.join(numbers)}}}"
            for parent, numbers in conditions_of(surrogate, name)
        ]
        values = ", ".join(_values(surrogate.space[name]))
        rule = f" | {' && '.join(rules)}" if rules else ""
        yield f"{short} {{{values}}} [{_default(surrogate, name)}]{rule}"


def _values(parameter: Any) -> list[str]:
    values = listed(parameter)
    if values is None:
        places = np.linspace(0.0, 1.0, N_VALUES)
        values = sorted({*map(parameter.to_value, places), parameter.default_value})
    # The default may be the same word as a place beside it, and no value may be listed twice.
    return list(dict.fromkeys(as_word(parameter, value) for value in values))


def _default(surrogate: Surrogate, name: str) -> str:
    parameter: Any = surrogate.space[name]
    return as_word(parameter, parameter.default_value)
