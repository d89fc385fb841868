"""The job rules: what all of them share, and SRPT, FCFS, fixed width and the rooftop family.

A user's own policies keep the same rules. heSRPT, HELL, KNEE, Pollux and Sia have tests of their own.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from malleable import catalog
from malleable.contracts import Need, Policy
from malleable.engine.compiling import JOB_RULE, compiled
from malleable.engine.rule_interface import COLUMNS, REMAINING
from malleable.errors import InfeasibleError, ParameterError, PolicyError, WorkloadError
from malleable.model import Workload
from malleable.model.jobs import Jobs
from malleable.policies.base import JobRule, job_rows
from malleable.policies.base.class_priority import parallelism
from malleable.policies.base.function_policy import Function
from malleable.policies.fixed_width import FixedWidth
from malleable.policies.hesrpt import Hesrpt
from malleable.policies.knee import Knee
from malleable.policies.rules.ordering import ascending
from malleable.speedups.amdahl import Amdahl
from malleable.speedups.power import Power
from malleable.speedups.rooftop import Rooftop
from support import strategies as gen
from support.examples import examples
from support.rivals import INSTANCES, PAPER, cores_of, random_jobs

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
    rule(np.zeros((0, COLUMNS)), 8.0, policy.program(PAPER, 8.0, Need(by_job=True)).table, np.zeros(0))
    policy.rule(np.zeros((0, COLUMNS)), 8.0, policy.program(PAPER, 8.0, Need(by_job=True)).table, np.zeros(0))
    for n in (1.0, 2.0, 7.0, 112.0 / 15.0, 64.0, 100.0):
        table = policy.program(PAPER, n, Need(by_job=True)).table
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


@settings(max_examples=examples(24))
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
    roof = Jobs.of(gen.one_class(Rooftop(4.0)), [0, 0], [1.0, 2.0])
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
    assert policy.program(PAPER, 4).period == 2.0
    assert cores_of(policy, Jobs.of(PAPER, [0, 1], [1.0, 1.0], age=[1.0, 2.0]), 4).tolist() == [4.0, 0.0]


def test_a_function_says_how_it_wants_to_be_asked():
    """A bare function may say `sees_all` and `period` by attributes, as a class does."""

    def mine(jobs, cores, table, out):
        out[:] = 0.0

    assert (Policy.of(mine).sees_all, Policy.of(mine).period) == (False, 0.0)
    mine.sees_all, mine.period = True, 0.5
    made = Policy.of(mine).program(PAPER, 4)
    assert (made.sees_all, made.period) == (True, 0.5)
