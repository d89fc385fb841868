"""The kernels against a naive simulator, job by job, for every policy; compiled against interpreted."""

from __future__ import annotations

import functools
import itertools

import numpy as np
import pytest

from malleable import catalog
from malleable.contracts import Policy
from malleable.engine.machines import machine
from malleable.engine.rule_interface import COUNTS, JOBS, POOLS
from malleable.engine.run import Run, departures
from malleable.errors import InfeasibleError, UnstableError
from malleable.model import Workload
from malleable.policies.fw_cam import FwCam
from malleable.simulation import program
from malleable.sources import ArrayStream, Chunk
from malleable.theory import fw_cam
from support import random_jobs as gen
from support import reference_simulator as reference

pytestmark = pytest.mark.filterwarnings("ignore:wham-fitted stepped back")
NAMES = tuple(catalog.display("policies", kind) for kind in sorted(set(catalog.kinds("policies")) - {"auto"}))
"""All but `auto`, which runs the program of another one, and takes a second to find it for a workload."""
OPTIONS = {
    # Rounds of about a third of a mean size, so that a few dozen jobs see many of them.
    "pollux": "pollux:period=0.31",
    "sia": "sia:period=0.31",
    "whittle": "whittle:discount=0.2",
    "knee": "knee:alpha=0.02",
    # A quick fit is as good as any: what is compared is who runs it.
    "wham-fitted": "wham-fitted:moments=1000",
}
SLOW_TO_ASK = {"wham-integer": 14, "whittle": 14, "greedy": 30, "greedy-star": 20, "pollux": 30, "sia": 30}
"""Policies whose `allocate`, or interpreted rule, takes milliseconds: fewer jobs, fewer cores."""
FEWER = {**SLOW_TO_ASK, "wham-improved": 14, "wham-fitted": 14, "smartfill": 14, "clearing": 14}
"""The same for the quick tests, where some plan for a second."""
LEAST = {"fw-cam": 40, "fw-cam-repaired": 12}
"""Policies that have no plan for fewer cores than these, or hardly ever."""
VARIANTS = (
    "greedy:weight=cmu",
    "greedy:weight=c/x",
    "greedy:weight=mu",
    "fixed-width:shared=false,widths=1",
    "pollux:period=0,restart=0.05",
    "sia:period=0.2,restart=0",
    "srpt",
)
QUICK = ("wham", "equi", "greedy", "fw-cam", "hesrpt", "srpt", "wham-integer")
"""What the quick tests compile."""


def chosen(name):
    return Policy.of(OPTIONS.get(name, name))


def planned(policy, workload, cores):
    """The workload, at a load for which the policy has a plan; the jobs that come need not keep to it.

    None if there is no such load.
    """
    if not isinstance(policy, FwCam):
        return workload
    for load in (0.6, 0.4, 0.25, 0.15, 0.08, 0.03):
        try:
            # Not `plan`, which searches for what would work before it says no.
            fw_cam._plan(
                workload.at(cores, load), cores, policy.beta, repaired=policy.repaired, integer=False
            )
        except (InfeasibleError, UnstableError):
            continue
        return workload.at(cores, load)
    return None


def agree(policy, workload, cores, jobs, *, interpreted=True):
    """Whether all jobs leave when the naive simulator says so."""
    workload = planned(policy, workload, cores)
    if workload is None:
        pytest.skip("this policy has no plan for so few cores")
    expected = reference.departures(policy, workload, cores, *jobs)
    got = departures(workload, cores, program(policy, workload, cores), jobs, interpreted=interpreted)
    if not np.allclose(got, expected, rtol=1e-9, atol=1e-12) and hangs_on_rounding(
        policy, workload, cores, jobs, expected
    ):
        pytest.skip("the naive simulator itself departs from this run when sizes change by rounding")
    np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-12)


def hangs_on_rounding(policy, workload, cores, jobs, expected):
    """Whether the naive simulator takes another course when sizes change in their last digits.

    Two jobs of the same value to 13 digits may be served in either order, and no simulator is right then.
    """
    rng = np.random.default_rng(0)
    for _ in range(8):
        nearby = jobs._replace(sizes=jobs.sizes * (1.0 + 1e-13 * rng.uniform(-1.0, 1.0, jobs.size)))
        other = reference.departures(policy, workload, cores, *nearby)
        if not np.allclose(other, expected, rtol=1e-9, atol=1e-12):
            return True
    return False


# --- job by job ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [0, 1, pytest.param(2, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", NAMES)
def test_every_policy_as_the_naive_simulator_has_it(name, seed):
    """Departure times agree to 1e-9 on random workloads: mixed speedups and sizes, overload, ties."""
    few = FEWER.get(name)
    least = LEAST.get(name, 1)
    agree(chosen(name), *gen.instance(seed, few or 50, least_cores=least, most_cores=16 if few else 64))


