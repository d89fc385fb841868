"""A real browser for pages, and the screens to look at them on."""

from __future__ import annotations

import os
import shutil
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
DESK = {"viewport": {"width": 1280, "height": 900}}
PHONE = {
    "viewport": {"width": 390, "height": 844},
    "device_scale_factor": 2,
    "is_mobile": True,
    "has_touch": True,
}
PATIENCE = 120_000
"""Milliseconds; a busy machine may need many."""
KEPT = os.environ.get("MALLEABLE_SCREENSHOTS")
"""A folder to keep pictures of pages in, for people to look at."""


@contextmanager
def chromium():
    """A Chromium without a window; where there is none, the test is skipped."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        pytest.skip("there is no chromium on this machine")
    with playwright.sync_playwright() as driver:
        running = driver.chromium.launch(executable_path=path)
        yield running
        running.close()


class Visit:
    """A page opened on some screen, with all that it said and asked for."""

    def __init__(self, browser, page: Path, **screen) -> None:
        self.context = browser.new_context(**screen)
        self.context.set_default_timeout(PATIENCE)
        self.page = self.context.new_page()
        self.said, self.asked = [], []
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.goto(page.as_uri())
        if screen.get("java_script_enabled", True):
            self.wait()

    def wait(self) -> None:
        """Until every plot is drawn."""
        for _ in range(600):
            plots = self.page.evaluate("window.malleablePlots")
            if plots["drawn"] + plots["failed"] == plots["total"]:
                return
            time.sleep(0.1)
        pytest.fail(f"not all plots were drawn: {plots}")

    def shown(self, selector: str) -> list[tuple[float, float]]:
        """Sizes of all elements; 0 × 0 if one is not to be seen."""
        boxes = f"[...document.querySelectorAll('{selector}')].map(e => e.getBoundingClientRect())"
        return [(box["width"], box["height"]) for box in self.page.evaluate(f"{boxes}.map(b => b.toJSON())")]
