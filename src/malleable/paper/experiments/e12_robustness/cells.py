"""What is computed for e12_robustness, and on which settings."""

from __future__ import annotations

from itertools import product
from math import log, sqrt
from typing import TYPE_CHECKING, Any

from malleable.contracts import Distribution, Policy
from malleable.model import Workload, paper_workload
from malleable.paper.contracts import Cell, Effort
from malleable.paper.experiments.e12_robustness.wrong_information import misled_limits, misled_runs
from malleable.paper.experiments.shared.workloads import law_of
from malleable.paper.simulation_cells import PAPERS, compared
from malleable.theory.meanfield import mean_field

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

CORES = 64
ARRIVAL_CORES = 256
ERROR = 0.2
"""Share by which speedup parameters are wrong."""
FACTORS = tuple(f for f in product((1.0 - ERROR, 1.0, 1.0 + ERROR), repeat=3) if f != (1.0, 1.0, 1.0))
"""Factors on the parameters p₁, p₂ and q₃."""
SIMULATED_FACTORS = tuple(f for f in FACTORS if f.count(1.0) in {0, 2})
"""All three wrong, or one alone."""
WHOLE = ((16, 0.25), (64, 0.25), (256, 0.25), (64, 0.8))
BLIND = ((16, 0.8), (16, 0.9), (64, 0.8), (64, 0.9), (64, 0.95))
"""Numbers of cores and loads for whole cores, and for unknown sizes."""
LOAD = 0.25
LOADS = (0.05, 0.1, 0.25, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98)
QUICK_LOADS = (0.25, 0.9)
SIZE_CORES = (256, 1024, 4096)
QUICK_FACTORS = ((1.2, 0.8, 0.8),)
QUICK_SCVS = (0.0, 4.0)
SEED = 12
JOBS = {
    "quick": {"load": 10_000, "heavy": 20_000, "arrivals": 10_000, "sizes": 10_000, "misled": 10_000,
              "whole": 3_000, "blind": 5_000},
    "normal": {"load": 400_000, "heavy": 2_000_000, "arrivals": 500_000, "sizes": 500_000,
               "misled": 150_000, "whole": 80_000, "blind": 150_000},
    "full": {"load": 10_000_000, "heavy": 100_000_000, "arrivals": 10_000_000, "sizes": 20_000_000,
             "misled": 5_000_000, "whole": 1_000_000, "blind": 3_000_000},
}  # fmt: skip
"""Jobs of the simulations."""
HEAVY = 0.9
"""From this load on runs are longer."""
SCVS = (0.0, 0.5, 1.0, 4.0)
"""Squared coefficients of variation of the times between arrivals; 1 is Poisson."""
SIZES: dict[str, dict[str, Any]] = {
    "lognormal": {"kind": "lognormal", "mean": 1.0, "sigma": sqrt(log(5.0))},
    "bounded Pareto": {"kind": "bounded_pareto", "shape": 1.5, "low": 1.0, "high": 1000.0},
}
"""Size laws, to be scaled to the mean of each class: SCV 4, and a tail of three decades (SCV 9.9)."""


def misled_key(factors: Sequence[float]) -> str:
    """The name of the cell with those factors."""
    return "misled-" + "-".join(f"{factor:g}" for factor in factors)


def cells(effort: Effort) -> list[Cell]:
    """One cell a setting; each runs WHAM and what it is compared with on the same jobs."""
    return [*_rival_cells(effort), *_trouble_cells(effort)]


def _rival_cells(effort: Effort) -> list[Cell]:
    """WHAM and its rivals at other loads, with other arrivals, with other sizes."""
    jobs = JOBS[effort.name]
    both = {"policies": list(PAPERS), "load": LOAD}
    made = []
    for load in loads_of(effort):
        count = jobs["load" if load < HEAVY else "heavy"]
        run = {**both, "cores": CORES, "load": load, "seed": SEED, "jobs": count}
        made.append(Cell(f"load-{load}", compared, run, 0.4 + count / 1.5e6))
    for scv in QUICK_SCVS if effort.quick else SCVS:
        asked = {**both, "workload": with_arrivals(scv), "cores": ARRIVAL_CORES}
        made.append(Cell(f"predicted-{scv}", predicted, asked, 0.1))
        run = {**asked, "seed": SEED, "jobs": jobs["arrivals"]}
        made.append(Cell(f"arrivals-{scv}", compared, run, 0.4 + jobs["arrivals"] / 1e6))
    for i, name in enumerate(SIZES):
        for n in SIZE_CORES[:1] if effort.quick else SIZE_CORES:
            run = {**both, "workload": with_sizes(name), "cores": n, "seed": SEED}
            count = max(jobs["sizes"], 30 * n)
            made.append(Cell(f"sizes-{i}-{n}", compared, {**run, "jobs": count}, 0.4 + count / 1e6))
    return made


def _trouble_cells(effort: Effort) -> list[Cell]:
    """WHAM with wrong speedups, on whole cores, and without sizes, beside itself."""
    jobs = JOBS[effort.name]
    every = {"cores": 1024, "load": LOAD, "factors": {misled_key(f): list(f) for f in FACTORS}}
    made = [Cell("limits", misled_limits, every, 0.1)]
    for factors in QUICK_FACTORS if effort.quick else SIMULATED_FACTORS:
        run = {"cores": CORES, "load": LOAD, "seed": SEED, "jobs": jobs["misled"]}
        told = {"policies": {"misled": {"factors": list(factors)}}, **run}
        made.append(Cell(misled_key(factors), misled_runs, told, 0.2 + jobs["misled"] / 2e6))
    for n, load in WHOLE[:1] if effort.quick else WHOLE:
        run = {"cores": n, "load": load, "seed": SEED, "jobs": max(jobs["whole"], 30 * n)}
        whole = {"policies": ["wham", "wham-integer"], **run}
        made.append(Cell(f"whole-{n}-{load}", compared, whole, 0.2 + jobs["whole"] / 1e5))
    for n, load in BLIND[:1] if effort.quick else BLIND:
        run = {"cores": n, "load": load, "seed": SEED, "jobs": jobs["blind"]}
        blind = {"policies": {"blind": {}}, **run}
        made.append(Cell(f"blind-{n}-{load}", misled_runs, blind, 0.2 + jobs["blind"] / 2e5))
    return made


def loads_of(effort: Effort) -> tuple[float, ...]:
    """The loads that policies are compared at."""
    return QUICK_LOADS if effort.quick else LOADS


def with_arrivals(scv: float) -> dict[str, Any]:
    """Renewal arrivals of the same rates with the given variability."""
    document = paper_workload().to_dict()
    for row, rate in zip(document["classes"], paper_workload().rates.tolist(), strict=True):
        row["arrivals"] = {"kind": "renewal", "interval": law_of(1.0 / rate, scv)}
    return {**document, "name": f"paper, arrivals of SCV {scv:g}"}


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
