"""The rules of the market policies give what vectorised oracles give, compiled or not."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from malleable.contracts import Need, Policy
from malleable.engine.compiling import CLASS_RULE, JOB_RULE, compiled
from malleable.engine.rule_interface import COUNTS, FIFO, INDEX, JOBS, POOLS, SHARE
from malleable.model import Workload, paper_workload
from malleable.model.jobs import Jobs
from malleable.policies.base import job_rows
from malleable.policies.equi import Equi
from malleable.policies.fw_cam import FwCam
from malleable.policies.fw_cam_repaired import FwCamRepaired
from malleable.policies.greedy import Greedy
from malleable.policies.greedy_star import GreedyStar
from malleable.policies.rules.class_rules import (
    equi_rule,
    greedy_rule,
    market_table,
    newton_rule,
    quadratic_rule,
    wham_rule,
)
from malleable.policies.rules.fixed_widths import fixed_rule
from malleable.policies.rules.market_rules import greedy_jobs_rule, wham_integer_rule, wham_jobs_rule
from malleable.policies.rules.whittle_rule import whittle_rule
from malleable.policies.wham import Wham
from malleable.policies.wham_integer import WhamInteger
from malleable.policies.whittle import Whittle
from support import market_oracle, whittle_oracle
from support.examples import examples
from support.strategies import FAST, concave_function, job_class, numbers, workloads

WEIGHTS = ("1", "mu", "c", "cmu", "c/x")
MARKET = [Wham(), WhamInteger(), *(kind(weight) for kind in (Greedy, GreedyStar) for weight in WEIGHTS)]
WHITTLE = [Whittle(alpha, arm) for alpha in (1e-4, 0.05, 1.0, 20.0) for arm in ("optimal", "constant")]
ONE_CORE = ("power", "amdahl", "usl")


def job_program(policy, workload, cores):
    """The policy's job rule and table, also where a class rule would do."""
    return policy.program(workload, cores, Need(by_job=True))


def run(rule, table, jobs, cores):
    """What the rule gives each job, which it sees by arrival, with leftovers in `out`."""
    out = np.full(len(jobs), np.nan)
    rule(job_rows(jobs, jobs.class_index), float(cores), table, out)
    cores_of = np.empty(len(jobs))
    cores_of[jobs.order] = out
    return cores_of


def workload_of(*speedups, costs=(1.0, 2.0, 3.0), means=(1.0, 0.5, 2.0)):
    rows = [
        job_class(f"c{i}", 0.3, mean, speedup, cost)
        for i, (speedup, cost, mean) in enumerate(zip(speedups, costs, means, strict=False))
    ]
    return Workload.from_dict({"name": "chosen", "classes": rows})


def random_jobs(workload, size, seed, *, own_weights=False):
    """Jobs of random classes, sizes over four orders of magnitude, rows not in the order of arrival."""
    rng = np.random.default_rng(seed)
    return Jobs.of(
        workload,
        rng.integers(0, len(workload.classes), size),
        np.exp(rng.normal(0.0, 1.5, size) + rng.normal(0.0, 1.0)),
        age=rng.permutation(size).astype(float),
        weight=np.exp(rng.normal(0.0, 1.0, size)) if own_weights else None,
    )


