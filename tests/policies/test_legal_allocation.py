"""`allocate` on machines that demand things of jobs."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import malleable
from malleable.contracts import Allocation, Policy
from malleable.engine.machines import machine
from malleable.errors import InfeasibleError, JobsError, ParameterError, UnstableError
from malleable.model import Workload
from malleable.model.job_files import parse_jobs
from malleable.model.jobs import Jobs
from malleable.policies.base import job_rows
from malleable.policies.base.asking import simulated
from malleable.policies.base.periodic_restarts import change_factor
from malleable.simulation import program
from malleable.sources import Chunk
from support import machine_workloads, random_jobs
from support import strategies as gen
from support.examples import examples

POWER = {"kind": "power", "exponent": 0.5}
POLICIES = (
    *("fw-cam-repaired:beta=0.6", "greedy-star", "greedy:weight=c/x"),
    *("wham", "wham-integer", "wham-steady", "wham-discounted", "greedy", "equi", "hesrpt", "hell", "knee"),
    *("lpf", "srpt", "srpt-all", "fcfs", "easy", "whittle", "fixed-width", "inelastic-first"),
    *("elastic-first", "pollux:period=0", "sia:period=0"),
)


def workload(*rows):
    """Classes a, b, … with these keys."""
    return Workload.from_dict(
        {"classes": [gen.job_class("abc"[i], 0.1, 1.0, POWER, 1.0) | keys for i, keys in enumerate(rows)]}
    )


@st.composite
def machines(draw):
    """Jobs of a random demanding workload, some of which hold cores that they may have."""
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    cores = draw(st.integers(1, 12))
    described = machine_workloads.demanding(rng, random_jobs.workload(rng), cores).at(cores, 0.3)
    count = draw(st.integers(1, 8))
    classes = rng.integers(0, len(described.classes), count)
    held, left = np.zeros(count), float(cores)
    for j, i in enumerate(classes):
        widths = described.job_types[i].widths_on(cores)
        k = float(rng.integers(1, 3)) if widths is None else float(rng.choice(widths))
        if rng.random() < 0.4 and k <= left:
            held[j], left = k, left - k
    remaining = rng.exponential(1.0, count)
    return Jobs.of(described, classes, remaining, age=rng.uniform(0.0, 5.0, count), held=held), cores


@pytest.mark.parametrize("name", POLICIES)
def test_what_every_policy_keeps_to(name):
    """Rigid and moldable jobs that hold cores keep them; others have an allowed width; at most n in all."""

    @settings(max_examples=examples(10))
    @given(machines(), st.booleans())
    def check(situation, integer):
        jobs, cores = situation
        try:
            out = malleable.allocate(jobs.workload, jobs, cores, name, integer=integer).cores
        except (InfeasibleError, UnstableError):
            return
        assert out.sum() <= cores * (1.0 + 1e-9)
        for k, held, i in zip(out, jobs.held, jobs.class_index, strict=True):
            one = jobs.workload.job_types[i]
            if held > 0.0 and one.shape != "malleable":
                assert k == held
            elif k > 0.0 and not one.allowed_widths.unrestricted:
                assert k in one.widths_on(cores)

    check()


def test_cores_that_no_longer_suffice():
    """Of rigid jobs that hold more than there are, the latest stop; the others keep their cores."""
    made = workload({"shape": "rigid", "width": 3}, {})
    jobs = Jobs.of(made, ["a", "a", "b"], [1.0, 1.0, 1.0], age=[2.0, 1.0, 0.0], held=[3.0, 3.0, 0.0])
    assert malleable.allocate(made, jobs, 5).cores.tolist() == [3.0, 0.0, 2.0]
    assert malleable.allocate(made, jobs, 6).cores.tolist() == [3.0, 3.0, 0.0]


def test_parts_of_cores_that_are_held():
    """A job that cannot move keeps the cores it holds, however many; whole ones are asked of the others."""
    made = workload({"shape": "moldable"}, {})
    jobs = Jobs.of(made, ["a", "b"], [1.0, 1.0], held=[2.5, 0.0])
    assert malleable.allocate(made, jobs, 8, integer=True).cores.tolist() == [2.5, 5.0]
    assert malleable.allocate(made, jobs, 8, "equi").cores.tolist() == [2.5, 5.5]


@pytest.mark.parametrize("name", ["wham-discounted", "wham-fitted", "wham-improved", "wham"])
def test_beside_a_job_that_cannot_move(name):
    """The others get what the simulator's program, made for the whole machine, gives them on the rest."""
    made = workload({"shape": "rigid", "width": 4}, {}, {"holding_cost": 5.0}).at(12, 0.7)
    jobs = Jobs.of(made, [0, 1, 1, 2, 1], [2.0, 3.0, 1.0, 0.5, 0.2], held=[4.0, 0.0, 0.0, 0.0, 0.0])
    others = jobs.only(np.arange(1, 5))
    one, wanted = simulated(Policy.of(name), made, 12.0), np.zeros(4)
    one.rule(job_rows(others, others.class_index), 8.0, one.table.copy(), wanted)
    found = malleable.allocate(made, jobs, 12, name).cores
    np.testing.assert_allclose(found, [4.0, *wanted], rtol=1e-7)


