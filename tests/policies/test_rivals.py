"""The job rules (HELL, KNEE, heSRPT, SRPT, FCFS, fixed width, the rooftop family, Pollux, Sia).

Each is checked against a naive reference written from MODEL.md §3 that shares no code with it, and all of
them keep the same invariants, interpreted and compiled.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from malleable import catalog
from malleable.contracts import Policy
from malleable.engine.compiling import JOB_RULE, compiled
from malleable.engine.rule_interface import AGE, COLUMNS, HELD, REMAINING
from malleable.errors import InfeasibleError, ParameterError, PolicyError, WorkloadError
from malleable.model import Workload, paper_workload
from malleable.model.jobs import Jobs
from malleable.policies.base.class_priority import parallelism
from malleable.policies.base.function_policy import Function
from malleable.policies.base.job_rule import JobRule, Timing, job_rows
from malleable.policies.fixed_width import FixedWidth
from malleable.policies.hesrpt import Hesrpt, effective_exponent, shares, total_weighted_flow
from malleable.policies.knee import Knee
from malleable.policies.pollux import Pollux, fill_by_price
from malleable.policies.rules.ordering import ascending
from malleable.policies.sia import Sia
from malleable.speedups.amdahl import Amdahl
from malleable.speedups.power import Power
from malleable.speedups.rooftop import Rooftop
from support import strategies as gen

NAMES = (
    "hell",
    "knee",
    "hesrpt",
    "srpt",
    "srpt-all",
    "fcfs",
    "fixed-width",
    "inelastic-first",
    "elastic-first",
    "lpf",
    "pollux",
    "sia",
)
WHOLE = ("hell", "knee", "srpt", "srpt-all", "fcfs", "fixed-width", "pollux", "sia")
PAPER = paper_workload()


def cores_of(policy, jobs, n, **options):
    return Policy.of(policy).allocate(jobs, n, **options).cores


def one_class(speedup, cost=1.0):
    row = gen.job_class("only", 1.0, 1.0, speedup, cost)
    return Workload.from_dict({"name": "one", "classes": [row]})


def random_jobs(seed, size, workload=PAPER, *, held=0):
    rng = np.random.default_rng(seed)
    return Jobs.of(
        workload,
        rng.integers(0, len(workload.classes), size),
        rng.exponential(0.4, size),
        age=rng.exponential(0.3, size),
        held=rng.integers(0, held + 1, size).astype(float),
    )


def speedups_of(jobs):
    return [jobs.speedups[i] for i in jobs.speedup_index]


INSTANCES = st.tuples(
    gen.workloads("power", "amdahl", "rooftop", "usl", "table", max_classes=3).flatmap(
        lambda workload: gen.jobs_of(workload, max_jobs=5, min_jobs=1)
    ),
    st.integers(1, 9),
)


# --- what all of them share -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_sane_and_the_same_when_compiled(name):
    """Every name runs with its defaults on the paper's workload, for N from 1 to 100, and keeps the limits:
    at most n cores, no NaN, nothing in (0, 1). Its rule compiles in nopython mode and gives, bit for bit,
    the numbers of `allocate`.
    """  # noqa: D205 - one claim
    policy = Policy.of(name)
    assert isinstance(policy, JobRule)
    assert catalog.normalised(name) in catalog.kinds("policies")
    rule = compiled(policy.rule, JOB_RULE)
    rule(np.zeros((0, COLUMNS)), 8.0, policy.prepare(PAPER, 8.0), np.zeros(0))
    policy.rule(np.zeros((0, COLUMNS)), 8.0, policy.prepare(PAPER, 8.0), np.zeros(0))
    for n in (1.0, 2.0, 7.0, 112.0 / 15.0, 64.0, 100.0):
        table = policy.prepare(PAPER, n)
        for size in range(1, 101):
            jobs = random_jobs(size, size, held=3)
            out = np.full(size, np.nan)
            rule(job_rows(jobs, jobs.class_index), n, table, out)
            check_limits(out, n, whole=name in WHOLE and n == int(n))
            if size in {1, 2, 5, 11, 45} and n in {2.0, 64.0}:
                assert out.tolist() == cores_of(policy, jobs, n)[jobs.order].tolist()


def check_limits(out, n, *, whole):
    assert np.isfinite(out).all()
    assert 1.0 <= out.sum() <= n * (1.0 + 1e-12)
    assert not ((out > 0.0) & (out < 1.0)).any()
    assert not whole or (out == np.round(out)).all()


def test_sorting():
    """The sort of the rules is stable, short or long."""
    rng = np.random.default_rng(1)
    for size in (0, 1, 2, 31, 32, 33, 64, 65, 100, 257, 1000):
        keys = rng.integers(0, 20, size).astype(float)
        assert ascending(keys).tolist() == np.argsort(keys, kind="stable").tolist()


@settings(max_examples=60, deadline=None)
@given(st.data(), INSTANCES, st.sampled_from(NAMES))
def test_order_of_rows_does_not_matter(data, instance, name):
    """A job gets the same cores wherever its row stands; whole cores are whole and no more in total."""
    jobs, n = instance
    cores = cores_of(name, jobs, float(n))
    order = data.draw(st.permutations(range(len(jobs))))
    assert cores_of(name, gen.permuted(jobs, order), float(n)).tolist() == cores[order].tolist()
    whole = cores_of(name, jobs, n + 0.5, integer=True)
    assert (whole == np.round(whole)).all()
    assert whole.sum() <= n


def test_no_jobs_and_jobs_with_nothing_left():
    """No jobs get no cores; jobs of remaining size 0 break nothing."""
    for name in NAMES:
        assert len(cores_of(name, Jobs.of(PAPER, np.zeros(0, dtype=np.intp), []), 4)) == 0
        out = cores_of(name, Jobs.of(PAPER, [0, 1, 2], [0.0, 0.0, 0.0]), 8)
        assert np.isfinite(out).all()


@pytest.mark.parametrize("name", NAMES)
def test_own_speedups(name):
    """Jobs that bring the speedup of their class get what they would get without."""
    jobs = random_jobs(5, 6)
    own = Jobs.of(
        PAPER,
        jobs.class_index,
        jobs.remaining,
        age=jobs.age,
        speedups=[PAPER.speedups[i] for i in jobs.class_index],
    )
    policy = Hesrpt(0.4) if name == "hesrpt" else Knee(0.02) if name == "knee" else name
    assert cores_of(policy, own, 16).tolist() == pytest.approx(cores_of(policy, jobs, 16).tolist())


# --- SRPT, FCFS, fixed width ------------------------------------------------------------------------------


def test_one_core_each():
    """SRPT-n goes by c/x, then by arrival; FCFS-n by arrival; SRPT-all gives all to one job."""
    jobs = Jobs.of(PAPER, [0, 1, 2, 0, 2], [1.0, 1.0, 0.5, 0.5, 0.5], age=[5, 1, 2, 3, 4])
    # c/x = 1, 2, 2, 2, 2: among the equal ones the oldest go first (rows 4, 3, 2, 1).
    assert cores_of("srpt", jobs, 3).tolist() == [0, 0, 1, 1, 1]
    assert cores_of("fcfs", jobs, 3).tolist() == [1, 0, 0, 1, 1]
    assert cores_of("srpt-all", jobs, 3).tolist() == [0, 0, 0, 0, 3]
    assert cores_of("srpt", jobs, 9).tolist() == [1] * 5
    roof = Jobs.of(one_class(Rooftop(4.0)), [0, 0], [1.0, 2.0])
    assert cores_of("srpt-all", roof, 10).tolist() == [4.0, 0.0]


def test_fixed_width():
    """Jobs start in order of arrival; in a shared pool the first that does not fit holds back the rest."""
    jobs = Jobs.of(PAPER, [0, 2, 1, 0, 1], [1.0] * 5, age=[5, 4, 3, 2, 1])
    assert cores_of("fixed-width:widths=4/2/8", jobs, 14).tolist() == [4, 8, 2, 0, 0]
    assert cores_of("fixed-width:widths=4/2/8", jobs, 13).tolist() == [4, 8, 0, 0, 0]
    assert cores_of("fixed-width:widths=3", jobs, 10).tolist() == [3, 3, 3, 0, 0]
    assert cores_of("fixed-width:widths=30", jobs, 10).tolist() == [10, 0, 0, 0, 0]
    used = PAPER.loads * np.array([4, 2, 8]) / [4**0.3, 2**0.5, 1 / 0.3]
    slots = np.floor(40 * used / used.sum() / [4, 2, 8])
    many = random_jobs(3, 90)
    out = cores_of(FixedWidth((4.0, 2.0, 8.0), shared=False), many, 40)
    for i, width in enumerate((4, 2, 8)):
        mine = many.order[many.class_index[many.order] == i]
        assert out[mine].tolist() == [width] * int(slots[i]) + [0.0] * (len(mine) - int(slots[i]))


def test_fixed_width_says_what_is_wrong():
    """A wrong number of widths and a class without a slot are errors that name the remedy."""
    jobs = random_jobs(1, 3)
    with pytest.raises(ParameterError, match="2 widths for 3 classes"):
        cores_of("fixed-width:widths=4/2", jobs, 8)
    with pytest.raises(InfeasibleError, match="class-1"):
        cores_of("fixed-width:widths=4,shared=false", jobs, 8)


# --- heSRPT -----------------------------------------------------------------------------------------------


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.tuples(gen.numbers(0.1, 10.0), gen.numbers(0.2, 5.0)), min_size=1, max_size=7),
    gen.numbers(0.1, 0.9),
    gen.numbers(1.0, 100.0),
)
def test_hesrpt_closed_form(pairs, p, n):
    """Simulating θ event by event gives the closed form of the total weighted flow to 1e-9."""
    sizes = np.array(sorted((x for x, _ in pairs), reverse=True))
    weights = np.array(sorted(w for _, w in pairs))
    left, flow, alive = sizes.copy(), 0.0, len(sizes)
    while alive:
        theta = shares(weights[:alive], p)
        assert math.isclose(theta.sum(), 1.0)
        # Literally k^p, shares below one core included: this is the setting of the theorem.
        speed = (n * theta) ** p
        step = (left[:alive] / speed).min()
        flow += step * weights[:alive].sum()
        left[:alive] -= step * speed
        alive -= 1
        assert abs(left[alive]) <= 1e-9 * sizes[alive]
    assert math.isclose(flow, total_weighted_flow(sizes, weights, p, n), rel_tol=1e-9)


def naive_hesrpt(remaining, weight, arrival, p, n):
    """θ with the repairs, by recursion on the jobs that may still share."""
    count = len(remaining)
    if count >= n:
        order = sorted(range(count), key=lambda j: (-weight[j] / remaining[j], arrival[j]))
        return [1.0 if j in order[: int(n)] else 0.0 for j in range(count)]
    out = [1.0] * count
    sharing, cores = sorted(range(count), key=lambda j: (-remaining[j], -arrival[j])), float(n)
    while True:
        total = sum(weight[j] for j in sharing)
        z = [sum(weight[j] for j in sharing[:i]) for i in range(len(sharing) + 1)]
        e = 1.0 / (1.0 - p)
        k = {j: cores * ((z[i + 1] / total) ** e - (z[i] / total) ** e) for i, j in enumerate(sharing)}
        low = [j for j in sharing if k[j] <= 1.0 + 1e-9]
        if not low:
            for j in sharing:
                out[j] = k[j]
            return out
        cores -= len(low)
        sharing = [j for j in sharing if j not in low]


@settings(max_examples=60, deadline=None)
@given(gen.numbers(0.1, 0.9), st.integers(1, 40), st.integers(1, 12), st.integers(0, 10**6))
def test_a_hesrpt(p, n, size, seed):
    """A-heSRPT is θ on the remaining sizes with nobody below one core; all cores are used when N < n."""
    jobs = random_jobs(seed, size, one_class(Power(p)))
    out = cores_of("hesrpt", jobs, n)
    arrival = np.argsort(jobs.order)
    assert out.tolist() == pytest.approx(naive_hesrpt(jobs.remaining, jobs.weight, arrival, p, n), rel=1e-9)
    assert out.sum() == pytest.approx(n)


def test_effective_exponent():
    """One power law is recovered exactly; a mix lies between its classes, weighted by load."""
    assert effective_exponent(one_class(Power(0.37)), 64) == pytest.approx(0.37, rel=1e-12)
    k = np.geomspace(1, 64, 65)
    amdahl = np.log(k) @ np.log(1 / (0.2 + 0.8 / k)) / (np.log(k) @ np.log(k))
    mix = (0.2 * 0.3 + 10 / 9 * 0.5 + 5 / 9 * amdahl) / (28 / 15)
    assert effective_exponent(PAPER, 64) == pytest.approx(mix, rel=1e-12)
    assert 0.0 < effective_exponent(one_class(Rooftop(1.0)), 64) < 0.01
    assert 0.99 < effective_exponent(one_class(Rooftop(64.0)), 64) < 1.0


# --- HELL and KNEE ----------------------------------------------------------------------------------------


def naive_hell(speedups, remaining, arrival, peaks, n):
    def h(j, k):
        return float(speedups[j](k)) ** 2 / (k * remaining[j])

    out, spare = [0] * len(speedups), n
    while spare and 0 in out:
        best = {}
        for j in (j for j in range(len(out)) if out[j] == 0):
            top = max(h(j, k) for k in range(1, spare + 1))
            best[j] = (top, max(k for k in range(1, spare + 1) if h(j, k) >= top * (1 - 1e-12)))
        j = min(best, key=lambda j: (-best[j][0], arrival[j]))
        out[j] = best[j][1]
        spare -= out[j]
    while spare:
        able = [
            j
            for j in range(len(out))
            if out[j] + 1 <= peaks[j] or float(speedups[j](out[j] + 1)) > float(speedups[j](out[j]))
        ]
        if not able:
            break
        out[min(able, key=lambda j: (-h(j, out[j] + 1), arrival[j]))] += 1
        spare -= 1
    return out


@settings(max_examples=80, deadline=None)
@given(INSTANCES)
def test_hell(instance):
    """HELL is its definition, searched exhaustively over whole widths."""
    jobs, n = instance
    speedups = speedups_of(jobs)
    expected = naive_hell(
        speedups, jobs.remaining, np.argsort(jobs.order), [float(s.peak) for s in speedups], n
    )
    assert cores_of("hell", jobs, n).tolist() == expected


def test_hell_on_power_laws():
    """Below exponent ½ everybody starts from one core; from ½ on the smallest job takes everything."""
    for p, expected in ((0.3, [7, 5, 4]), (0.5, [16, 0, 0]), (0.7, [16, 0, 0])):
        jobs = Jobs.of(one_class(Power(p)), [0, 0, 0], [1.0, 1.2, 1.3])
        assert cores_of("hell", jobs, 16).tolist() == expected
    jobs = Jobs.of(one_class(Amdahl(0.2)), [0, 0], [1.0, 1.2])
    # H is highest at (1−q)/q = 4 cores; what is left then goes out one by one.
    assert cores_of("hell", jobs, 8).tolist() == [4, 4]


def naive_knee(speedup, remaining, alpha):
    return next(
        k
        for k in itertools.count(1)
        if remaining / float(speedup(k)) - remaining / float(speedup(k + 1)) < alpha
    )


@settings(max_examples=80, deadline=None)
@given(INSTANCES, gen.numbers(0.005, 1.0))
def test_knee(instance, alpha):
    """KNEE serves the knees, found by trying every k, in ascending order; the last gets the remainder."""
    jobs, n = instance
    knees = [naive_knee(s, x, alpha) for s, x in zip(speedups_of(jobs), jobs.remaining, strict=True)]
    arrival = np.argsort(jobs.order)
    expected, spare = [0] * len(jobs), n
    for j in sorted(range(len(jobs)), key=lambda j: (knees[j], arrival[j])):
        expected[j] = min(knees[j], spare)
        spare -= expected[j]
    assert cores_of(Knee(alpha), jobs, n).tolist() == expected


def test_knee_default():
    """The default α is 2 % of the mean job size."""
    jobs = random_jobs(2, 9)
    assert cores_of("knee", jobs, 64).tolist() == cores_of("knee:alpha=0.008", jobs, 64).tolist()


# --- the rooftop family -----------------------------------------------------------------------------------


def test_rooftop_family():
    """Inelastic-First, Elastic-First and LPF on rooftops, by hand; less than one core is not given."""
    rows = [gen.job_class(f"c{i}", 1.0, 1.0, Rooftop(k), 1.0) for i, k in enumerate((4.0, 1.0, 2.5))]
    jobs = Jobs.of(
        Workload.from_dict({"name": "r", "classes": rows}), [0, 1, 2, 1, 0], [1.0] * 5, age=[5, 4, 3, 2, 1]
    )
    assert cores_of("inelastic-first", jobs, 8).tolist() == [4.0, 1.0, 2.0, 1.0, 0.0]
    assert cores_of("elastic-first", jobs, 8).tolist() == [4.0, 0.0, 2.5, 0.0, 1.5]
    assert cores_of("lpf", jobs, 8).tolist() == [3.5, 1.0, 2.5, 1.0, 0.0]
    assert cores_of("lpf", jobs, 5).tolist() == [0.0, 1.0, 2.5, 1.0, 0.0]
    assert cores_of("lpf", jobs, 20).tolist() == [4.0, 1.0, 2.5, 1.0, 4.0]


def test_parallelism_of_other_families():
    """κ is exact for rooftops and else the width of efficiency one half: 2^{1/(1−p)}, (2 − (1−q))/q."""
    assert parallelism(Rooftop(4.0), 0.5) == 4.0
    assert parallelism(Power(0.3), 0.5) == pytest.approx(2 ** (1 / 0.7))
    assert parallelism(Amdahl(0.2), 0.5) == pytest.approx(6.0)
    assert parallelism(Power(0.5), 0.25) == pytest.approx(16.0)


# --- Pollux and Sia ---------------------------------------------------------------------------------------


def factor(age, restarts, delta):
    return max(age - restarts * delta, 0.0) / (age + delta)


def pollux_goal(speedups, widths, held, age, delta, n):
    fair = math.ceil(n / len(speedups))
    total = 0.0
    for s, k, before, t in zip(speedups, widths, held, age, strict=True):
        relative = float(s(k)) / float(s(fair))
        if before > 0 and k != before:
            relative *= factor(t, 0, delta)
        total += 1.0 / (relative + 1e-3)
    return (total / len(speedups)) ** -1.0


POLLUX = st.tuples(
    gen.workloads("power", "amdahl", "rooftop", "usl", "table", max_classes=3).flatmap(
        lambda workload: gen.jobs_of(workload, max_jobs=4, min_jobs=1)
    ),
    st.integers(1, 7),
    st.lists(st.integers(0, 4).map(float), min_size=4, max_size=4),
    gen.numbers(0.01, 3.0),
)


def with_held(jobs, held):
    return Jobs.of(jobs.workload, jobs.class_index, jobs.remaining, age=jobs.age, held=held[: len(jobs)])


@settings(max_examples=80, deadline=None)
@given(POLLUX)
def test_pollux(instance):
    """Pollux finds the best of all whole allocations, restarts counted."""
    jobs, n, held, delta = instance
    jobs = with_held(jobs, held)
    speedups = speedups_of(jobs)
    out = cores_of(Pollux(period=1.0, restart=delta), jobs, n)
    best = max(
        pollux_goal(speedups, widths, jobs.held, jobs.age, delta, n)
        for widths in itertools.product(range(n + 1), repeat=len(jobs))
        if sum(widths) <= n
    )
    assert pollux_goal(speedups, out, jobs.held, jobs.age, delta, n) == pytest.approx(best, rel=1e-12)


def test_pollux_by_price_is_close():
    """Where the table would be too large, a price finds nearly the same: within 1 % at 64 cores."""
    for seed in range(20):
        jobs = random_jobs(seed, 15, held=8)
        policy, out = Pollux(), np.zeros(15)
        rows = job_rows(jobs, jobs.class_index)
        fill_by_price(rows, 64, policy.prepare(PAPER, 64.0), out)
        assert out.sum() <= 64
        delta = policy.timing(PAPER).pause
        speedups = [PAPER.speedups[i] for i in jobs.class_index[jobs.order]]
        goals = [
            pollux_goal(speedups, widths, rows[:, HELD], rows[:, AGE], delta, 64)
            for widths in (out, cores_of(policy, jobs, 64)[jobs.order])
        ]
        assert goals[1] * 0.99 <= goals[0] <= goals[1] * (1.0 + 1e-12)


def test_pollux_keeps_rather_than_restarts():
    """A young running job keeps its width where a job without cores would be given another."""
    jobs = Jobs.of(PAPER, [1, 1], [1.0, 1.0], age=[0.1, 0.05], held=[3.0, 0.0])
    assert cores_of("pollux:restart=1", jobs, 8).tolist() == [3.0, 5.0]
    assert cores_of("pollux:restart=0", jobs, 8).tolist() == [4.0, 4.0]


def sia_cost(speedups, widths, held, age, delta):
    total = 0
    for s, k, before, t in zip(speedups, widths, held, age, strict=True):
        if k == 0:
            total += 110
            continue
        goodput = float(s(k)) * (factor(t, 0, delta) if before > 0 and k != before else 1.0)
        total += math.floor(100 * goodput**-0.5 + 0.5) if goodput > 0 else 10**9
    return total


@settings(max_examples=80, deadline=None)
@given(POLLUX)
def test_sia(instance):
    """Sia finds the cheapest of all choices of widths 0, 1, 2, 4, …, in whole hundredths."""
    jobs, n, held, delta = instance
    jobs = with_held(jobs, held)
    speedups = speedups_of(jobs)
    out = cores_of(Sia(period=1.0, restart=delta), jobs, n)
    assert set(out.tolist()) <= {0.0, 1.0, 2.0, 4.0}
    best = min(
        sia_cost(speedups, widths, jobs.held, jobs.age, delta)
        for widths in itertools.product((0, 1, 2, 4), repeat=len(jobs))
        if sum(widths) <= n
    )
    assert sia_cost(speedups, out, jobs.held, jobs.age, delta) == best


@pytest.mark.parametrize("name", ["pollux", "sia"])
def test_large_instances_go_by_price(name):
    """Many jobs on very many cores take no table, use nearly all cores, and stay within them."""
    policy = Policy.of(name)
    jobs = random_jobs(1, 3000)
    out = np.zeros(3000)
    rows = job_rows(jobs, jobs.class_index)
    compiled(policy.rule, JOB_RULE)(rows, 12000.0, policy.prepare(PAPER, 12000.0), out)
    assert 11900 <= out.sum() <= 12000


def test_timing():
    """Periods and pauses are in the workload's own time unless given, and none for the other rules."""
    mean = PAPER.total_load / PAPER.total_rate
    assert Policy.of("pollux").timing(PAPER) == pytest.approx((0.01 * mean, 0.005 * mean))
    assert Policy.of("sia:period=60,restart=30").timing(PAPER) == Timing(60.0, 30.0)
    assert Policy.of("hell").timing(PAPER) == Timing(0.0, 0.0)


