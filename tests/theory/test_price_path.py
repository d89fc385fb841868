"""The bound for given jobs: exact optima, every policy's cost, V*, single jobs by brute force, and blame."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

import malleable
from malleable.contracts import Policy
from malleable.engine.kernels import price_kernel
from malleable.engine.machines import machine
from malleable.engine.replaying import replay_jobs
from malleable.errors import JobsError, ParameterError
from malleable.model import Workload, paper_workload
from malleable.model.job_list import JobList
from malleable.policies.base.asking import simulated
from malleable.simulation.given import ready
from malleable.simulation.jobs_bound import drawn_jobs
from malleable.theory import relaxed
from malleable.theory.own_schedules import OwnSchedules
from malleable.theory.price_path import blame, bound_for_jobs
from malleable.traces import malleabilise, read_trace
from support import machine_workloads, random_jobs
from support.exact_schedules import least_cost
from support.logs import NASA, real

POLICIES = (
    *("wham", "equi", "greedy", "srpt", "fcfs", "hesrpt", "wham-integer", "hell", "smartfill", "lpf"),
    *("wham-fitted", "greedy-star", "wham-steady", "easy", "sia", "wham-discounted:alpha=0.3", "knee"),
)
SURE = 1.0 + 1e-9


def tiny(seed, most=4):
    """Two to four jobs with speedups of all sorts and their own weights, and what cvxpy is told of them."""
    rng = np.random.default_rng([seed, 25])
    count, cores = int(rng.integers(2, most + 1)), float(rng.choice([1.0, 2.0, 3.0, 4.0, 8.0, 16.0]))
    rows, told = [], []
    for i in range(count):
        kind = str(rng.choice(["power", "amdahl", "rooftop", "table"]))
        if kind == "table":
            widths = np.cumsum(np.append(1.0, rng.uniform(0.5, 3.0, 3)))
            slopes = np.sort(rng.uniform(0.05, 0.95, 3))[::-1]
            speeds = 1.0 + np.append(0.0, np.cumsum(np.diff(widths) * slopes))
            parameters = {"cores": widths.tolist(), "speedup": speeds.tolist()}
            told.append((kind, list(zip(widths, speeds, strict=True))))
        else:
            name, low, high = {
                "power": ("exponent", 0.2, 0.95),
                "amdahl": ("sequential", 0.02, 0.6),
                "rooftop": ("cores", 1.0, 6.0),
            }[kind]
            parameters = {name: float(rng.uniform(low, high))}
            told.append((kind, parameters[name]))
        rows.append(
            {
                "name": f"job-{i}",
                "arrivals": {"kind": "poisson", "rate": 1.0},
                "size": {"kind": "exponential", "mean": 1.0},
                "speedup": {"kind": kind, **parameters},
                "holding_cost": float(np.exp(rng.uniform(-1.0, 1.0))),
            }
        )
    times = np.append(0.0, np.cumsum(rng.exponential(0.3, count - 1)))
    workload = Workload.from_dict({"name": "tiny", "classes": rows})
    return JobList(workload, times, np.arange(count), rng.exponential(1.0, count) + 0.05), told, cores


def share_of_optimum(seed, most=4):
    """The bound as a share of the least cost that any schedule can have."""
    jobs, told, cores = tiny(seed, most)
    return bound_for_jobs(jobs, cores, threads=1).bound / least_cost(
        jobs.times, jobs.sizes, jobs.weight, told, cores
    )


def test_the_bound_is_just_below_the_exact_optimum_of_tiny_systems():
    """Two and three jobs: never above the best of one convex problem per order of events, and near it."""
    shares = [share_of_optimum(seed, most=3) for seed in (0, 3, 4, 5)]
    assert max(shares) <= 1.0 + 1e-6  # of the convex solver
    assert np.mean(shares) >= 0.99


@pytest.mark.slow
def test_the_bound_is_just_below_the_exact_optimum_of_200_systems():
    """Two to four jobs."""
    shares = [share_of_optimum(seed) for seed in range(200)]
    assert max(shares) <= 1.0 + 1e-6
    assert np.mean(shares) >= 0.99
    assert min(shares) >= 0.9


def random_list(seed, count, *, demanding=False):
    """Jobs of a random workload with weights of their own (of three kinds), and cores."""
    workload, cores, jobs = random_jobs.instance([seed, 25], count)
    rng = np.random.default_rng([seed, 26])
    if demanding:
        workload = machine_workloads.demanding(rng, workload, cores)
    factor = rng.choice([0.5, 1.0, 4.0], count) if seed % 2 else np.ones(count)
    weights = workload.holding_costs[jobs.classes] * factor
    return JobList(workload, jobs.times, jobs.classes, jobs.sizes, weights=weights), cores


def check_policies(jobs, cores, names, *, interpreted=True):
    """No policy costs less than the bound, and what it costs more splits into terms of at least 0."""
    bound = bound_for_jobs(jobs, cores, threads=1)
    assert bound.bound >= bound.by_prices
    assert bound.rent == pytest.approx(cores * float(np.diff(bound.edges) @ bound.prices), rel=1e-9)
    for name in names:
        to_run = ready(Policy.of(name), jobs, cores)
        run = replay_jobs(
            to_run.workload, cores, to_run.program, to_run.jobs, interpreted=interpreted, prices=bound.path
        )
        cost = float(jobs.weight @ (run.log.ends - jobs.times))
        assert cost * SURE >= bound.bound, name
        parts = blame(bound, jobs, run.log.ends, run.log.rents)
        assert parts.total == pytest.approx(cost - bound.by_prices, abs=1e-9 * cost)
        assert parts.regrets.min() >= -1e-9 * float(bound.own.max()), name
        assert parts.idle >= -1e-9 * cost


def check_random(seed, count, demanding, interpreted=True):
    jobs, cores = random_list(seed, count, demanding=demanding)
    rng = np.random.default_rng([seed, 27])
    known = ["srpt", "wham-integer", "easy", "fcfs"] if demanding else list(POLICIES)
    check_policies(jobs, cores, rng.permutation(known)[:3], interpreted=interpreted)


@pytest.mark.parametrize("seed", range(8))
def test_no_policy_beats_the_bound_and_blame_sums_to_the_gap(seed):
    """Random workloads, loads from .1 to 1.2, ties, weights of single jobs; half of them with demands."""
    check_random(seed, 40, demanding=seed % 2 == 0)


@pytest.mark.slow
@pytest.mark.parametrize("demanding", [False, True])
@pytest.mark.parametrize("seed", range(100))
def test_no_policy_beats_the_bound_on_many_workloads(seed, demanding):
    """The same, compiled, on ten times as many jobs."""
    check_random(1000 + seed, 400, demanding, interpreted=False)


@real
@pytest.mark.parametrize("speedup", ["amdahl:sequential=0.05", "power:exponent=0.7"])
def test_no_policy_beats_the_bound_on_a_log(speedup):
    """The NASA log, all jobs malleable: WHAM, EQUI and FCFS lie above the bound, WHAM by a few per cent."""
    jobs = malleabilise(read_trace(NASA), speedup=speedup)
    check_policies(jobs, 128, ("wham", "equi", "fcfs"), interpreted=False)


@real
@pytest.mark.slow
@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_no_policy_beats_the_bound_on_a_log_with_rigid_jobs(share):
    """The NASA log with none, half and all of its jobs malleable."""
    jobs = malleabilise(read_trace(NASA), malleable=share)
    check_policies(jobs, 128, ("fcfs", "easy", "srpt"), interpreted=False)


def constant_price(workload, cores, price, sizes):
    """What jobs of these sizes cost by themselves at one price for a long time."""
    jobs = JobList(workload, np.zeros(len(sizes)), np.arange(len(sizes)) % len(workload.classes), sizes)
    own = OwnSchedules(jobs, cores, threads=1)
    found = own.at(np.array([0.0, 200.0]), np.array([price]), step=1e-5)
    return jobs, found


@pytest.mark.parametrize(("cores", "load"), [(4, 0.9), (16, 0.25), (64, 0.9)])
def test_a_constant_price_on_stationary_averages_gives_the_bound_of_averages(cores, load):
    """Σ load_i φ_i(l*) − l* n per unit of time, with a job's cost in proportion to its size, is λV*."""
    workload = paper_workload(cores, load)
    lowest = relaxed.bound(workload, cores)
    price = relaxed.relax(workload, relaxed._buyers(workload, cores), cores).price
    jobs, found = constant_price(workload, cores, price, np.array([1.0, 1.0, 1.0, 0.1, 5.0, 0.3]))
    per_work = found.costs / jobs.sizes
    np.testing.assert_allclose(per_work[3:], per_work[:3], rtol=1e-9)
    per_job = (workload.loads @ per_work[:3] - price * cores) / workload.total_rate
    assert per_job == pytest.approx(lowest.bound_capped, rel=1e-9)


