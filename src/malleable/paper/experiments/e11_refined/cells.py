"""What is computed for e11_refined, and on which settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from malleable.paper.contracts import Cell, Effort
from malleable.paper.experiments.e11_refined.exact_and_refined import both, predicted
from malleable.paper.experiments.shared.exponential_sizes import exponential
from malleable.paper.simulation_cells import compared, effort_arguments

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Curves = Mapping[tuple[str, str], list[Any]]

WORKLOADS: dict[str, tuple[str, str | dict[str, Any]]] = {
    "paper": ("the paper's workload", "paper"),
    "exponential": ("exponential sizes of the same means", exponential()),
}
POLICIES = {"wham": ("WHAM", 0), "equi": ("EQUI", 2), "greedy": ("GREEDY", 3)}
"""Names and colours."""
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
        for policy in POLICIES:
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
        run = {"policies": list(POLICIES), "cores": n, "load": LOAD, "seed": SEED, **effort_arguments(effort)}
        made.append(Cell(f"simulated-{n}", compared, run, 3.0))
        setting = {"workload": "paper", "cores": n, "load": LOAD}
        made += [Cell(f"predicted-{p}-{n}", predicted, {**setting, "policy": p}, 0.1) for p in POLICIES]
    return made


def affordable(effort: Effort, name: str, policy: str, cores: Sequence[int]) -> list[int]:
    """On the paper's workload the chain of 128 cores takes seconds, so it is solved for WHAM alone."""
    most = 64 if name == "paper" and policy != "wham" and effort.name != "full" else max(cores)
    return [n for n in cores if n <= most]


def simulated_cores(effort: Effort) -> tuple[int, ...]:
    """The numbers of cores that are simulated as well."""
    return QUICK_SIMULATED if effort.quick else SIMULATED
