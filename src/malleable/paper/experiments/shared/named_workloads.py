"""Workloads that several experiments have in common, as documents."""

from __future__ import annotations

from typing import Any

from malleable.paper.experiments.shared.random_classes import balanced_hyperexponential


def job_class(
    name: str, size: dict[str, Any], speedup: dict[str, Any], cost: float, rate: float = 1.0
) -> dict[str, Any]:
    """A class with Poisson arrivals."""
    arrivals = {"kind": "poisson", "rate": rate}
    return {"name": name, "arrivals": arrivals, "size": size, "speedup": speedup, "holding_cost": cost}


def sizes_of(kind: str, mean: float, share: float = 0.9, sigma: float = 1.0) -> dict[str, Any]:
    """A law of sizes by its kind and mean."""
    if kind == "hyperexponential":
        return balanced_hyperexponential(mean, share)
    if kind == "lognormal":
        return {"kind": kind, "mean": mean, "sigma": sigma}
    return {"kind": kind, "value" if kind == "deterministic" else "mean": mean}


def four_classes(name: str, kind: str, costs: tuple[float, ...]) -> dict[str, Any]:
    """Two power and two Amdahl classes of mean size about 1."""
    means = (1.0, 0.6, 1.5, 0.9)
    speedups = (
        {"kind": "power", "exponent": 0.4},
        {"kind": "power", "exponent": 0.8},
        {"kind": "amdahl", "sequential": 0.1},
        {"kind": "amdahl", "sequential": 0.3},
    )
    rows = zip("abcd", means, speedups, costs, strict=True)
    return {
        "name": name,
        "classes": [job_class(c, sizes_of(kind, mean), s, cost) for c, mean, s, cost in rows],
    }


def short_and_long(exponent: float = 0.8, ratio: float = 10.0) -> dict[str, Any]:
    """Two classes alike in all but size, each with half of the load."""
    speedup = {"kind": "power", "exponent": exponent}
    rows = (("short", 1.0 / ratio), ("long", 1.0))
    classes = [
        job_class(name, sizes_of("exponential", mean), speedup, 1.0, 1.0 / mean) for name, mean in rows
    ]
    return {"name": "short and long jobs", "classes": classes}