# --- a user's own -----------------------------------------------------------------------------------------


def test_functions_of_both_forms():
    """A function that writes and one that returns are policies; wrong ones say what is wrong."""

    def writes(jobs, cores, _table, out):
        out[:] = cores / len(jobs)

    def returns(jobs, cores):
        return [cores if x == jobs[:, REMAINING].min() else 0.0 for x in jobs[:, REMAINING]]

    jobs = Jobs.of(PAPER, [0, 1], [3.0, 2.0])
    assert Function(writes).allocate(jobs, 4).cores.tolist() == [2.0, 2.0]
    assert Function(returns).allocate(jobs, 4).cores.tolist() == [0.0, 4.0]
    with pytest.raises(PolicyError, match="2 jobs"):
        Function(lambda _, cores: [cores]).allocate(jobs, 4)
    with pytest.raises(PolicyError, match="8 in all"):
        Function(lambda _, cores: [cores, cores]).allocate(jobs, 4)
    with pytest.raises(PolicyError, match="nan"):
        Function(lambda _, cores: [cores, math.nan]).allocate(jobs, 4)
    for wrong in (3, lambda: 1, lambda a, _, __: a):
        with pytest.raises(ParameterError, match=r"function|policy"):
            Function(wrong)
    with pytest.raises(WorkloadError):
        Function(writes).to_dict()


def test_policy_from_a_file(tmp_path):
    """`file.py:Name` finds a user's own job rule, which needs nothing but a rule."""
    file = tmp_path / "mine.py"
    file.write_text(
        "from dataclasses import dataclass\n"
        "from malleable.policies.base.job_rule import JobRule\n"
        "def last(jobs, cores, table, out):\n"
        "    out[:] = 0.0\n"
        "    out[jobs.shape[0] - 1] = cores\n"
        "@dataclass(frozen=True)\n"
        "class Last(JobRule):\n"
        "    rule = staticmethod(last)\n"
        "    period = 2.0\n"
    )
    policy = Policy.of(f"{file}:Last")
    assert policy.timing(PAPER) == Timing(2.0, 0.0)
    assert cores_of(policy, Jobs.of(PAPER, [0, 1], [1.0, 1.0], age=[1.0, 2.0]), 4).tolist() == [4.0, 0.0]
