"""Figures of results and comparisons: what they show is what the results say."""

from __future__ import annotations

from dataclasses import replace
from math import isfinite

import pytest

from malleable import compare, plots, simulate
from malleable.model import paper_workload
from malleable.results import Comparison

JOBS = 4_000


@pytest.fixture(scope="module")
def result():
    return simulate(paper_workload(16), 16, "wham", jobs=JOBS, seed=1)


@pytest.fixture(scope="module")
def comparison():
    return compare("paper", [8, 16], ["wham", "equi"], load=[0.3, 0.6], jobs=JOBS, seed=1)


def points(figure):
    """All points of a figure's series, by panel and name."""
    return {
        (panel.title, one.name): list(zip(one.x, one.y, strict=True))
        for panel in figure.panels
        for one in panel.series
    }


def test_a_result_is_drawn_per_class(result):
    """Means with their intervals and percentiles of every class, for response times and slowdowns."""
    figure = plots.result_figure(result)
    response, slowdown = figure.panels
    assert response.x.categories == tuple(one.name for one in result.classes)
    mean, *percentiles = response.series
    assert mean.y == tuple(one.response_time.mean for one in result.classes)
    assert (mean.low, mean.high) == (
        tuple(one.response_time.low for one in result.classes),
        tuple(one.response_time.high for one in result.classes),
    )
    assert [one.y for one in percentiles] == [
        tuple(getattr(one.response, level) for one in result.classes) for level in ("p50", "p95", "p99")
    ]
    assert slowdown.series[0].y == tuple(one.mean_slowdown for one in result.classes)
    assert str(result.cost) in figure.caption


def test_costs_over_cores(comparison):
    """With several loads each has a panel: every policy's costs over the cores, and the bound."""
    figure = plots.comparison_figure(comparison)
    assert [panel.title for panel in figure.panels] == ["load 0.3", "load 0.6"]
    found = points(figure)
    for result in comparison.results:
        panel = f"load {result.load:.4g}"
        assert (result.cores, result.cost.mean) in found[panel, result.policy]
        assert (result.cores, result.bound_tight) in found[panel, "lower bound"]
    assert all(isfinite(low) for panel in figure.panels for one in panel.series for low in one.low)


@pytest.mark.parametrize(
    ("chosen", "title", "places"),
    [
        (lambda r: r.cores == 8, "load ρ", (0.3, 0.6)),
        (lambda r: round(r.load, 6) == 0.3, "cores n", (8.0, 16.0)),
        (lambda r: r.cores == 8 and round(r.load, 6) == 0.3, "policy", (0.0, 1.0)),
    ],
)
def test_what_varies_is_the_axis(comparison, chosen, title, places):
    """Load if only that varies, cores if only they do, policies side by side in a single setting."""
    kept = Comparison(tuple(result for result in comparison.results if chosen(result)))
    (panel,) = plots.comparison_figure(kept).panels
    assert panel.x.title == title
    assert panel.series[0].x == pytest.approx(places)


def test_a_run_that_did_not_settle_is_marked(comparison):
    """An unstable run has no cost to be compared: it is no point of its curve, but a mark that says so."""
    first, *others = comparison.results
    broken = replace(first, stable=False)
    figure = plots.comparison_figure(Comparison((broken, *others)))
    (mark,) = [mark for panel in figure.panels for mark in panel.marks]
    assert mark == (first.cores, first.cost.mean, f"{first.policy} unstable")
    assert (first.cores, first.cost.mean) not in points(figure)[f"load {first.load:.4g}", first.policy]


@pytest.mark.parametrize("kind", ["result", "comparison"])
def test_they_can_be_drawn(kind, result, comparison):
    """Both become files and an interactive figure."""
    figure = plots.result_figure(result) if kind == "result" else plots.comparison_figure(comparison)
    assert plots.draw_files(figure)["png"].startswith(b"\x89PNG")
    assert plots.interactive(figure)["data"]
