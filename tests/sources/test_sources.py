"""A source is a value: it starts the same stream whenever it is asked, here or in a worker."""

import pickle
from dataclasses import dataclass, replace

import numpy as np
import pytest

from malleable.arrivals.poisson import Poisson
from malleable.contracts import Policy
from malleable.distributions.deterministic import Deterministic
from malleable.errors import ParameterError, UnsupportedError
from malleable.model import JobClass, Workload, paper_workload
from malleable.simulation import Settings, Task, run_task
from malleable.sources import ArrayStream, Chunk, Drawn, Given, stream

PAPER = paper_workload(64)
JOBS = Chunk(np.array([0.5, 1.0, 1.0]), np.array([0, 2, 1]), np.array([3.0, 4.0, 5.0]))


def same(one, other):
    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("source", [Drawn(7), Given(JOBS)], ids=["drawn", "given"])
def test_a_source_can_be_started_again(source):
    """Twice started, or sent through a pickle: the same jobs; replication 0 is the source itself."""
    first = source.stream(PAPER).take()
    assert first.size > 0
    assert same(first, source.stream(PAPER).take())
    assert same(first, pickle.loads(pickle.dumps(source)).stream(PAPER).take())
    assert same(first, source.replication(0).stream(PAPER).take())


def test_drawn_jobs_are_those_of_the_seed():
    """`Drawn(s)` is the stream of seed s, and its replication r that of seed s + r."""
    assert same(Drawn(7).stream(PAPER).take(), stream(PAPER, 7).take())
    assert same(Drawn(7).replication(2).stream(PAPER).take(), stream(PAPER, 9).take())


def test_given_jobs_come_once_and_end():
    """The arrays come out as they are, then an empty chunk says that there are no more."""
    started = Given(JOBS).stream(PAPER)
    assert same(started.take(), JOBS)
    assert started.take().size == 0


@pytest.mark.parametrize(
    ("jobs", "problem"),
    [
        (JOBS._replace(classes=np.array([0, 3, 1])), "of class 3, but the workload has 3 classes"),
        (JOBS._replace(classes=np.array([0, -1, 1])), "of class -1"),
        (JOBS._replace(times=np.array([1.0, 0.5, 2.0])), "not in order of arrival"),
    ],
)
def test_given_jobs_that_cannot_be_run(jobs, problem):
    with pytest.raises(ParameterError, match=problem):
        Given(jobs).stream(PAPER)


def test_given_jobs_have_no_replications():
    with pytest.raises(ParameterError, match="cannot be replicated"):
        Given(JOBS).replication(1)


@pytest.mark.parametrize("policy", ["wham", "srpt"])
def test_weights_of_single_jobs_are_refused(policy):
    """A run of a source whose jobs have weights of their own ends with one line, whatever the rule."""
    source = Weighted(JOBS._replace(weights=np.array([1.0, 2.0, 3.0])))
    task = Task(PAPER, 64, Policy.of(policy), policy, Settings(jobs=3, interpreted=True), source)
    with pytest.raises(UnsupportedError, match="3 jobs weights of their own"):
        run_task(task)


@dataclass(frozen=True, eq=False)
class Weighted(Given):
    """Given jobs, their weights included."""

    def stream(self, workload):  # noqa: ARG002 - as sources have it
        return ArrayStream(*self.jobs)


@dataclass(frozen=True)
class EveryTick(Poisson):
    """A user's process that has only the name in common with Poisson arrivals."""

    kind = "poisson"

    @property
    def interval(self):
        return Deterministic(1.0 / self.rate)


def test_a_process_is_poisson_by_its_class():
    """Arrivals that are called Poisson, or derive from it, come at their own intervals."""
    job = JobClass(
        "only", EveryTick(2.0), {"kind": "exponential", "rate": 1.0}, {"kind": "power", "exponent": 0.5}
    )
    chunk = Drawn(1).stream(Workload("ticks", (job,))).take()
    np.testing.assert_allclose(np.diff(chunk.times), 0.5, rtol=1e-6)
    assert replace(job, arrivals=Poisson(2.0)).arrivals.poisson
