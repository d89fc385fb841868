"""How many files one opens to know a width: those whose functions run when WHAM's rule decides."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import malleable
from malleable.contracts import Need, Policy
from malleable.model import Workload
from malleable.model.jobs import Jobs
from malleable.policies.base import job_rows
from support import strategies as gen

ROOT = Path(malleable.__file__).parent
MOST = 8
"""Files, the policy's own among them."""
SPEEDUPS = (
    {"kind": "power", "exponent": 0.5},
    {"kind": "usl", "contention": 0.05, "coherency": 0.001},
    {"kind": "linear_power", "cores": 2, "exponent": 0.5},
    {"kind": "table", "cores": [1, 2, 4, 6], "speedup": [1, 1, 6, 6.5]},
)


@pytest.mark.parametrize("speedup", SPEEDUPS, ids=lambda one: one["kind"])
@pytest.mark.parametrize("integer", [False, True])
@pytest.mark.parametrize("size", [4, 40])
def test_a_width_of_wham_is_found_within_eight_files(speedup, integer, size):
    """On real and on whole cores, for few jobs and for more than there are cores, in any family."""
    made = Workload.from_dict({"classes": [gen.job_class("one", 1.0, 1.0, speedup, 1.0)]})
    rng = np.random.default_rng(size)
    jobs = Jobs.of(made, [0] * size, rng.exponential(1.0, size), weight=rng.uniform(1.0, 3.0, size))
    rule, table, *_ = Policy.of("wham").program(made, 16.0, Need(True, integer))
    rows, widths, files = job_rows(jobs, jobs.class_index), np.zeros(size), {ROOT / "policies" / "wham.py"}
    before = sys.getprofile()
    sys.setprofile(lambda frame, *_: files.add(Path(frame.f_code.co_filename)))
    try:
        rule(rows, 16.0, table.copy(), widths)
    finally:
        sys.setprofile(before)
    ours = [file.relative_to(ROOT).as_posix() for file in files if file.is_relative_to(ROOT)]
    assert widths.sum() > 15.0
    assert len(ours) <= MOST, sorted(ours)
