"""What the live scheduler asks of a policy."""

from __future__ import annotations

import numpy as np

from malleable.contracts import Policy
from malleable.live.decision import Machine
from malleable.live.job_table import CLASS, SIZE, WEIGHT, JobTable
from malleable.model import paper_workload


def test_cores_that_are_missing_do_not_change_what_a_policy_expects():
    """With some cores gone, `wham-discounted` expects what it expects of the whole machine."""
    workload, policy, rng = paper_workload(12, 0.5), Policy.of("wham-discounted"), np.random.default_rng(2)
    differs = 0
    for _ in range(20):
        table = JobTable()
        for job in range(8):
            values = {CLASS: rng.integers(0, 3), WEIGHT: 1.0, SIZE: rng.exponential(2.0)}
            table.add(str(job), values)
        machine = Machine(workload, cores=5, most=12, policy=policy)
        found = machine.divide(table, table.rows(), 0.0).cores
        jobs = machine.present(table, table.rows(), 0.0)
        assert found.tolist() == policy.allocate_part(jobs, 5.0, 12.0, integer=True).cores.tolist()
        differs += found.tolist() != policy.allocate(jobs, 5.0, integer=True).cores.tolist()
    assert differs  # the outlook of five cores is another
