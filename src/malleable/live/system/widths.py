"""What a width is: a number of cores that something may use, which may change while it runs."""

from __future__ import annotations

from typing import Any

from malleable.errors import ParameterError


def checked_width(width: Any) -> int:
    """A number of cores: a whole number, 0 for a pause."""
    if isinstance(width, bool) or not isinstance(width, int) or width < 0:
        raise ParameterError(f"a width must be a whole number of at least 0, got {width!r}", "0 is a pause")
    return width
