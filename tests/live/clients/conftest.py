"""Clients under test join the broker of their own process."""

import pytest


@pytest.fixture(autouse=True)
def _alone(alone):
    pass
