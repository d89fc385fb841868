"""Machines that demand things of jobs: job by job as the naive simulator has it."""

from __future__ import annotations

import numpy as np
import pytest

from malleable.contracts import Policy
from malleable.engine.kernels import job_kernel
from malleable.engine.machines import machine
from malleable.errors import InfeasibleError, UnstableError
from malleable.model import Workload
from malleable.simulation import program
from malleable.sources import Chunk
from support import machine_workloads as machines
from support import random_jobs as gen
from support import reference_simulator as reference
from support.batch_schedulers import easy_departures, fcfs_departures

POLICIES = (
    *("wham", "wham-integer", "wham-steady", "wham-discounted", "greedy", "greedy:weight=c/x", "greedy-star"),
    *("equi", "hesrpt", "hell", "knee", "lpf", "srpt", "srpt-all", "fcfs", "easy", "whittle"),
    *("fixed-width", "fw-cam-repaired:beta=0.6", "inelastic-first", "elastic-first"),
    *("pollux:period=0.31", "sia:period=0.31"),
)
COUNT = 40


def both(name, seed, *, known=True, interpreted=True, changing=True):
    """Departures on a random demanding machine, by the engine and by the naive simulator."""
    rng = np.random.default_rng([seed, 11])
    one = gen.instance(seed, COUNT, most_cores=16)
    workload, policy = machines.demanding(rng, one.workload, one.cores), Policy.of(name)
    changes = machines.random_changes(rng, one.cores, one.jobs.times[-1]) if changing and seed % 2 else []
    try:
        made = program(policy, workload, one.cores, plain=False)
    except (InfeasibleError, UnstableError):
        pytest.skip("this policy has no plan for so few cores")
    expected = reference.departures(policy, workload, one.cores, *one.jobs, changes=changes, known=known)
    runner = machine(
        workload,
        one.cores,
        made,
        interpreted=interpreted,
        log=COUNT,
        sizes_known=known,
        changes=machines.GivenChanges(one.cores, changes) if changes else None,
    )
    runner.feed(one.jobs, 0, COUNT, drain=True)
    return runner.ends, expected


@pytest.mark.parametrize("seed", [0, 1, pytest.param(2, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", POLICIES)
def test_every_policy_as_the_naive_simulator_has_it(name, seed):
    """Departure times agree to 1e-9, whatever the machine demands.

    Rigid, moldable and malleable jobs, restricted widths, pauses, lost work, quiet times, cores that come and
    go, ties and overload.
    """
    got, expected = both(name, seed)
    np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3, 66))
@pytest.mark.parametrize("name", POLICIES)
def test_long_sweep(name, seed):
    """The same, on very many machines."""
    got, expected = both(name, seed)
    np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    ("name", "seed"),
    [
        *(("whittle", 28), ("whittle", 61)),  # a width that changes by its last digits
        *(("wham-discounted", 61), ("equi", 47), ("greedy:weight=c/x", 47)),  # more than n held, by rounding
        ("whittle", 42),  # two jobs that are done at the same time, but for rounding
        ("sia:period=0.31", 40),  # jobs that took turns for ever, each pausing for longer than its turn
    ],
)
def test_nothing_hangs_on_rounding(name, seed):
    """Machines of the long sweep on which last digits once decided who pays for a resize."""
    got, expected = both(name, seed)
    np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-12)


def test_jobs_that_are_done_pay_no_more():
    """Jobs that end at the same time, but for rounding, leave together: the last is not resized at its end.

    The third of three equal jobs on three cores makes the first two pause, so that they go on side by side
    from then on; their sizes differ by less than what times are known to.
    """
    document = gen.workload(np.random.default_rng(3), classes=1).to_dict()
    document["classes"][0].update({"speedup": {"kind": "power", "exponent": 0.5}, "resize": {"pause": 0.5}})
    workload = Workload.from_dict(document)
    jobs = Chunk(np.full(3, 7.0), np.zeros(3, np.int64), np.array([1.0, 1.0 + 1e-14, 1.0]))
    runner = machine(workload, 3, program(Policy.of("equi"), workload, 3), interpreted=True, log=3)
    runner.feed(jobs, 0, 3, drain=True)
    assert runner.ends[2] == pytest.approx(8.0, rel=1e-12)
    assert runner.ends[0] == pytest.approx(8.5 + 0.5 / np.sqrt(1.5), rel=1e-12)
    assert runner.ends[1] == pytest.approx(runner.ends[0], rel=1e-12)


@pytest.mark.parametrize("seed", range(100, 104))
@pytest.mark.parametrize("name", ["wham", "srpt", "hesrpt", "easy", "equi"])
def test_sizes_unknown(name, seed):
    """A rule that is not told sizes sees what is left on average given the work done; as the naive one."""
    got, expected = both(name, seed, known=False, changing=False)
    np.testing.assert_allclose(got, expected, rtol=1e-4)


@pytest.mark.parametrize("name", ["wham", "wham-steady", "equi", "easy", "pollux:period=0.31"])
def test_compiled_is_interpreted(name):
    """Machine code gives the very same numbers."""
    for seed in (1, 3, 4):
        got = [both(name, seed, interpreted=interpreted)[0] for interpreted in (True, False)]
        assert np.array_equal(*got)


