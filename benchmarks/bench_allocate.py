"""How long one answer of `allocate` takes, for many jobs in few classes and for jobs all different."""

import time

import numpy as np

from malleable.contracts import Policy
from malleable.model import JobClass, Workload
from malleable.model.jobs import Jobs


def fifty_classes() -> Workload:
    rng = np.random.default_rng(1)
    kinds = [
        lambda: {"kind": "power", "exponent": rng.uniform(0.2, 0.9)},
        lambda: {"kind": "amdahl", "sequential": rng.uniform(0.02, 0.5)},
        lambda: {"kind": "usl", "contention": rng.uniform(0.02, 0.3), "coherency": rng.uniform(1e-4, 1e-2)},
        lambda: {"kind": "table", "cores": [1, 2, 4, 8, 16], "speedup": measured(rng), "hull": True},
    ]
    classes = [
        JobClass(
            name=f"class-{i}",
            arrivals={"kind": "poisson", "rate": 1.0},
            size={"kind": "exponential", "rate": 1.0},
            speedup=kinds[i % 4](),
            holding_cost=rng.uniform(0.5, 4.0),
        )
        for i in range(50)
    ]
    return Workload("fifty", tuple(classes))


def measured(rng) -> list[float]:
    return np.cumsum(np.append(1.0, rng.uniform(0.1, 1.0, 4) * [0.9, 1.5, 2.0, 2.5])).tolist()


def best_of(function, repeats: int = 7) -> float:
    function()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)


def run() -> list[dict]:
    rng = np.random.default_rng(2)
    workload = fifty_classes()
    many = Jobs.of(workload, rng.integers(0, 50, 100_000), rng.exponential(1.0, 100_000))
    tables = [{"kind": "table", "cores": [1, 2, 4, 8, 16], "speedup": measured(rng)} for _ in range(10_000)]
    for table in tables:
        table["hull"] = True
    own = Jobs.of(workload, rng.integers(0, 50, 10_000), rng.exponential(1.0, 10_000), speedups=tables)
    cases = [
        ("100,000 jobs in 50 classes", many, 400_000.0),
        ("100,000 jobs in 50 classes, more jobs than cores", many, 50_000.0),
        ("10,000 jobs, each with its own table", own, 40_000.0),
    ]
    rows = []
    for name, jobs, cores in cases:
        for policy in ("wham", "wham-integer", "greedy", "equi"):
            chosen = Policy.of(policy)
            seconds = best_of(lambda jobs=jobs, cores=cores, chosen=chosen: chosen.allocate(jobs, cores))
            rows.append({"case": name, "policy": policy, "milliseconds": 1e3 * seconds})
    return rows
