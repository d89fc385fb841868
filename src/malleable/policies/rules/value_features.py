"""A fitted value function of remaining sizes in plain numbers, and what a unit of work is worth under it.

A job of class i with r left has four features, all 0 at r = 0, so that nothing jumps when it leaves:

    φ_a(r) = 1 − e^{−r/t_ia},  a = 1, 2, 3,        φ_4(r) = r/mean_i

U_ia is their sum over the jobs of the class, and h = q·U + ½ UᵀQU. To do a unit of a job's work saves
∂h/∂r = Σ_a φ_a′(r)·(q + QU)_ia. Beyond `CAP` a job counts as if `CAP` were left: the fit saw nothing larger.

The numbers stand behind those of `discounted_demand` in a table: the most jobs that the fit has seen, a row
per class, then q, then Q by rows.
Plain functions that the engine compiles.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from malleable.engine.rule_interface import CLASS, REMAINING, WEIGHT
from malleable.policies.rules.discounted_demand import own_numbers

if TYPE_CHECKING:
    from malleable.contracts import FloatArray

DISCOUNTED_NUMBERS = 5
"""Numbers of `discounted_demand` that stand before those of the fit."""
FEATURES, CURVED = 4, 3
"""Features of a class, and how many of them level off."""
RATES, MEAN_RATE, CAP, FLOOR, COST = 0, 3, 4, 5, 6
"""Columns of a class: 1/t_a (three of them), 1/mean, the largest r looked at, 1/s(n), its holding cost."""
VALUE_COLUMNS = 7


def value_numbers(table: FloatArray) -> int:
    """Where the numbers of the fit begin, the first of which is the most jobs that it has seen."""
    return own_numbers(table) + DISCOUNTED_NUMBERS


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
        row = rows + VALUE_COLUMNS * i
        r = min(max(float(jobs[j, REMAINING]), 0.0), float(table[row + CAP]))
        for a in range(CURVED):
            decay = math.exp(-r * table[row + RATES + a])
            decays[CURVED * j + a] = decay
            sums[FEATURES * i + a] += 1.0 - decay
        sums[FEATURES * i + CURVED] += r * table[row + MEAN_RATE]


def gradient(table: FloatArray, sums: FloatArray, slopes: FloatArray) -> None:
    """∂h/∂U = q + QU into `slopes`."""
    size = sums.shape[0]
    linear = value_rows(table) + VALUE_COLUMNS * int(table[0])
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
        row, at = rows + VALUE_COLUMNS * i, FEATURES * i
        value = float(slopes[at + CURVED]) * float(table[row + MEAN_RATE])
        for a in range(CURVED):
            value += slopes[at + a] * table[row + RATES + a] * decays[CURVED * j + a]
        cost = float(jobs[j, WEIGHT])
        if cost != table[row + COST]:
            value *= cost / float(table[row + COST])
        values[j] = max(value, cost * float(table[row + FLOOR]))
