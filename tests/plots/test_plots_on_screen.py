"""Figures on the page: every style, with the numbers of the figure, in panels that do not overlap."""

from __future__ import annotations

import json
import math
from itertools import combinations, pairwise

import matplotlib as mpl
import numpy as np
import pytest

from malleable import plots
from malleable.plots import _paper, _screen_panel, _style
from malleable.plots.figures import Axis, Figure, Panel, Series
from support import paper_samples as samples
from support.figures import one_panel


@pytest.fixture(scope="module")
def screens():
    """All samples for the page."""
    return {figure.name: plots.interactive(figure) for figure in samples.FIGURES}


def test_screen_is_json(screens):
    """Figures for the page are strict JSON, without Python's NaN."""
    for made in screens.values():
        assert json.loads(json.dumps(made, allow_nan=False)) == made


def drawn(made, name):
    """The traces of a series, without its band."""
    return [t for t in made["data"] if t.get("name") == name and t.get("fill") is None]


def test_screen_shows_the_numbers(screens):
    """Every series is there with its numbers; points that do not exist are gaps."""
    for figure in samples.FIGURES[:3]:
        for panel in figure.panels:
            for one in panel.series:
                found = [trace["y"] for trace in drawn(screens[figure.name], one.name)]
                wanted = [None if math.isnan(y) else pytest.approx(y, rel=1e-7) for y in one.y]
                assert wanted in found


def test_styles(screens):
    """Each style looks like what it is called."""
    made = screens["styles"]
    look = {name: drawn(made, name)[0] for name in ("line", "dashed", "dotted", "paths", "both", "points")}
    assert look["line"]["mode"] == "lines"
    assert look["line"]["line"]["dash"] == "solid"
    assert look["dashed"]["line"]["dash"] == "dash"
    assert look["dotted"]["line"]["dash"] == "dot"
    assert look["paths"]["line"]["width"] < look["line"]["line"]["width"]
    assert look["both"]["mode"] == "lines+markers"
    assert look["points"]["mode"] == "markers"
    assert look["points"]["error_y"]["array"][0] == pytest.approx(0.045)
    assert drawn(screens["bars"], "class 1")[0]["type"] == "bar"


def test_bands_stop_at_gaps():
    """A band is an area for each stretch of the line, and none where there is no interval."""
    low, high = (0.5, samples.NAN, 1.5, 1.6), (1.5, samples.NAN, 2.5, 2.6)
    made = plots.interactive(one_panel(Series("a", (1, 2, 3, 4), (1, samples.NAN, 2, 2.1), low, high)))
    band = next(trace for trace in made["data"] if trace.get("fill") == "toself")
    assert band["x"] == [1, 1, None, 3, 4, 4, 3, None]
    assert band["y"] == [0.5, 1.5, None, 1.5, 1.6, 2.6, 2.5, None]


def test_lonely_points_are_seen():
    """A point of a line between two gaps is drawn as a point; others are not."""
    one = Series("a", (1, 2, 3, 4, 5), (1.0, samples.NAN, 2.0, samples.NAN, 3.0), style="dashed")
    whole = Series("b", (1, 2), (1.0, 2.0))
    first, second = plots.interactive(one_panel(one, whole))["data"]
    assert first["mode"] == "lines+markers"
    assert first["marker"]["size"] == [8, 0, 8, 0, 8]
    assert second["mode"] == "lines"
    with mpl.rc_context(_paper.SETTINGS):
        lines = _paper._drawing(one_panel(one, whole)).axes[0].lines
    assert [line.get_marker() for line in lines] == ["o", "None", "None"]
    assert np.isfinite(lines[0].get_ydata()).sum() == 3


def test_band_on_a_log_scale():
    """An interval that reaches down to 0 or below does not tear the band on a log scale."""
    one = Series("a", (1.0, 2.0), (0.1, 0.2), (-0.1, 0.0), (0.3, 0.4))
    band = plots.interactive(one_panel(one, y=Axis("y", "log")))["data"][0]
    assert band["fill"] == "toself"
    assert min(value for value in band["y"] if value is not None) > 0.0
    assert plots.draw_files(one_panel(one, y=Axis("y", "log")))["svg"]


