"""`wham-discounted` against a naive twin written from its formulas, and where it must not lose."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq

from malleable import Jobs, compare
from malleable.contracts import Policy
from malleable.model import Workload, paper_workload
from malleable.paper.experiments.e10b_discounted.discounting import WORKLOADS, random_setting
from malleable.policies.wham import Wham
from malleable.policies.wham_discounted import WhamDiscounted, outlook
from support.examples import examples
from support.strategies import permuted

MIX = Workload.from_dict(WORKLOADS["four"])
HIGH = 1e6
"""A price that no job pays in these tests."""


class Twin:
    """The policy by its formulas: smooth speedups with s(1) = 1, one core the least, bisection throughout."""

    def __init__(self, jobs, cores, alpha=None):
        self.jobs, self.cores = jobs, float(cores)
        self.discount, self.long_run, spare = outlook(jobs.workload, cores)
        self.speedups = [jobs.workload.speedups[i] for i in jobs.class_index]
        self.alpha = (
            self.discount / (1.0 + self.discount * self.waiting() / spare) if alpha is None else alpha
        )
        self.all = list(range(len(jobs)))

    def waiting(self):
        """Work of those who would have none of n − 1 cores, by decreasing c/x."""
        queue = self.jobs.by(self.jobs.weight / self.jobs.remaining)
        return float(self.jobs.remaining[queue[int(self.cores) - 1 :]].sum())

    def pays(self, j, price, limit=None):
        """φ(l), and the speed at which it is paid."""
        c = float(self.jobs.weight[j])
        k = float(self.speedups[j].demand(price, c))
        k = k if limit is None else min(k, limit)
        s = float(self.speedups[j](k))
        return (c + price * k) / s, s

    def worth(self, j, price):
        """w(l)."""
        now, s = self.pays(j, price, self.cores)
        if price <= self.long_run:
            return now
        fair = self.pays(j, self.long_run)[0]
        return fair + math.exp(-self.alpha * self.jobs.remaining[j] / s) * (now - fair)

    def width(self, j, price, worth):
        """argmax of w·s(k) − l·k on [1, n], found where the slope of s is l/w."""
        slope = self.speedups[j].derivatives
        excess = lambda k: worth * float(slope(np.array([k]))[1][0]) - price  # noqa: E731
        if excess(1.0) <= 0.0:
            return 1.0
        if excess(self.cores) >= 0.0:
            return self.cores
        return brentq(excess, 1.0, self.cores, xtol=1e-13)

    def total(self, served, price, worth=None):
        worth = worth or self.worth
        return sum(self.width(j, price, worth(j, price)) for j in served)

    def index(self, j):
        """The price at which w(l) = l."""
        return brentq(lambda l: self.worth(j, l) - l, self.long_run, HIGH, xtol=1e-12, rtol=1e-14)

    def modest(self, j, price):
        """w at no more than the price that WHAM has without the job."""
        others = [i for i in self.all if i != j]
        if len(others) >= self.cores:
            return self.worth(j, price)
        wanted = lambda l: (  # noqa: E731
            sum(float(self.speedups[i].demand(l, self.jobs.weight[i])) for i in others) - self.cores
        )
        after = brentq(wanted, 1e-9, HIGH) if others else 0.0
        return self.worth(j, min(price, max(after, self.long_run)))

    def cleared(self, served):
        """Widths of the served at the price at which they want all cores."""
        if len(served) == self.cores:
            return dict.fromkeys(served, 1.0)
        # The search is in log price, and ends where the bracket is a few digits wide.
        low, high = math.log(1e-9), math.log(HIGH)
        for _ in range(200):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if self.total(served, math.exp(middle)) > self.cores else (low, middle)
        price = math.exp(high)
        return {j: self.width(j, price, self.worth(j, price)) for j in served}

    def allocate(self):
        wishes = (s.demand(self.long_run, c) for s, c in zip(self.speedups, self.jobs.weight, strict=True))
        if sum(map(float, wishes)) <= self.cores:
            return Wham().allocate(self.jobs, self.cores).cores
        index = np.array([self.index(j) for j in self.all])
        queue = [int(j) for j in self.jobs.by(index)]
        served = []
        for j in queue:
            if len(served) + 1 > self.cores:
                break
            if self.total(served, index[j], self.modest) + 1.0 > self.cores + 1e-9:
                break
            served.append(j)
        out = np.zeros(len(self.jobs))
        for j, k in self.cleared(served).items():
            out[j] = k
        return out


@st.composite
def situations(draw):
    """Jobs of the paper's classes or of the mix, on 3 to 12 cores, from few to twice as many as cores."""
    cores = draw(st.integers(3, 12))
    base = draw(st.sampled_from([MIX, paper_workload()]))
    workload = base.at(cores, draw(st.floats(0.2, 0.95)))
    size = draw(st.integers(1, 2 * cores))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    classes = rng.integers(0, len(workload.classes), size)
    sizes = rng.exponential(3.0 * workload.mean_sizes[classes]) + 1e-3
    return Jobs.of(workload, classes, sizes, age=rng.permutation(size).astype(float)), cores


