"""GREEDY on what work is worth under a fitted value function: the rules of `policies.wham_fitted`.

With very many jobs (N ≥ 3n, far beyond what the fit has seen) it is WHAM: c/x first, on one core each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from malleable.engine.rule_interface import WEIGHT, inlined
from malleable.policies.rules.greedy_job_rules import greedy_integer_rule, greedy_jobs_rule
from malleable.policies.rules.value_features import CURVED, FEATURES, feature_sums, gradient, work_values
from malleable.policies.rules.valued_division import divide, has_smooth_speedups
from malleable.policies.rules.wham_job_rules import wham_integer_rule, wham_jobs_rule

if TYPE_CHECKING:
    from malleable.contracts import FloatArray

CROWD = 3.0
"""Jobs per core from which on the value function is not asked."""


def fitted_rule(jobs: FloatArray, cores: float, table: FloatArray, out: FloatArray) -> None:
    """Real-valued widths that maximise Σ w_j s_j(k_j), w_j being what a unit of the job's work saves."""
    size = jobs.shape[0]
    if size >= CROWD * cores:
        wham_jobs_rule(jobs, cores, table, out)
        return
    values = np.empty(size)
    most = _values(jobs, table, values)
    if has_smooth_speedups(jobs, table):
        divide(jobs, table, values, most, cores, out)
        return
    greedy_jobs_rule(_weighted(jobs, values), cores, table, out)


def fitted_integer_rule(jobs: FloatArray, cores: float, table: FloatArray, out: FloatArray) -> None:
    """The same on whole cores."""
    size = jobs.shape[0]
    if size >= CROWD * cores:
        wham_integer_rule(jobs, cores, table, out)
        return
    values = np.empty(size)
    _values(jobs, table, values)
    greedy_integer_rule(_weighted(jobs, values), cores, table, out)


@inlined
def _values(jobs: FloatArray, table: FloatArray, values: FloatArray) -> float:
    """What a unit of each job's work saves, and the largest of these values."""
    features = FEATURES * int(table[0])
    decays, sums, slopes = np.empty(CURVED * jobs.shape[0]), np.empty(features), np.empty(features)
    feature_sums(jobs, table, decays, sums)
    gradient(table, sums, slopes)
    return work_values(jobs, table, decays, slopes, values)


def _weighted(jobs: FloatArray, values: FloatArray) -> FloatArray:
    """The jobs with these values as weights."""
    rows = jobs.copy()
    for j in range(rows.shape[0]):
        rows[j, WEIGHT] = values[j]
    return rows
