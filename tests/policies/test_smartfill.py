"""SmartFill online: the widths of the theory, whatever was kept from one event to the next."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from malleable import Jobs
from malleable.contracts import Policy
from malleable.engine.rule_interface import COLUMNS, IDENTITY
from malleable.model import Workload
from malleable.paper.experiments.e10b_discounted.discounting import WORKLOADS
from malleable.policies.base import job_rows
from malleable.policies.hesrpt import shares
from malleable.policies.rules.smartfill_rule import smartfill_rule
from malleable.policies.smartfill import Smartfill
from malleable.theory.clearing import Batch, clearing
from support import strategies as gen
from support.examples import examples

CORES = 12
FOUR = Workload.from_dict(WORKLOADS["four"]).at(CORES, 0.7)


def some_jobs(size, seed):
    rng = np.random.default_rng(seed)
    classes = rng.integers(0, 4, size)
    return Jobs.of(FOUR, classes, rng.exponential(1.0, size) + 1e-3, age=np.arange(size, 0.0, -1.0))


def order_of(jobs):
    """Last to finish first, by the rule's guess."""
    width = max(CORES / len(jobs), 1.0)
    speeds = np.array([float(FOUR.speedups[i](width)) for i in jobs.class_index])
    return np.argsort(-jobs.remaining / (np.sqrt(jobs.weight) * speeds), kind="stable")


@pytest.mark.parametrize("size", [1, 2, 3, 5, 8, 11])
def test_widths_are_those_of_the_theory(size):
    """With the same order of finishing, what a job gets is what it gets in the exact clearing of the batch.

    Where that gives a job a part of a core, which this policy may not, the totals are compared.
    """
    jobs = some_jobs(size, size)
    order = order_of(jobs)
    batch = Batch.of([FOUR.speedups[i] for i in jobs.class_index], jobs.weight, jobs.remaining, CORES)
    expected = np.zeros(size)
    expected[order] = clearing(batch, order.tolist()).steps[-1].widths
    found = Smartfill().allocate(jobs, CORES).cores
    assert found.sum() == pytest.approx(CORES)
    if not ((expected > 1e-9) & (expected < 1.0 - 1e-9)).any():
        np.testing.assert_allclose(found, expected, atol=1e-6)


def test_one_power_law_is_hesrpt():
    """With one power law and enough cores the shares are heSRPT's."""
    rows = [gen.job_class("a", 1.0, 1.0, {"kind": "power", "exponent": 0.5}, 1.0)]
    jobs = Jobs.of(Workload.from_dict({"classes": rows}), [0, 0, 0], [3.0, 2.0, 1.0])
    np.testing.assert_allclose(Smartfill().allocate(jobs, 64).cores, 64 * shares(np.ones(3), 0.5), rtol=1e-6)


@settings(max_examples=examples(10))
@given(seed=st.integers(0, 2**32 - 1))
def test_what_is_kept_changes_nothing(seed):
    """Events in a row with one table give what each of them gives with a fresh one."""
    rng = np.random.default_rng(seed)
    kept = Smartfill().program(FOUR, CORES).table
    jobs = some_jobs(int(rng.integers(2, 14)), seed)
    rows = job_rows(jobs, jobs.class_index)
    new = len(rows)
    for _ in range(12):
        if len(rows) > 1 and rng.random() < 0.5:
            rows = np.delete(rows, rng.integers(len(rows)), axis=0)
        else:
            other = some_jobs(1, int(rng.integers(2**31)))
            row = job_rows(other, other.class_index)
            row[:, IDENTITY] = new
            new += 1
            rows = np.concatenate([rows, row])
        rows = np.ascontiguousarray(rows).reshape(-1, COLUMNS)
        out, fresh = np.zeros(len(rows)), np.zeros(len(rows))
        smartfill_rule(rows, CORES, kept, out)
        smartfill_rule(rows, CORES, Smartfill().program(FOUR, CORES).table, fresh)
        np.testing.assert_allclose(out, fresh, atol=1e-7)


@settings(max_examples=examples(6))
@given(
    size=st.one_of(st.integers(1, 16), st.integers(4 * CORES, 100)),
    seed=st.integers(0, 2**32 - 1),
    integer=st.booleans(),
)
def test_cores_are_given_out_as_the_model_allows(size, seed, integer):
    """No job has part of a core, all cores are used, whole ones if asked, up to far more jobs than cores."""
    out = Policy.of("smartfill").allocate(some_jobs(size, seed), CORES, integer=integer).cores
    assert not ((out > 0.0) & (out < 1.0 - 1e-9)).any()
    assert out.sum() == pytest.approx(CORES)
    if integer:
        assert (out == np.rint(out)).all()
