"""Counts that callers give. The catalog, which checks them, is loaded for those that may be wrong."""

from __future__ import annotations

from typing import Any


def count(name: str, value: Any) -> int:
    """A whole number of at least 1."""
    if type(value) is int and value >= 1:
        return value
    from malleable.catalog.spec import whole_number  # noqa: PLC0415 - a third of what an Executor loads

    return whole_number(name, value, 1)
