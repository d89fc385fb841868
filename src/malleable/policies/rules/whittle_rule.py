"""The discounted Whittle policy as a rule on numbers: the procedure of `policies.whittle`, arm by arm.

The queue is by index; the longest prefix is served that, at the index of its last job, wants at most the
cores there are. Then the next job gets a part of its block, or those served share the rest at a lower price.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from malleable.engine.rule_interface import CLASS, REMAINING, WEIGHT
from malleable.engine.speedup_table import encode, has_corners, most_efficient, peak, speed, vertices
from malleable.policies.rules.ordering import ascending
from malleable.policies.rules.price_search import FASTER, HIGHEST, LOWEST, STEPS, next_log_price
from malleable.policies.rules.tolerances import DUST, TIGHT
from malleable.policies.rules.whittle_arms import (
    BANDIT,
    RANGE,
    WHITTLE,
    class_row,
    find_width,
    least_toll,
    prepare_arm,
)

if TYPE_CHECKING:
    from malleable.contracts import FloatArray
    from malleable.model import Workload
    from malleable.model.jobs import IntArray

BISECTIONS = 60
SETTLED = 1e-11
"""Difference of log prices at which a search ends."""


def whittle_table(workload: Workload, cores: float, discount: float) -> FloatArray:
    """The table of `whittle_rule`; no job can use more than all cores, so speedups end there."""
    encoded = encode([s.capped(cores) for s in workload.speedups], widest=max(cores, 2.0))
    m = len(workload.classes)
    rows, nodes = [], []
    start = len(encoded) + len(WHITTLE) + len(RANGE) * m
    for i in range(m):
        low = min(most_efficient(encoded, i), cores)
        high = min(max(peak(encoded, i), low), cores)
        k = np.zeros(0)
        if has_corners(encoded, i):
            first, count = vertices(encoded, i)
            k = np.unique(np.clip(encoded[first : first + count], low, high))
        rows.append([low, high, math.log(low), math.log(high), float(start), float(len(k))])
        nodes += [k, np.array([speed(encoded, i, float(width)) for width in k])]
        start += 2 * len(k)
    return np.concatenate([encoded, [0.0, discount, 0.0], np.ravel(rows), *nodes])


def whittle_rule(jobs: FloatArray, cores: float, table: FloatArray, out: FloatArray) -> None:
    """Cores by the discounted Whittle index."""
    queue, classes, arms = _queue(jobs, cores, table, out)
    size = queue.shape[0]
    served, own = _served(table, classes, arms, size, cores), int(table[1])
    next_price = float(arms[BANDIT.INDEX, served]) if served < size else -math.inf
    table[own + WHITTLE.CLEARED] = next_price
    if served < size and _part_for_next(table, classes, arms, served, cores):
        for position in range(served + 1):
            out[queue[position]] = arms[BANDIT.WIDTH, position]
        return
    log_price = _widen(table, classes, arms, served, size, cores)
    # (NaN, where a range of prices clears, is not below.)
    table[own + WHITTLE.CLEARED] = max(log_price, next_price)
    for position in range(served):
        out[queue[position]] = arms[BANDIT.WIDTH, position]


def whittle_price(jobs: FloatArray, table: FloatArray, out: FloatArray) -> float:
    """The price of the decision that the rule has just made: 0 where every job has all that helps.

    Of the prices at which the jobs want just the cores there are, the lowest counts.
    """
    log_price = float(table[int(table[1]) + WHITTLE.CLEARED])
    if not math.isnan(log_price):
        return math.exp(log_price) if log_price > LOWEST else 0.0
    cores, unused = float(out.sum()), np.empty(len(out))
    _, classes, arms = _queue(jobs, cores + DUST, table, unused)
    low, high = LOWEST, float(arms[BANDIT.INDEX, len(out) - 1])
    for _ in range(BISECTIONS):
        middle = 0.5 * (low + high)
        if _wanted(table, classes, arms, len(out), middle)[0] > cores * (1.0 + TIGHT):
            low = middle
        else:
            high = middle
    return math.exp(high)


def _queue(
    jobs: FloatArray, cores: float, table: FloatArray, out: FloatArray
) -> tuple[IntArray, IntArray, FloatArray]:
    """Jobs that may be served and the first who is not, by decreasing index, with their classes and arms."""
    size, discount = jobs.shape[0], float(table[int(table[1]) + WHITTLE.DISCOUNT])
    keys = np.empty(size)
    for j in range(size):
        out[j] = 0.0
        i, horizon = int(jobs[j, CLASS]), discount * max(float(jobs[j, REMAINING]), 0.0)
        unit = math.log(discount * float(jobs[j, WEIGHT]))
        keys[j] = least_toll(table, i, horizon, float(table[class_row(table, i) + RANGE.HIGH])) - unit
    order = ascending(keys)
    kept = min(size, int(cores) + 1)
    queue, classes, arms = np.empty(kept, np.int64), np.empty(kept, np.int64), np.empty((len(BANDIT), kept))
    for position in range(kept):
        j = order[position]
        i = int(jobs[j, CLASS])
        queue[position], classes[position] = j, i
        arms[BANDIT.HORIZON, position] = discount * max(float(jobs[j, REMAINING]), 0.0)
        arms[BANDIT.UNIT, position] = math.log(discount * float(jobs[j, WEIGHT]))
        arms[BANDIT.INDEX, position] = min(-keys[j], HIGHEST)
        prepare_arm(table, i, arms, position)
    return queue, classes, arms


def _wanted(
    table: FloatArray, classes: IntArray, arms: FloatArray, served: int, log_price: float
) -> tuple[float, float]:
    """What the first jobs together want at a price, and how that moves with its logarithm."""
    total = rate = 0.0
    for position in range(served):
        find_width(table, classes[position], arms, position, log_price)
        total += arms[BANDIT.WIDTH, position]
        rate += arms[BANDIT.RATE, position]
    return total, rate


def _served(table: FloatArray, classes: IntArray, arms: FloatArray, size: int, cores: float) -> int:
    """The longest prefix whose jobs, at the index of the last of them, together want at most the cores."""
    few, many = 1, size + 1
    trial = size
    while many - few > 1:
        if _wanted(table, classes, arms, trial, float(arms[BANDIT.INDEX, trial - 1]))[0] <= cores + DUST:
            few = trial
        else:
            many = trial
        trial = (few + many) // 2
    return few


def _part_for_next(table: FloatArray, classes: IntArray, arms: FloatArray, served: int, cores: float) -> bool:
    """Leave the first job left out a part of its block, if that is one core or more."""
    spare = cores - _wanted(table, classes, arms, served, float(arms[BANDIT.INDEX, served]))[0]
    if spare < 1.0:
        return False
    log_price = float(arms[BANDIT.UNIT, served]) - least_toll(
        table, classes[served], float(arms[BANDIT.HORIZON, served]), spare
    )
    spare = cores - _wanted(table, classes, arms, served, min(log_price, HIGHEST))[0]
    arms[BANDIT.WIDTH, served] = spare
    return spare >= 1.0


def _widen(
    table: FloatArray, classes: IntArray, arms: FloatArray, served: int, size: int, cores: float
) -> float:
    """Widths that use all cores the served jobs can use, into WIDTH, and the log price at which they do.

    NaN where all jobs are served and want just the cores there are, as at many lower prices.
    """
    most = 0.0
    for position in range(served):
        widest = float(table[class_row(table, classes[position]) + RANGE.HIGH])
        arms[BANDIT.WIDTH, position] = arms[BANDIT.CHEAP, position] = widest
        most += widest
    if most <= cores:
        return -math.inf
    log_price = float(arms[BANDIT.INDEX, min(served, size - 1)])
    total = _wanted(table, classes, arms, served, log_price)[0]
    if total > cores + DUST:
        log_price = float(arms[BANDIT.INDEX, served - 1])
        total = _wanted(table, classes, arms, served, log_price)[0]
    for position in range(served):
        arms[BANDIT.DEAR, position] = arms[BANDIT.WIDTH, position]
    if total < cores - DUST:
        total = _clear(table, classes, arms, served, log_price, total, cores)
        log_price = float(table[int(table[1]) + WHITTLE.LOG_PRICE])
    elif served == size:
        log_price = math.nan
    # Between two neighbouring prices lie only jumps; who jumps first is decided by the order of the queue.
    left, widest = cores - total, 0
    for position in range(served):
        gap = min(max(arms[BANDIT.CHEAP, position] - arms[BANDIT.DEAR, position], 0.0), max(left, 0.0))
        arms[BANDIT.WIDTH, position] = arms[BANDIT.DEAR, position] + gap
        left -= gap
        if arms[BANDIT.WIDTH, position] > arms[BANDIT.WIDTH, widest]:
            widest = position
    arms[BANDIT.WIDTH, widest] += min(left, 0.0) if most > cores else 0.0
    return log_price


def _clear(
    table: FloatArray,
    classes: IntArray,
    arms: FloatArray,
    served: int,
    ceiling: float,
    below: float,
    cores: float,
) -> float:
    """Find the price below `ceiling`, at which jobs want `below` cores in all, at which they want all cores.

    Newton's method on log demand over log price, from the last price. (The secant method of `price_search`,
    which does without dk/d log l, takes 1.3 times as long.) At a jump DEAR and CHEAP are left with the widths
    on its two sides; the total of DEAR is returned.
    """
    own = int(table[1])
    low, high = -math.inf, ceiling
    u, last, reach = min(float(table[own + WHITTLE.LOG_PRICE]), ceiling - 1e-3), math.inf, 2.0
    for _ in range(STEPS):
        total, rate = _wanted(table, classes, arms, served, u)
        f = math.log(total / cores)
        line = BANDIT.CHEAP if f > 0.0 else BANDIT.DEAR
        for position in range(served):
            arms[line, position] = arms[BANDIT.WIDTH, position]
        if f > 0.0:
            low = u
        else:
            high, below = u, total
        if abs(total - cores) <= TIGHT * cores:
            for position in range(served):
                arms[BANDIT.CHEAP, position] = arms[BANDIT.DEAR, position] = arms[BANDIT.WIDTH, position]
            table[own + WHITTLE.LOG_PRICE] = u
            return total
        step = -(f * total / rate) if rate < 0.0 else math.copysign(math.inf, f)
        following = next_log_price(u, step, f, last, low, high, SETTLED, reach)
        if following == u:
            break
        if low == -math.inf:
            reach *= FASTER
        last, u = f, following
    table[own + WHITTLE.LOG_PRICE] = high
    return below
