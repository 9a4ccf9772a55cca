"""Conditions mean here what they mean in R, irace's own language."""

from __future__ import annotations

import json
import random
import shutil
import subprocess

import pytest

from acband_configspace.cli.spaces.irace import read_irace

N_SPACES, N_CONFIGURATIONS = 150, 8
CHOICES = {"a": ["x", "y", "z"], "b": ["1", "2", "10"], "o": ["low", "very low", "high"]}
NUMBERS = {"n": (1, 9), "r": (0.0, 1.0)}
PARENTS = [*CHOICES, *NUMBERS]


def atom(draw: random.Random) -> str:
    name = draw.choice(PARENTS)
    if name in CHOICES:
        values = [f'"{v}"' for v in CHOICES[name]]
        kind = draw.randrange(3)
        if kind == 0:
            chosen = draw.sample(values, draw.randint(1, 3))
            return f"{name} %in% c({', '.join(chosen)})"
        return f"{name} {draw.choice(['==', '!='])} {draw.choice(values)}"
    value = draw.randint(0, 10) if name == "n" else draw.choice([-1, 0, 0.25, 0.5, 1, 2])
    operator = draw.choice(["==", "!=", "<", "<=", ">", ">="])
    return f"{name} {operator} {value}" if draw.random() < 0.7 else f"{value} {operator} {name}"


def expression(draw: random.Random, depth: int = 3) -> str:
    if depth == 0 or draw.random() < 0.3:
        return atom(draw)
    kind = draw.randrange(4)
    if kind == 0:
        return f"!{expression(draw, depth - 1)}" if draw.random() < 0.5 else f"!({atom(draw)})"
    parts = [expression(draw, depth - 1) for _ in range(draw.randint(2, 3))]
    text = f" {draw.choice(['&', '&&', '|', '||'])} ".join(parts)
    return f"({text})" if kind == 1 else text


def parameter_file(draw: random.Random) -> tuple[str, str]:
    condition = expression(draw)
    lines = [
        'a "" c (x, y, z)',
        'b "" c (1, 2, 10) | a != "x"',  # a parent that may itself be inactive
        'o "" o ("low", "very low", "high")',
        'n "" i (1, 9) | o == "low"',
        'r "" r (0, 1)',
        f'child "" i (1, 2) | {condition}',
    ]
    return "\n".join(lines), condition


@pytest.mark.skipif(shutil.which("Rscript") is None, reason="needs R")
def test_conditions_hold_when_they_hold_in_r(tmp_path):
    draw = random.Random(1)
    script, expected, told = [], [], []
    while len(told) < N_SPACES:
        text, condition = parameter_file(draw)
        space = read_irace(text, "parameters.txt")
        told.append(condition)
        space.seed(len(told))
        for configuration in space.sample_configuration(N_CONFIGURATIONS):
            values = dict(configuration)
            assigned = ", ".join(f"{name} = {r_value(values.get(name))}" for name in PARENTS)
            script.append(f"cat(isTRUE(eval(quote({condition}), list({assigned}))), '\\n')")
            expected.append("child" in values)
    (tmp_path / "script.R").write_text("\n".join(script))
    done = subprocess.run(
        ["Rscript", "--vanilla", "script.R"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    answers = [line.strip() == "TRUE" for line in done.stdout.splitlines()]
    wrong = [
        told[index // N_CONFIGURATIONS]
        for index, (here, there) in enumerate(zip(expected, answers, strict=True))
        if here is not there
    ]
    assert not wrong, json.dumps(wrong[:5], indent=2)
    assert 0.1 < sum(expected) / len(expected) < 0.9  # both ways are tried


def r_value(value: object) -> str:
    if value is None:
        return "NA"
    return f'"{value}"' if isinstance(value, str) else repr(float(value))
