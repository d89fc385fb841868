"""What is computed for e15_few_cores, and on which settings."""

from __future__ import annotations

from typing import Any

import numpy as np

from malleable.contracts import Policy
from malleable.paper.contracts import Cell, Effort
from malleable.paper.experiments.e15_few_cores.held_out import HELD_OUT, on_held_out, on_named
from malleable.paper.experiments.e15_few_cores.systems import BLIND_STUDY, SIZED_STUDY, WORKLOADS
from malleable.paper.experiments.shared.exact_gaps import gaps
from malleable.paper.experiments.shared.workloads import key_of
from malleable.paper.simulation_cells import described
from malleable.theory.class_speeds import class_speeds
from malleable.theory.decision_process import evaluate
from malleable.theory.meanfield import mean_field
from malleable.theory.optimal_policy import optimum

Where = tuple[str, int, float]
"""Workload, cores and load."""
GAP_POLICIES = ("wham", "wham-improved", "wham-improved:headroom=1")
"""Whose distances from the optimum are computed; the last one takes the load for what it is told."""
OTHER_GAPS = (("two", 8, 0.8), ("two", 4, 0.9))
LONG_GAPS = (("four", 12, 0.5),)
"""Exact settings that the study does not have; with four classes one takes half a minute."""
STATES = {"four": 24_000}
"""States of the chain at most, where that matters."""
ORDERS = {"shapes": 0.3, "weights": 0.4, "sizes": 0.6}
"""Systems of the 1/n terms with their loads, at which the expansion applies."""
ORDER_CORES = {"quick": (32, 64), "normal": (64, 128, 256), "full": (64, 128, 256, 512)}
WORKLOADS_HELD_OUT = {"quick": (2, 1), "normal": (12, 8), "full": (200, 200)}
"""How many, with sizes unknown and with sizes known."""
HELD_OUT_JOBS = {"quick": 10_000, "normal": 40_000, "full": 200_000}
LIMIT_CORES = {"quick": (16, 64), "normal": (16, 64, 256, 1024), "full": (16, 64, 256, 1024, 4096, 16_384)}
LIMITS = {"paper": 0.25, "weights": 0.7}
"""Systems that are followed to many cores, with their loads."""
BUSY = {"blind": (("weights", 8), ("four", 12), ("paper", 16)), "sized": (("weights", 8), ("four", 12))}
"""Systems on which the load is raised, by pair."""
LOADS = {"quick": (0.98,), "normal": (0.5, 0.9, 0.98), "full": (0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98)}
SEED = 15


def cells(effort: Effort) -> list[Cell]:
    """Exact gaps, 1/n terms, held-out workloads, many cores, high loads, and the table of the study."""
    made = [_gap(*where) for where in gap_settings(effort)]
    made += [
        Cell(key_of("order", name, n, load), first_order, {"name": name, "cores": n, "load": load}, 0.5)
        for name, n, load in order_settings(effort)
    ]
    for pair in ("blind", "sized"):
        for seed in seeds_of(effort, pair):
            run = {"pair": pair, "seed": seed, "jobs": HELD_OUT_JOBS[effort.name]}
            made.append(Cell(f"held-out-{pair}-{seed}", on_held_out, run, 3.0 if pair == "sized" else 2.0))
    made += [_named("at ease", "limit", *where, limit_jobs(effort)) for where in limit_settings(effort)]
    made += [_named(pair, "load", *where, busy_jobs(effort)) for pair, where in load_settings(effort)]
    made += [_named("trusting", "study", *where, 2 * busy_jobs(effort)) for where in study_settings(effort)]
    return made


def limit_jobs(effort: Effort) -> int:
    """Jobs of a run on class counts."""
    return min(effort.jobs, 4_000_000)


def busy_jobs(effort: Effort) -> int:
    """Jobs of a run on single jobs."""
    return min(effort.jobs // 10, 400_000)


def _gap(name: str, cores: int, load: float) -> Cell:
    run = {"workload": WORKLOADS[name][1], "cores": cores, "load": load}
    run |= {"policies": list(GAP_POLICIES), "whole": [], "max_states": STATES.get(name, 100_000)}
    return Cell(key_of("gap", name, cores, load), gaps, run, 30.0 if name == "four" else 1.5)


def _named(pair: str, what: str, name: str, cores: int, load: float, jobs: int) -> Cell:
    run = {"pair": pair, "name": name, "cores": cores, "load": load, "jobs": jobs, "seed": SEED}
    weight = 1.0 if pair == "at ease" else 1.5 if pair == "blind" else 3.0
    return Cell(key_of(f"{what}-{pair.replace(' ', '-')}", name, cores, load), on_named, run, weight)


def gap_settings(effort: Effort) -> list[Where]:
    """Settings with an exact optimum."""
    if effort.quick:
        return [("weights", 8, 0.7)]
    return [*BLIND_STUDY, *OTHER_GAPS, *(LONG_GAPS if effort.name == "full" else ())]


def order_settings(effort: Effort) -> list[Where]:
    """Settings of the 1/n terms."""
    names = ("shapes",) if effort.quick else tuple(ORDERS)
    return [(name, cores, ORDERS[name]) for name in names for cores in ORDER_CORES[effort.name]]


def seeds_of(effort: Effort, pair: str) -> range:
    """Seeds of the held-out workloads."""
    count = WORKLOADS_HELD_OUT[effort.name][pair == "sized"]
    return range(HELD_OUT, HELD_OUT + count)


def limit_settings(effort: Effort) -> list[Where]:
    """Settings that are followed to many cores."""
    return [(name, cores, load) for name, load in LIMITS.items() for cores in LIMIT_CORES[effort.name]]


def load_settings(effort: Effort) -> list[tuple[str, Where]]:
    """Pairs of policies, and settings over which the load is raised."""
    if effort.quick:
        return [("blind", ("weights", 8, 0.98))]
    return [
        (pair, (name, cores, load))
        for pair, systems in BUSY.items()
        for name, cores in (systems if effort.name == "full" or pair == "blind" else systems[:1])
        for load in LOADS[effort.name]
    ]


def study_settings(effort: Effort) -> list[Where]:
    """Settings of the study with sizes known."""
    few = [("four", 12, 0.7), ("sizes", 8, 0.5)]
    return [] if effort.quick else few if effort.name == "normal" else list(SIZED_STUDY)


def first_order(name: str, cores: int, load: float) -> dict[str, Any]:
    """V* and both coefficients by theory, and the exact costs of the optimum and of size-blind WHAM."""
    made, wham = described(WORKLOADS[name][1], cores, load), Policy.of("wham")
    field = mean_field(made, cores, wham, starts=0)
    jobs = sum(one.jobs for one in field.classes)
    most = int(60 + jobs + 14.0 * np.sqrt(jobs))
    best = optimum(made, cores, most, widths="real")
    own = evaluate(made, cores, class_speeds(wham, made, cores), most)
    theory = field.first_order
    return {
        "bound": field.cost,
        "optimum": best.cost,
        "wham": own.cost,
        "lost": own.mass_at_limit,
        "best term": theory.best,
        "wham term": theory.wham,
        "applies": theory.applies,
    }
