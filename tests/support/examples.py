"""How many random examples a property is tried on: few in the quick tests, many more in the slow ones."""

from __future__ import annotations

import os

TIMES = int(os.environ.get("MALLEABLE_EXAMPLES", "1"))
"""`make test-slow` tries all properties again on this many times the examples."""


def examples(count: int) -> int:
    """The number of examples of a property that the quick tests try on `count`."""
    return count * TIMES
