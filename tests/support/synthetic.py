"""Records with known answers, made without the simulator."""

from __future__ import annotations

import numpy as np

from malleable.distributions.exponential import Exponential
from malleable.engine.records import Records, bin_edges
from malleable.engine.rule_interface import BINS
from malleable.model import JobClass, Workload
from malleable.speedups.power import Power

PER_RECORD = ("departures", "response", "slowdown", "arrivals", "work", "area", "present")


def workload(rates=(1.0,), mean_sizes=None, costs=None):
    sizes = mean_sizes or [0.5] * len(rates)
    costs = costs or [1.0] * len(rates)
    rows = zip(rates, sizes, costs, strict=True)
    return Workload(
        "synthetic",
        tuple(
            JobClass(
                f"class-{i}", {"kind": "poisson", "rate": rate}, Exponential(1.0 / size), Power(0.5), cost
            )
            for i, (rate, size, cost) in enumerate(rows)
        ),
    )


def records(times, jobs=100.0, **given):
    """Records whose class-i jobs took `times[r, i]` on average; the rest are plausible constants."""
    times = np.asarray(times, dtype=float)
    times = times[:, None] if times.ndim == 1 else times
    size, classes = times.shape
    jobs = np.broadcast_to(np.asarray(jobs, dtype=float), times.shape).copy()
    duration = jobs.sum(axis=1)
    arrays = {
        "departures": jobs,
        "response": times * jobs,
        "slowdown": 2.0 * times * jobs,
        "arrivals": jobs,
        "work": 0.5 * jobs,
        "area": times * jobs,
        "present": times.copy(),
        "duration": duration,
        "used": duration.copy(),
        "overload": 0.1 * duration,
        "segment": np.floor(np.arange(size) * 8.0 / size),
        "response_histogram": np.broadcast_to(0.0, (8, classes, BINS)),
        "slowdown_histogram": np.broadcast_to(0.0, (8, classes, BINS)),
        "width_histogram": np.broadcast_to(0.0, (classes, BINS)),
    }
    return Records(**{**arrays, **given})


def ar1(rng, shape, phi):
    """Stationary AR(1) series of mean 0 and variance 1 along the first axis."""
    noise = rng.standard_normal(shape)
    series = np.empty(shape)
    series[0] = noise[0]
    for step in range(1, shape[0]):
        series[step] = phi * series[step - 1] + (1.0 - phi**2) ** 0.5 * noise[step]
    return series


def single_server(rng, jobs, load, each=50, scale=1.0, *, histograms=False):
    """M/M/1, first come first served, unit arrival rate: Lindley's recursion, cut into records by arrivals.

    `scale` multiplies the sizes and not the draws, so that two calls with one seed see the same jobs.
    """
    gaps, sizes = rng.exponential(size=jobs), rng.exponential(size=jobs) * load
    arrive, work = np.cumsum(gaps), sizes * scale
    # Lindley without a loop: the waiting time is a random walk minus its running minimum.
    walk = np.append(0.0, np.cumsum(work[:-1] - gaps[1:]))
    leave = arrive + walk - np.minimum.accumulate(walk) + work
    marks = arrive[each - 1 :: each]
    return _cut(arrive, leave, work, sizes, np.append(0.0, marks), histograms=histograms)


def _cut(arrive, leave, work, sizes, marks, *, histograms):
    """Sums between marks; jobs leave in the order in which they came."""

    def upto(times, values, side="right"):
        return np.append(0.0, np.cumsum(values))[np.searchsorted(times, marks, side=side)]

    ones = np.ones_like(arrive)
    came, left = upto(arrive, ones), upto(leave, ones)
    area = upto(leave, leave) - upto(arrive, arrive) + marks * (came - left)
    start = leave - work
    busy = upto(leave, work) + np.where(
        left < upto(start, ones), marks - upto(start, start) + upto(leave, start), 0
    )
    size, segments = len(marks) - 1, 8
    segment = np.floor(np.arange(size) * segments / size)
    of_job = segment[np.clip(np.searchsorted(marks, leave, side="left") - 1, 0, size - 1)]
    inside = leave <= marks[-1]

    def histogram(values):
        if not histograms:
            return np.broadcast_to(0.0, (segments, 1, BINS))
        kept = [values[inside & (of_job == s)] for s in range(segments)]
        return np.array([[np.histogram(k, bin_edges())[0]] for k in kept], dtype=float)

    def column(cumulated):
        return np.diff(cumulated)[:, None]

    response = leave - arrive
    return Records(
        departures=column(left),
        response=column(upto(leave, response)),
        slowdown=column(upto(leave, response / sizes)),
        arrivals=column(came),
        work=column(upto(leave, sizes)),
        area=column(area),
        present=(came - left)[1:, None],
        duration=np.diff(marks),
        used=np.diff(busy),
        overload=np.zeros(size),
        segment=segment,
        response_histogram=histogram(response),
        slowdown_histogram=histogram(response / sizes),
        width_histogram=np.histogram(ones, bin_edges(), weights=work)[0][None, :].astype(float),
    )
