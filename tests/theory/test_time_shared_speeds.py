"""Speeds by class counts when jobs that outnumber the cores share them in time."""

from __future__ import annotations

import numpy as np
import pytest

from malleable.contracts import Policy
from malleable.model import paper_workload
from malleable.theory.class_speeds import class_speeds

CORES = 8


@pytest.mark.parametrize("policy", ["wham", "equi", "greedy"])
def test_crowded_jobs_share_evenly(policy):
    """With N ≥ n jobs each has n/N of a core under every rule; with fewer, nothing changes."""
    workload = paper_workload(CORES)
    counts = np.array([[a, b, c] for a in range(8) for b in range(8) for c in range(8)], dtype=float)
    shared = class_speeds(Policy.of(policy), workload, CORES, time_shared=True)(counts)
    ruled = class_speeds(Policy.of(policy), workload, CORES)(counts)
    total = counts.sum(axis=1)
    crowded, some = total >= CORES, (total > 0.0) & (total < CORES)
    assert shared[crowded] == pytest.approx(np.repeat(CORES / total[crowded, None], 3, axis=1))
    assert np.array_equal(shared[some], ruled[some])
    assert np.array_equal(shared[crowded], ruled[crowded]) == (policy != "wham")
