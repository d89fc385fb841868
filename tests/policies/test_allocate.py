"""Who gets how many cores: properties of every policy, and naive twins of the class rules."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from malleable import catalog
from malleable.contracts import Policy
from malleable.errors import InfeasibleError, ParameterError, UnsupportedError
from malleable.model import Workload, paper_workload
from malleable.model.jobs import Jobs
from malleable.speedups.amdahl import Amdahl
from malleable.speedups.custom import Custom
from malleable.speedups.power import Power
from malleable.speedups.rooftop import Rooftop
from malleable.speedups.table import Table
from support import strategies as gen

POLICIES = sorted(catalog.kinds("policies"))
GREEDY = [
    "greedy",
    "greedy:weight=mu",
    "greedy:weight=c",
    "greedy:weight=cmu",
    "greedy:weight=c/x",
    "greedy-star",
]
CLASS_RULES = ["wham", "wham-integer", "equi", *GREEDY]
SHARING = {"equi"}
"""Policies that time-share cores when jobs outnumber them, as documented."""
ANY = ("power", "amdahl", "usl", "rooftop", "linear_power", "table")


def allocate(policy, jobs, cores, **options):
    """Cores by `policy`, skipping the test where the policy has no answer to such jobs."""
    try:
        return Policy.of(policy).allocate(jobs, cores, **options).cores
    except UnsupportedError as error:
        pytest.skip(f"{policy}: {error}")


def one_class(speedup, count, *, cost=1.0, remaining=None):
    """Jobs of a single class, with distinct remaining sizes unless given."""
    workload = Workload.from_dict({"classes": [gen.job_class("only", 1.0, 1.0, speedup, cost)]})
    return Jobs.of(workload, [0] * count, [1.0 + i for i in range(count)] if remaining is None else remaining)


def speeds(jobs, cores):
    """s_j(k_j) of each job."""
    return np.array([jobs.speedups[i](k) for i, k in zip(jobs.speedup_index, cores, strict=True)])


@st.composite
def situations(draw, *kinds, max_jobs=12, weights=True, costs=None):
    """Jobs of a random workload and a number of cores near, below and above their number."""
    workload = draw(gen.workloads(*kinds, max_classes=3, costs=costs))
    jobs = draw(gen.jobs_of(workload, max_jobs=max_jobs, weights=weights))
    cores = draw(
        st.one_of(st.integers(1, 30), st.integers(1, 30).map(lambda n: n + 0.5), gen.numbers(1.0, 300.0))
    )
    return jobs, float(cores)


@st.composite
def plannable(draw, policy, max_jobs):
    """Random jobs; of the paper's workload for policies that plan for arrivals and may find no plan."""
    if policy.startswith("fw_cam"):
        cores = draw(st.sampled_from([64, 128]))
        return draw(gen.jobs_of(paper_workload(cores), max_jobs=max_jobs, weights=True)), float(cores)
    jobs, cores = draw(situations("power", "amdahl", max_jobs=max_jobs))
    return jobs, min(cores, 64.0)


def check_budget(jobs, out, cores, *, sharing=False, integer=False):
    """At most n in total, nothing negative, and nothing in (0, 1) unless cores are time-shared."""
    assert out.shape == (len(jobs),)
    assert np.all(np.isfinite(out))
    assert np.all(out >= 0.0)
    assert out.sum() <= cores * (1.0 + 1e-12)
    if not sharing:
        assert not np.any((out > 0.0) & (out < 1.0 - 1e-12))
    if integer:
        np.testing.assert_array_equal(out, np.round(out))


def check_no_waste(jobs, out, cores, *, integer=False):
    """No core is idle that a job could use."""
    spare = (math.floor(cores) if integer else cores) - out.sum()
    if spare <= 1e-7 * cores or len(jobs) == 0:
        return
    more = [out + extra for extra in (range(1, int(spare) + 1) if integer else (spare,))]
    for wider in more:
        useful = np.where(out > 0.0, wider, np.floor(wider) if integer else wider)
        gain = speeds(jobs, useful) > speeds(jobs, out) * (1.0 + 1e-9)
        gain &= (out > 0.0) | (useful >= 1.0)
        assert not gain.any(), (out, cores)


