"""A naive simulator, the oracle of `test_engine`: plain Python, O(N) per event, written from MODEL.md §3.

It shares nothing with `malleable.engine`: jobs are dictionaries in a list, every policy is asked through its
own `allocate` at every event, remaining work is counted down, and speeds come from the speedups themselves.
FW-CAM on a plain workload is not even asked: its classes are separate first-come-first-served queues with
several servers.

What machines demand is written down a second time here: rigid and moldable jobs keep their width, restricted
jobs get the allowed widths nearest to what was proposed (by recursion over all of them), a resize costs a
pause or work, a job is quiet after it, the number of cores changes, sizes may be unknown. Policies that
decide in rounds (Pollux, Sia) are asked at multiples of their period only, and when the cores change. There
rounding is no resize: a width that differs from the one held by its last digits is that one, cores that are
lacking by rounding are there, and a job that is done but for rounding leaves as it is, before anything else.
"""

from __future__ import annotations

import functools
import heapq
import math

import numpy as np

from malleable.model.jobs import Jobs
from malleable.policies.base import job_rows
from malleable.policies.base.asking import simulated
from malleable.policies.fw_cam import FwCam

SAME_TIME, SAME_WIDTH = 1e-12, 1e-9
"""Relative differences that are rounding, on machines that demand things of jobs."""


