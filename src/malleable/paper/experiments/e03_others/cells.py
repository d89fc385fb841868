"""What is computed for e03_others, and on which settings."""

from __future__ import annotations

from typing import Any

from malleable.contracts import Policy
from malleable.model import paper_workload
from malleable.paper.contracts import Cell, Effort
from malleable.paper.experiments.shared.known_jobs import known_cells
from malleable.paper.simulation_cells import PAPERS, compared, narrow_arguments
from malleable.theory.class_speeds import class_speeds
from malleable.theory.markov_chain import solve
from malleable.theory.meanfield import mean_field
from malleable.theory.relaxed import bound

LOAD = 0.25
SEED = 3
VARIANTS = {"mu": "departures, w = μ", "c": "value, w = c", "cmu": "value of departures, w = cμ"}
"""Other things that GREEDY may maximise, of which only the limits are worked out."""
QUICK_CORES = (4, 16, 512, 1024, 2048)
CORES = tuple(2**i for i in range(15))
LIMITS = {16: 20, 128: 38}
"""Jobs at which the chain is cut off, by number of cores; the table tells what that loses."""


def cells(effort: Effort) -> list[Cell]:
    """Simulations by n, all policies on the same jobs; exact costs on few cores; the mean-field limits."""
    made = [Cell("limits", limits, {}, 0.3)]
    made += [
        Cell(
            f"exact-{policy}-{n}",
            exact_cost,
            {"policy": policy, "cores": n, "load": LOAD, "limit": most},
            2e-8 * most**5,
        )
        for n, most in LIMITS.items()
        for policy in PAPERS
        if n == 16 or not effort.quick
    ]
    made += known_cells(cores_of(effort), LOAD, effort, SEED)
    run = {"policies": list(PAPERS), "load": LOAD, "seed": SEED}
    for n in cores_of(effort):
        length = narrow_arguments(effort, n)
        length["jobs"] = length["jobs"] if effort.quick else length["jobs"] // 2
        weight = effort.jobs * (1.0 + n / 8000) / 2e6
        made.append(Cell(f"compared-{n}", compared, {**run, "cores": n, **length}, weight))
    return made


def cores_of(effort: Effort) -> tuple[int, ...]:
    """The numbers of cores that policies are compared on."""
    return QUICK_CORES if effort.quick else CORES


def limits() -> dict[str, Any]:
    """The bound, and each policy's mean-field limit with its correction of order 1/n."""
    n = 1024
    workload = paper_workload(n, LOAD)
    names = [*PAPERS, *(f"greedy:weight={weight}" for weight in VARIANTS)]
    points = {policy: mean_field(workload, n, Policy.of(policy), starts=0) for policy in names}
    return {
        "bound": bound(workload, n).bound,
        **{p: {"cost": m.cost, "coefficient": m.refined.coefficient} for p, m in points.items()},
    }


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