def brute_force(speedup, cores, arrival, weight, size, edges, prices):
    """min over C of max over p of F(C, p), with h by a search over widths on a fine grid."""
    widths = np.linspace(0.0, cores, 601)
    speeds = np.asarray(speedup(widths))

    def cost(end):
        lengths = np.clip(np.minimum(edges[1:], end) - np.maximum(edges[:-1], arrival), 0.0, None)
        beyond = max(end - max(edges[-1], arrival), 0.0)

        def less(log_p):
            p = np.exp(log_p)
            gains = np.max(p * speeds[:, None] - widths[:, None] * prices, axis=0)
            return -(p * size - lengths @ gains - beyond * p * speeds[-1])

        return weight * (end - arrival) - minimize_scalar(less, bounds=(-8.0, 5.0), method="bounded").fun

    ends = np.linspace(arrival + 1e-6, edges[-1] + 2.0, 120)
    values = [cost(end) for end in ends]
    best = int(np.argmin(values))
    return minimize_scalar(
        cost, bounds=(ends[max(best - 1, 0)], ends[min(best + 1, 119)]), method="bounded"
    ).fun


@pytest.mark.parametrize("seed", range(2))
def test_what_a_job_costs_by_itself_agrees_with_brute_force(seed):
    """Random price paths: never above the least over ends of the best multiplier, and within .001 of it."""
    rng = np.random.default_rng([seed, 28])
    kind = ({"kind": "power", "exponent": 0.6}, {"kind": "amdahl", "sequential": 0.1})[seed % 2]
    workload = Workload.from_dict(
        {
            "name": "one",
            "classes": [
                {
                    "arrivals": {"kind": "poisson", "rate": 1.0},
                    "size": {"kind": "exponential", "mean": 1.0},
                    "speedup": kind,
                }
            ],
        }
    )
    edges = np.append(0.0, np.cumsum(rng.exponential(0.2, 9)))
    prices = rng.exponential(1.0, 9)
    times, sizes = np.sort(rng.uniform(0.0, 1.0, 3)), rng.exponential(1.0, 3)
    weights = rng.uniform(0.3, 3.0, 3)
    jobs = JobList(workload, times, np.zeros(3), sizes, weights=weights)
    found = OwnSchedules(jobs, 6.0, threads=1).at(edges, prices, step=0.005).costs
    exact = [
        brute_force(workload.speedups[0], 6.0, *job, edges, prices)
        for job in zip(times, weights, sizes, strict=True)
    ]
    assert (found <= np.array(exact) * (1.0 + 1e-5)).all()
    np.testing.assert_allclose(found, exact, rtol=1e-3)