def departures(policy, workload, cores, times, classes, sizes, weights=(), *, changes=(), known=True):
    """When each job leaves, all of them let finish; `changes` are pairs of a time and a number of cores."""
    if isinstance(policy, FwCam) and all(one.plain for one in workload.job_types) and not changes:
        return separate_queues(policy.plan(workload, cores), workload, times, classes, sizes)
    period = simulated(policy, workload, cores).period
    simulator = Simulator(policy, workload, cores, period, changes, known)
    return simulator.run(times, classes, sizes, weights)


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

    def __init__(self, policy, workload, cores, period, changes=(), known=True):
        self.policy, self.workload, self.most, self.cores = policy, workload, cores, cores
        self.period, self.known = period, known
        self.changes = sorted(changes, reverse=True)
        self.types = workload.job_types
        plain = known and not changes and all(one.plain for one in self.types)
        self.program = None if plain else simulated(policy, workload, cores, plain=False)
        self.demanding = not all(one.plain for one in self.types)
        self.now, self.round = 0.0, math.inf
        self.jobs = []
        self.left = {}
        self.resizes = 0

    def run(self, times, classes, sizes, weights=()):
        self.weighted = len(weights) > 0
        costs = weights if len(weights) else self.workload.holding_costs[np.asarray(classes, dtype=int)]
        coming = [
            {"id": j, "class": int(i), "arrived": float(t), "remaining": float(x), "size": float(x),
             "cores": 0.0, "weight": float(c)}
            for j, (t, i, x, c) in enumerate(zip(times, classes, sizes, costs, strict=True))
        ]  # fmt: skip
        total = len(coming)
        coming.reverse()
        while coming or self.jobs:
            arrival = coming[-1]["arrived"] if coming else math.inf
            departure, leaver = self.next_departure()
            resumption = min((j["resumes"] for j in self.jobs if j["resumes"] > self.now), default=math.inf)
            calm = min((j["calm"] for j in self.jobs if j["calm"] > self.now), default=math.inf)
            calm = math.inf if self.period > 0.0 else calm
            change = self.changes[-1][0] if self.changes else math.inf
            others = min(arrival, resumption, change, calm, self.round)
            if departure <= others + self.slack():
                departure = min(departure, others)
            upcoming = min(departure, others)
            assert upcoming < math.inf, f"{self.policy} serves none of {len(self.jobs)} jobs"
            for job in self.jobs:
                job["remaining"] -= self.speed(job) * (upcoming - self.now)
            self.now = upcoming
            # At the same time: who is done leaves, pauses end, newcomers join, then cores come and go.
            if departure == upcoming:
                self.jobs.remove(leaver)
                self.left[leaver["id"]] = upcoming
                self.changed()
            elif resumption == upcoming:
                pass
            elif arrival == upcoming:
                self.join(coming.pop())
                self.changed()
            elif change == upcoming:
                self.cores = self.changes.pop()[1]
                self.ask()
            elif calm == upcoming:
                self.ask()
            else:
                self.round += self.period
                self.ask()
        return np.array([self.left[j] for j in range(total)])

    def slack(self):
        return SAME_TIME * self.now if self.demanding else -1.0

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
        job.update(
            ran=False, restarts=0, resumes=-math.inf, calm=-math.inf, speed=0.0, of=0.0, chosen=None,
            type=self.types[job["class"]],
        )  # fmt: skip
        self.jobs.append(job)

    def changed(self):
        if not self.jobs:
            self.round = math.inf
        elif self.period == 0.0:
            self.ask()

    def ask(self):
        for job, cores in zip(self.jobs, self.allocation(), strict=True):
            if (
                self.demanding
                and self.speed(job) > 0.0
                and job["remaining"] <= self.speed(job) * self.slack()
            ):
                continue
            before, job["cores"] = job["cores"], float(cores)
            if cores in {before, 0.0}:
                continue
            if job["ran"]:
                self.pay(job, before, float(cores))
            job["ran"], job["chosen"] = True, float(cores)

    def pay(self, job, before, after):
        """A resize: time without progress, work lost (never more than was done), and quiet from now on."""
        job["restarts"] += 1
        self.resizes += 1
        cost = job["type"].resize
        pause = cost.pause(before, after) if callable(cost.pause) else cost.pause
        if pause > 0.0:
            job["resumes"] = self.now + pause
        job["remaining"] = min(job["remaining"] + cost.work, job["size"])
        if job["type"].quiet > 0.0:
            job["calm"] = self.now + job["type"].quiet

    def allocation(self):
        """Cores for all jobs: some stay as they are, the others are proposed cores, which are made legal."""
        if self.cores < 1:
            return [0.0] * len(self.jobs)
        stay = [
            j
            for j in self.jobs
            if j["cores"] > 0.0 and (j["type"].shape != "malleable" or j["calm"] > self.now)
        ]
        stopped = []
        while sum(j["cores"] for j in stay) > self.cores * (1.0 + SAME_WIDTH):
            stopped.append(stay.pop())
        free = self.cores - sum(j["cores"] for j in stay)
        out = {id(j): (j["cores"] if any(j is s for s in stay) else 0.0) for j in self.jobs}
        movable = [j for j in self.jobs if not any(j is other for other in (*stay, *stopped))]
        if movable and free >= 1.0 - SAME_WIDTH:
            asked = self.jobs if getattr(self.policy, "sees_all", False) else movable
            proposed = self.propose(asked, self.cores if asked is self.jobs else free)
            wishes = [w for j, w in zip(asked, proposed, strict=True) if any(j is m for m in movable)]
            for job, cores in zip(movable, self.legal(movable, wishes, free), strict=True):
                same = self.demanding and abs(cores - job["cores"]) <= SAME_WIDTH * job["cores"]
                out[id(job)] = job["cores"] if same else cores
        return [out[id(j)] for j in self.jobs]

    def propose(self, jobs, cores):
        present = Jobs.of(
            self.workload,
            np.array([j["class"] for j in jobs]),
            [self.expected(j) for j in jobs],
            weight=[j["weight"] for j in jobs] if self.weighted else None,
            age=[self.now - j["arrived"] for j in jobs],
            held=[j["cores"] for j in jobs],
            size=[j["size"] for j in jobs],
            restarts=[j["restarts"] for j in jobs],
        )
        if self.program is None:
            return self.policy.allocate(present, cores).cores
        # Tables are made once, for the most cores there are; a rule is told how many there are now.
        widths = np.zeros(len(jobs))
        rows = job_rows(present, present.class_index)
        self.program.rule(rows, float(cores), self.program.table.copy(), widths)
        return widths

    def expected(self, job):
        if self.known:
            return max(job["remaining"], 0.0)
        done = job["size"] - job["remaining"]
        return float(self.workload.classes[job["class"]].size.mean_remaining(np.array([done]))[0])

    def choices(self, job):
        """The allowed widths of a job that can move; None for any."""
        if job["type"].shape == "moldable" and job["chosen"] is not None:
            return [job["chosen"]]
        allowed = job["type"].allowed_widths.allowed(self.most)
        return None if allowed is None else [float(k) for k in allowed]

    def legal(self, jobs, wishes, free):
        """The wishes if they are allowed; else the nearest allowed widths, spare cores to those who wait."""
        for latest in range(len(wishes) - 1, -1, -1):
            if sum(wishes) > free + 1e-9:
                wishes[latest] = 0.0
        wishes = [
            round(w) if abs(w - round(w)) <= 1e-9 and self.choices(j) else w
            for j, w in zip(jobs, wishes, strict=True)
        ]
        bound = [(j, w) for j, w in zip(jobs, wishes, strict=True) if self.choices(j) is not None]
        if all(w == 0.0 or w in self.choices(j) for j, w in bound):
            return wishes
        budget = math.floor(
            free - sum(w for j, w in zip(jobs, wishes, strict=True) if self.choices(j) is None) + 1e-9
        )

        @functools.cache
        def best(first, room):
            """Least distance of jobs `first`, … within `room` cores, and the first's width: wide if tied."""
            if first == len(bound):
                return 0.0, 0.0
            job, wish = bound[first]
            options = [0.0, *(k for k in self.choices(job) if int(k) <= room)]
            ways = [
                (best(first + 1, room - int(k))[0] + (k - wish) ** 2 - 1e-9 * (k == job["cores"]), k)
                for k in options
            ]
            least = min(ways)[0]
            # A distance that is larger by rounding is as good.
            return [way for way in ways if way[0] - least <= 1e-12 * abs(way[0])][-1]

        found, room = {}, budget
        for first, (job, _) in enumerate(bound):
            found[id(job)] = best(first, room)[1]
            room -= int(found[id(job)])
        for job, _ in bound:
            narrowest = min(self.choices(job))
            if found[id(job)] == 0.0 and narrowest <= room:
                found[id(job)] = narrowest
                room -= int(narrowest)
        return [found.get(id(j), w) for j, w in zip(jobs, wishes, strict=True)]