@st.composite
def populations(draw, *kinds, own_weights=True):
    """A workload, a number of cores from 1 to 64, and three sets of one to 3n jobs."""
    workload = draw(workloads(*kinds))
    cores = draw(st.one_of(st.integers(1, 64), numbers(1.0, 64.0)))
    most = max(1, int(3 * cores))
    sets = [
        random_jobs(workload, draw(st.one_of(st.integers(1, most), st.integers(1, max(1, most // 9)))), seed)
        for seed in draw(st.tuples(*[st.integers(0, 2**32)] * 2))
    ]
    if own_weights:
        sets.append(random_jobs(workload, draw(st.integers(1, most)), 7, own_weights=True))
    return workload, cores, sets


def expected(policy, jobs, cores):
    """What the vectorised procedure gives."""
    by_hand = whittle_oracle if isinstance(policy, Whittle) else market_oracle
    return by_hand.allocation(policy, jobs, cores)


def check(policy, population, tolerance):
    workload, cores, sets = population
    program = job_program(policy, workload, cores)
    for jobs in sets:
        wanted = expected(policy, jobs, cores).cores
        got = run(program.rule, program.table, jobs, cores)
        assert np.abs(got - wanted).max() <= tolerance * max(1.0, float(cores)), (got, wanted)


@pytest.mark.parametrize("policy", MARKET, ids=repr)
def test_a_hair_more_than_one_core_each(policy):
    """Demand that is flat and nearly right does not keep the search from the price: the hair is given out."""
    workload = workload_of({"kind": "power", "exponent": 0.5})
    check(policy, (workload, 1.0 + 2.0**-24, [random_jobs(workload, 1, seed) for seed in range(3)]), 1e-9)


@pytest.mark.parametrize("policy", MARKET, ids=repr)
def test_twin_classes(policy):
    """No class comes before another that has the same speedup and weight."""
    halves = {"kind": "power", "exponent": 0.5}
    workload = workload_of(
        halves, {"kind": "amdahl", "sequential": 0.2}, halves, costs=(1, 1, 1), means=(1, 1, 3)
    )
    for size in (3, 5, 8):
        check(policy, (workload, 13, [random_jobs(workload, size, seed) for seed in range(6)]), 1e-9)


@pytest.mark.parametrize("policy", ["greedy", "greedy:weight=mu", "greedy-star"])
def test_costs_that_do_not_count_make_no_difference(policy):
    """A policy that does not look at costs gives the odd core to the earliest job, whatever its class."""
    halves = {"kind": "power", "exponent": 0.5}
    for costs in ((1.0, 3.0), (3.0, 1.0)):
        workload = workload_of(halves, halves, costs=costs, means=(1, 1))
        for classes in ([0, 1], [1, 0]):
            jobs = Jobs.of(workload, classes, [1.0, 1.0], age=[1.0, 0.0])
            assert Policy.of(policy).allocate(jobs, 3, integer=True).cores.tolist() == [2.0, 1.0]


@pytest.mark.parametrize("policy", MARKET, ids=repr)
@settings(max_examples=examples(4))
@given(population=populations(*FAST))
def test_job_rules_are_the_policies(policy, population):
    """The rule gives every job what `allocate` gives it: any speedups, weights, loads, and last price."""
    check(policy, population, 1e-9)


@pytest.mark.parametrize("policy", WHITTLE, ids=repr)
@settings(max_examples=examples(3))
@given(population=populations(*FAST))
def test_the_whittle_rule_is_the_policy(policy, population):
    """The scalar search for widths and price ends where the vectorised one does, short jobs or long."""
    check(policy, population, 1e-7)


@pytest.mark.parametrize("policy", [Wham(), Greedy(), Equi()], ids=repr)
@settings(max_examples=examples(8))
@given(population=populations(*ONE_CORE, own_weights=False))
def test_class_rules_are_the_policies(policy, population):
    """While jobs are fewer than cores, the class rule gives each class what `allocate` gives its jobs."""
    workload, cores, sets = population
    program = policy.program(workload, np.ceil(cores))
    assert program.sees == COUNTS
    assert policy.program(workload, np.floor(cores) + 0.5).sees in {JOBS, COUNTS}
    sets = [jobs for jobs in sets if len(jobs) < cores]
    assume(sets)
    rules = {program.rule: program.table}
    if not isinstance(policy, Equi):
        general = wham_rule if isinstance(policy, Wham) else greedy_rule
        rules[general] = market_table(workload.speedups, policy.buyers(workload).weights, cores)
    for rule, table in rules.items():
        for jobs in sets:
            counts = np.bincount(jobs.class_index, minlength=len(workload.classes)).astype(float)
            out = np.full(len(counts), np.nan)
            rule(counts, float(cores), table, out)
            wanted = market_oracle.allocation(policy, jobs, cores).cores
            assert np.abs(out[jobs.class_index] - wanted).max() <= 1e-9 * max(1.0, cores)


@pytest.mark.parametrize("size", [23, *(pytest.param(k, marks=pytest.mark.slow) for k in (1, 7, 30))])
def test_tabulated_speedups_get_nearly_the_same(size):
    """A Python function is tabulated for the engine; widths then agree to the spacing of its corners."""
    curve = {"kind": "custom", "function": concave_function, "limit": 64.0}
    workload = workload_of(curve, {"kind": "power", "exponent": 0.4})
    jobs = random_jobs(workload, size, size)
    for policy in (Wham(), Greedy("c"), WhamInteger(), Whittle()):
        program = job_program(policy, workload, 24)
        got = run(program.rule, program.table, jobs, 24)
        assert np.allclose(got, expected(policy, jobs, 24).cores, rtol=0.01)


@pytest.mark.parametrize("policy", [*MARKET, Whittle()], ids=repr)
def test_a_finished_job_does_no_harm(policy):
    """Sizes of 0, or a rounding error below, give numbers and no more cores than there are."""
    workload = paper_workload()
    program = job_program(policy, workload, 8)
    rows = job_rows(random_jobs(workload, 12, 1), random_jobs(workload, 12, 1).class_index)
    rows[3, 1], rows[7, 1] = 0.0, -1e-18
    out = np.full(12, np.nan)
    program.rule(rows, 8.0, program.table, out)
    assert np.isfinite(out).all()
    assert (out >= 0.0).all()
    assert out.sum() <= 8.0 * (1.0 + 1e-12)


# --- which program ---------------------------------------------------------------------------------------


POWER, AMDAHL = {"kind": "power", "exponent": 0.5}, {"kind": "amdahl", "sequential": 0.1}
USL, ROOFTOP = {"kind": "usl", "contention": 0.1, "coherency": 0.01}, {"kind": "rooftop", "cores": 4.0}


@pytest.mark.parametrize(
    ("policy", "speedups", "cores", "rule", "discipline"),
    [
        (Wham(), (POWER, AMDAHL), 16, quadratic_rule, INDEX),
        (Wham(), (POWER, USL), 16, wham_rule, INDEX),
        (Wham(), (POWER, ROOFTOP), 16, wham_jobs_rule, None),
        (Wham(), (POWER, AMDAHL), 16.5, wham_jobs_rule, None),
        (WhamInteger(), (POWER, AMDAHL), 16, wham_integer_rule, None),
        (Greedy(), (POWER, AMDAHL), 16, newton_rule, FIFO),
        (Greedy(), (POWER, USL), 16, greedy_rule, FIFO),
        (Greedy("c"), (POWER, USL), 16, greedy_jobs_rule, None),
        (Greedy("mu"), (POWER,), 16, newton_rule, FIFO),
        (Greedy("c/x"), (POWER,), 16, greedy_jobs_rule, None),
        (GreedyStar(), (POWER, AMDAHL), 16, greedy_jobs_rule, None),
        (GreedyStar(), (POWER, POWER), 16, newton_rule, FIFO),
        (Equi(), (POWER, ROOFTOP), 16, equi_rule, SHARE),
        (Whittle(), (POWER, ROOFTOP), 16, whittle_rule, None),
    ],
)
def test_the_simplest_program_that_is_exact(policy, speedups, cores, rule, discipline):
    """Class rules where counts say it all and cores are whole; job rules elsewhere."""
    program = policy.program(workload_of(*speedups), cores)
    assert program.rule is rule
    assert (program.discipline if program.sees == COUNTS else None) == discipline


@pytest.mark.parametrize("policy", [FwCam(), FwCamRepaired(beta=0.76)], ids=repr)
def test_fixed_widths_come_from_the_plan(policy):
    """FW-CAM's program has the slots of its plan, and its rule writes their widths whatever the counts."""
    workload = paper_workload().at(64.0, 0.25)
    program, plan = policy.program(workload, 64), policy.plan(workload, 64)
    out = np.zeros(len(workload.classes))
    program.rule(np.zeros(len(out)), 64.0, program.table, out)
    assert (program.rule, program.discipline) == (fixed_rule, POOLS)
    assert out.tolist() == plan.widths.tolist()
    assert program.slots == plan.slots


# --- compiled --------------------------------------------------------------------------------------------


def assert_same_bits(policies, kinds):
    for seed, policy in enumerate(policies):
        workload = workload_of(*kinds)
        interpreted, machine = (job_program(policy, workload, 20) for _ in range(2))
        code = compiled(machine.rule, JOB_RULE)
        for size in (1, 2, 5, 12, 19, 20, 33, 60):
            for own_weights in (False, True):
                jobs = random_jobs(workload, size, (seed, size), own_weights=own_weights)
                by_hand = run(interpreted.rule, interpreted.table, jobs, 20.0)
                assert by_hand.tolist() == run(code, machine.table, jobs, 20.0).tolist()


SUPER = {"kind": "table", "cores": [1.0, 2.0, 4.0, 9.0], "speedup": [1.0, 2.3, 3.0, 5.5]}
LINEAR = {"kind": "linear_power", "cores": 2.5, "exponent": 0.6}


@pytest.mark.parametrize("kinds", [(POWER, AMDAHL, USL), (SUPER, LINEAR, ROOFTOP)], ids=["smooth", "corners"])
@pytest.mark.parametrize(
    "policies",
    [[Wham()], [WhamInteger()], [Greedy("c"), GreedyStar(), Greedy("c/x")]],
    ids=["wham", "wham-integer", "greedy"],
)
def test_compiled_market_rules_are_the_same_to_the_bit(policies, kinds):
    """Machine code and Python do the same operations in the same order."""
    assert_same_bits(policies, kinds)


@pytest.mark.slow
@pytest.mark.parametrize("kinds", [(POWER, AMDAHL, USL), (SUPER, LINEAR, ROOFTOP)], ids=["smooth", "corners"])
def test_the_compiled_whittle_rule_is_the_same_to_the_bit(kinds):
    """Machine code and Python do the same operations in the same order."""
    assert_same_bits(WHITTLE, kinds)


@pytest.mark.parametrize(
    ("policy", "kinds"),
    [
        (Wham(), (POWER, AMDAHL)),
        (Wham(), (POWER, USL)),
        (Greedy(), (POWER, AMDAHL)),
        (Equi(), (POWER, ROOFTOP)),
    ],
    ids=["quadratic", "wham", "newton", "equi"],
)
def test_compiled_class_rules_are_the_same_to_the_bit(policy, kinds):
    """The same for class rules, along a walk of the counts, as the price searches start from the last one."""
    workload = workload_of(*kinds)
    interpreted, machine = (policy.program(workload, 32) for _ in range(2))
    code = compiled(machine.rule, CLASS_RULE)
    one, other = np.zeros(len(kinds)), np.zeros(len(kinds))
    for counts in ([1.0, 0.0], [1.0, 1.0], [3.0, 1.0], [9.0, 20.0], [0.0, 20.0], [0.0, 1.0]):
        interpreted.rule(np.array(counts), 32.0, interpreted.table, one)
        code(np.array(counts), 32.0, machine.table, other)
        assert one.tolist() == other.tolist()


@pytest.mark.parametrize("kind", [Greedy, GreedyStar])
@pytest.mark.parametrize("remaining", [0.0, 1e-250, 1e-30])
def test_a_finished_job_on_whole_cores(kind, remaining):
    """A job with nothing left to do, whose weight c/x is beyond all others, has all cores, compiled too."""
    policy = kind("c/x")
    workload = workload_of({"kind": "power", "exponent": 0.9}, {"kind": "amdahl", "sequential": 0.2})
    jobs = Jobs.of(workload, [1, 0, 1, 0], [1.0, remaining, 2.0, 3.0], age=[3.0, 2.0, 1.0, 0.0])
    assert policy.allocate(jobs, 8, integer=True).cores.tolist() == [0.0, 8.0, 0.0, 0.0]
    rule, table, *_ = policy.program(workload, 8.0, Need(True, whole=True))
    assert run(compiled(rule, JOB_RULE), table.copy(), jobs, 8.0).tolist() == [0.0, 8.0, 0.0, 0.0]


def test_more_whole_cores_wanted_than_integers_count():
    """A job that would take 10^29 cores at the value of another has all there are, compiled too."""
    workload = workload_of(*[{"kind": "power", "exponent": 0.97}] * 2, costs=(1.0, 8.0), means=(1.0, 1.0))
    jobs = Jobs.of(workload, [0, 1], [1.0, 1.0])
    rule, table, *_ = Greedy("c").program(workload, 6.0, Need(True, whole=True))
    for function in (rule, compiled(rule, JOB_RULE)):
        assert run(function, table.copy(), jobs, 6.0).tolist() == [0.0, 6.0]
