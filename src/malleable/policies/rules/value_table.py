"""A fitted value function in plain numbers, and what a unit of work is worth under it in a given state.

The value of class counts x with N = Σ x jobs on n cores, in two regimes:

    h(x) = q·x + ½ xᵀP x + r·u + ½ uᵀR u,        u = x·min(1, n/N).

As long as cores suffice u is x; beyond, only its direction changes. To end a class-i job saves
h(x) − h(x − e_i), and work on it ends it at rate μ_i: its weight is μ_i times that.

The table starts with the encoded speedups; what follows, from table[1] on, is written here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from malleable.engine.speedup_table import encode, most_efficient, speed

if TYPE_CHECKING:
    from malleable.contracts import FloatArray
    from malleable.model import Workload

PRICE, FITTED_CORES, UNIT, TRUSTED, CLEARED = range(5)
"""The last clearing price, from which the next search starts, the number of cores of the fit, the unit of the
weights (cost per unit of time), the crowd up to which the fit is trusted, and the price of the last decision
(0 where all jobs have all that helps)."""
HEADER = 5
WEIGHT, RANK, RATE, MERIT, ORDER, LEAST, ENTRY = range(7)
"""Rows of one number per class: its weight now (0: priced out), the class in this place of the order by value
now, μ, the merit c·μ·s(k_e)/k_e, the class in this place of the order by rising merit, the most efficient
width k_e, and s(k_e)/k_e."""
ROWS = 7
ORDERED = 2.0
"""Least widths of all jobs, in multiples of the cores, beyond which classes come in the order of c·μ. Beyond
what is `trusted` they do so on their least widths, as under size-blind WHAM: all cores then work at their
best, and the backlog falls whatever was fitted, so the policy is stable."""
FAINTEST = 1e-3
"""The least weight, as a share of the largest: no job is worth nothing."""
ABOVE = 1.0 + 1e-7
"""By how much a class that must come first comes first."""


class Value(NamedTuple):
    """The coefficients of h, in multiples of the largest holding cost over all arrivals' rate."""

    linear: FloatArray
    quadratic: FloatArray
    crowded_linear: FloatArray
    crowded_quadratic: FloatArray
    trusted: float
    """Up to which crowd h was fitted: cores for the least widths of all jobs, relative to those there are."""


def value_table(workload: Workload, cores: float, value: Value) -> FloatArray:
    """The table of the rules that read a value function."""
    encoded = encode(workload.speedups, widest=max(cores, 2.0))
    m = len(workload.classes)
    rows = np.zeros((ROWS, m))
    rows[RATE] = 1.0 / workload.mean_sizes
    rows[LEAST] = [most_efficient(encoded, i) for i in range(m)]
    rows[ENTRY] = [speed(encoded, i, rows[LEAST, i]) / rows[LEAST, i] for i in range(m)]
    rows[MERIT] = workload.holding_costs / workload.holding_costs.max() * rows[RATE] * rows[ENTRY]
    rows[ORDER] = np.argsort(rows[MERIT], kind="stable")
    unit = workload.holding_costs.max() / workload.total_rate
    header, parts = [1.0, cores, unit, value.trusted, 0.0], [np.ravel(part) for part in value[:-1]]
    return np.concatenate([encoded, header, rows.ravel(), *parts])


def write_weights(counts: FloatArray, cores: float, table: FloatArray) -> None:
    """The weight of a job of each class in this state, into the table's row WEIGHT."""
    own, m = int(table[1]), len(counts)
    rows, linear = own + HEADER, own + HEADER + ROWS * m
    quadratic = linear + m
    beyond = quadratic + m * m
    crowded = beyond + m
    jobs = needed = one = two = 0.0
    for i in range(m):
        jobs += counts[i]
        needed += counts[i] * table[rows + LEAST * m + i]
        one += table[beyond + i] * counts[i]
        for j in range(m):
            two += counts[i] * table[crowded + m * i + j] * counts[j]
    here = min(1.0, table[own + FITTED_CORES] / jobs)
    there = min(1.0, table[own + FITTED_CORES] / max(jobs - 1.0, 1e-9))
    value, largest = here * one + 0.5 * here * here * two, 0.0
    for i in range(m):
        gain = table[linear + i] - 0.5 * table[quadratic + (m + 1) * i]
        mixed = 0.0
        for j in range(m):
            gain += table[quadratic + m * i + j] * counts[j]
            mixed += table[crowded + m * i + j] * counts[j]
        less = two - 2.0 * mixed + table[crowded + (m + 1) * i]
        gain += value - there * (one - table[beyond + i]) - 0.5 * there * there * less
        table[rows + WEIGHT * m + i] = gain * table[rows + RATE * m + i]
        if counts[i] > 0.0:
            largest = max(largest, table[rows + WEIGHT * m + i])
    for i in range(m):
        weight = table[rows + WEIGHT * m + i] if largest > 0.0 else table[rows + MERIT * m + i]
        table[rows + WEIGHT * m + i] = max(weight, FAINTEST * largest)
    crowd = needed / cores
    if crowd >= min(ORDERED, table[own + TRUSTED]):
        _put_in_order(counts, table, rows, crowd >= table[own + TRUSTED])


def _put_in_order(counts: FloatArray, table: FloatArray, rows: int, alike: bool) -> None:
    """Let the classes come in the order of c·μ; where they are `alike`, no job widens."""
    m = len(counts)
    highest = 0.0
    for position in range(m):
        i = int(table[rows + ORDER * m + position])
        if counts[i] > 0.0:
            own = 1.0 if alike else table[rows + WEIGHT * m + i] * table[rows + ENTRY * m + i]
            highest = max(own, highest * ABOVE)
            table[rows + WEIGHT * m + i] = highest / table[rows + ENTRY * m + i]
