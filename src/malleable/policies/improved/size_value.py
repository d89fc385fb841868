"""A fitted value function of remaining sizes, and GREEDY on what work is worth under it (`wham-fitted`).

A job of class i with r left has four features, all 0 at r = 0, so that nothing jumps when it leaves:

    φ_a(r) = 1 − e^{−r/t_ia},  a = 1, 2, 3,        φ_4(r) = r/mean_i

U_ia is their sum over the jobs of the class, and h = q·U + ½ UᵀQU. To do a unit of a job's work saves
∂h/∂r = Σ_a φ_a′(r)·(q + QU)_ia. Beyond `CAP` a job counts as if `CAP` were left: the fit saw nothing larger.
With more jobs than the fit has seen, as when the load is higher than it was told, it is `wham-discounted`.

The numbers stand behind those of `discounted_market` in a table: the most jobs that the fit has seen, a row
per class, then q, then Q by rows. Plain functions that the engine compiles.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from malleable.engine.rule_interface import CLASS, REMAINING, WEIGHT, inlined
from malleable.numerics.places import places
from malleable.policies.rules.discounted_market import DISCOUNTED
from malleable.policies.rules.discounted_rule import discounted_rule
from malleable.policies.rules.market import end_of_market
from malleable.policies.rules.market_rules import wham_integer_rule
from malleable.policies.rules.own_weights import share_by_value, share_whole_by_value

if TYPE_CHECKING:
    from malleable.contracts import FloatArray


class Feature(NamedTuple):
    """The columns of a class."""

    RATE_1: int
    RATE_2: int
    RATE_3: int
    """1/t_a."""
    MEAN_RATE: int
    """1/mean."""
    CAP: int
    """The largest r looked at."""
    FLOOR: int
    """1/s(n)."""
    COST: int
    """Its holding cost."""


FEATURE = places(Feature)
FEATURES, CURVED = 4, 3
"""Features of a class, and how many of them level off."""


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


def value_numbers(table: FloatArray) -> int:
    """Where the numbers of the fit begin, the first of which is the most jobs that it has seen."""
    return end_of_market(table) + len(DISCOUNTED)


def value_rows(table: FloatArray) -> int:
    """Where the rows of the classes begin."""
    return value_numbers(table) + 1


def feature_sums(jobs: FloatArray, table: FloatArray, decays: FloatArray, sums: FloatArray) -> None:
    """U into `sums`, and e^{−r/t_a} of each job into `decays`, three in a row."""
    rows = value_rows(table)
    for at in range(sums.shape[0]):
        sums[at] = 0.0
    for j in range(jobs.shape[0]):
        i = int(jobs[j, CLASS])
        row = rows + len(FEATURE) * i
        r = min(max(float(jobs[j, REMAINING]), 0.0), float(table[row + FEATURE.CAP]))
        for a in range(CURVED):
            decay = math.exp(-r * table[row + FEATURE.RATE_1 + a])
            decays[CURVED * j + a] = decay
            sums[FEATURES * i + a] += 1.0 - decay
        sums[FEATURES * i + CURVED] += r * table[row + FEATURE.MEAN_RATE]


def gradient(table: FloatArray, sums: FloatArray, slopes: FloatArray) -> None:
    """∂h/∂U = q + QU into `slopes`."""
    size = sums.shape[0]
    linear = value_rows(table) + len(FEATURE) * int(table[0])
    for at in range(size):
        total = float(table[linear + at])
        line = linear + size * (at + 1)
        for other in range(size):
            total += table[line + other] * sums[other]
        slopes[at] = total


def work_values(
    jobs: FloatArray, table: FloatArray, decays: FloatArray, slopes: FloatArray, values: FloatArray
) -> None:
    """What a unit of each job's work saves, into `values`.

    At least c/s(n): with a unit less of a job's work the system could do as before, and let the job leave
    earlier by the time that the unit takes on all cores. A job that brings a weight of its own counts in
    proportion to it.
    """
    rows = value_rows(table)
    for j in range(jobs.shape[0]):
        i = int(jobs[j, CLASS])
        row, at = rows + len(FEATURE) * i, FEATURES * i
        value = float(slopes[at + CURVED]) * float(table[row + FEATURE.MEAN_RATE])
        for a in range(CURVED):
            value += slopes[at + a] * table[row + FEATURE.RATE_1 + a] * decays[CURVED * j + a]
        cost = float(jobs[j, WEIGHT])
        if cost != table[row + FEATURE.COST]:
            value *= cost / float(table[row + FEATURE.COST])
        values[j] = max(value, cost * float(table[row + FEATURE.FLOOR]))
