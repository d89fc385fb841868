"""What is computed for e11_refined, and on which settings."""

from __future__ import annotations

from math import ceil, sqrt
from typing import TYPE_CHECKING, Any

from malleable.contracts import Policy
from malleable.paper.contracts import Cell, Effort
from malleable.paper.experiments.shared.workloads import exponential
from malleable.paper.simulation_cells import PAPERS, compared, described, effort_arguments
from malleable.theory.class_speeds import class_speeds
from malleable.theory.markov_chain import solve
from malleable.theory.meanfield import mean_field

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Curves = Mapping[tuple[str, str], list[Any]]

WORKLOADS: dict[str, tuple[str, str | dict[str, Any]]] = {
    "paper": ("the paper's workload", "paper"),
    "exponential": ("exponential sizes of the same means", exponential()),
}
LOAD = 0.25
LOAD_CORES = 32
"""Cores on which the load is varied, under WHAM with exponential sizes."""
CORES = {"paper": (8, 16, 32, 64, 128), "exponential": (8, 16, 32, 64, 128, 256, 512)}
"""Numbers of cores with exact costs."""
QUICK_CORES = {"paper": (16,), "exponential": (16, 32, 64)}
SIMULATED, QUICK_SIMULATED = (16, 64, 256, 1024), (16, 256)
LOADS, QUICK_LOADS = (0.1, 0.15, 0.2, 0.25, 0.4, 0.5, 0.55, 0.6, 0.7, 0.8), (0.1, 0.25, 0.5)
SEED = 11


def cells(effort: Effort) -> list[Cell]:
    """Exact and predicted costs together, by workload, policy and n, and by load; simulations by n."""
    made = []
    for name, cores in (QUICK_CORES if effort.quick else CORES).items():
        for policy in PAPERS:
            for n in affordable(effort, name, policy, cores):
                setting = {"workload": WORKLOADS[name][1], "policy": policy, "cores": n, "load": LOAD}
                weight = (n / 64) ** 2 * (4.0 if name == "paper" else 0.1) + 0.2
                made.append(Cell(f"{name}-{policy}-{n}", both, setting, weight))
    for load in QUICK_LOADS if effort.quick else LOADS:
        setting = {
            "workload": WORKLOADS["exponential"][1],
            "policy": "wham",
            "cores": LOAD_CORES,
            "load": load,
        }
        made.append(Cell(f"load-{load:g}", both, setting, 0.3 + load))
    for n in simulated_cores(effort):
        run = {"policies": list(PAPERS), "cores": n, "load": LOAD, "seed": SEED, **effort_arguments(effort)}
        made.append(Cell(f"simulated-{n}", compared, run, 3.0))
        setting = {"workload": "paper", "cores": n, "load": LOAD}
        made += [Cell(f"predicted-{p}-{n}", predicted, {**setting, "policy": p}, 0.1) for p in PAPERS]
    return made


def affordable(effort: Effort, name: str, policy: str, cores: Sequence[int]) -> list[int]:
    """On the paper's workload the chain of 128 cores takes seconds, so it is solved for WHAM alone."""
    most = 64 if name == "paper" and policy != "wham" and effort.name != "full" else max(cores)
    return [n for n in cores if n <= most]


def simulated_cores(effort: Effort) -> tuple[int, ...]:
    """The numbers of cores that are simulated as well."""
    return QUICK_SIMULATED if effort.quick else SIMULATED


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
