"""Figures: every style on paper and on the page, readable, true to the numbers, the same every time."""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import subprocess
import sys
from dataclasses import replace
from itertools import combinations, pairwise
from pathlib import Path
from xml.etree import ElementTree as ET

import matplotlib as mpl
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from malleable import plots
from malleable.errors import ExecutionError
from malleable.plots import _layout, _paper, _screen_panel, _style
from malleable.plots.figures import Axis, Figure, Grid, Panel, Series
from support import paper_samples as samples

TESTS = Path(__file__).parents[1]
SEEN = {"svg": b"<?xml", "png": b"\x89PNG", "pdf": b"%PDF"}


def one_panel(*series: Series, x: Axis | None = None, y: Axis | None = None, **more) -> Figure:
    return Figure("f", "F", "", (Panel(x or Axis("x"), y or Axis("y"), series, **more),))


@pytest.fixture(scope="module")
def screens():
    """All samples for the page."""
    return {figure.name: plots.interactive(figure) for figure in samples.FIGURES}


# --- on paper ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("figure", samples.FIGURES, ids=lambda f: f.name)
def test_files(figure):
    """Every sample becomes an SVG, a PNG and a PDF, without a date."""
    files = plots.draw_files(figure)
    assert set(files) == set(SEEN)
    for suffix, content in files.items():
        assert content.startswith(SEEN[suffix])
        assert b"CreationDate" not in content
        assert b"dc:date" not in content
    width, height = (int.from_bytes(files["png"][i : i + 4], "big") for i in (16, 20))
    assert width >= 1000
    assert height >= 500
    root = ET.fromstring(files["svg"])
    assert root.tag.endswith("svg")