class TestEveryPolicy:
    """What the catalog's policies promise, whatever their shape."""

    @pytest.mark.parametrize("policy", POLICIES)
    @pytest.mark.parametrize("integer", [False, True])
    def test_budget(self, policy, integer):
        """Total ≤ n and nothing in (0, 1), on whole cores whole numbers."""

        @settings(max_examples=15, deadline=None)
        @given(plannable(policy, max_jobs=10))
        def check(situation):
            jobs, cores = situation
            out = allocate(policy, jobs, cores, integer=integer)
            check_budget(jobs, out, cores, sharing=policy in SHARING and not integer, integer=integer)

        check()

    @pytest.mark.parametrize("policy", POLICIES)
    def test_permuting_jobs_permutes_the_allocation(self, policy):
        """Nobody gains from standing earlier in the list (sizes and ages are distinct)."""

        @settings(max_examples=15, deadline=None)
        @given(plannable(policy, max_jobs=8), st.randoms(use_true_random=False))
        def check(situation, random):
            jobs, cores = situation
            order = list(range(len(jobs)))
            random.shuffle(order)
            out = allocate(policy, jobs, cores)
            shuffled = allocate(policy, gen.permuted(jobs, order), cores)
            np.testing.assert_allclose(shuffled, out[order], rtol=1e-8)

        check()

    @pytest.mark.parametrize("policy", POLICIES)
    def test_nobody(self, policy):
        """No jobs, no cores."""
        jobs = Jobs.of(paper_workload(64), [], [])
        assert allocate(policy, jobs, 64).shape == (0,)

    @pytest.mark.parametrize("policy", POLICIES)
    def test_runs_on_the_paper_workload(self, policy):
        """Every policy answers for a handful of the paper's jobs with its defaults, and serves somebody."""
        jobs = Jobs.of(
            paper_workload(64), [0, 1, 2, 1, 0], [0.2, 1.5, 0.3, 0.1, 0.7], age=[5.0, 4.0, 3.0, 2.0, 1.0]
        )
        out = allocate(policy, jobs, 64)
        check_budget(jobs, out, 64)
        assert out.sum() >= 1.0

    @pytest.mark.parametrize("policy", POLICIES)
    @pytest.mark.parametrize("cores", [0, 0.5, -1, math.nan, math.inf, "x", None])
    def test_cores_are_checked(self, policy, cores):
        """Cores must be a finite number of at least 1."""
        jobs = Jobs.of(paper_workload(64), [0, 1], [1.0, 2.0])
        with pytest.raises(ParameterError, match="cores"):
            allocate(policy, jobs, cores)


@pytest.mark.parametrize("integer", [False, True])
def test_repaired_fw_cam_with_more_classes_than_cores(integer):
    """Three classes on two cores: the repaired plan is refused, it neither overbooks nor splits a core."""
    speedup = {"kind": "power", "exponent": 0.5}
    rows = [gen.job_class(f"c{i}", 1.0, 1.0, speedup, 1.0) for i in range(3)]
    workload = Workload.from_dict({"classes": rows}).at(2, 0.1)
    jobs = Jobs.of(workload, [0, 1, 2], [1.0, 2.0, 3.0])
    with pytest.raises(InfeasibleError, match="a core for each of 3 classes"):
        Policy.of("fw-cam-repaired").allocate(jobs, 2, integer=integer)
    jobs = Jobs.of(workload.at(4, 0.1), [0, 1, 2], [1.0, 2.0, 3.0])
    check_budget(jobs, Policy.of("fw-cam-repaired").allocate(jobs, 4, integer=integer).cores, 4)


