"""Streams of jobs have the laws they claim and depend on workload and seed alone."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from malleable.contracts import Policy
from malleable.engine.kernels.class_kernel import ARRIVALS
from malleable.engine.run import Run
from malleable.model import Workload, paper_workload
from malleable.simulation import program
from malleable.sources import ArrayStream, Chunk, stream

PAPER = paper_workload(64)


def taken(source, count):
    """The first `count` jobs of a stream."""
    parts = []
    while sum(part.size for part in parts) < count:
        parts.append(source.take())
    return Chunk(*(np.concatenate(columns)[:count] for columns in zip(*parts, strict=True)))


def renewal(*laws):
    rows = [
        {
            "name": f"c{i}",
            "arrivals": {"kind": "renewal", "interval": law},
            "size": {"kind": "erlang", "stages": 2, "mean": 1.0 + i},
            "speedup": {"kind": "power", "exponent": 0.5},
        }
        for i, law in enumerate(laws)
    ]
    return Workload.from_dict({"name": "renewal", "classes": rows})


ERLANG = {"kind": "erlang", "stages": 4, "mean": 0.5}
FIXED = {"kind": "deterministic", "value": 0.2}
H2 = {"kind": "hyperexponential", "probabilities": [0.1, 0.9], "rates": [0.2, 1.8]}
MIXED = renewal(ERLANG, FIXED, H2)


def same(a, b):
    return all(np.array_equal(x, y) for x, y in zip(a, b, strict=True))


@pytest.mark.parametrize("workload", [PAPER, MIXED], ids=["poisson", "renewal"])
def test_same_seed_same_jobs(workload):
    """The same seed gives the same jobs, another seed other ones."""
    assert same(taken(stream(workload, 5), 70_000), taken(stream(workload, 5), 70_000))
    assert not same(taken(stream(workload, 5), 100), taken(stream(workload, 6), 100))


@pytest.mark.parametrize("workload", [PAPER, MIXED], ids=["poisson", "renewal"])
def test_jobs_do_not_depend_on_who_takes_how_many(workload):
    """A run that is extended step by step, or recorded in other pieces, sees the very same jobs."""
    made = program(Policy.of("equi"), workload, 64)
    runs = [
        Run(workload, 64, made, jobs=jobs, source=stream(workload, 3), interpreted=True)
        for jobs in (3000, 600, 1024)
    ]
    for run, steps in zip(runs, [(3000,), (7, 8, 500, 501, 3000), (1500, 3000)], strict=True):
        for jobs in steps:
            run.extend(jobs)
    arrived = [r.outcome().records.arrivals.sum(axis=0) + r.machine.collect()[0][ARRIVALS] for r in runs]
    assert all(a.tolist() == arrived[0].tolist() for a in arrived)
    assert len({run.snapshot().time for run in runs}) == 1
    assert all(run.snapshot().counts.tolist() == runs[0].snapshot().counts.tolist() for run in runs)


@pytest.mark.parametrize("workload", [PAPER, MIXED], ids=["poisson", "renewal"])
def test_rates_shares_and_sizes(workload):
    """Arrival rates, class shares and mean sizes lie within four standard errors of what they should be."""
    count = 200_000
    times, classes, sizes, _ = taken(stream(workload, 9), count)
    assert (np.diff(times) >= 0.0).all()
    assert times[0] >= 0.0
    assert sizes.min() > 0.0
    seen = np.bincount(classes, minlength=len(workload.classes))
    expected = workload.rates * times[-1]
    scv = np.array([c.arrivals.interval.scv for c in workload.classes])
    assert (np.abs(seen - expected) <= 4.0 * np.sqrt(np.maximum(scv, 0.01) * expected) + 1.0).all()
    for i, c in enumerate(workload.classes):
        mine = sizes[classes == i]
        assert mine.mean() == pytest.approx(
            c.size.mean, abs=4.0 * c.size.mean * (c.size.scv / len(mine)) ** 0.5
        )
        gaps = np.diff(times[classes == i])
        mean = c.arrivals.interval.mean
        assert gaps.mean() == pytest.approx(mean, abs=4.0 * mean * (scv[i] / len(gaps)) ** 0.5 + 1e-9)
        assert gaps.var() / gaps.mean() ** 2 == pytest.approx(scv[i], rel=0.1, abs=1e-9)
        # Sizes and gaps are independent of one another and from job to job.
        assert abs(np.corrcoef(mine[1:], gaps)[0, 1]) < 4.5 / len(gaps) ** 0.5 or scv[i] == 0.0
        assert abs(np.corrcoef(mine[1:], mine[:-1])[0, 1]) < 4.5 / len(gaps) ** 0.5


def test_many_classes():
    """More classes than the coin's quick path serves keep their shares."""
    row = PAPER.to_dict()["classes"][0]
    rows = [{**row, "name": f"c{i}", "arrivals": {"kind": "poisson", "rate": 1.0 + i}} for i in range(20)]
    workload = Workload.from_dict({"name": "many", "classes": rows})
    seen = np.bincount(taken(stream(workload, 1), 100_000).classes, minlength=20)
    expected = 100_000 * workload.rates / workload.total_rate
    assert ((seen - expected) ** 2 / expected).sum() < 50.0  # χ² with 19 degrees of freedom, p ≈ 1e-4


def test_ties_of_renewal_streams():
    """Deterministic arrivals of several classes come at equal times, in the order of the classes."""
    jobs = taken(stream(renewal(*({"kind": "deterministic", "value": x} for x in (0.25, 0.5))), 1), 3000)
    tied = np.diff(jobs.times) == 0.0
    assert tied.sum() > 900
    assert (np.diff(jobs.classes)[tied] > 0).all()


def test_given_jobs():
    """An array stream hands out its jobs once, then nothing, and a run that outlasts them ends."""
    jobs = taken(stream(PAPER, 2), 100)
    source = ArrayStream(*jobs, chunk=33)
    assert [source.take().size for _ in range(6)] == [33, 33, 33, 1, 0, 0]
    run = Run(
        PAPER,
        64,
        program(Policy.of("fcfs"), PAPER, 64),
        jobs=500,
        source=ArrayStream(*jobs),
        interpreted=True,
    )
    run.extend(500)
    assert (run.jobs, run.exhausted) == (100, True)


@pytest.mark.parametrize("workload", [PAPER, MIXED], ids=["poisson", "renewal"])
def test_memory_does_not_grow_with_jobs(workload):
    """What a stream holds on to is a chunk or so, however many jobs were taken."""
    source = stream(workload, 1)
    source.take()
    tracemalloc.start()
    try:
        for _ in range(3):
            source.take()
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(60):
            source.take()
        assert tracemalloc.get_traced_memory()[0] - before < 300_000
    finally:
        tracemalloc.stop()


# --- the interval he
