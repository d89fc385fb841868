"""How figures look, whatever they are drawn with: colours, ticks, rows of panels; and what they depend on."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from malleable import plots
from malleable.errors import ExecutionError
from malleable.plots import _layout, _style
from malleable.plots.figures import Axis, Figure, Grid, Panel, Series
from support import paper_samples as samples
from support.figures import one_panel, printed

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
    """A colour in CIELAB, as the eye sees it."""
    rgb = np.array([int(colour[i : i + 2], 16) / 255.0 for i in (1, 3, 5)])
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    linear = np.clip(np.array(blindness) @ linear, 0.0, 1.0)
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    xyz = to_xyz @ linear / np.array([0.9505, 1.0, 1.089])
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16.0 / 116.0)
    return np.array([116.0 * f[1] - 16.0, 500.0 * (f[0] - f[1]), 200.0 * (f[1] - f[2])])


@pytest.mark.parametrize("blindness", BLINDNESS)
def test_colours_can_be_told_apart(blindness):
    """The first six colours differ to all eyes, and all stand out from white and from a dark page."""
    seen = [lab(colour, BLINDNESS[blindness]) for colour in _style.PALETTE]
    assert min(np.linalg.norm(a - b) for a, b in combinations(seen[:6], 2)) > 10.0
    for page in ("#FFFFFF", "#14171A"):
        assert min(abs(a[0] - lab(page, BLINDNESS[blindness])[0]) for a in seen) > 20.0


def test_same_name_same_colour():
    """A series keeps its colour from panel to panel; a number that is asked for is given to no other."""
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
