"""Turns results into the paper's tables, a CSV file and the Pareto front."""

from __future__ import annotations

import csv
import dataclasses
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from acband_configspace.benchmark.commands.paper_grid import Row

METRICS = ("cpu_time", "gap", "subset_gap", "r_delta", "cpu_time_with_repeats")
#: A group of columns is at least as wide as its title.
NARROWEST = 22
_UNITS = (("thousand days", 86_400_000.0), ("days", 86_400.0), ("hours", 3600.0), ("s", 1.0))


@dataclass(frozen=True)
class Statistics:
    """A metric over seeds."""

    mean: float
    deviation: float
    """σ, of the sample."""
    error: float
    """The standard error of the mean."""


@dataclass(frozen=True)
class Cell:
    """A method for one α: its metrics over the seeds."""

    method: str
    family: str
    alpha: float | None
    n_configs: int
    n_instances: int
    metrics: dict[str, Statistics]
    computing: float
    """CPU seconds a simulated run took, on average."""


def summarise(rows: Iterable[Row]) -> list[Cell]:
    """Return a cell for each method and α, in the order in which they first come."""
    groups: dict[tuple[str, float | None], list[Row]] = {}
    for row in rows:
        groups.setdefault((row.method, row.alpha), []).append(row)
    return [_cell(group) for group in groups.values()]


def _cell(rows: Sequence[Row]) -> Cell:
    first = rows[0]
    return Cell(
        first.method,
        first.family,
        first.alpha,
        round(np.mean([row.n_configs for row in rows])),
        round(np.mean([row.n_instances for row in rows])),
        {name: _statistics([getattr(row, name) for row in rows]) for name in METRICS},
        float(np.mean([row.computing for row in rows])),
    )


def _statistics(values: Sequence[float]) -> Statistics:
    deviation = float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
    return Statistics(float(np.mean(values)), deviation, deviation / float(np.sqrt(len(values))))


def pareto_front(cells: Sequence[Cell]) -> list[Cell]:
    """Return the cells that no other beats in both CPU time and gap, cheapest first."""
    front: list[Cell] = []
    ordered = sorted(cells, key=lambda c: (c.metrics["cpu_time"].mean, c.metrics["gap"].mean))
    for cell in ordered:
        if not front or cell.metrics["gap"].mean < front[-1].metrics["gap"].mean:
            front.append(cell)
    return front


def time_unit(cells: Sequence[Cell]) -> tuple[str, float]:
    """Return the largest unit in which the typical CPU time is at least one."""
    typical = float(np.median([cell.metrics["cpu_time"].mean for cell in cells]))
    return next((unit for unit in _UNITS if typical >= unit[1]), _UNITS[-1])


def as_table(cells: Sequence[Cell]) -> str:
    """Return the paper's layout: for each metric and each α the mean µ and the deviation σ.

    Methods that do not depend on α come below, with one µ and σ a metric. Where a method has asked
    for more runs than the table has instances, a last column says what it would have paid if
    instances that come again were paid again.
    """
    columns = _columns(cells)
    alphas = sorted({c.alpha for c in cells if c.alpha is not None}, reverse=True)
    blocks = []
    if alphas:
        named = {(c.method, c.alpha): c for c in cells if c.alpha is not None}
        methods = list(dict.fromkeys(method for method, _ in named))
        wanted = [[named.get((method, alpha)) for alpha in alphas] for method in methods]
        heads = [f"α = {alpha:g}" for alpha in alphas]
        blocks.append(_block(columns, heads, methods, wanted))
    rest = [cell for cell in cells if cell.alpha is None]
    if rest:
        names = [cell.method for cell in rest]
        blocks.append(_block(columns, ["any α"], names, [[c] for c in rest]))
    return "\n\n".join(blocks)


@dataclass(frozen=True)
class _Column:
    metric: str
    title: str
    scale: float
    digits: int


def _columns(cells: Sequence[Cell]) -> list[_Column]:
    unit, seconds = time_unit(cells)
    columns = [
        _Column(
            "cpu_time", f"CPU time ({unit})", seconds, _time_digits(cells, "cpu_time", seconds)
        ),
        _Column("gap", "Gap to best", 1.0, 2),
        _Column("subset_gap", "Gap to subset-best", 1.0, 2),
        _Column("r_delta", "R^δ (s)", 1.0, _digits(cells)),
    ]
    repeats = "cpu_time_with_repeats"
    if any(c.metrics[repeats].mean > 1.001 * c.metrics["cpu_time"].mean for c in cells):
        digits = _time_digits(cells, repeats, seconds)
        columns.append(_Column(repeats, f"… repeats paid ({unit})", seconds, digits))
    return columns


