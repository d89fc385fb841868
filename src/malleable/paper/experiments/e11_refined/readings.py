"""What figures and verdicts of e11_refined both read from the values of its cells."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    Curves = Mapping[tuple[str, str], list[Any]]


def error(value: Mapping[str, Any], key: str = "refined") -> float:
    """By which share a prediction is off the exact cost."""
    return float(value[key] / value["exact"] - 1.0)
