"""What figures and verdicts of e12_robustness both read from the values of its cells."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from malleable.paper.experiments.e12_robustness.cells import BLIND, SIMULATED_FACTORS, WHOLE, misled_key
from malleable.paper.experiments.e12_robustness.settings import (
    SCVS,
)
from malleable.results.class_result import read_interval
from malleable.statistics.intervals import Estimate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from malleable.paper.contracts import Values


def scvs(values: Values) -> list[float]:
    """Variabilities of arrivals that were simulated."""
    return [scv for scv in SCVS if f"arrivals-{scv}" in values]


def cost_of(found: Any, policy: str) -> Estimate:
    """The cost of a policy in a comparison."""
    return read_interval(found["results"][policy]["cost"])


def share_of(found: Any, policy: str) -> Estimate:
    """The paired difference from WHAM as a share of WHAM's cost."""
    ours = cost_of(found, "wham").mean
    d = read_interval(found["differences"][policy])
    return Estimate(*(v / ours for v in (d.mean, d.low, d.high)))


Small = tuple[str, str, Any, Estimate]
"""Kind of trouble, setting, cell's value, cost over WHAM's less 1."""


def troubles(values: Values) -> list[Small]:
    """The settings in which WHAM is compared with itself."""
    made: list[Small] = [
        ("wrong", named(f), values[misled_key(f)], share_of(values[misled_key(f)], "misled"))
        for f in SIMULATED_FACTORS
        if misled_key(f) in values
    ]
    for kind, key, policy, settings in (
        ("whole", "whole", "wham-integer", WHOLE),
        ("unknown", "blind", "blind", BLIND),
    ):
        made += [
            (kind, f"n = {n}, load {load:g}", found, share_of(found, policy))
            for n, load in settings
            if (found := values.get(f"{key}-{n}-{load}")) is not None
        ]
    return made


def named(factors: Sequence[float]) -> str:
    """Which parameters are believed too large (↑) or too small (↓)."""
    parts = zip(("p₁", "p₂", "q₃"), factors, strict=True)
    return " ".join(f"{name}{'↑' if f > 1.0 else '↓'}" for name, f in parts if f != 1.0)
