"""What live jobs teach about their speedups and sizes."""

from __future__ import annotations

import numpy as np
import pytest

from malleable.live.core.beliefs import Beliefs, Throughput
from malleable.live.core.estimates import remaining_work
from malleable.live.core.events import Confirmed, Progressed, Registered
from malleable.live.core.scheduler import Scheduler
from malleable.live.core.virtual import VirtualMachine
from malleable.model import JobClass, Workload
from malleable.sources import Chunk
from malleable.speedups.amdahl import Amdahl
from support.speedup_contract import assert_contract

TRUTH = Amdahl(sequential=0.3)


def workload(speedup, mean=20.0):
    law = {"kind": "hyperexponential", "probabilities": [0.9, 0.1], "rates": [1.8 / mean, 0.2 / mean]}
    return Workload("one", (JobClass("job", {"kind": "poisson", "rate": 0.2}, law, speedup),))


def error(speedup, widths=(1, 2, 4, 8)):
    """The largest relative distance from the truth."""
    k = np.array(widths, dtype=float)
    return float(np.abs(np.asarray(speedup(k)) / np.asarray(TRUTH(k)) - 1.0).max())


def observed(rng, jobs, *, noise=0.1, outlier=None):
    """What is believed after jobs of all unit sizes were seen on several widths each."""
    beliefs = Beliefs(workload({"kind": "amdahl", "sequential": 0.02}), 8)
    for number in range(jobs):
        unit, job = float(np.exp(rng.normal())), Throughput()
        for k in rng.choice([1, 2, 4, 8], 6).tolist():
            rate = float(TRUTH(k)) / unit * float(np.exp(noise * rng.normal()))
            beliefs.observe(0, job, k, rate)
        if outlier is not None and number == jobs // 2:
            beliefs.observe(0, job, 8, outlier)
    return beliefs.workload.speedups[0]


@pytest.mark.parametrize("seed", range(4))
def test_speedups_are_learned_from_jobs_of_all_unit_sizes(seed):
    """From a prior 2.7 times too high at 8 cores, 60 jobs with 10 % noise lead to within 8 % of the truth."""
    rng = np.random.default_rng(seed)
    assert error(Amdahl(0.02)) > 1.6
    found = observed(rng, 60)
    assert error(found) < 0.08
    assert_contract(found, 64.0)


@pytest.mark.parametrize("outlier", [1e-12, 1e-3, 1e3, 1e12, 1e300])
def test_one_bad_sample_changes_little(outlier):
    """A rate that is wrong by any factor moves the learned speedup by less than 3 %."""
    clean = observed(np.random.default_rng(9), 20)
    spoilt = observed(np.random.default_rng(9), 20, outlier=outlier)
    k = np.array([1.0, 2.0, 4.0, 8.0])
    assert np.abs(np.asarray(spoilt(k)) / np.asarray(clean(k)) - 1.0).max() < 0.03
    assert_contract(spoilt, 64.0)


def test_a_job_on_one_width_teaches_nothing():
    """Without a second width there is no ratio of speeds, and the prior stays."""
    beliefs, job = Beliefs(workload({"kind": "amdahl", "sequential": 0.02}), 8), Throughput()
    for _ in range(50):
        assert not beliefs.observe(0, job, 4, 7.0)
    assert beliefs.workload is beliefs.given
    assert job.work_per_unit == pytest.approx(float(Amdahl(0.02)(4)) / 7.0)


def test_stretches_of_constant_width():
    """A rate is taken between two reports at one width, over at least as many units as cores."""
    job = Throughput()
    assert job.report(10.0, 4, 0.0) is None
    assert job.report(12.0, 4, 1.0) is None, "two units on four cores say little"
    assert job.report(18.0, 4, 2.0) == (4, 4.0)
    job.interrupt()
    assert job.report(30.0, 2, 3.0) is None
    assert job.report(30.0, 4, 4.0) is None, "the width changed without notice"
    assert job.report(50.0, 4, 4.0) is None, "no time has passed"
    assert job.report(54.0, 4, 6.0) == (4, 12.0)
    assert job.report(60.0, 0, 7.0) is None


