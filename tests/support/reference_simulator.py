"""A naive simulator, the oracle of `test_engine`: plain Python, O(N) per event, written from MODEL.md §3.

It shares nothing with `malleable.engine`: jobs are dictionaries in a list, every policy is asked through its
own `allocate` at every event, remaining work is counted down, and speeds come from the speedups themselves.
FW-CAM is not even asked: its classes are separate first-come-first-served queues with several servers.

Policies that decide in rounds (Pollux, Sia) are asked at multiples of their period only; a job that ran
before and is given another number of cores stands still for the pause. They also see how often a job was
resized, which a list of jobs does not say, so they are asked through their rule.
"""

from __future__ import annotations

import heapq
import math

import numpy as np

from malleable.model.jobs import Jobs
from malleable.policies.base.job_rule import RESTARTS, JobRule, job_rows
from malleable.policies.fw_cam import FwCam


def departures(policy, workload, cores, times, classes, sizes):
    """When each job leaves, all of them let finish."""
    if isinstance(policy, FwCam):
        return separate_queues(policy.plan(workload, cores), workload, times, classes, sizes)
    period = pause = 0.0
    if isinstance(policy, JobRule):
        period, pause = policy.timing(workload)
    return Simulator(policy, workload, cores, period, pause).run(times, classes, sizes)


def separate_queues(plan, workload, times, classes, sizes):
    """FW-CAM: one queue per class, `slots` servers of speed s(width), in order of arrival."""
    free = [[-math.inf] * pool.slots for pool in plan.pools]
    speeds = [float(s(pool.width)) for s, pool in zip(workload.speedups, plan.pools, strict=True)]
    left = []
    for time, i, size in zip(times, classes, sizes, strict=True):
        done = max(float(time), free[i][0]) + float(size) / speeds[i]
        heapq.heapreplace(free[i], done)
        left.append(done)
    return np.array(left)


class Simulator:
    """One run: `now`, the jobs present in order of arrival, and who has left when."""

    def __init__(self, policy, workload, cores, period, pause):
        self.policy, self.workload, self.cores = policy, workload, cores
        self.period, self.pause = period, pause
        self.now, self.round = 0.0, math.inf
        self.jobs = []
        self.left = {}

    def run(self, times, classes, sizes):
        coming = [
            {"id": j, "class": int(i), "arrived": float(t), "remaining": float(x), "cores": 0.0}
            for j, (t, i, x) in enumerate(zip(times, classes, sizes, strict=True))
        ]
        total = len(coming)
        coming.reverse()
        while coming or self.jobs:
            arrival = coming[-1]["arrived"] if coming else math.inf
            departure, leaver = self.next_departure()
            resumption = min((j["resumes"] for j in self.jobs if j["resumes"] > self.now), default=math.inf)
            upcoming = min(arrival, departure, resumption, self.round)
            assert upcoming < math.inf, f"{self.policy} serves none of {len(self.jobs)} jobs"
            for job in self.jobs:
                job["remaining"] -= self.speed(job) * (upcoming - self.now)
            self.now = upcoming
            # At the same time: who is done leaves, pauses end, newcomers join, then the round begins.
            if departure == upcoming:
                self.jobs.remove(leaver)
                self.left[leaver["id"]] = upcoming
                self.changed()
            elif resumption == upcoming:
                pass
            elif arrival == upcoming:
                self.join(coming.pop())
                self.changed()
            else:
                self.round += self.period
                self.ask()
        return np.array([self.left[j] for j in range(total)])

    def next_departure(self):
        soonest, who = math.inf, None
        for job in self.jobs:
            speed = self.speed(job)
            if speed > 0.0 and self.now + max(job["remaining"], 0.0) / speed < soonest:
                soonest, who = self.now + max(job["remaining"], 0.0) / speed, job
        return soonest, who

    def speed(self, job):
        if job["resumes"] > self.now:
            return 0.0
        if job["of"] != job["cores"]:
            job["of"] = job["cores"]
            job["speed"] = float(self.workload.speedups[job["class"]](job["cores"]))
        return job["speed"]

    def join(self, job):
        if not self.jobs and self.period > 0.0:
            self.round = math.ceil(self.now / self.period) * self.period
        job.update(ran=False, restarts=0, resumes=-math.inf, speed=0.0, of=0.0)
        self.jobs.append(job)

    def changed(self):
        if not self.jobs:
            self.round = math.inf
        elif self.period == 0.0:
            self.ask()

    def ask(self):
        for job, cores in zip(self.jobs, self.allocation(), strict=True):
            if cores == job["cores"]:
                continue
            job["cores"] = float(cores)
            if cores > 0.0:
                if job["ran"]:
                    job["restarts"] += 1
                    if self.pause > 0.0:
                        job["resumes"] = self.now + self.pause
                job["ran"] = True

    def allocation(self):
        jobs = Jobs.of(
            self.workload,
            np.array([j["class"] for j in self.jobs]),
            [max(j["remaining"], 0.0) for j in self.jobs],
            age=[self.now - j["arrived"] for j in self.jobs],
            held=[j["cores"] for j in self.jobs],
        )
        if self.period == self.pause == 0.0:
            return self.policy.allocate(jobs, self.cores).cores
        rows = job_rows(jobs, jobs.class_index)
        rows[:, RESTARTS] = [j["restarts"] for j in self.jobs]
        widths = np.zeros(len(jobs))
        self.policy.rule(rows, float(self.cores), self.policy.prepare(self.workload, self.cores), widths)
        return widths
