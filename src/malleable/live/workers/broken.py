"""Errors of work that could not be done. They are Python's `BrokenProcessPool`, too.

Python's takes longer to load than the pool itself, so this is imported when there is such an error.
"""

from __future__ import annotations

from concurrent.futures.process import BrokenProcessPool

from malleable.errors import ExecutionError


class BrokenPoolError(ExecutionError, BrokenProcessPool):
    """A pool without workers: each one fails before its first unit."""


class BrokenUnitError(ExecutionError, BrokenProcessPool):
    """A unit whose worker died each time that it was run."""
