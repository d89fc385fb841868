"""What tests of live systems share."""

import pytest


@pytest.fixture
def alone(monkeypatch):
    """Clients join the broker of their own process, whatever runs on the machine."""
    monkeypatch.setenv("MALLEABLE_BROKER", "embedded")
