"""The page at a real broker, in a real browser: it shows what runs, and cancels it with the token."""

from __future__ import annotations

import re

import pytest

from malleable.live.broker.http_client import BrokerClient
from support.broker_server import serve_process
from support.browser import PATIENCE, chromium
from support.living import wait_until


@pytest.fixture
def browser():
    with chromium() as running:
        yield running


def test_the_page_shows_a_real_broker(browser):
    """A program appears, with the token its command, too; nothing is complained of or fetched elsewhere."""
    with serve_process("--port", "0") as broker, BrokerClient(broker.path) as client:
        address = re.search(r"http://\S+/", broker.line)[0]
        page = browser.new_page()
        page.set_default_timeout(PATIENCE)
        said, asked = [], []
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(address)
        page.wait_for_selector("#connection[data-state=live]")
        job = client.submit({"command": ["sleep", "600"], "folder": "/", "class": "shown"})
        page.get_by_text("shown").first.wait_for()
        assert page.get_by_text("sleep 600").count() == 0
        wait_until(lambda: client.job(job)["state"] == "running")
        assert said == []
        assert all(url.startswith((address, "data:")) for url in asked), asked
        page.locator("button.open").first.click()
        form = page.locator("tr.detail form")
        assert not form.is_visible()
        page.locator("#access-summary").click()
        page.fill("#token", (broker.home / "token").read_text())
        page.get_by_role("button", name="Use it").click()
        page.get_by_text("sleep 600").first.wait_for()
        for _ in ("is meant", "is sure"):
            form.get_by_role("button", name="Cancel").click()
        wait_until(lambda: client.job(job)["state"] == "cancelled")
        page.locator("#ended").get_by_text("sleep 600").wait_for()
        page.locator("#access-summary").click()
        page.get_by_role("button", name="Forget the token").click()
        page.locator("#ended tr.job").wait_for()
        assert page.get_by_text("sleep 600").count() == 0
        page.close()
