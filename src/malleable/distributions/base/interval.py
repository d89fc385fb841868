"""What laws on an interval share: the check that its ends are in order."""

from __future__ import annotations

from malleable.errors import ParameterError


def check_ends(low: float, high: float) -> None:
    """Refuse an interval that is empty or a single point."""
    if high <= low:
        raise ParameterError(
            f"must be greater than low ({low:g}), got {high:g}",
            "for a single value use the kind deterministic",
            ("high",),
        )
