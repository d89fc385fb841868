"""The bound of restricted widths, and of cores that come and go: a linear programme, closed forms, runs."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog

import malleable
from malleable.contracts import Capacity, Policy
from malleable.errors import InfeasibleError, UnstableError
from malleable.model import Workload
from malleable.theory import relaxed
from malleable.theory.restricted_widths import RestrictedBuyers
from support import machine_workloads, random_jobs
from support import strategies as gen

LOAD = 0.55
"""Of the work at the most efficient widths."""
FAR = 3.0
"""A cost of so many bounds needs no longer run; policies that cannot bear the load would take very long."""


def restricted(seed, *, most=12):
    """A random workload in which every class has a choice of widths, at a load that some policy can bear."""
    rng = np.random.default_rng([seed, 77])
    cores = int(rng.integers(3, most + 1))
    described = machine_workloads.demanding(rng, random_jobs.workload(rng), cores, resize=False)
    buyers = RestrictedBuyers(described, cores, integer=True)
    return described.scaled(LOAD * cores / relaxed.least_cores(described, buyers)), cores


def linear_programme(workload, cores, mean_cores=None):
    """Least cost over shares of time: y_ik ≥ 0 is the mean number of class-i jobs on k cores.

    Σ_k s_i(k) y_ik = load_i (the work is done), Σ k y_ik ≤ n (the cores suffice), cost Σ c_i y_ik / λ.
    """
    costs, speeds, widths, owner = [], [], [], []
    for i, one in enumerate(workload.job_types):
        allowed = one.allowed_widths.allowed(cores)
        for k in np.arange(1.0, cores + 1.0) if allowed is None else allowed:
            costs.append(one.weight / workload.total_rate)
            speeds.append(float(one.speedup(k)))
            widths.append(float(k))
            owner.append(i)
    done = np.zeros((len(workload.classes), len(costs)))
    done[owner, range(len(costs))] = speeds
    found = linprog(
        costs,
        A_ub=[widths],
        b_ub=[cores if mean_cores is None else mean_cores],
        A_eq=done,
        b_eq=workload.loads,
        method="highs-ds",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    assert found.success
    return found.fun


@pytest.mark.parametrize("seed", range(40))
def test_a_linear_programme_agrees(seed):
    """The bound for whole cores is the least cost of a linear programme over (class, width), to 1e-9."""
    workload, cores = restricted(seed)
    assert malleable.bound(workload, cores).bound_integer == pytest.approx(
        linear_programme(workload, cores), rel=1e-9
    )


@pytest.mark.parametrize("seed", range(12))
def test_what_the_next_core_is_worth(seed):
    """It is the difference of two bounds, asked for on n and on n + 1 cores, and so of two programmes."""
    workload, cores = restricted(seed)
    here, more = malleable.bound(workload, cores), malleable.bound(workload, cores + 1)
    if not workload.restricted:
        assert "next_core_value" not in here.to_dict()
        return
    found = here.to_dict()
    scale = here.bound * 1e-12
    assert found["next_core_value"] == pytest.approx(here.bound - more.bound, abs=scale)
    assert found["next_core_saves"] == pytest.approx(
        workload.total_rate * found["next_core_value"], rel=1e-14
    )
    whole = linear_programme(workload, cores) - linear_programme(workload, cores + 1)
    if all(one.allowed_widths.allowed(cores) is not None for one in workload.job_types):
        assert found["next_core_value"] == pytest.approx(whole, abs=1e-8 * here.bound)


def test_a_core_that_only_allows_wider_jobs():
    """Where all jobs run on all n cores, core-time has the price 0, but one more core makes them faster."""
    sequential, rate, cost = 0.02, 0.05, 3.0
    row = gen.job_class("a", rate, 2.0, {"kind": "amdahl", "sequential": sequential}, cost) | {
        "widths": "whole"
    }
    found = malleable.bound(Workload.from_dict({"classes": [row]}), 128)
    assert found.price == found.core_value == 0.0
    at_128, at_129 = (2.0 * cost * (sequential + (1.0 - sequential) / n) for n in (128, 129))
    assert found.bound == pytest.approx(at_128, rel=1e-12)
    assert found.next_core_value == pytest.approx(at_128 - at_129, rel=1e-9)
    assert found.next_core_saves == pytest.approx(rate * (at_128 - at_129), rel=1e-9)


def check_above_unrestricted(seed):
    """Restrictions raise every bound, or leave it as it is."""
    workload, cores = restricted(seed)
    document = workload.to_dict()
    for row in document["classes"]:
        for key in ("shape", "width", "widths"):
            row.pop(key, None)
    free = malleable.bound(Workload.from_dict(document), cores)
    made = malleable.bound(workload, cores)
    assert made.bound >= free.bound * (1.0 - 1e-12)
    assert made.bound_capped >= free.bound_capped * (1.0 - 1e-12)
    assert made.bound_integer >= free.bound_integer * (1.0 - 1e-12)
    if workload.restricted:
        assert made.unrestricted == pytest.approx(free.bound, rel=1e-12)
        assert made.to_dict()["bound_unrestricted"] == made.unrestricted
    else:
        assert "bound_unrestricted" not in made.to_dict()


@pytest.mark.parametrize("seed", range(20))
def test_restrictions_only_raise_the_bound(seed):
    """It is no lower than the bound of jobs of any width, and that one stands beside it."""
    check_above_unrestricted(seed)


POLICIES = ("wham", "greedy", "equi", "fcfs", "easy", "hesrpt")


def check_below_costs(seed, lengths, policies=POLICIES, *, interpreted=False):
    """No policy costs less than the bound that it is held against, in runs of so many jobs."""
    workload, cores = restricted(seed)
    made = malleable.bound(workload, cores)
    for name in policies:
        low = made.tightest(whole_cores=Policy.of(name).whole_cores)[0]
        for jobs in lengths:
            try:
                result = malleable.simulate(
                    workload, cores, name, jobs=jobs, seed=seed, allow_unstable=True, interpreted=interpreted
                )
            except (InfeasibleError, UnstableError):
                break
            assert result.cost.mean + 2.0 * result.cost.half_width >= low, (name, jobs)
            if result.cost.mean > FAR * low:
                break


@pytest.mark.parametrize(
    "seed", [*range(9), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(9, 20))]
)
def test_below_simulated_costs(seed):
    """No policy costs less, up to twice the half-width of its interval."""
    check_below_costs(seed, [150], POLICIES[seed % 3 :: 3], interpreted=True)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(200))
def test_below_many_simulated_costs(seed):
    """The same on 200 workloads, in longer runs where costs are near, and above the unrestricted bound."""
    check_below_costs(seed, [2_000, 20_000])
    check_above_unrestricted(seed)


def test_rigid_jobs_have_no_choice():
    """Where all are rigid the bound is Σ λ c E[X]/s(k) / λ, and the load is that of these widths."""
    rows = [
        gen.job_class("a", 0.3, 2.0, {"kind": "power", "exponent": 0.5}, 3.0)
        | {"shape": "rigid", "width": 4},
        gen.job_class("b", 0.5, 1.0, {"kind": "amdahl", "sequential": 0.2}, 1.0)
        | {"shape": "rigid", "width": 2},
    ]
    workload = Workload.from_dict({"classes": rows})
    speeds = [2.0, 1.0 / (0.2 + 0.8 / 2.0)]
    cost = (0.3 * 3.0 * 2.0 / speeds[0] + 0.5 * 1.0 * 1.0 / speeds[1]) / 0.8
    made = malleable.bound(workload, 6)
    assert (made.bound, made.bound_capped, made.bound_integer) == pytest.approx((cost, cost, cost))
    assert made.widths == pytest.approx([4.0, 2.0])
    used = 0.3 * 2.0 * 4.0 / speeds[0] + 0.5 * 2.0 / speeds[1]
    assert made.effective_load == pytest.approx(used / 6.0)


# --- cores that come and go ---------------------------------------------------------------------------------

CAPACITIES = ("failures:nodes=4,up=20,down=5", "schedule:times=0/3/7,cores=8/2/4,period=10")


@pytest.mark.parametrize("capacity", CAPACITIES)
@pytest.mark.parametrize("seed", range(5))
def test_the_mean_number_of_cores_bounds(seed, capacity):
    """With cores that come and go the bound is that of their mean number, no job above n."""
    rng = np.random.default_rng(seed)
    workload = machine_workloads.demanding(rng, random_jobs.workload(rng), 8, resize=False).at(8, 0.1)
    mean = Capacity.of(capacity).mean_cores(8)
    made = malleable.bound(workload, 8, capacity=capacity)
    assert made.mean_cores == mean == made.to_dict()["mean_cores"]
    assert made.bound == relaxed.bound(workload, 8, mean).bound
    assert made.bound_integer == pytest.approx(linear_programme(workload, 8, mean), rel=1e-9)
    assert made.bound >= malleable.bound(workload, 8).bound


def paper_like(**keys):
    """Two plain classes at a load that half the cores can bear."""
    rows = [
        gen.job_class("a", 1.0, 1.0, {"kind": "power", "exponent": 0.6}, 1.0) | keys,
        gen.job_class("b", 0.5, 1.5, {"kind": "amdahl", "sequential": 0.3}, 2.0) | keys,
    ]
    return Workload.from_dict({"classes": rows}).at(8, 0.3)


@pytest.mark.parametrize("keys", [{}, {"widths": "powers-of-two"}], ids=["any", "powers-of-two"])
@pytest.mark.parametrize("capacity", CAPACITIES)
@pytest.mark.parametrize("name", ["wham", "fcfs", "equi"])
def test_no_cost_below_the_bound_of_changing_cores(name, capacity, keys):
    """Simulated costs lie above the bound; used and available cores are those of the run."""
    workload = paper_like(**keys)
    result = malleable.simulate(workload, 8, name, jobs=500, capacity=capacity, interpreted=True)
    made = malleable.bound(workload, 8, capacity=capacity)
    low = made.tightest(whole_cores=Policy.of(name).whole_cores)[0]
    assert result.cost.mean + 2.0 * result.cost.half_width >= low
    assert result.bound_tight == low
    assert result.mean_cores == pytest.approx(made.mean_cores, rel=0.1)
    assert 0.0 < result.utilisation < 1.0


def test_utilisation_is_of_the_cores_there_are():
    """One job that always runs on all cores uses all there are, however many these are."""
    workload = gen.one_class({"kind": "rooftop", "cores": 64.0}, rate=1.0).at(8, 0.999)
    schedule = {"kind": "schedule", "times": [0, 5], "cores": [8, 4], "period": 10}
    result = malleable.simulate(
        workload, 8, "wham", jobs=800, capacity=schedule, interpreted=True, allow_unstable=True
    )
    assert result.mean_cores == pytest.approx(6.0, rel=0.05)
    assert result.utilisation == pytest.approx(1.0, abs=0.02)
