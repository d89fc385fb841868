"""Given jobs made ready for the engine: weights of their own, and the cores and times they ask for."""

from dataclasses import replace

import numpy as np
import pytest

from malleable.contracts import Policy
from malleable.engine.replaying import replay_jobs
from malleable.engine.rule_interface import COUNTS
from malleable.errors import UnsupportedError
from malleable.model import paper_workload
from malleable.model.job_list import JobList
from malleable.policies.wham import Wham
from malleable.simulation.given import MOST_GROUPS, by_weight, ready
from malleable.sources import stream
from support import reference_simulator as reference
from support.batch_schedulers import easy_departures, fcfs_departures


def drawn(count, *, load=0.8, cores=6, seed=0, **columns):
    """Jobs of the paper's workload."""
    jobs = stream(paper_workload(cores, load), seed, chunk=count).take()
    return JobList(paper_workload(cores, load), jobs.times, jobs.classes, jobs.sizes, **columns)


def run(name, jobs, cores, **options):
    """The log of each job under a policy."""
    policy = Policy.of(name)
    made = ready(policy, jobs, cores)
    return made, replay_jobs(made.workload, cores, made.program, made.jobs, **options).log


@pytest.mark.parametrize(
    "name", ["wham", "greedy:weight=c", "greedy:weight=cmu", "equi", "wham-integer", "srpt", "hell"]
)
@pytest.mark.parametrize("load", [0.5, 1.6])
def test_weights_of_single_jobs_count_for_every_rule(name, load):
    """Departures are those of a naive simulator that asks `allocate` with each job's own weight."""
    rng = np.random.default_rng(4)
    jobs = drawn(60, load=load, cores=4, seed=2, weights=rng.choice([0.5, 1.0, 4.0], 60))
    _, log = run(name, jobs, 4, interpreted=True)
    expected = reference.departures(
        Policy.of(name), jobs.workload, 4, jobs.times, jobs.classes, jobs.sizes, jobs.weights
    )
    np.testing.assert_allclose(log.ends, expected, rtol=1e-9)


def test_many_weights_run_on_single_jobs_and_come_to_the_same():
    """With a weight for each job a class rule gives way to the policy's job rule, which says the same."""
    rng = np.random.default_rng(1)
    weights = rng.choice(np.linspace(0.5, 2.0, MOST_GROUPS // 4), 300)
    few = drawn(300, weights=weights)
    many = replace(few, weights=weights * (1.0 + 1e-12 * rng.random(300)))
    (first, a), (second, b) = (run("wham", jobs, 6) for jobs in (few, many))
    assert first.program.sees == COUNTS
    assert second.program.sees != COUNTS
    np.testing.assert_allclose(a.ends, b.ends, rtol=1e-6)


def test_a_rule_without_single_jobs_says_that_it_cannot():
    """A policy that has only class counts refuses more weights than there can be classes."""

    class Counting(Policy):
        def program(self, workload, cores):
            return Wham().program(workload, cores)

    policy = Counting()
    jobs = drawn(200, weights=np.linspace(1.0, 2.0, 200))
    with pytest.raises(UnsupportedError, match="200 classes and weights"):
        ready(policy, jobs, 6)


def test_classes_by_weight_keep_rates_and_jobs():
    """Parts of a class share its arrival rate by their numbers; every job keeps its weight and class."""
    jobs = drawn(300, weights=np.random.default_rng(0).choice([1.0, 2.0], 300))
    parts, origin = by_weight(jobs)
    np.testing.assert_array_equal(parts.weight, jobs.weight)
    np.testing.assert_array_equal(origin[parts.classes], jobs.classes)
    np.testing.assert_allclose(np.bincount(origin, parts.workload.rates), jobs.workload.rates)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("name", "other"), [("fcfs", fcfs_departures), ("easy", easy_departures)])
def test_jobs_run_on_the_cores_they_asked_for_as_in_a_batch_system(name, other, seed):
    """Job by job as independent schedulers have it, with the users' own estimates, right or wrong."""
    rng = np.random.default_rng(seed)
    cores = (4, 9, 16)[seed % 3]
    jobs = drawn(150, cores=cores, load=1.0, seed=seed)
    widths = rng.integers(1, cores + 1, len(jobs)).astype(float)
    speeds = [float(jobs.workload.speedups[i](k)) for i, k in zip(jobs.classes, widths, strict=True)]
    runs = jobs.sizes / np.array(speeds)
    factor = rng.choice([0.5, 1.0, 1.0, 3.0], len(jobs)) if seed % 2 else np.full(len(jobs), np.nan)
    jobs = replace(jobs, times=3.0 * jobs.times, cores=widths, run_times=runs, estimates=runs * factor)
    expected = runs if np.isnan(factor[0]) else runs * factor
    options = {} if name == "fcfs" else {"estimates": expected.tolist()}
    _, log = run(name, jobs, cores, interpreted=True)
    np.testing.assert_allclose(
        log.ends, other(cores, jobs.times.tolist(), widths.tolist(), runs.tolist(), **options), rtol=1e-9
    )
    np.testing.assert_allclose(log.core_time, widths * runs, rtol=1e-9)
    assert not log.resizes.any()


def test_a_job_wider_than_the_machine_gets_all_of_it():
    """It asked for eight of four cores, so it runs on four."""
    jobs = replace(drawn(1), cores=np.array([8.0]))
    _, log = run("easy", jobs, 4, interpreted=True)
    speed = float(jobs.workload.speedups[jobs.classes[0]](4.0))
    assert log.ends[0] == pytest.approx(jobs.times[0] + jobs.sizes[0] / speed)