class TestClassRules:
    """WHAM, GREEDY and EQUI on every family of speedups."""

    @pytest.mark.parametrize("policy", CLASS_RULES)
    @pytest.mark.parametrize("integer", [False, True])
    def test_budget_and_no_waste(self, policy, integer):
        """Total ≤ n, = n whenever some job can use it, nothing in (0, 1)."""
        whole = integer or policy == "wham-integer"

        @settings(max_examples=20, deadline=None)
        @given(situations(*ANY))
        def check(situation):
            jobs, cores = situation
            out = allocate(policy, jobs, cores, integer=integer)
            sharing = policy == "equi" and not whole
            check_budget(jobs, out, cores, sharing=sharing, integer=whole)
            check_no_waste(jobs, out, cores, integer=whole)

        check()

    def test_greedy_wastes_nothing_on_tables_with_a_dent(self):
        """A dear job that wants two more cores or none does not keep the only one left from the others."""
        jobs = Jobs.of(
            one_class(Table([1, 2, 3], [1, 1, 2]), 1).workload, [0, 0], [1.0, 2.0], weight=[1.0, 2.7]
        )
        check_no_waste(jobs, allocate("greedy:weight=c", jobs, 2), 2)

    @pytest.mark.parametrize("policy", CLASS_RULES)
    def test_permutation(self, policy):
        """Permuting jobs permutes the allocation, blocks and tables included."""

        @settings(max_examples=12, deadline=None)
        @given(situations(*ANY), st.randoms(use_true_random=False))
        def check(situation, random):
            jobs, cores = situation
            order = list(range(len(jobs)))
            random.shuffle(order)
            out = allocate(policy, jobs, cores)
            np.testing.assert_allclose(
                allocate(policy, gen.permuted(jobs, order), cores), out[order], rtol=1e-8
            )

        check()

    @pytest.mark.parametrize("policy", CLASS_RULES)
    def test_duplicating_classes(self, policy):
        """Calling half of a class by another name changes nothing."""

        @settings(max_examples=12, deadline=None)
        @given(situations(*ANY, weights=False), st.randoms(use_true_random=False))
        def check(situation, random):
            jobs, cores = situation
            rows = jobs.workload.to_dict()["classes"]
            twice = rows + [{**row, "name": f"{row['name']}-again"} for row in rows]
            workload = Workload.from_dict({"classes": twice})
            moved = [i + random.choice([0, len(rows)]) for i in jobs.class_index]
            again = Jobs.of(workload, moved, jobs.remaining, age=jobs.age)
            np.testing.assert_allclose(
                allocate(policy, again, cores), allocate(policy, jobs, cores), rtol=1e-8
            )

        check()

    @pytest.mark.parametrize("policy", ["wham", "wham-integer", "greedy", "greedy-star", "equi"])
    def test_one_job(self, policy):
        """A lone job gets everything that it can use."""
        for speedup, most in ((Power(0.5), 7.0), (Amdahl(0.2), 7.0), (Rooftop(4), 4.0), (Rooftop(20), 7.0)):
            assert allocate(policy, one_class(speedup, 1), 7).tolist() == pytest.approx([most], rel=1e-12)

    @pytest.mark.parametrize("policy", CLASS_RULES)
    @pytest.mark.parametrize("cores", [1e6, 1e9, 1e12])
    def test_huge_machines(self, policy, cores):
        """A machine of a million million cores is shared without loss."""
        jobs = Jobs.of(paper_workload(16), [0, 0, 1, 2, 2], [1.0, 2.0, 3.0, 4.0, 5.0])
        out = allocate(policy, jobs, cores)
        assert out.sum() <= cores * (1.0 + 1e-12)
        assert out.sum() == pytest.approx(cores, rel=1e-9)

    @pytest.mark.parametrize("policy", CLASS_RULES)
    def test_extreme_weights(self, policy):
        """Weights from 1e-6 to 1e6 side by side."""
        jobs = Jobs.of(
            paper_workload(16),
            [0, 1, 2, 0, 1, 2],
            [1.0, 2, 3, 4, 5, 6],
            weight=[1e-6, 1e6, 1.0, 1e6, 1e-6, 1e-3],
        )
        for cores in (1, 3, 5, 6, 7, 16, 1000):
            out = allocate(policy, jobs, cores)
            check_budget(jobs, out, cores, sharing=policy == "equi")
            check_no_waste(jobs, out, cores)

    @pytest.mark.parametrize("policy", CLASS_RULES)
    @pytest.mark.parametrize("remaining", [0.0, 1e-320, 1e-300, 1e300])
    def test_extreme_sizes(self, policy, remaining):
        """Finished and endless jobs break nobody's arithmetic."""
        jobs = Jobs.of(
            paper_workload(16), [0, 1, 2, 1], [remaining, remaining, 1.0, 2.0], weight=[50.0, 3, 1, 1]
        )
        for cores in (1, 2, 3, 4, 5, 16):
            out = allocate(policy, jobs, cores)
            check_budget(jobs, out, cores, sharing=policy == "equi")
            check_no_waste(jobs, out, cores)

    @pytest.mark.parametrize("policy", ["greedy:weight=c", "greedy:weight=cmu", "wham"])
    def test_nearly_linear_speedups(self, policy):
        """Exponents next to 1 overflow no search, not even for jobs that are not served."""
        rows = [
            gen.job_class(f"c{i}", 1.0, 1.0, {"kind": "power", "exponent": p}, c)
            for i, (p, c) in enumerate([(0.5, 1e3), (0.999, 1.0), (0.9999, 1e-3), (1.0 - 1e-9, 2.0)])
        ]
        jobs = Jobs.of(Workload.from_dict({"classes": rows}), [0, 1, 2, 3], [1.0, 2.0, 3.0, 4.0])
        for cores in (1, 2, 3, 5, 50, 1e6):
            out = allocate(policy, jobs, cores)
            check_budget(jobs, out, cores)
            assert out.sum() == pytest.approx(cores, rel=1e-9)

    @pytest.mark.parametrize("policy", ["wham", "wham-integer", "greedy", "equi"])
    def test_own_speedups(self, policy):
        """Jobs that bring the speedup of another class are treated as of that class."""
        workload = paper_workload(16)
        by_class = Jobs.of(workload, [0, 1, 2, 1], [1.0, 2.0, 3.0, 4.0], weight=[1.0] * 4)
        own = Jobs.of(
            workload,
            [0, 0, 0, 0],
            [1.0, 2.0, 3.0, 4.0],
            weight=[1.0] * 4,
            speedups=[workload.speedups[i] for i in (0, 1, 2, 1)],
        )
        for cores in (3, 4, 5, 16):
            np.testing.assert_allclose(
                allocate(policy, own, cores), allocate(policy, by_class, cores), rtol=1e-9
            )

    @pytest.mark.parametrize("policy", ["wham", "wham-integer", "greedy", "equi"])
    def test_callables(self, policy):
        """Callables of every shape are shared like any other speedup."""
        workload = paper_workload(16)
        functions = [Custom(f, 64.0) for f in (gen.concave_function, gen.s_shaped, gen.falling)]
        jobs = Jobs.of(workload, [0, 0, 0], [1.0, 2.0, 3.0], speedups=functions)
        for cores in (2, 15):
            out = allocate(policy, jobs, cores)
            check_budget(jobs, out, cores, sharing=policy == "equi", integer=policy == "wham-integer")


