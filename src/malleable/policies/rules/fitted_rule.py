"""GREEDY on what work is worth under a fitted value function: the rules of `policies.wham_fitted`.

With more jobs than the fit has seen, as when the load is higher than it was told, it is `wham-discounted`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from malleable.engine.rule_interface import inlined
from malleable.policies.rules.discounted_job_rule import discounted_rule
from malleable.policies.rules.value_features import (
    CURVED,
    FEATURES,
    feature_sums,
    gradient,
    value_numbers,
    work_values,
)
from malleable.policies.rules.valued_jobs import share_by_value, share_whole_by_value
from malleable.policies.rules.wham_job_rules import wham_integer_rule

if TYPE_CHECKING:
    from malleable.contracts import FloatArray


def fitted_rule(jobs: FloatArray, cores: float, table: FloatArray, out: FloatArray) -> None:
    """Real-valued widths that maximise Σ w_j s_j(k_j), w_j being what a unit of the job's work saves."""
    if jobs.shape[0] > table[value_numbers(table)]:
        discounted_rule(jobs, cores, table, out)
    else:
        share_by_value(jobs, table, _values(jobs, table), cores, out)


def fitted_integer_rule(jobs: FloatArray, cores: float, table: FloatArray, out: FloatArray) -> None:
    """The same on whole cores; with more jobs than the fit has seen it is WHAM on whole cores."""
    if jobs.shape[0] > table[value_numbers(table)]:
        wham_integer_rule(jobs, cores, table, out)
    else:
        share_whole_by_value(jobs, table, _values(jobs, table), cores, out)


@inlined
def _values(jobs: FloatArray, table: FloatArray) -> FloatArray:
    """What a unit of each job's work saves."""
    size, features = jobs.shape[0], FEATURES * int(table[0])
    values, decays = np.empty(size), np.empty(CURVED * size)
    sums, slopes = np.empty(features), np.empty(features)
    feature_sums(jobs, table, decays, sums)
    gradient(table, sums, slopes)
    work_values(jobs, table, decays, slopes, values)
    return values
