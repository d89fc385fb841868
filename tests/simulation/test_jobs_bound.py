"""The bound for given jobs beside V*: streams, intervals, and what results, tables and files say of it."""

from __future__ import annotations

import csv

import numpy as np
import pytest

import malleable
from malleable.contracts import Policy
from malleable.engine.replaying import replay_jobs
from malleable.errors import ParameterError, UnsupportedError
from malleable.model import paper_workload
from malleable.results import Comparison, Result
from malleable.simulation.given import ready
from malleable.simulation.jobs_bound import _records, drawn_jobs, stationary_bound
from malleable.statistics import Estimate
from malleable.theory.price_path import bound_for_jobs


@pytest.fixture(scope="module")
def compared():
    return malleable.compare("paper", 16, "wham,equi", load=0.25, jobs=8_000, bound="jobs", workers=1)


def test_it_lies_between_v_and_the_cost_of_wham(compared):
    """On 16 cores V* explains a small part of WHAM's cost, the bound for given jobs nearly all of it."""
    wham, equi = compared.results
    assert wham.bound_tight < wham.bound_jobs.low
    assert wham.bound_jobs.mean < wham.cost.mean
    assert 0.0 < wham.gap_jobs.mean < 0.1 < wham.gap
    assert wham.gap_jobs.low < wham.gap_jobs.mean < wham.gap_jobs.high
    assert equi.bound_jobs == wham.bound_jobs
    assert equi.gap_jobs.mean > wham.gap_jobs.mean


def test_it_stands_in_documents_tables_and_files(compared, tmp_path):
    """JSON, rows, CSV and files have the bound and the gap with their intervals, and give them back."""
    document = compared.results[0].to_dict()
    assert set(document["bound_jobs"]) == set(document["gap_jobs"]) == {"mean", "low", "high"}
    row = compared.rows()[0]
    assert row["bound_jobs"] == document["bound_jobs"]["mean"]
    assert row["gap_jobs_high"] == document["gap_jobs"]["high"]
    compared.save_table(tmp_path / "made")
    with (tmp_path / "made" / "comparison.csv").open(encoding="utf-8", newline="") as file:
        assert float(next(csv.DictReader(file))["gap_jobs"]) == pytest.approx(row["gap_jobs"])
    back = Comparison.read(tmp_path / "made" / "comparison.json")
    assert back.results[0].bound_jobs == compared.results[0].bound_jobs
    del document["bound_jobs"], document["gap_jobs"]
    old = Result.from_dict({**document, "workload_document": None})
    assert old.bound_jobs is None
    assert old.gap_jobs is None


def test_it_is_asked_for():
    """Without `bound` there is none, and any other word is refused before anything runs."""
    found = malleable.simulate("paper", 16, load=0.25, jobs=2_000)
    assert found.bound_jobs is None
    assert found.to_dict()["gap_jobs"] is None
    with pytest.raises(ParameterError, match="bound must be jobs, got 'all'"):
        malleable.simulate("paper", 16, load=0.25, bound="all")
    with pytest.raises(UnsupportedError, match="a number of cores that stays the same"):
        malleable.simulate(
            "paper", 16, load=0.25, jobs=2_000, bound="jobs", capacity="schedule:times=0,cores=8,period=9"
        )


def test_stretches_add_up_to_the_bound_of_the_stream():
    """Σ over stretches of net costs times weights is the bound, by class counts and work as drawn."""
    workload = paper_workload(16, 0.5)
    jobs = drawn_jobs(workload, 3_000, 1)
    bound = bound_for_jobs(jobs, 16, threads=1)
    records = _records(jobs, bound)
    assert float((records.response @ workload.holding_costs).sum()) == pytest.approx(bound.bound, rel=1e-9)
    np.testing.assert_array_equal(records.departures.sum(axis=0), np.bincount(jobs.classes, minlength=3))
    assert float(records.work.sum()) == pytest.approx(float(jobs.sizes.sum()))
    assert float(records.duration.sum()) == pytest.approx(float(jobs.times[-1]))


def test_more_jobs_make_the_interval_narrower():
    """The interval of more and longer streams is shorter, and reaches above the lower end of the other."""
    workload = paper_workload(64, 0.5)
    short = stationary_bound(workload, 64, jobs=1_000, streams=2, threads=1)
    long = stationary_bound(workload, 64, jobs=6_000, streams=4, threads=1)
    assert isinstance(short, Estimate)
    assert long.half_width < short.half_width
    assert short.low < long.high


@pytest.mark.slow
def test_the_targets_on_the_papers_workload():
    """WHAM is at most 4 % above the bound on 16 cores at load .25, 2.5 % on 64 and .7 % on 256."""
    for cores, most in ((16, 0.04), (64, 0.025), (256, 0.007)):
        workload = paper_workload(cores, 0.25)
        jobs = drawn_jobs(workload, 100_000, 5)
        made = ready(Policy.of("wham"), jobs, cores)
        log = replay_jobs(made.workload, cores, made.program, made.jobs).log
        cost = float(jobs.weight @ (log.ends - jobs.times))
        assert 1.0 <= cost / bound_for_jobs(jobs, cores).bound <= 1.0 + most
