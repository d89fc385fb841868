"""What the live scheduler asks of a policy."""

from __future__ import annotations

import numpy as np

from malleable.contracts import Policy
from malleable.live.core.core_price import CorePrice
from malleable.live.core.decision import Machine
from malleable.live.core.job_table import CLASS, MOST, SIZE, WEIGHT, JobTable
from malleable.live.core.learned_sizes import GivenSizes
from malleable.model import paper_workload
from malleable.policies.base.asking import allocation


def test_cores_that_others_hold_do_not_change_what_a_policy_expects():
    """Beside three jobs of one core each, `wham-discounted` expects what it does of the whole machine."""
    workload, policy, rng = paper_workload(12, 0.5), Policy.of("wham-discounted"), np.random.default_rng(2)
    differs = 0
    for _ in range(20):
        table = JobTable()
        for job in range(9):
            values = {CLASS: rng.integers(0, 3), WEIGHT: 5.0 if job < 3 else 1.0, SIZE: rng.exponential(2.0)}
            table.add(str(job), values | ({MOST: 1.0} if job < 3 else {}))
        machine, rows = (
            Machine(workload, cores=12, most=12, policy=policy, sizes=GivenSizes([])),
            table.rows(),
        )
        found = machine.divide(table, rows, 0.0).cores
        jobs = machine.present(table, rows[3:], 0.0)
        assert found[:3].tolist() == [1.0] * 3
        assert jobs.ids == ("3", "4", "5", "6", "7", "8")
        assert found[3:].tolist() == allocation(policy, jobs, 9.0, 12.0, integer=True).cores.tolist()
        differs += found[3:].tolist() != policy.allocate(jobs, 9.0, integer=True).cores.tolist()
    assert differs  # the outlook of nine cores is another


def test_a_core_of_no_machine_has_no_price():
    """When the last core is taken away there is no price, and none is asked for: the broker goes on."""
    price = CorePrice.from_list([2.0, 4.0, 10.0])
    assert price.value(8) > price.value(1) > 0.0
    assert price.value(0) == 0.0
