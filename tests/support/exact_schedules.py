"""The least cost of a few given jobs, exactly: one convex problem for each order of arrivals and departures.

In a fixed order the times of departures are unknowns, and what a job does between two events is its speed at
its mean width there, as speedups are concave: with core-time K in a stretch of length d it does at most
d·s(K/d), which is concave in both. s(k) = min(k, …) below one core is concave, too.
"""

from __future__ import annotations

import cvxpy as cp
import numpy as np


def orders(count):
    """All orders in which jobs that arrive as numbered can come and leave: pairs (job, whether it leaves)."""

    def extend(made, arrived, present):
        if arrived == count and not present:
            yield tuple(made)
        if arrived < count:
            yield from extend([*made, (arrived, False)], arrived + 1, present | {arrived})
        for job in sorted(present):
            yield from extend([*made, (job, True)], arrived, present - {job})

    yield from extend([], 0, frozenset())


def at_most(speedup, done, cores, length):
    """Constraints: `done` ≤ length·s(cores/length) for core-time `cores`."""
    kind, numbers = speedup
    below = [done <= cores]
    if kind == "power":
        return [*below, cp.PowCone3D(cores, length, done, numbers)]
    if kind == "amdahl":
        parts = cp.vstack([cp.quad_over_lin(done[i], length[i]) for i in range(done.size)])
        others = cp.vstack([cp.quad_over_lin(done[i], cores[i]) for i in range(done.size)])
        return [*below, numbers * cp.vec(parts, "C") + (1.0 - numbers) * cp.vec(others, "C") <= done]
    if kind == "rooftop":
        return [*below, done <= numbers * length]
    widths, speeds = map(np.array, zip(*numbers, strict=True))  # a concave table
    slopes = np.diff(speeds) / np.diff(widths)
    corners = zip(widths[:-1], speeds[:-1], slopes, strict=True)
    lines = [done <= s * length + slope * (cores - k * length) for k, s, slope in corners]
    return [*below, *lines, done <= speeds[-1] * length]


def least_cost(arrivals, sizes, weights, speedups, cores):
    """The cost Σ c (C − a) of the best schedule that knows everything."""
    return min(
        least_cost_in_order(order, arrivals, sizes, weights, speedups, cores)
        for order in orders(len(arrivals))
    )


def least_cost_in_order(order, arrivals, sizes, weights, speedups, cores):
    """The same among the schedules with this order of events; infinite if there are none."""
    lengths = cp.Variable(len(order) - 1, nonneg=True)
    times = [arrivals[0]]
    for e in range(len(order) - 1):
        times.append(times[-1] + lengths[e])
    constraints, cost, used = [], 0.0, [0.0] * (len(order) - 1)
    for place, (job, leaves) in enumerate(order):
        if not leaves:
            if place:
                constraints.append(times[place] == arrivals[job])
            continue
        since = order.index((job, False))
        stay = range(since, place)
        core_time, done = cp.Variable(len(stay), nonneg=True), cp.Variable(len(stay), nonneg=True)
        constraints += at_most(speedups[job], done, core_time, lengths[since:place])
        constraints.append(cp.sum(done) >= sizes[job])
        cost = cost + weights[job] * (times[place] - arrivals[job])
        for e in stay:
            used[e] = used[e] + core_time[e - since]
    constraints += [one <= cores * lengths[e] for e, one in enumerate(used)]
    problem = cp.Problem(cp.Minimize(cost), constraints)
    try:
        problem.solve(solver=cp.CLARABEL)
    except cp.error.SolverError:
        return np.inf
    return float(problem.value) if problem.status in {"optimal", "optimal_inaccurate"} else np.inf