def naive_width(speedup, price, weight):
    """g(l) from the table in MODEL.md §1.1."""
    if isinstance(speedup, Power):
        p = speedup.exponent
        return max(1.0, weight * p / ((1.0 - p) * price))
    q = speedup.sequential
    return max(1.0, math.sqrt(weight * (1.0 - q) / (q * price)))


def naive_wham(jobs, cores):
    """MODEL.md §1.2 for power and Amdahl jobs and a whole number of cores, by plain bisection."""
    count = len(jobs)
    c, x, age = jobs.weight.tolist(), jobs.remaining.tolist(), jobs.age.tolist()
    if count >= cores:
        first = sorted(range(count), key=lambda j: (-c[j] / x[j], -age[j]))[: int(cores)]
        return np.array([1.0 if j in first else 0.0 for j in range(count)])
    own = [jobs.speedups[i] for i in jobs.speedup_index]
    low, high = 1e-30, 1e30
    for _ in range(300):
        price = math.sqrt(low * high)
        if sum(naive_width(s, price, w) for s, w in zip(own, c, strict=True)) > cores:
            low = price
        else:
            high = price
    return np.array([naive_width(s, high, w) for s, w in zip(own, c, strict=True)])


class TestWham:
    """WHAM against naive implementations and at its corners."""

    @settings(max_examples=30, deadline=None)
    @given(situations("power", "amdahl"))
    def test_bisection(self, situation):
        """WHAM is the naive bisection, below, at and above n jobs, with weights from 1e-6 to 1e6."""
        jobs, cores = situation
        cores = float(math.floor(cores))
        np.testing.assert_allclose(allocate("wham", jobs, cores), naive_wham(jobs, cores), rtol=1e-9)

    @settings(max_examples=30, deadline=None)
    @given(situations("power"))
    def test_closed_form_for_power_laws(self, situation):
        """For power laws the price solves a linear equation on the set of jobs above one core."""
        jobs, cores = situation
        count = len(jobs)
        assume(0 < count < cores)
        p = np.array([jobs.speedups[i].exponent for i in jobs.speedup_index])
        want = jobs.weight * p / (1.0 - p)
        order = np.argsort(-want)
        for active in range(1, count + 1):
            inside = order[:active]
            price = want[inside].sum() / (cores - (count - active))
            if active == count or want[order[active]] <= price:
                break
        np.testing.assert_allclose(allocate("wham", jobs, cores), np.maximum(1.0, want / price), rtol=1e-9)
        found = Policy.of("wham").allocate(jobs, cores).price
        assert found == pytest.approx(price, rel=1e-9)

    @pytest.mark.parametrize("cost", [0.01, 0.5, 2.0, 100.0])
    def test_printed_threshold_is_wrong(self, cost):
        """One core at l ≥ c·f(1): with the printed l ≥ f(1), c > 1 idles cores and c < 1 gives k < 1."""
        rows = [
            gen.job_class("cheap", 1.0, 1.0, {"kind": "power", "exponent": 0.5}, 1.0),
            gen.job_class("dear", 1.0, 1.0, {"kind": "power", "exponent": 0.5}, cost),
        ]
        jobs = Jobs.of(Workload.from_dict({"classes": rows}), [0, 1], [1.0, 1.0])
        out = allocate("wham", jobs, 3)
        # g = max(1, c/l) for p = 1/2: proportional to c unless one of both is held at one core
        share = min(max(3.0 * cost / (1.0 + cost), 1.0), 2.0)
        np.testing.assert_allclose(out, [3.0 - share, share], rtol=1e-12)

    @pytest.mark.parametrize("cores", [1, 2, 5, 16])
    def test_around_n_jobs(self, cores):
        """N = n−1 shares everything, N = n gives one each, N = n+1 leaves out the smallest c/x."""
        workload = paper_workload(16)
        for count in (cores - 1, cores, cores + 1):
            classes = [i % 3 for i in range(count)]
            jobs = Jobs.of(workload, classes, [0.5 + 1.7 * i for i in range(count)])
            out = allocate("wham", jobs, cores)
            if count >= cores:
                np.testing.assert_allclose(allocate("wham-integer", jobs, cores), out, rtol=1e-12)
            if count:
                assert out.sum() == pytest.approx(cores, rel=1e-12)
            if count == cores:
                np.testing.assert_allclose(out, np.ones(count), rtol=1e-12)
            if count == cores + 1:
                expected = np.ones(count)
                expected[np.argmin(jobs.weight / jobs.remaining)] = 0.0
                np.testing.assert_allclose(out, expected, rtol=1e-12)

    def test_infinite_f_at_one_core(self):
        """N = n with speedups whose f(1) is infinite (linear start) still gives one core each."""
        speedup = {"kind": "usl", "contention": 0.0, "coherency": 0.01}
        assert allocate("wham", one_class(speedup, 5), 5).tolist() == [1.0] * 5
        assert allocate("wham", one_class(speedup, 5), 5.5).tolist() == pytest.approx([1.1] * 5)

    def test_ties_go_to_the_earlier(self):
        """Equal c/x: the earlier arrival is served."""
        jobs = Jobs.of(paper_workload(16), [0] * 4, [1.0] * 4, age=[1.0, 4.0, 2.0, 3.0])
        assert allocate("wham", jobs, 2).tolist() == [0.0, 1.0, 0.0, 1.0]

    def test_only_counts_matter_below_n(self):
        """With N < n the remaining sizes change nothing."""
        one = Jobs.of(paper_workload(16), [0, 1, 2], [1.0, 2.0, 3.0])
        two = Jobs.of(paper_workload(16), [0, 1, 2], [300.0, 0.2, 0.0])
        np.testing.assert_array_equal(allocate("wham", one, 9), allocate("wham", two, 9))

    def test_peaks_fit(self):
        """When everybody has all that helps, the price is 0 and the rest idles."""
        found = Policy.of("wham").allocate(one_class(Rooftop(4), 3), 50)
        assert found.cores.tolist() == [4.0] * 3
        assert found.price == 0.0

    def test_rooftop_blocks(self):
        """Rooftop jobs are served in c/x order with κ each, even when N < n; the rest goes to the next."""
        jobs = one_class(Rooftop(4), 4, remaining=[3.0, 1.0, 2.0, 4.0])
        assert allocate("wham", jobs, 10).tolist() == [2.0, 4.0, 4.0, 0.0]
        assert allocate("wham-integer", jobs, 10).tolist() == [2.0, 4.0, 4.0, 0.0]
        assert allocate("wham", jobs, 8.5).tolist() == [0.0, 4.0, 4.0, 0.0]

    def test_rooftop_blocks_by_weight(self):
        """The order of blocks is c·s(k_e)/(k_e·x)."""
        jobs = Jobs.of(one_class(Rooftop(4), 1).workload, [0] * 3, [1.0, 2.0, 3.0], weight=[1.0, 1.0, 9.0])
        assert allocate("wham", jobs, 8).tolist() == [4.0, 0.0, 4.0]

    def test_super_linear_blocks(self):
        """A job with s(2) = 2.5 takes two cores or none while cores are scarce."""
        table = Table([1, 2, 3], [1, 2.5, 2.6])
        jobs = one_class(table, 3, remaining=[3.0, 1.0, 2.0])
        assert allocate("wham", jobs, 4).tolist() == [0.0, 2.0, 2.0]
        assert allocate("wham-integer", jobs, 4).tolist() == [0.0, 2.0, 2.0]
        out = allocate("wham-integer", jobs, 5)
        assert out.tolist() == [1.0, 2.0, 2.0]

    def test_table_with_a_dent(self):
        """On a table below its hull jobs sit on good widths, except one that takes the rest."""
        table = Table([1, 4, 8], [1, 1.2, 4])
        jobs = one_class(table, 3, remaining=[3.0, 1.0, 2.0])
        out = allocate("wham", jobs, 12)
        assert sorted(out.tolist()) == pytest.approx([1.0, 3.0, 8.0])
        assert out[1] == 8.0

    def test_piecewise_linear_tie(self):
        """On a concave table the tied class shares the rest equally: k = a + r/N."""
        table = Table([1, 2, 4], [1, 1.8, 2.6])
        assert allocate("wham", one_class(table, 4), 10).tolist() == pytest.approx([2.5] * 4)

    def test_discount_of_identical_weights(self):
        """Multiplying all weights by the same factor changes nothing."""
        workload = paper_workload(16)
        base = Jobs.of(workload, [0, 1, 2, 2], [1.0, 2.0, 3.0, 4.0], weight=[1.0, 5.0, 2.0, 0.3])
        for factor in (1e-6, 1e6):
            scaled = Jobs.of(workload, [0, 1, 2, 2], [1.0, 2.0, 3.0, 4.0], weight=base.weight * factor)
            for cores in (3, 11):
                np.testing.assert_allclose(
                    allocate("wham", scaled, cores), allocate("wham", base, cores), rtol=1e-9
                )


