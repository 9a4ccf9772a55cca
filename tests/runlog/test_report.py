"""The report is one page that a browser can show, and the command that writes it."""

from __future__ import annotations

import csv
import os
import re
import shutil
import subprocess
import sys
from dataclasses import asdict, replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_up import write_run

from acband_configspace.cli.main import main
from acband_configspace.core.settings import Settings
from acband_configspace.runlog.charts import (
    BarChart,
    DotChart,
    Scale,
    cost_chart,
    dot_chart,
    elimination_chart,
    races_chart,
    shown_epochs,
)
from acband_configspace.runlog.journal import Journal
from acband_configspace.runlog.records import Note
from acband_configspace.runlog.replay import Run
from acband_configspace.runlog.report import html_report
from acband_configspace.runlog.verdict import VERDICT, Verdict

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
KINDS: dict[str, dict[str, Any]] = {
    "memory": {"n_trials": 600},
    "small": {"n_trials": 60},
    "racing": {"racing": True, "n_trials": 900},
    "paper": {"settings": Settings(k=3, alpha=0.1, playoff=20), "n_trials": 900},
    "begun": {"stop_after": 20},
    "early": {"stop_after": 5},
    "one race": {"stop_after": 1},
    "no race": {"stop_after": 0},
    "negative": {"cost": lambda values, key: -values["x"]},
    "constant": {"cost": lambda values, key: 0.0},
    "all crash": {"cost": lambda values, key: float("inf")},
}


