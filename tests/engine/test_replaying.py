"""What a run notes of single jobs: start, end, cores over time and resizes, against a naive simulator."""

import numpy as np
import pytest

from malleable.contracts import Policy
from malleable.engine import job_log
from malleable.engine.replaying import replay_jobs
from malleable.errors import UnsupportedError
from malleable.model import paper_workload
from malleable.policies.base.asking import simulated as program
from malleable.sources import stream
from support import random_jobs as gen
from support import reference_simulator as reference

CLASS_RULES = ("wham", "equi", "greedy", "fixed-width:widths=1/1/2", "fcfs")
JOB_RULES = ("srpt", "wham-integer", "hesrpt", "easy")


class Watched(reference.Simulator):
    """The naive simulator with a note of every job's first core, core-time and changes of width."""

    def join(self, job):
        job.update(first=np.nan, area=0.0, since=self.now, changes=0, ever=False)
        self.everyone = getattr(self, "everyone", {})
        self.everyone[job["id"]] = job
        super().join(job)

    def ask(self):
        before = {job["id"]: job["cores"] for job in self.jobs}
        for job in self.jobs:
            job["area"] += job["cores"] * (self.now - job["since"])
            job["since"] = self.now
        super().ask()
        for job in self.jobs:
            if job["cores"] > 0.0 and abs(job["cores"] - before[job["id"]]) > 1e-12 * job["cores"]:
                job["changes"] += job["ever"]
                if not job["ever"]:
                    job["first"], job["ever"] = self.now, True

    def noted(self):
        """Starts, ends, core-time and changes, in the order of the jobs."""
        rows = []
        for number in range(len(self.left)):
            job, end = self.everyone[number], self.left[number]
            rows.append(
                (job["first"], end, job["area"] + job["cores"] * (end - job["since"]), job["changes"])
            )
        return np.array(rows).T


def naive(policy, workload, cores, jobs):
    """What the naive simulator notes."""
    watched = Watched(policy, workload, cores, 0.0, (), True)
    watched.run(*jobs)
    return watched.noted()


@pytest.mark.parametrize("name", [*CLASS_RULES, *JOB_RULES])
def test_every_job_is_noted_as_a_naive_simulator_notes_it(name):
    """First core, departure, core-time and number of resizes of each job, below and above saturation."""
    policy = Policy.of(name)
    for load in (0.5, 1.3):
        workload = paper_workload(4, 0.5)
        cores = 4
        jobs = stream(workload.scaled(load / 0.5), 3, chunk=60).take()
        made = program(policy, workload, cores)
        expected = naive(policy, workload, cores, jobs)
        got = replay_jobs(workload, cores, made, jobs, interpreted=True)
        log = got.log
        np.testing.assert_allclose(log.starts, expected[0], rtol=1e-9)
        np.testing.assert_allclose(log.ends, expected[1], rtol=1e-9)
        np.testing.assert_allclose(log.core_time, expected[2], rtol=1e-9)
        assert log.resizes.tolist() == expected[3].tolist()
        # What is noted of jobs adds up to what is noted of the machine.
        assert got.used == pytest.approx(log.core_time.sum())
        by_class = np.bincount(jobs.classes, log.core_time, minlength=3)
        np.testing.assert_allclose(got.usage.cores.sum(axis=1) * got.usage.length, by_class, rtol=1e-9)
        assert got.end == log.ends.max()


@pytest.mark.parametrize("name", ["wham", "srpt"])
def test_compiled_and_interpreted_runs_note_the_same(name):
    """To the bit: the logs, and the cores over time."""
    workload = paper_workload(8, 0.9)
    jobs = stream(workload, 1, chunk=3000).take()
    made = program(Policy.of(name), workload, 8)
    slow, fast = (replay_jobs(workload, 8, made, jobs, interpreted=one) for one in (True, False))
    for a, b in zip(slow.log, fast.log, strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(slow.usage.cores, fast.usage.cores)


def test_usage_over_time_against_the_jobs_themselves():
    """One job at a time: the cores of each slice are those of the job that runs in it."""
    jobs = gen.Chunk(np.array([0.0, 10.0]), np.array([0, 1]), np.array([2.0, 3.0]))
    workload = paper_workload()
    found = replay_jobs(workload, 4, program(Policy.of("fcfs"), workload, 4), jobs, interpreted=True)
    usage = found.usage
    middle = usage.edges[:-1] + usage.length / 2
    runs = (middle < 2.0 - usage.length, (middle > 10.0 + usage.length) & (middle < 13.0 - usage.length))
    assert usage.cores[0][runs[0]] == pytest.approx(1.0)
    assert usage.cores[1][runs[1]] == pytest.approx(1.0)
    assert usage.edges[-1] >= 13.0


def test_slices_are_joined_when_time_runs_beyond_them():
    """What was summed stays: pairs of slices become one, twice as long."""
    usage, slices = np.arange(8.0).reshape(1, 8), np.array([0.0, 1.0])
    job_log.join_slices(usage, slices, 17.0)
    assert slices.tolist() == [0.0, 4.0]
    assert usage[0].tolist() == [6.0, 22.0, 0, 0, 0, 0, 0, 0]
    job_log.add_usage(usage, slices, 0, 6.0, 18.0, 2.0)
    assert usage[0, :6].tolist() == [6.0, 26.0, 8.0, 8.0, 4.0, 0.0]


@pytest.mark.parametrize("name", ["wham", "greedy", "fixed-width:widths=1/1/2", "srpt", "easy", "equi"])
@pytest.mark.parametrize("load", [0.6, 1.4])
def test_what_jobs_pay_for_their_cores(name, load):
    """Cores times price over time, against widths that the naive simulator noted at every event."""
    workload = paper_workload(4, 0.5)
    jobs = stream(workload.scaled(load / 0.5), 5, chunk=60).take()
    rng = np.random.default_rng(1)
    edges = np.sort(rng.uniform(jobs.times[0] - 1.0, jobs.times[-1] * 1.1, 12))
    prices = rng.exponential(1.0, 11)
    whole = np.concatenate([[0.0], np.cumsum(np.diff(edges) * prices)])

    class Paying(reference.Simulator):
        """The naive simulator in which every job pays for its cores whenever time goes on."""

        paid = dict.fromkeys(range(len(jobs.times)), 0.0)

        @property
        def now(self):
            return self.moment

        @now.setter
        def now(self, later):
            if getattr(self, "jobs", ()):
                price = np.diff(np.interp([self.moment, later], edges, whole))[0]
                for job in self.jobs:
                    self.paid[job["id"]] += job["cores"] * price
            self.moment = later

    paying = Paying(Policy.of(name), workload, 4, 0.0, (), True)
    paying.run(*jobs)
    made = program(Policy.of(name), workload, 4)
    got = replay_jobs(workload, 4, made, jobs, prices=job_log.PricePath(edges, prices), interpreted=True)
    expected = [paying.paid[number] for number in range(len(jobs.times))]
    np.testing.assert_allclose(got.log.rents, expected, rtol=1e-8, atol=1e-9 * max(expected))


def test_class_counts_cannot_see_weights_of_single_jobs():
    """A rule on class counts refuses them in one line, and says what to do."""
    workload = paper_workload()
    jobs = stream(workload, 0, chunk=5).take()._replace(weights=np.ones(5))
    with pytest.raises(UnsupportedError, match="weights of 5 single jobs"):
        replay_jobs(workload, 4, program(Policy.of("wham"), workload, 4), jobs)
