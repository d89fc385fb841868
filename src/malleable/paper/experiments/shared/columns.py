"""Columns of tables: estimates with the ends of their intervals, and parts below one another."""

from __future__ import annotations

from math import inf, nan
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from malleable.statistics.intervals import Estimate


def interval_columns(
    name: str, found: Iterable[Estimate], low: str = "low", high: str = "high"
) -> dict[str, tuple[float, ...]]:
    """Means and both ends of intervals, as columns with these names."""
    rows = list(map(ends, found))
    return {key: tuple(row[i] for row in rows) for i, key in enumerate((name, low, high))}


def ends(of: Estimate) -> tuple[float, float, float]:
    """A mean and both ends of its interval, NaN where there is none."""
    return of.mean, of.low if of.low > -inf else nan, of.high if of.high < inf else nan


def stacked(parts: Sequence[Mapping[str, tuple[Any, ...]]]) -> dict[str, tuple[Any, ...]]:
    """Tables of the same columns below one another."""
    return {key: tuple(value for part in parts for value in part[key]) for key in parts[0]}


def from_rows(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> dict[str, tuple[Any, ...]]:
    """Rows as columns with these names."""
    return dict(zip(names, zip(*rows, strict=True), strict=True))
