"""The refined mean field and the exact cost beside it, as cells."""

from __future__ import annotations

from math import ceil, sqrt
from typing import TYPE_CHECKING, Any

from malleable.contracts import Policy
from malleable.paper.simulation_cells import described
from malleable.theory.class_speeds import class_speeds
from malleable.theory.markov_chain import solve
from malleable.theory.meanfield import mean_field

if TYPE_CHECKING:
    from collections.abc import Mapping


def predicted(workload: str | Mapping[str, Any], policy: str, cores: int, load: float) -> dict[str, Any]:
    """The mean field's cost, its correction, and whether it says that it applies."""
    field = mean_field(described(workload, cores, load), float(cores), Policy.of(policy), starts=0)
    return {
        "cores": cores,
        "load": load,
        "limit": field.cost,
        "jobs": sum(one.jobs for one in field.classes),
        "coefficient": field.refined.coefficient,
        "refined": field.refined.cost,
        "applies": field.refined.applies,
        "reason": field.refined.reason,
    }


def both(workload: str | Mapping[str, Any], policy: str, cores: int, load: float) -> dict[str, Any]:
    """The prediction, and the exact cost from the stationary law of the counts."""
    value = predicted(workload, policy, cores, load)
    made = described(workload, cores, load)
    laws = [job_class.size.phase_type() for job_class in made.classes]
    most = ceil(10.0 + value["jobs"] + 8.0 * sqrt(value["jobs"]) + (20.0 if load > 0.65 else 0.0))
    known = [law for law in laws if law is not None]
    chain = solve(made.rates, known, class_speeds(Policy.of(policy), made, cores), most)
    exact = chain.cost(made.holding_costs) / (1.0 - chain.truncation)
    return {**value, "exact": exact, "truncation": chain.truncation, "overload": chain.exceeds(cores)}
