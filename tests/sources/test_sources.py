"""A source is a value: it starts the same stream whenever it is asked, here or in a worker."""

import pickle

import numpy as np
import pytest

from malleable.errors import ParameterError
from malleable.model import paper_workload
from malleable.sources import Chunk, Drawn, Given, stream

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