def step_index(weight, speedup, k):
    """ν(k → k + 1), the price below which a job prefers one more core."""
    low, high = float(speedup(k)), float(speedup(k + 1.0))
    return weight * (high - low) / ((k + 1.0) * low - k * high) if high > low else 0.0


def naive_integer_wham(jobs, cores):
    """Everyone one core, then one step at a time to the job with the highest ν; the earliest among equals."""
    own = [jobs.speedups[i] for i in jobs.speedup_index]
    width = [1.0] * len(jobs)
    for _ in range(int(cores) - len(jobs)):
        best, chosen = 0.0, None
        for j in sorted(range(len(jobs)), key=lambda j: (-jobs.age[j], jobs.remaining[j])):
            value = step_index(jobs.weight[j], own[j], width[j])
            if value > best:
                best, chosen = value, j
        if chosen is None:
            break
        width[chosen] += 1.0
    return np.array(width)


def steps_taken(jobs, out):
    """ν of every step above one core, in ascending order."""
    own = [jobs.speedups[i] for i in jobs.speedup_index]
    return sorted(
        step_index(jobs.weight[j], own[j], k) for j in range(len(jobs)) for k in range(1, int(out[j]))
    )


class TestIntegerWham:
    """WHAM on whole cores."""

    @settings(max_examples=30, deadline=None)
    @given(situations("power", "amdahl", max_jobs=8), st.booleans())
    def test_step_by_step(self, situation, as_option):
        """Concave speedups: as good as handing out core by core to the highest index."""
        jobs, cores = situation
        cores = math.floor(cores)
        assume(0 < len(jobs) < cores <= 60)
        out = (
            allocate("wham", jobs, cores, integer=True)
            if as_option
            else allocate("wham-integer", jobs, cores)
        )
        naive = naive_integer_wham(jobs, cores)
        # Steps may differ by a rounding, then who gets the last core is a matter of taste; its value is not.
        np.testing.assert_allclose(steps_taken(jobs, out), steps_taken(jobs, naive), rtol=1e-9)

    @settings(max_examples=30, deadline=None)
    @given(situations("power", "amdahl", "usl", max_jobs=8))
    def test_within_one_edge_of_the_real_valued(self, situation):
        """No job is further than one edge from its real-valued share on the same integer hulls."""
        jobs, cores = situation
        cores = math.floor(cores)
        assume(0 < len(jobs) < cores <= 60)
        k = np.arange(1.0, cores + 1.0)
        hulls = [Table(k, np.maximum.accumulate(s(k)), hull=True) for s in jobs.speedups]
        on_hulls = Jobs.of(
            jobs.workload,
            jobs.class_index,
            jobs.remaining,
            age=jobs.age,
            weight=jobs.weight,
            speedups=[hulls[i] for i in jobs.speedup_index],
        )
        real = allocate("wham", on_hulls, cores)
        whole = allocate("wham-integer", jobs, cores)
        assert np.all(np.abs(whole - real) <= 1.0 + 1e-6)

    @settings(max_examples=30, deadline=None)
    @given(gen.tables(integer=True), st.integers(1, 8), st.integers(1, 60))
    def test_tables(self, keys, count, cores):
        """On whole-number tables: whole numbers, no waste, and all jobs but one on the hull."""
        jobs = one_class(Table(**keys), count)
        out = allocate("wham-integer", jobs, cores)
        check_budget(jobs, out, cores, integer=True)
        check_no_waste(jobs, out, cores, integer=True)
        widths = np.append(0.0, jobs.speedups[0].pricing.widths)
        hull = np.interp(out, widths, jobs.speedups[0](widths))
        below = speeds(jobs, out) < hull * (1.0 - 1e-12)
        assert jobs.speedups[0].concave or np.count_nonzero(below) <= 1

    def test_split_of_a_tied_class(self):
        """Ten cores for four equal jobs: 3, 3, 2, 2, the smaller jobs first, and none idle."""
        jobs = one_class(Power(0.5), 4, remaining=[4.0, 1.0, 3.0, 2.0])
        assert allocate("wham-integer", jobs, 10).tolist() == [2.0, 3.0, 2.0, 3.0]

    @pytest.mark.parametrize("names", [("short", "long"), ("long", "short")])
    def test_twin_classes_are_one(self, names):
        """Classes with one speedup and cost: the earliest job gets the odd core, whatever its class."""
        rows = [gen.job_class(name, 1.0, 1.0, {"kind": "power", "exponent": 0.5}, 1.0) for name in names]
        workload = Workload.from_dict({"name": "twins", "classes": rows})
        jobs = Jobs.of(workload, [0, 0, 1, 0, 1], [3.0, 1.0, 4.0, 2.0, 5.0], age=[1.0, 2.0, 5.0, 3.0, 4.0])
        for cores, lucky in ((6, [2]), (7, [2, 4]), (8, [2, 3, 4])):
            wanted = np.ones(5)
            wanted[lucky] = 2.0
            np.testing.assert_array_equal(allocate("wham-integer", jobs, cores), wanted)
            np.testing.assert_array_equal(naive_integer_wham(jobs, cores), wanted)

    def test_fraction_of_a_core(self):
        """Half a core is of no use on whole cores."""
        jobs = one_class(Power(0.5), 3)
        assert allocate("wham-integer", jobs, 7.5).tolist() == allocate("wham-integer", jobs, 7).tolist()