@pytest.mark.parametrize("seed", range(100, 104))
@pytest.mark.parametrize("name", VARIANTS)
def test_variants_as_the_naive_simulator_has_them(name, seed):
    """Weights, separate pools, rounds without pauses and pauses without rounds agree as well."""
    least = 16 if "shared=false" in name else 1
    agree(Policy.of(name), *gen.instance(seed, 30, least_cores=least, most_cores=16))


@pytest.mark.parametrize("seed", range(200, 208))
@pytest.mark.parametrize("name", ["wham", "greedy", "equi"])
def test_class_kernel_on_closed_forms(name, seed):
    """Power and Amdahl classes have rules of their own; crowds come and go at loads around 1."""
    rng = np.random.default_rng(seed)
    one = gen.instance(seed, 70, kinds=("power", "amdahl"), most_cores=8, load=rng.uniform(0.7, 1.2))
    assert program(Policy.of(name), one.workload, one.cores).sees == COUNTS
    agree(Policy.of(name), *one)


@pytest.mark.parametrize("seed", range(300, 304))
@pytest.mark.parametrize("name", ["wham", "greedy", "fcfs", "srpt", "hesrpt", "equi"])
def test_equal_jobs_keep_the_order_of_arrival(name, seed):
    """Deterministic sizes, equal costs and batches make jobs tie everywhere: the earlier goes first."""
    rng = np.random.default_rng(seed)
    classes = int(rng.integers(1, 4))
    rows = [
        {
            "name": f"c{i}",
            "arrivals": {"kind": "poisson", "rate": 1.0},
            "size": {"kind": "deterministic", "value": [1.0, 1.0, 0.7][i]},
            "speedup": gen.speedup(rng, ["power", "amdahl", "power"][i]),
            "holding_cost": 1.0,
        }
        for i in range(classes)
    ]
    workload = Workload.from_dict({"name": "equal", "classes": rows}).at(3, 1.1)
    times = np.sort(rng.uniform(0.0, 12.0, 20)).repeat(3)
    jobs = Chunk(times, rng.integers(0, classes, 60), np.empty(60))
    jobs.sizes[:] = workload.mean_sizes[jobs.classes]
    agree(Policy.of(name), workload, 3, jobs)


@pytest.mark.parametrize("name", NAMES)
def test_single_jobs_and_none(name):
    """One job alone, on one core or many, and no jobs at all."""
    for cores in (16, 1):
        one = gen.instance(7, 1, cores=cores, classes=1, load=0.1)
        agree(chosen(name), *one)
        agree(chosen(name), one.workload, cores, Chunk(np.empty(0), np.empty(0, np.int64), np.empty(0)))


@pytest.mark.parametrize("name", NAMES)
def test_pieces_make_the_same_whole(name):
    """Feeding a stream in pieces, of no jobs, one or many, changes no bit of any departure."""
    policy = chosen(name)
    jobs_count = FEWER.get(name, 60)
    one = gen.instance(11, jobs_count, cores=16, load=0.9, classes=2)
    workload = planned(policy, one.workload, 16)
    made = program(policy, workload, 16)
    whole = departures(workload, 16, made, one.jobs, interpreted=True)
    rng = np.random.default_rng(3)
    cuts = [0, 0, 1, 1, *sorted(rng.integers(1, jobs_count, 5)), jobs_count, jobs_count]
    pieces = machine(workload, 16, made, interpreted=True, log=jobs_count)
    for first, last in itertools.pairwise(cuts):
        part = Chunk(*(column[first:last].copy() for column in one.jobs))
        pieces.feed(part, 0, last - first)
    pieces.feed(Chunk(*(column[:0] for column in one.jobs)), 0, 0, drain=True)
    assert pieces.ends.tolist() == whole.tolist()


# --- growth and the memo ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["wham", "greedy", "equi", "fcfs", "srpt", "fw-cam"])
def test_more_jobs_than_the_arrays_first_hold(name):
    """A hundred and fifty jobs on five cores: heaps, rings and rows grow more than once."""
    one = gen.instance(
        21, 150, cores=16 if name == "fw-cam" else 5, load=4.0, kinds=("power", "amdahl"), classes=2
    )
    agree(chosen(name), *one)


