"""What the simulator runs for a policy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from malleable.policies.base.allocate_each_event import allocate_each_event

if TYPE_CHECKING:
    from malleable.contracts import Policy
    from malleable.engine.rule_interface import ClassProgram, JobProgram
    from malleable.model import Workload


def program(
    policy: Policy, workload: Workload, cores: float, *, plain: bool = True
) -> ClassProgram | JobProgram:
    """The policy's own program, or one that asks its `allocate` at every event.

    On a machine that demands more of jobs than the paper's (`plain` is false, or the workload says so) it is
    a rule on single jobs.
    """
    if plain and workload.plain:
        return policy.program(workload, cores) or allocate_each_event(policy, workload)
    return policy.job_program(workload, cores) or allocate_each_event(policy, workload)
