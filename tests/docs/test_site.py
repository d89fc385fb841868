"""The documentation as a site: made strictly, opened from disk, searched, without network."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from support.browser import PATIENCE, chromium

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site, made with broken links as errors."""
    pytest.importorskip("mkdocs", reason="mkdocs-material is not installed")
    folder = tmp_path_factory.mktemp("site")
    line = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    done = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return folder


def test_every_page_is_there(site):
    """Each page of docs/, CONTRIBUTING and CHANGELOG is a page of the site."""
    wanted = [page.relative_to(ROOT / "docs") for page in (ROOT / "docs").rglob("*.md")]
    for page in [*wanted, Path("CONTRIBUTING.md"), Path("CHANGELOG.md")]:
        assert (site / page.with_suffix(".html")).is_file(), page


def test_nothing_is_fetched_from_elsewhere(site):
    """No page loads a script, a style, a font or a picture from another host."""
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        for word in ('src="http', 'rel="stylesheet" href="http', "unpkg.com", "fonts.g"):
            assert word not in text, f"{page.name}: {word}"


def test_search_works_from_disk(site):
    """Typing a word finds pages that have it, on a page opened as a file, without requests or complaints."""
    with chromium() as browser:
        page = browser.new_page()
        complaints, asked = [], []
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        page.goto((site / "how-to" / "keep-results.html").as_uri())
        page.locator("label.md-search__icon").first.wait_for(state="attached")
        page.locator("input.md-search__input").focus()
        page.wait_for_timeout(300)  # the search opens with a transition
        page.keyboard.type("Whittle", delay=20)
        page.wait_for_selector(".md-search-result__item", timeout=PATIENCE)
        assert page.locator(".md-search-result__item").count() > 1
    assert complaints == []
    assert [url for url in asked if not url.startswith("file:")] == []