@settings(max_examples=examples(16))
@given(situations(), st.one_of(st.none(), st.floats(0.01, 3.0)))
def test_the_policy_is_its_formulas(situation, alpha):
    """Widths agree with the naive twin, at the rule's α and at a given one, in and out of overload."""
    jobs, cores = situation
    found = WhamDiscounted(alpha).allocate(jobs, cores).cores
    np.testing.assert_allclose(found, Twin(jobs, cores, alpha).allocate(), rtol=1e-6, atol=1e-6)


@settings(max_examples=examples(16))
@given(situations(), st.randoms(use_true_random=False))
def test_the_order_of_the_list_does_not_matter(situation, random):
    """Permuting the jobs permutes the allocation, whoever is starved."""
    jobs, cores = situation
    order = list(range(len(jobs)))
    random.shuffle(order)
    direct = WhamDiscounted().allocate(jobs, cores).cores
    shuffled = WhamDiscounted().allocate(permuted(jobs, order), cores).cores
    np.testing.assert_allclose(shuffled, direct[order], rtol=1e-8, atol=1e-8)


@settings(max_examples=examples(16))
@given(situations())
def test_a_smaller_discount_is_nearer_to_wham(situation):
    """α → 0 gives WHAM, with an error that falls with α."""
    jobs, cores = situation
    wham = Wham().allocate(jobs, cores).cores
    errors = [np.abs(WhamDiscounted(a).allocate(jobs, cores).cores - wham).max() for a in (1e-5, 1e-8)]
    assume(errors[0] < 0.5)  # one starved at 1e-5 would be a job a hundred thousand long
    assert errors[1] <= 1e-2 * errors[0] + 1e-9


def test_own_speedups_and_weights_use_the_outlook_of_the_workload():
    """Jobs that bring the speedups and weights of their classes get what jobs of the classes get."""
    workload = MIX.at(8, 0.8)
    rng = np.random.default_rng(3)
    classes = rng.integers(0, 4, 9)
    sizes = rng.exponential(2.0, 9)
    plain = Jobs.of(workload, classes, sizes)
    own = Jobs.of(
        workload,
        classes,
        sizes,
        speedups=[workload.speedups[i] for i in classes],
        weight=workload.holding_costs[classes],
    )
    policy = WhamDiscounted()
    assert (policy.allocate(plain, 8).cores == 0.0).any()
    np.testing.assert_allclose(
        policy.allocate(own, 8).cores, policy.allocate(plain, 8).cores, rtol=1e-8, atol=1e-8
    )


def test_the_discount_rides_in_the_name():
    """`alpha` and `discount` are the same option; the rule is written as nothing."""
    assert Policy.of("wham-discounted:alpha=0.2") == Policy.of("wham-discounted:discount=0.2")
    assert Policy.of("wham-discounted").parameters() == {}


def relative(workload, cores, load, jobs):
    """The paired difference from WHAM and its 99 % interval, as shares of WHAM's cost."""
    found = compare(
        workload, cores, ["wham", "wham-discounted"], load=load, jobs=jobs, seed=12, confidence=0.99
    )
    (difference,), wham = found.differences, found.results[0].cost.mean
    return difference.low / wham, difference.high / wham


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "cores", "load"),
    [("equal", 4, 0.9), ("hyper", 4, 0.95), ("paper", 4, 0.8), ("equal", 12, 0.95), ("four", 3, 0.95)],
)
def test_it_does_not_lose_where_it_can_win_little(name, cores, load):
    """At high load and with equal weights it is not significantly dearer than WHAM."""
    workload = paper_workload() if name == "paper" else Workload.from_dict(WORKLOADS[name])
    assert relative(workload, cores, load, 300_000)[0] <= 5e-4


@pytest.mark.slow
@pytest.mark.parametrize("seed", [50_000, 50_001, 50_002])
def test_it_does_not_lose_on_random_workloads(seed):
    """Nor on random workloads."""
    document, cores, load = random_setting(seed)
    assert relative(Workload.from_dict(document), cores, load, 150_000)[0] <= 5e-4


@pytest.mark.slow
def test_it_gains_on_the_mix():
    """At load 0.8 it is cheaper by more than 2 % on 12 cores with four classes."""
    assert relative(MIX, 12, 0.8, 300_000)[1] < -0.02
