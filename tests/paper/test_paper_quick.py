"""`malleable paper --quick` as a whole: it runs, its numbers are right, and a browser shows its page."""

from __future__ import annotations

import csv
import json
import math

import pytest
from test_paper_browser import (
    DESK,
    PHONE,
    Visit,
    browser,  # noqa: F401 - a fixture
)

from malleable import plots
from malleable.model import paper_workload
from malleable.paper.contracts import QUICK
from malleable.paper.reproduce import all_experiments, reproduce
from malleable.theory.relaxed import bound
from support.paper_samples import one_format

TRULY_FAIL = {
    "No other class rule costs less than WHAM, at any n and load",
    "The refined mean field puts the policies in the order of their exact costs",
}
"""False, and said to be: on another workload than the paper's, and on very few cores."""
EXACT = {("WHAM", 16): 0.2400331, ("EQUI", 16): 0.2440912, ("GREEDY", 16): 0.2414230}


SOME = ("e01_speedups", "e02_converge", "e03_others", "e09_rivals", "e10b_discounted", "e12_robustness")
"""Two whose numbers are looked at below, and those whose cells no test of their own computes."""


def all_of(names, folder):
    """Experiments, but pictures in one format, and by one process: two would load all machine code twice."""
    with one_format():
        return reproduce(folder, QUICK, names, workers=1)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return all_of(SOME, tmp_path_factory.mktemp("quick"))


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return all_of(None, tmp_path_factory.mktemp("whole"))


def rows(made, name):
    with (made.page.parent / "tables" / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("which", ["made", pytest.param("whole", marks=pytest.mark.slow)])
def test_every_experiment_is_there_and_holds(which, request):
    """All experiments are on the page; no verdict fails but those that should; most are decided."""
    made = request.getfixturevalue(which)
    names = {one.name for one in all_experiments()} if which == "whole" else set(SOME)
    verdicts = made.to_dict()["verdicts"]
    assert {verdict["experiment"] for verdict in verdicts} == names
    assert {verdict["statement"] for verdict in verdicts if verdict["holds"] is False} <= TRULY_FAIL
    assert sum(verdict["holds"] is True for verdict in verdicts) > 0.6 * len(verdicts)
    page = made.page.read_text(encoding="utf-8")
    assert all(chapter.findings.title in page for chapter in made.chapters)


def test_simulated_costs_are_the_exact_ones(made):
    """Costs of the figure “others” agree with the exact chains, and none lies below V*."""
    least = bound(paper_workload(64, 0.25), 64).bound
    seen = set()
    for row in rows(made, "others"):
        mean, low, high = (float(row[key]) for key in ("simulated cost", "low", "high"))
        assert low <= mean <= high
        assert high > least
        exact = EXACT.get((row["policy"], int(row["cores"])))
        if exact is not None:
            seen.add((row["policy"], int(row["cores"])))
            assert float(row["exact cost"]) == pytest.approx(exact, rel=1e-5)
            assert abs(mean - exact) < 2.5 * (high - mean)
    assert seen == set(EXACT)


def test_limits_are_those_of_the_theory(made):
    """EQUI and GREEDY stay above V* by their mean-field ratios."""
    limits = {row["policy"]: float(row["over V*"]) for row in rows(made, "others-limits")}
    assert limits["WHAM"] == pytest.approx(1.0, abs=1e-9)
    assert limits["EQUI"] == pytest.approx(1.118885, abs=1e-6)
    assert limits["GREEDY"] == pytest.approx(1.011113, abs=1e-6)


def test_infeasible_and_unstable_points_are_marked(made):
    """FW-CAM's settings without a plan, or without a stable one, are on the figure and in the table."""
    states = {row["status"] for row in rows(made, "converge-exact")}
    assert {"stable", "unstable", "infeasible"} <= states
    figures = json.loads((made.page.parent / "findings" / "e02_converge.json").read_text(encoding="utf-8"))
    marks = [mark for figure in figures["figures"] for panel in figure["panels"] for mark in panel["marks"]]
    assert any("infeasible" in text for *_, text in marks)
    assert any("unstable" in text for *_, text in marks)


def test_again_computes_and_draws_nothing(made):
    """A second run finds everything there."""
    before = {path: path.stat().st_mtime_ns for path in made.page.parent.rglob("*") if path.is_file()}
    again = all_of(SOME, made.page.parent)
    assert again.drawn == ()
    assert {path: path.stat().st_mtime_ns for path in made.page.parent.rglob("*") if path.is_file()} == before


@pytest.mark.slow
def test_every_figure_in_every_format(whole, monkeypatch):
    """All figures can be drawn as PNG and PDF, too; that the page offers these is in `test_paper_page.py`."""
    monkeypatch.setattr(plots, "SUFFIXES", ("png", "pdf"))
    for chapter in whole.chapters:
        for figure in chapter.findings.figures:
            assert all(plots.draw_files(figure).values())


@pytest.mark.slow  # the quick tests open a page of samples: `test_paper_browser.py`
@pytest.mark.parametrize("screen", [DESK, PHONE], ids=["desk", "phone"])
def test_a_browser_shows_it(made, browser, screen):  # noqa: F811 - ditto
    """Every plot is drawn, nothing is complained of, nothing leaves the machine, nothing sticks out."""
    seen = Visit(browser, made.page, **screen)
    plots = seen.page.evaluate("window.malleablePlots")
    figures = sum(len(chapter.findings.figures) for chapter in made.chapters)
    assert (plots["drawn"], plots["failed"], plots["total"]) == (figures, 0, figures)
    assert seen.said == []
    assert {url.partition(":")[0] for url in seen.asked} <= {"file", "data", "blob"}
    assert seen.page.evaluate("document.documentElement.scrollWidth") <= screen["viewport"]["width"]
    assert all(math.prod(size) > 0.0 for size in seen.shown(".plot svg.main-svg"))
    seen.context.close()
