"""Random jobs for the job rules, and the cores that a rule gives them."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from malleable.contracts import Policy
from malleable.model import paper_workload
from malleable.model.jobs import Jobs
from support import strategies as gen

PAPER = paper_workload()


def cores_of(policy, jobs, n, **options):
    return Policy.of(policy).allocate(jobs, n, **options).cores


def random_jobs(seed, size, workload=PAPER, *, held=0):
    rng = np.random.default_rng(seed)
    return Jobs.of(
        workload,
        rng.integers(0, len(workload.classes), size),
        rng.exponential(0.4, size),
        age=rng.exponential(0.3, size),
        held=rng.integers(0, held + 1, size).astype(float),
    )


def speedups_of(jobs):
    return [jobs.speedups[i] for i in jobs.speedup_index]


INSTANCES = st.tuples(
    gen.workloads("power", "amdahl", "rooftop", "usl", "table", max_classes=3).flatmap(
        lambda workload: gen.jobs_of(workload, max_jobs=5, min_jobs=1)
    ),
    st.integers(1, 9),
)
