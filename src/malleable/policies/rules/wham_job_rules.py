"""WHAM job by job, on real or whole cores: plain functions that the engine compiles.

Serve by index, then share the cores at one price, which is left in the table. The table, and the market that
the rules build from it, are described in `market_groups`. `allocate` and the simulator run these functions.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from malleable.engine.rule_interface import CLASS, REMAINING, inlined
from malleable.policies.rules.clearing_shares import share
from malleable.policies.rules.market_groups import (
    CLEARED,
    LEAST,
    LINES,
    WHAM,
    class_row,
    cores_needed,
    group_jobs,
    least_widths_that_fit,
    value_of,
)
from malleable.policies.rules.ordering import ascending
from malleable.policies.rules.tolerances import DUST

if TYPE_CHECKING:
    from malleable.contracts import FloatArray
    from malleable.model.jobs import IntArray


def wham_jobs_rule(jobs: FloatArray, cores: float, table: FloatArray, out: FloatArray) -> None:
    """WHAM: blocks of the most efficient width by c·s/(k·x), then one price for all who are served."""
    _serve_by_index(jobs, cores, table, False, out)


def wham_integer_rule(jobs: FloatArray, cores: float, table: FloatArray, out: FloatArray) -> None:
    """WHAM on whole cores: the same, then steps in order of their price as long as they fit."""
    _serve_by_index(jobs, float(math.floor(cores)), table, True, out)


@inlined
def _serve_by_index(
    jobs: FloatArray, cores: float, table: FloatArray, integer: bool, out: FloatArray
) -> None:
    size = jobs.shape[0]
    market = np.empty((LINES, max(size, int(table[0]))))
    member, queue = np.empty(size, np.int64), np.empty(size, np.int64)
    groups = group_jobs(jobs, table, market, member, queue, out)
    if cores_needed(table, market, groups) <= cores + DUST:
        share(jobs, table, market, groups, member, queue, size, size, cores, WHAM, integer, out)
        return
    queue = _by_index(jobs, table, member, market)
    fit, spare = least_widths_that_fit(jobs, table, queue, cores)
    if spare < 1.0:
        share(jobs, table, market, groups, member, queue, fit, fit, cores, WHAM, integer, out)
        table[int(table[1]) + CLEARED] = np.nan
        return
    for position in range(fit):
        out[queue[position]] = table[class_row(table, int(jobs[queue[position], CLASS])) + LEAST]
    if fit < size:
        out[queue[fit]] = math.floor(spare) if integer else spare


def _by_index(jobs: FloatArray, table: FloatArray, member: IntArray, market: FloatArray) -> IntArray:
    """Job positions by decreasing c·s(k_e)/(k_e·x), earlier arrivals first among equals."""
    keys = np.empty(jobs.shape[0])
    for j in range(jobs.shape[0]):
        remaining = float(jobs[j, REMAINING])
        keys[j] = -value_of(table, market, member[j]) / remaining if remaining > 0.0 else -math.inf
    return ascending(keys)