# --- limits of single jobs ----------------------------------------------------------------------------------

CSV = """\
id,class,remaining,age,cores,shape,width,widths
r,a,1,4,,,2,
s,a,1,3,,rigid,3,
m,a,1,2,4,moldable,,1/2/4
p,a,1,1,,,,powers-of-two
f,a,1,0,,,,
"""
ROWS = [
    {"id": "r", "class": "a", "remaining": 1, "age": 4, "width": 2},
    {"id": "s", "class": "a", "remaining": 1, "age": 3, "shape": "rigid", "width": 3},
    {"id": "m", "class": "a", "remaining": 1, "age": 2, "cores": 4, "shape": "moldable", "widths": [1, 2, 4]},
    {"id": "p", "class": "a", "remaining": 1, "age": 1, "widths": "powers-of-two"},
    {"id": "f", "class": "a", "remaining": 1, "age": 0},
]


def test_limits_in_csv_and_json():
    """Shape, width and widths of single jobs are read alike from CSV, from JSON and from rows."""
    made = workload({})
    read = [parse_jobs(made, CSV), parse_jobs(made, json.dumps(ROWS)), Jobs.from_rows(made, ROWS)]
    for jobs in read:
        assert [one.shape for one in jobs.own_types] == [
            "rigid",
            "rigid",
            "moldable",
            "malleable",
            "malleable",
        ]
        assert [one.width for one in jobs.own_types] == [2, 3, None, None, None]
        assert [one.plain for one in jobs.own_types] == [False, False, False, False, True]
    given = [malleable.allocate(made, jobs, 16).cores for jobs in read]
    assert np.array_equal(given[0], given[1])
    assert np.array_equal(given[0], given[2])
    out = dict(zip(read[0].ids, given[0], strict=True))
    assert (out["r"], out["s"], out["m"]) == (2.0, 3.0, 4.0)
    assert out["p"] in {1.0, 2.0, 4.0}
    assert sum(out.values()) <= 16.0


def test_limits_of_some_jobs_in_a_long_file():
    """Jobs of stretches without limits are as in their class, whatever later ones bring."""
    rows = [f"j{i},a,1,\n" for i in range(1500)]
    made = workload({})
    jobs = parse_jobs(made, "id,class,remaining,width\n" + "".join(rows) + "last,a,1,7\n")
    assert [one.width for one in jobs.own_types[-2:]] == [None, 7]
    assert all(one.plain for one in jobs.own_types[:-1])


