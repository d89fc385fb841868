"""What is computed for e10b_discounted, and on which settings."""

from __future__ import annotations

from typing import Any

from malleable.paper.contracts import Cell, Effort
from malleable.paper.experiments.e10b_discounted.discounting import (
    HELD_OUT,
    WORKLOADS,
    best_blind,
    discounts,
    random_setting,
)
from malleable.paper.experiments.shared.workloads import key_of
from malleable.paper.simulation_cells import compared

RULE = "wham-discounted"
MAP_CORES, MAP_LOADS = 12, (0.5, 0.8, 0.9)
ALPHAS = (0.03, 0.1, 0.3, 1.0)
WHITTLE_MOST = 0.1
"""Beyond this discount Whittle's queue at ρ = 0.9 grows so long that simulating it takes forever."""
CORES, LOADS = (4, 8, 16, 32), (0.25, 0.5, 0.7, 0.8, 0.9, 0.95)
OTHERS = tuple(
    (name, n, load) for name in ("paper", "hyper", "equal") for n in (4, 12) for load in (0.5, 0.8, 0.95)
)
LARGE = (128, 0.7)
EXACT = ((4, 0.5), (4, 0.7), (8, 0.7))
RANDOM = 24
SEED = 1010


def cells(effort: Effort) -> list[Cell]:
    """Paired comparisons: over α, over (n, ρ), on other and on random workloads; and the optimum."""
    loads = map_loads(effort)
    made = [
        Cell(
            "rates", discounts, {"workload": WORKLOADS["four"], "cores": MAP_CORES, "loads": list(loads)}, 0.1
        )
    ]
    policies = [*whittles_of(effort), *fixed_policies(effort), RULE]
    made += [
        _cell(key_of("map", "four", MAP_CORES, load), policies, WORKLOADS["four"], MAP_CORES, load, effort)
        for load in loads
    ]
    made += [
        _cell(key_of("at", name, cores, load), [RULE], WORKLOADS[name], cores, load, effort)
        for name, cores, load in [*settings_of(effort), *(("two", *one) for one in exact_settings(effort))]
    ]
    made += [_cell(f"random-{seed}", [RULE], *random_setting(seed), effort) for seed in seeds_of(effort)]
    for cores, load in exact_settings(effort):
        setting = {"workload": WORKLOADS["two"], "cores": cores, "load": load}
        made.append(Cell(key_of("optimum", "two", cores, load), best_blind, setting, 0.3))
    return made


def _cell(key: str, policies: list[str], workload: Any, cores: int, load: float, effort: Effort) -> Cell:
    setting = {"workload": workload, "cores": cores, "load": load}
    jobs = 1_500 if effort.quick else effort.jobs // 50
    run = {"policies": ["wham", *policies], "jobs": jobs, "seed": SEED}
    return Cell(key, compared, {**setting, **run}, len(policies) * jobs * (1.0 + load * cores / 10.0) / 3e4)


def map_loads(effort: Effort) -> tuple[float, ...]:
    """Loads at which α is varied."""
    return MAP_LOADS[1:2] if effort.quick else MAP_LOADS


def _alphas(effort: Effort) -> tuple[float, ...]:
    return (0.03, 0.3) if effort.quick else ALPHAS


def whittles_of(effort: Effort) -> list[str]:
    """The Whittle policies that are simulated."""
    return [f"whittle:alpha={alpha:g}" for alpha in _alphas(effort) if alpha <= WHITTLE_MOST]


def fixed_policies(effort: Effort) -> list[str]:
    """The rule with each fixed α."""
    return [f"{RULE}:alpha={alpha:g}" for alpha in _alphas(effort)]


def grid_of(effort: Effort) -> tuple[tuple[int, ...], tuple[float, ...]]:
    """Numbers of cores and loads of the map."""
    return ((4, 16), (0.5,)) if effort.quick else (CORES, LOADS)


def settings_of(effort: Effort) -> list[tuple[str, int, float]]:
    """The named settings but those of the exact comparison."""
    cores, loads = grid_of(effort)
    grid = [("four", n, load) for n in cores for load in loads]
    return grid if effort.quick else [*grid, ("four", *LARGE), *OTHERS]


def seeds_of(effort: Effort) -> range:
    """Seeds of the random workloads."""
    return range(HELD_OUT, HELD_OUT + (1 if effort.quick else RANDOM))


def exact_settings(effort: Effort) -> tuple[tuple[int, float], ...]:
    """Pairs (n, ρ) for which the optimum is computed."""
    return EXACT[:1] if effort.quick else EXACT
