"""What can go wrong with results."""

from __future__ import annotations

from malleable.errors import MalleableError


class ResultError(MalleableError, ValueError):
    """A result cannot be read, written, merged or compared."""
