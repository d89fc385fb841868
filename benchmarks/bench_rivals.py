"""SimPy and Ciw beside us on the very same jobs: M/M/8 first come first served, and processor sharing.

All simulate the same list of jobs to the end, and must agree on the mean response time.
"""

import math
import time
import warnings

import ciw
import numpy as np
import simpy

from malleable.contracts import Policy
from malleable.engine.run import departures
from malleable.model import JobClass, Workload
from malleable.simulation import program
from malleable.sources import stream

LOAD = 0.7
JOBS = 50_000
OURS, THEIRS = 100, 3
"""Repetitions; the fastest counts, because other people use the machine too."""


def workload(cores: int) -> Workload:
    return Workload(
        "queue",
        (
            JobClass(
                name="job",
                arrivals={"kind": "poisson", "rate": LOAD * cores},
                size={"kind": "exponential", "mean": 1.0},
                speedup={"kind": "rooftop", "cores": 1.0},
            ),
        ),
    )


def ours(policy: str, cores: int, jobs) -> tuple[float, float]:
    described = workload(cores)
    made = program(Policy.of(policy), described, cores)
    best = math.inf
    for _ in range(OURS):
        start = time.perf_counter()
        left = departures(described, cores, made, jobs)
        best = min(best, time.perf_counter() - start)
    return best, float(np.mean(left - jobs.times))


def with_simpy(cores: int, jobs) -> tuple[float, float]:
    world, waited = simpy.Environment(), []
    servers = simpy.Resource(world, cores)

    def job(arrival, size):
        with servers.request() as turn:
            yield turn
            yield world.timeout(size)
        waited.append(world.now - arrival)

    def source():
        for arrival, size in zip(jobs.times.tolist(), jobs.sizes.tolist(), strict=True):
            yield world.timeout(arrival - world.now)
            world.process(job(arrival, size))

    start = time.perf_counter()
    world.process(source())
    world.run()
    return time.perf_counter() - start, float(np.mean(waited))


def with_ciw(cores: int, jobs, *, sharing: bool) -> tuple[float, float]:
    gaps = np.diff(jobs.times, prepend=0.0).tolist()
    network = ciw.create_network(
        arrival_distributions=[ciw.dists.Sequential([*gaps, 1e12])],
        service_distributions=[ciw.dists.Sequential(jobs.sizes.tolist())],
        number_of_servers=[math.inf if sharing else cores],
    )
    start = time.perf_counter()
    queue = ciw.Simulation(network, **({"node_class": ciw.PSNode} if sharing else {}))
    queue.simulate_until_max_time(1e9)
    records = queue.get_all_records()
    seconds = time.perf_counter() - start
    return seconds, float(np.mean([record.exit_date - record.arrival_date for record in records]))


def compared(case: str, rivals: dict) -> list[dict]:
    found = {
        name: min(work() for _ in range(1 if name == "malleable" else THEIRS))
        for name, work in rivals.items()
    }
    fastest, mean = found["malleable"]
    rows = []
    for name, (seconds, response) in found.items():
        if abs(response / mean - 1.0) > 1e-6:
            warnings.warn(f"{case}: {name} says {response}, we say {mean}", stacklevel=2)
        rows.append(
            {
                "case": case,
                "simulator": name,
                "milliseconds": 1e3 * seconds,
                "events/s": 2 * JOBS / seconds,
                "times slower": seconds / fastest,
                "mean response time": response,
            }
        )
    return rows


def run() -> list[dict]:
    eight, one = (stream(workload(n), 1, chunk=JOBS).take() for n in (8, 1))
    return compared(
        f"M/M/8 FCFS, {JOBS} jobs",
        {
            "malleable": lambda: ours("fcfs", 8, eight),
            "simpy": lambda: with_simpy(8, eight),
            "ciw": lambda: with_ciw(8, eight, sharing=False),
        },
    ) + compared(
        f"M/M/1 processor sharing, {JOBS} jobs",
        {"malleable": lambda: ours("equi", 1, one), "ciw": lambda: with_ciw(1, one, sharing=True)},
    )