def printed(code: str, **environment: str) -> list[str]:
    """The words that another process prints."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd=TESTS,
        env={**os.environ, **environment},
    )
    return done.stdout.split()


def embedded(title):
    """Names of the fonts in the PDF of a figure with this title."""
    figure = replace(one_panel(Series("s", (0.0, 1.0), (0.0, 1.0))), title=title)
    content = plots.draw_files(figure)["pdf"]
    assert b"/Type3" not in content
    return {name.decode() for name in re.findall(rb"/FontName /\w+\+([\w-]+)", content)}


def test_fonts_of_a_pdf():
    """Letters are TrueType, as journals want them, from the small font; rare ones come from the large."""
    usual = {"MalleableSans", "MalleableSans-Bold"}
    assert embedded("Cost c·μ of n → ∞ cores, α ≤ ½, k₀², “β”") == usual
    assert embedded("Tifinagh ⴰ") == usual | {"DejaVuSans-Bold"}


def test_no_fonts_are_left_behind(tmp_path):
    """The small font is a file as long as the process lives, and no longer."""
    code = (
        "from malleable.plots import _fonts, prepare; prepare();"
        "from pathlib import Path; print(len(list(Path(_fonts._folder().name).glob('*.ttf'))))"
    )
    assert printed(code, TMPDIR=str(tmp_path)) == ["2"]
    assert not list(tmp_path.glob("malleable-fonts-*"))


def test_same_bytes():
    """Drawing the same figure again gives the same bytes, in another process too."""
    files = plots.draw_files(samples.BARS)
    assert plots.draw_files(samples.BARS) == files
    code = (
        "import hashlib; from support import paper_samples as s; from malleable import plots; "
        "f = plots.draw_files(s.BARS); "
        "print(*(hashlib.sha256(f[k]).hexdigest() for k in sorted(f)))"
    )
    assert printed(code) == [hashlib.sha256(files[k]).hexdigest() for k in sorted(files)]


@pytest.mark.parametrize("figure", samples.FIGURES, ids=lambda f: f.name)
def test_legend_covers_nothing(figure):
    """The legend stands within the paper and below all panels with their axes."""
    with mpl.rc_context(_paper.SETTINGS):
        drawing = _paper._drawing(figure)
        renderer = drawing.canvas.get_renderer()
        paper = drawing.bbox
        panels = [axes.get_tightbbox(renderer) for axes in drawing.axes]
        for legend in drawing.legends:
            box = legend.get_window_extent(renderer)
            assert paper.x0 <= box.x0
            assert box.x1 <= paper.x1
            assert box.y0 >= paper.y0
            assert all(box.y1 <= panel.y0 + 1.0 for panel in panels)
        assert drawing.legends


def test_marks_are_on_paper():
    """Marked points and their texts are drawn within the paper, those without a height at the upper rim."""
    with mpl.rc_context(_paper.SETTINGS):
        drawing = _paper._drawing(samples.MANY)
        renderer, axes = drawing.canvas.get_renderer(), drawing.axes[0]
        texts = {text.get_text().replace("\n", " "): text for text in axes.texts}
        for _, _, text in samples.MANY.panels[0].marks:
            box = texts[text].get_window_extent(renderer)
            assert drawing.bbox.x0 <= box.x0 < box.x1 <= drawing.bbox.x1
            assert drawing.bbox.y0 <= box.y0 < box.y1 <= drawing.bbox.y1
        crosses = [line for line in axes.lines if line.get_marker() == "X"]
        assert len(crosses) == 2
        rim = crosses[1].get_window_extent(renderer)
        assert rim.y0 > axes.get_window_extent(renderer).y0 + 0.9 * axes.get_window_extent(renderer).height


def test_panel_grows_with_its_marks():
    """A mark beyond the data is within the panel, on paper as on the page."""
    marked = one_panel(
        Series("a", (1.0, 2.0), (1.0, 2.0)), marks=((5.0, 40.0, "far"), (1.0, samples.NAN, "rim"))
    )
    with mpl.rc_context(_paper.SETTINGS):
        axes = _paper._drawing(marked).axes[0]
    assert axes.get_xlim()[1] >= 5.0
    assert axes.get_ylim()[1] >= 40.0


def test_paper_shows_the_numbers():
    """What matplotlib was given to draw are the numbers of the series, with gaps where there are none."""
    with mpl.rc_context(_paper.SETTINGS):
        axes = _paper._drawing(samples.STYLES).axes[2]
    line = axes.lines[0]
    assert line.get_xdata().tolist() == list(samples.CORES)
    np.testing.assert_array_equal(line.get_ydata(), samples.STYLES.panels[2].series[0].y)
    assert math.isnan(line.get_ydata()[3])


# --- on the page ------------------------------------------------------------------------------------------


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


# --- looks ------------------------------------------------------------------------------------------------

BLINDNESS = {
    "none": np.eye(3),
    "protanopia": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.01182, 0.04294, 0.968881],
    ],
    "tritanopia": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.3039],
    ],
}
"""What a colour looks like to people who lack a kind of cone: Machado, Oliveira and Fernandes (2009)."""


def lab(colour: str, blindness) -> np.ndarray:
    """A colour in CIELAB, as somebody sees it."""
    rgb = np.array([int(colour[i : i + 2], 16) / 255.0 for i in (1, 3, 5)])
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    linear = np.clip(np.array(blindness) @ linear, 0.0, 1.0)
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    xyz = to_xyz @ linear / np.array([0.9505, 1.0, 1.089])
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16.0 / 116.0)
    return np.array([116.0 * f[1] - 16.0, 500.0 * (f[0] - f[1]), 200.0 * (f[1] - f[2])])


@pytest.mark.parametrize("blindness", BLINDNESS)
def test_colours_can_be_told_apart(blindness):
    """The first six colours differ for everybody, and all stand out from white and from a dark page."""
    seen = [lab(colour, BLINDNESS[blindness]) for colour in _style.PALETTE]
    assert min(np.linalg.norm(a - b) for a, b in combinations(seen[:6], 2)) > 10.0
    for page in ("#FFFFFF", "#14171A"):
        assert min(abs(a[0] - lab(page, BLINDNESS[blindness])[0]) for a in seen) > 20.0


def test_same_name_same_colour():
    """A series keeps its colour from panel to panel; a number that is asked for is given to nobody else."""
    panels = (
        Panel(Axis("x"), Axis("y"), (Series("b", (0,), (0,), colour=0), Series("a", (0,), (0,)))),
        Panel(Axis("x"), Axis("y"), (Series("a", (0,), (0,)), Series("c", (0,), (0,)))),
    )
    looks = _style.looks(Figure("f", "F", "", panels))
    assert [looks[name].colour for name in "bac"] == list(_style.PALETTE[:3])


def test_many_series_differ():
    """Twice as many series as colours still differ in dash or colour."""
    looks = [_style.look(number) for number in range(16)]
    assert len({(look.colour, look.second) for look in looks}) == 16


@pytest.mark.parametrize(
    ("values", "wanted"),
    [
        (samples.CORES, ["4", "8", "16", "32", "64", "128", "256", "512"]),
        ((16, 64), ["16", "64"]),
        ((16, 64, 256, 2048), ["16", "64", "256", "2048"]),
        ((0.3, 40.0), ["0.5", "1", "2", "5", "10", "20"]),
        ((0.16, 0.66), ["0.2", "0.3", "0.4", "0.5", "0.6"]),
        ((16, 32, 2**50), ["1000", "10⁵", "10⁷", "10⁹", "10¹¹", "10¹³", "10¹⁵"]),
        ((1e-9, 1.0), ["10⁻⁹", "10⁻⁸", "10⁻⁷", "10⁻⁶", "10⁻⁵", "10⁻⁴", "0.001", "0.01", "0.1", "1"][::2]),
        ((1e-16, 1e-13), ["10⁻¹⁶", "10⁻¹⁵", "10⁻¹⁴", "10⁻¹³"]),
        ((1.02, 1.31), ["1.05", "1.1", "1.15", "1.2", "1.25", "1.3"]),
    ],
)
def test_log_ticks(values, wanted):
    """Log scales have round numbers, and those of the data if they are powers of two; never too many."""
    panel = Panel(Axis("x", "log"), Axis("y"), (Series("a", values, values),))
    made = _layout.ticks(panel, "x")
    assert [text for _, text in made] == wanted
    assert _layout.ticks(panel, "y") is None


@given(
    low=st.floats(1e-200, 1e200),
    ratio=st.floats(1.05, 1e40),
    which=st.sampled_from("xy"),
    middle=st.floats(0, 1),
)
def test_log_ticks_anywhere(low, ratio, which, middle):
    """Any log scale has at least one tick and not too many, in order and within it."""
    values = (low, low * ratio**middle, low * ratio)
    made = _layout.ticks(Panel(Axis("x", "log"), Axis("y", "log"), (Series("a", values, values),)), which)
    places = [place for place, _ in made]
    assert 1 <= len(places) <= 16
    assert all(a < b for a, b in pairwise(places))
    assert 0.99 * low <= places[0] <= places[-1] <= 1.01 * low * ratio


def test_numbers_in_cells():
    """Numbers in a grid have the same decimals; a fine grid has none."""
    assert _layout.written(Grid((1, 2), (1,), ((1.5, 0.25),))) == [["1.50", "0.25"]]
    assert _layout.written(Grid((1, 2), (1,), ((1500.0, samples.NAN),))) == [["1500", ""]]
    assert _layout.written(Grid((1, 2), (1,), ((5.0, -1e-9),))) == [["5.00", "0.00"]]
    many = tuple(range(50))
    assert _layout.written(Grid(many, (1,), (many,))) is None


# --- what it depends on -----------------------------------------------------------------------------------


def test_digest_follows_the_figure():
    """A digest stays with the same figure and changes with a number in it."""
    line = Series("a", (1.0, 2.0), (1.0, 2.0))
    assert plots.digest(one_panel(line)) == plots.digest(one_panel(line))
    assert plots.digest(one_panel(line)) != plots.digest(one_panel(Series("a", (1.0, 2.0), (1.0, 2.5))))


def test_missing_libraries(monkeypatch):
    """Without matplotlib the error says what to install."""
    monkeypatch.setattr(
        plots.importlib.util, "find_spec", lambda name: None if name == "matplotlib" else object()
    )
    with pytest.raises(ExecutionError, match="matplotlib") as caught:
        plots.draw_files(samples.BARS)
    assert "malleable[paper]" in caught.value.hint


def test_light_import():
    """Importing the module and the command line loads neither matplotlib nor plotly nor jinja2."""
    code = "import sys, malleable.plots, malleable.cli; print(*sys.modules)"
    assert not {"matplotlib", "plotly", "jinja2"} & set(printed(code))


def test_panels_without_data_are_left_out():
    """A panel whose points are all missing takes no room; a figure of such panels keeps them."""
    nan = float("nan")
    full = Panel(Axis("x"), Axis("y"), (Series("a", (1.0, 2.0), (1.0, 2.0)),))
    empty = Panel(Axis("x", "log"), Axis("y", "log"), (Series("a", (1.0, 2.0), (nan, nan)),))
    figure = Figure("two", "Two", "", (empty, full))
    assert _layout.with_data(figure).panels == (full,)
    assert _layout.with_data(replace(figure, panels=(empty,))).panels == (empty,)
    assert plots.draw_files(figure) == plots.draw_files(replace(figure, panels=(full,)))


def test_many_names_get_a_row():
    """Panels with more than ten names on their axis stand one below another, on paper and page, and slant."""
    for count, wide, degrees in ((10, 3, 40), (11, 1, 65)):
        names = tuple(f"policy {i}" for i in range(count))
        panel = Panel(
            Axis("", categories=names),
            Axis("y"),
            (Series("s", tuple(map(float, range(count))), (1.0,) * count),),
        )
        figure = Figure("f", "F", "", (panel,) * 3)
        assert [len(row) for row in _layout.rows(figure)] == [wide] * (3 // wide)
        assert plots.interactive(figure)["layout"]["xaxis"]["tickangle"] == -degrees
