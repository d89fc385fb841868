"""Who gets how many cores: what every policy keeps to, and what every class rule keeps to."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from malleable import catalog
from malleable.contracts import Policy
from malleable.errors import InfeasibleError, ParameterError
from malleable.model import Workload, paper_workload
from malleable.model.jobs import Jobs
from malleable.policies.base import job_rows
from malleable.policies.base.asking import allocation, simulated
from malleable.speedups.amdahl import Amdahl
from malleable.speedups.custom import Custom
from malleable.speedups.power import Power
from malleable.speedups.rooftop import Rooftop
from malleable.speedups.table import Table
from support import strategies as gen
from support.chains import SHORT_AND_LONG
from support.examples import examples
from support.situations import ANY, allocate, check_budget, check_no_waste, jobs_of_one_class, situations

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


@st.composite
def plannable(draw, policy, max_jobs):
    """Random jobs; of the paper's workload for policies that plan for arrivals and may find no plan."""
    if policy.startswith("fw_cam") or policy == "wham_fitted":
        cores = draw(st.sampled_from([64, 128] if policy.startswith("fw_cam") else [8, 16]))
        return draw(gen.jobs_of(paper_workload(cores), max_jobs=max_jobs, weights=True)), float(cores)
    if policy in {"auto", "wham_improved"}:  # a plan for every random workload would take a second each
        made = SHORT_AND_LONG.at(8, 0.5)
        return draw(gen.jobs_of(made, max_jobs=max_jobs, weights=True)), 8.0
    jobs, cores = draw(situations("power", "amdahl", max_jobs=max_jobs))
    return jobs, min(cores, 64.0)


class TestEveryPolicy:
    """What the catalog's policies promise, whatever their shape."""

    @pytest.mark.parametrize("policy", POLICIES)
    @pytest.mark.parametrize("integer", [False, True])
    def test_budget(self, policy, integer):
        """Total ≤ n, nothing in (0, 1) but of policies that say so, on whole cores whole numbers."""
        sharing = Policy.of(policy).sharing and not integer

        @settings(max_examples=examples(4))
        @given(plannable(policy, max_jobs=10))
        def check(situation):
            jobs, cores = situation
            out = allocate(policy, jobs, cores, integer=integer)
            check_budget(jobs, out, cores, sharing=sharing, integer=integer)

        check()

    @pytest.mark.parametrize("policy", POLICIES)
    def test_permuting_jobs_permutes_the_allocation(self, policy):
        """No job gains from standing earlier in the list (sizes and ages are distinct)."""

        @settings(max_examples=examples(6))
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
    @pytest.mark.parametrize("part", [5.0, 7.5, 12.0])
    def test_a_part_of_the_machine(self, policy, part):
        """On what is left of a machine a policy gives what its program for the machine gives."""
        machine, load = (64.0, 0.25) if policy.startswith("fw_cam") else (12.0, 0.8)
        workload, chosen = paper_workload(machine, load), Policy.of(policy)
        program = simulated(chosen, workload, machine, plain=False)
        rng = np.random.default_rng(5)
        for size in (2, 5, 9, 14):
            jobs = Jobs.of(workload, rng.integers(0, 3, size), rng.exponential(1.0, size))
            wanted = np.zeros(size)
            program.rule(job_rows(jobs, jobs.class_index), part, program.table.copy(), wanted)
            found = allocation(chosen, jobs, part, machine).cores
            np.testing.assert_allclose(found, wanted, rtol=1e-7, atol=1e-9)

    @pytest.mark.parametrize("policy", POLICIES)
    def test_no_jobs(self, policy):
        """No jobs, no cores."""
        jobs = Jobs.of(paper_workload(64), [], [])
        assert allocate(policy, jobs, 64).shape == (0,)

    @pytest.mark.parametrize("policy", POLICIES)
    def test_runs_on_the_paper_workload(self, policy):
        """Every policy answers for a handful of the paper's jobs with its defaults, and serves one."""
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

        @settings(max_examples=examples(8))
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
            jobs_of_one_class(Table([1, 2, 3], [1, 1, 2]), 1).workload, [0, 0], [1.0, 2.0], weight=[1.0, 2.7]
        )
        check_no_waste(jobs, allocate("greedy:weight=c", jobs, 2), 2)

    @pytest.mark.parametrize("policy", CLASS_RULES)
    def test_permutation(self, policy):
        """Permuting jobs permutes the allocation, blocks and tables included."""

        @settings(max_examples=examples(6))
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

        @settings(max_examples=examples(6))
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
            assert allocate(policy, jobs_of_one_class(speedup, 1), 7).tolist() == pytest.approx(
                [most], rel=1e-12
            )

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
        """Finished and endless jobs break no policy's arithmetic."""
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
