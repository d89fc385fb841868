"""What figures and verdicts of e13_tails both read from the values of its cells."""

from __future__ import annotations

from typing import Any

from malleable.paper.contracts import failed

CLASSES = ("class-1", "class-2", "class-3")
LEVELS = ("median", "95 %", "99 %")


def is_stable(found: Any) -> bool:
    """Whether a policy kept up with the jobs."""
    return not failed(found) and bool(found["result"]["stable"])
