"""How many random examples a property is tried on: few in the quick tests, many more in the slow ones."""

from __future__ import annotations

import os

TIMES = int(os.environ.get("MALLEABLE_EXAMPLES", "1"))
"""`make test-slow` tries all properties again on this many times the examples."""
QUICK, FEWEST = 0.4, 3
"""The share that the quick tests try, and at least how many."""


def examples(count: int) -> int:
    """The number of examples of a property: `count` of them in all but the quick tests, which try fewer."""
    return count * TIMES if TIMES > 1 else max(FEWEST, int(QUICK * count))
