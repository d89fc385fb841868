"""WHAM and GREEDY on restricted widths: against the enumeration of all divisions on small machines."""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import malleable
from malleable.contracts import Policy
from malleable.model import Workload
from malleable.model.jobs import Jobs
from malleable.policies.base import job_rows
from malleable.policies.rules.class_rules import WHAM, WORK
from malleable.policies.rules.gears import gear_rule, gear_table
from support import strategies as gen
from support.examples import examples

MOST_CORES = 8
STRICTLY_CONCAVE = ("power", "amdahl", "usl")
WIDTHS = st.one_of(
    st.sampled_from(["any", "whole", "powers-of-two"]),
    st.sets(st.integers(1, 4), min_size=1, max_size=3).map(sorted),
    st.fixed_dictionaries({"min": st.integers(1, 3), "step": st.integers(1, 3)}),
)


@st.composite
def restricted_jobs(draw, *kinds, widths=WIDTHS, max_jobs=5):
    """Jobs of one to three classes with a choice of widths, and a number of cores."""
    workload = draw(gen.workloads(*kinds, max_classes=3))
    document = workload.to_dict()
    for row in document["classes"]:
        row["widths"] = draw(widths)
    jobs = draw(gen.jobs_of(Workload.from_dict(document), max_jobs=max_jobs, min_jobs=1, weights=True))
    return jobs, draw(st.integers(4, MOST_CORES))


class Hull(NamedTuple):
    """The gears of a class, found by checking every width against every pair of others."""

    widths: list[float]
    speeds: list[float]


def gears_of(one, cores):
    """Allowed widths that no mixture of others beats, from the most efficient one to the fastest."""
    allowed = one.allowed_widths.allowed(cores)
    k = list(range(1, cores + 1)) if allowed is None else [int(width) for width in allowed]
    s = np.maximum.accumulate([float(one.speedup(width)) for width in k]).tolist()
    points = list(zip(k, s, strict=True))
    first = max(points, key=lambda p: (round(p[1] / p[0], 10), p[0]))
    kept = [first]
    for b, t in points:
        beaten = any(
            a < b and speed_a + (speed_c - speed_a) * (b - a) / (c - a) >= t * (1.0 - 1e-12)
            for a, speed_a in points
            for c, speed_c in points
            if c > b
        )
        slower = any(a < b and speed_a >= t * (1.0 - 1e-12) for a, speed_a in points)
        if b > first[0] and not beaten and not slower:
            kept.append((b, t))
    return Hull([b for b, _ in kept], [t for _, t in kept])


def collected(hull, weight, mode):
    """Value of being at each gear (no cores first): price times cores, summed over the steps up to it."""
    k, s = hull
    first = 0.0 if mode == WHAM else weight * s[0]
    values = [0.0, first]
    for gear in range(1, len(k)):
        step, gain = k[gear] - k[gear - 1], s[gear] - s[gear - 1]
        price = gain / (k[gear] * s[gear - 1] - k[gear - 1] * s[gear]) if mode == WHAM else gain / step
        values.append(values[-1] + weight * price * step)
    return np.array([0.0, *k]), np.array(values)


def best_value(choices, cores):
    """The most that any combination of gears within the cores collects."""
    widths = sum(np.ix_(*(k for k, _ in choices)), np.zeros(()))
    values = sum(np.ix_(*(v for _, v in choices)), np.zeros(()))
    return float(values[widths <= cores].max())


def run(jobs, cores, mode, weight):
    """The rule's cores for the jobs, in order of arrival."""
    rows, out = job_rows(jobs, jobs.class_index), np.zeros(len(jobs))
    gear_rule(rows, float(cores), gear_table(jobs.workload, cores, mode, weight), out)
    return out


def own_choices(jobs, cores, mode, by_cost):
    """Gears of each job in order of arrival, with what they collect."""
    found = []
    for j in jobs.order:
        hull = gears_of(jobs.workload.job_types[jobs.class_index[j]], cores)
        found.append(collected(hull, float(jobs.weight[j]) if by_cost else 1.0, mode))
    return found