def test_the_kernel_says_the_same_uncompiled_in_threads_and_in_short_rings(monkeypatch):
    """Compiled, interpreted, by several threads and with a ring that must grow: the same numbers."""
    jobs = drawn_jobs(paper_workload(8, 0.6), 300, 1)
    rng = np.random.default_rng(4)
    edges = np.linspace(0.0, float(jobs.times[-1]) + 1.0, 200)
    prices = rng.exponential(0.3, 199) + 1e-3
    own = OwnSchedules(jobs, 8.0, threads=1)
    one = own.at(edges, prices, step=0.1)
    monkeypatch.setattr("malleable.theory.own_schedules.PIECE", 16)
    monkeypatch.setattr("malleable.theory.own_schedules.SHORTEST_RING", 2)
    several = OwnSchedules(jobs, 8.0, threads=2).at(edges, prices, step=0.1)
    plain = OwnSchedules(jobs, 8.0, threads=1)
    plain._kernel = price_kernel.own_schedules
    with np.errstate(all="ignore"):
        interpreted = plain.at(edges, prices, step=0.1)
    for other in (several, interpreted):
        for a, b in zip(one, other, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


def test_the_core_time_asked_for_is_the_slope_of_the_bound():
    """Moving one price a little changes Σ φ by the core-time that the jobs ask for in that cell."""
    jobs = drawn_jobs(paper_workload(8, 0.6), 200, 3)
    edges = np.linspace(0.0, float(jobs.times[-1]) + 1.0, 30)
    prices = np.full(29, 0.5)
    own = OwnSchedules(jobs, 8.0, threads=1)
    asked = own.at(edges, prices, step=0.002).asked
    for cell in (3, 11, 20):
        moved = [prices * (1.0 + sign * 1e-3 * (np.arange(29) == cell)) for sign in (1.0, -1.0)]
        up, down = (own.at(edges, one, step=0.002).costs.sum() for one in moved)
        assert (up - down) / (2e-3 * 0.5) == pytest.approx(asked[cell], rel=0.02)


def test_other_numbers_of_cores_by_the_same_prices():
    """D(l; n′) = D(l; n) − (n′ − n)∫l lies below WHAM's cost on n′ cores; beyond `widest` it is refused."""
    jobs = drawn_jobs(paper_workload(8, 0.6), 200, 5)
    bound = bound_for_jobs(jobs, 8, widest=10)
    for cores in (6, 8, 10):
        made = ready(Policy.of("wham"), jobs, cores)
        log = replay_jobs(made.workload, cores, made.program, made.jobs, interpreted=True).log
        assert bound.at(cores) <= float(jobs.weight @ (log.ends - jobs.times))
    assert bound.at(8) == pytest.approx(bound.bound)
    with pytest.raises(ParameterError, match="allows jobs up to 10 cores, not 11"):
        bound.at(11)


def test_cores_that_come_and_go():
    """With cores over time, WHAM on these cores lies above the bound, and that above the one of the most."""
    jobs = drawn_jobs(paper_workload(8, 0.5), 150, 6)
    steps = [(0.0, 8.0), (3.0, 2.0), (4.0, 5.0), (6.0, 8.0)]
    bound = bound_for_jobs(jobs, steps)
    made = simulated(Policy.of("wham"), jobs.workload, 8.0, plain=False)
    changes = machine_workloads.GivenChanges(8, steps[1:])
    runner = machine(jobs.workload, 8.0, made, interpreted=True, log=len(jobs), changes=changes)
    chunk = ready(Policy.of("wham"), jobs, 8.0).jobs
    runner.feed(chunk, 0, chunk.size, drain=True)
    cost = float(jobs.weight @ (runner.ends - jobs.times))
    assert bound_for_jobs(jobs, 8).bound < bound.bound <= cost
    assert bound.bound >= 0.9 * cost


def test_what_it_refuses_and_what_it_stops_for():
    """No jobs, no cores, a limit of time; progress is told every step."""
    jobs = drawn_jobs(paper_workload(8, 0.5), 50, 7)
    empty = JobList(jobs.workload, np.zeros(0), np.zeros(0), np.zeros(0))
    with pytest.raises(JobsError, match="no jobs"):
        bound_for_jobs(empty, 8)
    for cores in ([], [(0.0, 0.0)], [(0.0, float("nan"))], [(1.0, 4.0), (0.0, 4.0)], 0.5):
        with pytest.raises(ParameterError):
            bound_for_jobs(jobs, cores)
    told = []
    found = malleable.bound_for_jobs(jobs, 8, seconds=0.0, on_progress=lambda *step: told.append(step))
    assert len(told) == found.steps <= 5
    assert 0.0 < found.alone <= found.bound
    assert found.per_job == pytest.approx(found.bound / 50)
    assert set(found.to_dict()) >= {"bound", "per_job", "alone", "cells", "steps"}


def test_pooled_work_is_served_as_by_one_fast_machine():
    """Alike weights: SRPT by hand. Others, if all come at once: by weight over length, which is exact."""
    workload = paper_workload(4, 0.5)
    times, sizes = np.array([0.0, 1.0, 1.5, 9.0]), np.array([8.0, 2.0, 4.0, 1.0])
    same = JobList(workload, times, np.zeros(4), sizes, weights=np.full(4, 2.0))
    # Lengths 2, .5, 1, .25 on 4 cores: the first has 1 left at time 1, the second ends at 1.5.
    assert OwnSchedules(same, 4.0).pooled(4.0) == pytest.approx(2.0 * (2.5 + 0.5 + 2.0 + 0.25))
    weights = np.array([1.0, 3.0, 0.5, 2.0])
    at_once = JobList(workload, np.zeros(4), np.zeros(4), sizes, weights=weights)
    order = np.argsort(-weights / sizes)
    smith = float(weights[order] @ np.cumsum(sizes[order] / 4.0))
    assert OwnSchedules(at_once, 4.0).pooled(4.0) == pytest.approx(smith)


@pytest.mark.parametrize("seed", range(4))
def test_the_compiled_pool_says_what_the_plain_one_does(seed):
    """And both lie below the cost of any policy by the tests above, as all bounds do."""
    jobs, cores = random_list(seed, 60)
    own = OwnSchedules(jobs, cores)
    alike = bool((own.weights == own.weights[0]).all())
    lengths = jobs.sizes * own.least / cores
    plain = price_kernel.pooled_cost(jobs.times - jobs.times[0], lengths, own.weights, alike)
    assert own.pooled(cores) == pytest.approx(plain, rel=1e-12)
