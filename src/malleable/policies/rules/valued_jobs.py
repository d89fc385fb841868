"""GREEDY when each job's work has a value of its own, for any speedups, on real or whole cores.

Plain functions that the engine compiles. Strictly concave speedups have a fast way (`valued_division`); all
others, and whole cores, have the general one (`greedy_job_rules`), to which the values are the weights.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from malleable.engine.rule_interface import WEIGHT
from malleable.policies.rules.greedy_job_rules import greedy_integer_rule, greedy_jobs_rule
from malleable.policies.rules.valued_division import divide, has_smooth_speedups

if TYPE_CHECKING:
    from malleable.contracts import FloatArray


def share_by_value(
    jobs: FloatArray, table: FloatArray, values: FloatArray, cores: float, out: FloatArray
) -> None:
    """Real-valued widths that maximise Σ value·s(k); the values are changed."""
    if has_smooth_speedups(jobs, table):
        divide(jobs, table, values, cores, out)
    else:
        greedy_jobs_rule(_weighted(jobs, values), cores, table, out)


def share_whole_by_value(
    jobs: FloatArray, table: FloatArray, values: FloatArray, cores: float, out: FloatArray
) -> None:
    """The same on whole cores."""
    greedy_integer_rule(_weighted(jobs, values), cores, table, out)


def _weighted(jobs: FloatArray, values: FloatArray) -> FloatArray:
    """The jobs with these values as weights."""
    rows = jobs.copy()
    for j in range(rows.shape[0]):
        rows[j, WEIGHT] = values[j]
    return rows