def test_the_machine_learns_while_it_runs():
    """Jobs that report progress teach the scheduler the true speedup, within 5 % at the widths they had."""
    truth = workload({"kind": "amdahl", "sequential": 0.3})
    scheduler = Scheduler(workload({"kind": "amdahl", "sequential": 0.02}), 8, "equi")
    rng = np.random.default_rng(1)
    times = np.cumsum(rng.exponential(5.0, 60))
    jobs = Chunk(times, np.zeros(60, dtype=np.int64), rng.exponential(20.0, 60))
    VirtualMachine(scheduler, truth, report=0.5, unit=0.05).departures(jobs)
    learner = scheduler.beliefs.learner(0)
    assert learner is not None
    assert learner.observations > 10
    assert error(scheduler.beliefs.workload.speedups[0]) < 0.05
    assert_contract(scheduler.beliefs.workload.speedups[0], 64.0)


def left(scheduler, now):
    rows = scheduler.table.rows()
    remaining, _ = remaining_work(scheduler.table, rows, now, scheduler.beliefs.sizes)
    return remaining.tolist()


def running(*, learn=True, **declared):
    """A job on all four cores, from time 0."""
    scheduler = Scheduler(workload({"kind": "power", "exponent": 0.5}), 4, "equi", learn=learn)
    scheduler.handle(Registered("a", "job", **declared), 0.0)
    scheduler.handle(Confirmed("a", 4, 1), 0.0)
    return scheduler


def test_what_is_left_of_a_declared_size():
    """s(4) = 2: after 3 units of time 6 of 10 are done; beyond 10, it is what the law of sizes says."""
    scheduler = running(learn=False, size=10.0)
    assert left(scheduler, 3.0) == pytest.approx([4.0])
    law = scheduler.beliefs.workload.classes[0].size
    assert left(scheduler, 8.0) == pytest.approx(law.mean_remaining(np.array([16.0])).tolist())


def test_what_is_left_when_nothing_is_known():
    """E[X − a | X > a] after the work a = s(4)·t; for this law it rises, as long jobs show themselves."""
    scheduler = running(learn=False)
    law = scheduler.beliefs.workload.classes[0].size
    for now in (0.0, 5.0, 50.0):
        assert left(scheduler, now) == pytest.approx(law.mean_remaining(np.array([2.0 * now])).tolist())
    assert left(scheduler, 50.0)[0] > left(scheduler, 0.0)[0]


def test_what_is_left_by_units():
    """Units count as shares of the size until their rate is measured: 8 units in 4 time units on s = 2."""
    scheduler = running(units=100.0, size=50.0)
    scheduler.handle(Progressed("a", 10.0), 1.0)
    assert left(scheduler, 1.0) == pytest.approx([45.0])
    scheduler.handle(Progressed("a", 18.0), 5.0)
    assert left(scheduler, 5.0) == pytest.approx([82.0 * (2.0 * 4.0 / 8.0)])
    scheduler.handle(Progressed("a", 18.0, units=20.0), 5.0)
    assert left(scheduler, 5.0) == pytest.approx([2.0])
    scheduler.handle(Progressed("a", 17.0), 6.0)
    assert scheduler.refused == "job 'a' had done 18 units before, not 17"


def test_a_resize_costs_what_its_class_says():
    """While a job pauses its work stands still, and work that is lost is to be done again."""
    made = Workload("one", (JobClass(
        "job", {"kind": "poisson", "rate": 0.2}, {"kind": "exponential", "mean": 20.0},
        {"kind": "power", "exponent": 0.5}, resize={"pause": 2.0, "work": 0.5},
    ),))  # fmt: skip
    scheduler = Scheduler(made, 4, "equi")
    scheduler.handle(Registered("a", "job", size=10.0), 0.0)
    scheduler.handle(Confirmed("a", 4, 1), 0.0)
    assert [action.cores for action in scheduler.handle(Registered("b", "job", size=10.0), 1.0)] == [2]
    scheduler.handle(Confirmed("a", 2, 2), 1.0)
    assert left(scheduler, 2.5)[0] == pytest.approx(8.5)
    assert left(scheduler, 4.0)[0] == pytest.approx(8.5 - 2.0**0.5)
