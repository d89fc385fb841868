"""How far the live system in real time is from the simulator on the same jobs, and how long a status takes.

The paper's workload on 32 virtual cores; the difference is in whole cores and in the time that answers take.
"""

import time

from malleable.live.broker.broker import Broker
from malleable.live.broker.status import status
from malleable.live.core.events import Confirmed, Registered
from malleable.live.core.scheduler import Scheduler
from malleable.live.play import play
from malleable.model import paper_workload

POLICIES = ("wham", "equi", "greedy")
QUEUE = 5000
REPEATS = 10


def played() -> list[dict]:
    found = play(paper_workload(), 32, POLICIES, load=0.7, jobs=600, speed=0.5)
    return [
        {
            "case": one.live.policy,
            "live": one.live.cost.mean,
            "simulated": one.simulated.cost.mean,
            "percent above": 100.0 * one.share,
            "milliseconds": 1e3 * one.lateness.mean,
        }
        for one in found.policies
    ]


def status_of_a_queue(most: int | None) -> dict:
    broker = Broker(Scheduler(None, 64, "fcfs"))

    def obey(order):
        broker.tell(Confirmed(order.job, order.cores, order.number))

    for j in range(QUEUE):
        broker.join(Registered(str(j), "etl", size=60.0), obey)
    started = time.perf_counter()
    for _ in range(REPEATS):
        status(broker, most=most)
    took = (time.perf_counter() - started) / REPEATS
    broker.close()
    case = f"status of {QUEUE} jobs, {'all' if most is None else most} listed"
    return {"case": case, "live": "", "simulated": "", "percent above": "", "milliseconds": 1e3 * took}


def run() -> list[dict]:
    return [*played(), status_of_a_queue(None), status_of_a_queue(500)]
