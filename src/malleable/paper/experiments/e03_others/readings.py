"""What figures and verdicts of e03_others both read from the values of its cells."""

from __future__ import annotations

from math import nan
from typing import TYPE_CHECKING

from malleable.paper.experiments.e03_others.cells import (
    POLICIES,
)
from malleable.paper.experiments.shared.curves import Curve
from malleable.results.class_result import read_interval

if TYPE_CHECKING:
    from malleable.paper.contracts import Values
    from malleable.statistics.intervals import Estimate
RIVALS = ("equi", "greedy")
SETTLED = 512
"""From this many cores on, a + b/n + c/n² is fitted: the next term is below 0.01 % there."""


def curve_of(policy: str, cores: tuple[int, ...], values: Values) -> Curve:
    """Simulated and exact costs of a policy."""
    results = tuple(values[f"compared-{n}"]["results"][policy] for n in cores)
    exact = (values.get(f"exact-{policy}-{n}") for n in cores)
    name, colour = POLICIES[policy]
    costs = tuple(read_interval(result["cost"]) for result in results)
    return Curve(name, cores, costs, results, tuple(e["cost"] if e else nan for e in exact), colour)


def differences_of(policy: str, cores: tuple[int, ...], values: Values) -> tuple[Estimate, ...]:
    """Differences of a policy's cost from WHAM's, on the same jobs."""
    return tuple(read_interval(values[f"compared-{n}"]["differences"][policy]) for n in cores)
