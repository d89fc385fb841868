"""Clients under test join the broker of their own process, whatever runs on the machine."""

import pytest


@pytest.fixture(autouse=True)
def _alone(monkeypatch):
    monkeypatch.setenv("MALLEABLE_BROKER", "embedded")
