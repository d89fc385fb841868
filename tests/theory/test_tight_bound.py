"""The gap is measured to the tightest bound known, and the bound says what it assumes."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from malleable import catalog, compare, simulate
from malleable.contracts import Policy
from malleable.model import JobClass, Workload
from malleable.model.jobs import Jobs
from malleable.results import Result, merge
from malleable.theory.relaxed import CAPPED, WHOLE, bound
from support import strategies as gen
from support.examples import examples
from support.shell import malleable

ANY = ("power", "linear_power", "amdahl", "usl", "table")
WHOLE_CORES = {"easy", "fcfs", "hell", "knee", "pollux", "sia", "srpt", "wham_integer"}


def root(rate=0.25):
    """One class of exponential jobs with s(k) = √k."""
    job = JobClass("only", {"kind": "poisson", "rate": rate}, {"kind": "exponential", "rate": 1.0},
                   {"kind": "power", "exponent": 0.5})  # fmt: skip
    return Workload("root", (job,))


def test_the_gap_is_to_the_capped_bound():
    """On 8 cores and √k, V* = .125 lets a job have 64 cores; with at most 8 it is 1/√8, and that counts."""
    model = root(1.0)
    lowest = bound(model, 8)
    assert (lowest.bound, lowest.bound_capped) == pytest.approx((0.125, 8**-0.5))
    found = simulate(model, 8, "wham", jobs=20_000)
    assert (found.bound, found.bound_tight, found.bound_name) == pytest.approx((0.125, 8**-0.5, CAPPED))
    assert found.gap == pytest.approx(found.cost.mean * 8**0.5 - 1.0)
    assert found.gap < 0.25
    document = json.loads(json.dumps(found.to_dict()))
    assert document["bound"] == 0.125
    assert document["bound_tight"] == found.bound_tight
    assert document["gap"] == found.gap
    assert f"above the bound {found.bound_tight:.6g}" in str(found)


def test_whole_cores_have_their_own_bound():
    """A policy on whole cores is held against the bound for whole cores, also after a merge and in files."""
    model = root().at(3, 0.6)
    lowest = bound(model, 3)
    assert lowest.bound_integer > lowest.bound_capped * 1.001
    parts = [simulate(model, 3, "wham-integer", jobs=2000, seed=seed) for seed in (1, 2)]
    joined = merge(parts)
    for found in (*parts, joined, Result.from_dict(json.loads(json.dumps(joined.document())))):
        assert (found.bound_tight, found.bound_name) == (lowest.bound_integer, WHOLE)
    assert simulate(model, 3, "equi", jobs=2000).bound_name == CAPPED


def test_old_files_have_v_star():
    """A document from before there was a tighter bound is read, and its gap is to V*."""
    document = simulate(root(), 8, "equi", jobs=2000).document()
    for key in ("bound_tight", "bound_name"):
        del document[key]
    found = Result.from_dict(document)
    assert found.gap == pytest.approx(found.cost.mean / found.bound - 1.0)


def test_who_gives_whole_cores():
    """Exactly these policies declare whole cores."""
    found = {kind for kind in catalog.kinds("policies") if catalog.find("policies", kind).whole_cores}
    assert found == WHOLE_CORES


@pytest.mark.parametrize("name", sorted(WHOLE_CORES))
@settings(max_examples=examples(6))
@given(data=st.data())
def test_declared_whole_cores_are_whole(name, data):
    """A policy that declares whole cores gives no fraction, whatever the jobs, even of 7.5 cores."""
    workload = data.draw(gen.workloads(*ANY))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    count = data.draw(st.integers(1, 12))
    jobs = Jobs.of(
        workload,
        rng.integers(0, len(workload.classes), count),
        remaining=rng.exponential(size=count) + 1e-3,
    )
    widths = Policy.of(name.replace("_", "-")).allocate(jobs, data.draw(st.sampled_from([3, 7.5, 16]))).cores
    np.testing.assert_array_equal(widths, np.round(widths))


def test_tables_name_the_bound():
    """`simulate`, `compare` and `bound` say which bound they show."""
    text = malleable("simulate", "paper", "-n", "8", "--load", ".25", "--jobs", "2000").out
    assert "lower bound (V*, no job above n cores)" in text
    assert "utilisation (" in text
    assert "effective load (" in text
    both = ("--policies", "wham,srpt")
    text = malleable("compare", "paper", "-n", "8", "--load", ".25", "--jobs", "2000", *both).out
    assert "gap of wham: cost above the lower bound (V*, no job above n cores)" in text
    assert "gap of srpt: cost above the lower bound (V*, whole cores, no job above n)" in text
    assert "and whole cores only" in malleable("bound", "paper", "-n", "8", "--load", ".25").out


def test_comparisons_keep_both():
    """Each result of a comparison has the bound that fits its policy."""
    found = compare(root().at(3, 0.6), 3, ["equi", "fcfs"], jobs=2000)
    assert [r.bound_name for r in found.results] == [CAPPED, WHOLE]
    assert all(r.gap > 0.0 for r in found.results)
