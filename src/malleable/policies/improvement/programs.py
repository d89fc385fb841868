"""What the simulator runs under a fitted value function: a rule on class counts where these say it all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from malleable.engine.rule_interface import SHARE, ClassProgram, JobProgram
from malleable.policies.rules.class_rules import one_core_each_fits
from malleable.policies.rules.improved_job_rules import (
    improved_gears_rule,
    improved_gears_table,
    improved_jobs_rule,
    improved_jobs_table,
    improved_shares_rule,
)
from malleable.policies.rules.improved_rule import improved_rule
from malleable.policies.rules.value_table import value_table

if TYPE_CHECKING:
    from malleable.model import Workload
    from malleable.policies.rules.value_table import Value


def shares_in_time(workload: Workload, cores: float) -> bool:
    """Whether classes that are served in part share their cores in time, as the fit has it."""
    return not workload.restricted and one_core_each_fits(workload.speedups, cores)


def class_program(workload: Workload, cores: float, value: Value) -> ClassProgram | JobProgram:
    """The rule on class counts, or on jobs where one core is not the least width of every class.

    A class that gets less than a core per job shares its cores in time; with exponential sizes that is worth
    as much as any other order.
    """
    if not shares_in_time(workload, cores):
        return job_program(workload, cores, value)
    return ClassProgram(improved_rule, value_table(workload, cores, value), SHARE)


def job_program(workload: Workload, cores: float, value: Value) -> JobProgram:
    """The same on single jobs. Where cores cannot be shared in time, the earliest of a class have theirs."""
    values = value_table(workload, cores, value)
    if workload.restricted:
        return JobProgram(improved_gears_rule, improved_gears_table(workload, cores, values))
    if shares_in_time(workload, cores):
        return JobProgram(improved_shares_rule, values, sharing=True)
    return JobProgram(improved_jobs_rule, improved_jobs_table(workload, cores, values))