@pytest.fixture(scope="module")
def directories(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    for name, options in KINDS.items():
        write_run(folder / name, **options)
    return folder


@pytest.fixture(scope="module")
def directory(directories: Path) -> Path:
    return directories / "memory"


class Checker(HTMLParser):
    """Refuses tags that are not closed in order, and collects what would need a network."""

    VOID = ("meta", "br", "img", "link")

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.loaded: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        if tag not in self.VOID:
            self.open.append(tag)
        self.loaded += [
            value
            for name, value in attributes
            if name in ("src", "href", "xlink:href")
            and value
            and not value.startswith(("#", "data:"))
        ]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.mark.parametrize("kind", KINDS)
def test_the_page_is_whole_and_needs_no_network(directories: Path, kind: str) -> None:
    page = html_report(directories / kind)
    assert page.startswith("<!doctype html>")
    checker = Checker()
    checker.feed(page)
    assert checker.open == []
    assert checker.loaded == []
    assert "<script" not in page
    assert "url(" not in page
    assert "nan" not in re.sub(r"<[^>]*>", "", page).lower().split()


def test_the_page_answers_how_much_better_first(directory: Path) -> None:
    run = Run.load(directory)
    page = html_report(run)
    titles = re.findall(r"<h2>(.*?)</h2>", page)
    assert titles == [
        "How much better than the default?",
        "The incumbent&#39;s cost over time",
        "The incumbent",
        "Who has led",
        "Elimination",
        "Champions of the passes",
        "Plan and what happened",
        "Trials and CPU time by their end",
        "Configurations",
        "Settings",
    ]
    assert run.verdict in page
    assert f"<b>#{run.incumbent}</b>incumbent" in page
    assert f"<b>{len(run.races):,}</b>races" in page
    assert "Finished: all n_trials=600 trials are used." in page
    assert "#0 (default)" in page
    for fate in ("won", "finished", "crashed"):
        n_trials = sum(trial.fate == fate for trial in run.trials)
        assert re.search(rf'<td>{fate}</td><td[^>]*>[^<]*</td><td class="n">{n_trials}<', page)


def test_wins_are_counted_among_the_races_with_others(directories: Path) -> None:
    """In races the champion meets most instances alone."""
    run = Run.load(directories / "racing")
    page = html_report(run)
    alone = {trial.configuration for trial in run.trials if len(trial.race.racers) == 1}
    shown = {}
    for number in alone:  # the page has the first 500 of all
        label = re.escape(run.label(number))
        row = re.search(
            rf'>{label}</td><td class="n">[\d,]+</td>((?:<td class="n">[^<]*</td>){{3}})', page
        )
        if row is not None:
            shown[number] = re.findall(r">([^<]*)</td>", row[1])
    assert run.incumbent in shown
    for number, cells in shown.items():
        own = [trial for trial in run.trials if trial.configuration == number]
        n_met = sum(len(trial.race.racers) > 1 for trial in own)
        n_won = sum(trial.fate == "won" for trial in own)
        assert n_won <= n_met
        share = f"{n_won / n_met:.0%}" if n_met else "–"
        assert cells == [f"{len(own):,}", f"{n_won:,}", share]


@pytest.mark.parametrize("kind", ["racing", "memory"])
def test_who_runs_alone_is_not_said_to_win(kind: str, directories: Path) -> None:
    """A group of one does, and who has company of which everything is known."""
    run = Run.load(directories / kind)
    rounds = [round_ for epoch in shown_epochs(run) for round_ in epoch.rounds]
    races = [race for round_ in rounds for race in round_.races]
    assert {len(race.racers) > 1 for race in races} == {True, False}
    sizes = [len(group.members) for round_ in rounds for group in round_.groups]
    tooltips = "\n".join(dot.tooltip for dot in dot_chart(run).dots)
    won = re.findall(r" won (\d+) of (\d+) race", tooltips)
    assert len(won) + tooltips.count(" ran alone, ") == sum(sizes)
    n_won = sum(len(race.racers) > 1 and race.winner is not None for race in races)
    assert sum(int(n) for n, _ in won) == n_won
    if kind == "racing":
        assert tooltips.count(" ran alone, ") == sizes.count(1) > 0


def test_who_has_not_raced_yet_is_not_said_to_have_run_alone(directories: Path) -> None:
    run = Run.load(directories / "early")
    rounds = [round_ for epoch in shown_epochs(run) for round_ in epoch.rounds]
    groups = [group for round_ in rounds for group in round_.groups]
    n_waiting = sum(len(group.members) for group in groups if not group.has_raced)
    tooltips = "\n".join(dot.tooltip for dot in dot_chart(run).dots)
    assert tooltips.count(" has not raced yet, not decided yet") == n_waiting > 0
    assert " ran alone, " not in tooltips


def test_what_a_target_says_is_text_and_never_markup(directory: Path) -> None:
    page = html_report(directory)
    assert "too much &lt;b&gt;x&lt;/b&gt; (" in page
    assert "too much <b>" not in page
    assert "and more" not in page  # the first line of an error is enough


def test_what_was_found_on_test_instances_comes_first(tmp_path: Path) -> None:
    write_run(tmp_path)
    journal = Journal(tmp_path / "journal.jsonl")
    journal.read()
    found = Verdict.of([1.0] * 10, [2.0] * 10, racing=True, cutoff=5.0)
    journal.add_note(VERDICT, **asdict(found))
    journal.close()
    page = html_report(tmp_path)
    first, second = page.index("is 2.00 times as fast"), page.index(Run.load(tmp_path).verdict)
    assert page.index("How much better") < first < second
    assert page.index("PAR10") < second
    assert page.index("Wilcoxon signed-rank test: p = 0.00") < second


@pytest.mark.parametrize(("n_since", "shown"), [(0, True), (1, False)])
def test_a_run_that_has_gone_on_is_to_be_tested_again(
    directory: Path, n_since: int, shown: bool
) -> None:
    """The verdict is about who led when it was made."""
    run = Run.load(directory)
    found = Verdict.of([1.0] * 10, [2.0] * 10, racing=True, cutoff=5.0)
    note = Note(VERDICT, asdict(found), n_races=len(run.races) - n_since)
    page = html_report(replace(run, recorded=replace(run.recorded, notes=[note])))
    assert (found.text in page) is shown
    assert run.verdict in page


def test_pages_are_told_apart_by_their_titles(directory: Path) -> None:
    assert f"<title>AC-Band run {directory}</title>" in html_report(directory)


def test_the_state_of_a_run_is_said(directories: Path) -> None:
    assert "No race is over yet." in html_report(directories / "no race")
    assert "Running or interrupted" in html_report(directories / "begun")


def test_a_run_that_the_engine_does_not_take_in_says_so(tmp_path: Path) -> None:
    class Own:
        needs_all_costs = False

        def scores(self, costs: np.ndarray, censored: np.ndarray) -> Any:
            return -costs.mean(axis=-2)

        def __repr__(self) -> str:
            return "<my own>"

    write_run(tmp_path, Settings(statistic=Own()))
    page = html_report(tmp_path)
    assert "It is not known who leads: it was judged by a statistic" in page
    assert "&lt;my own&gt;" in page


@pytest.mark.parametrize(
    ("options", "pattern"),
    [
        (
            {"n_trials": 600},
            r"^Configuration #\d+ costs \d+ % less than the default: .* instead",
        ),
        (
            {"settings": Settings(playoff=30, k=4), "n_trials": 1500},
            r"costs \d+ % less than the default \(95 % interval \d+ % to \d+ %\): "
            r".* on the \d+ training instances that both have met",
        ),
        ({"racing": True}, r"is at least [\d.]+ times as fast as the default: "),
        ({"cost": lambda values, key: values["x"] - 7}, r"costs -\S+ instead of -2 on average"),
        ({"cost": lambda values, key: abs(values["x"] - 5)}, r"^The default configuration itself"),
        ({"cost": lambda values, key: float("inf")}, r"^No configuration has finished a race"),
        ({"header": {"default": None}}, r"leads, with .* The default takes no part in this run"),
        (
            {"settings": Settings(alpha=0.05, playoff=0), "n_trials": 2000},
            r"costs .* the default .*, each on instances of its own: they have none in common",
        ),
        (
            {"cost": lambda values, key: float("inf") if values["x"] == 5 else values["x"]},
            r"is better than the default, which failed on the only training instance that both "
            r"have met\. The default failed on 2 instances\.",
        ),
    ],
)
def test_the_verdict_is_a_sentence(tmp_path: Path, options: dict[str, Any], pattern: str) -> None:
    write_run(tmp_path, **options)
    assert re.search(pattern, Run.load(tmp_path).verdict)


def test_the_cost_goes_down_to_the_incumbents_and_the_default_has_a_line(directory: Path) -> None:
    run = Run.load(directory)
    chart = cost_chart(run)
    heights = [point.y for point in chart.points]
    assert heights == sorted(heights, reverse=True)
    assert chart.default_at > heights[-1]
    assert len(chart.points) == len(run.leads)
    assert f"#{run.incumbent} has led since" in chart.points[-1].tooltip
    assert all(0 <= tick.at <= 100 for tick in (*chart.x_ticks, *chart.y_ticks))


def test_a_small_run_is_drawn_by_dots_and_a_large_one_by_bars(directories: Path) -> None:
    small = elimination_chart(Run.load(directories / "small"))
    assert isinstance(small, DotChart)
    run = Run.load(directories / "memory")
    large = elimination_chart(run)
    assert isinstance(large, BarChart)
    assert len(large.bars) == len(run.rounds)
    assert [span.label for span in large.spans] == [str(e.pass_number) for e in run.epochs]
    n_dots = sum(len(round_.in_play) for round_ in Run.load(directories / "small").rounds)
    assert len(small.dots) == n_dots


@pytest.mark.parametrize("kind", ["memory", "small", "paper", "one race"])
def test_axes_of_counts_have_whole_numbers(directories: Path, kind: str) -> None:
    run = Run.load(directories / kind)
    charts = [races_chart(run), elimination_chart(run)]
    labels = [t.label for c in charts if isinstance(c, BarChart) for t in c.y_ticks]
    assert labels
    assert all(re.fullmatch(r"[\d,]+", label) for label in labels)
    assert len(set(labels)) >= len(labels) / 2


@pytest.mark.parametrize(
    ("scale", "expected"),
    [
        (Scale(0, 10), [0, 2, 4, 6, 8, 10]),
        (Scale(0.3, 0.62), [0.3, 0.4, 0.5, 0.6]),
        (Scale(-3, 4), [-2, 0, 2, 4]),
        (Scale(1, 1000, log=True), [1, 10, 100, 1000]),
        (Scale(5, 5), [5]),
    ],
)
def test_ticks_are_round(scale: Scale, expected: list[Any]) -> None:
    assert scale.ticks() == pytest.approx(expected)


@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
def test_a_browser_shows_it(directory: Path, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    assert main(["report", str(directory), "--output", str(page)]) == 0
    profile = f"--user-data-dir={tmp_path / 'profile'}"
    flags = ["--headless", "--no-sandbox", "--disable-gpu", profile]
    done = subprocess.run(
        [str(CHROMIUM), *flags, "--dump-dom", page.as_uri()],
        capture_output=True,
        text=True,
        timeout=120,
    )
    titles = re.findall(r"<h2>(.*?)</h2>", done.stdout)
    assert titles[:2] == ["How much better than the default?", "The incumbent's cost over time"]
    assert done.stdout.rstrip().endswith("</html>")


def test_the_command_writes_the_page_and_the_trials(
    directory: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page, table = tmp_path / "page.html", tmp_path / "trials.csv"
    assert main(["report", str(directory), "--output", str(page), "--csv", str(table)]) == 0
    assert str(page) in capsys.readouterr().out
    assert len(list(csv.DictReader(table.open()))) == len(Run.load(directory).trials)


def test_a_wrong_directory_is_refused(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "acband_configspace", "report", str(tmp_path)],
        capture_output=True,
        text=True,
        env=os.environ,
    )
    assert done.returncode == 2
    assert done.stderr == f"error: {tmp_path} holds no run: it has no journal.jsonl\n"


def test_reading_a_run_needs_no_smac_and_no_matplotlib(directory: Path) -> None:
    code = (
        "import sys; from acband_configspace.runlog.report import html_report; "
        f"html_report({str(directory)!r}); "
        "assert not {'smac', 'matplotlib', 'ConfigSpace'} & set(sys.modules); "
        "from acband_configspace.cli.main import main; "
        f"main(['report', {str(directory)!r}]); "
        "assert not {'smac', 'matplotlib'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
    assert (directory / "report.html").exists()
