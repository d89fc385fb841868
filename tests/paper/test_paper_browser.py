"""The page in a real browser: opened from disk, on a desk, on a phone, in the dark and on paper."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path

import pytest

from malleable.paper.cell_store import CellStore
from malleable.paper.contracts import QUICK
from malleable.paper.write import publish
from support import paper_samples as samples
from support.browser import DESK, KEPT, PHONE, Visit, chromium

DARK = {**DESK, "color_scheme": "dark"}
SCREENS = {"desk": DESK, "phone": PHONE, "dark": DARK}


@pytest.fixture(scope="module")
def browser():
    with chromium() as running:
        yield running


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """A page with a figure of every style; another one may be given to look at."""
    if given := os.environ.get("MALLEABLE_PAGE"):
        return Path(given).resolve()
    with samples.one_format():
        return publish(samples.chapters(), QUICK, CellStore(tmp_path_factory.mktemp("page")))[0]


OURS = pytest.mark.skipif("MALLEABLE_PAGE" in os.environ, reason="another page is looked at")


@pytest.fixture(scope="module")
def visits(browser, page):
    """The page on each of the screens, opened when asked for; a test that changes something puts it back."""
    opened = {}

    def on(name):
        if name not in opened:
            opened[name] = Visit(browser, page, **SCREENS[name])
        return opened[name]

    yield on
    for one in opened.values():
        one.context.close()


@pytest.mark.parametrize("name", ["desk", "phone", pytest.param("dark", marks=pytest.mark.slow)])
def test_opens_from_disk(visits, tmp_path, name):
    """All plots are drawn, nothing is complained of, nothing is fetched, nothing sticks out at the side."""
    seen, screen = visits(name), SCREENS[name]
    assert seen.said == []
    assert {url.partition(":")[0] for url in seen.asked} <= {"file", "data", "blob"}
    assert len([url for url in seen.asked if url.startswith("file:")]) == 1

    plots = seen.page.evaluate("window.malleablePlots")
    assert plots["failed"] == 0
    assert plots["total"] == len(seen.shown(".plot")) > 0
    width = screen["viewport"]["width"]
    for across, down in seen.shown(".plot svg.main-svg"):
        assert 250.0 < across <= width
        assert down > 250.0
    assert all(size == (0.0, 0.0) for size in seen.shown(".static"))

    assert seen.page.evaluate("document.documentElement.scrollWidth") <= width
    folder = Path(KEPT) if KEPT else tmp_path
    folder.mkdir(parents=True, exist_ok=True)
    assert len(seen.page.screenshot(path=folder / f"{name}.png", full_page=True)) > 50_000


@OURS
def test_every_series_is_drawn(visits):
    """The plots hold as many lines, bars and maps as the figures have, and the texts of marks."""
    seen = visits("desk")
    for figure in samples.FIGURES:
        within = f"[data-figure={figure.name}]"
        lines = [one for panel in figure.panels for one in panel.series if one.style != "bars"]
        bands = [one for one in lines if one.low and one.style != "points"]
        marks = sum(len({text for *_, text in panel.marks}) for panel in figure.panels)
        assert len(seen.shown(f"{within} .scatterlayer .trace")) == len(lines) + len(bands) + marks
        bars = [y for panel in figure.panels for one in panel.series if one.style == "bars" for y in one.y]
        drawn = [size for size in seen.shown(f"{within} .barlayer .point path") if min(size) > 0.0]
        assert len(drawn) == len(bars)
        assert len(seen.shown(f"{within} .heatmaplayer image")) == sum(
            panel.grid is not None for panel in figure.panels
        )
    text = seen.page.evaluate("document.querySelector('[data-figure=many-lines]').textContent")
    assert "unstable" in text
    lines = seen.page.evaluate(
        "[...document.querySelectorAll('[data-figure=odd] .legendtext tspan')].map(e => e.textContent)"
    )
    assert " ".join(lines) == samples.NASTY


@pytest.mark.parametrize("name", ["desk", "phone"])
def test_legend_and_titles_stand_clear(visits, name):
    """Neither the legend nor a title of an axis lies upon a panel."""
    found = visits(name).page.evaluate(
        """[...document.querySelectorAll('.plot')].map(plot => {
            const boxes = which => [...plot.querySelectorAll(which)].map(e => e.getBoundingClientRect());
            const cut = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1
                && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 1;
            const panels = boxes('.nsewdrag'), others = boxes('.legend .bg, .xtitle, .x2title, .ytitle');
            const covered = panels.filter(a => others.some(b => cut(a, b))).length;
            return [plot.dataset.figure, panels.length, others.length, covered];
        })"""
    )
    assert found
    for figure, panels, others, covered in found:
        assert panels >= 1, figure
        assert others >= 2, figure
        assert covered == 0, figure


@OURS
def test_narrow_screens_stack_panels(visits):
    """Three panels stand side by side on a desk, one above another on a phone, and follow the width."""
    columns = """new Set([...document.querySelectorAll('[data-figure=styles] .nsewdrag')].map(
        e => Math.round(e.getBoundingClientRect().left))).size"""
    assert visits("phone").page.evaluate(columns) == 1
    page, found = visits("desk").page, (0, 0)
    for width, count in ((1280, 3), (390, 1), (1280, 3)):
        page.set_viewport_size({"width": width, "height": 900})
        for _ in range(100):
            found = page.evaluate(f"[{columns}, document.documentElement.scrollWidth]")
            if found == [count, width]:
                break
            time.sleep(0.1)
        assert found == [count, width]


def test_tables_scroll_in_their_box(visits):
    """A table that is wider than a phone scrolls within its box."""
    boxes = visits("phone").page.evaluate(
        """[...document.querySelectorAll('.scroll')].map(
            e => [e.clientWidth, e.scrollWidth, e.getBoundingClientRect().right])"""
    )
    assert boxes
    assert any(inner > outer for outer, inner, _ in boxes)
    assert all(right <= 390.0 for *_, right in boxes)


def test_on_paper(visits, tmp_path):
    """Printed, the page shows a picture of each figure instead of the plot, and no list of contents."""
    seen = visits("desk")
    folder = Path(KEPT) if KEPT else tmp_path
    printed = seen.page.pdf(path=folder / "print.pdf", format="A4")
    assert printed.startswith(b"%PDF")
    assert len(re.findall(rb"/Type\s*/Page\b", printed)) >= 2
    seen.page.emulate_media(media="print")
    assert all(size == (0.0, 0.0) for size in seen.shown(".plot"))
    assert all(min(size) > 100.0 for size in seen.shown(".static"))
    pictures = "[...document.querySelectorAll('.static')].map(e => e.complete && e.naturalWidth > 100)"
    assert all(seen.page.evaluate(pictures))
    assert seen.shown("nav") == [(0.0, 0.0)]
    seen.page.emulate_media(media="screen")


def test_without_scripts(browser, page):
    """A browser that runs no scripts shows the pictures."""
    seen = Visit(browser, page, **DESK, java_script_enabled=False)
    visible = seen.page.locator(".static").all()
    assert visible
    assert all(picture.is_visible() for picture in visible)
    assert not any(plot.is_visible() for plot in seen.page.locator(".plot").all())
    seen.context.close()