def best_work(weights, own, cores):
    """max Σ w s(k) with k ∈ {0} ∪ [1, ∞), over all sets of served jobs: naive but exact."""
    best = 0.0
    for size in range(1, min(len(own), int(cores)) + 1):
        for served in itertools.combinations(range(len(own)), size):
            low, high = 1e-12, 1e12
            for _ in range(200):
                price = math.sqrt(low * high)
                total = sum(best_response(own[j], weights[j], price) for j in served)
                low, high = (price, high) if total > cores else (low, price)
            k = [best_response(own[j], weights[j], high) for j in served]
            spare = cores - sum(k)
            # kinks (rooftop): the rest goes to whoever still gains, one after the other
            for position, j in enumerate(served):
                add = min(spare, max(0.0, min(float(own[j].peak), 1e15) - k[position]))
                if add > 0.0 and best_response(own[j], weights[j], low) > k[position]:
                    k[position] += add
                    spare -= add
            best = max(best, sum(weights[j] * float(own[j](x)) for j, x in zip(served, k, strict=True)))
    return best


def best_response(speedup, weight, price):
    """argmax over k ≥ 1 of w·s(k) − l·k for power and Amdahl."""
    if isinstance(speedup, Power):
        p = speedup.exponent
        return max(1.0, min((weight * p / price) ** (1.0 / (1.0 - p)), 1e15))
    q = speedup.sequential
    return max(1.0, (math.sqrt(weight * (1.0 - q) / price) - (1.0 - q)) / q)


