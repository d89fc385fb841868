"""The jobs of a market by class and weight, in plain numbers: what the rules of WHAM and GREEDY read.

A table starts with the encoded speedups. What follows, from table[1] on, is the last clearing price with the
slope of demand there (the next search starts from these), what weights depend on, and one row per class.

A market is a small array with one column per group: class, weight, jobs served, and the quantities on both
sides of the clearing price. Jobs of a class form a group, together with classes that differ in name or sizes
only, so that no class comes before its twin; if weights differ within a group, every job is one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from malleable.engine.rule_interface import CLASS, REMAINING, WEIGHT
from malleable.engine.speedup_table import encode, most_efficient, peak, speed
from malleable.policies.rules.class_weights import class_rates, weight_unit
from malleable.policies.rules.tolerances import DUST, TINY

if TYPE_CHECKING:
    from malleable.contracts import FloatArray
    from malleable.model import Workload
    from malleable.model.jobs import IntArray
    from malleable.theory.market import Buyers

WHAM, WORK = 0, 1
"""What jobs minimise: (c + l·k)/s(k), or l·k − w·s(k)."""

# A market's lines, one column per group.
GROUP_CLASS, GROUP_WEIGHT, COUNT, LOW, HIGH = range(5)
LINES = 5
# A table's own numbers, and the columns of its classes.
PRICE, SLOPE, BY_COST, BY_SIZE, CLEARED = range(5)
"""The last price, the slope of demand there, whether weights grow with c, and with 1/x, and the price of the
last decision (NaN: it had none)."""
HEADER = 5
RATE, LEAST, MOST, LEAST_SPEED, CONCAVE, TIES, TWIN = range(7)
WIDTH_COLUMNS = 7


def market_jobs_table(
    workload: Workload,
    cores: float,
    weight: str = "c",
    *,
    shy: bool = False,
    buyers: Buyers | None = None,
) -> FloatArray:
    """The table of the rules below, for weights 1, mu, c, cmu or c/x.

    `shy`: ties go to the less parallelizable job; on whole cores the `buyers` say which widths are of use.
    """
    members = workload.speedups if buyers is None else buyers.speedups.members
    encoded = encode(members, widest=max(cores, 2.0))
    rows = np.zeros((len(members), WIDTH_COLUMNS))
    for i, speedup in enumerate(members):
        least = most_efficient(encoded, i) if buyers is None else float(buyers.least[i])
        rows[i, LEAST], rows[i, LEAST_SPEED] = least, speed(encoded, i, least)
        rows[i, MOST] = peak(encoded, i) if buyers is None else float(buyers.most[i])
        rows[i, CONCAVE] = float(speedup.concave)
        rows[i, TIES] = speed(encoded, i, 2.0) if shy else 0.0
    rates = class_rates(workload, weight)
    costs = workload.holding_costs if "c" in weight else np.ones(len(members))
    rows[:, TWIN] = _twins(workload, costs, rates)
    rows[:, RATE] = rates / weight_unit(workload, weight)
    header = [1.0, -1.0, float("c" in weight), float(weight == "c/x"), np.nan]
    return np.concatenate([encoded, header, rows.ravel()])


def _twins(workload: Workload, costs: FloatArray, rates: FloatArray) -> list[int]:
    """For each class the first one with the same speedup, and the same cost and rate where these count."""
    traits = list(zip(workload.speedups, costs.tolist(), rates.tolist(), strict=True))
    try:
        first: dict[object, int] = {}
        return [first.setdefault(own, i) for i, own in enumerate(traits)]
    except TypeError:  # a user's speedup may not hash
        return [traits.index(own) for own in traits]


def class_row(table: FloatArray, i: int) -> int:
    """Where the row of class i begins."""
    return int(table[1]) + HEADER + WIDTH_COLUMNS * i


def group_jobs(
    jobs: FloatArray,
    table: FloatArray,
    market: FloatArray,
    member: IntArray,
    queue: IntArray,
    out: FloatArray,
) -> int:
    """Group the jobs, the queue being the order of arrival; the number of groups. Widths start at 0."""
    size, groups, own = int(jobs.shape[0]), int(table[0]), int(table[1])
    table[own + CLEARED] = np.nan
    for g in range(groups):
        market[GROUP_CLASS, g], market[GROUP_WEIGHT, g], market[COUNT, g] = g, 0.0, 0.0
    alike = table[own + BY_SIZE] == 0.0
    for j in range(size):
        queue[j], out[j] = j, 0.0
        i = int(table[class_row(table, int(jobs[j, CLASS])) + TWIN])
        member[j] = i
        weight = weight_of(jobs, table, j, i)
        alike = alike and (market[COUNT, i] == 0.0 or market[GROUP_WEIGHT, i] == weight)
        market[GROUP_WEIGHT, i] = weight
        market[COUNT, i] += 1.0
    if alike:
        return groups
    for j in range(size):
        i = int(table[class_row(table, int(jobs[j, CLASS])) + TWIN])
        market[GROUP_CLASS, j], market[GROUP_WEIGHT, j] = i, weight_of(jobs, table, j, i)
        market[COUNT, j], member[j] = 1.0, j
    return size


def weight_of(jobs: FloatArray, table: FloatArray, j: int, i: int) -> float:
    """What job j, of class i, weighs in the market."""
    own = int(table[1])
    weight = float(jobs[j, WEIGHT]) if table[own + BY_COST] != 0.0 else 1.0
    weight *= float(table[class_row(table, i) + RATE])
    return weight / max(float(jobs[j, REMAINING]), TINY) if table[own + BY_SIZE] != 0.0 else weight


def count_served(market: FloatArray, groups: int, member: IntArray, queue: IntArray, served: int) -> None:
    """How many of the first `served` jobs of the queue are in each group."""
    for g in range(groups):
        market[COUNT, g] = 0.0
    for position in range(served):
        market[COUNT, member[queue[position]]] += 1.0


def cores_needed(table: FloatArray, market: FloatArray, groups: int) -> float:
    """Cores for the least width of every job counted."""
    total = 0.0
    for g in range(groups):
        total += market[COUNT, g] * table[class_row(table, int(market[GROUP_CLASS, g])) + LEAST]
    return total


def least_widths_that_fit(
    jobs: FloatArray, table: FloatArray, queue: IntArray, cores: float
) -> tuple[int, float]:
    """How many least widths fit one after the other, and what is left."""
    used = 0.0
    for position in range(queue.shape[0]):
        need = table[class_row(table, int(jobs[queue[position], CLASS])) + LEAST]
        if used + need > cores + DUST:
            return position, cores - used
        used += need
    return queue.shape[0], cores - used


def value_of(table: FloatArray, market: FloatArray, g: int) -> float:
    """The price at which a job of the group is just worth serving: w·s(k_e)/k_e."""
    row = class_row(table, int(market[GROUP_CLASS, g]))
    return float(market[GROUP_WEIGHT, g] * table[row + LEAST_SPEED] / table[row + LEAST])
