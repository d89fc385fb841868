"""The discounted single-armed bandit against brute force, its limits, and the Whittle policy against WHAM."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from malleable.contracts import Policy
from malleable.errors import MalleableError, ParameterError
from malleable.model import paper_workload
from malleable.model.jobs import Jobs
from malleable.policies.wham import Wham
from malleable.policies.whittle import Whittle
from malleable.speedups.amdahl import Amdahl
from malleable.speedups.power import Power
from malleable.speedups.table import Table
from malleable.speedups.usl import Usl
from malleable.theory.whittle import Indexability, indexability, optimal_action, whittle_index
from support.examples import examples
from support.strategies import CONCAVE, FAST, SMOOTH, cases, jobs_of, numbers, permuted, speedups, workloads

LIMIT = 512.0
WIDTHS = np.unique(np.concatenate([np.geomspace(1.0, LIMIT, 400), np.arange(1.0, 65.0)]))
ARMS = pytest.mark.parametrize("constant", [False, True], ids=["optimal", "constant"])
DISCOUNTS = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6)
quick = settings(max_examples=examples(12))


def cost(speed, k, x, c, l, discount):
    """The formula of the paper, action 0 included."""
    return np.where(k > 0.0, (c + l * k / discount) * -np.expm1(-discount * x / speed), c)


# --- the single arm --------------------------------------------------------------------------------------


@settings(max_examples=examples(48))
@given(
    case=st.one_of([cases(kind) for kind in (*FAST, "custom")]),
    x=numbers(1e-3, 1e3),
    c=numbers(0.1, 10.0),
    l=numbers(1e-6, 1e3),
    discount=numbers(1e-6, 10.0),
)
def test_a_constant_action_is_the_global_minimum(case, x, c, l, discount):
    """No action on a fine grid of {0} ∪ [1, limit] costs less, whatever the family and its valleys."""
    k = float(optimal_action(case.speedup, x, c, l, discount, limit=LIMIT, constant=True))
    assert k == 0.0 or 1.0 <= k <= LIMIT
    speeds = np.array([case.reference(width) for width in WIDTHS])
    best = min(c, cost(speeds, WIDTHS, x, c, l, discount).min())
    assert cost(case.reference(max(k, 1.0)), k, x, c, l, discount) <= best * (1.0 + 1e-11)


@ARMS
@quick
@given(
    speedup=speedups(*FAST, "custom"),
    x=numbers(1e-3, 1e2),
    c=numbers(0.1, 10.0),
    discount=numbers(1e-6, 10.0),
)
def test_a_job_is_served_exactly_below_its_index(constant, speedup, x, c, discount):
    """The index is the price of indifference: served just below it, waiting just above it."""
    index = whittle_index(speedup, x, c, discount, limit=LIMIT, constant=constant)
    if index > 1e-250:
        around = index * np.array([0.5, 1.0 - 1e-9, 1.0 + 1e-9, 2.0])
        actions = optimal_action(speedup, x, c, around, discount, limit=LIMIT, constant=constant)
        assert (actions > 0.0).tolist() == [True, True, False, False]


@ARMS
def test_actions_are_vectorised_over_jobs(constant):
    """Arrays of jobs give what the jobs give one by one; scalars give a scalar."""
    x, c, l = np.array([0.1, 3.0, 40.0]), np.array([1.0, 2.0, 0.5]), np.array([0.2, 0.01, 1e-4])
    together = optimal_action(Usl(0.1, 1e-3), x, c, l, 0.1, constant=constant)
    alone = [
        optimal_action(Usl(0.1, 1e-3), *job, 0.1, constant=constant) for job in zip(x, c, l, strict=True)
    ]
    assert np.allclose(together, alone, rtol=1e-12, atol=0.0)
    assert np.shape(alone[0]) == ()


def test_long_jobs_that_hold_their_cores_jump_past_one():
    """With αx = 10 and s = √k the cost has two valleys, and at its index a job jumps from 0 to many cores."""
    index = whittle_index(Power(0.5), 10.0, 1.0, 1.0, constant=True)
    k = optimal_action(Power(0.5), 10.0, 1.0, index * (1.0 - 1e-12), 1.0, constant=True)
    u = 10.0 / math.sqrt(k)
    # Setting the derivative of k(e^u − 1) to zero: u/(1 − e^{−u}) = 2.
    assert u / -math.expm1(-u) == pytest.approx(2.0, rel=1e-5)
    assert k > 30.0


@ARMS
@quick
@given(speedup=speedups(*SMOOTH), x=numbers(0.01, 100.0), c=numbers(0.1, 10.0), ratio=numbers(0.01, 100.0))
def test_fixed_price_limit_is_one_core_or_none(constant, speedup, x, c, ratio):
    """α → 0 at a fixed price: one core if l < c/x, else none."""
    if abs(ratio - 1.0) > 1e-6:
        action = optimal_action(speedup, x, c, ratio * c / x, 1e-13, constant=constant)
        assert action == (1.0 if ratio < 1.0 else 0.0)


@ARMS
@quick
@given(speedup=speedups(*SMOOTH), x=numbers(0.01, 100.0), c=numbers(0.1, 10.0), rent=numbers(1e-4, 1e4))
def test_vanishing_price_limit_is_whams_demand(constant, speedup, x, c, rent):
    """α → 0 at l = α·r: the width is g(r), to many digits although the costs vanish with α."""
    action = optimal_action(speedup, x, c, 1e-14 * rent, 1e-14, constant=constant)
    assert action == pytest.approx(float(speedup.demand(rent, c)), rel=1e-8)


@ARMS
@pytest.mark.parametrize("discount", [1e-4, 0.05, 1.0, 20.0])
@pytest.mark.parametrize(
    "speedup",
    [
        Power(0.3),
        Power(0.95),
        Amdahl(0.02),
        Usl(0.05, 1e-3),
        Table((1.0, 2.0, 4.0, 8.0, 16.0), (1.0, 1.9, 2.5, 5.0, 4.0), hull=True),
        Table((1.0, 2.0, 4.0), (1.0, 1.1, 3.9)),
    ],
    ids=repr,
)
def test_every_job_is_indexable(speedup, discount, constant):
    """Actions never rise with the price and are widest when cores are free, for short and very long jobs."""
    x = np.geomspace(1e-3, 1e3, 40)
    found = indexability(speedup, x, 2.0, discount, np.geomspace(1e-12, 1e6, 300), constant=constant)
    assert found.holds
    assert found.worst_rise <= 1e-9
    assert found.free_share == pytest.approx(1.0)


def test_an_indexability_violation_is_reported():
    """A rise, or cores refused although free, makes the check fail."""
    assert not Indexability(worst_rise=0.1, price=1.0, free_share=1.0).holds
    assert not Indexability(worst_rise=0.0, price=1.0, free_share=0.5).holds


# --- the policy ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("jobs", "cores"), [(9, 64), (20, 20), (40, 20), (30, 7.5), (1, 12)])
@pytest.mark.parametrize("seed", range(3))
def test_whittle_converges_to_wham(jobs, cores, seed):
    """α → 0 gives WHAM, with an error that shrinks in proportion to α, for N <, = and > n."""
    rng = np.random.default_rng(seed)
    present = Jobs.of(paper_workload(), rng.integers(0, 3, jobs), rng.exponential(1.0, jobs))
    wham = Wham().allocate(present, cores).cores
    errors = [np.abs(Whittle(a).allocate(present, cores).cores - wham).max() for a in DISCOUNTS]
    assert all(b <= 0.2 * a + 1e-11 for a, b in itertools.pairwise(errors))
    assert errors[-1] < 1e-4


@quick
@given(data=st.data())
def test_whittle_converges_to_wham_whatever_the_blocks(data):
    """Also for speedups with a linear start, whose blocks of cores may have to be split."""
    workload = data.draw(workloads("power", "amdahl", "rooftop", "linear_power"))
    jobs = data.draw(jobs_of(workload, min_jobs=1))
    cores = data.draw(st.integers(1, 40)) + 0.3
    wham = Wham().allocate(jobs, cores).cores
    assert np.allclose(Whittle(1e-9).allocate(jobs, cores).cores, wham, rtol=1e-5, atol=1e-5)


def check_sound(jobs, cores, allocation, *, whole):
    """What every allocation must fulfil: total ≤ n, no part of a core, no idle core that would help."""
    k = allocation.cores
    assert k.sum() <= cores + 1e-9
    assert np.all((k == 0.0) | (k >= 1.0))
    if whole:
        assert np.array_equal(k, np.round(k))
    idle = (math.floor(cores) if whole else cores) - k.sum()
    for width, position in zip(k, jobs.speedup_index, strict=True):
        speedup = jobs.speedups[position]
        if width > 0.0 and idle > 1e-6:
            assert speedup(width + idle) <= speedup(width) * (1.0 + 1e-9)


@ARMS
@settings(max_examples=examples(20))
@given(data=st.data())
@pytest.mark.parametrize("whole", [False, True])
def test_no_core_idles_that_a_served_job_can_use(data, whole, constant):
    """At any discount: total ≤ n, widths 0 or ≥ 1, and the total is n unless no served job can use more."""
    workload = data.draw(workloads(*FAST))
    jobs = data.draw(jobs_of(workload, weights=True))
    cores = data.draw(numbers(1.0, 60.0))
    policy = Whittle(data.draw(numbers(1e-6, 100.0)), "constant" if constant else "optimal")
    check_sound(jobs, cores, policy.allocate(jobs, cores, integer=whole), whole=whole)


@ARMS
@quick
@given(data=st.data())
def test_price_is_the_smallest_that_clears(data, constant):
    """Just above the price optimal actions fit into n cores, just below it they do not (the definition)."""
    workload = data.draw(workloads(*CONCAVE))
    jobs = data.draw(jobs_of(workload, min_jobs=1))
    cores = data.draw(numbers(1.0, 40.0))
    discount = data.draw(numbers(1e-4, 1.0))
    price = Whittle(discount, "constant" if constant else "optimal").allocate(jobs, cores).price

    def total(l):
        return sum(
            float(optimal_action(jobs.speedups[i], x, c, l, discount, limit=cores, constant=constant))
            for i, x, c in zip(jobs.speedup_index, jobs.remaining, jobs.weight, strict=True)
        )

    assert total(price * (1.0 + 1e-7)) <= cores * (1.0 + 1e-9)
    if price > 0.0:
        assert total(price * (1.0 - 1e-7)) >= cores * (1.0 - 1e-9)


def test_price_is_the_smallest_also_where_demand_is_flat():
    """N = n: one core each at any price from Θ(α) to Θ(1); the smallest is where a job wants more."""
    present = Jobs.of(paper_workload(), [0, 0, 2, 2], [0.1, 0.2, 0.3, 0.4])
    allocation = Whittle(1e-6).allocate(present, 4)
    assert allocation.cores.tolist() == [1.0] * 4
    # Amdahl's class wants more than one core below c·f(1) = (1 − q)/q = 4, the power class below 3/7.
    assert allocation.price == pytest.approx(4e-6, rel=1e-5)


@quick
@given(data=st.data())
def test_permuting_jobs_permutes_the_allocation(data):
    """The order of rows does not matter."""
    workload = data.draw(workloads("power", "amdahl", "usl", "linear_power"))
    jobs = data.draw(jobs_of(workload, weights=True, min_jobs=1))
    cores = data.draw(numbers(1.0, 40.0))
    order = data.draw(st.permutations(range(len(jobs))))
    policy = Whittle(data.draw(numbers(1e-4, 1.0)))
    direct = policy.allocate(jobs, cores).cores
    shuffled = policy.allocate(permuted(jobs, order), cores).cores
    assert np.allclose(shuffled, direct[order], rtol=1e-7, atol=1e-7)


@quick
@given(data=st.data())
def test_own_speedups_are_priced_like_those_of_classes(data):
    """Jobs that bring their speedup get what jobs of a class with that speedup get."""
    workload = data.draw(workloads(*FAST, "custom"))
    jobs = data.draw(jobs_of(workload, min_jobs=1))
    own = [workload.speedups[i] for i in jobs.class_index]
    same = Jobs.of(workload, jobs.class_index, jobs.remaining, age=jobs.age, speedups=own)
    cores = data.draw(numbers(1.0, 40.0))
    assert np.allclose(
        Whittle().allocate(same, cores).cores, Whittle().allocate(jobs, cores).cores, rtol=1e-7, atol=1e-7
    )


def test_every_job_is_served_when_jobs_are_few_and_the_discount_is_small():
    """N ≤ n and a small α: no job waits, also on whole cores."""
    rng = np.random.default_rng(5)
    for jobs in range(1, 25):
        present = Jobs.of(paper_workload(), rng.integers(0, 3, jobs), rng.exponential(1.0, jobs))
        for whole in (False, True):
            given_cores = Whittle(1e-4).allocate(present, 24, integer=whole).cores
            assert np.all(given_cores >= 1.0)
            assert given_cores.sum() == pytest.approx(24.0)


def test_equal_jobs_do_not_wait_for_each_other():
    """Ties go by arrival, one job at a time: 30 equal jobs on 20 cores use all of them."""
    present = Jobs.of(paper_workload(), [0] * 30, [1.0] * 30, age=list(range(30)))
    widths = Whittle().allocate(present, 20).cores
    assert widths.tolist() == [0.0] * 10 + [1.0] * 20


def test_extreme_jobs_do_no_harm():
    """No jobs, finished jobs and jobs far beyond the horizon 1/α get an answer without a warning."""
    workload = paper_workload()
    assert len(Whittle().allocate(Jobs.of(workload, [], []), 4).cores) == 0
    for sizes in ([0.0, 0.0, 0.0], [0.0, 1.0, 1e9], [1e9, 1e9, 2e9], [1e-300, 1e300, 1.0]):
        for cores in (1, 2, 100):
            for whole in (False, True):
                jobs = Jobs.of(workload, [0, 1, 2], sizes)
                check_sound(jobs, cores, Whittle().allocate(jobs, cores, integer=whole), whole=whole)


def test_the_discount_rides_in_the_name():
    """`discount` and `alpha` are the same option, and the default is written as nothing."""
    assert Policy.of("whittle:discount=0.2") == Policy.of("whittle:alpha=0.2") == Whittle(0.2)
    assert Policy.of("whittle").parameters() == {}


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf, "fast"])
def test_bad_discounts_are_refused(bad):
    """The discount must be a positive finite number, everywhere it is asked for."""
    with pytest.raises(ParameterError, match="discount"):
        Whittle(bad)
    with pytest.raises(ParameterError, match="discount"):
        optimal_action(Power(0.5), 1.0, 1.0, 1.0, bad)
    with pytest.raises(MalleableError, match="alpha"):
        Policy.of(f"whittle:alpha={bad}")


@pytest.mark.parametrize(
    ("x", "c", "l", "name"),
    [
        (-1.0, 1.0, 1.0, "remaining"),
        (math.nan, 1.0, 1.0, "remaining"),
        (1.0, 0.0, 1.0, "weight"),
        (1.0, [1.0, math.inf], 1.0, "weight"),
        (1.0, 1.0, -2.0, "price"),
    ],
)
def test_bad_jobs_and_prices_are_refused(x, c, l, name):
    """An error names the argument and the value."""
    with pytest.raises(ParameterError, match=f"{name}: must be finite"):
        optimal_action(Power(0.5), x, c, l, 0.1)
    with pytest.raises(ParameterError, match="limit"):
        whittle_index(Power(0.5), 1.0, 1.0, 0.1, limit=0.5)
