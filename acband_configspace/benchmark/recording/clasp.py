"""clasp's options as a space with conditions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ConfigSpace import (
    Categorical,
    ConfigurationSpace,
    EqualsCondition,
    Float,
    Integer,
)

from acband_configspace.benchmark.recording.sat import SatSolver


def clasp_space() -> ConfigurationSpace:
    """Return clasp's options for formulas; the defaults are those of its preset "trendy"."""
    switch = ["off", "on"]
    heuristic = Categorical("heuristic", ["Vsids", "Berkmin", "Vmtf"], default="Vsids")
    decay = Integer("vsids-decay", (70, 99), default=95)
    acids = Categorical("vsids-acids", switch, default="off")
    huang = Categorical("berk-huang", switch, default="off")
    front = Integer("vmtf-front", (2, 64), default=8, log=True)
    restarts = Categorical("restarts", ["D", "L", "x", "+"], default="D")
    limit = Float("restart-limit", (0.5, 0.95), default=0.7)
    growth = Float("restart-growth", (1.05, 2.5), default=1.5)
    step = Integer("restart-step", (10, 1000), default=100, log=True)
    deletion = Categorical("deletion", ["basic", "sort", "ipSort", "ipHeap"], default="basic")
    space = ConfigurationSpace(name="clasp")
    space.add(
        heuristic, decay, acids, huang, front, restarts, limit, growth, step, deletion,
        Integer("restart-length", (10, 1000), default=100, log=True),
        Integer("deletion-share", (20, 100), default=50),
        Categorical("deletion-score", ["activity", "lbd", "mixed"], default="activity"),
        Float("del-init", (1.0, 30.0), default=3.0, log=True),
        Integer("del-glue", (0, 8), default=2),
        Categorical("strengthen", ["no", "local", "recursive"], default="recursive"),
        Integer("otfs", (0, 2), default=2),
        Integer("reverse-arcs", (0, 3), default=2),
        Categorical("update-lbd", ["no", "less", "glucose", "pseudo"], default="less"),
        Integer("save-progress", (0, 200), default=75),
        Categorical("sign-def", ["asp", "pos", "neg", "rnd"], default="asp"),
        Categorical("init-watches", ["rnd", "first", "least"], default="rnd"),
        Float("rand-freq", (0.0, 0.1), default=0.0),
        Categorical("sat-prepro", ["no", "1", "2", "3"], default="2"),
        Integer("contraction", (0, 600), default=250),
        Categorical("local-restarts", switch, default="off"),
    )  # fmt: skip
    space.add(
        EqualsCondition(decay, heuristic, "Vsids"),
        EqualsCondition(acids, heuristic, "Vsids"),
        EqualsCondition(huang, heuristic, "Berkmin"),
        EqualsCondition(front, heuristic, "Vmtf"),
        EqualsCondition(limit, restarts, "D"),
        EqualsCondition(growth, restarts, "x"),
        EqualsCondition(step, restarts, "+"),
    )
    return space


def clasp_arguments(
    configuration: Mapping[str, Any],
    instance: str | None = None,
    seed: int | None = None,
    cutoff: float | None = None,
) -> list[str]:
    """Return the command line: some of clasp's options hold several of ours, in its order."""
    values = dict(configuration)

    def joined(*names: str) -> str:
        return ",".join(str(values.pop(name)) for name in names if name in values)

    options = {
        "heuristic": joined("heuristic", "vsids-decay", "vmtf-front"),
        "restarts": joined(
            "restarts", "restart-length", "restart-limit", "restart-growth", "restart-step"
        ),
        "deletion": joined("deletion", "deletion-share", "deletion-score"),
    }
    flags = {"on": "--{}", "off": "--no-{}"}
    arguments = [
        flags.get(value, "--{}={}").format(name, value)
        for name, value in {**options, **values}.items()
    ]
    if seed is not None:
        arguments.append(f"--seed={seed}")
    fixed = ["--quiet=2", "--configuration=trendy"]
    return [*fixed, *arguments, *([] if instance is None else [instance])]


CLASP = SatSolver("clasp", clasp_space, clasp_arguments)