POWERS = st.one_of(
    gen.numbers(0.05, 0.85).map(Power),
    gen.numbers(0.05, 0.9).map(Amdahl),
)


def weighted_jobs(own, weights):
    """Jobs with their own speedups and weights, of distinct sizes."""
    return Jobs.of(
        paper_workload(16),
        [0] * len(own),
        [1.0 + i for i in range(len(own))],
        weight=weights,
        speedups=own,
    )


class TestGreedy:
    """GREEDY maximises Σ w s(k)."""

    @settings(max_examples=30, deadline=None)
    @given(
        st.lists(st.tuples(POWERS, gen.numbers(0.1, 10.0)), min_size=1, max_size=5),
        st.integers(1, 12),
    )
    def test_maximum(self, pairs, cores):
        """No other allocation does more weighted work by as much as one core of the best job left out.

        Where the relaxed optimum gives a job a part of a core, GREEDY gives it none, hence the slack; with
        equal weights, or everybody served, it is the maximum.
        """
        own, weights = map(list, zip(*pairs, strict=True))
        jobs = weighted_jobs(own, weights)
        out = allocate("greedy:weight=c", jobs, cores)
        reached = float(jobs.weight @ speeds(jobs, out))
        best = best_work(weights, own, cores)
        left_out = jobs.weight[out == 0.0]
        assert reached <= best * (1.0 + 1e-8)
        assert reached >= best * (1.0 - 1e-8) - (
            left_out.max() if 0 < len(own) - len(left_out) < cores and len(left_out) else 0.0
        )

    @settings(max_examples=30, deadline=None)
    @given(st.lists(POWERS, min_size=1, max_size=5), st.integers(1, 12))
    def test_maximum_with_equal_weights(self, own, cores):
        """With w = 1 no allocation does more work."""
        jobs = weighted_jobs(own, [1.0] * len(own))
        reached = float(speeds(jobs, allocate("greedy", jobs, cores)).sum())
        assert reached == pytest.approx(best_work([1.0] * len(own), own, cores), rel=1e-8)

    @settings(max_examples=30, deadline=None)
    @given(
        st.lists(
            st.tuples(
                gen.speedups("power", "amdahl", "usl", "rooftop", "linear_power"), gen.numbers(0.1, 10.0)
            ),
            min_size=1,
            max_size=4,
        ),
        st.integers(1, 7),
    )
    def test_integer_maximum(self, pairs, cores):
        """On whole cores no allocation at all does more weighted work."""
        own, weights = map(list, zip(*pairs, strict=True))
        jobs = weighted_jobs(own, weights)
        out = allocate("greedy:weight=c", jobs, cores, integer=True)
        reached = float(jobs.weight @ speeds(jobs, out))
        gains = [[w * float(s(k)) for k in range(cores + 1)] for s, w in zip(own, weights, strict=True)]
        best = max(
            sum(gain[k] for gain, k in zip(gains, widths, strict=True))
            for widths in itertools.product(range(cores + 1), repeat=len(own))
            if sum(widths) <= cores
        )
        assert reached >= best * (1.0 - 1e-9)

    def test_equal_weights_serve_everybody(self):
        """With w = 1 and N < n everybody has at least one core and slopes above one core are equal."""
        jobs = Jobs.of(paper_workload(16), [0, 1, 2, 1], [1.0, 2.0, 3.0, 4.0])
        out = allocate("greedy", jobs, 20)
        slopes = [jobs.speedups[i].slope(k) for i, k in zip(jobs.class_index, out, strict=True)]
        assert np.all(out > 1.0)
        np.testing.assert_allclose(slopes, slopes[0], rtol=1e-8)

    def test_weights(self):
        """mu, c, cmu and c/x are what they say: equal products give equal treatment."""
        rows = [
            gen.job_class("a", 1.0, 0.5, {"kind": "power", "exponent": 0.5}, 3.0),
            gen.job_class("b", 1.0, 2.0, {"kind": "power", "exponent": 0.5}, 12.0),
        ]
        jobs = Jobs.of(Workload.from_dict({"classes": rows}), [0, 1], [1.0, 4.0])
        equal = [4.0, 4.0]
        assert allocate("greedy", jobs, 8).tolist() == pytest.approx(equal)
        assert allocate("greedy:weight=cmu", jobs, 8).tolist() == pytest.approx(equal)
        assert allocate("greedy:weight=c/x", jobs, 8).tolist() == pytest.approx(equal)
        # k ∝ w² for p = 1/2 would be 16 to 1, less than a core: the lesser job is held at one core
        assert allocate("greedy:weight=mu", jobs, 8).tolist() == pytest.approx([7.0, 1.0])
        assert allocate("greedy:weight=c", jobs, 8).tolist() == pytest.approx([1.0, 7.0])
        # on three cores mu = 2 earns 1/√2 with its second core, more than mu = 1/2 with its first
        assert allocate("greedy:weight=mu", jobs, 3).tolist() == pytest.approx([3.0, 0.0])

    def test_star_breaks_ties(self):
        """N > n: GREEDY* serves the less parallelizable class, GREEDY the earlier arrivals."""
        jobs = Jobs.of(paper_workload(16), [1, 1, 0, 0], [1.0] * 4, age=[4.0, 3.0, 2.0, 1.0])
        assert allocate("greedy", jobs, 2).tolist() == [1.0, 1.0, 0.0, 0.0]
        assert allocate("greedy-star", jobs, 2).tolist() == [0.0, 0.0, 1.0, 1.0]