def test_a_pause_that_depends_on_both_widths():
    """A function of both widths is asked with the width before and after; no cores count as 0."""
    document = gen.workload(np.random.default_rng(3), classes=2).to_dict()
    for row in document["classes"]:
        row.update({"widths": "whole", "resize": lambda before, after: 0.01 * abs(before - after)})
    workload = Workload.from_dict(document).at(6, 0.7)
    jobs = gen.arrivals(np.random.default_rng(4), workload, COUNT)
    expected = reference.departures(Policy.of("wham"), workload, 6, *jobs)
    runner = machine(workload, 6, program(Policy.of("wham"), workload, 6), interpreted=True, log=COUNT)
    runner.feed(jobs, 0, COUNT, drain=True)
    np.testing.assert_allclose(runner.ends, expected, rtol=1e-9)


def test_weights_of_single_jobs():
    """Jobs may bring weights of their own; rules see these."""
    rng = np.random.default_rng(8)
    one = gen.instance(8, COUNT, cores=4, load=1.1)
    jobs = one.jobs._replace(weights=np.exp(rng.normal(size=COUNT)))
    for name in ("wham", "greedy:weight=cmu", "hesrpt"):
        policy = Policy.of(name)
        expected = reference.departures(policy, one.workload, 4, *jobs)
        made = program(policy, one.workload, 4, plain=False)
        runner = machine(one.workload, 4, made, interpreted=True, log=COUNT)
        runner.feed(jobs, 0, COUNT, drain=True)
        np.testing.assert_allclose(runner.ends, expected, rtol=1e-9)


# --- batch systems, written independently ------------------------------------------------------------------


def rigid_jobs(seed, cores, count=60):
    """Rigid jobs of several widths at a load around 1."""
    rng = np.random.default_rng(seed)
    document = gen.workload(rng, classes=3).to_dict()
    for row in document["classes"]:
        row.update({"shape": "rigid", "width": int(rng.integers(1, cores + 1))})
    workload = Workload.from_dict(document)
    widths = [one.width for one in workload.job_types]
    speeds = [float(s(k)) for s, k in zip(workload.speedups, widths, strict=True)]
    used = sum(load * k / s for load, k, s in zip(workload.loads, widths, speeds, strict=True))
    workload = workload.scaled(cores / used)
    jobs = gen.arrivals(rng, workload, count)
    lengths = [x / speeds[i] for i, x in zip(jobs.classes, jobs.sizes, strict=True)]
    return workload, jobs, [widths[i] for i in jobs.classes], lengths


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize(("name", "other"), [("fcfs", fcfs_departures), ("easy", easy_departures)])
def test_rigid_jobs_as_batch_systems_run_them(name, other, seed):
    """FCFS and EASY on rigid jobs are those of an independent batch scheduler."""
    cores = (4, 7, 16)[seed % 3]
    workload, jobs, widths, lengths = rigid_jobs(seed, cores)
    jobs = jobs._replace(times=jobs.times + 1e-3 * np.arange(jobs.size))
    runner = machine(
        workload, cores, program(Policy.of(name), workload, cores), interpreted=True, log=jobs.size
    )
    runner.feed(jobs, 0, jobs.size, drain=True)
    np.testing.assert_allclose(runner.ends, other(cores, jobs.times, widths, lengths), rtol=1e-9)


def test_nothing_runs_while_there_are_no_cores():
    """A machine that loses all its cores keeps its jobs, and goes on when they return."""
    workload = Workload.from_dict(gen.workload(np.random.default_rng(1), classes=1).to_dict())
    jobs = Chunk(np.zeros(1), np.zeros(1, np.int64), np.array([40.0]))
    speed = float(workload.speedups[0](min(4.0, float(workload.speedups[0].peak))))
    runner = machine(
        workload,
        4,
        program(Policy.of("wham"), workload, 4, plain=False),
        interpreted=True,
        log=1,
        changes=machines.GivenChanges(4, [(1.0, 0), (11.0, 4)]),
    )
    runner.feed(jobs, 0, 1, drain=True)
    assert runner.ends[0] == pytest.approx(10.0 + 40.0 / speed)


@pytest.mark.parametrize("name", ["srpt", "wham-integer", "pollux"])
def test_plain_jobs_run_on_either_kernel_alike(name, monkeypatch):
    """The kernel without limits gives the departures of the whole one to the bit where there are none."""
    workload, cores, jobs = gen.instance(5, 120, cores=8, load=0.8)
    found = []
    for kernel in (job_kernel.logging_plain_job_kernel, job_kernel.logging_job_kernel):
        monkeypatch.setattr(job_kernel, "logging_plain_job_kernel", kernel)
        chosen = program(Policy.of(name), workload, cores)
        one = machine(workload, cores, chosen, interpreted=True, log=jobs.size)
        assert one.kernel is kernel
        one.feed(jobs, 0, jobs.size, drain=True)
        found.append(one.ends)
    assert not np.isnan(found[0]).any()
    np.testing.assert_array_equal(*found)
