"""The paper's workload with other arrivals and other size laws of the same means, as workload documents."""

from __future__ import annotations

from math import log, sqrt
from typing import TYPE_CHECKING, Any

from malleable.contracts import Distribution, Policy
from malleable.model import Workload, paper_workload
from malleable.theory.meanfield import mean_field

if TYPE_CHECKING:
    from collections.abc import Mapping

SCVS = (0.0, 0.5, 1.0, 4.0)
"""Squared coefficients of variation of the times between arrivals; 1 is Poisson."""
SIZES: dict[str, dict[str, Any]] = {
    "lognormal": {"kind": "lognormal", "mean": 1.0, "sigma": sqrt(log(5.0))},
    "bounded Pareto": {"kind": "bounded_pareto", "shape": 1.5, "low": 1.0, "high": 1000.0},
}
"""Size laws, to be scaled to the mean of each class: SCV 4, and a tail of three decades (SCV 9.9)."""


def with_arrivals(scv: float) -> dict[str, Any]:
    """Renewal arrivals of the same rates with the given variability."""
    document = paper_workload().to_dict()
    for row, rate in zip(document["classes"], paper_workload().rates.tolist(), strict=True):
        row["arrivals"] = {"kind": "renewal", "interval": interval(scv, 1.0 / rate)}
    return {**document, "name": f"paper, arrivals of SCV {scv:g}"}


def interval(scv: float, mean: float) -> dict[str, Any]:
    """A law of that mean and SCV: constant, Erlang, exponential, or hyperexponential with balanced means."""
    if scv == 0.0:
        return {"kind": "deterministic", "value": mean}
    if scv < 1.0:
        return {"kind": "erlang", "stages": round(1.0 / scv), "mean": mean}
    if scv == 1.0:
        return {"kind": "exponential", "mean": mean}
    p = 0.5 * (1.0 + sqrt((scv - 1.0) / (scv + 1.0)))
    return {
        "kind": "hyperexponential",
        "probabilities": [p, 1.0 - p],
        "rates": [2.0 * p / mean, 2.0 * (1.0 - p) / mean],
    }


def with_sizes(name: str) -> dict[str, Any]:
    """The named size law for every class, scaled to the mean that the class has in the paper."""
    law = Distribution.of(SIZES[name])
    document = paper_workload().to_dict()
    for row, mean in zip(document["classes"], paper_workload().mean_sizes.tolist(), strict=True):
        row["size"] = law.scaled(mean / law.mean).to_dict()
    return {**document, "name": f"paper, {name} sizes"}


def predicted(workload: Mapping[str, Any], policies: list[str], cores: int, load: float) -> dict[str, Any]:
    """What the refined mean field says about policies on a workload, before any simulation."""
    made = Workload.from_dict(dict(workload)).at(cores, load)
    points = {policy: mean_field(made, cores, Policy.of(policy), starts=0) for policy in policies}
    return {
        policy: {"cost": p.refined.cost, "limit": p.cost, "applies": p.refined.applies}
        for policy, p in points.items()
    }
