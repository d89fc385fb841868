"""What figures and verdicts of e05_heavy_load both read from the values of its cells."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from malleable.results.class_result import read_interval

if TYPE_CHECKING:
    from malleable.paper.contracts import Values
    from malleable.statistics.intervals import Estimate
SHOWN = 1
"""Position of the k0 for which all policies are drawn."""


def shares_of(policy: str, n: int, load: float, values: Values) -> list[Estimate]:
    """Measured shares of jobs that are wider than each of the widths."""
    return [read_interval(one) for one in values[f"{policy}-{n}-{load:.6f}"]["shares"]]


def limits_of(values: Values) -> dict[tuple[float, float], Any]:
    """The bounds by load and width."""
    return {(row["load"], row["k0"]): row for row in values["bounds"]}
