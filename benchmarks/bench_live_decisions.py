"""How long one decision of the live scheduler takes: a job ends, another comes, and all others may move.

From the event to the actions, with whole cores, jobs of the paper's three classes with sizes known and
unknown, and a machine that demands something of its jobs. Machine code is loaded beforehand.
"""

import time

import numpy as np

from malleable.live.core.events import Confirmed, CoresChanged, Finished, Registered
from malleable.live.core.scheduler import Scheduler
from malleable.model import Workload, paper_workload

REPEATS = 30
CASES = (
    ("wham", "plain", 4.0),
    ("wham", "plain", 0.5),
    ("greedy", "plain", 4.0),
    ("equi", "plain", 4.0),
    ("srpt", "plain", 0.5),
    ("wham", "quiet", 4.0),
    ("equi", "quiet", 4.0),
)
"""Policies, what the machine demands, and cores per job."""


def demanding(workload: Workload) -> Workload:
    """The same jobs, which are left in peace for a while after a resize."""
    document = workload.to_dict()
    for row in document["classes"]:
        row["quiet"] = 1.0
    return Workload.from_dict(document)


def carry_out(scheduler: Scheduler, actions: list, now: float) -> None:
    """Have all jobs do at once what they are asked."""
    while actions:
        action = actions.pop()
        actions += scheduler.handle(Confirmed(action.job, action.cores, action.number), now)


def seconds(policy: str, kind: str, jobs: int, per_job: float) -> float:
    rng = np.random.default_rng(7)
    cores = int(per_job * jobs)
    workload = paper_workload().at(cores, 0.5)
    scheduler = Scheduler(workload if kind == "plain" else demanding(workload), cores, policy)
    scheduler.load_machine_code()
    sizes = rng.exponential(1.0, jobs + 2 * REPEATS)

    def registered(j: int) -> Registered:
        return Registered(str(j), f"class-{j % 3 + 1}", size=float(sizes[j]) if j % 2 else None)

    scheduler.handle(CoresChanged(0), 0.0)  # while there are none to divide, jobs come in quickly
    for j in range(jobs):
        scheduler.handle(registered(j), 1e-3 * j)
    times, now = [], 1e-3 * jobs
    carry_out(scheduler, scheduler.handle(CoresChanged(cores), now), now)
    for step in range(REPEATS):
        now += 2.0
        carry_out(scheduler, scheduler.handle(registered(jobs + step), now), now)
        start = time.perf_counter()
        actions = scheduler.handle(Finished(str(step)), now + 1.5)
        times.append(time.perf_counter() - start)
        carry_out(scheduler, actions, now + 1.5)
    return float(np.median(times[REPEATS // 3 :]))


def run() -> list[dict]:
    rows = []
    for policy, kind, per_job in CASES:
        for jobs in (1_000, 10_000):
            made = {"policy": policy, "machine": kind, "jobs": jobs, "cores": int(per_job * jobs)}
            rows.append({**made, "milliseconds": 1e3 * seconds(policy, kind, jobs, per_job)})
    return rows