def test_a_class_may_be_loosened():
    """A row may give a rigid class a choice, or another shape; what it does not say is as in the class."""
    made = workload({"shape": "rigid", "width": 4, "resize": {"pause": 2.0}})
    rows = [
        {"id": "1", "class": "a", "remaining": 1},
        {"id": "2", "class": "a", "remaining": 1, "widths": [1, 2]},
        {"id": "3", "class": "a", "remaining": 1, "shape": "moldable"},
        {"id": "4", "class": "a", "remaining": 1, "width": 2},
    ]
    types = Jobs.from_rows(made, rows).own_types
    assert [(one.shape, one.width) for one in types] == [
        ("rigid", 4), ("malleable", None), ("moldable", None), ("rigid", 2),
    ]  # fmt: skip
    assert {one.resize.pause for one in types} == {2.0}
    # The moldable one may have any whole width, since the class's own is gone.
    assert malleable.allocate(made, rows, 16).cores.tolist()[3] == 2.0


@pytest.mark.parametrize(
    ("limits", "problem"),
    [
        ({"shape": "rigid"}, "job '0': width: a rigid job needs its width"),
        ({"shape": "moldable", "width": 2}, "job '0': width: a moldable job has no width of its own"),
        ({"width": 2, "widths": [1, 2]}, "job '0': width: a malleable job has no width of its own"),
        ({"widths": []}, "job '0': widths: not a choice of widths: []"),
        ({"width": 2.5}, "job '0': width: must be a valid integer, got 2.5"),
    ],
)
def test_limits_that_make_no_sense(limits, problem):
    """The error names the job, in one line, with a hint."""
    with pytest.raises(JobsError) as caught:
        Jobs.of(workload({}), [0], [1.0], limits=[limits])
    assert caught.value.sentence == problem
    assert caught.value.hint


def test_limits_for_other_jobs():
    """There is a table of limits per job."""
    with pytest.raises(JobsError, match="there are 2 tables of limits for 1 jobs"):
        Jobs.of(workload({}), [0], [1.0], limits=[{}, {}])


def test_jobs_wider_than_the_machine():
    """A job, or a class of which a job is present, that can never run is named."""
    with pytest.raises(JobsError, match="job 'x' needs at least 9 cores, and there are 8"):
        malleable.allocate(workload({}), [{"id": "x", "class": "a", "remaining": 1, "width": 9}], 8)
    with pytest.raises(ParameterError, match="class 'a': its jobs need at least 9 cores, and there are 8"):
        malleable.allocate(
            workload({"shape": "rigid", "width": 9}), [{"id": "x", "class": "a", "remaining": 1}], 8
        )


def test_own_speedups_with_limits():
    """Jobs may bring both a speedup and limits; those of equal types share a class."""
    made = workload({})
    amdahl = {"kind": "amdahl", "sequential": 0.1}
    jobs = Jobs.of(
        made,
        [0, 0, 0],
        [1.0, 1.0, 1.0],
        speedups=[POWER, amdahl, amdahl],
        limits=[{}, {"width": 2}, {"width": 2}],
    )
    out = malleable.allocate(made, jobs, 8).cores
    assert out.tolist() == [4.0, 2.0, 2.0]


# --- what Pollux and Sia are told ---------------------------------------------------------------------------