@pytest.mark.parametrize("name", ["wham", pytest.param("equi", marks=pytest.mark.slow)])
def test_more_jobs_than_are_remembered(name):
    """Beyond 8192 jobs states are no longer looked up: here 9000 arrive at once, on more cores and on fewer.

    All are equal, so they share the cores or wait their turn, and the answer is known.
    """
    rows = [{"arrivals": {"kind": "poisson", "rate": 1.0}, "size": {"kind": "deterministic", "value": 2.0},
             "speedup": {"kind": "power", "exponent": 0.5}}]  # fmt: skip
    workload = Workload.from_dict({"name": "crowd", "classes": rows})
    count = 9000
    jobs = Chunk(np.zeros(count), np.zeros(count, np.int64), np.full(count, 2.0))
    wide = departures(
        workload, 4 * count, program(Policy.of(name), workload, 4 * count), jobs, interpreted=True
    )
    np.testing.assert_allclose(wide, 1.0, rtol=1e-9)
    few = departures(workload, 3000, program(Policy.of(name), workload, 3000), jobs, interpreted=True)
    expected = 2.0 * (1 + np.arange(count) // 3000) if name == "wham" else np.full(count, 6.0)
    np.testing.assert_allclose(few, expected, rtol=1e-9)


@pytest.mark.parametrize(("classes", "seed"), [(22, 1), (40, 2), (70, 3)])
@pytest.mark.parametrize("name", ["wham", "equi"])
def test_more_classes_than_counts_pack(name, classes, seed):
    """With many classes the packed counts have few bits each, or none; states are still told apart."""
    one = gen.instance(seed, 80, cores=30, load=0.9, kinds=("power", "amdahl"), classes=classes)
    # All but a few jobs belong to two classes, so that their counts outgrow the bits.
    jobs = one.jobs._replace(classes=np.where(np.arange(80) % 8, one.jobs.classes % 2, one.jobs.classes))
    agree(Policy.of(name), one.workload, one.cores, jobs)


# --- compiled --------------------------------------------------------------------------------------------


def records_of(policy, workload, cores, jobs, *, interpreted):
    run = Run(
        workload,
        cores,
        program(policy, workload, cores),
        jobs=jobs.size,
        source=ArrayStream(*jobs, chunk=37),
        interpreted=interpreted,
        widths=True,
    )
    run.extend(jobs.size)
    return run.outcome().records


def same_bits(name, seeds, count):
    policy, compared = chosen(name), 0
    for seed in seeds:
        one = gen.instance(
            seed, count, least_cores=LEAST.get(name, 1), most_cores=64 if name in LEAST else 16
        )
        workload = planned(policy, one.workload, one.cores)
        if workload is None:
            continue
        compared += 1
        run = functools.partial(
            departures, workload, one.cores, program(policy, workload, one.cores), one.jobs
        )
        assert run(interpreted=False).tolist() == run(interpreted=True).tolist()
        compiled, plain = (
            records_of(policy, workload, one.cores, one.jobs, interpreted=interpreted).arrays()
            for interpreted in (False, True)
        )
        for key, array in compiled.items():
            assert array.tobytes() == plain[key].tobytes(), key
    assert compared >= len(seeds) // 2


@pytest.mark.parametrize("name", QUICK)
def test_compiled_is_interpreted(name):
    """The log of departures and every array of the records are the same bit for bit, compiled or not."""
    same_bits(name, range(400, 406), 60)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in NAMES if name != "whittle"])
def test_compiled_is_interpreted_for_every_policy(name):
    """The same for every policy that compiles, over more workloads."""
    same_bits(name, range(500, 540), SLOW_TO_ASK.get(name, 80))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1000, 1060))
@pytest.mark.parametrize("name", NAMES)
def test_long_sweep_against_the_naive_simulator(name, seed):
    """The first test again, over many more workloads and with more jobs."""
    few = SLOW_TO_ASK.get(name)
    least = LEAST.get(name, 1)
    count = 2 * few if few else 120
    agree(chosen(name), *gen.instance(seed, count, least_cores=least, most_cores=16 if few else 64))


def test_widths_and_areas():
    """Cores in use, jobs present and work by width add up to what the departures say."""
    one = gen.instance(42, 80, cores=8, load=0.8)
    made = program(Policy.of("wham"), one.workload, 8)
    for program_ in (made, program(Policy.of("hesrpt"), one.workload, 8)):
        runner = machine(one.workload, 8, program_, interpreted=True, wide=True, log=80)
        runner.feed(one.jobs, 0, 80, drain=True)
        sums, (duration, used, overload, events) = runner.collect()
        response = runner.ends - one.jobs.times
        by_class = np.bincount(one.jobs.classes, response, minlength=len(one.workload.classes))
        departed, total, _, arrived, work, area, _ = sums
        np.testing.assert_allclose(total, by_class, rtol=1e-9)
        np.testing.assert_allclose(area, by_class, rtol=1e-9)
        np.testing.assert_allclose(runner.widths.sum(axis=1), work, rtol=1e-9)
        assert departed.tolist() == arrived.tolist()
        assert (departed.sum(), events) == (80, 160)
        assert duration == pytest.approx(runner.ends.max())
        assert work.sum() <= used * (1 + 1e-9) <= 8 * duration * (1 + 2e-9)
        assert 0 <= overload <= duration


def test_programs_have_the_shape_that_suits_them():
    """Class rules run on the class kernel while one core each fits, pools too; other policies job by job."""
    paper = gen.instance(1, 1, kinds=("power", "amdahl"), cores=64, load=0.3).workload
    pools = ("fw-cam", "fixed-width:shared=false")
    for name in ("wham", "greedy", "equi", "fcfs", *pools):
        made = program(Policy.of(name), paper, 64)
        assert made.sees == COUNTS
        assert (made.discipline == POOLS) == (name in pools)
    for name in ("wham-integer", "hesrpt", "pollux"):
        assert program(Policy.of(name), paper, 64).sees == JOBS
