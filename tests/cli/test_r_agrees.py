"""Conditions mean here what they mean in R, irace's own language."""

from __future__ import annotations

import random
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from acband_configspace.cli.errors import InputError
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
        if kind == 1 and name == "b":
            return f"as.numeric(b) {draw.choice(['<', '<=', '>', '>='])} {draw.randint(0, 11)}"
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


def parameter_file(condition: str, *, forbidden: bool) -> str:
    lines = [
        'a "" c (x, y, z)',
        'b "" c (1, 2, 10) | a != "x"',  # a parent that may itself be inactive
        'o "" o ("low", "very low", "high")',
        'n "" i (1, 9) | o == "low"',
        'r "" r (0, 1)',
        'child "" i (1, 2)' + ("" if forbidden else f" | {condition}"),
    ]
    return "\n".join([*lines, "[forbidden]", condition] if forbidden else lines)


def in_r(questions: list[str], folder: Path) -> list[bool]:
    """Return R's answers."""
    lines = [f"cat(isTRUE({question}), '\\n')" for question in questions]
    (folder / "script.R").write_text("\n".join(lines))
    done = subprocess.run(
        ["Rscript", "--vanilla", "script.R"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=100,
        check=True,
    )
    return [line.strip() == "TRUE" for line in done.stdout.splitlines()]


def question(condition: str, values: Mapping[str, object]) -> str:
    assigned = ", ".join(f"{name} = {r_value(values.get(name))}" for name in PARENTS)
    return f"eval(quote({condition}), list({assigned}))"


@pytest.mark.skipif(shutil.which("Rscript") is None, reason="needs R")
@pytest.mark.parametrize("forbidden", [False, True], ids=["conditions", "forbidden"])
def test_expressions_hold_when_they_hold_in_r(forbidden: bool, tmp_path: Path) -> None:
    draw = random.Random(1)
    questions, answers = [], []
    free = read_irace(parameter_file("TRUE", forbidden=False), "parameters.txt")
    for number in range(N_SPACES):
        condition = expression(draw)
        text = parameter_file(condition, forbidden=forbidden)
        try:
            space = read_irace(text, "parameters.txt")
        except InputError:
            assert forbidden  # all there is, perhaps: no default is left
            continue
        drawn_from = free if forbidden else space
        drawn_from.seed(number)
        for configuration in drawn_from.sample_configuration(N_CONFIGURATIONS):
            values = dict(configuration)
            questions.append(question(condition, values))
            if forbidden:
                clauses = space.forbidden_clauses
                answers.append(any(clause.is_forbidden_value(values) for clause in clauses))
            else:
                answers.append("child" in values)
    expected = in_r(questions, tmp_path)
    pairs = zip(questions, answers, expected, strict=True)
    wrong = [asked for asked, here, there in pairs if here is not there]
    assert not wrong, "\n".join(wrong[:5])
    assert 0.1 < sum(expected) / len(expected) < 0.9  # both ways are tried


def r_value(value: object) -> str:
    if value is None:
        return "NA"
    return f'"{value}"' if isinstance(value, str) else repr(float(str(value)))