def pollux_value(jobs, cores, widths, pause):
    """Σ (S + ε)^−1 of widths, from the formula in the module, with restarts counted."""
    total, share = 0.0, -(-cores // len(jobs))
    for j, k in enumerate(widths):
        speed = float(jobs.workload.speedups[0](k)) / float(jobs.workload.speedups[0](share))
        if jobs.held[j] not in {0.0, k}:
            speed *= max(jobs.age[j] - jobs.restarts[j] * pause, 0.0) / (jobs.age[j] + pause)
        total += 1.0 / (speed + 1e-3)
    return total


@pytest.mark.parametrize("restarts", [[0.0, 0.0, 0.0], [3.0, 0.0, 1.0]])
def test_restarts_reach_pollux(restarts):
    """Of all whole widths, Pollux takes those of the best fair goodput, restarts so far included."""
    pause = 1.0
    made = workload({"resize": {"pause": pause}})
    rows = [
        {"id": str(j), "class": "a", "remaining": 1, "age": age, "cores": k, "restarts": r, "size": 9}
        for j, (age, k, r) in enumerate(zip([4.0, 3.0, 2.0], [1, 2, 0], restarts, strict=True))
    ]
    jobs = Jobs.from_rows(made, rows)
    assert jobs.size.tolist() == [9.0, 9.0, 9.0]
    out = malleable.allocate(made, rows, 9, "pollux").cores
    every = [np.array(k, dtype=float) for k in np.ndindex(10, 10, 10) if sum(k) <= 9]
    best = min(pollux_value(jobs, 9, k, pause) for k in every)
    assert pollux_value(jobs, 9, out, pause) == pytest.approx(best, rel=1e-12)


def test_restarts_change_the_answer():
    """A job that was resized often is left alone by Pollux and Sia; one that never was is widened."""
    made = workload({"resize": {"pause": 1.0}})
    for name in ("pollux", "sia"):
        often, never = (
            malleable.allocate(
                made,
                [{"id": "0", "class": "a", "remaining": 1, "age": 10, "cores": 2, "restarts": r}],
                8,
                name,
            ).cores[0]
            for r in (9, 0)
        )
        assert (often, never) == (2.0, 8.0)


def test_the_factor_of_a_resize():
    """max(T − R·δ, 0)/(T + δ), and 1 for a job that holds nothing or a restart that is free."""
    jobs = Jobs.of(workload({}), [0, 0], [1.0, 1.0], age=[6.0, 6.0], held=[2.0, 0.0], restarts=[2.0, 2.0])
    rows = job_rows(jobs, jobs.class_index)
    factors = [change_factor(rows, j, np.array([delta]), 0) for j in (0, 1) for delta in (0.0, 1.5, 4.0)]
    assert factors == pytest.approx([1.0, 3.0 / 7.5, 0.0, 1.0, 1.0, 1.0])


# --- the same as the simulator ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", POLICIES)
def test_the_next_decision_of_the_simulator(name):
    """Jobs that arrive together are given the cores that `allocate` gives them.

    What the simulator gave is read off the cores in use after each arrival.
    """
    for seed in range(8):
        rng = np.random.default_rng([seed, 5])
        cores = int(rng.integers(2, 13))
        described = machine_workloads.demanding(rng, random_jobs.workload(rng), cores, resize=False).at(
            cores, 0.3
        )
        classes, sizes = rng.integers(0, len(described.classes), 6), rng.uniform(5.0, 9.0, 6)
        try:
            made = program(Policy.of(name), described, cores, plain=False)
        except (InfeasibleError, UnstableError):
            continue
        runner = machine(described, cores, made, interpreted=True)
        held = np.zeros(0)
        for count in range(1, 7):
            chunk = Chunk(np.zeros(6), classes.astype(np.int64), sizes)
            runner.feed(chunk, count - 1, count)
            held = np.append(held, 0.0)
            jobs = Jobs.of(described, classes[:count], sizes[:count], held=held)
            held = malleable.allocate(described, jobs, cores, name).cores
            assert runner.snapshot().cores_in_use == pytest.approx(held.sum())
            np.testing.assert_allclose(runner.jobs[:count, 4], held, rtol=1e-9)


def test_a_policy_that_gives_only_allocate():
    """A policy with nothing but `allocate` is asked about the jobs that can move, and made legal."""
    asked = []

    class Mine(Policy):
        def allocate(self, jobs, cores, *, integer=False):  # noqa: ARG002 - the contract has it
            asked.append((len(jobs), cores))
            return Allocation(np.full(len(jobs), cores / len(jobs)), 7.0)

    made = workload({"shape": "rigid", "width": 3}, {"widths": "powers-of-two"})
    jobs = Jobs.of(made, ["a", "b", "b"], [1.0, 1.0, 1.0], held=[3.0, 0.0, 0.0])
    out = malleable.allocate(made, jobs, 10, Mine())
    assert asked == [(2, 7.0)]
    assert out.price == 7.0
    assert sorted(out.cores.tolist()) == [2.0, 3.0, 4.0]
