"""Small workloads whose Markov chains can be solved exactly."""

from __future__ import annotations

from malleable.model import Workload, paper_workload

POWER = {"kind": "power", "exponent": 0.5}
AMDAHL = {"kind": "amdahl", "sequential": 0.2}
BUMPY = {"kind": "table", "cores": [1, 2, 3, 4], "speedup": [1.0, 1.2, 2.6, 2.8]}


def exponential(mean):
    return {"kind": "exponential", "mean": mean}


def workload(*classes):
    """Classes given as (rate, size, speedup, holding cost)."""
    rows = [
        {"arrivals": {"kind": "poisson", "rate": r}, "size": x, "speedup": s, "holding_cost": c}
        for r, x, s, c in classes
    ]
    return Workload.from_dict({"name": "test", "classes": rows})


SHORT_AND_LONG = workload(
    (10.0, exponential(0.1), {"kind": "power", "exponent": 0.8}, 1.0),
    (1.0, exponential(1.0), {"kind": "power", "exponent": 0.8}, 1.0),
)


def paper_exponential(classes=3):
    """The paper's classes with exponential sizes of the same means."""
    rows = paper_workload().to_dict()["classes"][:classes]
    for row, mean in zip(rows, (1 / 5, 5 / 9, 1 / 3), strict=False):
        row["size"] = exponential(mean)
    return Workload.from_dict({"name": "exponential", "classes": rows})


def phases(made):
    return [job_class.size.phase_type() for job_class in made.classes]
