"""A seeded generator of mixed CNF formulas: random, combinatorial and circuit families.

Sizes are drawn so that MiniSat needs milliseconds for most formulas and hundreds of times that for
some. Variables are renamed and negated at random, clauses shuffled: no family is easy because of
the order in which it happens to be written down.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations, product

import numpy as np

Clause = tuple[int, ...]


@dataclass(frozen=True)
class Formula:
    """A formula in conjunctive normal form."""

    family: str
    """The kind of formula, and its size."""
    n_variables: int
    clauses: tuple[Clause, ...]
    """Each a disjunction of literals: v is a variable, -v its negation."""

    def as_dimacs(self) -> str:
        """Return the text of a DIMACS file."""
        head = f"c {self.family}\np cnf {self.n_variables} {len(self.clauses)}\n"
        return head + "".join(" ".join(map(str, clause)) + " 0\n" for clause in self.clauses)


def formula(seed: int, index: int) -> Formula:
    """Return the formula of that number in the stream that belongs to the seed."""
    rng = np.random.default_rng([seed, index])
    family = list(FAMILIES)[index % len(FAMILIES)]
    name, clauses = FAMILIES[family](rng)
    return _disguised(f"{family} {name}", clauses, rng)


def _disguised(name: str, clauses: Sequence[Clause], rng: np.random.Generator) -> Formula:
    n_variables = max(abs(literal) for clause in clauses for literal in clause)
    new_names = rng.permutation(n_variables) + 1
    literals = np.where(rng.random(n_variables) < 0.5, -new_names, new_names)
    renamed = [
        tuple(int(literals[abs(literal) - 1]) * (1 if literal > 0 else -1) for literal in clause)
        for clause in clauses
    ]
    order = rng.permutation(len(renamed))
    return Formula(name, n_variables, tuple(renamed[i] for i in order))


Drawn = tuple[str, list[Clause]]


def _random_sat(
    rng: np.random.Generator,
    *,
    width: int,
    sizes: tuple[int, int],
    threshold: float,
    deviation: float,
) -> Drawn:
    """Return a random formula near the threshold of so many clauses a variable."""
    n = int(rng.integers(*sizes))
    clauses: list[Clause] = []
    for _ in range(int(rng.normal(threshold, deviation) * n)):
        variables = rng.choice(n, width, replace=False) + 1
        signs = rng.choice([-1, 1], width)
        clauses.append(tuple((variables * signs).tolist()))
    return f"{n}", clauses


def _pigeons(rng: np.random.Generator) -> Drawn:
    """Put n + 1 pigeons into n holes, some pigeons disliking some holes: unsatisfiable."""
    n = int(rng.choice([6, 7, 8], p=[0.5, 0.42, 0.08]))
    holes = {
        pigeon: [hole for hole in range(n) if rng.random() > 0.1] or [0] for pigeon in range(n + 1)
    }

    def sits(pigeon: int, hole: int) -> int:
        return pigeon * n + hole + 1

    clauses = [tuple(sits(p, h) for h in holes[p]) for p in holes]
    clauses += [
        (-sits(p, h), -sits(q, h)) for h in range(n) for p, q in combinations(range(n + 1), 2)
    ]
    return f"{n}", clauses


def _parity(rng: np.random.Generator) -> Drawn:
    """Return a random system of equations modulo 2, three unknowns in each."""
    n = int(rng.integers(160, 281))
    n_equations = int(n * rng.uniform(0.92, 1.02))
    clauses: list[Clause] = []
    for _ in range(n_equations):
        unknowns = (rng.choice(n, 3, replace=False) + 1).tolist()
        clauses += _xor(unknowns, bool(rng.random() < 0.5))
    return f"{n}", clauses


def _xor(variables: Sequence[int], value: bool) -> list[Clause]:
    return [
        tuple(s * v for s, v in zip(signs, variables, strict=True))
        for signs in product((1, -1), repeat=len(variables))
        if (signs.count(-1) % 2 == 0) == value
    ]


def _colouring(rng: np.random.Generator) -> Drawn:
    """Colour a random graph with 3, 4 or 5 colours, near the threshold of its edges."""
    colours = int(rng.choice([3, 4, 5]))
    low, high, degree = {3: (100, 201, 4.6), 4: (50, 79, 8.4), 5: (35, 50, 12.6)}[colours]
    n = int(rng.integers(low, high))
    n_edges = int(n * rng.normal(degree, 0.25) / 2)
    pairs = list(combinations(range(n), 2))
    edges = [pairs[i] for i in rng.choice(len(pairs), n_edges, replace=False)]

    def has(node: int, colour: int) -> int:
        return node * colours + colour + 1

    clauses: list[Clause] = [tuple(has(v, c) for c in range(colours)) for v in range(n)]
    clauses += [(-has(u, c), -has(v, c)) for u, v in edges for c in range(colours)]
    return f"{n} in {colours}", clauses


def _latin_square(rng: np.random.Generator) -> Drawn:
    """Complete a Latin square of which some cells are given."""
    n = int(rng.integers(8, 14))
    rows, columns, symbols = (rng.permutation(n) for _ in range(3))
    share_empty = rng.normal(0.45, 0.05)

    def holds(row: int, column: int, symbol: int) -> int:
        return (row * n + column) * n + symbol + 1

    clauses: list[Clause] = []
    for a, b in product(range(n), repeat=2):
        for line in (
            [holds(a, b, c) for c in range(n)],
            [holds(a, c, b) for c in range(n)],
            [holds(c, a, b) for c in range(n)],
        ):
            clauses.append(tuple(line))
            clauses += [(-x, -y) for x, y in combinations(line, 2)]
    for row, column in product(range(n), repeat=2):
        if rng.random() > share_empty:
            symbol = int(symbols[(rows[row] + columns[column]) % n])
            clauses.append((holds(row, column, symbol),))
    return f"{n}", clauses


class _Circuit:
    """Collects the clauses of gates (Tseitin's encoding)."""

    def __init__(self, n_inputs: int) -> None:
        self.n = n_inputs
        self.clauses: list[Clause] = []

    def new(self) -> int:
        self.n += 1
        return self.n

    def both(self, a: int, b: int) -> int:
        out = self.new()
        self.clauses += [(-out, a), (-out, b), (out, -a, -b)]
        return out

    def differ(self, a: int, b: int) -> int:
        out = self.new()
        self.clauses += [(-out, a, b), (-out, -a, -b), (out, -a, b), (out, a, -b)]
        return out

    def add(self, a: int, b: int, c: int) -> tuple[int, int]:
        """Return the sum and carry of three bits."""
        half = self.differ(a, b)
        carry = -self.both(-self.both(a, b), -self.both(half, c))
        return self.differ(half, c), carry


def _factoring(rng: np.random.Generator) -> Drawn:
    """Factor a number, by a multiplier of two given widths; prime numbers have no solution."""
    bits = int(rng.integers(8, 13))
    number = int(rng.integers(2 ** (2 * bits - 2), 2 ** (2 * bits))) | 1
    if rng.random() < 0.6:
        a, b = rng.integers(2 ** (bits - 1), 2**bits, 2) | 1
        number = int(a * b)
    circuit = _Circuit(2 * bits)
    columns: list[list[int]] = [[] for _ in range(2 * bits + 1)]
    for i, j in product(range(bits), repeat=2):
        columns[i + j].append(circuit.both(i + 1, bits + j + 1))
    for place, column in enumerate(columns[:-1]):
        while len(column) > 1:
            third = column.pop() if len(column) > 2 else 0
            first, second = column.pop(), column.pop()
            if third:
                total, carry = circuit.add(first, second, third)
            else:
                total, carry = circuit.differ(first, second), circuit.both(first, second)
            column.insert(0, total)
            columns[place + 1].append(carry)
    product_bits = [column[0] if column else 0 for column in columns]
    for place, bit in enumerate(product_bits):
        if bit:
            circuit.clauses.append((bit if number >> place & 1 else -bit,))
    for factor in (0, bits):  # neither factor is 1
        circuit.clauses.append(tuple(range(factor + 2, factor + bits + 1)))
    return f"{bits} bits", circuit.clauses


def _fuzz(rng: np.random.Generator) -> Drawn:
    """Return random layers of gates with constraints on top, as fuzzers of solvers make them."""
    width, depth = int(rng.integers(80, 181)), int(rng.integers(3, 9))
    circuit = _Circuit(width)
    layer = list(range(1, width + 1))
    for _ in range(depth):
        gates = []
        for _ in range(width):
            a, b = (int(x) * int(rng.choice([-1, 1])) for x in rng.choice(layer, 2, replace=False))
            gates.append(circuit.differ(a, b) if rng.random() < 0.6 else circuit.both(a, b))
        layer = gates + [int(x) for x in rng.choice(layer, width // 3, replace=False)]
    for _ in range(int(width * rng.uniform(1.5, 2.5))):
        size = int(rng.choice([2, 3, 4], p=[0.35, 0.45, 0.2]))
        chosen = rng.choice(layer, size, replace=False) * rng.choice([-1, 1], size)
        circuit.clauses.append(tuple(chosen.tolist()))
    return f"{width} x {depth}", circuit.clauses


#: family -> draws a formula; the stream takes the families in turn.
FAMILIES: Mapping[str, Callable[[np.random.Generator], Drawn]] = {
    "3sat": partial(_random_sat, width=3, sizes=(100, 181), threshold=4.26, deviation=0.15),
    "factoring": _factoring,
    "fuzz": _fuzz,
    "colouring": _colouring,
    "parity": _parity,
    "latin": _latin_square,
    "5sat": partial(_random_sat, width=5, sizes=(25, 42), threshold=21.1, deviation=0.8),
    "pigeons": _pigeons,
}