def test_ends_of_axes():
    """Ends that are given hold, on log scales too, and one of them may be open."""
    line = Series("a", (1.0, 100.0), (3.0, 4.0))
    made = plots.interactive(one_panel(line, x=Axis("x", "log", 1.0, 1000.0), y=Axis("y", low=0.0)))["layout"]
    assert made["xaxis"]["range"] == [0.0, 3.0]
    assert made["yaxis"]["autorangeoptions"]["minallowed"] == 0.0
    with mpl.rc_context(_paper.SETTINGS):
        drawing = _paper._drawing(one_panel(line, x=Axis("x", "log", 1.0, 1000.0), y=Axis("y", low=0.0)))
    assert drawing.axes[0].get_xlim() == (1.0, 1000.0)
    assert drawing.axes[0].get_ylim()[0] == 0.0


def test_bars_stand_side_by_side(screens):
    """Bars of several series do not overlap, and stand around their position."""
    bars = sorted(
        (trace["x"][2] + trace["offset"][2], trace["x"][2] + trace["offset"][2] + trace["width"][2])
        for trace in screens["bars"]["data"]
        if trace["type"] == "bar"
    )
    assert len(bars) == 3
    assert all(a[1] <= b[0] + 1e-6 for a, b in pairwise(bars))
    assert bars[0][0] + bars[-1][1] == pytest.approx(4.0)


def test_heat(screens):
    """Cells lie around their centres, on log scales too; colours part at the middle; no number, no colour."""
    made = screens["heat"]
    first, second = (trace for trace in made["data"] if trace["type"] == "heatmap")
    borders = np.array(first["x"])
    assert np.sqrt(borders[1:] * borders[:-1]) == pytest.approx(samples.CORES, rel=1e-6)
    assert first["z"][3][0] is None
    colours = made["layout"]["coloraxis"]
    assert (colours["cmin"] + colours["cmax"]) / 2.0 == pytest.approx(1.0)
    assert colours["colorscale"][3] == [0.5, _style.DIVERGING[3]]
    assert made["layout"]["coloraxis2"]["cmax"] == 2.0
    assert len(first["text"][0]) == len(samples.CORES)
    assert second.get("text") is None


def test_marks(screens):
    """Marks stand beside their points; the same text three times or more stands in the legend, once."""
    beside = [t for t in screens["many-lines"]["data"] if t.get("mode") == "markers+text"]
    assert [t["hovertext"][0] for t in beside] == [text for *_, text in samples.MANY.panels[0].marks]
    assert [t["textposition"][0] for t in beside] == ["bottom right", "bottom left"]
    assert beside[1]["y"][0] == pytest.approx(samples.MANY.panels[0].series[-1].high[0])
    told = [t for t in screens["styles"]["data"] if t.get("name") == "infeasible"]
    assert len(told) == 1
    assert told[0]["showlegend"]
    assert len(told[0]["x"]) == 3


def test_legend_names_each_once(screens):
    """A name stands in the legend once, however many panels and lines have it."""
    for figure in samples.FIGURES:
        names = [t["name"] for t in screens[figure.name]["data"] if t.get("showlegend")]
        assert len(names) == len(set(names))
        assert {_screen_panel.in_lines(s.name) for p in figure.panels for s in p.series} <= set(names)


def test_texts_are_shown_as_they_are(screens):
    """No text of a figure is read as markup, nor as a template of plotly."""
    text = json.dumps(screens["odd"])
    assert "<script>" not in text
    assert "</td>" not in text
    assert "%{x}" not in text
    assert screens["odd"]["data"][0]["name"].startswith("a &lt;script&gt;")


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 6, 7])
def test_arrangements(count):
    """Panels lie within the drawing and do not overlap; on a narrow screen they stand one above another."""
    panel = Panel(Axis("x"), Axis("y"), (Series("a", (0.0, 1.0), (0.0, 1.0)),))
    figure = Figure("f", "F", "", (panel,) * count)
    meta = plots.interactive(figure)["layout"]["meta"]
    for screen in ("wide", "narrow"):
        tails = ["", *(str(i) for i in range(2, count + 1))]
        places = [(meta[screen][f"xaxis{t}.domain"], meta[screen][f"yaxis{t}.domain"]) for t in tails]
        for (a, b), (c, d) in places:
            assert -1e-9 <= a < b <= 1.0 + 1e-9
            assert -1e-9 <= c < d <= 1.0 + 1e-9
        for (x, y), (u, v) in combinations(places, 2):
            assert min(x[1], u[1]) <= max(x[0], u[0]) or min(y[1], v[1]) <= max(y[0], v[0])
    assert len({tuple(meta["narrow"][f"xaxis{t}.domain"]) for t in tails}) == 1
