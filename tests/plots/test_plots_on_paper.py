"""Figures on paper: every style becomes files, readable, true to the numbers, the same every time."""

from __future__ import annotations

import hashlib
import math
import re
from dataclasses import replace
from itertools import pairwise
from xml.etree import ElementTree as ET

import matplotlib as mpl
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from malleable import plots
from malleable.plots import _layout as layout
from malleable.plots import _paper
from malleable.plots.figures import Axis, Figure, Panel, Series
from support import paper_samples as samples
from support.figures import one_panel, printed

SEEN = {"svg": b"<?xml", "png": b"\x89PNG", "pdf": b"%PDF"}


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
        assert drawing.legends or layout.direct(figure)


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


@settings(max_examples=100)
@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=12), st.floats(0.01, 0.09))
def test_labels_stand_apart(places, apart):
    """Labels keep their order, stand apart, stay below the top, and do not move where there is room."""
    made = layout.spread(places, apart)
    order = sorted(range(len(places)), key=places.__getitem__)
    assert all(made[b] - made[a] >= apart - 1e-9 for a, b in pairwise(order))
    assert max(made) <= 1.0 + 1e-9
    if all(places[b] - places[a] >= apart for a, b in pairwise(order)):
        assert made == pytest.approx(places)


def test_curves_are_labelled_at_their_ends():
    """One panel of curves has the names beside them and no legend; several panels share a legend."""
    curves = tuple(Series(name, (1.0, 2.0), (1.0, y)) for name, y in (("up", 2.0), ("down", 0.5)))
    panel = Panel(Axis("x"), Axis("y"), curves)
    for panels, legend in (((panel,), False), ((panel, panel), True)):
        with mpl.rc_context():
            drawing = _paper._drawing(Figure("name", "title", "caption", panels))
        assert bool(drawing.legends) == legend
        words = {text.get_text() for axes in drawing.axes for text in axes.texts}
        assert ({"up", "down"} <= words) != legend