class TestEqui:
    """EQUI divides equally."""

    @settings(max_examples=30, deadline=None)
    @given(situations(*ANY))
    def test_water_filling(self, situation):
        """Everybody has the same or his peak, and nobody at his peak has more than the others."""
        jobs, cores = situation
        assume(len(jobs))
        out = allocate("equi", jobs, cores)
        peaks = np.array([float(jobs.speedups[i].peak) for i in jobs.speedup_index])
        level = out.max()
        assert np.all(out <= peaks * (1.0 + 1e-12))
        below = out < level * (1.0 - 1e-9)
        np.testing.assert_allclose(out[below], peaks[below], rtol=1e-12)
        assert out.sum() == pytest.approx(min(cores, peaks.sum()), rel=1e-9)

    def test_time_sharing(self):
        """More jobs than cores: n/N each."""
        assert allocate("equi", one_class(Power(0.5), 8), 2).tolist() == [0.25] * 8

    def test_whole_cores(self):
        """On whole cores shares differ by at most one, the earlier arrivals ahead."""
        jobs = Jobs.of(paper_workload(16), [0] * 4, [1.0] * 4, age=[1.0, 4.0, 2.0, 3.0])
        assert allocate("equi", jobs, 10, integer=True).tolist() == [2.0, 3.0, 2.0, 3.0]
        assert allocate("equi", jobs, 2, integer=True).tolist() == [0.0, 1.0, 0.0, 1.0]
