"""The report is one page that a browser can show, and the command that writes it."""

from __future__ import annotations

import csv
import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from ConfigSpace import ConfigurationSpace
from run_helpers import make_run

pytest.importorskip("matplotlib")

from acband_configspace.__main__ import main
from acband_configspace.runlog.bracket import incumbents
from acband_configspace.runlog.report import html_report
from acband_configspace.runlog.run import Run
from acband_configspace.runlog.trials_csv import write_trials

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    return make_run(tmp_path_factory.mktemp("run")).scenario.output_directory


class Checker(HTMLParser):
    """Refuses tags that are not closed in order, and collects what would need a network."""

    VOID = ("meta", "br", "img", "link")

    def __init__(self):
        super().__init__()
        self.open = []
        self.loaded = []

    def handle_starttag(self, tag, attributes):
        if tag not in self.VOID:
            self.open.append(tag)
        self.loaded += [
            value
            for name, value in attributes
            if name in ("src", "href", "xlink:href") and not value.startswith(("#", "data:"))
        ]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_the_page_is_whole_and_needs_no_network(directory):
    page = html_report(Run.load(directory))
    checker = Checker()
    checker.feed(page)
    assert checker.open == []
    assert checker.loaded == []
    assert "<script" not in page
    assert page.count("<svg") == 3


def test_the_page_says_what_happened(directory):
    run = Run.load(directory)
    page = html_report(run)
    number = incumbents(run)[-1][1]
    assert f"<b>#{number}</b>incumbent" in page
    assert f"<b>{len(run.races):,}</b>races" in page
    assert "Finished: all planned races are judged." in page
    for cause in ("won", "finished", "crash"):
        n_trials = sum(trial.cause == cause for _, trial in run.trials)
        assert re.search(
            rf"<td class=n>{cause}</td><td[^>]*>[^<]*</td><td class=n>{n_trials}<", page
        )
    # What a target prints is text, never markup.
    assert "too much &lt;b&gt;x&lt;/b&gt;" in page
    assert "too much <b>" not in page


def test_a_run_without_a_race_has_a_page_too(directory):
    run = Run.load(directory)
    page = html_report(replace(run, races=(), configurations={}, finished=None))
    assert "No race is over yet." in page
    page = html_report(replace(run, races=run.races[:5], finished=None))
    assert "Running or interrupted" in page


def test_the_default_is_known_before_it_has_raced(directory):
    run = Run.load(directory)
    [first] = [race for race in run.races if 0 not in race.racers][:1]
    configurations = {n: c for n, c in run.configurations.items() if n in first.racers}
    begun = replace(run, races=(first,), configurations=configurations, finished=None)
    assert "The incumbent is the default configuration itself" in html_report(begun)


def test_what_a_target_says_of_itself_is_its_own_word(tmp_path):
    def target(config, seed=0):
        return config["x"], {"why": "<b>lost</b>" if seed % 2 else "lost"}

    facade = make_run(tmp_path, target=target)
    run = Run.load(facade.scenario.output_directory)
    assert {trial.cause for _, trial in run.trials} == {"won", "finished"}
    assert facade.intensifier.get_incumbent()["x"] < 5
    assert "<b>lost" not in html_report(run)


def test_columns_have_names_of_their_own(tmp_path):
    space = ConfigurationSpace({"cost": (0.0, 1.0), "seed": (1, 9), "x": (0.0, 1.0)})
    facade = make_run(tmp_path, space=space, target=lambda config, seed=0: config["x"] + 7)
    table = tmp_path / "trials.csv"
    write_trials(Run.load(facade.scenario.output_directory), table)
    rows = list(csv.DictReader(table.open()))
    assert all(float(row["cost"]) == float(row["x"]) + 7 for row in rows)
    assert all(0 <= float(row["config.cost"]) <= 1 for row in rows)


@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
def test_a_browser_shows_it(directory, tmp_path):
    page = tmp_path / "report.html"
    assert main(["report", str(directory), "--output", str(page)]) == 0
    profile = f"--user-data-dir={tmp_path / 'profile'}"
    flags = ["--headless", "--no-sandbox", "--disable-gpu", profile]
    done = subprocess.run(
        [CHROMIUM, *flags, "--dump-dom", page.as_uri()],
        capture_output=True,
        text=True,
        timeout=120,
    )
    titles = re.findall(r"<h2>(.*?)</h2>", done.stdout)
    assert titles[:3] == ["Elimination", "The incumbent", "Its cost over time"]
    assert done.stdout.count("<svg") == 3
    assert done.stdout.rstrip().endswith("</html>")


def test_the_command_writes_the_page_and_the_trials(directory, tmp_path, capsys):
    page, table = tmp_path / "page.html", tmp_path / "trials.csv"
    assert main(["report", str(directory), "--output", str(page), "--csv", str(table)]) == 0
    assert str(page) in capsys.readouterr().out
    run = Run.load(directory)
    rows = list(csv.DictReader(table.open()))
    assert len(rows) == len(run.trials)
    race, trial = run.trials[-1]
    assert rows[-1]["race"] == race.name
    assert int(rows[-1]["configuration"]) == trial.configuration
    assert float(rows[-1]["x"]) == run.configurations[trial.configuration]["x"]


def test_a_wrong_directory_is_refused(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "acband_configspace", "report", str(tmp_path)],
        capture_output=True,
        text=True,
        env=os.environ,
    )
    assert done.returncode == 2
    assert done.stderr == f"error: {tmp_path} holds no run: it has no journal.jsonl\n"


def test_reading_a_run_needs_no_smac(directory):
    code = (
        "import sys; from acband_configspace.__main__ import main; "
        f"main(['report', {str(directory)!r}]); assert 'smac' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
    assert (directory / "report.html").exists()
