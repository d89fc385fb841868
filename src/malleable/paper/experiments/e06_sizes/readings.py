"""What figures and verdicts of e06_sizes both read from the values of its cells."""

from __future__ import annotations

from typing import TYPE_CHECKING

from malleable.results.class_result import read_interval
from malleable.statistics.intervals import Estimate

if TYPE_CHECKING:
    from malleable.paper.contracts import Values
Ratios = list[tuple[int, Estimate]]
"""Numbers of cores, and the cost over WHAM's on them."""


def share_of(position: int, i: int, cores: tuple[int, ...], values: Values) -> list[Estimate]:
    """Shares of class i's work within NEAR[position] of k_i*."""
    index = position * len(values["predicted"]["names"]) + i
    return [read_interval(values[f"widths-{n}"]["shares"][index]) for n in cores]


def width_of(i: int, values: Values) -> float:
    """The width k_i* of a class."""
    return float(values["predicted"]["widths"][i])


def ratios_of(key: str, policy: str, cores: tuple[int, ...], values: Values) -> Ratios:
    """Cost over WHAM's, from paired differences."""
    found = []
    for n in cores:
        value = values[f"{key}-{n}"]
        base, d = value["results"]["wham"]["cost"]["mean"], read_interval(value["differences"][policy])
        found.append((n, Estimate(1.0 + d.mean / base, 1.0 + d.low / base, 1.0 + d.high / base)))
    return found
