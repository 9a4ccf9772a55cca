"""What the comparison shows: a table with intervals, the figures as CSV, a picture of each job."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from compare_jobs import CUTOFF, PAR
from compare_methods import Run
from scipy import stats

from acband_configspace.runlog.words import counted

#: At these shares of the time, or of the trials, it is asked what would have been returned.
LOOKS = (0.125, 0.25, 0.5, 1.0)
#: Who used a smaller share of the time is named below the table.
ENOUGH = 0.95
#: Machines whose times for the same work differ by a smaller factor count as equally fast.
EQUAL_SPEED = 1.1
#: Where the standard error over runs is a larger share of a mean, a few runs make up the mean;
#: where that over test instances is a larger share of a ratio, a few of them make up the ratio.
#: Welch's interval of its logarithm would be far from the truth.
LARGEST_ERROR = 0.2

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class MethodResult:
    """What one method found."""

    name: str
    title: str
    ours: bool
    costs: Floats
    """By seed, look and test instance; NaN where nothing was measured."""
    runs: Mapping[int, Run]
    """By seed, in the order of the costs."""
    failures: Sequence[str] = ()
    """Why it has found nothing with other seeds."""

    @property
    def means(self) -> Floats:
        """The mean test costs in the end, by seed."""
        return np.asarray(self.costs[:, -1].mean(axis=1))

    def curves(self, n_instances: int) -> Floats:
        """Return the mean test costs on the first instances, by seed and look; NaN if unknown."""
        return np.asarray(self.costs[:, :, :n_instances].mean(axis=2))


@dataclass(frozen=True)
class JobResult:
    """What all methods found."""

    name: str
    title: str
    timed: bool
    limit: float
    workers: int
    default_costs: Floats
    methods: Sequence[MethodResult]
    n_seeds: int
    n_earlier: int | None = None
    """On how many test instances what was found before the end was measured; None for all."""

    @property
    def default(self) -> float:
        """The mean test cost of the default."""
        return float(self.default_costs.mean())

    @property
    def n_tested(self) -> int:
        """On how many test instances what was found in the end was measured."""
        return len(self.default_costs)

    @property
    def n_tested_earlier(self) -> int:
        """On how many, the first of them, what was found before the end was measured."""
        return min(self.n_earlier or self.n_tested, self.n_tested)

    @property
    def allowed(self) -> str:
        """The limit, in words."""
        if self.timed:
            return f"{self.limit:g} s on {self.workers} workers"
        return f"{self.limit:g} trials"


def ratio_interval(a: Floats, b: Floats) -> tuple[float, float, float]:
    """Return the ratio of two mean costs and its 95 % interval; NaN where there is none to give.

    Rows are seeds, columns are test instances; both are taken to be drawn at random, the instances
    for both together. By Welch's t on the logarithm: a bootstrap of five seeds is too narrow. Of a
    single seed, and where a few runs make up a mean, or a few instances the ratio, nothing can be
    said of others.
    """
    ratio = float(a.mean() / b.mean()) if b.mean() else np.nan
    if len(a) < 2 or len(b) < 2:
        return ratio, np.nan, np.nan
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = [costs / costs.mean() for costs in (a, b)]
        varying = [share.mean(axis=1) for share in shares]  # by seed ...
        if a.shape[1] > 1:  # ... and by instance
            varying.append(shares[0].mean(axis=0) - shares[1].mean(axis=0))
        variances = np.array([np.var(values, ddof=1) / len(values) for values in varying])
        if not np.sqrt(variances).max() <= LARGEST_ERROR:  # not a number, if costs are 0
            return ratio, np.nan, np.nan
        if not variances.any():  # nothing varies, and there are no degrees of freedom
            return ratio, ratio, ratio
        degrees = np.array([len(values) - 1 for values in varying])
        n_degrees = variances.sum() ** 2 / (variances**2 / degrees).sum()
        reach = np.exp(stats.t.ppf(0.975, n_degrees) * np.sqrt(variances.sum()))
    return ratio, ratio / float(reach), ratio * float(reach)


def ratio_of_runs(a: Floats, b: Floats) -> tuple[float, float, float]:
    """Return how many times as much a run of one costs as one of the other; its 95 % interval.

    The median over all pairs of runs (Hodges and Lehmann), with the interval of all ratios that
    Mann and Whitney's exact test does not reject: it holds also where a few runs make up a mean.
    But it is for these test instances, which are not taken to be drawn at random.
    """
    with np.errstate(divide="ignore", invalid="ignore"):  # costs may be 0
        ratios = np.sort(np.divide.outer(a.mean(axis=1), b.mean(axis=1)).ravel())
    counts = _mann_whitney(len(a), len(b))
    n_left = int((counts.cumsum() <= 0.025 * counts.sum()).sum())
    if n_left == 0:  # too few to reject anything
        return float(np.median(ratios)), np.nan, np.nan
    return float(np.median(ratios)), float(ratios[n_left - 1]), float(ratios[-n_left])


def _mann_whitney(n: int, m: int) -> Floats:
    """Return in how many orders of n and m different values each number of wins comes about.

    These are the coefficients of a Gaussian binomial; scipy has p-values only.
    """
    counts = np.ones(1)
    for i in range(1, m + 1):
        counts = np.append(counts, np.zeros(n + i)) - np.append(np.zeros(n + i), counts)
        for j in range(i, len(counts)):
            counts[j] += counts[j - i]
    return counts[: n * m + 1]


def table(result: JobResult, absent: Mapping[str, str]) -> str:
    """Return the tables of a job, best first: what was found, ratios to rivals, earlier looks."""
    gain = "speed-up" if result.timed else "÷ default"
    methods = sorted(result.methods, key=lambda method: method.means.mean())
    lines = [
        f"\n{result.title}: {result.allowed}",
        f"{'':31}runs{'test cost':>18}{gain:>11}{'configs':>9}{'trials':>8}{'took':>9}"
        f"{'own time':>10}",
        f"{'default':35}{result.default:9.4f}{'':9}{1:11.2f}",
    ]
    for method in methods:
        mean = method.means.mean()
        spread = f"± {method.means.std(ddof=1):.4f}" if len(method.means) > 1 else ""
        better = result.default / mean if result.timed else mean / result.default
        runs = list(method.runs.values())
        own = np.mean([run.elapsed - run.in_target / result.workers for run in runs])
        lines.append(
            f"{method.title:31}{len(runs):4}{mean:9.4f} {spread:8}{better:11.2f}"
            f"{np.mean([run.n_configs for run in runs]):9.0f}"
            f"{np.mean([run.n_trials for run in runs]):8.0f}"
            f"{np.mean([run.elapsed for run in runs]):7.1f} s{max(0.0, own):8.1f} s"
        )
    lines += left_out(absent)
    cost = f"PAR{PAR:g} of CPU seconds, cutoff {CUTOFF:g} s; " if result.timed else ""
    tested = counted(result.n_tested, "test instance")
    lines.append(
        f"Means over seeds, ± standard deviation; {cost}{tested}; "
        "own time: time the workers were idle."
    )
    return "\n".join([*lines, *_notes(result), *_ratios(methods), *_earlier(result, methods)])


def left_out(absent: Mapping[str, str]) -> list[str]:
    """Return a line for each method that is not in a table: why it is not."""
    return [f"{title:30} left out: {why}" for title, why in absent.items()]


def _ratios(methods: Sequence[MethodResult]) -> Iterator[str]:
    """Yield a line for each rival: what ours cost in multiples of it."""
    ours = [method for method in methods if method.ours]
    rivals = [method for method in methods if not method.ours]
    if not ours or not rivals:
        return
    for what, compare, remark in (
        (
            "mean cost ÷ mean cost of",
            ratio_interval,
            "In brackets: 95 % intervals, by Welch's t; none where there is one run only, where a "
            "few runs make up the mean, or where a few test instances make up the ratio.",
        ),
        (
            "cost of a run ÷ that of one of",
            ratio_of_runs,
            "Medians over all pairs of runs, with 95 % intervals by Mann and Whitney's exact test, "
            "on these test instances; none where there are too few runs.",
        ),
    ):
        yield ""
        yield f"{what:31}" + "".join(f"{method.title:>30}" for method in ours)
        for rival in rivals:
            cells = ""
            for method in ours:
                ratio, low, high = compare(method.costs[:, -1], rival.costs[:, -1])
                interval = f" ({low:.3f}–{high:.3f})" if low == low else ""
                cells += f"{f'{ratio:.3f}{interval}':>30}"
            yield f"{rival.title:31}{cells}"
        yield remark


def _earlier(result: JobResult, methods: Sequence[MethodResult]) -> Iterator[str]:
    """Yield a line for each method: what it would have returned earlier."""
    unit = " s" if result.timed else ""
    n = result.n_tested_earlier
    yield ""
    tested = counted(n, "instance")
    yield f"{f'test cost on {tested}, after':35}" + "".join(
        f"{f'{share * result.limit:g}{unit}':>9}" for share in LOOKS
    )
    yield f"{'default':35}{result.default_costs[:n].mean():9.4f}"
    for method in methods:
        means = method.curves(n).mean(axis=0)
        cells = "".join(f"{'–':>9}" if np.isnan(mean) else f"{mean:9.4f}" for mean in means)
        yield f"{method.title:35}{cells}"


def _notes(result: JobResult) -> Iterator[str]:
    """Yield what must be known to judge a table."""
    kept = [run.versions for method in result.methods for run in method.runs.values()]
    for name in dict.fromkeys(name for versions in kept for name in versions):
        found = dict.fromkeys(versions[name] for versions in kept if name in versions)
        if len(found) > 1 and name == "commit":
            yield f"Runs were made with {len(found)} states of this repository."
        elif len(found) > 1:
            yield f"Runs were made with {name} {' and '.join(found)}."
    for method in result.methods:
        for why in method.failures:
            yield f"{method.title} {why}."
    if not result.timed:
        return
    yield from _note_on_speed(result)
    if any(method.title.startswith("SMAC") for method in result.methods):
        yield "SMAC caps runs only where it says so: capping is off by default in SMAC 2.4."
    for method in result.methods:
        used = np.mean([run.elapsed for run in method.runs.values()]) / result.limit
        if used < ENOUGH:
            yield f"{method.title} used only {100 * used:.0f} % of its time."


def _note_on_speed(result: JobResult) -> Iterator[str]:
    """Yield which methods were run on a slower or faster machine than most others."""
    marks = {}
    for method in result.methods:
        known = [run.yardstick for run in method.runs.values() if run.yardstick is not None]
        if len(known) == len(method.runs):
            marks[method.title] = float(np.mean(known))
    unknown = [method.title for method in result.methods if method.title not in marks]
    if marks and unknown:
        yield f"Not known: how fast the machine was that ran {', '.join(unknown)}."
    usual = float(np.median(list(marks.values()))) if marks else 1.0
    for title, mark in marks.items():
        slower = max(mark, usual) / min(mark, usual)
        if slower > EQUAL_SPEED:
            how = "slower" if mark > usual else "faster"
            yield f"{title} was run on a machine that is {how} by a factor of {slower:.2f}."


def write_csv(path: str, results: Sequence[JobResult]) -> None:
    """Write a row for every run.

    What was found before the end may have been tried on fewer instances, the first ones. What was
    found in the end, and the default, are given on all of them and, to be set beside it, on those.
    """
    looks = [f"test_cost_at_{share:g}" for share in LOOKS]
    columns = ["elapsed", "in_target", "n_trials", "n_configs", "yardstick"]
    tests = ["default_test_cost", "n_tested", "n_tested_earlier"]
    on_fewer = [f"{looks[-1]}_as_earlier", "default_test_cost_as_earlier"]
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["job", "method", "seed", *columns, *looks, *tests, *on_fewer])
        for result in results:
            n = result.n_tested_earlier
            tested = [result.default, result.n_tested, n]
            default = float(result.default_costs[:n].mean())
            for method in result.methods:
                means = zip(method.curves(n), method.means, strict=True)
                for (seed, run), (on_first, on_all) in zip(method.runs.items(), means, strict=True):
                    values = [getattr(run, name) for name in columns]
                    told = ["" if np.isnan(mean) else mean for mean in (*on_first[:-1], on_all)]
                    row = [result.name, method.name, seed, *values, *told, *tested]
                    writer.writerow([*row, on_first[-1], default])


def draw(path: Path, result: JobResult) -> None:
    """Draw one panel for each method: its median and range, the medians of the others in grey."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    n_columns = min(3, len(result.methods))
    n_rows = -(-len(result.methods) // n_columns)
    size = (3.1 * n_columns + 0.6, 2.3 * n_rows + 0.7)
    figure, axes = plt.subplots(
        n_rows, n_columns, figsize=size, sharex=True, sharey=True, squeeze=False,
        layout="constrained",
    )  # fmt: skip
    spent = result.limit * np.array(LOOKS)
    n_tested = result.n_tested_earlier
    curves = {m.name: _known(spent, m.curves(n_tested)) for m in result.methods}
    default = result.default_costs[:n_tested].mean()
    for ax, method in zip(axes.flat, result.methods, strict=False):
        for name, (places, costs) in curves.items():
            if name != method.name:
                ax.plot(places, np.median(costs, axis=0), color="0.8", linewidth=1)
        places, costs = curves[method.name]
        colour = "C1" if method.ours else "C0"
        ax.fill_between(places, costs.min(0), costs.max(0), color=colour, alpha=0.2, linewidth=0)
        ax.plot(places, np.median(costs, axis=0), color=colour, marker="o", markersize=4)
        ax.axhline(default, color="0.4", linestyle="--", linewidth=0.8)
        fewer = len(method.runs) < result.n_seeds
        n_seeds = f" ({counted(len(method.runs), 'seed')})" if fewer else ""
        ax.set_title(method.title + n_seeds, fontsize="small")
        ax.set_xscale("log", base=2)
        ax.set_yscale("log")
        ax.set_xticks(spent, [f"{value:g}" for value in spent])
        ax.minorticks_off()
        ax.spines[["top", "right"]].set_visible(False)
    for ax in list(axes.flat)[len(result.methods) :]:
        ax.set_axis_off()
    n_above = max(0, len(result.methods) - n_columns)
    for ax in list(axes.flat)[n_above : len(result.methods)]:  # below some there is no other
        ax.tick_params(labelbottom=True)
    low, high = axes[0, 0].get_ylim()
    ticks = _nice(low, high)
    axes[0, 0].set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    figure.supxlabel("seconds" if result.timed else "trials", fontsize="small")
    figure.supylabel("mean test cost", fontsize="small")
    figure.suptitle(picture_title(result), fontsize="medium")
    figure.savefig(path, dpi=130)
    plt.close(figure)


def picture_title(result: JobResult) -> str:
    """Return what a picture shows; it may be of fewer test instances than the table."""
    n = result.n_tested_earlier
    where = f" on the first {counted(n, 'test instance')}" if n < result.n_tested else ""
    seeds = counted(result.n_seeds, "seed")
    return f"{result.title}: median and range of {seeds}{where}; dashed: the default"


def _known(spent: Floats, costs: Floats) -> tuple[Floats, Floats]:
    """Return the looks of which something is known, and the mean costs there, by seed."""
    known = ~np.isnan(costs).any(axis=0)
    return spent[known], costs[:, known]


def _nice(low: float, high: float) -> list[float]:
    """Return round numbers within the limits of a logarithmic axis."""
    powers = range(int(np.floor(np.log10(low))), int(np.ceil(np.log10(high))) + 1)
    few, more = (1, 1.5, 2, 3, 5, 7), (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8)
    for steps in ((1,), (1, 3), (1, 2, 5), few, more, np.arange(1, 10, 0.5)):
        ticks = [step * 10.0**power for power in powers for step in steps]
        ticks = [tick for tick in ticks if low <= tick <= high]
        if len(ticks) >= 3:
            return ticks
    return [float(f"{tick:.2g}") for tick in np.linspace(low, high, 4)]
