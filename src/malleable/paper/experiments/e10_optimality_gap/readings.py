"""What figures and verdicts of e10_optimality_gap both read from the values of its cells."""

from __future__ import annotations

from dataclasses import dataclass
from math import nan
from typing import TYPE_CHECKING, Any

from malleable.paper.contracts import Effort, failed
from malleable.paper.experiments.e10_optimality_gap.cells import WORKLOADS, key_of, simulated_settings

if TYPE_CHECKING:
    from collections.abc import Iterable

    from malleable.paper.contracts import Values
POLICIES = {
    "wham": ("WHAM", 0),
    "equi": ("EQUI", 2),
    "greedy": ("GREEDY", 3),
    "greedy:weight=cmu": ("GREEDY, w = cμ", 4),
    "wham-integer": ("WHAM on whole cores", 1),
    "wham-discounted": ("discounted WHAM", 5),
}
"""Names and colours."""
TRUNCATED = 1e-4
"""Share of arrivals that find the chain full above which a policy has no cost worth printing."""
EXACT = 1e-6
"""Relative error of the exact costs: what the truncation may leave."""


@dataclass(frozen=True)
class Point:
    """One setting: the optimum and the policies' distances from it."""

    name: str
    cores: int
    load: float
    value: Any

    @property
    def place(self) -> str:
        """The setting in words."""
        return f"{WORKLOADS[self.name][0]}, n = {self.cores}, ρ = {self.load:g}"

    def gap(self, policy: str) -> float:
        """By which share a policy's cost exceeds the optimum's; NaN where it is not known."""
        kind = "whole" if policy == "wham-integer" else "real"
        found = self.value.get(kind, {}).get("policies", {}).get(policy)
        if found is None or found["lost"] > TRUNCATED:
            return nan
        return float(found["cost"] / self.value[kind]["optimum"] - 1.0)


def runs(effort: Effort, values: Values, points: list[Point]) -> Iterable[tuple[Point, str, Any]]:
    """Every simulated policy with its exact setting."""
    known = {(p.name, p.cores, p.load): p for p in points}
    for setting in simulated_settings(effort):
        value = values[key_of("simulated", *setting)]
        if setting in known and not failed(value):
            for policy, result in value["results"].items():
                yield known[setting], policy, result


def among(points: Iterable[Point], name: str, load: float | None = None) -> list[Point]:
    """The points of a workload, at one load or at all."""
    return [p for p in points if p.name == name and (load is None or p.load == load)]


def excess(value: Any) -> list[list[float]]:
    """By how many cores the optimum's choice for the first class exceeds WHAM's, row by row."""
    pairs = zip(value["optimum"], value["wham"], strict=True)
    return [[a - b for a, b in zip(*rows, strict=True)] for rows in pairs]