@pytest.mark.parametrize(("mode", "weight"), [(WHAM, "c"), (WORK, "1"), (WORK, "c")])
def test_less_than_the_largest_step_is_lacking(mode, weight):
    """The rule collects the best index there is, less than the largest step it had to pass over.

    Prices of steps and the best combination are found by enumeration; who is served is as the rule admits,
    and who runs below gear 0 on what is left over counts for nothing.
    """

    @settings(max_examples=examples(48))
    @given(restricted_jobs(*STRICTLY_CONCAVE, "rooftop", "linear_power"))
    def check(situation):
        jobs, cores = situation
        out = run(jobs, cores, mode, weight)
        assert out.sum() <= cores
        choices = own_choices(jobs, cores, mode, by_cost=weight == "c")
        if mode == WHAM:  # those who are served have gear 0 at least, the others nothing
            choices = [
                (w[1:], v[1:]) if k in w[1:] else (w[:1], v[:1])
                for k, (w, v) in zip(out, choices, strict=True)
            ]
            cores -= sum(k for k, (w, _) in zip(out, choices, strict=True) if k not in w)
        places = [int(np.argmax(w == k)) for k, (w, _) in zip(out, choices, strict=True)]
        got = sum(float(v[gear]) for gear, (_, v) in zip(places, choices, strict=True))
        lacks = best_value(choices, cores) - got
        passed = [
            float(v[gear + 1] - v[gear])
            for gear, (w, v) in zip(places, choices, strict=True)
            if gear + 1 < len(w)
        ]
        rounding = 1e-9 * max(1.0, got)
        assert lacks <= rounding or lacks < max(passed) + rounding

    check()


@pytest.mark.parametrize("weight", ["1", "c"])
def test_greedy_is_exact_on_whole_widths(weight):
    """On whole widths with strictly concave speedups no division has a greater Σ w·s(k) than the gears."""

    @settings(max_examples=examples(32))
    @given(restricted_jobs(*STRICTLY_CONCAVE, widths=st.just("whole"), max_jobs=3))
    def check(situation):
        jobs, cores = situation
        out = run(jobs, cores, WORK, weight)
        weights = jobs.weight[jobs.order] if weight == "c" else np.ones(len(jobs))
        speedups = [jobs.workload.speedups[i] for i in jobs.class_index[jobs.order]]

        def value(widths):
            return sum(w * float(s(k)) for w, s, k in zip(weights, speedups, widths, strict=True))

        every = itertools.product(range(cores + 1), repeat=len(jobs))
        assert value(out) == pytest.approx(max(value(k) for k in every if sum(k) <= cores), rel=1e-9)

    check()


@settings(max_examples=examples(48))
@given(restricted_jobs(*STRICTLY_CONCAVE, widths=st.just("any"), max_jobs=8), st.integers(1, 20))
def test_whole_widths_are_those_of_wham_integer(situation, cores):
    """WHAM on whole widths gives as wham-integer does on jobs of any width: the same widths per class.

    Within a class the two may serve jobs of equal price in another order.
    """
    jobs, _ = situation
    assume(not jobs.own_weights)
    document = jobs.workload.to_dict()
    for row in document["classes"]:
        row["widths"] = "whole"
    whole = Jobs.of(Workload.from_dict(document), jobs.class_index, jobs.remaining, age=jobs.age)
    plain = Policy.of("wham-integer").allocate(jobs, cores).cores
    geared = malleable.allocate(whole.workload, whole, cores).cores
    assert geared.sum() == plain.sum()
    costs = jobs.workload.holding_costs
    if len(set(costs)) == len(costs):
        for i in range(len(costs)):
            of_class = jobs.class_index == i
            assert sorted(geared[of_class]) == sorted(plain[of_class])


@settings(max_examples=examples(40))
@given(restricted_jobs("power", "amdahl", "rooftop", "linear_power", "table"), st.booleans())
def test_no_core_is_idle_that_a_waiting_job_could_use(situation, greedy):
    """A job waits only if not even its narrowest width is free."""
    jobs, cores = situation
    out = malleable.allocate(jobs.workload, jobs, cores, "greedy:weight=c" if greedy else "wham").cores
    spare = cores - out.sum()
    for j in np.flatnonzero(out == 0.0):
        allowed = jobs.workload.job_types[jobs.class_index[j]].widths_on(cores)
        assert (1.0 if allowed is None else allowed[0]) > spare
