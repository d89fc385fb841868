"""What is computed for e03_others, and on which settings."""

from __future__ import annotations

from typing import Any

from malleable.contracts import Policy
from malleable.model import paper_workload
from malleable.paper.contracts import Cell, Effort
from malleable.paper.experiments.e03_others.exact_costs import LIMITS, exact_cost
from malleable.paper.simulation_cells import compared, narrow_arguments
from malleable.theory.meanfield import mean_field
from malleable.theory.relaxed import bound

LOAD = 0.25
POLICIES = {"wham": ("WHAM", 0), "equi": ("EQUI", 2), "greedy": ("GREEDY", 3)}
"""Names and colours."""
SEED = 3
VARIANTS = {"mu": "departures, w = μ", "c": "value, w = c", "cmu": "value of departures, w = cμ"}
"""Other things that GREEDY may maximise, of which only the limits are worked out."""
QUICK_CORES = (4, 16, 512, 1024, 2048)
CORES = tuple(2**i for i in range(15))


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
        for policy in POLICIES
        if n == 16 or not effort.quick
    ]
    run = {"policies": list(POLICIES), "load": LOAD, "seed": SEED}
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
    names = [*POLICIES, *(f"greedy:weight={weight}" for weight in VARIANTS)]
    points = {policy: mean_field(workload, n, Policy.of(policy), starts=0) for policy in names}
    return {
        "bound": bound(workload, n).bound,
        **{p: {"cost": m.cost, "coefficient": m.refined.coefficient} for p, m in points.items()},
    }