def _block(
    columns: Sequence[_Column],
    heads: Sequence[str],
    methods: Sequence[str],
    cells: Sequence[Sequence[Cell | None]],
) -> str:
    width = 16 * len(heads)
    label = max(len("Method"), *map(len, methods))
    title = " " * label + "".join(f" |{c.title:^{max(width, NARROWEST)}}" for c in columns)
    head = " " * label + "".join(" |" + _fill(heads, "^", width) for _ in columns)
    greek = "Method".ljust(label) + "".join(
        " |" + _fill(["      µ       σ "] * len(heads), ">", width) for _ in columns
    )
    lines = [title, head, greek, "-" * len(greek)]
    for name, row in zip(methods, cells, strict=True):
        line = name.ljust(label)
        for column in columns:
            line += " |" + _fill([_number(cell, column) for cell in row], ">", width)
        lines.append(line.rstrip())
    return "\n".join(lines)


def _fill(texts: Sequence[str], align: str, group: int) -> str:
    return f"{''.join(f'{text:{align}16}' for text in texts):<{max(group, NARROWEST)}}"


def _number(cell: Cell | None, column: _Column) -> str:
    if cell is None:
        return "-"
    statistics = cell.metrics[column.metric]
    mean, deviation = statistics.mean / column.scale, statistics.deviation / column.scale
    return f"{mean:8.{column.digits}f}{deviation:8.{column.digits}f}"


def _time_digits(cells: Sequence[Cell], metric: str, seconds: float) -> int:
    """Return how many digits of the CPU times there is room for."""
    longest = max(cell.metrics[metric].mean for cell in cells) / seconds
    return 2 if longest < 1000 else 1 if longest < 10_000 else 0


def _digits(cells: Sequence[Cell]) -> int:
    """Return how many digits show two figures of the typical R^δ."""
    typical = float(np.median([cell.metrics["r_delta"].mean for cell in cells]))
    return 1 if typical >= 1 else 4


def as_csv(rows: Iterable[Row]) -> str:
    """Return all runs as comma-separated values."""
    text = io.StringIO()
    names = [field.name for field in dataclasses.fields(Row)]
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(names)
    for row in rows:
        values = [getattr(row, name) for name in names]
        writer.writerow("" if value is None else value for value in values)
    return text.getvalue()


def claims(cells: Sequence[Cell]) -> str:
    """Say for each α which methods form the Pareto front, and what AC-Band saves and loses."""
    lines = []
    fixed = [cell for cell in cells if cell.alpha is None]
    for alpha in sorted({c.alpha for c in cells if c.alpha is not None}, reverse=True):
        here = [cell for cell in cells if cell.alpha == alpha] + fixed
        front = ", ".join(cell.method for cell in pareto_front(here))
        lines.append(f"α = {alpha:g}: Pareto front (cheapest first): {front}")
        ours = next((cell for cell in here if cell.method == "AC-Band k=2"), None)
        for other in here if ours else ():
            if other.family in ("icar", "car", "car++", "hyperband"):
                assert ours is not None
                saved = 1 - ours.metrics["cpu_time"].mean / other.metrics["cpu_time"].mean
                worse = ours.metrics["gap"].mean - other.metrics["gap"].mean
                lines.append(
                    f"    AC-Band k=2 takes {saved:6.1%} less CPU time than {other.method:13} "
                    f"and its gap is {100 * worse:+5.1f} points"
                )
    return "\n".join(lines)


def computing_times(rows: Iterable[Row]) -> str:
    """Return how long the simulation of each method took."""
    total: dict[str, list[float]] = {}
    for row in rows:
        total.setdefault(row.family, []).append(row.computing)
    return "\n".join(
        f"    {family:10} {len(seconds):4} runs, {np.mean(seconds):8.3f} s a run, "
        f"{np.sum(seconds):8.1f} s in all"
        for family, seconds in total.items()
    )
