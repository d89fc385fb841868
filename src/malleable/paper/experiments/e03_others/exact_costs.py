"""Exact costs of class rules on few cores, as cells: the stationary law of a truncated Markov chain.

WHAM, EQUI and GREEDY look at class counts alone while jobs do not outnumber cores, so with Poisson arrivals
and phase-type sizes the counts by class and phase are a Markov chain (`theory.markov_chain`). With N ≥ n all
jobs time-share one core each in the chain; what the policies do there instead has the weight of P(N ≥ n),
which is reported: 5·10⁻⁸ on 16 cores at load 0.25.
"""

from __future__ import annotations

from typing import Any

from malleable.contracts import Policy
from malleable.model import paper_workload
from malleable.theory.class_speeds import class_speeds
from malleable.theory.markov_chain import solve

LIMITS = {16: 20, 128: 38}
"""Jobs at which the chain is cut off, by number of cores; the table tells what that loses."""


def exact_cost(policy: str, cores: int, load: float, limit: int) -> dict[str, Any]:
    """The cost of a class rule on the paper's workload, and how exact it is."""
    workload = paper_workload(cores, load)
    phases = [job_class.size.phase_type() for job_class in workload.classes]
    chain = solve(
        workload.rates,
        [law for law in phases if law is not None],
        class_speeds(Policy.of(policy), workload, cores, time_shared=True),
        limit,
    )
    return {
        "policy": policy,
        "cores": cores,
        "cost": chain.cost(workload.holding_costs) / (1.0 - chain.truncation),
        "truncation": chain.truncation,
        "residual": chain.residual,
        "overload": chain.exceeds(cores - 1),
    }
