"""A real browser for pages, and the screens to look at them on."""

from __future__ import annotations

import os
import shutil
from contextlib import contextmanager

import pytest

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
