"""clasp on weighted set covers: the instances, the options and the command line.

Which sets cover every element at the lowest weight? clasp finds the optimum and proves it; written
as a pseudo-Boolean problem. By default it lowers the cost of its solutions step by step. Raising a
lower bound by unsatisfiable cores is many times faster here, and how that is done matters, too.

Needs clasp: ``apt install clasp`` (Debian, Ubuntu), ``brew install clasp`` (macOS), or
``conda install -c conda-forge clasp``.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ConfigSpace import (
    Categorical,
    ConfigurationSpace,
    EqualsCondition,
    Float,
    InCondition,
    Integer,
)
from ConfigSpace.hyperparameters import Hyperparameter

#: clasp's exit code for "this is optimal, and proven to be".
OPTIMUM = 30
COMMAND = ("clasp", "--quiet=2", "--outf=3")


def make_space() -> ConfigurationSpace:
    """Return 37 options of clasp; the default is what it takes for such problems ("trendy")."""
    space = ConfigurationSpace(name="clasp")
    strategy = Categorical("strategy", ["bb", "usc"], default="bb")
    shrink = Categorical("shrink", ["no", "lin", "inv", "bin", "rgs", "exp", "min"], default="no")
    heuristic = Categorical("heuristic", ["Berkmin", "Vmtf", "Vsids"], default="Vsids")
    restarts = Categorical("restarts", ["D", "L", "x", "+"], default="D")
    descent = Categorical("descent", ["lin", "hier", "inc", "dec"], default="lin")
    of_cores: list[Hyperparameter[Any, Any]] = [
        Categorical("relax", ["oll", "one", "k", "pmres"], default="oll"),
        _switch("disjoint", "no"),
        _switch("succinct", "no"),
        _switch("stratify", "no"),
        shrink,
    ]
    shrink_limit = Integer("shrink-limit", (1, 20), default=10)
    by_heuristic: dict[str, list[Hyperparameter[Any, Any]]] = {
        "Vsids": [Integer("vsids-decay", (60, 99), default=95), _switch("vsids-acids", "no")],
        "Vmtf": [Integer("vmtf-moved", (2, 64), default=8, log=True)],
        "Berkmin": [Integer("berkmin-checked", (1, 1024), default=512, log=True)],
    }
    first = Integer("restart-first", (10, 1000), default=100, log=True)
    by_restarts: dict[str, Hyperparameter[Any, Any]] = {
        "D": Float("restart-share", (0.4, 1.0), default=0.7),
        "x": Float("restart-factor", (1.01, 2.0), default=1.5),
        "+": Integer("restart-step", (1, 1000), default=100, log=True),
    }
    space.add(
        strategy, descent, *of_cores, shrink_limit, heuristic, restarts, first,
        *by_restarts.values(), *(p for some in by_heuristic.values() for p in some),
        Categorical("opt-heuristic", ["0", "sign", "model", "sign,model"], default="0"),
        _switch("restart-on-model", "no"),
        _switch("init-moms", "no"),
        Categorical("score-res", ["auto", "min", "set", "multiset"], default="auto"),
        Categorical("sign-def", ["asp", "pos", "neg", "rnd"], default="asp"),
        _switch("sign-fix", "no"),
        Integer("save-progress", (0, 200), default=75),
        Float("rand-freq", (0.0, 0.2), default=0.0),
        _switch("local-restarts", "no"),
        Integer("counter-restarts", (0, 20), default=3),
        Categorical("deletion", ["basic", "sort", "ipSort", "ipHeap"], default="basic"),
        Integer("deletion-percent", (10, 95), default=50),
        Categorical("deletion-score", ["activity", "lbd", "mixed"], default="activity"),
        Integer("del-glue", (0, 8), default=2),
        Categorical("strengthen", ["no", "local", "recursive"], default="recursive"),
        Integer("otfs", (0, 2), default=2),
        Integer("reverse-arcs", (0, 3), default=2),
        Categorical("update-lbd", ["no", "less", "glucose", "pseudo"], default="less"),
        Categorical("sat-prepro", ["no", "1", "2", "3"], default="2"),
    )  # fmt: skip
    space.add(EqualsCondition(descent, strategy, "bb"))
    space.add([EqualsCondition(parameter, strategy, "usc") for parameter in of_cores])
    space.add(InCondition(shrink_limit, shrink, ["lin", "inv", "bin", "rgs", "exp", "min"]))
    for name, some in by_heuristic.items():
        space.add([EqualsCondition(parameter, heuristic, name) for parameter in some])
    space.add([EqualsCondition(each, restarts, name) for name, each in by_restarts.items()])
    return space


def _switch(name: str, default: str) -> Hyperparameter[Any, Any]:
    return Categorical(name, ["yes", "no"], default=default)


def to_arguments(
    config: Mapping[str, Any], instance: str | None, seed: int | None, cutoff: float | None
) -> list[str]:
    """Return the command line of a configuration, as clasp wants to have it."""
    values = {name: str(value) for name, value in config.items()}
    restart = [values["restarts"], values["restart-first"]]
    restart += [values[n] for n in values if n.startswith("restart-") and n[8:] in _RESTART_ENDS]
    heuristic = [values["heuristic"], *(values[n] for n in _AFTER_HEURISTIC if n in values)]
    deletion = [values[n] for n in ("deletion", "deletion-percent", "deletion-score")]
    arguments = [
        f"--opt-strategy={_strategy(values)}",
        f"--heuristic={','.join(heuristic)}",
        f"--restarts={','.join(restart)}",
        f"--deletion={','.join(deletion)}",
    ]
    if values.get("shrink", "no") != "no":
        arguments.append(f"--opt-usc-shrink={values['shrink']},{values['shrink-limit']}")
    switches = [name for name in _SWITCHES if name in values]
    arguments += [f"--{name}" if values[name] == "yes" else f"--no-{name}" for name in switches]
    arguments += [f"--{name}={values[name]}" for name in _PLAIN]
    return [*arguments, f"--seed={1 + (seed or 0)}", str(instance)]


_RESTART_ENDS = ("share", "factor", "step")
_AFTER_HEURISTIC = ("vsids-decay", "vmtf-moved", "berkmin-checked")
_SWITCHES = ("vsids-acids", "restart-on-model", "init-moms", "sign-fix", "local-restarts")
_PLAIN = (
    "opt-heuristic", "score-res", "sign-def", "save-progress", "rand-freq", "counter-restarts",
    "del-glue", "strengthen", "otfs", "reverse-arcs", "update-lbd", "sat-prepro",
)  # fmt: skip


def _strategy(values: Mapping[str, str]) -> str:
    if values["strategy"] == "bb":
        return f"bb,{values['descent']}"
    tactics = [name for name in ("disjoint", "succinct", "stratify") if values[name] == "yes"]
    return ",".join(["usc", values["relax"], *(tactics or ["0"])])


def write_covers(folder: Path, name: str, number: int) -> list[str]:
    """Write problems, unless they are there, and return the files."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for index in range(number):
        path = folder / f"{name}-{index}.opb"
        if not path.exists():
            path.write_text(weighted_cover(random.Random(path.name)), encoding="ascii")
        paths.append(str(path.resolve()))
    return paths


def weighted_cover(draw: random.Random) -> str:
    """Draw sets with weights, and for each element the four sets that it is in."""
    n_sets = draw.randint(58, 68)
    weights = [draw.randint(1, 30) for _ in range(n_sets)]
    elements = [draw.sample(range(1, n_sets + 1), 4) for _ in range(round(1.5 * n_sets))]
    cost = " ".join(f"+{weight} x{number}" for number, weight in enumerate(weights, start=1))
    lines = [f"* #variable= {n_sets} #constraint= {len(elements)}", f"min: {cost} ;"]
    lines += [" ".join(f"+1 x{number}" for number in sets) + " >= 1 ;" for sets in elements]
    return "\n".join([*lines, ""])


def features(instance: str) -> list[float]:
    """Describe a problem in two numbers: its sets and their mean weight."""
    objective = Path(instance).read_text(encoding="ascii").splitlines()[1]
    weights = [float(word) for word in objective.split() if word.startswith("+")]
    return [float(len(weights)), sum(weights) / len(weights)]
