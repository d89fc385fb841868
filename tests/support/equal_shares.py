"""Jobs on a scheduler with a guarantee, and an account of their weighted equal shares that is kept apart."""

from __future__ import annotations

from math import inf

from malleable.live.core.events import Confirmed, Finished, Registered, Tick
from malleable.live.core.fair_share import Guarantee
from malleable.live.core.scheduler import Scheduler
from malleable.model import JobClass, Workload

LAW = {"kind": "exponential", "mean": 1.0}
KAPPA = 2.0
CLASSES = ("a", "b", "c")


def workload():
    """Three classes that differ in speedup and weight."""
    kinds = zip(CLASSES, (0.0, 0.1, 0.5), (1.0, 3.0, 0.2), strict=True)
    return Workload(
        "three",
        tuple(
            JobClass(
                name, {"kind": "poisson", "rate": 1.0}, LAW,
                {"kind": "amdahl", "sequential": q} if q else {"kind": "power", "exponent": 0.9},
                holding_cost=c,
            )
            for name, q, c in kinds
        ),
    )  # fmt: skip


class Job:
    """What a job did, and what it would have done."""

    def __init__(self, index, size, weight):
        self.index, self.size, self.weight = index, size, weight
        self.done = self.fair = 0.0
        self.fastest = 1.0
        self.cores = 0


class Machine:
    """Carries a stream of jobs out at once, and notes how far each falls behind its promise, in quanta."""

    def __init__(self, cores, policy="srpt", *, guarantee=None, known=False):
        self.cores, self.known, self.now = cores, known, 0.0
        self.guarantee = guarantee or Guarantee(quantum=0.1)
        self.workload = workload()
        self.scheduler = Scheduler(self.workload, cores, policy, guarantee=self.guarantee)
        self.jobs, self.ended, self.worst, self.worst_wait = {}, {}, 0.0, 0.0
        self.events = 0

    def speed(self, job, cores):
        return cores if cores <= 1.0 else float(self.workload.speedups[job.index](cores))

    def run(self, arrivals):
        """Arrivals are (time, class, size, weight), in order of time."""
        coming = list(arrivals)[::-1]
        while coming or self.jobs:
            arrival = coming[-1][0] if coming else inf
            leaver, end = self.first_to_end()
            wake = self.scheduler.wake_at
            moment = min(arrival, end, inf if wake is None else max(wake, self.now))
            assert moment < inf, "jobs are there, and nothing will ever happen"
            self.pass_time(moment)
            if end == moment:
                self.ended[leaver] = self.now
                del self.jobs[leaver]
                self.tell(Finished(leaver))
            elif arrival == moment:
                _, index, size, weight = coming.pop()
                name = str(len(self.jobs) + len(self.ended))
                self.jobs[name] = Job(index, size, weight)
                known = size if self.known else None
                self.tell(Registered(name, CLASSES[index], weight=weight, size=known))
            else:
                self.tell(Tick())
        return self

    def first_to_end(self):
        ends = [
            (self.now + (job.size - job.done) / self.speed(job, job.cores), name)
            for name, job in self.jobs.items()
            if job.cores
        ]
        end, name = min(ends, default=(inf, None))
        return name, max(end, self.now)

    def pass_time(self, moment):
        passed, self.now = moment - self.now, moment
        total = sum(job.weight for job in self.jobs.values())
        for job in self.jobs.values():
            share = self.cores * job.weight / total
            job.done += passed * self.speed(job, job.cores)
            job.fair += passed * self.speed(job, share)
            job.fastest = max(job.fastest, self.speed(job, share))
            quantum = self.guarantee.quantum * job.fastest
            self.worst = max(self.worst, (job.fair / KAPPA - job.done) / quantum)

    def tell(self, event):
        self.events += 1
        assert self.events < 200_000
        actions = self.scheduler.handle(event, self.now)
        assert not self.scheduler.refused, self.scheduler.refused
        while actions:
            action = actions.pop(0)
            if action.job in self.jobs:
                self.jobs[action.job].cores = action.cores
                actions += self.scheduler.handle(Confirmed(action.job, action.cores, action.number), self.now)
